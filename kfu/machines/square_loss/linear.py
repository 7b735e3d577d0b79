"""The linear kernel: f as a vector of weights, by the smaller side of X or conjugate gradients.

A bias that is penalised with the weights, as in the linear proximal machine (Fung and Mangasarian
2001), is the weight of a further feature that is 1 everywhere.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import SettingsError
from kfu.least_squares.linear_methods import METHODS
from kfu.least_squares.linear_rls import LinearSolution, decompose_linear, solve_linear_rls
from kfu.machines.square_loss.judged import bound, cross_validated
from kfu.machines.square_loss.run import NOT_LEFT_OUT, Run
from kfu.solvers.blas_threads import blas_threads

LARGEST_SPECTRUM = 5000  # unknowns up to which the ridge is chosen by an eigendecomposition


def linear(run: Run) -> LinearSolution:
    """The weights (t, d) and biases; the figures go into the run."""
    X = with_ones(run.task.X) if run.task.bias == "regularised" else run.task.X
    common: dict[str, Any] = {"weight": run.weight, "intercept": run.task.has_free_bias}
    if run.method not in ("auto", *METHODS):
        raise SettingsError(f"--method {run.method} is not for the linear kernel")
    smaller = min(run.n_rows, X.shape[1])
    can_leave_out = smaller <= LARGEST_SPECTRUM and run.method != "cg"
    wants_loo = can_leave_out and run.when_left_out != "never"
    if can_leave_out and not wants_loo:
        run.facts["loo"] = NOT_LEFT_OUT
    ridge = run.asked_ridge()
    if ridge is None and wants_loo:
        with blas_threads(smaller, run.threads):
            spectrum = decompose_linear(X, run.targets, **common)
            asked = run.criterion()
            criterion = asked.pop("criterion")
            table = spectrum.table(linear_grid(X), **asked)
        ridge = float(table.ridge[table.best(criterion)])
        run.tell_choice(table.ridge, loo=table.loo, gcv=table.gcv, error=table.error)
    elif ridge is None:
        ridge = run.ridge_or_usual("the linear kernel by conjugate gradients or at this size")
    run.facts["ridge"] = ridge
    limits = cg_limits(run)
    found = solve_linear_rls(
        X,
        run.targets,
        ridge,
        method=run.method,
        loo=wants_loo,
        threads=run.threads,
        **limits,
        **common,
    )
    run.take_info(found.info)
    if found.loo_residuals is not None:
        run.loo = run.targets - found.loo_residuals
    if found.leverages is not None:
        cross_validated(run, found.fitted, float(found.leverages.sum()))
    weight = run.task.weights[:, None]
    coef = weight * (run.targets - found.fitted) / ridge
    bound(run, coef, found.fitted, row_squares(X))
    if run.task.bias == "regularised":
        found.weights, found.bias = found.weights[:, :-1], found.weights[:, -1].copy()
    return found


def cg_limits(run: Run) -> dict[str, Any]:
    """What stops conjugate gradients. A residual of 1e-5 times the tolerance of the dual solvers,
    1e-8 unless it was changed."""
    settings = run.task.settings

    def too_long(iteration: int, residual: float) -> bool:
        return time.perf_counter() - run.begin > settings.max_seconds

    return {
        "tolerance": min(1e-5 * settings.tolerance, 0.1),
        "max_iterations": settings.max_iterations or None,
        "progress": too_long if settings.max_seconds > 0 else None,
    }


def with_ones(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])


def row_squares(X: Any) -> np.ndarray:
    """K(x, x) of the linear kernel."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def linear_grid(X: Any) -> np.ndarray:
    """Ridges relative to the mean squared norm of the rows."""
    scale = float(row_squares(X).sum() / X.shape[0]) or 1.0
    return scale * 10.0 ** np.arange(-5.0, 5.01, 0.25)
