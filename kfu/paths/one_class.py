"""The path of the one-class SVM in ν.

    min ½ βᵀKβ,   0 ≤ β_i ≤ w_i,   Σβ = νW,   W = Σ w_i,      f = Kβ − θ, θ = ρ

Only the total moves with t = ν. At ν = 1 every β is at its bound. Going down, the rows deepest
inside leave it first. Once no β is at its bound, β and ρ shrink in proportion to ν and the sign of
f stays everywhere: the path ends there, as the hard margin of a classifier does.

On a stretch [K_AA −1; 1ᵀ 0][β̇; ρ̇] = [0; W]: derived from the conditions of
csrc/kfu/parametric_run.h, and proved in the tests by solving anew at values between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.reductions import fill
from kfu.machines.task import TrainingTask
from kfu.paths.registry import PathDefinition, Span, Start
from kfu.paths.states import Vocabulary, one_sided
from kfu.solvers import DualProblem
from kfu.solvers.dual import solve
from kfu.solvers.parametric import ParametricProblem

LOWEST = 1e-6


class OneClassPath(PathDefinition):
    machine = "one-class"
    parameter = "nu"
    summary = "the one-class SVM in ν"

    def check(self, task: TrainingTask) -> None:
        if not np.any(task.weights > 0):
            raise DataError(task.source, None, "no row has a positive weight", "mend the weights")

    def problem(self, task: TrainingTask) -> ParametricProblem:
        return ParametricProblem(
            linear=np.zeros(task.n),
            lower=np.zeros(task.n),
            upper=np.asarray(task.weights, dtype=np.float64),
            total_rate=(float(task.weights.sum()), 0.0),
            ends_without_bound=True,
        )

    def signs(self, task: TrainingTask) -> np.ndarray | None:
        return np.ones(task.n)  # a training row outside is an error

    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        begin, end = ends_of(span, 1.0)
        if begin >= 1.0:
            return Start(
                t=1.0, stop=end, beta=np.array(problem.upper), how="every row at its bound"
            )
        dual = DualProblem(
            signs=np.ones(task.n),
            linear=np.zeros(task.n),
            lower=np.zeros(task.n),
            upper=problem.upper,
            points=np.arange(task.n),
            ridge=problem.ridge,
        )
        X, kernel = task.solver_kernel()
        start = fill(problem.upper, begin * problem.total_rate[0])
        return Start(
            t=begin,
            stop=end,
            beta=solve(dual, X, kernel, task.settings, start=start).beta,
            how="solved",
        )

    def coefficients(
        self, task: TrainingTask, beta: np.ndarray, theta: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        return beta, -float(theta[0])

    def objective(
        self, task: TrainingTask, minimised: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return np.asarray(-minimised)

    def vocabulary(self, task: TrainingTask) -> Vocabulary:
        return one_sided(task.n)

    def beyond(self, task: TrainingTask, path: Any, t: float) -> tuple[np.ndarray, float] | None:
        """Below the end of a path on which no row is at its bound everything is in proportion."""
        last = float(path.track.t[-1])
        if not (0.0 < t < last and path.track.status == "hard_margin"):
            return None
        beta, theta = path.track.solution(last)
        return beta * (t / last), -float(theta[0]) * (t / last)


def ends_of(span: Span, most: float) -> tuple[float, float]:
    """(begin, end) of a path in ν that lies in (0, most]."""
    low = span.low or LOWEST  # 0: as far as it goes
    high = most if span.high is None else min(span.high, most)
    if not 0.0 < low < high:
        raise SettingsError(
            f"no part of the path lies between nu = {low:g} and {high:g}; it goes from "
            f"{most:.6g} down to 0"
        )
    return (low, high) if span.upward else (high, low)
