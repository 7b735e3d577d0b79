"""ROC curves averaged over repetitions, one panel for each `panel` of the roc steps.

A curve without a panel is drawn in all of them. Curves of one name have one colour everywhere. The
averages are vertical: mean and standard deviation of the tpr at each fpr (Fawcett 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kfu.experiment.roc_step import ROC_GRID
from kfu.experiment.runner import ExperimentResult
from kfu.validation.curve_pictures import COLOURS

COLUMNS = 2
NEARLY_ALL = 0.95  # of the positives: where all curves have them, the rest is not shown
SMALLEST_REACH = 0.1


@dataclass(frozen=True)
class AveragedCurve:
    """The curve of one step over all parts of a variant."""

    name: str
    panel: str | None
    mean: np.ndarray  # tpr at ROC_GRID
    sd: np.ndarray
    area: float  # the mean of the areas
    n: int


def averaged_curves(result: ExperimentResult, variant: int = 0) -> list[AveragedCurve]:
    """In the order of the steps."""
    parts = [found for part, found in result.parts.items() if part.variant == variant]
    averaged = []
    for step in result.plan.steps:
        curves = [part.curves[step.label] for part in parts if step.label in part.curves]
        if step.name != "roc" or not curves:
            continue
        values = np.array(curves)
        name = str(step.options.get("curve", step.label))
        panel = step.options.get("panel")
        sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(ROC_GRID))
        area = result.figures[variant][f"{step.label}.auc"].mean
        averaged.append(AveragedCurve(name, panel, values.mean(axis=0), sd, area, len(values)))
    return averaged


def draw_roc(result: ExperimentResult, figure_class: Any) -> Any | None:
    """The picture; None without roc steps."""
    variants = result.plan.variants()
    panels: list[tuple[str, list[AveragedCurve]]] = []
    for k, variant in enumerate(variants):
        curves = averaged_curves(result, k)
        titles: list[str | None] = list(dict.fromkeys(c.panel for c in curves if c.panel)) or [None]
        said = ", ".join(f"{key}={value}" for key, value in variant.items())
        for title in titles if curves else []:
            shown = ", ".join(part for part in (said, title) if part)
            panels.append((shown, [c for c in curves if not c.panel or c.panel == title]))
    if not panels:
        return None
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    picture = figure_class(figsize=(4.6 * columns, 3.7 * rows + 0.4), layout="constrained")
    axes = picture.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    reach = reach_of([curve for _, curves in panels for curve in curves])
    names = dict.fromkeys(curve.name for _, curves in panels for curve in curves)
    colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    for place, (title, curves) in zip(axes, panels, strict=False):
        draw_panel(place, title, curves, colours)
    for place in axes[len(panels) :]:
        place.set_visible(False)
    for place in axes[: len(panels)]:
        place.set_xlim(0.0, reach)
        place.set_ylim(lowest(panels), 1.0)
    picture.supxlabel("false positive rate")
    picture.supylabel("true positive rate")
    picture.suptitle(result.plan.name)
    return picture


def draw_panel(axes: Any, title: str, curves: list[AveragedCurve], colours: dict[str, str]) -> None:
    for curve in curves:
        axes.plot(
            ROC_GRID,
            curve.mean,
            color=colours[curve.name],
            linestyle="dashed" if curve.panel is None and title else "solid",
            label=f"{curve.name}  {curve.area:.4f}",
        )
        if curve.n > 1:
            low, high = curve.mean - curve.sd, np.minimum(curve.mean + curve.sd, 1.0)
            axes.fill_between(
                ROC_GRID, low, high, color=colours[curve.name], alpha=0.15, linewidth=0
            )
    axes.set_title(title, fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right", title="mean area", title_fontsize=8)


def reach_of(curves: list[AveragedCurve]) -> float:
    """The largest fpr shown: where every curve has nearly all positives, but not too little."""
    worst = np.min([curve.mean for curve in curves], axis=0)
    enough = np.flatnonzero(worst >= NEARLY_ALL)
    return float(max(ROC_GRID[enough[0]], SMALLEST_REACH)) if enough.size else 1.0


def lowest(panels: list[tuple[str, list[AveragedCurve]]]) -> float:
    """The smallest tpr shown: that of the worst curve at an fpr of 1 %, rounded down to tenths."""
    at = int(np.searchsorted(ROC_GRID, 0.01))
    worst = min(float(curve.mean[at]) for _, curves in panels for curve in curves)
    return math.floor(10.0 * min(worst, 0.9)) / 10.0


def save_roc(result: ExperimentResult, folder: Path) -> Path | None:
    """NAME/roc.png; None when there is nothing to draw, or nothing to draw it with."""
    from kfu.experiment.pictures import figure_class, save

    make = figure_class()
    picture = None if make is None else draw_roc(result, make)
    if picture is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return save(picture, folder / "roc.png")
