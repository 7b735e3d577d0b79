"""The path of the ν-SVC in ν.

    min ½ βᵀKβ,   0 ≤ y_i β_i ≤ w_i,   Σ_{y=1} β = νW/2,   Σ_{y=−1} β = −νW/2,   W = Σ w_i

Two totals move with t = ν, one for each class, with the multipliers θ₊ = ρ − b and θ₋ = −ρ − b; the
model is f = (Kβ + b)/ρ. On a stretch

    K_AA β̇ − E θ̇ = 0,   Eᵀβ̇ = (W/2, −W/2),      E: the indicators of the classes in A.

ν lies below 2 min(W₊, W₋)/W. There the lighter class is at its bounds and the heavier one takes the
least ½βᵀKβ, which is the start of the C-SVC's path (kfu.paths.svc): the two paths pass the same
classifiers, this one by the part of rows that may be wrong. Once no row is at its bound β, b and ρ
shrink in proportion and f stays: the hard margin. Where ρ reaches 0 the classes are not told apart;
f is then left unscaled, as in training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.machines.reductions import LEAST_MARGIN, fill
from kfu.machines.task import TrainingTask
from kfu.paths.one_class import ends_of
from kfu.paths.registry import PathDefinition, Span, Start
from kfu.paths.states import Vocabulary, two_sided
from kfu.paths.svc import SvcPath, heaviest
from kfu.solvers import DualProblem
from kfu.solvers.dual import solve
from kfu.solvers.parametric import ParametricProblem


class NuSvcPath(PathDefinition):
    machine = "nu-svc"
    parameter = "nu"
    summary = "the ν-SVC in ν"

    def check(self, task: TrainingTask) -> None:
        SvcPath().check(task)

    def problem(self, task: TrainingTask) -> ParametricProblem:
        y = self.signs(task)
        assert y is not None
        half = 0.5 * float(task.weights.sum())
        return ParametricProblem(
            linear=np.zeros(task.n),
            lower=np.where(y > 0, 0.0, -task.weights),
            upper=np.where(y > 0, task.weights, 0.0),
            group=(y < 0).astype(np.int8),
            total_rate=(half, -half),
            ends_without_bound=True,
        )

    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        y = self.signs(task)
        assert y is not None
        total = 2.0 * problem.total_rate[0]
        lighter = min(float(task.weights[y == sign].sum()) for sign in (1.0, -1.0))
        most = 2.0 * lighter / total
        begin, end = ends_of(span, most)
        if begin >= most:
            beta, how = heaviest(task, problem, y)
            return Start(t=most, stop=end, beta=beta, how=how)
        dual = DualProblem(
            signs=y,
            linear=np.zeros(task.n),
            lower=np.zeros(task.n),
            upper=np.asarray(task.weights, dtype=np.float64),
            points=np.arange(task.n),
            ridge=problem.ridge,
            group=problem.group,
        )
        start = np.zeros(task.n)
        for sign in (1.0, -1.0):
            side = np.flatnonzero(y == sign)
            start[side] = sign * fill(task.weights[side], begin * total / 2.0)
        X, kernel = task.solver_kernel()
        solution = solve(dual, X, kernel, task.settings, start=start)
        return Start(t=begin, stop=end, beta=solution.beta, how="solved")

    def coefficients(
        self, task: TrainingTask, beta: np.ndarray, theta: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        scale = float(scales_of(theta))
        return beta * scale, -0.5 * float(theta[0] + theta[1]) * scale

    def objective(
        self, task: TrainingTask, minimised: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return np.asarray(-minimised * scales_of(theta) ** 2)

    def violation(
        self, task: TrainingTask, kkt: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        return np.asarray(kkt * scales_of(theta))

    def vocabulary(self, task: TrainingTask) -> Vocabulary:
        y = self.signs(task)
        assert y is not None
        return two_sided(y)

    def beyond(self, task: TrainingTask, path: Any, t: float) -> tuple[np.ndarray, float] | None:
        last = float(path.track.t[-1])
        if not (0.0 < t < last and path.track.status == "hard_margin"):
            return None
        beta, theta = path.track.solution(last)
        return self.coefficients(task, beta, theta, last)

    def remarks(self, path: Any) -> list[str]:
        theta = np.asarray(path.track.theta)
        gone = np.flatnonzero(~margins_of(theta)[1])
        if not gone.size or not np.isfinite(theta).all():
            return []
        top = float(path.track.t[gone].max())
        return [
            f"from nu = {top:.6g} down the margin is 0: the classes are not told apart by more "
            "than rounding, and errors there mean little"
        ]


def scales_of(theta: np.ndarray) -> np.ndarray:
    """1/ρ, or 1 where ρ is no more than rounding; theta is (2,) or (m, 2)."""
    margin, is_there = margins_of(theta)
    return np.where(is_there, 1.0 / np.where(is_there, margin, 1.0), 1.0)


def margins_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ρ, and whether it is more than rounding."""
    plus, minus = np.asarray(theta)[..., 0], np.asarray(theta)[..., 1]
    margin = 0.5 * (plus - minus)
    return margin, margin > LEAST_MARGIN * np.maximum(1.0, np.abs(0.5 * (plus + minus)))
