"""One-class SVM: where most of the data lie (kfu.machines.reductions has the problem)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kfu.errors import DataError
from kfu.machines.expansion import expansion_model
from kfu.machines.reductions import one_class_reduction
from kfu.machines.task import TrainingTask, with_total
from kfu.model import Model


def train_one_class(task: TrainingTask) -> Model:
    """f > 0 inside; the labels of the data, if there are any, are not used."""
    if not np.any(task.weights > 0):
        raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
    rows = np.arange(task.n)
    reduction = one_class_reduction(task.weights, float(task.options["nu"]), rows)
    start = reduction.start
    assert start is not None
    # An earlier solution is brought into the box, then to the sum.
    earlier = task.start_of(0, rows, replace(reduction.problem, has_equality=False))
    if earlier is not None:
        moved = with_total(earlier, reduction.problem.upper, float(start.sum()))
        start = start if moved is None else moved
    solution = task.solve(
        reduction.problem, start=start, progress=task.progress_of(0, 1, rows), store=task.store
    )
    task.machine_done(0, rows, solution)
    return expansion_model(task, solution.beta, solution.bias, solution.info)
