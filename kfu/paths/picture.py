"""A path as one figure: coefficients, sizes of the sets and errors against the parameter.

matplotlib is needed when a figure is made, not before; without pyplot, so that there is no window
system and no global state.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.errors import SettingsError
from kfu.io.atomic import atomic_output
from kfu.paths.shown_path import ShownPath, shown_path
from kfu.paths.step_function import StepFunction
from kfu.validation.curve_pictures import make_figure

if TYPE_CHECKING:
    from kfu.paths.path import RegularisationPath
    from kfu.paths.selection import Choice, ValidationCurves

__all__ = ["PICTURE_SUFFIXES", "check_picture_name", "draw", "draw_shown", "write_picture"]

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
# Colour-blind safe (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, INK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222"
SETS = (
    ("n_margin", "margin", GREEN),
    ("n_error", "error (at the cost bound)", ORANGE),
    ("n_correct", "correct (coefficient 0)", BLUE),
)
ERRORS = {"training": (INK, 1.0), "validation": (PURPLE, 1.4)}
MOST_FOLDS = 20  # drawn one by one; more are in the mean alone


def check_picture_name(file: str) -> str:
    """The format of a picture by its name: png, pdf or svg; SettingsError for another."""
    ending = os.path.splitext(file)[1].lower()
    if ending not in PICTURE_SUFFIXES:
        raise SettingsError(f"{file}: not the name of a picture; end it in .png, .pdf or .svg")
    return ending[1:]


def draw(
    path: RegularisationPath,
    file: str,
    *,
    folds: ValidationCurves | None = None,
    choice: Choice | None = None,
    dpi: int = 150,
) -> None:
    """One figure of a path: coefficients, sizes of the sets, errors; `folds` adds the mean of its
    splits with a band of one standard error, `choice` marks the λ chosen."""
    check_picture_name(file)
    make_figure(1.0, 1.0)  # says that matplotlib is missing before anything is computed
    write_picture(shown_path(path, folds=folds, choice=choice), file, dpi=dpi)


def write_picture(shown: ShownPath, file: str, *, dpi: int = 150) -> None:
    """Draw `shown` and write it; the name's ending chooses the format."""
    ending = check_picture_name(file)
    figure = make_figure(8.0, 8.6)
    draw_shown(figure, shown)
    # Equal pictures are equal files: no dates.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending, {})
    with atomic_output(file, "wb") as stream:
        figure.savefig(stream, format=ending, dpi=dpi, metadata=metadata)


def draw_shown(figure: Any, shown: ShownPath) -> None:
    """Up to three panels, one below the other, that share the axis of the parameter; one without
    errors has no panel of them."""
    panels = [draw_coefficients, draw_sets, draw_errors]
    if shown.coefficients is None:
        panels.remove(draw_coefficients)
    if not shown.error_steps() and shown.folds is None:
        panels.remove(draw_errors)
    axes = np.atleast_1d(figure.subplots(len(panels), 1, sharex=True))
    for place, panel in zip(axes, panels, strict=True):
        panel(place, shown)
        place.grid(alpha=0.25)
        if shown.choice is not None:
            place.axvline(shown.choice.lam, color=INK, linewidth=1.0, linestyle="dashed")
    bottom = axes[-1]
    if shown.is_logarithmic:
        bottom.set_xscale("log")
    low, high = limits(shown)
    bottom.set_xlim(low, high)
    bottom.set_xlabel(shown.symbol)
    if shown.parameter == "lambda" and low > 0:
        top = axes[0].secondary_xaxis("top", functions=(inverse, inverse))
        top.set_xlabel("C = 1/λ")
    if shown.title:
        figure.suptitle(shown.title, fontsize=11)


def limits(shown: ShownPath) -> tuple[float, float]:
    low, high = float(shown.values.min()), float(shown.values.max())
    if shown.is_logarithmic:
        room = (high / low) ** 0.01 if high > low else 2.0
        return low / room, high * room
    room = 0.01 * (high - low) or 1.0
    return low - room, high + room


def inverse(x: Any) -> Any:
    """1/x; matplotlib asks at 0 too before it knows the limits."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.where(x == 0.0, np.inf, 1.0 / x)


def draw_steps(axes: Any, steps: StepFunction, **style: Any) -> None:
    axes.plot(
        steps.edges, np.append(steps.values, steps.values[-1]), drawstyle="steps-post", **style
    )


def draw_coefficients(axes: Any, shown: ShownPath) -> None:
    found = shown.coefficients
    assert found is not None
    count = found.rows.size
    line = {"linewidth": 0.7 if count > 40 else 1.0, "alpha": 0.45 if count > 40 else 0.8}
    sides = (found.positive, ORANGE), (~found.positive, BLUE)
    for (side, colour), name in zip(sides, found.names, strict=True):
        if side.any():
            lines = axes.plot(found.at, found.table[:, side], color=colour, **line)
            lines[0].set_label(name)
    axes.set_ylim(-0.03, 1.03)
    axes.set_ylabel("α / bound")
    drawn = f"{count} of {found.n} rows" if count < found.n else f"{count} rows"
    axes.set_title(f"coefficients ({drawn})", fontsize=9, loc="left")
    axes.legend(loc="upper right", fontsize=8, framealpha=0.9)


def draw_sets(axes: Any, shown: ShownPath) -> None:
    for column, name, colour in SETS:
        steps = shown.steps(column)
        if steps is None:
            axes.plot(shown.values, shown.columns[column], "o", color=colour, label=name)
        else:
            draw_steps(axes, steps, color=colour, linewidth=1.4, label=name)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("rows")
    axes.set_title("sizes of the sets", fontsize=9, loc="left")
    axes.legend(loc="best", fontsize=8, framealpha=0.9)


def draw_errors(axes: Any, shown: ShownPath) -> None:
    for name, steps in shown.error_steps().items():
        colour, width = ERRORS[name]
        draw_steps(axes, steps, color=colour, linewidth=width, label=name)
    if shown.folds is not None:
        draw_folds(axes, shown)
    if shown.choice is not None:
        choice = shown.choice
        axes.plot(
            [choice.lam],
            [choice.error],
            marker="o",
            color=INK,
            linestyle="none",
            label=f"chosen: {shown.symbol} = {choice.lam:.4g}, error {choice.error:.4g}",
        )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("error")
    axes.set_title("errors", fontsize=9, loc="left")
    axes.legend(loc="best", fontsize=8, framealpha=0.9)


def draw_folds(axes: Any, shown: ShownPath) -> None:
    folds = shown.folds
    assert folds is not None
    if len(folds.curves) <= MOST_FOLDS:
        for curve in folds.curves:
            draw_steps(axes, curve.error, color="#9a9a9a", linewidth=0.5)
    mean, error = folds.mean, folds.standard_error
    name = f"mean of {len(folds.curves)} splits"
    if not np.isnan(error.values).any():
        spread = np.append(error.values, error.values[-1])
        middle = np.append(mean.values, mean.values[-1])
        axes.fill_between(
            mean.edges,
            np.maximum(middle - spread, 0.0),
            middle + spread,
            step="post",
            color=BLUE,
            alpha=0.2,
            linewidth=0,
        )
        name += " ± standard error"
    draw_steps(axes, mean, color=BLUE, linewidth=1.6, label=name)
