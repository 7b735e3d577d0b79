"""The step `cross_validate`: a machine on folds of the training rows.

Figures are those of all test rows of a repetition counted together, and their mean over the
repetitions; NAME_std is the standard deviation of NAME over the folds. Classes predicted for left
out rows (in the first repetition) are kept under the name of the step for `agreement`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kfu.data import Dataset, encode_labels
from kfu.errors import DataError
from kfu.experiment.data import at_least_two
from kfu.experiment.document import Key, choice, positive_count
from kfu.experiment.learner import (
    LEARNER_KEYS,
    check_learner,
    learner_arguments,
    machine_of,
    scaled_rows,
)
from kfu.experiment.predict_step import CLASS_FIGURES, NUMBER_FIGURES, tally_figures
from kfu.experiment.state import Options, Problems, State, Step, StepPlan
from kfu.machine_kinds import CLASSIFIER, NOVELTY, RANKER
from kfu.machines import Machine
from kfu.tallies import ClassTally, RankingTally, RegressionTally, Tally
from kfu.validation.cross_validation import CrossValidation, FoldResult, cross_validate
from kfu.validation.folds import SPLITTERS, Folds, make_folds

FOLDS = 10
SCORES = ("error", "accuracy", "mse", "mae", "r2", "ndcg", "pair_error", "outliers")
COUNTERS = ("iterations", "kernel_evaluations")
# Those that test every row; a part held out is the split `random`.
KINDS = [name for name in SPLITTERS if name != "hold-out"]


def kind_of_folds(options: Mapping[str, Any]) -> str:
    kind = machine_of(options).kind
    usual = {CLASSIFIER: "stratified", RANKER: "group"}.get(kind, "k-fold")
    return str(options.get("by", usual))


def check_cross_validate(options: Options, before: Sequence[StepPlan]) -> Problems:
    yield from check_learner(options, before)
    kind = kind_of_folds(options)
    if kind == "loo" and "folds" in options:
        yield "folds", "leaving one out has as many folds as rows; leave it out"
    if options.get("repeats", 1) > 1 and not SPLITTERS[kind].is_random:
        yield "repeats", f"{kind} folds are the same every time; leave it out"
    if kind == "stratified" and machine_of(options).kind != CLASSIFIER:
        yield "by", f"machine {machine_of(options).name} has no classes to stratify; give k-fold"


def folds_of(options: Mapping[str, Any], state: State) -> Folds:
    kind, data = kind_of_folds(options), state.train
    if kind == "group" and data.qid is None:
        raise DataError(
            data.source,
            None,
            "no qid: folds by group need the group of each row",
            "write qid:NUMBER after the labels (libsvm text)",
        )
    return make_folds(
        kind,
        data.n,
        k=options.get("folds", FOLDS),
        labels=data.y if machine_of(options).kind == CLASSIFIER else None,
        groups=data.qid,
        seed=state.seed_of(options),
        repeats=options.get("repeats", 1),
    )


def new_tally(machine: Machine, classes: np.ndarray) -> Tally:
    if machine.kind in (CLASSIFIER, NOVELTY):
        return ClassTally(classes)
    return RankingTally() if machine.kind == RANKER else RegressionTally()


def counted(
    machine: Machine, found: CrossValidation, folds: Sequence[FoldResult], data: Dataset
) -> dict[str, float]:
    """The figures of one repetition."""
    tally = new_tally(machine, found.classes)
    for fold in folds:
        predicted = fold.predicted
        if isinstance(tally, ClassTally):
            predicted = encode_labels(predicted, found.classes)
        tally.add(data.take(fold.test), predicted)
    figures = tally_figures(tally)
    if machine.kind == NOVELTY:
        figures["outliers"] = float(np.mean(np.concatenate([f.predicted for f in folds]) < 0))
    return figures


def run_cross_validate(options: Options, state: State) -> dict[str, float]:
    machine, data = machine_of(options), state.train
    arguments = learner_arguments(options, state)
    folds = folds_of(options, state)
    rows, _ = scaled_rows(options, state)
    begin = time.perf_counter()
    found = cross_validate(rows, folds, options=arguments)
    seconds = time.perf_counter() - begin
    for fold in found.folds:
        state.add_status(str(fold.info.get("status", "converged")))
    size = len(found.folds) // options.get("repeats", 1)
    repetitions = [found.folds[k : k + size] for k in range(0, len(found.folds), size)]
    each = [counted(machine, found, part, data) for part in repetitions]
    figures = {
        name: float(np.mean([one[name] for one in each if name in one]))
        for name in dict.fromkeys(name for one in each for name in one)
    }
    if size < data.n:  # the spread over single rows says nothing
        spreads = {f"{name}_std": found.std(name) for name in found.score_names}
        figures |= {name: value for name, value in spreads.items() if math.isfinite(value)}
    if machine.kind in (CLASSIFIER, NOVELTY):
        labels = np.empty(data.n, dtype=found.classes.dtype)
        for fold in repetitions[0]:
            labels[fold.test] = fold.predicted
        state.predictions[state.label] = labels
    totals = {name: found.total(name) for name in COUNTERS}
    figures |= {name: value for name, value in totals.items() if value > 0}
    return {**figures, "n_folds": float(len(found.folds)), "seconds": seconds}


CROSS_VALIDATE = Step(
    run_cross_validate,
    {
        **LEARNER_KEYS,
        "folds": Key(at_least_two, "how many folds (default: 10)"),
        "by": Key(choice("kind of folds", KINDS), "how rows are dealt to folds"),
        "repeats": Key(positive_count, "how often the folds are drawn"),
    },
    figures=(
        *CLASS_FIGURES,
        *NUMBER_FIGURES,
        *(f"{name}_std" for name in SCORES),
        *COUNTERS,
        *("outliers", "n", "n_folds", "seconds"),
    ),
    check=check_cross_validate,
)
