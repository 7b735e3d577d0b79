"""The step `roc`: the ROC curve of the last trained model, which has two classes.

Figures are the area `auc`, `average_precision`, `tpr.F`, the share of positives found at the false
positive rate F, and `error`, at the machine's own threshold. The curve itself, at the rates of
ROC_GRID, is kept with the part; the curves of all repetitions are averaged and drawn in a picture,
roc.png (kfu.experiment.roc_picture).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.experiment.document import Key, choice, text
from kfu.experiment.learner import machine_of
from kfu.experiment.state import Options, Problems, State, Step, StepPlan
from kfu.machine_kinds import CLASSIFIER
from kfu.validation.curves import curve_of

ROC_GRID = (np.arange(201) / 200.0) ** 2  # false positive rates, dense where good curves differ
SHOWN_RATES = (0.01, 0.05, 0.1)


def panel(value: Any) -> str:
    """A name; a number (of centres, of rows) will do."""
    return str(value) if isinstance(value, (int, float)) else text(value)


def check_roc(options: Options, before: Sequence[StepPlan]) -> Problems:
    trained = [step for step in before if step.name == "train"]
    if trained and machine_of(trained[-1].options).kind != CLASSIFIER:
        yield "", f"machine {machine_of(trained[-1].options).name} has no classes to rank"


def run_roc(options: Options, state: State) -> dict[str, float]:
    model = state.model
    assert model is not None  # the plan has checked that a step leaves one
    data = state.train if options.get("rows", "test") == "train" else state.test
    if data is None or data.y is None:
        raise SettingsError("roc: there are no test rows; give 'data.test' or a 'split'")
    if len(model.classes) != 2 or model.n_machines != 1:
        raise SettingsError("roc: the model has more than two classes; name one with 'positive'")
    decision = model.decision_function(
        data.X,
        threads=state.threads,
        from_sparse_text=data.from_sparse_text,
        source=data.source,
    )
    is_positive = data.y == model.classes[1]
    curve = curve_of(is_positive, decision[:, 0], data.weights)
    wrong = (model.decide(decision) == 1) != is_positive
    state.curves[state.label] = curve.tpr_at(ROC_GRID).tolist()
    figures = {"auc": curve.auc, "average_precision": curve.average_precision}
    figures["error"] = float(np.average(wrong, weights=data.weights))
    found = curve.tpr_at(np.array(SHOWN_RATES))
    return figures | {
        f"tpr.{rate:g}": float(value) for rate, value in zip(SHOWN_RATES, found, strict=True)
    }


ROC = Step(
    run_roc,
    {
        "rows": Key(choice("set of rows", ["test", "train"]), "which rows are ranked"),
        "curve": Key(text, "the name of the curve in the picture (default: that of the step)"),
        "panel": Key(panel, "the panel of the picture it is drawn in (default: all)"),
    },
    figures=("auc", "average_precision", "error", "tpr."),
    after=("train",),
    check=check_roc,
)
