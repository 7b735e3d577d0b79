"""Pictures of an experiment: curves over what was varied, figures of repeated runs as bars.

matplotlib is optional: without it no picture is drawn, and `None` says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kfu.experiment.expect import Summary, Verdict
from kfu.experiment.runner import ExperimentResult
from kfu.experiment.steps import STEPS
from kfu.io.atomic import atomic_output

INK, EXPECTED, POINT = "#0072B2", "#D55E00", "#56B4E9"


def figure_class() -> Any | None:
    """matplotlib's Figure, used without pyplot (no window, no global state); None if missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    return Figure


def save(picture: Any, file: Path) -> Path:
    with atomic_output(str(file)) as stream:
        picture.savefig(stream, format="png", dpi=130)
    return file


def chosen_figures(result: ExperimentResult) -> list[str]:
    """What is worth drawing: the expected figures, else the rates of the predict steps."""
    names = dict.fromkeys(name for group in result.figures for name in group)
    shared = [name for name in names if panel_of(result, name) != name]
    expected = dict.fromkeys(verdict.expectation.figure for verdict in result.verdicts)
    if expected:
        return list(dict.fromkeys([*shared, *expected]))
    return [name for name in names if name.endswith(".error") or name in shared]


def panel_of(result: ExperimentResult, name: str) -> str:
    """The panel a figure is drawn in: its own, or that of the step that draws it with others."""
    label, _, rest = name.partition(".")
    for step in result.plan.steps:
        if step.label == label and rest in STEPS[step.name].together:
            return label
    return name


def draw_figures(result: ExperimentResult, folder: Path) -> Path | None:
    """The picture that fits the experiment; None when there is nothing to draw, or nothing to
    draw it with."""
    names = [n for n in chosen_figures(result) if any(n in group for group in result.figures)]
    make = figure_class()
    is_single = len(result.figures) == 1 and all(
        len(result.figures[0][name].values) == 1 for name in names
    )
    if make is None or not names or is_single:
        return None
    panels: dict[str, list[str]] = {}
    for name in names:
        # Bars have the variants beside each other: a panel for each figure.
        panel = panel_of(result, name) if curve_key(result) is not None else name
        panels.setdefault(panel, []).append(name)
    picture = make(figsize=(6.4, 2.2 + 2.2 * len(panels)), layout="constrained")
    for k, (panel, drawn) in enumerate(panels.items()):
        axes = picture.add_subplot(len(panels), 1, k + 1)
        for name in drawn:
            if curve_key(result) is not None:
                draw_curve(axes, result, name, "" if len(drawn) == 1 else name.partition(".")[2])
            else:
                draw_bars(axes, result, name)
        axes.set_ylabel(panel)
        axes.grid(alpha=0.3)
    picture.suptitle(result.plan.name)
    folder.mkdir(parents=True, exist_ok=True)
    return save(picture, folder / "figures.png")


def curve_key(result: ExperimentResult) -> str | None:
    """The option to draw a curve over: the first varied one with more than one number."""
    for key, values in result.plan.vary.items():
        if len(values) > 1 and all(isinstance(value, (int, float)) for value in values):
            return key
    return None


def draw_curve(axes: Any, result: ExperimentResult, name: str, title: str = "") -> None:
    """The figure (mean and spread) over the varied option, a line for each other combination.
    `title` tells it from others in the same axes."""
    key = curve_key(result)
    assert key is not None
    lines: dict[str, list[tuple[float, Summary]]] = {}
    for variant, group in zip(result.plan.variants(), result.figures, strict=True):
        if name in group:
            rest = ", ".join(f"{k}={v}" for k, v in variant.items() if k != key)
            lines.setdefault(rest, []).append((float(variant[key]), group[name]))
    for rest, points in lines.items():
        points.sort(key=lambda point: point[0])
        axes.errorbar(
            [x for x, _ in points],
            [summary.mean for _, summary in points],
            yerr=[summary.sd or 0.0 for _, summary in points],
            marker="o",
            capsize=3,
            label=", ".join(part for part in (title, rest) if part) or None,
        )
    values = [float(value) for value in result.plan.vary[key]]
    if min(values) > 0 and max(values) >= 20 * min(values):
        axes.set_xscale("log")
    axes.set_xlabel(key)
    if any(lines) or title:
        axes.legend(fontsize=8)
    for verdict in verdicts_of(result, name):
        if key in verdict.variant:
            draw_expected(axes, verdict, float(verdict.variant[key]))


def draw_bars(axes: Any, result: ExperimentResult, name: str) -> None:
    """Mean and spread for each variant, every part as a point, what was expected beside it."""
    labels = []
    for k, (variant, group) in enumerate(zip(result.plan.variants(), result.figures, strict=True)):
        labels.append(", ".join(str(value) for value in variant.values()) or "obtained")
        if name not in group:
            continue
        summary = group[name]
        axes.errorbar(
            [k], [summary.mean], yerr=[summary.sd or 0.0], fmt="o", color=INK, capsize=6, zorder=3
        )
        axes.scatter([k - 0.12] * len(summary.values), summary.values, s=12, color=POINT, alpha=0.6)
    for verdict in verdicts_of(result, name):
        draw_expected(axes, verdict, result.plan.variants().index(verdict.variant) + 0.15)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.6, len(labels) - 0.4)


def verdicts_of(result: ExperimentResult, name: str) -> list[Verdict]:
    return [verdict for verdict in result.verdicts if verdict.expectation.figure == name]


def draw_expected(axes: Any, verdict: Verdict, x: float) -> None:
    """The interval expected; an open end is drawn as a triangle at its bound."""
    low, high = verdict.expectation.low, verdict.expectation.high
    if low > -float("inf") and high < float("inf"):
        middle = (low + high) / 2
        axes.errorbar([x], [middle], yerr=[(high - low) / 2], fmt="_", color=EXPECTED, capsize=6)
    elif low > -float("inf"):
        axes.scatter([x], [low], marker="^", color=EXPECTED)
    else:
        axes.scatter([x], [high], marker="v", color=EXPECTED)
