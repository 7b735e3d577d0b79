"""The ranking machine: pairs of rows of a query, the preferred one ahead by a margin of 1.

The cost of a pair is C times the weights of its two rows, so that a row of weight two counts as two
rows. There is no bias: it would cancel in every pair.
"""

from __future__ import annotations

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.expansion import expansion_model
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.ranking import complete_graph, reduced_graph


def train_rank(task: TrainingTask) -> Model:
    from kfu.solvers.ranking import solve_ranking

    assert task.targets is not None
    if task.checkpoint is not None or task.start is not None:
        raise SettingsError("machine rank takes no checkpoint or start model")
    if np.isinf(task.cost):
        raise SettingsError("machine rank needs a finite cost")
    if task.qid is None:
        raise DataError(
            task.source,
            None,
            "no queries: machine rank compares rows of one query",
            "write qid:NUMBER after the label of every row",
        )
    if task.options["graph"] == "reduced":
        pairs = reduced_graph(task.targets, task.qid, seed=task.seed)
    else:
        pairs = complete_graph(task.targets, task.qid)
    costs = task.cost * task.weights[pairs[:, 0]] * task.weights[pairs[:, 1]]
    if not np.any(costs > 0):
        raise DataError(task.source, None, "no pair has a positive weight", "mend the weights")
    solution = solve_ranking(
        task.X, pairs, costs, task.kernel, task.settings, progress=task.progress
    )
    return expansion_model(task, solution.coef, 0.0, solution.info, n_pairs=len(pairs))
