"""Pictures of validation: ROC and precision-recall curves side by side, and crossplots.

matplotlib is needed when a figure is made, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kfu.errors import KfuError
from kfu.validation.curves import AverageCurve, Curve
from kfu.validation.regression_scores import correlation
from kfu.validation.scored_rows import ScoredRows

__all__ = ["draw_crossplot", "draw_curves", "make_figure"]

# Colour-blind safe (Okabe and Ito), one per curve in turn.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
RUN, CHANCE, AVERAGE = "#9a9a9a", "#777777", "#222222"
MOST_POINTS = 5000


def make_figure(width: float, height: float) -> Any:
    """An empty figure, without pyplot (no window system, no global state), or KfuError."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise KfuError("pictures need matplotlib; pip install 'kfu[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def draw_curves(
    figure: Any,
    curves: Sequence[tuple[str, Curve]],
    runs: Sequence[Curve] = (),
    averages: Sequence[tuple[str, AverageCurve]] = (),
) -> None:
    """ROC (left) and precision-recall (right) of named curves; ``runs`` thin and without names,
    ``averages`` thick with a band of one standard deviation."""
    roc, pr = figure.subplots(1, 2)
    roc.plot([0, 1], [0, 1], color=CHANCE, linestyle="dotted", linewidth=1.0)
    shares = {
        curve.positives / (curve.positives + curve.negatives)
        for curve in [*runs, *(curve for _, curve in curves)]
    }
    if len(shares) == 1:
        pr.axhline(shares.pop(), color=CHANCE, linestyle="dotted", linewidth=1.0)
    for curve in runs:
        draw_one(roc, pr, curve, color=RUN, linewidth=0.6)
    for k, (name, curve) in enumerate(curves):
        draw_one(roc, pr, curve, name, color=COLOURS[k % len(COLOURS)], linewidth=1.6)
    for k, (name, average) in enumerate(averages):
        style = ("solid", "dashed", "dashdot")[k % 3]
        draw_average(roc, pr, average, name, style)
    roc.set_xlabel("false positive rate")
    roc.set_ylabel("true positive rate")
    roc.set_title("ROC")
    pr.set_xlabel("recall")
    pr.set_ylabel("precision")
    pr.set_title("precision-recall")
    for axes, corner in ((roc, "lower right"), (pr, "lower left")):
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.02)
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
        axes.legend(loc=corner, fontsize=8, framealpha=0.9)


def draw_one(roc: Any, pr: Any, curve: Curve, name: str | None = None, **style: Any) -> None:
    """Precision is drawn in steps, whose area is the average precision."""
    labels = ("", "") if name is None else areas(name, curve.auc, curve.average_precision)
    named = [{"label": label} if label else {} for label in labels]
    roc.plot(curve.fpr, curve.tpr, **named[0], **style)
    precision = curve.precision.copy()
    precision[0] = precision[1]
    pr.plot(curve.recall, precision, drawstyle="steps-pre", **named[1], **style)


def draw_average(roc: Any, pr: Any, average: AverageCurve, name: str, style: str) -> None:
    grid = average.grid
    labels = areas(name, average.auc, average.average_precision)
    x, y = np.append(0.0, grid), np.append(0.0, average.tpr)  # a curve starts at (0, 0)
    roc.plot(x, y, color=AVERAGE, linewidth=2.2, linestyle=style, label=labels[0])
    pr.plot(grid, average.precision, color=AVERAGE, linewidth=2.2, linestyle=style, label=labels[1])
    for axes, middle, spread in (
        (roc, average.tpr, average.tpr_std),
        (pr, average.precision, average.precision_std),
    ):
        low, high = np.clip(middle - spread, 0, 1), np.clip(middle + spread, 0, 1)
        axes.fill_between(grid, low, high, color=AVERAGE, alpha=0.15, linewidth=0)


def areas(name: str, area: float, precision: float) -> tuple[str, str]:
    return f"{name} (AUC {area:.4f})", f"{name} (AP {precision:.4f})"


def draw_crossplot(
    figure: Any, first: ScoredRows, second: ScoredRows, negative: str, seed: int = 0
) -> int:
    """Scatter of two models' scores of the same rows, coloured by the label; returns the number of
    rows drawn (at most MOST_POINTS, chosen by ``seed``)."""
    axes = figure.add_subplot()
    rows = np.arange(first.scores.size)
    if rows.size > MOST_POINTS:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MOST_POINTS, replace=False))
    for line in (axes.axhline, axes.axvline):
        line(0.0, color=CHANCE, linewidth=0.8)
    for label, wanted, colour in (
        (negative, False, COLOURS[0]),
        (first.positive, True, COLOURS[1]),
    ):
        of = rows[first.is_positive[rows] == wanted]
        axes.scatter(
            first.scores[of],
            second.scores[of],
            s=14,
            color=colour,
            alpha=0.7,
            edgecolors="white",
            linewidths=0.3,
            label=label,
        )
    axes.set_xlabel(first.name)
    axes.set_ylabel(second.name)
    axes.set_title(f"decision values, correlation {correlation(first.scores, second.scores):.4f}")
    axes.grid(alpha=0.25)
    axes.legend(loc="best", fontsize=8, framealpha=0.9, title="label")
    return int(rows.size)
