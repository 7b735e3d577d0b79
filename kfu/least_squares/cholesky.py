"""Cholesky factor of K + diag(shift) inside the array of K, by LAPACK.

potrf writes the factor L into the lower half and the diagonal; the strict upper half keeps K, and
the diagonal is kept apart. From the one array come

    solve(B)             (K + shift)⁻¹ B                          potrs, 2n² per column
    product(C)           (K + shift) C                            symm on the upper half
    inverse_diagonal()   diag (K + shift)⁻¹ = Σ_k (L⁻¹)_ki²       trtri in place, n³/3: half of what
                                                                  forming the inverse would take

`inverse_diagonal` overwrites the factor and ends the object's use. Nothing of size n² is allocated.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from kfu.errors import DataError
from kfu.least_squares.gram_matrix import GramMatrix

__all__ = ["Cholesky", "NotPositiveDefiniteError", "indefinite"]

DENSE_EIGENVALUE = 400  # rows up to which the smallest eigenvalue is computed exactly


class NotPositiveDefiniteError(Exception):
    """The factorisation met a pivot ≤ 0; `pivot` counts from 1."""

    def __init__(self, pivot: int) -> None:
        super().__init__(f"pivot {pivot} is not positive")
        self.pivot = pivot


class Cholesky:
    """The factor of K + diag(shift); takes over the array of `gram`."""

    def __init__(self, gram: GramMatrix, shift: np.ndarray) -> None:
        self.values = gram.values
        self.diagonal = gram.diagonal + shift
        self.norm = gram.norm + float(shift.max())
        self.size = int(shift.size)
        potrf, self._potrs, self._pocon, self._trtri = scipy.linalg.get_lapack_funcs(
            ("potrf", "potrs", "pocon", "trtri"), (self.values,)
        )
        (self._symm,) = scipy.linalg.get_blas_funcs(("symm",), (self.values,))
        np.fill_diagonal(self.values, self.diagonal)
        factor, pivot = potrf(self.values, lower=1, clean=0, overwrite_a=1)
        assert factor is self.values
        if pivot > 0:
            raise NotPositiveDefiniteError(int(pivot))

    def solve(self, B: np.ndarray) -> np.ndarray:
        """(K + shift)⁻¹ B (n, t), float64 in and out, in the precision of the factor."""
        right = np.array(B, dtype=self.values.dtype, order="F")
        found, _ = self._potrs(self.values, right, lower=1, overwrite_b=1)
        return np.ascontiguousarray(found, dtype=np.float64)

    def product(self, C: np.ndarray) -> np.ndarray:
        """(K + shift) C from the half that holds K."""
        return symmetric_product(self._symm, self.values, self.diagonal, C)

    def condition(self) -> float:
        """An estimate of the condition number in the 1-norm, from below and mostly sharp."""
        reciprocal, _ = self._pocon(self.values, self.norm, uplo="L")
        return 1.0 / float(reciprocal) if reciprocal > 0 else math.inf

    def inverse_diagonal(self) -> np.ndarray:
        """diag (K + shift)⁻¹, float64. The factor is gone afterwards."""
        inverse, _ = self._trtri(self.values, lower=1, overwrite_c=1)
        assert inverse is self.values
        out = np.empty(self.size)
        width = 64
        for begin in range(0, self.size, width):
            end = min(begin + width, self.size)
            below = inverse[end:, begin:end]
            corner = np.tril(inverse[begin:end, begin:end]).astype(np.float64)
            out[begin:end] = np.einsum("ij,ij->j", corner, corner)
            out[begin:end] += np.einsum("ij,ij->j", below, below)
        return out


def symmetric_product(
    symm: object, values: np.ndarray, diagonal: np.ndarray, C: np.ndarray
) -> np.ndarray:
    """A C, of A the strict upper half of `values` and a diagonal; the array's own is ignored."""
    right = np.array(C, dtype=values.dtype, order="F")
    stored = values.diagonal().astype(np.float64)
    full = symm(1.0, values, right, lower=0)  # type: ignore[operator]
    return np.asarray(full, dtype=np.float64) + (diagonal - stored)[:, None] * C


def indefinite(
    gram: GramMatrix, shift: np.ndarray, ridge: float, pivot: int, row: int
) -> DataError:
    """The error of a matrix that potrf refused: pivot, smallest eigenvalue, a ridge that would do.

    Uses the half of the array that still holds K. The eigenvalue is that of W^½ K W^½, which the
    ridge has to lift above 0.
    """
    root = np.sqrt(ridge / shift)
    lowest = _lowest_eigenvalue(gram, root)
    largest = float((gram.norm * root.max()) * root.max())
    rounding = shift.size * float(np.finfo(gram.values.dtype).eps) * largest
    enough = _round_up(max(-1.1 * lowest, 2.0 * rounding, 2.0 * ridge))
    return DataError(
        "data",
        None,
        f"K + ridge is not positive definite: pivot {pivot} (row {row + 1}) is not above 0; the "
        f"smallest eigenvalue of the kernel matrix is about {lowest:.3g}, the ridge {ridge:.3g}",
        f"take a ridge of {enough:g} (or add {enough:g} to the diagonal of the kernel), or a "
        "positive semidefinite kernel",
    )


def _lowest_eigenvalue(gram: GramMatrix, root: np.ndarray) -> float:
    values = gram.values
    (symm,) = scipy.linalg.get_blas_funcs(("symm",), (values,))
    if root.size <= DENSE_EIGENVALUE:
        K = np.triu(values.astype(np.float64), 1)
        K = (K + K.T + np.diag(gram.diagonal)) * root[:, None] * root
        return float(scipy.linalg.eigvalsh(K)[0])
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def product(v: np.ndarray) -> np.ndarray:
        scaled = (root * v.ravel())[:, None]
        return root * symmetric_product(symm, values, gram.diagonal, scaled)[:, 0]

    operator = LinearOperator((root.size, root.size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(root.size)
    try:
        found = eigsh(operator, 1, which="SA", v0=start, tol=1e-3, maxiter=200)[0]
    except ArpackNoConvergence as unfinished:
        found = unfinished.eigenvalues
    return float(found[0]) if len(found) else -float(gram.norm * root.max() ** 2)


def _round_up(value: float) -> float:
    """Up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
