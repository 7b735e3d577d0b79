"""What the low-rank machines return, and the checks of what they are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu._gram import Gram
from kfu.data import check_finite
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec


@dataclass
class LowRankFit:
    """f_k(x) = Σ_j coef[j, k] K(x_rows[j], x) + bias[k].

    rows: row numbers of the training data (None where only the centres themselves are known).
    kernel: as resolved on the training data.
    info: plain figures; see the function that made the fit.
    """

    rows: np.ndarray | None
    coef: np.ndarray  # (len(rows), t) float64
    bias: np.ndarray  # (t,)
    ridge: float
    info: dict[str, Any] = field(default_factory=dict)
    kernel: KernelSpec | None = None

    def decision(
        self,
        X: Any,
        Z: Any,
        kernel: KernelSpec | None = None,
        *,
        precision: str = "float64",
        threads: int = 0,
    ) -> np.ndarray:
        """The outputs (rows of Z, t); X is the training data (for a precomputed kernel the matrix
        of training values, and Z has the columns of X)."""
        kernel = kernel or self.kernel
        if self.rows is None or kernel is None:
            raise SettingsError(
                "the fit knows its centres as vectors only; multiply by their values"
            )
        rows = self.rows
        if kernel.is_precomputed:
            return np.asarray(Z[:, rows] @ self.coef + self.bias)
        gram = Gram(X[rows], kernel, precision, threads)
        return np.asarray(gram.decision(None, self.coef, Z)) + self.bias


@dataclass(frozen=True)
class LowRankProblem:
    """What a method is asked to fit, checked: X dense or CSR, kernel resolved, Y (n, t)."""

    X: Any
    Y: np.ndarray
    kernel: KernelSpec
    rows: np.ndarray
    weight: np.ndarray | None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])


def low_rank_problem(
    X: Any, Y: Any, kernel: KernelSpec, rows: Any, weight: Any = None
) -> LowRankProblem:
    """The problem, or DataError or SettingsError."""
    X, kernel = checked_data(X, kernel)
    n = X.shape[0]
    weight = checked_weight(weight, n)
    if weight is not None and not (weight > 0.0).any():
        found = "no row has a positive weight"
        raise DataError("data", None, found, "give some row a weight above 0")
    return LowRankProblem(X, checked_targets(Y, n), kernel, checked_rows(rows, n), weight)


def checked_data(X: Any, kernel: KernelSpec) -> tuple[Any, KernelSpec]:
    """X as an array or CSR matrix of finite numbers, and the kernel resolved on it."""
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    values = X.data if sp.issparse(X) else X
    if X.ndim != 2 or X.shape[0] == 0:
        found = f"data of shape {X.shape}"
        raise DataError("data", None, found, "give a matrix of at least one row")
    if values.dtype.kind not in "biuf":
        raise DataError("data", None, f"features of type {values.dtype}", "give numbers")
    check_finite(X, "data")
    kernel = kernel.resolve(X)
    kernel.check_data(X, source="data")
    return X, kernel


def checked_ridge(ridge: float) -> float:
    """ridge = λℓ as a float; SettingsError unless positive and finite."""
    try:
        value = float(ridge)
    except (TypeError, ValueError):
        value = math.nan
    if not (value > 0.0 and math.isfinite(value)):
        raise SettingsError(f"ridge is {ridge}; it has to be a positive number")
    return value


def checked_ridges(ridge: float | Sequence[float]) -> list[float]:
    values = [ridge] if np.isscalar(ridge) else list(ridge)  # type: ignore[arg-type]
    if not values:
        raise SettingsError("the list of ridges is empty")
    return [checked_ridge(value) for value in values]  # type: ignore[arg-type]


def checked_targets(Y: Any, n: int) -> np.ndarray:
    """Y as a float64 matrix (n, t)."""
    try:
        Y = np.asarray(Y, dtype=np.float64)
    except (TypeError, ValueError):
        remedy = "encode classes as columns of ±1"
        raise DataError("data", None, "targets that are not numbers", remedy) from None
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
