"""The checked input of a full-kernel square-loss problem: which rows count, with which weight.

    min_f Σ_i w_i (f(x_i) − y_i)² + ridge ‖f‖²   ⇔   (K + ridge W⁻¹) C = Y

Rows of weight 0 are left out: they get the coefficient 0 and an output like any new point. So are
rows whose ridge / w_i overflows; their coefficient is below every normal number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec

__all__ = ["FullProblem", "check_ridge", "full_problem"]

SOURCE = "data"


@dataclass(frozen=True)
class FullProblem:
    """Rows of X and the kernel, resolved; `rows` are the ones that count.

    Y (n, t) has all rows, `targets` (m, t) and `weight` (m,) those that count.
    """

    X: Any
    kernel: KernelSpec
    Y: np.ndarray
    rows: np.ndarray
    targets: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return int(self.Y.shape[0])

    @property
    def size(self) -> int:
        """m: the number of rows that count."""
        return int(self.rows.size)

    @property
    def left_out(self) -> np.ndarray:
        return np.setdiff1d(np.arange(self.n), self.rows, assume_unique=True)

    def spread(self, values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        """Values (m, t) of the rows that count as an array of all rows."""
        out = np.full((self.n, *values.shape[1:]), fill)
        out[self.rows] = values
        return out


def check_ridge(ridge: float) -> float:
    """The ridge λℓ as a float, or SettingsError."""
    try:
        value = float(ridge)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise SettingsError(f"ridge is {ridge!r}; give a finite number above 0 (it is λ·n)")
    return value


def full_problem(
    X: Any, Y: Any, kernel: KernelSpec, weight: Any = None, ridge: float = 1.0
) -> FullProblem:
    """Check X, Y and weights and bring them into form; DataError or SettingsError."""
    if not isinstance(kernel, KernelSpec):
        raise SettingsError(f"the kernel is a {type(kernel).__name__}; give a KernelSpec")
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise DataError(SOURCE, None, f"data of {X.ndim} dimensions", "give a matrix of rows")
    n = X.shape[0]
    if n == 0:
        raise DataError(SOURCE, None, "no rows", "give at least one")
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind not in "biuf":
        raise DataError(SOURCE, None, f"features of type {values.dtype}", "give numbers")
    targets = _targets(Y, n)
    kernel = kernel.resolve(X)
    kernel.check_data(X, source=SOURCE)
    weights = _weights(weight, n)
    with np.errstate(over="ignore", divide="ignore"):
        counts = (weights > 0.0) & np.isfinite(ridge / weights)
    rows = np.flatnonzero(counts)
    if rows.size == 0:
        raise DataError(SOURCE, None, "every row has weight 0", "give some row a positive weight")
    return FullProblem(X, kernel, targets, rows, targets[rows], weights[rows])


def _targets(Y: Any, n: int) -> np.ndarray:
    try:
        values = np.array(Y, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(
            SOURCE, None, "targets that are not numbers", "encode classes as ±1 columns"
        ) from None
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[0] != n or values.shape[1] == 0:
        found = f"targets of shape {values.shape} for {n} rows"
        raise DataError(SOURCE, None, found, "give one target, or one row of targets, for each row")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad)) + 1
        raise DataError(SOURCE, None, f"a target of row {row} is not finite", "mend or drop it")
    return values


def _weights(weight: Any, n: int) -> np.ndarray:
    if weight is None:
        return np.ones(n)
    values = np.asarray(weight, dtype=np.float64)
    if values.shape != (n,):
        found = f"weights of shape {values.shape} for {n} rows"
        raise DataError(SOURCE, None, found, "give one weight for each row")
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        found = f"weight {values[row]} of row {row + 1}"
        raise DataError(SOURCE, None, found, "weights are finite numbers from 0")
    return values
