"""The normal equations of few centres as they stand, for one ridge and no leave-one-out outputs.

    (A + ridge K_mm) c = b,   A = K_mℓ W K_ℓm,  b = K_mℓ W Y          (no bias)

With a free bias the sums s = K_mℓ W 1, σ = Σw, q = YᵀW1 make it the same problem about the means:
A − ssᵀ/σ and b − sqᵀ/σ, bias = (q − cᵀs)/σ. ‖f‖² = cᵀK_mm c = ‖Lᵀc‖² with K_mm = LLᵀ. The factor
RRᵀ of the matrix also gives the trace of K̃ over the rows, tr(K_mm⁻¹A) = ‖L⁻¹R‖² − ridge m (and
‖L⁻¹s‖²/σ with a bias), where L⁻¹R is a triangle: m³/3.

One factorisation (m³/3) takes the place of whitening A by L (2m³) and factoring the result. Nothing
is lost by it: A was rounded when it was added up, by ε‖A‖, and whitening only moves that error
about. A step of refinement follows, and the residual that is left is told. Where rounding has made
the matrix indefinite there is no factor; the whitened system (kfu.least_squares.ridge_system) then
takes over, whose eigenvalues can be cut off at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from kfu._triangles import solved_square
from kfu.least_squares.ridge_system import Sums
from kfu.least_squares.whitening import Whitening
from kfu.solvers.blas_threads import blas_threads


@dataclass
class PlainSolution:
    """c (r, t) of the kept centres, the bias of each output, ‖f‖² and Σ c b of each, and how exact.

    trace: Σ w K̃(x, x) over the rows. residual: the largest ‖b − (A + ridge K_mm)c‖ / ‖b‖ of the
    outputs.
    """

    coef: np.ndarray
    offset: np.ndarray
    norm: np.ndarray
    product: np.ndarray
    trace: float
    residual: float
    reciprocal_condition: float


def solve_plain(
    sums: Sums, whitening: Whitening, ridge: float, *, bias: bool, threads: int = 0
) -> PlainSolution | None:
    """The solution for sums of kernel values (not of features), or None: not positive definite."""
    mean = sums.s / sums.total if bias else np.zeros_like(sums.s)
    right = sums.G - np.outer(mean, sums.q)
    with blas_threads(whitening.rank, threads):
        matrix = whitening.centre_values()
        matrix *= ridge
        matrix += sums.B
        if bias:
            matrix = blas.dsyr(-sums.total, mean, a=matrix, lower=1, overwrite_a=1)
        norm = _lower_norm(matrix)
        factor, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            return None

        def left(coef: np.ndarray) -> np.ndarray:
            """b − (A + ridge K_mm) c."""
            found = right - blas.dsymm(1.0, sums.B, coef, lower=1)
            found -= ridge * whitening.centre_product(coef)
            if bias:
                found += np.outer(sums.total * mean, mean @ coef)
            return np.asarray(found)

        coef, _ = lapack.dpotrs(factor, np.asfortranarray(right), lower=1)
        step, _ = lapack.dpotrs(factor, np.asfortranarray(left(coef)), lower=1)
        coef += step
        scale = np.linalg.norm(right, axis=0)
        residual = np.linalg.norm(left(coef), axis=0) / np.where(scale > 0.0, scale, 1.0)
        reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
        offset = (sums.q - coef.T @ sums.s) / sums.total if bias else np.zeros(right.shape[1])
        return PlainSolution(
            coef,
            offset,
            whitening.squared_norms(coef),
            (coef * right).sum(axis=0),
            _trace(whitening.factor, factor, ridge, np.sqrt(sums.total) * mean),
            float(residual.max(initial=0.0)),
            float(reciprocal),
        )


def _trace(L: np.ndarray, R: np.ndarray, ridge: float, taken: np.ndarray) -> float:
    """‖L⁻¹R‖² − ridge m + ‖L⁻¹taken‖²."""
    half = blas.dtrsv(L, taken, lower=1)
    return float(half @ half) + solved_square(L, R) - ridge * len(L)


def _lower_norm(matrix: np.ndarray, strip: int = 256) -> float:
    """The 1-norm of a symmetric matrix of which the lower triangle is given."""
    m = len(matrix)
    sums = np.zeros(m)
    for start in range(0, m, strip):
        part = np.abs(np.tril(matrix[start:, start : start + strip]))
        sums[start : start + strip] += part.sum(axis=0)
        diagonal = np.arange(part.shape[1])
        part[diagonal, diagonal] = 0.0
        sums[start:] += part.sum(axis=1)
    return float(sums.max(initial=0.0))
