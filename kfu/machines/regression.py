"""Support vector regression: ε-SVR and ν-SVR (kfu.machines.reductions has the problems)."""

from __future__ import annotations

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.expansion import expansion_model
from kfu.machines.reductions import Reduction, box_of, nu_svr_reduction, svr_reduction
from kfu.machines.task import TrainingTask, with_total
from kfu.model import Model
from kfu.solvers import Solution


def train_svr(task: TrainingTask) -> Model:
    y, box = _targets(task), _box(task)
    rows = np.arange(task.n)
    epsilon = float(task.options["epsilon"])
    reduction = svr_reduction(y, box, epsilon, rows, task.has_free_bias)
    start = task.start_of(0, rows, reduction.problem)
    solution = _solved(task, reduction, start)
    return expansion_model(task, solution.beta, solution.bias, solution.info)


def train_nu_svr(task: TrainingTask) -> Model:
    """The tube found is in the report as `epsilon`."""
    if task.bias != "free":
        raise SettingsError("nu-svr has a free bias; leave --no-bias out")
    y, box = _targets(task), _box(task)
    weight = float(task.weights.sum())
    rows = np.arange(task.n)
    reduction = nu_svr_reduction(y, box, float(task.options["nu"]), task.cost, weight, rows)
    solution = _solved(task, reduction, _two_sided_start(task, reduction, rows))
    epsilon = max(0.0, solution.info.margin)
    return expansion_model(task, solution.beta, solution.bias, solution.info, epsilon=epsilon)


def _solved(task: TrainingTask, reduction: Reduction, start: np.ndarray | None) -> Solution:
    rows = np.arange(task.n)
    solution = task.solve(
        reduction.problem,
        start=reduction.start if start is None else start,
        progress=task.progress_of(0, 1, rows),
        store=task.store,
    )
    solution = reduction.finish(solution)
    task.machine_done(0, rows, solution)
    return solution


def _two_sided_start(
    task: TrainingTask, reduction: Reduction, rows: np.ndarray
) -> np.ndarray | None:
    """β of an earlier solution as α and α*, each filled up to its sum."""
    problem, fresh = reduction.problem, reduction.start
    assert fresh is not None
    single = svr_reduction(np.zeros(task.n), problem.upper[: task.n], 0.0, rows, False).problem
    earlier = task.start_of(0, rows, single)
    if earlier is None:
        return None
    total = float(fresh[: task.n].sum())
    sides = [with_total(side, problem.upper[: task.n], total) for side in (earlier, -earlier)]
    if sides[0] is None or sides[1] is None:
        return None
    return np.concatenate([sides[0], -sides[1]])


def _targets(task: TrainingTask) -> np.ndarray:
    assert task.targets is not None
    return task.targets


def _box(task: TrainingTask) -> np.ndarray:
    if np.isinf(task.cost):
        raise SettingsError(f"{task.machine.name} needs a finite cost")
    box = box_of(task.cost, task.weights)
    if not np.any(box > 0):
        raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
    return box
