"""Pictures of estimates: of one machine as points, along a parameter as curves.

Errors are in the upper part, other quantities (which may be of any size) in the lower one with a
logarithmic axis. Values whose theorem does not hold are drawn hollow.
"""

from __future__ import annotations

from typing import Any

from kfu.estimates.sweep import Sweep
from kfu.estimates.table import LeaveOneOut
from kfu.validation.curve_pictures import COLOURS, make_figure

ERRORS = ("leave-one-out error", "leave-one-out error in expectation", "error on new rows")
MARKERS = "osD^vPX<>*"


def is_error(estimates: list[Any]) -> bool:
    """Whether an estimate is of an error, and at most 1 somewhere."""
    known = [e for e in estimates if e.value is not None]
    return all(e.of in ERRORS for e in known) and any(e.value <= 1.0 for e in known)


def draw_sweep(sweep: Sweep) -> Any:
    upper: list[str] = []
    lower: list[str] = []
    for name in sweep.names:
        if sweep.is_from_below(name):
            continue
        found = [point[name] for point in sweep.points if name in point]
        (upper if is_error(found) else lower).append(name)
    has_errors = bool(upper)
    if not has_errors:
        upper, lower = lower, []
    has_test = any(error is not None for error in sweep.test_errors)
    parts = 1 + bool(lower)
    picture = make_figure(8.0, 4.6 * parts)
    axes = picture.subplots(parts, 1, squeeze=False)[:, 0]
    colours = {name: k for k, name in enumerate(sweep.names)}
    for part, names in zip(axes, [upper, lower], strict=False):
        for name in names:
            _draw_curve(part, sweep, name, colours[name])
        part.set_xlabel(sweep.plan.label)
        part.set_xscale("log")
        part.grid(alpha=0.25)
    if has_test:
        values = [float("nan") if v is None else v for v in sweep.test_errors]
        axes[0].plot(sweep.plan.values, values, color="black", linewidth=2.2, label="test")
    axes[0].set_ylabel("error" if has_errors else "value")
    if has_errors:
        axes[0].set_ylim(0.0, min(1.05, 1.1 * _largest(sweep, upper)))
    if lower:
        axes[1].set_yscale("log")
        axes[1].set_ylabel("value")
    for part in axes:
        part.legend(fontsize=8, ncol=2)
    return picture


def _draw_curve(axes: Any, sweep: Sweep, name: str, number: int) -> None:
    values = [float("nan") if v is None else v for v in sweep.curve(name)]
    holds = [v is not None for v in sweep.curve(name, only_valid=True)]
    colour = COLOURS[number % len(COLOURS)]
    style = "-" if number < len(COLOURS) else "--"
    axes.plot(sweep.plan.values, values, style, color=colour, linewidth=1.2, label=name)
    face = [colour if held else "white" for held in holds]
    marker = MARKERS[number % len(MARKERS)]
    axes.scatter(
        sweep.plan.values, values, c=face, edgecolors=colour, marker=marker, s=22, zorder=3
    )


def _largest(sweep: Sweep, names: list[str]) -> float:
    known = [v for name in names for v in sweep.curve(name) if v is not None]
    return max([0.1, *known, *(e for e in sweep.test_errors if e is not None)])


def draw_estimates(found: LeaveOneOut) -> Any:
    """Values of one machine, the exact one and the test error as lines."""
    shown = [e for e in found if e.value is not None and e.of in ERRORS and e.value <= 1.5]
    shown = shown or [e for e in found if e.value is not None]
    picture = make_figure(7.0, 1.2 + 0.32 * max(len(shown), 3))
    axes = picture.add_subplot()
    for place, estimate in enumerate(reversed(shown)):
        colour = COLOURS[{"exact": 7, "estimate": 0, "bound": 1}[estimate.kind]]
        face = colour if estimate.valid else "white"
        axes.scatter([estimate.value], [place], c=[face], edgecolors=colour, zorder=3)
    axes.set_yticks(range(len(shown)), [estimate.name for estimate in reversed(shown)])
    for estimate in shown:
        if estimate.kind == "exact":
            axes.axvline(estimate.value, color=COLOURS[7], linewidth=0.8)
    if found.test_error is not None:
        axes.axvline(found.test_error, color=COLOURS[2], linestyle="--", label="test")
        axes.legend(fontsize=8)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("error" if all(e.of in ERRORS for e in shown) else "value")
    axes.grid(alpha=0.25)
    return picture
