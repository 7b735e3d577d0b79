"""The methods of linear regularised least squares (kfu.least_squares.linear_rls), and their cost.

Each gets the weighted, centred rows A and targets Z and returns v = (AᵀA + ridge I)⁻¹AᵀZ. In the
dual the intercept's direction q is lifted, AAᵀ + ridge I + τqqᵀ, which changes nothing in u ⟂ q and
keeps 1 − h free of cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from kfu.errors import DataError, SettingsError
from kfu.least_squares.centred_rows import CentredRows
from kfu.least_squares.conjugate_gradient import conjugate_gradient
from kfu.least_squares.linear_spectrum import LinearSpectrum
from kfu.least_squares.memory import available_bytes, require_memory

__all__ = ["METHODS", "BelowRoundingError", "Found", "Wish", "predicted_steps"]

SPARSE_ENTRY = 8.0  # time of a stored number in a product with a vector, in dense multiply-adds
EXPECTED_ITERATIONS = 40.0  # of conjugate gradients on texts, tolerance 1e-8
SPARSE_LEVERAGE = 8.0  # the same of an entry in a product with the inverse, per column
REMEDY = "choose method 'cg', which needs no matrix"


@dataclass
class Found:
    """What a method returns: v (d, t), z − A v if it has it at hand, 1 − h if asked for."""

    v: np.ndarray
    residual: np.ndarray | None = None
    unleveraged: np.ndarray | None = None
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    ridge: float
    loo: bool
    tolerance: float
    max_iterations: int | None
    progress: Callable[[int, float], bool | None] | None


class BelowRoundingError(Exception):
    """The ridge is lost beside the matrix: the Cholesky factorisation failed."""


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """The lower Cholesky factor, in place, and an estimate of the condition number."""
    norm = float(np.sqrt(np.sum(np.diag(matrix) ** 2)))
    factor, failed = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise BelowRoundingError
    reciprocal, _ = lapack.dpocon(factor, norm, uplo="L")
    return factor, 1.0 / float(reciprocal) if reciprocal > 0 else math.inf


def _primal(rows: CentredRows, wish: Wish) -> Found:
    require_memory(8.0 * rows.d**2, f"the normal equations of {rows.d} features", REMEDY)
    matrix = rows.feature_matrix()
    np.fill_diagonal(matrix, matrix.diagonal() + wish.ridge)
    factor, condition = _factor(matrix)
    right = rows.adjoint(rows.Z)
    v, _ = lapack.dpotrs(factor, right, lower=1)
    v = np.ascontiguousarray(v)
    found = Found(v, info={"condition": condition, "memory_bytes": 8 * rows.d**2})
    if wish.loo:
        found.unleveraged = 1.0 - rows.q**2 - _leverages(rows, factor)
    return found


def _leverages(rows: CentredRows, factor: np.ndarray) -> np.ndarray:
    """a_iᵀ(LLᵀ)⁻¹a_i: by triangular solves of rows written out, or from the inverse where rows are
    so sparse that this is cheaper. The factor may be overwritten."""
    out = np.empty(rows.n)
    if rows.is_sparse and SPARSE_LEVERAGE * rows.entries + rows.d**2 < rows.n * rows.d / 2.0:
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.ascontiguousarray(np.tril(inverse) + np.tril(inverse, -1).T)
        at_mean = inverse @ rows.mean
        for part in rows.row_blocks():
            block = rows.X[part]
            squares = np.asarray(block.multiply(block @ inverse).sum(axis=1)).ravel()
            squares += rows.mean @ at_mean - 2.0 * np.asarray(block @ at_mean).ravel()
            out[part] = rows.weight[part] * np.maximum(squares, 0.0)
        return out
    for part, block in rows.blocks():
        half = solve_triangular(factor, block.T, lower=True, overwrite_b=True, check_finite=False)
        out[part] = np.einsum("ij,ij->j", half, half)
    return out


def _dual(rows: CentredRows, wish: Wish) -> Found:
    require_memory(8.0 * rows.n**2, f"the dual equations of {rows.n} rows", REMEDY)
    matrix = rows.row_matrix()
    lift = float(np.trace(matrix)) / rows.n if rows.intercept else 0.0
    if lift > 0.0:
        matrix += np.outer(lift * rows.q, rows.q)
    np.fill_diagonal(matrix, matrix.diagonal() + wish.ridge)
    factor, condition = _factor(matrix)
    u, _ = lapack.dpotrs(factor, rows.Z, lower=1)
    u = np.ascontiguousarray(u)
    u -= np.outer(rows.q, rows.q @ u)
    info = {"condition": condition, "memory_bytes": 8 * rows.n**2}
    found = Found(rows.adjoint(u), wish.ridge * u, info=info)
    if wish.loo:
        inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        diagonal = np.empty(rows.n)
        for first in range(0, rows.n, 64):
            part = slice(first, first + 64)
            lower = np.tril(inverse[first:, part])
            diagonal[part] = np.einsum("ij,ij->j", lower, lower)
        found.unleveraged = wish.ridge * (diagonal - rows.q**2 / (wish.ridge + lift))
    return found


def _spectral(method: str) -> Callable[[CentredRows, Wish], Found]:
    def solve(rows: CentredRows, wish: Wish) -> Found:
        spectrum = LinearSpectrum(rows, method)
        v, residual = spectrum.solve(wish.ridge)
        largest = float(spectrum.sigma.max(initial=0.0))
        found = Found(v, residual, info={"condition": (largest + wish.ridge) / wish.ridge})
        if wish.loo:
            found.unleveraged = spectrum.unleveraged(wish.ridge)
        return found

    return solve


def _normal_product(
    rows: CentredRows, ridge: float, in_features: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """P → (AᵀA + ridge I) P, or (A Aᵀ + ridge I) P: in one call where rows are sparse."""
    if rows.is_sparse:
        products = rows.normal_products(ridge)
        return products.of_features if in_features else products.of_rows
    if in_features:
        return lambda P: rows.adjoint(rows.apply(P)) + ridge * P
    return lambda P: rows.apply(rows.adjoint(P)) + ridge * P


def _cg(rows: CentredRows, wish: Wish) -> Found:
    if wish.loo:
        raise SettingsError(
            "conjugate gradients yield no leave-one-out residuals; choose method primal, dual, eig "
            "or svd, or cross-validate"
        )
    in_features = rows.d <= rows.n
    ridge = wish.ridge
    squares = rows.feature_squares() if in_features else rows.row_squares()
    inverse = (1.0 / (squares + ridge))[:, None]

    result = conjugate_gradient(
        _normal_product(rows, ridge, in_features),
        rows.adjoint(rows.Z) if in_features else rows.Z,
        precondition=lambda R: inverse * R,
        tolerance=wish.tolerance,
        max_iterations=wish.max_iterations,
        progress=wish.progress,
    )
    if "overflow" in result.status:
        raise DataError("data", None, "products with X overflow", "scale the features")
    info = {**result.info(), "equations": "features" if in_features else "rows"}
    if in_features:
        return Found(result.solution, info=info)
    return Found(rows.adjoint(result.solution), info=info)


METHODS: dict[str, Callable[[CentredRows, Wish], Found]] = {
    "primal": _primal,
    "dual": _dual,
    "eig": _spectral("eig"),
    "svd": _spectral("svd"),
    "cg": _cg,
}


def predicted_steps(rows: CentredRows, loo: bool) -> dict[str, float]:
    """The time of the methods `auto` chooses from, in dense multiply-adds; without those that do
    not fit into memory. Conjugate gradients are taken to need EXPECTED_ITERATIONS."""
    n, d, t = rows.n, rows.d, rows.Z.shape[1]
    leverage = n * d**2 / 2.0
    if rows.is_sparse:
        leverage = min(leverage, SPARSE_LEVERAGE * rows.entries * d + d**3)
    steps = {
        "primal": rows.feature_steps() + d**3 / 6.0 + d**2 * t + (leverage if loo else 0.0),
        "dual": rows.row_steps() + n**3 / 6.0 + n**2 * t + (n**3 / 6.0 if loo else 0.0),
    }
    entry = SPARSE_ENTRY if rows.is_sparse else 1.0
    if not loo:
        steps["cg"] = 2.0 * entry * rows.entries * t * EXPECTED_ITERATIONS
    available = available_bytes()
    for name, size in (("primal", d), ("dual", n)):
        if not loo and available is not None and 8.0 * size**2 > available:
            del steps[name]
    return steps
