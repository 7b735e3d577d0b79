"""Linear regularised least squares, dense or sparse, with or without an intercept.

    min Σ_i w_i (x_i·v + b − y_i)² + ridge ‖v‖²      (ridge = λℓ; b is not penalised)

In terms of the weighted, centred rows A and targets Z (kfu.least_squares.centred_rows):

`primal`   (AᵀA + ridge I) v = AᵀZ, Cholesky of d × d                      n d²/2 + d³/3
`dual`     (AAᵀ + ridge I) u = Z, v = Aᵀu, Cholesky of n × n                n² d/2 + n³/3
`eig`      the spectrum of the smaller of the two: every ridge at once      ~ 10 times as much
`svd`      that of A: for ridges near the rounding errors of ‖A‖²           more again
`cg`       conjugate gradients on products with A and Aᵀ, all targets       4 nnz(X) t per iteration
           together, diagonal preconditioner; the smaller side's equations

(Rifkin 2002, section 3.3.3.) `auto` takes the cheapest by these counts. An intercept never
makes sparse rows dense. The methods are in kfu.least_squares.linear_methods.

Expansion over the rows: c_i = w_i (y_i − f_i)/ridge, with v = Σ c_i x_i, and Σ c_i = 0 where there
is an intercept. Exact leave-one-out residuals, the ridge held fixed: (y_i − f_i)/(1 − h_i), from
the leverages h_i = [intercept] w_i/Σw + a_iᵀ(AᵀA + ridge I)⁻¹a_i; a row of weight 0 has h = 0.
Conjugate gradients yield no leverages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu.data import check_weights, check_X
from kfu.errors import DataError, SettingsError
from kfu.least_squares.centred_rows import CentredRows
from kfu.least_squares.linear_methods import (
    METHODS,
    BelowRoundingError,
    Found,
    Wish,
    predicted_steps,
)
from kfu.least_squares.linear_spectrum import LinearSpectrum
from kfu.least_squares.low_rank_fit import checked_ridge, checked_targets
from kfu.solvers.blas_threads import blas_threads

__all__ = ["METHODS", "LinearSolution", "decompose_linear", "solve_linear_rls"]

CANCELLED = 1e-6  # 1 − h of one row below which the leverages of the primal are not trusted


@dataclass
class LinearSolution:
    """f(x) = weights @ x + bias.

    weights (t, d), bias (t,), fitted (n, t): outputs at the training rows. loo_residuals (n, t):
    y − (output of the machine trained without the row), NaN where no row would be left to fix the
    intercept; leverages (n,); dual_coef (n, t): c of the expansion Σ c_i x_i. The last three are
    None where not asked for. `info` holds plain figures.
    """

    weights: np.ndarray
    bias: np.ndarray
    fitted: np.ndarray
    loo_residuals: np.ndarray | None = None
    leverages: np.ndarray | None = None
    dual_coef: np.ndarray | None = None
    info: dict[str, Any] = field(default_factory=dict)


def solve_linear_rls(
    X: Any,
    Y: Any,
    ridge: float,
    *,
    weight: Any = None,
    intercept: bool = False,
    method: str = "auto",
    loo: bool = False,
    dual: bool = False,
    tolerance: float = 1e-8,
    max_iterations: int | None = None,
    threads: int = 0,
    progress: Callable[[int, float], bool | None] | None = None,
) -> LinearSolution:
    """Solve for all columns of Y (n,) or (n, t) at once; X (n, d) dense or sparse.

    `loo` asks for exact leave-one-out residuals and leverages, `dual` for the expansion over the
    rows. `tolerance`, `max_iterations` and `progress` are those of method "cg": its relative
    residual, with info["status"] telling whether it was reached.
    """
    began = time.perf_counter()
    ridge = checked_ridge(ridge)
    if method != "auto" and method not in METHODS:
        raise SettingsError(f"method is {method!r}; known: auto, {', '.join(METHODS)}")
    X, targets, rows, kept = _prepared(X, Y, weight, intercept)
    chosen = method
    if method == "auto":
        steps = predicted_steps(rows, loo)
        chosen = min(steps, key=lambda name: steps[name])
    wish = Wish(ridge, loo, tolerance, max_iterations, progress)
    # Sparse products run on one thread; more would only wait for each other's short sums.
    unknowns = 1 if chosen == "cg" and rows.is_sparse else min(rows.n, rows.d)
    with blas_threads(unknowns, threads):
        found, chosen = _found(rows, wish, chosen, may_change=method == "auto")
        solution = _finished(X, targets, rows, kept, found, ridge, dual)
        residual = _relative_residual(rows, found.v, ridge, targets - solution.fitted, kept)
    solution.info = {
        "method": chosen,
        "ridge": ridge,
        "n": rows.n,
        "n_features": rows.d,
        "precision": "float64",
        "status": "converged",
        **found.info,
        "residual": residual,
        "seconds": {"total": time.perf_counter() - began},
    }
    return solution


def decompose_linear(
    X: Any, Y: Any, *, weight: Any = None, intercept: bool = False, method: str = "eig"
) -> LinearSpectrum:
    """The decomposition for all ridges: `.table(ridges)` has leave-one-out errors and GCV of each.

    Rows of weight 0 are left out of it.
    """
    _, _, rows, kept = _prepared(X, Y, weight, intercept)
    with blas_threads(min(rows.n, rows.d)):
        return LinearSpectrum(rows, method, kept)


def _prepared(
    X: Any, Y: Any, weight: Any, intercept: bool
) -> tuple[Any, np.ndarray, CentredRows, np.ndarray | None]:
    """X and Y checked, the rows of positive weight, and which they are (None: all)."""
    X = check_X(X, source="data")
    n, d = X.shape
    if n == 0 or d == 0:
        raise DataError("data", None, f"{n} rows of {d} features", "give at least one of each")
    targets = checked_targets(Y, n)
    kept = None
    if weight is not None:
        weight = check_weights(weight, n, "data")
        kept = np.flatnonzero(weight > 0.0)
        if len(kept) < n:
            rows = CentredRows(X[kept], targets[kept], weight[kept], intercept)
            return X, targets, rows, kept
    return X, targets, CentredRows(X, targets, weight, intercept), None


def _found(rows: CentredRows, wish: Wish, method: str, may_change: bool) -> tuple[Found, str]:
    """The method's result, or under `auto` that of a safer one where rounding gets in the way."""
    try:
        found = METHODS[method](rows, wish)
        low = found.unleveraged
        if may_change and method == "primal" and low is not None and low.min() < CANCELLED:
            return METHODS["svd"](rows, wish), "svd"
        return found, method
    except BelowRoundingError:
        if may_change:
            return METHODS["svd"](rows, wish), "svd"
        raise SettingsError(
            f"ridge {wish.ridge:g} is lost in the rounding errors of the matrix; raise it or "
            "choose method 'svd'"
        ) from None


def _finished(
    X: Any,
    targets: np.ndarray,
    rows: CentredRows,
    kept: np.ndarray | None,
    found: Found,
    ridge: float,
    dual: bool,
) -> LinearSolution:
    """Bias, outputs and what was asked for, for all rows of X."""
    bias = rows.target_mean - rows.mean @ found.v if rows.intercept else rows.target_mean
    which = slice(None) if kept is None else kept
    if found.residual is None:
        errors = targets[which] - (rows.outputs(found.v) + rows.target_mean)
    else:  # sharper where the fit is near exact
        errors = found.residual / rows.root[:, None]
    fitted = targets - errors if kept is None else np.asarray(X @ found.v) + bias
    if kept is not None:
        fitted[kept] = targets[kept] - errors
    solution = LinearSolution(np.ascontiguousarray(found.v.T), bias, fitted)
    if dual:
        solution.dual_coef = np.zeros_like(targets)
        solution.dual_coef[which] = rows.weight[:, None] * errors / ridge
    if found.unleveraged is not None:
        left = np.maximum(found.unleveraged, 0.0)
        if rows.intercept and rows.n == 1:
            left = np.full(1, np.nan)
        solution.loo_residuals = targets - fitted
        with np.errstate(divide="ignore", invalid="ignore"):
            solution.loo_residuals[which] = errors / left[:, None]
        solution.leverages = np.zeros(len(targets))
        solution.leverages[which] = 1.0 - np.where(np.isnan(left), 0.0, left)
    return solution


def _relative_residual(
    rows: CentredRows, v: np.ndarray, ridge: float, errors: np.ndarray, kept: np.ndarray | None
) -> float:
    """max over targets of ‖Aᵀ(Z − Av) − ridge v‖/‖AᵀZ‖, with √W(y − f) for Z − Av."""
    errors = errors if kept is None else errors[kept]
    left = rows.adjoint(rows.root[:, None] * errors) - ridge * v
    scale = np.linalg.norm(rows.adjoint(rows.Z), axis=0)
    return float(np.max(np.linalg.norm(left, axis=0) / np.where(scale > 0.0, scale, 1.0)))
