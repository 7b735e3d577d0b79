"""A model of one function without classes: regression, novelty, ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.machine_kinds import NOVELTY
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.solvers.dual import Info


def expansion_model(
    task: TrainingTask, coef: np.ndarray, bias: float, info: Info, **facts: Any
) -> Model:
    """f = Σ coef_i K(x_i, ·) + bias over the rows of the data; `facts` go into its info."""
    support = np.flatnonzero(coef)
    is_novelty = task.machine.kind == NOVELTY
    told = {**info.to_dict(), **facts, "bias": bias}
    told["bias_interval"] = list(told["bias_interval"])
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=np.array([-1.0, 1.0]) if is_novelty else np.zeros(0),
        n_features=task.X.shape[1],
        support=support,
        support_vectors=task.support_vectors(support),
        coef=coef[None, support],
        bias=np.array([bias]),
        code=np.array([[-1], [1]]) if is_novelty else np.zeros((0, 1)),
        settings=task.described(),
        info=told,
        n_support=np.array([0, support.size]) if is_novelty else np.zeros(0),
    )
