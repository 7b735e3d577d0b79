"""Multiclass as one problem: Crammer–Singer and Weston–Watkins (kfu.solvers.multiclass).

The model has one function for each class, the code of one against all, and the largest wins.
Crammer–Singer has no biases, as it was posed; Weston–Watkins has, unless none are asked for.
"""

from __future__ import annotations

import numpy as np

from kfu.errors import SettingsError
from kfu.machines.reductions import box_of
from kfu.machines.task import TrainingTask
from kfu.model import Model

SINGLE_MACHINES = ("crammer-singer", "weston-watkins")


def train_single_machine(task: TrainingTask) -> Model:
    from kfu.solvers.multiclass import solve_single_machine

    assert task.labels is not None
    assert task.code is not None
    if task.machine.name != "svc":
        raise SettingsError(f"--multiclass {task.code_name} is for the machine svc")
    if np.isinf(task.cost):
        raise SettingsError(f"--multiclass {task.code_name} needs a finite cost")
    if task.bias == "regularised" or task.options.get("margins") is not None:
        raise SettingsError(f"--multiclass {task.code_name} takes no margins or regularised bias")
    if task.start is not None:
        raise SettingsError(f"--multiclass {task.code_name} takes no start model")
    if task.checkpoint is not None:
        raise SettingsError(f"--multiclass {task.code_name} writes no checkpoints")
    solution = solve_single_machine(
        task.code_name,
        task.X,
        task.labels,
        len(task.classes),
        box_of(task.cost, task.weights),
        task.kernel,
        task.settings,
        bias=task.code_name == "weston-watkins" and task.has_free_bias,
        progress=task.progress,
    )
    support = np.flatnonzero(np.any(solution.coef != 0.0, axis=0))
    support = support[np.argsort(task.labels[support], kind="stable")]
    info = solution.info.to_dict()
    info["bias_interval"] = list(info["bias_interval"])
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=task.classes,
        n_features=task.X.shape[1],
        support=support,
        support_vectors=task.support_vectors(support),
        coef=solution.coef[:, support],
        bias=solution.bias,
        code=task.code,
        decoding="argmax",
        settings=task.described(),
        info=info,
        n_support=np.bincount(task.labels[support], minlength=len(task.classes)),
    )
