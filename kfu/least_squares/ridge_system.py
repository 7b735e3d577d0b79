"""The linear ridge problem that is left once the features are known, for one ridge or many.

    min_u,b  Σ_i w_i ‖y_i − Φ_i u − b‖² + ridge ‖u‖²
    (B + ridge I) u = G,   B = ΦᵀWΦ,  G = ΦᵀWY          (no bias)

With a free bias the sums s = ΦᵀW1, σ = Σw, q = YᵀW1 make it the same problem about the means:
B − ssᵀ/σ and G − sqᵀ/σ, b = (q − uᵀs)/σ.

Leaving row i out, the centres kept: with the leverage h_i = w_i φ_iᵀ(B + ridge I)⁻¹φ_i (bias: φ_i
less its mean, plus w_i/σ),

    f^(−i)(x_i) = y_i − (y_i − f(x_i)) / (1 − h_i)          (Sherman and Morrison).

A few ridges get a Cholesky factorisation each (r³/3); more get one eigendecomposition (about 9 r³),
which also steps in where rounding leaves B + ridge I not positive definite: eigenvalues below 0 are
then taken as 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from kfu.errors import DataError
from kfu.solvers.blas_threads import blas_threads

MOST_CHOLESKY = 6  # ridges that are factored one by one; each factor is r² numbers


@dataclass
class Sums:
    """What the rows leave behind. B: lower triangle alone is used."""

    B: np.ndarray  # (r, r) Fortran order
    G: np.ndarray  # (r, t)
    s: np.ndarray  # (r,)
    q: np.ndarray  # (t,)
    total: float  # Σw


@dataclass
class LeftOut:
    """What leaving out each row of a block gives, for every ridge.

    outputs: f^(−i)(x_i), (ridges, rows, t); fitted: f(x_i), the same shape; leverages: (ridges,
    rows); squares: ‖φ(x_i)‖² = K̃(x_i, x_i).
    """

    outputs: np.ndarray
    fitted: np.ndarray
    leverages: np.ndarray
    squares: np.ndarray


class RidgeSystem:
    """(B + ridge I) u = G for each of the ridges; see the head of the file."""

    def __init__(self, sums: Sums, ridges: list[float], *, bias: bool, threads: int = 0) -> None:
        self.ridges, self.bias, self.threads = ridges, bias, threads
        self.mean = np.zeros_like(sums.s)
        self.total = sums.total
        B, self.G, self.q, self.s = sums.B, sums.G, sums.q, sums.s
        if bias:
            self.mean = sums.s / sums.total
            self.G = sums.G - np.outer(self.mean, sums.q)
        self.clipped = 0
        self.norms: list[float] = []
        self.factors: list[np.ndarray] | None = None
        with blas_threads(len(B), threads):
            centred = blas.dsyr(-sums.total, self.mean, a=B, lower=1) if bias else B
            if len(ridges) <= MOST_CHOLESKY:
                self.factors = self._cholesky(centred)
            if self.factors is None:
                self.values, self.vectors = scipy.linalg.eigh(centred, lower=True)
                self.clipped = int(np.count_nonzero(self.values < 0.0))
                self.values = np.maximum(self.values, 0.0)
            self.u = [self._solved(k) for k in range(len(ridges))]

    @property
    def method(self) -> str:
        return "eigen" if self.factors is None else "cholesky"

    def _cholesky(self, B: np.ndarray) -> list[np.ndarray] | None:
        factors = []
        lower = np.abs(np.tril(B, -1))
        sums = lower.sum(axis=0) + lower.sum(axis=1)
        self.norms = [float((sums + B.diagonal() + ridge).max()) for ridge in self.ridges]
        del lower
        for ridge in self.ridges:
            shifted = B.copy(order="F")
            shifted[np.diag_indices_from(shifted)] += ridge
            factor, failed = lapack.dpotrf(shifted, lower=1, overwrite_a=1)
            if failed:
                return None
            factors.append(factor)
        return factors

    def _solved(self, k: int) -> np.ndarray:
        if self.factors is not None:
            u = scipy.linalg.cho_solve((self.factors[k], True), self.G, check_finite=False)
        else:
            scale = self.values + self.ridges[k]
            u = self.vectors @ ((self.vectors.T @ self.G) / scale[:, None])
        if not np.isfinite(u).all():
            found = "the solution of the normal equations is not finite"
            raise DataError("data", None, found, "raise the ridge or scale the targets")
        return u

    def offset(self, k: int) -> np.ndarray:
        """The bias for each output; 0 without."""
        if not self.bias:
            return np.zeros(self.G.shape[1])
        return (self.q - self.u[k].T @ self.s) / self.total

    def reciprocal_condition(self, k: int) -> float:
        """Of B + ridge I, in the 1-norm as estimated by LAPACK, or exactly (eigenvalues)."""
        if self.factors is None:
            scale = self.values + self.ridges[k]
            return float(scale[0] / scale[-1])
        return float(lapack.dpocon(self.factors[k], self.norms[k], uplo="L")[0])

    def leverages(self, features: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """h (ridges, rows) of the rows with the given features."""
        centred = np.asfortranarray(features.T - self.mean[:, None])
        h = np.empty((len(self.ridges), features.shape[0]))
        with blas_threads(len(self.mean), self.threads):
            if self.factors is None:
                squares = np.square(self.vectors.T @ centred)
                for k, ridge in enumerate(self.ridges):
                    h[k] = (1.0 / (self.values + ridge)) @ squares
            else:
                for k, factor in enumerate(self.factors):
                    h[k] = np.square(blas.dtrsm(1.0, factor, centred, lower=1)).sum(axis=0)
        if self.bias:
            h += 1.0 / self.total
        return h if weight is None else h * weight

    def outputs(self, features: np.ndarray, k: int) -> np.ndarray:
        return np.asarray(features @ self.u[k] + self.offset(k))

    def left_out(self, features: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> LeftOut:
        """For rows that were among those added up."""
        features = features.astype(np.float64, copy=False)
        h = self.leverages(features, weight)
        slack = np.maximum(1.0 - h, np.finfo(float).eps)
        fitted = np.stack([self.outputs(features, k) for k in range(len(self.ridges))])
        left = Y - (Y - fitted) / slack[:, :, None]
        return LeftOut(left, fitted, h, np.einsum("ij,ij->i", features, features))
