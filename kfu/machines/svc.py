"""svc: on the full kernel, or under K̃ of a few centres, whose code is loaded when asked for."""

from __future__ import annotations

from kfu.machines.coded import train_coded
from kfu.machines.task import TrainingTask
from kfu.model import Model


def train_svc(task: TrainingTask) -> Model:
    if task.options["approximation"] == "none":
        return train_coded(task)
    from kfu.machines.low_rank_svc import train_low_rank

    return train_low_rank(task)
