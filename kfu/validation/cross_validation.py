"""Cross-validation of any machine: each fold trained on the other rows, tested on its own.

Machines of the dual problem share one KernelStore over all rows: a fold is the problem with the
boxes of its rows closed (weight 0), which makes every kernel value that one fold computes good for
the next, and each fold starts from the solution of the one before. Machines without a dual problem
are trained on the rows of the fold. Kernel parameters that are derived from the data (gamma
"scale") are derived once, from all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kfu.data import Matrix, encode_labels, format_label
from kfu.errors import ConvergenceWarning, DataError
from kfu.kernels import KernelSpec
from kfu.machine_kinds import CLASSIFIER, NOVELTY, RANKER
from kfu.machines.coded import SHARED_ROWS_PART, SHARED_VALUE_COST
from kfu.machines.registry import Machine, machine_named
from kfu.machines.training import train
from kfu.model import Model
from kfu.solvers import SolverSettings
from kfu.solvers.dual import make_store
from kfu.validation.folds import Folds
from kfu.validation.ranking_scores import is_graded, ndcg, pair_error
from kfu.validation.regression_scores import mae, mse, r2

# Machines whose fold is the whole problem with some boxes closed.
CLOSES_BOXES = frozenset({"svc", "svc2", "nu-svc", "one-class", "svr", "nu-svr"})


@dataclass
class FoldResult:
    """One fold: its test rows, their outputs, and the figures of training and test."""

    test: np.ndarray
    decision: np.ndarray  # (n_test, n_machines)
    predicted: np.ndarray  # labels, or numbers
    scores: dict[str, float]
    info: dict[str, Any]


@dataclass
class CrossValidation:
    """The folds and what they say together."""

    n: int
    classes: np.ndarray
    code: np.ndarray
    decoding: str
    folds: list[FoldResult] = field(default_factory=list)

    @property
    def decision(self) -> np.ndarray:
        """Outputs of each row when it was left out (n, n_machines), the mean over repetitions; NaN
        for rows that no fold tests."""
        width = self.folds[0].decision.shape[1]
        total, times = np.zeros((self.n, width)), np.zeros(self.n)
        for fold in self.folds:
            total[fold.test] += fold.decision
            times[fold.test] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / times[:, None]

    def mean(self, score: str) -> float:
        values = [fold.scores[score] for fold in self.folds if np.isfinite(fold.scores[score])]
        return float(np.mean(values)) if values else float("nan")

    def std(self, score: str) -> float:
        """Standard deviation over the folds (n − 1)."""
        values = [fold.scores[score] for fold in self.folds if np.isfinite(fold.scores[score])]
        return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")

    @property
    def score_names(self) -> list[str]:
        return list(self.folds[0].scores) if self.folds else []

    def total(self, counter: str) -> float:
        return float(sum(fold.info.get(counter) or 0 for fold in self.folds))


def cross_validate(
    X: Matrix,
    folds: Folds,
    *,
    options: Mapping[str, Any],
    labels: np.ndarray | None = None,
    on_fold: Any = None,
) -> CrossValidation:
    """Train and test on each of `folds`; `options` are the arguments of kfu.machines.train.

    `labels` are the classes when they are known beforehand. `on_fold(k, FoldResult)` is called
    after each fold; when it returns True no more are run.
    """
    runner = FoldRunner(X, dict(options), labels)
    if leaves_one_out(folds) and runner.has_exact_leave_one_out():
        return runner.leave_one_out(folds)
    result: CrossValidation | None = None
    for number, (train_rows, test_rows) in enumerate(folds):
        model = runner.train(train_rows)
        fold = runner.tested(model, train_rows, test_rows)
        if result is None:
            result = CrossValidation(runner.n, model.classes, model.code, model.decoding)
        result.folds.append(fold)
        if model.info.get("status") == "interrupted":
            raise KeyboardInterrupt
        if on_fold is not None and on_fold(number, fold):
            break
    assert result is not None
    return result


class FoldRunner:
    """Trains the folds of one data set with everything they can share."""

    def __init__(self, X: Matrix, options: dict[str, Any], classes: np.ndarray | None) -> None:
        self.X = X
        self.n = int(X.shape[0])
        self.machine: Machine = machine_named(options.get("machine", "svc"))
        self.y = None if options.get("y") is None else np.asarray(options.pop("y"))
        options.pop("y", None)
        self.classes = classes
        if classes is None and self.machine.kind == CLASSIFIER and self.y is not None:
            self.classes = np.unique(self.y)
        self.qid = options.pop("qid", None)
        self.weights = options.pop("sample_weight", None)
        if self.weights is not None:
            self.weights = np.asarray(self.weights, dtype=np.float64)
        kernel = options.pop("kernel", None) or KernelSpec.make("rbf")
        self.kernel = kernel.resolve(X)
        settings = options.pop("settings", None) or SolverSettings()
        self.options = options
        is_whole = options.get("approximation", "none") == "none" and not _is_single(options)
        self.closes_boxes = self.machine.name in CLOSES_BOXES and is_whole
        self.store: Any = None
        self.settings = settings
        if self.closes_boxes and options.get("bias") != "regularised":
            self.share(settings)
        self.last: Model | None = None

    def share(self, settings: SolverSettings) -> None:
        has_codes = self.machine.takes_codes and self.classes is not None and len(self.classes) > 2
        # Machines of a code run side by side, one thread each, unless they see every row.
        self.store = None if has_codes else make_store(self.X, self.kernel, settings)
        if self.store is None or self.machine.name == "nu-svr":
            return
        is_dear = self.store.value_cost() >= SHARED_VALUE_COST and self.kernel.name != "linear"
        if is_dear:
            self.store.share_rows(SHARED_ROWS_PART * settings.cache_mib * 2.0**20)
            self.settings = replace(settings, cache_mib=settings.cache_mib * (1 - SHARED_ROWS_PART))

    def train(self, rows: np.ndarray) -> Model:
        self.check_classes(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fold's info says it
            model = self.trained_by_weights(rows) if self.closes_boxes else self.trained_on(rows)
        self.last = model if self.closes_boxes else None
        return model

    def has_exact_leave_one_out(self) -> bool:
        from kfu.validation.leave_one_out import MACHINES

        bias = self.options.get("bias", True)
        # Balanced weights are those of the rows that are left, so every fold has its own.
        is_fixed = self.options.get("class_weight") != "balanced"
        can_close = self.closes_boxes and bias != "regularised"
        return self.machine.name in MACHINES and can_close and is_fixed

    def leave_one_out(self, folds: Folds) -> CrossValidation:
        """The folds of one row each, by kfu.validation.leave_one_out."""
        from kfu.machines.training import prepare
        from kfu.validation.leave_one_out import leave_one_out_outputs

        for rows, _ in folds:
            self.check_classes(rows)
        arguments = {
            "kernel": self.kernel,
            "sample_weight": self.weights,
            "settings": self.settings,
            **self.options,
        }
        task = prepare(self.X, self.y, **arguments)
        model = task.machine.train(task)
        if model.info.get("status") == "interrupted":
            raise KeyboardInterrupt
        decision = leave_one_out_outputs(task, model)
        if model.has_classes:
            predicted = model.classes[model.decide(decision)]
        else:
            predicted = np.ascontiguousarray(decision[:, 0])
        result = CrossValidation(self.n, model.classes, model.code, model.decoding)
        for _, test in folds:
            scores = self.scores(model, predicted[test], test)
            info = {"status": model.info["status"], "n_train": self.n - 1, "n_test": 1}
            result.folds.append(FoldResult(test, decision[test], predicted[test], scores, info))
        return result

    def check_classes(self, rows: np.ndarray) -> None:
        if self.machine.kind != CLASSIFIER or self.y is None or self.classes is None:
            return
        missing = np.setdiff1d(self.classes, self.y[rows])
        if missing.size:
            raise DataError(
                str(self.options.get("source", "data")),
                None,
                f"a fold leaves no training row of class {format_label(missing[0])}",
                "use fewer folds, stratified ones, or leave classes of so few rows out",
            )

    def trained_by_weights(self, rows: np.ndarray) -> Model:
        weights = np.zeros(self.n)
        weights[rows] = 1.0 if self.weights is None else self.weights[rows]
        return train(
            self.X,
            self.y,
            kernel=self.kernel,
            sample_weight=weights,
            settings=self.settings,
            store=self.store,
            start=self.last,
            **self.options,
        )

    def trained_on(self, rows: np.ndarray) -> Model:
        X = self.X[np.ix_(rows, rows)] if self.kernel.is_precomputed else self.X[rows]
        return train(
            X,
            None if self.y is None else self.y[rows],
            kernel=self.kernel,
            sample_weight=None if self.weights is None else self.weights[rows],
            settings=self.settings,
            qid=None if self.qid is None else self.qid[rows],
            **self.options,
        )

    def tested(self, model: Model, rows: np.ndarray, test: np.ndarray) -> FoldResult:
        X = self.X[test]
        if self.kernel.is_precomputed and not self.closes_boxes:
            X = X[:, rows]
        decision = model.decision_function(X, threads=self.settings.threads)
        if model.has_classes:
            predicted = model.classes[model.decide(decision)]
        else:
            predicted = decision[:, 0]
        info = {**model.info, "n_train": rows.size, "n_test": test.size}
        return FoldResult(test, decision, predicted, self.scores(model, predicted, test), info)

    def says_novelty(self, model: Model) -> bool:
        """Whether the labels are those of the model, 1 and -1; others are classes of the data."""
        return self.y is not None and bool(np.all(encode_labels(self.y, model.classes) >= 0))

    def scores(self, model: Model, predicted: np.ndarray, test: np.ndarray) -> dict[str, float]:
        if model.kind == NOVELTY and not self.says_novelty(model):
            return {"outliers": float(np.mean(predicted < 0))}
        assert self.y is not None
        y = self.y[test]
        weights = None if self.weights is None else self.weights[test]
        counts = weights is None or bool(np.any(weights > 0))  # else there is nothing to judge
        if model.kind in (CLASSIFIER, NOVELTY):
            known = encode_labels(y, model.classes)
            wrong = known != encode_labels(predicted, model.classes)
            error = float(np.average(wrong, weights=weights)) if counts else float("nan")
            return {"error": error, "accuracy": 1.0 - error}
        target = y.astype(np.float64)
        if model.kind == RANKER:
            qid = None if self.qid is None else self.qid[test]
            return {
                "ndcg": ndcg(predicted, target, qid) if is_graded(self.y) else float("nan"),
                "pair_error": pair_error(predicted, target, qid),
            }
        if not counts:
            return dict.fromkeys(("mse", "mae", "r2"), float("nan"))
        return {
            "mse": mse(target, predicted, weights),
            "mae": mae(target, predicted, weights),
            "r2": r2(target, predicted, weights) if test.size > 1 else float("nan"),
        }


def leaves_one_out(folds: Folds) -> bool:
    return len(folds) == folds.n and all(rows.size == 1 for rows in folds.tests)


def _is_single(options: Mapping[str, Any]) -> bool:
    name = options.get("multiclass", "ava")
    return isinstance(name, str) and name in ("crammer-singer", "weston-watkins")
