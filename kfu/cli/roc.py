"""``kfu roc``: ROC and precision-recall curves of models on labelled data, and of files of scores.

A row is called positive where its score is at least the threshold. The positive class of two is the
larger one; of a model of more classes every class in turn, against the rest, and the macro average.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from kfu.cli import console, inputs, options
from kfu.cli.file_kind import load_any_model
from kfu.cli.main import nearest
from kfu.cli.parameters import Number
from kfu.cli.plot import PICTURE_SUFFIXES
from kfu.cli.predict import base_hint, unfinished, zero_based_of
from kfu.cli.roc_output import draw_all, negative_name, print_summary, save, write_points
from kfu.cli.row_weights import row_weights
from kfu.errors import SettingsError
from kfu.model import Model
from kfu.report import Confusion, write_json
from kfu.validation.curve_pictures import draw_crossplot, make_figure
from kfu.validation.curves import AverageCurve, average_curves
from kfu.validation.judged_models import JudgedModel, check_alike, compare, judge_models
from kfu.validation.scored_rows import ScoredRows, positive_label, read_scores, score_rows


@click.command(
    epilog="""\b
Examples:
  kfu roc heart.kfu heart.t
  kfu roc heart.kfu heart.t --with linear.kfu --plot roc.png --crossplot cross.png
  kfu roc wine.kfu wine.t --positive 2 -o wine-2.csv
  kfu roc --scores run1.txt --scores run2.txt --scores run3.txt --plot runs.pdf
"""
)
@click.argument("model_path", metavar="[MODEL", required=False)
@click.argument("data", metavar="DATA]", required=False)
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="MODEL",
    help="Another model, compared with MODEL on the same rows; repeatable.",
)
@click.option(
    "--scores",
    "score_files",
    multiple=True,
    metavar="FILE",
    help="A file with a label and a score in each line; repeatable: several are runs, whose curves "
    "are averaged (vertically) with their spread. MODEL and DATA may then be left out.",
)
@click.option(
    "--positive",
    metavar="LABEL",
    help="The positive class, against all others.  [default: the larger of two; of more, each]",
)
@click.option(
    "-o",
    "--out",
    "out",
    metavar="FILE",
    help="File for the points of the curves: comma-separated (.csv) or tab-separated; '-' is "
    "stdout.",
)
@click.option("--plot", "plot_file", metavar="P.png", help="Draw ROC and precision-recall curves.")
@click.option(
    "--crossplot",
    "crossplot_file",
    metavar="P.png",
    help="Draw the decision values of MODEL against those of the one --with model.",
)
@click.option(
    "--confidence",
    type=Number(0, strict=True),
    default=0.95,
    show_default=True,
    help="Confidence of the intervals.",
)
@click.option(
    "--weights",
    "weights_file",
    metavar="FILE",
    help="Count each row so many times: one number per line, in the order of DATA. (Intervals and "
    "tests are then left out.)",
)
@click.option(
    "--dpi", type=Number(20, integer=True), default=150, show_default=True, help="Dots per inch."
)
@options.data_options
@options.common_options
def roc(
    model_path: str | None,
    data: str | None,
    others: tuple[str, ...],
    score_files: tuple[str, ...],
    positive: str | None,
    out: str | None,
    plot_file: str | None,
    crossplot_file: str | None,
    confidence: float,
    weights_file: str | None,
    dpi: int,
    seed: int,
    report: str | None,
    **opts: Any,
) -> None:
    """Draw and judge ROC curves of models on DATA.

    Prints the area under the ROC curve with its interval (DeLong), the average precision, and the
    thresholds with the best accuracy and the best tpr - fpr (Youden). Two models on the same rows
    are compared by DeLong's and McNemar's tests.
    """
    check_usage(model_path, data, others, score_files, crossplot_file, confidence)
    outputs = {"-o": out, "--report": report, "--plot": plot_file, "--crossplot": crossplot_file}
    if weights_file is not None and model_path is None:
        raise SettingsError("--weights are those of DATA's rows; give MODEL and DATA")
    if out == "-" and report == "-":
        raise SettingsError("the points and the report cannot both go to stdout; give -o a file")
    inputs.check_distinct(outputs, [model_path, data, weights_file, *others, *score_files])
    for option, path in outputs.items():
        inputs.check_output(path, f"choose another with {option}")
    check_pictures([plot_file, crossplot_file])

    models: list[JudgedModel] = []
    found: list[str] = []
    if model_path is not None and data is not None:
        loaded = [(path, load_any_model(path)) for path in (model_path, *others)]
        models, found = judge_data(loaded, data, positive, weights_file, confidence, opts)
    if crossplot_file is not None and len(models[0].curves) > 1:
        raise SettingsError("--crossplot shows one class; choose it with --positive")
    runs = read_runs(score_files, models, positive, confidence)
    average = average_curves([run.curve for run in runs]) if len(runs) > 1 else None
    comparisons = [compare(models[0], other, confidence) for other in models[1:]]
    for message in found:
        console.warn(message)

    if out is not None:
        write_points(out, [*(c for judged in models for c in judged.curves), *runs], average)
    if plot_file is not None:
        picture = make_figure(11, 5.4)
        draw_all(picture, models, runs, average)
        save(picture, plot_file, dpi)
    if crossplot_file is not None:
        picture = make_figure(6.4, 5.8)
        first, second = (judged.curves[0] for judged in models)
        drawn = draw_crossplot(picture, first, second, negative_name(models[0]), seed)
        if drawn < first.scores.size:
            console.note(f"{drawn} of {first.scores.size} rows are drawn")
        save(picture, crossplot_file, dpi)
    content = {
        "status": "done",
        "n": int(models[0].is_right.size) if models else None,
        "confidence": confidence,
        "models": [judged.summary() for judged in models],
        "comparisons": comparisons,
        "runs": [{"scores": run.name, **run.summary()} for run in runs],
        "average": None if average is None else average_summary(average),
        "warnings": found,
    }
    if report is not None:
        write_json(report, content)
    if not console.is_quiet() and report != "-":
        print_summary(content, to_stderr=out == "-")


def check_usage(
    model: str | None,
    data: str | None,
    others: Sequence[str],
    score_files: Sequence[str],
    crossplot: str | None,
    confidence: float,
) -> None:
    """SettingsError for a combination that makes no sense."""
    if model is not None and data is None:
        raise SettingsError(f"{model} without data; give MODEL and DATA, or --scores files alone")
    if model is None and not score_files:
        raise SettingsError("nothing to draw; give MODEL and DATA, or --scores FILE")
    if model is None and others:
        raise SettingsError("--with compares with MODEL; give MODEL and DATA")
    if crossplot is not None and len(others) != 1:
        raise SettingsError(f"--crossplot shows two models; give one --with, not {len(others)}")
    if [data, *score_files].count("-") > 1:
        raise SettingsError("stdin (-) can be read once")
    if confidence >= 1:
        raise SettingsError(f"--confidence {confidence:g}; give a number below 1, like 0.95")


def check_pictures(paths: Sequence[str | None]) -> None:
    """Fail before the work when a picture has no name of one, or nothing to draw it with."""
    for path in paths:
        if path is None:
            continue
        if os.path.splitext(path)[1].lower() not in PICTURE_SUFFIXES:
            raise SettingsError(f"{path}: not the name of a picture; end it in .png, .pdf or .svg")
        make_figure(1, 1)


# ---- models ---------------------------------------------------------------------------------


def judge_data(
    models: Sequence[tuple[str, Model]],
    data: str,
    positive: str | None,
    weights_file: str | None,
    confidence: float,
    opts: dict[str, Any],
) -> tuple[list[JudgedModel], list[str]]:
    """Each model, given with its path, on the rows of ``data``; and what is to be warned of."""
    check_alike(models)
    path, first = models[0]
    wanted = None if positive is None else class_asked(positive, Confusion(first.classes), path)
    dataset = inputs.read_data(
        data,
        opts,
        zero_based=zero_based_of(first, opts["zero_based"]),
        precomputed=first.is_precomputed,
    )
    judged, found = judge_models(
        models,
        dataset,
        positive=wanted,
        weights=row_weights(weights_file, dataset),
        confidence=confidence,
        threads=opts["threads"],
    )
    if opts["zero_based"] is None:
        found = [text + base_hint(text, first) for text in found]
    for path, model in models:
        found += unfinished(model, path)
    return judged, found


def class_asked(positive: str, confusion: Confusion, path: str) -> int:
    k = confusion.code_of(positive)
    if k < 0:
        names = confusion.labels
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise SettingsError(
            f"--positive {positive}: the classes of {path} are {shown}{nearest(positive, names)}"
        )
    return k


# ---- files of scores ------------------------------------------------------------------------


def read_runs(
    files: Sequence[str], models: list[JudgedModel], positive: str | None, confidence: float
) -> list[ScoredRows]:
    """The rows of --scores files; their positive class is that of the models, if there are any."""
    if not files:
        return []
    if models:
        if len(models[0].curves) > 1:
            raise SettingsError("--scores hold one class; choose that of the model with --positive")
        positive = models[0].curves[0].positive
    columns = [read_scores(path) for path in files]
    label = positive_label([labels for labels, _ in columns], list(files), positive)
    return [
        score_rows(path, label, labels == label, scores, None, confidence)
        for path, (labels, scores) in zip(files, columns, strict=True)
    ]


def average_summary(average: AverageCurve) -> dict[str, Any]:
    keys = ("n_runs", "auc", "auc_std", "average_precision", "average_precision_std")
    return {key: getattr(average, key) for key in keys}
