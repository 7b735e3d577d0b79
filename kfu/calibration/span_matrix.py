"""The factor behind spans: the matrix K̃ of the unbounded support vectors, inverted once.

    K̃ = [K + D  1; 1ᵀ 0]   with a free bias,      K̃ = K + D   without

D is a diagonal, of slack ridges or of smoothing. With a bias only Σλ = 1 matters, so a constant
added to every kernel value changes no span; A = (K + D + 11ᵀ)⁻¹ (in units in which the mean of K's
diagonal is 1) then holds everything, and is positive definite whenever K̃ is regular and K positive
semidefinite, even where K itself is singular:

    (K̃⁻¹)_pp = A_pp − u_p² / s,        u = A1,  s = 1ᵀu
    (k, 1)ᵀ K̃⁻¹ (k, 1) = kᵀAk − (kᵀu − 1)² / s − 1,    1 added to the kernel values k too

So one Cholesky factor and the inverse of its triangle do: two thirds of the work of LAPACK's
factor and inverse (potrf, potri), in place. Where K̃ is singular or K indefinite, eigenvalues take
over; null ones are raised to the tolerance, which gives a vector in the span of the others S² = 0.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

__all__ = ["SpanMatrix"]

SINGULAR = 1e-12  # reciprocal condition number below which the matrix is taken for singular
INDEFINITE = 1e-8  # negative eigenvalues beyond this share of the largest are the kernel's own
CANCELLED = 1e-12  # (K̃⁻¹)_pp below this share of A_pp is rounding: nothing is left to span
STRIPE = 256


class SpanMatrix:
    """K̃⁻¹ of kernel values K (n, n), which are overwritten. `added` is the diagonal D."""

    def __init__(self, K: np.ndarray, has_bias: bool, added: np.ndarray | None = None) -> None:
        self.has_bias = has_bias
        self.n = len(K)
        self.unit = float(np.abs(np.diagonal(K)).mean()) or 1.0
        K /= self.unit
        if added is not None:
            K[np.diag_indices(self.n)] += added / self.unit
        if has_bias:
            K += 1.0
        self.inverse: _Triangle | _Symmetric
        found = _Triangle.of(K)
        self.inverse = found if found is not None else _Symmetric(K)
        self.along_ones = self.inverse.times_ones()
        self.total = float(self.along_ones.sum())

    @property
    def is_singular(self) -> bool:
        return isinstance(self.inverse, _Symmetric)

    @property
    def is_indefinite(self) -> bool:
        return isinstance(self.inverse, _Symmetric) and self.inverse.is_indefinite

    def own_spans(self) -> np.ndarray:
        """1 / (K̃⁻¹)_pp; 0 where that is no distance (a bias, and nothing is left to span)."""
        largest = self.inverse.diagonal()
        found = largest
        if self.has_bias:
            found = largest - self.along_ones**2 / self.total
        usable = found > CANCELLED * np.abs(largest)
        return np.where(usable, self.unit / np.where(usable, found, 1.0), 0.0)

    def projected(self, rows: np.ndarray) -> np.ndarray:
        """vᵀ K̃⁻¹ v for kernel values (m, n) of other vectors: K_pp less it is the squared span."""
        k = rows / self.unit
        if not self.has_bias:
            return np.asarray(self.unit * self.inverse.quadratic(k))
        k += 1.0
        found = self.inverse.quadratic(k) - (k @ self.along_ones - 1.0) ** 2 / self.total
        return np.asarray(self.unit * (found - 1.0))

    def full(self) -> np.ndarray:
        """The first n rows and columns of K̃⁻¹, over the unit of K."""
        found = self.inverse.full()
        if self.has_bias:
            found -= np.outer(self.along_ones, self.along_ones / self.total)
        return np.asarray(found / self.unit)

    def weights_of(self, rows: np.ndarray) -> np.ndarray:
        """λ (m, n) of the point nearest to other vectors, from their kernel values."""
        k = rows / self.unit
        if not self.has_bias:
            return self.inverse.times(k)
        found = self.inverse.times(k + 1.0)
        excess = found.sum(axis=1) - 1.0
        return np.asarray(found - np.outer(excess, self.along_ones / self.total))


class _Triangle:
    """A = L⁻ᵀL⁻¹ by the inverse of the Cholesky factor, in the place of the matrix."""

    def __init__(self, root: np.ndarray) -> None:
        self.root = root  # L⁻¹ in the lower triangle, column by column; above it, anything

    @classmethod
    def of(cls, matrix: np.ndarray) -> _Triangle | None:
        """None where the matrix is not safely positive definite; it is then as it was."""
        diagonal = np.diagonal(matrix).copy()
        size = float(np.abs(matrix).sum(axis=0).max())
        factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            reciprocal, failed = lapack.dpocon(factor, size, uplo="L")
            failed = failed or not reciprocal > SINGULAR
        if not failed:
            root, failed = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        if failed:
            lower = np.tril(matrix, -1)  # LAPACK's upper triangle, which it left alone
            matrix[:] = lower + lower.T
            matrix[np.diag_indices(len(matrix))] = diagonal
            return None
        return cls(root)

    def diagonal(self) -> np.ndarray:
        n = len(self.root)
        found = np.empty(n)
        for begin in range(0, n, STRIPE):
            end = min(begin + STRIPE, n)
            corner = np.tril(self.root[begin:end, begin:end])
            below = self.root[end:, begin:end]
            found[begin:end] = (corner**2).sum(axis=0) + np.einsum("ij,ij->j", below, below)
        return found

    def times_ones(self) -> np.ndarray:
        ones = np.ones(len(self.root))
        half = blas.dtrmv(self.root, ones, lower=1)
        return np.asarray(blas.dtrmv(self.root, half, lower=1, trans=1))

    def quadratic(self, k: np.ndarray) -> np.ndarray:
        half = blas.dtrmm(1.0, self.root, k.T, lower=1)
        return np.einsum("ij,ij->j", half, half)

    def times(self, k: np.ndarray) -> np.ndarray:
        half = blas.dtrmm(1.0, self.root, k.T, lower=1)
        return np.asarray(blas.dtrmm(1.0, self.root, half, lower=1, trans_a=1).T)

    def full(self) -> np.ndarray:
        root = np.tril(self.root)
        return np.asarray(root.T @ root)


class _Symmetric:
    """A by eigenvalues, the null ones raised."""

    def __init__(self, matrix: np.ndarray) -> None:
        eigenvalues, vectors = np.linalg.eigh(matrix)
        largest = float(np.abs(eigenvalues).max()) or 1.0
        self.is_indefinite = bool(eigenvalues[0] < -INDEFINITE * largest)
        least = SINGULAR * largest
        raised = np.where(np.abs(eigenvalues) < least, least, eigenvalues)
        self.matrix = np.asarray((vectors / raised) @ vectors.T)
        # Null vectors of K + 11ᵀ are orthogonal to 1 but for rounding, which would be raised too.
        along = np.where(raised == eigenvalues, vectors.sum(axis=0), 0.0)
        self.along_ones = np.asarray(vectors @ (along / raised))

    def diagonal(self) -> np.ndarray:
        return np.diagonal(self.matrix)

    def times_ones(self) -> np.ndarray:
        return self.along_ones

    def quadratic(self, k: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", k @ self.matrix, k)

    def times(self, k: np.ndarray) -> np.ndarray:
        return np.asarray(k @ self.matrix)

    def full(self) -> np.ndarray:
        return self.matrix.copy()
