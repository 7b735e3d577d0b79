"""A start for the first solve of many rows: the solution of a few of them, carried over to all.

A sample of m of n rows at the cost C·n/m has the same weight of loss against norm, so its function
is near that of all rows. It says which rows are inside the margin; these get their bound, the
others 0. With the bias that minimises the loss of all rows, the weights inside the margin of either
class balance but for the row on the knot, so that Σβ = 0 takes only a few rows next to the margin.
What the sample got wrong is left to the solve. The outputs of the start are needed in float64
sooner or later; what is saved is the search for the support vectors among all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.kernels import KernelSpec
from kfu.paths.sloped_loss import SlopedLoss
from kfu.solvers.dual import DualProblem, solve
from kfu.solvers.settings import SolverSettings

LEAST_ROWS = 8000
SHARE = 8  # one row in so many


def guess(
    X: Any,
    kernel: Any,
    loss: SlopedLoss,
    cost: float,
    has_bias: bool,
    settings: SolverSettings,
) -> tuple[np.ndarray, int] | None:
    """A feasible β for all rows and the kernel values it took; None where 0 is as good a start."""
    n = X.shape[0]
    takes_rows = isinstance(kernel, KernelSpec) and kernel.name not in ("linear", "precomputed")
    if n < LEAST_ROWS or loss.epsilon != 0.0 or not takes_rows:
        return None
    sample = np.arange(0, n, SHARE)
    part = SlopedLoss(loss.y[sample], loss.below[sample], loss.above[sample])
    if not (part.below.any() and part.above.any()):
        return None
    rows = sp.csr_matrix(X[sample]) if sp.issparse(X) else np.ascontiguousarray(X[sample])
    lower, upper = part.box(cost * n / sample.size)
    problem = DualProblem(
        signs=np.ones(sample.size),
        linear=-part.y,
        lower=lower,
        upper=upper,
        points=np.arange(sample.size),
        has_equality=has_bias,
    )
    found = solve(problem, rows, kernel, replace(settings, max_iterations=0))
    if found.info.status != "converged":
        return None
    from kfu._gram import Gram

    used = np.flatnonzero(found.beta)
    gram = Gram(rows, kernel, "float32", settings.n_threads)
    outputs = np.asarray(gram.decision(used, found.beta[used], X))[:, 0]
    outputs += loss.best_bias(outputs) if has_bias else 0.0
    beta = carried_over(loss, cost, outputs, has_bias)
    return None if beta is None else (beta, found.info.kernel_evaluations + used.size * n)


def carried_over(
    loss: SlopedLoss, cost: float, outputs: np.ndarray, has_bias: bool
) -> np.ndarray | None:
    """β at its bounds as `outputs` say, with Σβ = 0 where there is a bias."""
    lower, upper = loss.box(cost)
    short = loss.y - outputs
    beta = np.where(short > 0.0, upper, np.where(short < 0.0, lower, 0.0))
    if not has_bias:
        return beta
    missing = -float(beta.sum())
    room = upper - beta if missing > 0.0 else beta - lower
    order = np.argsort(np.abs(short), kind="stable")
    order = order[room[order] > 0.0]
    before = np.concatenate([[0.0], np.cumsum(room[order])])
    if before[-1] < abs(missing):
        return None
    taken = np.clip(abs(missing) - before[:-1], 0.0, room[order])
    beta[order] += np.sign(missing) * taken
    return beta
