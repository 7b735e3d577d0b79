"""All ridges of a linear square loss at once, from one decomposition of its matrix A.

With A = U S Vᵀ (kfu.least_squares.centred_rows: weighted, centred rows), σ = S², P = A V = U S,

    v = V (PᵀZ / (σ + ridge)),   h_i = q_i² + Σ_k P_ik² / (σ_k + ridge),
    df = Σ h_i = [intercept] + Σ_k σ_k / (σ_k + ridge),

each ridge costs O((n + d) r t) after the decomposition. Exact leave-one-out residuals are
(y_i − f_i)/(1 − h_i) with the ridge held fixed; generalised cross-validation is
(1/n) Σ_i w_i (y_i − f_i)² / (1 − df/n)² (Craven and Wahba 1979). Two ways to the same:

`eig`   eigenvectors of the smaller of AᵀA and AAᵀ. For n ≤ d the vectors Q of AAᵀ form a whole
        basis (the intercept's q, lifted out of the spectrum, left aside), so that
        y − f = ridge·u/√w and 1 − h_i = ridge Σ_k Q_ik²/(σ_k + ridge) are sums without
        cancellation, however small the ridge. Singular values below 1e-7 or so of the largest are
        lost in rounding and taken as 0.
`svd`   the singular value decomposition of A written out: slower, but singular values are good to
        1e-14 of the largest; for a ridge that small beside ‖A‖².
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from kfu.errors import SettingsError
from kfu.least_squares.centred_rows import CentredRows
from kfu.least_squares.memory import require_memory
from kfu.least_squares.ridge_choice import RidgeTable, coded_classes

__all__ = ["DECOMPOSITIONS", "LinearSpectrum"]

LIFT = 2.0  # of the intercept's eigenvalue above the trace, so that it is the largest
REMEDY = "choose method 'cg', or fewer features"


class LinearSpectrum:
    """A decomposition of A; `side` is "features" (V and P = A V) or "rows" (Q of AAᵀ).

    `kept` tells which rows of the data those of A are, the ones of positive weight (None: all).
    """

    def __init__(
        self, rows: CentredRows, method: str = "eig", kept: np.ndarray | None = None
    ) -> None:
        if method not in DECOMPOSITIONS:
            known = ", ".join(DECOMPOSITIONS)
            raise SettingsError(f"decomposition is {method!r}; known: {known}")
        began = time.perf_counter()
        self.rows, self.kept = rows, kept
        self.side = "features" if rows.d < rows.n else "rows"
        self.vectors, self.sigma = DECOMPOSITIONS[method](rows, self.side)
        if self.side == "features":  # what A does not see plays no part
            self.vectors = self.vectors[:, self.sigma > 0.0]
            self.sigma = self.sigma[self.sigma > 0.0]
            self.image = np.empty((rows.n, self.vectors.shape[1]))
            for part, block in rows.blocks():
                self.image[part] = block @ self.vectors
            self.along = self.image.T @ rows.Z
        else:
            self.along = self.vectors.T @ rows.Z
        self.squares: np.ndarray | None = None
        self.seconds = time.perf_counter() - began

    def solve(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """v (d, t) and the residuals z − A v (n, t)."""
        damped = self.along / (self.sigma + ridge)[:, None]
        if self.side == "features":
            return self.vectors @ damped, self.rows.Z - self.image @ damped
        seen = self.sigma > 0.0  # Aᵀ of the others is rounding, and 1/ridge may be huge
        v = self.rows.adjoint(self.vectors[:, seen] @ damped[seen])
        return v, ridge * (self.vectors @ damped)

    def unleveraged(self, ridge: float) -> np.ndarray:
        """1 − h_i, what is left of the residual's share of a row in its own output."""
        if self.squares is None:
            basis = self.image if self.side == "features" else self.vectors
            self.squares = basis * basis
        sums = self.squares @ (1.0 / (self.sigma + ridge))
        if self.side == "rows":
            return ridge * sums
        return np.maximum(1.0 - self.rows.q**2 - sums, 0.0)

    def degrees(self, ridge: float) -> float:
        """The effective degrees of freedom, Σ h_i."""
        return float(np.sum(self.sigma / (self.sigma + ridge))) + float(self.rows.intercept)

    def table(
        self, ridges: Any, *, labels: Any = None, code: Any = None, decoding: str = "square"
    ) -> RidgeTable:
        """Mean squared leave-one-out error, GCV, degrees of freedom and mean squared training
        error of every ridge, ascending; means over rows by weight, summed over targets.

        `labels` (class indices of all rows of the data) and `code`, whose columns are the targets,
        give the 0/1 leave-one-out error.
        """
        ridges = np.unique(np.asarray(ridges, dtype=np.float64).ravel())
        if ridges.size == 0 or not (np.isfinite(ridges).all() and ridges[0] > 0.0):
            raise SettingsError("ridges are finite numbers > 0, at least one")
        rows, n = self.rows, self.rows.n
        if labels is not None and self.kept is not None:
            labels = np.asarray(labels)[self.kept]
        classes = coded_classes(labels, code, decoding, rows.Z.shape)
        loo, gcv, df, train, error = (np.empty(ridges.size) for _ in range(5))
        for k, ridge in enumerate(ridges):
            _, residual = self.solve(ridge)
            with np.errstate(divide="ignore", invalid="ignore"):
                left = residual / self.unleveraged(ridge)[:, None]
                loo[k] = np.sum(left**2) / rows.total
                df[k] = self.degrees(ridge)
                train[k] = np.sum(residual**2) / rows.total
                gcv[k] = np.sum(residual**2) / n / (1.0 - df[k] / n) ** 2
            if classes is not None:
                outputs = (rows.Z - left) / rows.root[:, None] + rows.target_mean
                error[k] = rows.weight @ classes.is_wrong(outputs) / rows.total
        return RidgeTable(ridges, loo, gcv, df, train, None if classes is None else error)


def _by_eigenvectors(rows: CentredRows, side: str) -> tuple[np.ndarray, np.ndarray]:
    size = min(rows.n, rows.d)
    kept = rows.n * rows.d if side == "features" else 0
    require_memory(8.0 * (3 * size**2 + kept), f"the spectrum of {size} unknowns", REMEDY)
    if side == "features":
        sigma, vectors = _eigenvectors(rows.feature_matrix())
        return vectors, _without_rounding(sigma, rows)
    matrix = rows.row_matrix()
    if rows.intercept:
        lift = LIFT * float(np.trace(matrix)) + 1.0
        matrix += np.outer(lift * rows.q, rows.q)
    sigma, vectors = _eigenvectors(matrix)
    if rows.intercept:  # the largest, last: q itself
        sigma, vectors = sigma[:-1], vectors[:, :-1]
    return vectors, _without_rounding(sigma, rows)


def _without_rounding(values: np.ndarray, rows: CentredRows) -> np.ndarray:
    """Eigenvalues, or singular values, with those that rounding alone may have made set to 0."""
    least = max(rows.n, rows.d) * np.finfo(np.float64).eps * values.max(initial=0.0)
    return np.where(values > least, values, 0.0)


def _eigenvectors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found: tuple[np.ndarray, np.ndarray] = scipy.linalg.eigh(
        matrix, lower=True, driver="evd", overwrite_a=True, check_finite=False
    )
    return found


def _by_singular_values(rows: CentredRows, side: str) -> tuple[np.ndarray, np.ndarray]:
    size = min(rows.n, rows.d)
    needed = 8.0 * (2 * rows.n * rows.d + 4 * size**2)
    require_memory(needed, f"singular values of {rows.n} × {rows.d} numbers", REMEDY)
    A = rows.written_out(slice(0, rows.n))
    is_lifted = side == "rows" and rows.intercept
    if is_lifted:
        A = np.column_stack([(LIFT * scipy.linalg.norm(A) + 1.0) * rows.q, A])
    U, s, Vt = scipy.linalg.svd(A, full_matrices=False, overwrite_a=True, check_finite=False)
    if side == "features":
        return Vt.T, _without_rounding(s, rows) ** 2
    if is_lifted:  # the largest, first: q itself
        U, s = U[:, 1:], s[1:]
    return U, _without_rounding(s, rows) ** 2


DECOMPOSITIONS: dict[str, Callable[[CentredRows, str], tuple[np.ndarray, np.ndarray]]] = {
    "eig": _by_eigenvectors,
    "svd": _by_singular_values,
}
