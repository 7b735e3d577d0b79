"""What the low-rank machines return, and the checks of what they are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec


@dataclass
class LowRankFit:
    """f_k(x) = Σ_j coef[j, k] K(x_rows[j], x) + bias[k].

    rows: row numbers of the training data (None where only the centres themselves are known).
    info: plain figures; see the function that made the fit.
    """

    rows: np.ndarray | None
    coef: np.ndarray  # (len(rows), t) float64
    bias: np.ndarray  # (t,)
    ridge: float
    info: dict[str, Any] = field(default_factory=dict)

    def decision(
        self,
        X: Any,
        Z: Any,
        kernel: KernelSpec,
        *,
        precision: str = "float64",
        threads: int = 0,
    ) -> np.ndarray:
        """The outputs (rows of Z, t); X is the training data (for a precomputed kernel the matrix
        of training values, and Z has the columns of X)."""
        assert self.rows is not None
        rows = self.rows
        if kernel.is_precomputed:
            return np.asarray(Z[:, rows] @ self.coef + self.bias)
        gram = Gram(X[rows], kernel, precision, threads)
        return np.asarray(gram.decision(None, self.coef, Z)) + self.bias


def checked_ridge(ridge: float) -> float:
    """ridge = λℓ as a float; SettingsError unless positive and finite."""
    value = float(ridge)
    if not (value > 0.0 and math.isfinite(value)):
        raise SettingsError(f"ridge is {value:g}; it has to be a positive number")
    return value


def checked_ridges(ridge: float | Sequence[float]) -> list[float]:
    values = [ridge] if np.isscalar(ridge) else list(ridge)  # type: ignore[arg-type]
    if not values:
        raise SettingsError("the list of ridges is empty")
    return [checked_ridge(value) for value in values]  # type: ignore[arg-type]


def checked_targets(Y: Any, n: int) -> np.ndarray:
    """Y as a float64 matrix (n, t)."""
    Y = np.asarray(Y, dtype=np.float64)
    if Y.ndim == 1:
        Y = Y[:, None]
    if Y.ndim != 2 or Y.shape[0] != n or Y.shape[1] == 0:
        raise DataError(
            "data", None, f"targets of shape {Y.shape} for {n} rows", "give one row of targets each"
        )
    if not np.isfinite(Y).all():
        row = int(np.flatnonzero(~np.isfinite(Y).all(axis=1))[0])
        raise DataError(
            "data", None, f"the target of row {row + 1} is not finite", "mend or leave out the row"
        )
    return Y


def checked_weight(weight: Any, n: int) -> np.ndarray | None:
    """Row weights as a float64 vector, or None where there are none."""
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    if weight.shape != (n,):
        raise DataError(
            "data", None, f"weights of shape {weight.shape} for {n} rows", "give one weight a row"
        )
    is_bad = ~(np.isfinite(weight) & (weight >= 0.0))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        found = f"the weight of row {row + 1} is {weight[row]:g}"
        raise DataError("data", None, found, "weights are finite and not negative")
    return weight


def checked_rows(rows: Any, n: int) -> np.ndarray:
    """Row numbers of centres: whole, inside 0..n−1, none twice, at least one."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise SettingsError("centres are given as a list of row numbers, at least one")
    rows = rows.astype(np.int64)
    if rows.min() < 0 or rows.max() >= n:
        raise SettingsError(f"a centre is outside the rows 0..{n - 1}")
    if len(np.unique(rows)) != len(rows):
        raise SettingsError("a row is given twice as a centre")
    return rows
