"""What leaving a row out means for the dual problem of each machine.

The problem is that of the training (kfu.machines.reductions) with the boxes of the row's variables
closed. The ν machines share out a total that is a part of all weights: it falls with the row's.

    svc, svc2    one variable a row; f = Kβ − θ
    svr          the same, with a kink
    one-class    Σα = ν(W − w_p)
    nu-svc       Σα = ν(W − w_p)/2 in either class; f = (Kβ − (θ₊ + θ₋)/2)/ρ, ρ = (θ₊ − θ₋)/2
    nu-svr       α and α* of the row are closed, Σ = Cν(W − w_p)/2 of either; f = Kβ − (θ₀ + θ₁)/2

Where θ is unique and totals stay, rows without coefficients do not matter: their output is what it
was. Where no variable is free θ is an interval, whose middle is used and whose ends any row may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kfu.machines.coded import CodedTraining
from kfu.machines.reductions import (
    LEAST_MARGIN,
    box_of,
    nu_svr_reduction,
    one_class_reduction,
    svr_reduction,
)
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.solvers import DualProblem

DUST = 1e-12  # relative: a coefficient this close to a bound is at it


@dataclass
class LeftOutProblem:
    """The dual of one machine and how a row is left out of it.

    `rows` are the machine's rows of the data, `beta` its solution by variable. Variables come in
    `copies` blocks of one for each row. Leaving out a row of weight w changes the totals of the
    groups by −w · `total_share`.
    """

    problem: DualProblem
    rows: np.ndarray
    beta: np.ndarray
    totals: tuple[float, float] = (0.0, 0.0)
    total_share: tuple[float, float] = (0.0, 0.0)
    copies: int = 1
    is_divided: bool = False  # by ρ

    def rows_that_matter(self) -> np.ndarray:
        """Places in `rows` whose leaving changes their output."""
        places = np.arange(self.rows.size)
        if any(self.total_share):
            return places
        used = np.abs(self.beta)
        if self.problem.has_equality:
            width = np.where(self.beta > 0, self.problem.upper, -self.problem.lower)
            width = np.where(self.problem.signs > 0, width, self.problem.upper)
            is_free = (used > DUST * used.max(initial=0.0)) & (used < width * (1 - DUST))
            if not is_free.any():
                return places
        return places[used > 0]

    def closing(self, places: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variables (m, copies) to close for the rows at `places`, and changes (m, 2) of totals."""
        items = places[:, None] + self.rows.size * np.arange(self.copies)
        changes = -weights[self.rows[places]][:, None] * np.array(self.total_share)
        return np.ascontiguousarray(items, dtype=np.int64), np.ascontiguousarray(changes)

    def decision(self, outputs: np.ndarray, thetas: np.ndarray) -> np.ndarray:
        """f from Kβ (m,) and θ (m, 2)."""
        if not self.problem.has_equality:
            return outputs
        if self.problem.group is None:
            return outputs - thetas[:, 0]
        middle = 0.5 * (thetas[:, 0] + thetas[:, 1])
        f = outputs - middle
        if not self.is_divided:
            return np.asarray(f)
        margin = 0.5 * (thetas[:, 0] - thetas[:, 1])
        is_there = margin > LEAST_MARGIN * np.maximum(1.0, np.abs(middle))
        return np.asarray(f / np.where(is_there, margin, 1.0))


def _coded(task: TrainingTask, model: Model) -> Iterator[LeftOutProblem]:
    columns = CodedTraining(task)
    for machine in range(model.n_machines):
        beta = np.zeros(task.n)
        beta[model.support] = model.coef[machine]
        rows = columns.rows[machine]
        yield LeftOutProblem(columns.reduction_of(machine).problem, rows, beta[rows])


def _nu_coded(task: TrainingTask, model: Model) -> Iterator[LeftOutProblem]:
    half = 0.5 * float(task.options["nu"])
    for found in _coded(task, model):
        total = half * float(task.weights[found.rows].sum())
        given = float(found.beta[found.beta > 0].sum())  # the model's were divided by ρ
        found.beta = found.beta * (total / given if given > 0 else 1.0)
        found.totals, found.total_share = (total, -total), (half, -half)
        found.is_divided = True
        yield found


def _one_class(task: TrainingTask, model: Model) -> Iterator[LeftOutProblem]:
    nu, rows = float(task.options["nu"]), np.arange(task.n)
    problem = one_class_reduction(task.weights, nu, rows).problem
    total = nu * float(task.weights.sum())
    yield LeftOutProblem(problem, rows, _beta(task, model), (total, 0.0), (nu, 0.0))


def _svr(task: TrainingTask, model: Model) -> Iterator[LeftOutProblem]:
    assert task.targets is not None
    rows, box = np.arange(task.n), box_of(task.cost, task.weights)
    epsilon = float(task.options["epsilon"])
    problem = svr_reduction(task.targets, box, epsilon, rows, task.has_free_bias).problem
    yield LeftOutProblem(problem, rows, _beta(task, model))


def _nu_svr(task: TrainingTask, model: Model) -> Iterator[LeftOutProblem]:
    assert task.targets is not None
    rows, box = np.arange(task.n), box_of(task.cost, task.weights)
    nu, weight = float(task.options["nu"]), float(task.weights.sum())
    problem = nu_svr_reduction(task.targets, box, nu, task.cost, weight, rows).problem
    half = 0.5 * nu * task.cost
    beta = _beta(task, model)
    both = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    totals = (half * weight, -half * weight)
    yield LeftOutProblem(problem, rows, both, totals, (half, -half), copies=2)


def _beta(task: TrainingTask, model: Model) -> np.ndarray:
    beta = np.zeros(task.n)
    beta[model.support] = model.coef[0]
    return beta


# machine -> the problems of its binary machines (one, unless a code has several).
LEFT_OUT: dict[str, Callable[[TrainingTask, Model], Iterator[LeftOutProblem]]] = {
    "svc": _coded,
    "svc2": _coded,
    "nu-svc": _nu_coded,
    "one-class": _one_class,
    "svr": _svr,
    "nu-svr": _nu_svr,
}
