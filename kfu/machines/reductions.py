"""The SVM machines as reductions to the one dual problem (kfu.solvers.dual).

Binary classifiers, y = ±1, C_i = C · (class weight) · (row weight):

  svc     min ½‖w‖² + Σ C_i ξ_i,    y f ≥ g_i − ξ_i     linear −g_i, box [0, C_i / g_i]
  svc2    min ½(‖w‖² + Σ C_i ξ_i²), y f ≥ g_i − ξ_i     linear −g_i, box [0, ∞), ridge 1/C_i
  C = ∞   the hard margin of either: box [0, ∞), no ridge
  nu-svc  min ½‖w‖² − νρW + Σ w_i ξ_i, y f ≥ ρ − ξ_i    linear 0, box [0, w_i], Σα = νW/2 in each
          class (two groups); w and b are divided by ρ afterwards, so that f = ±1 on the margin.
          W = Σ w_i. Feasible for ν ≤ 2 min(W₊, W₋)/W.

g_i = 1 is the target of the margin. Adaptive margins (vicinal risk with a width for each point;
Chapelle 2004, 2.3) give it as σ_i/σ̄; the box is C_i/g_i since a point of wide vicinity counts less.
A row of weight 0 has the box [0, 0]: it is there, and never a support vector.

Others:

  one-class  min ½‖w‖² − νρW + Σ w_i ξ_i, ⟨w, φ⟩ ≥ ρ − ξ_i   box [0, w_i], Σα = νW; f = ⟨w, φ⟩ − ρ
  svr        min ½‖w‖² + Σ C_i |f − y|_ε     one variable in [−C_i, C_i], linear −y, kink ε
  nu-svr     min ½‖w‖² + C(νεW + Σ w_i |f − y|_ε) over ε too   α, α* ∈ [0, C_i] in two groups, each
             of sum CνW/2; ε is half of the distance between their thresholds

The references are those of LIBSVM: Schölkopf et al. 2000, 2001; its conventions are kept, and the
objective reported is minus the one it prints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kfu.errors import DataError
from kfu.solvers import DualProblem, Solution


@dataclass
class BinaryTask:
    """One binary problem of a code: y = ±1 over `rows` of the data."""

    y: np.ndarray
    rows: np.ndarray
    weights: np.ndarray  # of class and row
    cost: float
    margins: np.ndarray  # the targets g_i
    bias: bool  # free
    nu: float
    source: str
    name: str  # of the two sides, for messages


@dataclass
class Reduction:
    """A dual problem, where it starts by default, and what to make of its solution."""

    problem: DualProblem
    start: np.ndarray | None = None
    finish: Callable[[Solution], Solution] = lambda solution: solution


def box_of(cost: float, weights: np.ndarray) -> np.ndarray:
    """C · weight, also for C = ∞ and weight 0."""
    return np.where(weights > 0, cost * np.maximum(weights, np.finfo(float).tiny), 0.0)


def svc_reduction(task: BinaryTask) -> Reduction:
    upper = box_of(task.cost, task.weights) / task.margins
    problem = _margin_problem(task, upper, None)
    return hard_margin(problem) if np.isinf(task.cost) else Reduction(problem)


def svc2_reduction(task: BinaryTask) -> Reduction:
    upper = np.where(task.weights > 0, np.inf, 0.0)
    if np.isinf(task.cost):
        return hard_margin(_margin_problem(task, upper, None))
    with np.errstate(divide="ignore"):
        ridge = np.where(task.weights > 0, 1.0 / (task.cost * task.weights), 0.0)
    return Reduction(_margin_problem(task, upper, ridge))


def hard_margin(problem: DualProblem) -> Reduction:
    """Without slack f is feasible only once it is scaled up by its worst violation v of the margin;
    the primal is then ½‖w‖²/(1 − v/g)², g the smallest target, and the duality gap is finite."""

    def finish(solution: Solution) -> Solution:
        info = solution.info
        square = 2.0 * (float(-problem.linear @ solution.alpha) - info.objective)
        short = info.kkt_violation / float(np.min(-problem.linear))
        primal = 0.5 * square / (1.0 - short) ** 2 if short < 1.0 else np.inf
        gap = max(0.0, primal - info.objective)
        return replace(solution, info=replace(info, duality_gap=gap))

    return Reduction(problem, finish=finish)


def _margin_problem(task: BinaryTask, upper: np.ndarray, ridge: np.ndarray | None) -> DualProblem:
    n = len(task.y)
    return DualProblem(
        signs=task.y.astype(np.float64),
        linear=-task.margins,
        lower=np.zeros(n),
        upper=upper,
        points=task.rows,
        ridge=ridge,
        has_equality=task.bias,
    )


def nu_svc_reduction(task: BinaryTask) -> Reduction:
    y = task.y.astype(np.float64)
    total = float(task.weights.sum())
    smaller = min(float(task.weights[y > 0].sum()), float(task.weights[y < 0].sum()))
    most = 2.0 * smaller / total
    if task.nu > most * (1 + 1e-12):
        raise DataError(
            task.source,
            None,
            f"nu = {task.nu:g} is not feasible for {task.name}: the smaller side has "
            f"{smaller:g} of {total:g} (weighted) rows",
            f"give 0 < nu <= {most:.6g}",
        )
    alpha = np.zeros(len(y))
    for sign in (1.0, -1.0):
        side = np.flatnonzero(y == sign)
        alpha[side] = fill(task.weights[side], min(task.nu * total / 2.0, smaller))
    problem = DualProblem(
        signs=y,
        linear=np.zeros(len(y)),
        lower=np.zeros(len(y)),
        upper=task.weights,
        points=task.rows,
        group=(y < 0).astype(np.int8),
    )
    return Reduction(problem, y * alpha, _divided_by_margin)


def has_margin(solution: Solution) -> bool:
    """Whether ρ is more than rounding."""
    return solution.info.margin > LEAST_MARGIN * max(1.0, abs(solution.bias))


def _divided_by_margin(solution: Solution) -> Solution:
    """f scaled so that the margin is 1. One of 0 (w = 0, but for rounding) leaves it as it is."""
    margin = solution.info.margin
    if not has_margin(solution):
        info = replace(solution.info, warnings=[*solution.info.warnings, ZERO_MARGIN])
        return replace(solution, info=info)
    scaled, ends = 1.0 / margin, solution.info.bias_interval
    info = replace(
        solution.info,
        bias=solution.bias * scaled,
        bias_std=solution.info.bias_std * scaled,
        bias_interval=(ends[0] * scaled, ends[1] * scaled),
        objective=solution.info.objective * scaled**2,
        duality_gap=solution.info.duality_gap * scaled**2,
        kkt_violation=solution.info.kkt_violation * scaled,
    )
    beta = solution.beta * scaled
    return replace(solution, beta=beta, bias=info.bias, info=info)


LEAST_MARGIN = 1e-9
ZERO_MARGIN = (
    "the margin is 0: the classes are not told apart at this nu (every decision value is the bias)"
)


def one_class_reduction(weights: np.ndarray, nu: float, rows: np.ndarray) -> Reduction:
    n = len(weights)
    problem = DualProblem(
        signs=np.ones(n),
        linear=np.zeros(n),
        lower=np.zeros(n),
        upper=weights,
        points=rows,
    )
    return Reduction(problem, fill(weights, nu * float(weights.sum())))


def svr_reduction(
    y: np.ndarray, box: np.ndarray, epsilon: float, rows: np.ndarray, bias: bool
) -> Reduction:
    n = len(y)
    problem = DualProblem(
        signs=np.ones(n),
        linear=-y,
        lower=-box,
        upper=box,
        points=rows,
        kink=np.full(n, float(epsilon)),
        has_equality=bias,
    )
    return Reduction(problem)


def nu_svr_reduction(
    y: np.ndarray, box: np.ndarray, nu: float, cost: float, weight: float, rows: np.ndarray
) -> Reduction:
    """`weight` is W. The variables are α of all rows, then −α* of all rows."""
    n = len(y)
    start = fill(box, cost * nu * weight / 2.0)
    problem = DualProblem(
        signs=np.concatenate([np.ones(n), -np.ones(n)]),
        linear=np.concatenate([-y, y]),
        lower=np.zeros(2 * n),
        upper=np.concatenate([box, box]),
        points=np.concatenate([rows, rows]),
        group=np.repeat(np.array([0, 1], dtype=np.int8), n),
    )

    def finish(solution: Solution) -> Solution:
        """The two variables of a row as one; the margin is −ε (θ₁ − θ₀ = 2ε)."""
        beta = solution.beta[:n] + solution.beta[n:]
        used = np.abs(beta)
        info = replace(
            solution.info,
            margin=-solution.info.margin,
            n_sv=int(np.count_nonzero(beta)),
            n_usv=int(np.count_nonzero((used > 0) & (used < box))),
        )
        return replace(solution, alpha=beta, beta=beta, info=info)

    return Reduction(problem, np.concatenate([start, -start]), finish)


def fill(upper: np.ndarray, total: float) -> np.ndarray:
    """Variables of sum `total`, the first of them at their upper bounds, as LIBSVM starts.

    What rounding leaves of a sum that whole boxes make up is dropped: a variable just off its bound
    would pass for an unbounded one and fix the threshold at an end of its interval.
    """
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    rest = total - before
    rounding = 1e-12 * total
    rest[np.abs(rest) <= rounding] = 0.0
    return np.clip(np.where(np.abs(rest - upper) <= rounding, upper, rest), 0.0, upper)
