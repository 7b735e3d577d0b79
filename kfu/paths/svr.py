"""The paths of ε-insensitive regression, in λ = 1/C and in ε.

In λ, with β = λ·(dual coefficients) and one variable a row (its kink is the ε of the loss):

    min ½ βᵀKβ − λ yᵀβ + λε Σ|β_i|,   |β_i| ≤ w_i,   Σβ = 0 (or no equality),   f = (Kβ − θ)/λ

Linear term and kink move with t = λ. A row is inside the tube (β = 0, on its kink), on its upper or
lower edge (free, 0 < ±β < w), or outside (at a bound). On a stretch

    K_AA β̇ − E θ̇ = y_A ∓ ε.

For λ → ∞ f is the constant that minimises Σ w_i |y_i − b|_ε; the path begins at a λ where Kβ/λ is
small beside the range of y, from the β of that constant, which the engine makes exact there.

In ε, at a fixed C:  min ½ βᵀKβ − yᵀβ + ε Σ|β_i|,  |β_i| ≤ C w_i: only the kink moves with t = ε,
and K_AA β̇ − E θ̇ = ∓1. At ε = (max y − min y)/2 (without bias max |y|) all rows are inside the tube
and β = 0; going down, rows come to its edges, until at ε = 0 f interpolates them or is bounded by
C.

Gunter and Zhu, Efficient computation and model selection for the support vector regression, Neural
Computation 19 (2007), follow λ; Wang, Yeung and Lochovsky, Two-dimensional solution path for
support vector regression, ICML 2006, ε.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.machines.task import TrainingTask
from kfu.paths.in_lambda import LambdaPath
from kfu.paths.registry import PathDefinition, Span, Start
from kfu.paths.states import REGRESSION, Vocabulary, one_sided
from kfu.paths.svc import HIGHEST, ROUNDING, last_of, outputs
from kfu.solvers import DualProblem
from kfu.solvers.dual import solve
from kfu.solvers.parametric import ParametricProblem

FLATNESS = 0.1  # largest |Kβ|/λ at the start of a path in λ, relative to the spread of y


class SvrPath(PathDefinition):
    """What the paths in λ and ε share."""

    machine = "svr"

    def check(self, task: TrainingTask) -> None:
        assert task.targets is not None
        used = task.targets[task.weights > 0]
        if not used.size:
            raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
        if np.ptp(used) == 0.0:
            raise DataError(
                task.source, None, f"every target is {used[0]:g}", "a constant needs no path"
            )

    def signs(self, task: TrainingTask) -> np.ndarray | None:
        return None

    def vocabulary(self, task: TrainingTask) -> Vocabulary:
        return one_sided(task.n, REGRESSION)

    def solved(
        self,
        task: TrainingTask,
        problem: ParametricProblem,
        box: np.ndarray,
        epsilon: float,
    ) -> np.ndarray:
        """β of the regression with these boxes and this tube."""
        assert task.targets is not None
        dual = DualProblem(
            signs=np.ones(task.n),
            linear=-task.targets,
            lower=-box,
            upper=box,
            points=np.arange(task.n),
            kink=np.full(task.n, epsilon),
            ridge=problem.ridge,
            has_equality=problem.has_equality,
        )
        X, kernel = task.solver_kernel()
        settings = replace(task.settings, tolerance=1e-5, polish=False)
        return solve(dual, X, kernel, settings).beta


class SvrLambdaPath(SvrPath, LambdaPath):
    summary = "ε-insensitive regression in λ = 1/C"

    def problem(self, task: TrainingTask) -> ParametricProblem:
        assert task.targets is not None
        return ParametricProblem(
            linear=np.zeros(task.n),
            linear_rate=-task.targets,
            lower=-task.weights,
            upper=np.asarray(task.weights, dtype=np.float64),
            kink=np.zeros(task.n),
            kink_rate=np.full(task.n, float(task.options["epsilon"])),
            has_equality=task.bias == "free",
            ends_without_bound=True,
        )

    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        beta = self.flattest(task, problem)
        X, kernel = task.solver_kernel()
        gram = Gram(X, kernel, "float64", task.settings.n_threads)
        g = outputs(gram, beta)
        assert task.targets is not None
        spread = float(np.ptp(task.targets[task.weights > 0]))
        diagonal = np.asarray(gram.diagonal())
        size = float(diagonal @ np.abs(beta))
        wide = float(np.ptp(g)) if problem.has_equality else float(np.max(np.abs(g)))
        if wide <= ROUNDING * size:  # f is constant at every λ, or no row is outside the tube
            wide = max(float(np.max(diagonal)), np.finfo(float).tiny)
        top = wide / (FLATNESS * spread)
        bottom = last_of(top, diagonal, beta, spread)
        low, high = span.low or bottom, min(span.high or top, HIGHEST * top)
        begin, end = (low, high) if span.upward else (high, low)
        if (begin < end) != span.upward:
            raise SettingsError(
                f"no part of the path lies there: lambda goes from about {top:.6g} down; give a "
                "range that begins below"
            )
        if begin >= top:
            return Start(t=begin, stop=end, beta=beta, how="constant")
        epsilon = float(task.options["epsilon"])
        beta = begin * self.solved(task, problem, task.weights / begin, epsilon)
        return Start(t=begin, stop=end, beta=beta, how="solved")

    def flattest(self, task: TrainingTask, problem: ParametricProblem) -> np.ndarray:
        """β for λ → ∞: that of the constant b with the least Σ w |y − b|_ε (b = 0 without bias)."""
        assert task.targets is not None
        y, w = task.targets, task.weights
        epsilon = float(task.options["epsilon"])
        if not problem.has_equality:
            return np.where(y > epsilon, w, np.where(y < -epsilon, -w, 0.0))
        # The slope of the loss in b goes from −W to W in steps of w at y − ε and at y + ε.
        at = np.concatenate([y - epsilon, y + epsilon])
        order = np.argsort(at, kind="stable")
        slope = -float(w.sum()) + np.cumsum(np.concatenate([w, w])[order])
        k = int(np.searchsorted(slope, -1e-12 * float(w.sum())))
        b = at[order[k]]
        beta = np.where(y - epsilon > b, w, np.where(y + epsilon < b, -w, 0.0))
        # Rows tied with this one at the edge share what is left; the engine settles how.
        tied = np.flatnonzero(at[order] == b)
        rows = np.unique(order[tied] % len(y))
        beta[rows] = 0.0
        rest = -float(beta.sum())
        edge_up = np.where(y[rows] - epsilon >= b, w[rows], 0.0)
        edge_down = np.where(y[rows] + epsilon <= b, w[rows], 0.0)
        room = edge_up if rest > 0 else edge_down
        if rest != 0.0 and room.sum() > 0:
            beta[rows] = np.sign(rest) * room * min(1.0, abs(rest) / float(room.sum()))
        return beta


class SvrEpsilonPath(SvrPath):
    parameter = "epsilon"
    summary = "ε-insensitive regression in ε, at one C"

    def check(self, task: TrainingTask) -> None:
        super().check(task)
        if not np.isfinite(task.cost):
            raise SettingsError("a path in epsilon needs a finite --cost")

    def problem(self, task: TrainingTask) -> ParametricProblem:
        assert task.targets is not None
        box = task.cost * task.weights
        return ParametricProblem(
            linear=-np.asarray(task.targets, dtype=np.float64),
            lower=-box,
            upper=box,
            kink=np.zeros(task.n),
            kink_rate=np.ones(task.n),
            has_equality=task.bias == "free",
        )

    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        assert task.targets is not None
        used = task.targets[task.weights > 0]
        top = 0.5 * float(np.ptp(used)) if problem.has_equality else float(np.max(np.abs(used)))
        low = 0.0 if span.low is None else span.low
        high = top if span.high is None else span.high
        begin, end = (low, high) if span.upward else (high, low)
        if low >= top:
            raise SettingsError(
                f"no part of the path lies there: at epsilon = {top:.6g} every row is inside the "
                "tube; give a range that begins below"
            )
        if begin >= top:
            return Start(t=begin, stop=end, beta=np.zeros(task.n), how="every row inside")
        beta = self.solved(task, problem, task.cost * task.weights, begin)
        return Start(t=begin, stop=end, beta=beta, how="solved")

    def coefficients(
        self, task: TrainingTask, beta: np.ndarray, theta: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        return beta, (-float(theta[0]) if task.bias == "free" else 0.0)

    def objective(
        self, task: TrainingTask, minimised: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return np.asarray(-minimised)
