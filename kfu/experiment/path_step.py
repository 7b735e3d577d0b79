"""The step `path_selection`: C of a classifier from the exact validation errors of whole paths.

The training rows are split (by default five times in halves, as Zapién 2009, section 2.3.3, has
it), each half's path gives its validation error for every λ, the mean over the splits chooses λ,
and the machine is trained with it on all training rows and left behind for `predict`.

`exhaustive: N` proves the curve by other means: at a λ inside of every step of the mean (of N of
them, evenly chosen, where there are more) each split is solved for itself and its errors counted.
Figures of that: `exhaustive_agreement`, the share of counts that are those of the path (where no
row is on the margin the bias is an interval, and a count within those of its ends is one of them);
`selection_difference`, between the least mean errors of both; and where every step was solved,
`exhaustive_lambda`, what the solves would choose, and `test_difference`, between the test errors of
the models at both λ.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from kfu.data import encode_labels
from kfu.errors import DataError
from kfu.experiment.document import Key, choice, flag, fraction, positive_count
from kfu.experiment.learner import (
    LEARNER_KEYS,
    check_learner,
    learner_arguments,
    machine_of,
    scaled_rows,
)
from kfu.experiment.state import Options, Problems, State, Step, StepPlan
from kfu.experiment.train_step import numbers_of
from kfu.machines import train
from kfu.model import Model
from kfu.paths.following import FollowOptions, path_task
from kfu.paths.registry import definition_of
from kfu.paths.selection import RULES, Choice, PathSplit, ValidationCurves, choose, splits
from kfu.paths.shown_path import spread
from kfu.paths.split_paths import follow_task_splits, task_of_split
from kfu.paths.step_function import StepFunction, average
from kfu.solvers import SolverSettings
from kfu.validation.folds import SPLITTERS

KINDS = ("hold-out", "bootstrap", *(name for name in SPLITTERS if name != "hold-out"))
FOLDS = 5
FIGURES = (
    *("lambda", "cost", "error", "standard_error", "minimum", "crossings", "crossings_sd"),
    *("n_breakpoints", "n_splits", "objective", "n_sv", "test_error", "seconds"),
    *("exhaustive_agreement", "exhaustive_points", "exhaustive_lambda", "exhaustive_seconds"),
    *("selection_difference", "test_difference"),
)
# Keys of a learner that a path does not have: C is what is looked for.
WITHOUT = {"machine", "cost", "multiclass", "decoding", "margins"}
KEYS: dict[str, Key] = {name: key for name, key in LEARNER_KEYS.items() if name not in WITHOUT} | {
    "splits": Key(choice("kind of splits", KINDS), "how rows are split (default: hold-out)"),
    "folds": Key(positive_count, f"how many splits (default: {FOLDS})"),
    "fraction": Key(fraction, "the share that hold-out validates with (default: a half)"),
    "rule": Key(choice("rule", RULES), "how lambda is chosen (default: minimum)"),
    "rescale": Key(flag, "whether lambda grows with the rows from a split to all of them"),
    "exhaustive": Key(positive_count, "how many lambdas are solved for to prove the curve"),
}


def check_path(options: Options, before: Sequence[StepPlan]) -> Problems:
    yield from check_learner(options, before)
    if "fraction" in options and options.get("splits", "hold-out") != "hold-out":
        yield "fraction", f"belongs to splits hold-out, not {options['splits']}; leave it out"
    if options.get("bias") == "regularised":
        yield "bias", "a path has a free bias or none; give true or false"


def run_path(options: Options, state: State) -> dict[str, float]:
    arguments = learner_arguments(options, state)
    rows, scaler = scaled_rows(options, state)
    definition = definition_of(machine_of(options).name, "lambda")
    settings: SolverSettings = arguments["settings"]
    limits = FollowOptions(threads=state.threads, memory_mib=settings.cache_mib)
    chosen = {key: value for key, value in arguments.items() if key not in ("machine", "qid")}
    begin = time.perf_counter()
    task = path_task(definition, rows, **chosen)
    kind = options.get("splits", "hold-out")
    parts = splits(
        kind,
        task.n,
        k=options.get("folds", FOLDS),
        labels=task.labels,
        fraction=options.get("fraction", 0.5),
        seed=state.seed_of(options),
    )
    curves = follow_task_splits(
        definition, task, parts, limits=limits, rescale=options.get("rescale", False)
    )
    found = curves.choose(options.get("rule", "minimum"))
    model = trained(rows, arguments, found.cost)
    seconds = time.perf_counter() - begin
    for curve in curves.curves:
        if curve.status not in ("done", "hard_margin"):
            state.add_status(curve.status)
    state.add_status(str(model.info["status"]))
    model.scaler = scaler
    state.model = model
    figures = {
        "lambda": found.lam,
        "cost": found.cost,
        "error": found.error,
        "standard_error": found.standard_error,
        "minimum": found.minimum,
        "crossings": curves.crossings.mean,
        "crossings_sd": curves.crossings.sd,
        "n_breakpoints": float(np.mean([curve.n_breakpoints for curve in curves.curves])),
        "n_splits": float(len(parts)),
        "n_sv": float(model.n_sv),
        "seconds": seconds,
        **{name: value for name, value in numbers_of(model.info).items() if name == "objective"},
    }
    if state.test is not None:
        figures["test_error"] = error_on_test(model, state)
    if "exhaustive" in options:
        begin = time.perf_counter()
        solve = Solves(definition, task, parts, curves, limits)
        figures |= solve.figures(options["exhaustive"], found)
        again = figures.get("exhaustive_lambda")
        if again is not None and state.test is not None:
            other = model if again == found.lam else trained(rows, arguments, 1.0 / again)
            other.scaler = scaler
            figures["test_difference"] = abs(error_on_test(other, state) - figures["test_error"])
        figures["exhaustive_seconds"] = time.perf_counter() - begin
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def trained(rows: Any, arguments: dict[str, Any], cost: float) -> Model:
    model = train(rows, **{**arguments, "cost": cost})
    if model.info["status"] == "interrupted":  # a part counts only when it is whole
        raise KeyboardInterrupt
    return model


def error_on_test(model: Model, state: State) -> float:
    data = state.test
    assert data is not None
    if data.y is None:
        raise DataError(data.source, None, "no labels", "give test rows with labels")
    predicted = model.predict(data.X, threads=state.threads)
    truth = encode_labels(data.y, model.classes)
    return float(np.mean(encode_labels(predicted, model.classes) != truth))


class Solves:
    """The mean validation error again, by solves of their own at single λ."""

    def __init__(
        self,
        definition: Any,
        task: Any,
        parts: Sequence[PathSplit],
        curves: ValidationCurves,
        limits: FollowOptions,
    ) -> None:
        self.task = task
        self.parts = parts
        self.curves = curves
        self.tasks = [task_of_split(definition, task, split, limits) for split in parts]
        self.settings = SolverSettings(tolerance=1e-6, threads=1, polish=True)
        self.threads = SolverSettings(threads=limits.threads).n_threads

    def errors(self, split: int, lambdas: np.ndarray) -> np.ndarray:
        """(n, 3): the validation error of a split at each of the λ of its axis, which fall, with
        the bias of the solve, and with the ends of its interval."""
        part, task = self.parts[split], self.tasks[split]
        X, truth = self.task.X[part.valid], self.task.labels[part.valid]
        found = np.empty((lambdas.size, 3))
        last: Model | None = None
        for k, lam in enumerate(lambdas):
            last = train(
                task.X,
                task.classes[task.labels],
                kernel=task.kernel,
                cost=1.0 / float(lam),
                sample_weight=task.weights,
                bias=task.bias,
                settings=self.settings,
                start=last,
            )
            if last.info["status"] == "interrupted":
                raise KeyboardInterrupt
            decision = last.decision_function(X, threads=1)
            ends = last.info.get("bias_interval") or (last.bias[0], last.bias[0])
            for j, bias in enumerate((last.bias[0], *ends)):
                shifted = decision + (float(bias) - last.bias[0])
                found[k, j] = np.mean(last.decide(shifted) != truth)
        return found

    def figures(self, most: int, found: Choice) -> dict[str, float]:
        mean = self.curves.mean
        points = mean.middles()
        kept = spread(points, most, True)
        kept = np.unique(np.append(kept, int(mean.index_of(found.lam))))
        falling = points[kept][::-1]
        scales = [
            self.curves.n / curve.n_train if self.curves.is_rescaled else 1.0
            for curve in self.curves.curves
        ]
        with ThreadPoolExecutor(max(1, min(self.threads, len(scales)))) as pool:
            each = list(pool.map(lambda k: self.errors(k, falling / scales[k]), range(len(scales))))
        table, agreed = [], 0
        for curve, errors in zip(self.curves.curves, each, strict=True):
            own = curve.error.extended(low=min(curve.error.low, float(points[0])))
            room, here = 0.5 / curve.n_valid, own(falling)
            fits = (errors.min(axis=1) - room < here) & (here < errors.max(axis=1) + room)
            agreed += int(fits.sum())
            table.append(errors[::-1, 0])
        solved = np.mean(table, axis=0)
        result = {
            "exhaustive_agreement": agreed / (len(table) * kept.size),
            "exhaustive_points": float(kept.size),
            "selection_difference": abs(float(solved.min()) - found.minimum),
        }
        if kept.size == points.size:
            steps = [StepFunction(mean.edges, errors) for errors in table]
            n_valid = self.parts[0].valid.size if len(table) == 1 else None
            again = choose(average(steps), found.rule, n_valid=n_valid)
            result["exhaustive_lambda"] = again.lam
        return result


PATH_SELECTION = Step(run_path, KEYS, figures=FIGURES, check=check_path)
