"""Models judged on the same labelled rows: their curves, and how they differ.

Rows without a label are left out; rows with a label the models do not know count as negative of
every class, and as errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.data import Dataset, format_label
from kfu.errors import DataError, ModelError
from kfu.model import Model
from kfu.report import Confusion
from kfu.validation.class_scores import class_scores
from kfu.validation.compare import mcnemar
from kfu.validation.curves import AverageCurve, average_curves
from kfu.validation.scored_rows import ScoredRows, compare_scores, score_rows

__all__ = ["JudgedModel", "check_alike", "compare", "judge_models"]


@dataclass(frozen=True, eq=False)
class JudgedModel:
    """A model on the labelled rows: a curve for each class asked for, and which rows are right."""

    path: str
    model: Model
    curves: list[ScoredRows]
    is_right: np.ndarray
    accuracy: float
    average: AverageCurve | None  #: over the classes, when there are several

    def summary(self) -> dict[str, Any]:
        facts = {
            "model": self.path,
            "machine": self.model.machine,
            "kernel": self.model.kernel.describe(),
            "n_sv": self.model.n_sv,
            "accuracy": self.accuracy,
        }
        if self.average is None:
            return {**facts, **self.curves[0].summary()}
        return {
            **facts,
            "positive": None,
            "auc": self.average.auc,
            "auc_low": None,
            "auc_high": None,
            "average_precision": self.average.average_precision,
            "classes": [curve.summary() for curve in self.curves],
        }


def check_alike(models: Sequence[tuple[str, Model]]) -> None:
    """ModelError when models, each with its name, cannot be judged on the same rows."""
    for name, model in models:
        if model.n_classes < 2:
            raise ModelError(
                name, f"machine {model.machine} knows no classes", "curves are for classifiers"
            )
    (first_name, first), *others = models
    for name, model in others:
        if not np.array_equal(model.classes, first.classes):
            raise ModelError(
                name, f"its classes are not those of {first_name}", "compare models of one problem"
            )
        if model.is_precomputed != first.is_precomputed:
            which = "a" if model.is_precomputed else "no"
            raise ModelError(
                name,
                f"{which} precomputed kernel, unlike {first_name}",
                "they read different data; give each its own, in two calls",
            )


def judge_models(
    models: Sequence[tuple[str, Model]],
    dataset: Dataset,
    *,
    positive: int | None = None,
    weights: np.ndarray | None = None,
    confidence: float = 0.95,
    threads: int = 0,
) -> tuple[list[JudgedModel], list[str]]:
    """Each model, given with its name, on the labelled rows; and what is to be warned of.

    ``positive``: position of a class in the models' classes; None: the larger of two, or every one.
    """
    check_alike(models)
    confusion = Confusion(models[0][1].classes)
    codes, found = label_codes(dataset, confusion)
    kept = codes != -1
    counted = kept if weights is None else kept & (weights > 0)
    wanted = classes_wanted(codes[counted], confusion.labels, positive, dataset.source, found)
    codes, w = codes[kept], None if weights is None else weights[kept]
    judged = []
    for name, model in models:
        decision = decision_values(model, dataset, threads, found)[kept]
        scores = class_scores(decision, model.code)
        curves = [
            score_rows(name, confusion.labels[k], codes == k, scores[:, k], w, confidence)
            for k in wanted
        ]
        right = model.decide(decision) == codes
        average = average_curves([scored.curve for scored in curves]) if len(curves) > 1 else None
        accuracy = float(np.average(right, weights=w))
        judged.append(JudgedModel(name, model, curves, right, accuracy, average))
    return judged, list(dict.fromkeys(found))


def label_codes(dataset: Dataset, confusion: Confusion) -> tuple[np.ndarray, list[str]]:
    """Class of each row (-1: no label, -2: a label the model does not know), and warnings."""
    if dataset.y is None or dataset.n == 0:
        raise DataError(
            dataset.source, None, "the data have no labels", "a curve needs labelled rows"
        )
    values, inverse = np.unique(dataset.y, return_inverse=True)
    of_value = np.array([confusion.code_of(value) for value in values], dtype=np.int64)
    codes = of_value[inverse]
    found = []
    if np.any(codes == -1):
        found.append(f"{np.sum(codes == -1)} rows have no label; they are not counted")
    if np.any(codes == -2):
        strangers = [format_label(value) for value in values[of_value == -2]]
        found.append(
            f"{np.sum(codes == -2)} rows have labels that the model does not know "
            f"({', '.join(strangers[:5])}{', ...' if len(strangers) > 5 else ''}); they count as "
            "negative"
        )
    return codes, found


def classes_wanted(
    codes: np.ndarray, labels: list[str], asked: int | None, source: str, found: list[str]
) -> list[int]:
    """The classes to draw: the one asked for, the larger of two, or all that rows have."""
    present = np.unique(codes)
    if present.size < 2 or not np.any(present >= 0):
        which = [labels[k] if k >= 0 else "unknown to the model" for k in present]
        raise DataError(
            source,
            None,
            f"every label is {which[0]}" if which else "no row has a label",
            f"a curve needs rows of two classes of the model ({', '.join(labels[:10])})",
        )
    if asked is not None or len(labels) == 2:
        return [1 if asked is None else asked]
    absent = [labels[k] for k in range(len(labels)) if k not in present]
    if absent:
        names = ", ".join(absent[:5]) + (", ..." if len(absent) > 5 else "")
        found.append(f"{source} has no rows of class {names}; no curve of it")
    return [int(k) for k in present if k >= 0]


def decision_values(model: Model, dataset: Dataset, threads: int, found: list[str]) -> np.ndarray:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        decision = model.decision_function(
            dataset.X,
            threads=threads,
            from_sparse_text=dataset.from_sparse_text,
            source=dataset.source,
        )
    found += [str(warning.message) for warning in caught]
    return decision


def compare(first: JudgedModel, second: JudgedModel, confidence: float) -> dict[str, Any]:
    """The comparison of two models on the same rows, for a report."""
    pairs = [
        compare_scores(a, b, confidence) for a, b in zip(first.curves, second.curves, strict=True)
    ]
    is_weighted = first.curves[0].interval is None
    test = None if is_weighted else mcnemar(first.is_right, second.is_right, confidence=confidence)
    return {
        "models": [first.path, second.path],
        **(pairs[0] if len(pairs) == 1 else {"classes": pairs}),
        "accuracy_difference": first.accuracy - second.accuracy,
        "mcnemar_p": None if test is None else test.p_value,
        "mcnemar": None if test is None else test.summary(),
    }
