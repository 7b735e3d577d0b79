"""What ``kfu roc`` writes: points of curves, pictures, and the summary for people.

Points: a header line and a line per point, thresholds falling from inf:

    threshold  fpr  tpr  precision  recall  model  class

With an average over several --scores files there are two more columns, tpr_std and precision_std,
filled in the lines of the average: there ``tpr`` is the mean at this ``fpr``, ``precision`` is the
mean at this ``recall``, and the threshold is empty.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from kfu.cli.plot import fixed_metadata
from kfu.data import format_label
from kfu.io.atomic import atomic_output
from kfu.report import figure, print_table
from kfu.validation.curve_pictures import draw_curves
from kfu.validation.curves import AverageCurve
from kfu.validation.judged_models import JudgedModel
from kfu.validation.scored_rows import ScoredRows

COLUMNS = ("threshold", "fpr", "tpr", "precision", "recall", "model", "class")
MOST_NAMED = 8  # with more classes only the macro average has a name in the picture


def write_points(path: str, curves: Sequence[ScoredRows], average: AverageCurve | None) -> None:
    delimiter = "," if path.lower().endswith(".csv") else "\t"
    more = () if average is None else ("tpr_std", "precision_std")
    blank = [""] * len(more)
    with atomic_output(path, "w") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow([*COLUMNS, *more])
        for scored in curves:
            curve = scored.curve
            columns = (curve.thresholds, curve.fpr, curve.tpr, curve.precision, curve.recall)
            for point in np.column_stack(columns).tolist():
                writer.writerow([*point, scored.name, scored.positive, *blank])
        if average is not None:
            name = f"average of {average.n_runs} runs"
            means = (average.tpr, average.precision, average.tpr_std, average.precision_std)
            for rate, *values in zip(average.grid, *means, strict=True):
                tpr, precision, tpr_std, precision_std = map(float, values)
                row = ["", float(rate), tpr, precision, float(rate), name, curves[-1].positive]
                writer.writerow([*row, tpr_std, precision_std])


def negative_name(judged: JudgedModel) -> str:
    labels = [format_label(value) for value in judged.model.classes]
    rest = [label for label in labels if label != judged.curves[0].positive]
    return rest[0] if len(rest) == 1 else f"not {judged.curves[0].positive}"


def draw_all(
    picture: Any, models: list[JudgedModel], runs: list[ScoredRows], average: AverageCurve | None
) -> None:
    several = len(models) > 1
    curves, thin, averages = [], [], []
    for judged in models:
        name = os.path.basename(judged.path)
        if judged.average is None:
            curves.append((name, judged.curves[0].curve))
            continue
        prefix = f"{name}, " if several else ""
        averages.append((f"{prefix}macro average", judged.average))
        if len(judged.curves) > MOST_NAMED:
            thin += [scored.curve for scored in judged.curves]
        else:
            curves += [(prefix + scored.positive, scored.curve) for scored in judged.curves]
    if average is None:
        curves += [(os.path.basename(run.name), run.curve) for run in runs]
    else:
        thin += [run.curve for run in runs]
        averages.append((f"average of {len(runs)} runs", average))
    draw_curves(picture, curves, thin, averages)


def save(picture: Any, path: str, dpi: int) -> None:
    ending = os.path.splitext(path)[1].lower()[1:]
    with atomic_output(path, "wb") as stream:
        picture.savefig(stream, format=ending, dpi=dpi, metadata=fixed_metadata(ending))


def print_summary(content: dict[str, Any], to_stderr: bool) -> None:
    """One curve as lines, several as a table; then what was compared."""
    rows: list[tuple[str, dict[str, Any]]] = []
    for model in content["models"]:
        for entry in model.get("classes", [model]):
            rows.append((model["model"], entry))
        if "classes" in model:
            rows.append((model["model"], {**model, "positive": "macro"}))
    rows += [(run["scores"], run) for run in content["runs"]]
    if len(rows) == 1:
        print_table(["", ""], facts_of(rows[0][1], content["confidence"]), to_stderr=to_stderr)
    else:
        header = ["model", "class", "auc", "low", "high", "average precision"]
        header += ["best accuracy", "at", "best youden", "at"]
        table = [cells_of(name, entry) for name, entry in rows]
        print_table(header, table, to_stderr=to_stderr)
    average = content["average"]
    if average is not None:
        facts = [
            [name, f"{figure(average[key])} (std {figure(average[key + '_std'])})"]
            for name, key in (("auc", "auc"), ("average precision", "average_precision"))
        ]
        title = f"average of {average['n_runs']} runs"
        print_table(["", ""], facts, title=title, to_stderr=to_stderr)
    for comparison in content["comparisons"]:
        print_comparison(comparison, to_stderr)


def facts_of(entry: dict[str, Any], confidence: float) -> list[list[str]]:
    n_positive, n_negative = entry["n_positive"], entry["n_negative"]
    accuracy, youden = entry["best_accuracy"], entry["best_youden"]
    interval = ""
    if entry["auc_low"] is not None and np.isfinite(entry["auc_low"]):
        low, high = figure(entry["auc_low"]), figure(entry["auc_high"])
        interval = f" ({low} to {high}, confidence {confidence:g})"
    return [
        ["rows", f"{n_positive + n_negative} ({n_positive} of class {entry['positive']})"],
        ["auc", figure(entry["auc"]) + interval],
        ["average precision", figure(entry["average_precision"])],
        ["best accuracy", f"{figure(accuracy['accuracy'])} at {figure(accuracy['threshold'])}"],
        [
            "best youden",
            f"{figure(youden['youden'])} at {figure(youden['threshold'])} "
            f"(tpr {figure(youden['tpr'])}, fpr {figure(youden['fpr'])})",
        ],
    ]


def cells_of(name: str, entry: dict[str, Any]) -> list[Any]:
    accuracy, youden = entry.get("best_accuracy", {}), entry.get("best_youden", {})
    keys = ("auc", "auc_low", "auc_high", "average_precision")
    return [
        name,
        entry.get("positive") or "-",
        *(figure(entry.get(key)) for key in keys),
        figure(accuracy.get("accuracy")),
        figure(accuracy.get("threshold")),
        figure(youden.get("youden")),
        figure(youden.get("threshold")),
    ]


def print_comparison(comparison: dict[str, Any], to_stderr: bool) -> None:
    first, second = comparison["models"]
    header = ["class", "auc difference", "low", "high", "DeLong p", "correlation"]
    keys = ["positive", "auc_difference", "auc_difference_low", "auc_difference_high"]
    keys += ["delong_p", "correlation"]
    rows = [[entry[key] for key in keys] for entry in comparison.get("classes", [comparison])]
    print_table(header, rows, title=f"{first} less {second}", to_stderr=to_stderr)
    facts = [["accuracy difference", figure(comparison["accuracy_difference"])]]
    facts.append(["McNemar p", figure(comparison["mcnemar_p"])])
    print_table(["", ""], facts, to_stderr=to_stderr)
