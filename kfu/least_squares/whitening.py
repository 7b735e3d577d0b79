"""The centres of a low-rank machine: their kernel values, and the features that these define.

With m centres z_1..z_m out of the rows, K is replaced by K̃ = K_ℓm K_mm⁻¹ K_mℓ. Factoring
K_mm = L Lᵀ gives every point x the m features

    φ(x) = L⁻¹ k_m(x),   k_m(x) = (K(z_1, x), ..., K(z_m, x)),   K̃(x, x') = φ(x)·φ(x'),

under which a low-rank kernel machine is a linear machine: f(x) = u·φ(x) = Σ c_j K(z_j, x) with
c = L⁻ᵀu and ‖f‖² = ‖u‖² = cᵀK_mm c. (Rifkin 2002, section 3.7; Fine and Scheinberg 2001.)

The factorisation is Cholesky's with complete pivoting (LAPACK pstrf) and so reveals the rank:
it ends where no further centre has a pivot K(z, z) − ‖φ(z)‖² above RANK_TOLERANCE · max K(z, z).
Centres left out are repeated or nearly dependent ones; their coefficients are 0. The tolerance for
float32 values is the square of the loss a feature may suffer: kernel values wrong by δ put errors
δ/√pivot into features of size √pivot. No pivot is below the smallest eigenvalue, so that a K_mm
whose condition shows that eigenvalue to be well above the tolerance keeps every centre in any
order: it is factored without pivoting (potrf), in less than half the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.solvers.blas_threads import blas_threads

RANK_TOLERANCE = {"float64": 1e-12, "float32": 1e-6}  # of the largest K(z, z)
WELL_ABOVE = 1e3  # times the tolerance: a reciprocal condition that needs no pivoting
MOST_NEGATIVE = 1e-6  # a pivot below −MOST_NEGATIVE · max K(z, z) is not rounding
BLOCK_VALUES = 2**24  # kernel values held at a time
STRIP = 256  # columns of a matrix that are mended at a time
DTYPES = {"float32": np.float32, "float64": np.float64}


def row_blocks(n: int, m: int, size: int = 0) -> Iterator[slice]:
    """Slices of 0..n of `size` rows each; 0: as many as make BLOCK_VALUES values of m columns."""
    step = size if size > 0 else min(max(BLOCK_VALUES // max(m, 1), 64), 8192)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def centres_of(X: Any, rows: np.ndarray, kernel: KernelSpec) -> Any:
    """The centres as `Whitening` wants them: rows of X, or K_mm where X is a kernel matrix."""
    return X[rows][:, rows] if kernel.is_precomputed else X[rows]


def points_of(X: Any, block: Any, rows: np.ndarray, kernel: KernelSpec) -> Any:
    """A block of points: rows of X, or their values with the centres where X is a kernel matrix."""
    return X[block][:, rows] if kernel.is_precomputed else X[block]


def diagonal_of(X: Any, block: Any, kernel: KernelSpec, threads: int = 0) -> np.ndarray:
    """K(x, x) for a slice or an array of rows of X, float64; X may be a kernel matrix."""
    if kernel.is_precomputed:
        diagonal = X.diagonal() if sp.issparse(X) else np.diagonal(X)
        return np.asarray(diagonal, dtype=np.float64)[block]
    return np.asarray(Gram(X[block], kernel, "float64", threads).diagonal())


class Whitening:
    """The feature map φ of the centres: rank(K_mm) features. `factor` is L in its lower triangle.

    `centres` is an m × d matrix (dense or CSR), or the square K_mm for a precomputed kernel, whose
    points are then rows of values with the m centres. Values K(z, x) have the given precision;
    K_mm is float64 always.
    """

    def __init__(
        self, centres: Any, kernel: KernelSpec, precision: str = "float64", threads: int = 0
    ) -> None:
        if precision not in DTYPES:
            raise SettingsError(f"precision is {precision!r}; known: {', '.join(DTYPES)}")
        self.m = int(centres.shape[0])
        if self.m == 0:
            raise SettingsError("a low-rank machine needs at least one centre")
        self.kernel, self.precision, self.threads = kernel, precision, threads
        self.centres = centres
        K = np.asarray(Gram(centres, kernel, "float64", threads).block(None, None))
        if not np.isfinite(K).all():
            found = "kernel values of the centres are not finite"
            raise DataError("data", None, found, "mend or scale the features")
        largest = float(K.diagonal().max())
        diagonal, norm = K.diagonal().copy(), float(lapack.dlange("1", K.T))
        self.tolerance = RANK_TOLERANCE[precision] * max(largest, 0.0)
        self.diagonal: np.ndarray | None = None  # of K_mm, if the upper half of `factor` holds it
        with blas_threads(self.m, threads):
            if not self._factored(K, diagonal, norm):
                self._factored_by_pivots(K, diagonal, norm)
        self._factor32: np.ndarray | None = None
        self._gram: Any = None

    def _factored(self, K: np.ndarray, diagonal: np.ndarray, norm: float) -> bool:
        """Without pivoting; False, K being as it was, where the rank is in doubt."""
        factor, failed = lapack.dpotrf(K.T, lower=1, clean=0, overwrite_a=1)
        reciprocal = 0.0 if failed else float(lapack.dpocon(factor, norm, uplo="L")[0])
        if reciprocal < WELL_ABOVE * RANK_TOLERANCE[self.precision]:
            for start in range(0, self.m, STRIP):  # from the half that LAPACK has left alone
                part = slice(start, min(start + STRIP, self.m))
                K[part, part.stop :] = K[part.stop :, part].T
                K[part, part] = np.tril(K[part, part], -1) + np.tril(K[part, part], -1).T
            K[np.diag_indices(self.m)] = diagonal
            return False
        self.kept, self.factor = np.arange(self.m), factor
        self.diagonal = diagonal
        self.reciprocal_condition = reciprocal
        return True

    def _factored_by_pivots(self, K: np.ndarray, diagonal: np.ndarray, norm: float) -> None:
        largest = float(diagonal.max())
        factor, order, rank, _ = lapack.dpstrf(K.T, tol=self.tolerance, lower=1, overwrite_a=1)
        order = order.astype(np.int64) - 1
        rank = int(rank) if largest > 0.0 else 0
        rest = diagonal[order[rank:]] - np.square(np.tril(factor)[rank:, :rank]).sum(axis=1)
        self._check(rank, rest, largest)
        self.kept = order[:rank]
        self.factor = np.asfortranarray(np.tril(factor[:rank, :rank]))
        self.reciprocal_condition = float(lapack.dpocon(self.factor, norm, uplo="L")[0])

    def _check(self, rank: int, rest: np.ndarray, largest: float) -> None:
        smallest = float(rest.min()) if len(rest) else 0.0
        if smallest < -MOST_NEGATIVE * max(largest, 1e-300):
            raise DataError(
                "data",
                None,
                f"kernel {self.kernel.describe()} is not positive semidefinite on the centres "
                f"(a pivot of {smallest:.3g} beside a largest K(z, z) of {largest:.3g})",
                "choose another kernel, or other parameters of it",
            )
        if rank == 0:
            raise DataError(
                "data", None, "K(z, z) is 0 for every centre", "choose other centres or features"
            )

    @property
    def rank(self) -> int:
        return len(self.kept)

    @property
    def gram(self) -> Any:
        """Kernel values with the kept centres, in the order of the features."""
        if self._gram is None:
            kept = centres_of(self.centres, self.kept, self.kernel)
            self._gram = Gram(kept, self.kernel, self.precision, self.threads)
        return self._gram

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_gram": None, "_factor32": None}

    def values(self, X: Any, room: np.ndarray | None = None) -> np.ndarray:
        """K(x, z) for the rows x of X and the kept centres z: rows × rank, in Fortran order.

        In the memory of `room` (one-dimensional) where that is large enough.
        """
        if self.kernel.is_precomputed:
            X = X[:, self.kept]
        return np.asarray(self.gram.cross(X, room)).T

    def features(self, X: Any) -> np.ndarray:
        """φ(x) for the rows x of X: rows × rank, in Fortran order and the precision of values."""
        return self.whiten(self.values(X))

    def whiten(self, values: np.ndarray) -> np.ndarray:
        """Φ = K_bm L⁻ᵀ in place of `values`."""
        with blas_threads(self.rank, self.threads):
            if values.dtype == np.float32:
                if self._factor32 is None:
                    self._factor32 = np.asfortranarray(self.factor, dtype=np.float32)
                solve, factor = blas.strsm, self._factor32
            else:
                solve, factor = blas.dtrsm, self.factor
            done = solve(1.0, factor, values, side=1, lower=1, trans_a=1, overwrite_b=1)
        return np.asarray(done)

    def coefficients(self, u: np.ndarray) -> np.ndarray:
        """c with Σ c_j K(z_j, x) = u·φ(x): centres × outputs, 0 for centres left out."""
        with blas_threads(self.rank, self.threads):
            kept = blas.dtrsm(1.0, self.factor, np.asfortranarray(u), lower=1, trans_a=1)
        return self.spread(kept)

    def centre_values(self) -> np.ndarray:
        """K_mm of the kept centres, float64, in the order of the features: a new matrix, of which
        the lower triangle is meant."""
        if self.diagonal is None:
            kept = centres_of(self.centres, self.kept, self.kernel)
            return np.asarray(Gram(kept, self.kernel, "float64", self.threads).block(None, None)).T
        values = np.empty_like(self.factor)  # the half that LAPACK has left alone
        for start in range(0, self.m, STRIP):
            part = slice(start, min(start + STRIP, self.m))
            values[start:, part] = self.factor[part, start:].T
        values[np.diag_indices(self.m)] = self.diagonal
        return values

    def centre_product(self, coef: np.ndarray) -> np.ndarray:
        """K_mm c = L Lᵀc for coefficients of the kept centres."""
        half = blas.dtrmm(1.0, self.factor, coef, lower=1, trans_a=1)
        return np.asarray(blas.dtrmm(1.0, self.factor, half, lower=1, overwrite_b=1))

    def squared_norms(self, coef: np.ndarray) -> np.ndarray:
        """‖f‖² = ‖Lᵀc‖² of each output, for coefficients of the kept centres."""
        half = blas.dtrmm(1.0, self.factor, coef, lower=1, trans_a=1)
        return np.asarray(np.square(half).sum(axis=0))

    def spread(self, kept: np.ndarray) -> np.ndarray:
        """Coefficients of the kept centres as those of all: 0 for centres left out."""
        coef = np.zeros((self.m, kept.shape[1]))
        coef[self.kept] = kept
        return coef

    def is_same(self, other: Whitening) -> bool:
        """Whether the features are the same functions (centres, kernel and precision)."""
        if self is other:
            return True
        if self.kernel != other.kernel or self.precision != other.precision or self.m != other.m:
            return False
        a, b = self.centres, other.centres
        if sp.issparse(a) != sp.issparse(b) or a.shape != b.shape:
            return False
        are_equal = (a != b).nnz == 0 if sp.issparse(a) else bool(np.array_equal(a, b))
        return are_equal and bool(np.array_equal(self.kept, other.kept))
