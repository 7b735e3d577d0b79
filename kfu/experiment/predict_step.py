"""The step `predict`: figures of the last trained model on the test (or training) rows.

What they are depends on the kind of the machine: rates of a classifier, errors of a regression,
orders of a ranking. The predicted classes are kept under the name of the step for `agreement`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kfu.calibration import brier_score, expected_calibration_error, log_loss
from kfu.data import Dataset, encode_labels
from kfu.errors import SettingsError
from kfu.experiment.document import Key, choice
from kfu.experiment.state import Options, State, Step
from kfu.machine_kinds import NOVELTY
from kfu.model import Model
from kfu.tallies import ClassTally, Tally, tally_of

CLASS_FIGURES = ("accuracy", "error", "n_errors", "recall.", "precision.")
NUMBER_FIGURES = ("mse", "mae", "r2", "correlation", "ndcg", "pair_error", "n_queries")
PROBABILITY_FIGURES = ("log_loss", "brier_score", "calibration_error")


def tally_figures(tally: Tally) -> dict[str, float]:
    """The figures of what was counted; nothing but n when no row has a label."""
    summary = tally.summary()
    figures = {"n": float(summary["n"])}
    figures |= {
        name: float(summary[name]) for name in NUMBER_FIGURES if summary.get(name) is not None
    }
    if not isinstance(tally, ClassTally) or summary["accuracy"] is None:
        return figures
    figures |= {"accuracy": summary["accuracy"], "error": summary["error"]}
    figures["n_errors"] = float(tally.confusion.n_labelled - tally.confusion.n_correct)
    for row in summary["per_class"]:
        for rate in ("recall", "precision"):
            if row[rate] is not None:
                figures[f"{rate}.{row['label']}"] = row[rate]
    return figures


def probability_figures(model: Model, data: Dataset, shares: np.ndarray) -> dict[str, float]:
    if data.y is None:
        return {}
    truth = encode_labels(data.y, model.classes)
    rows = np.flatnonzero(truth >= 0)
    if rows.size == 0:
        return {}
    p, known = shares[rows], truth[rows]
    return {
        "log_loss": float(log_loss(p, known)),
        "brier_score": float(brier_score(p, known)),
        "calibration_error": float(expected_calibration_error(p, known)),
    }


def run_predict(options: Options, state: State) -> dict[str, float]:
    model = state.model
    assert model is not None  # the plan has checked that a step leaves one
    data = state.train if options.get("rows", "test") == "train" else state.test
    if data is None:
        raise SettingsError(
            "predict: there are no test rows; give 'data.test' or a 'split', or 'rows: train'"
        )
    how: dict[str, Any] = {
        "threads": state.threads,
        "from_sparse_text": data.from_sparse_text,
        "source": data.source,
    }
    begin = time.perf_counter()
    shares = None
    if model.calibration is not None:
        decision, shares = model.decision_and_probabilities(data.X, **how)
    else:
        decision = model.decision_function(data.X, **how)
    predicted = model.decide(decision) if model.has_classes else decision[:, 0]
    seconds = time.perf_counter() - begin
    tally = tally_of(model)
    tally.add(data, predicted)
    state.warnings += tally.warnings()
    if model.has_classes:
        state.predictions[state.label] = model.classes[predicted]
    figures = {**tally_figures(tally), "seconds": seconds}
    if shares is not None:
        figures |= probability_figures(model, data, shares)
    if model.kind == NOVELTY:
        figures["outliers"] = float(np.mean(decision[:, 0] < 0))
    return figures


PREDICT = Step(
    run_predict,
    {"rows": Key(choice("set of rows", ["test", "train"]), "which rows are predicted")},
    figures=(*CLASS_FIGURES, *NUMBER_FIGURES, *PROBABILITY_FIGURES, "outliers", "n", "seconds"),
    after=("train", "path_selection"),
)
