"""The matrix of a weighted linear least-squares problem with an intercept, never written out.

    min Σ w_i (x_i·v + b − y_i)² + ridge ‖v‖²

The best intercept is b = ȳ − μ·v with the weighted means μ and ȳ, which leaves the problem without
one of the rows a_i = √w_i (x_i − μ) and the targets z_i = √w_i (y_i − ȳ):

    v = (AᵀA + ridge I)⁻¹ Aᵀz = Aᵀ (AAᵀ + ridge I)⁻¹ z.

Sparse X stays sparse: A = √W X − √w μᵀ is X and a correction of rank one. Where rows are written
out for a product of matrices, in blocks, μ is subtracted from them, which loses nothing to
cancellation; the rank-one corrections of sparse products lose what ‖μ‖² exceeds the spread by.
q = √w/‖√w‖ spans what the intercept takes: Aᵀq = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas

from kfu._linear import NormalProducts

__all__ = ["CentredRows"]

BLOCK_BYTES = 2**24  # of rows or columns written out at a time
SPARSE_STEP = 40.0  # time of a step of a sparse product of matrices, in dense multiply-adds


def _product(matrix: Any, V: np.ndarray) -> np.ndarray:
    """matrix @ V as C-ordered float64; SciPy is faster with a vector than with a single column."""
    if V.shape[1] == 1:
        return np.asarray(matrix @ V[:, 0], dtype=np.float64)[:, None]
    return np.ascontiguousarray(matrix @ V, dtype=np.float64)


class CentredRows:
    """A (n, d) and Z (n, t) of rows of positive weight; X float64 or float32, dense or CSR.

    Without intercept μ and ȳ are zero. Nothing of X is copied but blocks.
    """

    def __init__(self, X: Any, Y: np.ndarray, weight: np.ndarray | None, intercept: bool) -> None:
        self.X = X
        self.transposed = X.T  # a view, made once
        self.n, self.d = X.shape
        self.is_sparse = sp.issparse(X)
        self.intercept = intercept
        self.weight = np.ones(self.n) if weight is None else weight
        self.is_weighted = weight is not None
        self.root = np.sqrt(self.weight)
        self.total = float(self.weight.sum())
        if intercept:
            self.mean = np.asarray(X.T @ self.weight, dtype=np.float64).ravel() / self.total
            self.target_mean = (self.weight @ Y) / self.total
            if not self.is_sparse:  # a second pass removes the rounding error of the first
                self.mean += self._mean_left()
            self.target_mean += (self.weight @ (Y - self.target_mean)) / self.total
        else:
            self.mean, self.target_mean = np.zeros(self.d), np.zeros(Y.shape[1])
        self.Z = self.root[:, None] * (Y - self.target_mean)

    def _mean_left(self) -> np.ndarray:
        left = np.zeros(self.d)
        for rows in self.row_blocks():
            left += self.weight[rows] @ (self.X[rows] - self.mean)
        return left / self.total

    @property
    def q(self) -> np.ndarray:
        """The unit vector of the intercept, zero without one."""
        return self.root / np.sqrt(self.total) if self.intercept else np.zeros(self.n)

    @property
    def entries(self) -> int:
        """Stored numbers of X."""
        return int(self.X.nnz) if self.is_sparse else self.n * self.d

    # -- products with vectors --------------------------------------------------------------------

    def outputs(self, V: np.ndarray) -> np.ndarray:
        """(X − 1μᵀ) V, for V (d, t)."""
        out = _product(self.X, V)
        if self.intercept:
            out -= self.mean @ V
        return out

    def apply(self, V: np.ndarray) -> np.ndarray:
        """A V, for V (d, t)."""
        out = self.outputs(V)
        if self.is_weighted:
            out *= self.root[:, None]
        return out

    def adjoint(self, U: np.ndarray) -> np.ndarray:
        """Aᵀ U, for U (n, t)."""
        scaled = self.root[:, None] * U if self.is_weighted else U
        out = _product(self.transposed, scaled)
        if self.intercept:
            out -= np.outer(self.mean, scaled.sum(axis=0))
        return out

    def normal_products(self, ridge: float) -> NormalProducts:
        """(AᵀA + ridge I) P and (A Aᵀ + ridge I) P in single calls; sparse X only."""
        root = self.root if self.is_weighted else None
        return NormalProducts(self.X, root, self.mean if self.intercept else None, ridge)

    def feature_squares(self) -> np.ndarray:
        """The diagonal of AᵀA."""
        if not self.is_sparse:
            return sum(np.einsum("ij,ij->j", A, A) for _, A in self.blocks())
        squares = self.X.astype(np.float64, copy=False).power(2)
        return np.maximum(np.asarray(squares.T @ self.weight) - self.total * self.mean**2, 0.0)

    def row_squares(self) -> np.ndarray:
        """The diagonal of AAᵀ."""
        if not self.is_sparse:
            return np.concatenate([np.einsum("ij,ij->i", A, A) for _, A in self.blocks()])
        squares = np.asarray(self.X.astype(np.float64, copy=False).power(2).sum(axis=1)).ravel()
        if not self.intercept:
            return self.weight * squares
        cross = np.asarray(self.X @ self.mean).ravel()
        return self.weight * np.maximum(squares - 2.0 * cross + self.mean @ self.mean, 0.0)

    # -- products of matrices ---------------------------------------------------------------------

    def row_blocks(self) -> Iterator[slice]:
        step = max(BLOCK_BYTES // (8 * max(self.d, 1)), 16)
        for first in range(0, self.n, step):
            yield slice(first, min(first + step, self.n))

    def written_out(self, rows: slice) -> np.ndarray:
        """A of some rows, dense, C-ordered float64, a copy."""
        block = self.X[rows].toarray() if self.is_sparse else self.X[rows]
        block = np.array(block, dtype=np.float64, order="C", copy=True)
        if self.intercept:
            block -= self.mean
        if self.is_weighted:
            block *= self.root[rows, None]
        return block

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for rows in self.row_blocks():
            yield rows, self.written_out(rows)

    def feature_steps(self) -> float:
        """Dense multiply-adds that AᵀA takes time for, in the cheaper of its two ways."""
        return min(self.n * self.d**2 / 2.0, self._sparse_feature_steps())

    def row_steps(self) -> float:
        """The same for AAᵀ."""
        return min(self.n**2 * self.d / 2.0, self._sparse_row_steps())

    def _sparse_feature_steps(self) -> float:
        if not self.is_sparse:
            return np.inf
        return SPARSE_STEP * float(np.sum(np.diff(self.X.indptr).astype(np.float64) ** 2))

    def _sparse_row_steps(self) -> float:
        if not self.is_sparse:
            return np.inf
        counts = np.bincount(self.X.indices, minlength=self.d).astype(np.float64)
        return SPARSE_STEP * float(np.sum(counts**2))

    def feature_matrix(self) -> np.ndarray:
        """AᵀA (d, d), Fortran-ordered; only the lower triangle is meant."""
        if self._sparse_feature_steps() < self.n * self.d**2 / 2.0:
            scaled = self.X.multiply(self.weight[:, None]).tocsr() if self.is_weighted else self.X
            product = (self.X.T @ scaled).astype(np.float64).toarray(order="F")
            if self.intercept:
                product -= self.total * np.outer(self.mean, self.mean)
            return product
        product = np.zeros((self.d, self.d), order="F")
        for _, block in self.blocks():
            product = blas.dsyrk(1.0, block.T, beta=1.0, c=product, lower=1, overwrite_c=1)
        return product

    def row_matrix(self) -> np.ndarray:
        """AAᵀ (n, n), Fortran-ordered; only the lower triangle is meant."""
        if self._sparse_row_steps() < self.n**2 * self.d / 2.0:
            product = (self.X @ self.X.T).astype(np.float64).toarray(order="F")
            if self.intercept:
                cross = np.asarray(self.X @ self.mean).ravel()
                product -= cross[:, None]
                product -= cross - self.mean @ self.mean
            if self.is_weighted:
                product *= self.root[:, None]
                product *= self.root
            return product
        product = np.zeros((self.n, self.n), order="F")
        columns = self.X.tocsc() if self.is_sparse else self.X
        step = max(BLOCK_BYTES // (8 * self.n), 16)
        for first in range(0, self.d, step):
            part = slice(first, min(first + step, self.d))
            block = columns[:, part].toarray() if self.is_sparse else columns[:, part]
            block = np.array(block, dtype=np.float64, order="F", copy=True)
            if self.intercept:
                block -= self.mean[part]
            if self.is_weighted:
                block *= self.root[:, None]
            product = blas.dsyrk(1.0, block, beta=1.0, c=product, lower=1, overwrite_c=1)
        return product
