"""The steps an experiment can be made of: one entry of STEPS each.

A step has a table of keys (its options, spelled as on the command line), the figures it can
yield, what has to come before it, and a function `run(options, state) -> figures`. It works on
the State of one part of an experiment: it may replace the rows (scale), leave a model behind
(train), predictions (predict, cross_validate), a curve (roc), or only measure (agreement, compare).
Figures are numbers; the runner puts the step's name before each (`train.objective`).

To add a step, write its file and its entry in STEPS: the checks of the YAML, the resuming,
the table and the pictures follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kfu.experiment.agreement_step import AGREEMENT
from kfu.experiment.compare_step import COMPARE
from kfu.experiment.cross_validate_step import CROSS_VALIDATE
from kfu.experiment.leave_one_out_step import LEAVE_ONE_OUT
from kfu.experiment.path_step import PATH_SELECTION
from kfu.experiment.predict_step import PREDICT
from kfu.experiment.roc_step import ROC
from kfu.experiment.scale_step import SCALE
from kfu.experiment.state import State, Step, StepPlan
from kfu.experiment.train_step import TRAIN

__all__ = ["STEPS", "State", "Step", "StepPlan", "label_of"]

STEPS: dict[str, Step] = {
    "scale": SCALE,
    "train": TRAIN,
    "path_selection": PATH_SELECTION,
    "predict": PREDICT,
    "cross_validate": CROSS_VALIDATE,
    "leave_one_out": LEAVE_ONE_OUT,
    "agreement": AGREEMENT,
    "roc": ROC,
    "compare": COMPARE,
}


def label_of(name: str, options: Mapping[str, Any]) -> str:
    """The name that stands before a step's figures: `as`, or the rows predicted, or the step."""
    if "as" in options:
        return str(options["as"])
    return str(options.get("rows", "test")) if name == "predict" else name
