"""What pictures and pages show of a path: its columns, coefficients of some rows, error curves.

Coefficients are scaled duals, |β_i| over the bound of the row's box: 0 for rows on the right side
of the margin, 1 at the cost bound. They are rebuilt at up to MOST_POINTS breakpoints (fewer where
margin sets are large, since each takes a solve of their size), chosen half by their number and half
by their place on the axis. Of many rows MOST_LINES are shown, evenly from those that ever change,
in the order in which they first do: early and late ones alike, and the same ones every time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.data import format_label
from kfu.machine_kinds import CLASSIFIER, NOVELTY, kind_of_machine
from kfu.paths.selection import Choice, ValidationCurves
from kfu.paths.step_function import StepFunction
from kfu.paths.validation import error_curve

if TYPE_CHECKING:
    from kfu.paths.path import RegularisationPath

MOST_LINES = 80
MOST_POINTS = 200
# Multiplications that all solves for coefficients together may take, about a second.
WORK = 2e10
FEWEST_POINTS = 20
SYMBOLS = {"lambda": "λ", "epsilon": "ε", "nu": "ν"}


@dataclass(frozen=True)
class Coefficients:
    """table[p, r]: the scaled coefficient of row rows[r] at the parameter value at[p]."""

    at: np.ndarray
    rows: np.ndarray
    table: np.ndarray
    positive: np.ndarray  # whether each row has the first of the two names
    names: tuple[str, str]  # of rows with β > 0 and β < 0
    n: int  # rows there are


@dataclass
class ShownPath:
    """Columns along the path (k = 0..m, in its order); what is not known is NaN."""

    parameter: str
    title: str
    values: np.ndarray
    columns: dict[str, np.ndarray]  # n_margin, n_error, n_correct, bias, objective, errors, kkt
    events: list[str]
    items: list[list[int]]
    curves: dict[str, StepFunction] = field(default_factory=dict)  # of errors, exact
    coefficients: Coefficients | None = None
    folds: ValidationCurves | None = None
    choice: Choice | None = None

    @property
    def symbol(self) -> str:
        return SYMBOLS.get(self.parameter, self.parameter)

    @property
    def is_logarithmic(self) -> bool:
        """λ spans orders of magnitude; ε and ν may be 0 and seldom do."""
        return self.parameter == "lambda" and bool(np.all(self.values > 0))

    def steps(self, name: str) -> StepFunction | None:
        """A column as the step function it is: what holds from a breakpoint to the next."""
        column = self.columns[name]
        if len(self.values) < 2 or np.isnan(column[:-1]).any():
            return None
        if self.values[0] == self.values[-1]:
            return None
        return StepFunction.of_pieces(self.values, column[:-1])

    def error_steps(self) -> dict[str, StepFunction]:
        """Error curves by name: exact ones, else the columns at the breakpoints."""
        found = {}
        for name, column in (("training", "train_error"), ("validation", "valid_error")):
            steps = self.curves.get(name) or self.steps(column)
            if steps is not None:
                found[name] = steps
        return found


FIGURES = (
    *("n_margin", "n_error", "n_correct"),
    *("bias", "objective", "train_error", "valid_error", "kkt"),
)


def shown_path(
    path: RegularisationPath,
    *,
    folds: ValidationCurves | None = None,
    choice: Choice | None = None,
    with_coefficients: bool = True,
) -> ShownPath:
    """Gather what is shown of a path; `folds` and `choice` where λ was chosen by them."""
    values = np.asarray(path.columns[path.parameter], dtype=np.float64)
    columns = {name: np.asarray(path.columns[name], dtype=np.float64) for name in FIGURES}
    records = list(path.records())
    shown = ShownPath(
        path.parameter,
        f"{path.machine}, {path.kernel.describe()}, {path.n} rows, {len(values)} breakpoints",
        values,
        columns,
        [record["event"] for record in records],
        [record["items"] for record in records],
        folds=folds,
        choice=choice,
    )
    track = path.track
    for name, of, counts, n in (
        ("training", "train", track.train_errors, path.n),
        ("validation", "valid", track.watch_errors, path.n_valid),
    ):
        if n and len(values) > 1 and np.size(counts) and counts[0] >= 0:
            steps = error_curve(track, n, of)
            ends = np.asarray(path.definition.value_of(steps.edges), dtype=np.float64)
            shown.curves[name] = StepFunction.of_pieces(ends, steps.values)
    if with_coefficients:
        shown.coefficients = coefficients_of(track, values, bounds_of(path), names_of(path))
    return shown


def names_of(path: RegularisationPath) -> tuple[str, str]:
    """What rows with β > 0 and with β < 0 are called."""
    kind = kind_of_machine(path.machine)
    if kind == CLASSIFIER and len(path.classes) == 2:
        low, high = (format_label(value) for value in path.classes)
        return f"class {high}", f"class {low}"
    return ("rows", "rows") if kind == NOVELTY else ("above the tube", "below the tube")


def bounds_of(path: RegularisationPath) -> np.ndarray:
    """The largest |β| that the box of each row allows at the first breakpoint; 0 where none."""
    problem, t = path.definition.problem(path.task), float(path.track.t[0])
    ends = problem.at("lower", t), problem.at("upper", t)
    bounds = np.maximum(np.abs(ends[0]), np.abs(ends[1]))
    return np.where(np.isfinite(bounds), bounds, 0.0)


def spread(values: np.ndarray, count: int, is_logarithmic: bool) -> np.ndarray:
    """Up to `count` places of `values`, half of them even in number, half even on the axis."""
    m = values.size
    if m <= count:
        return np.arange(m)
    by_number = np.linspace(0, m - 1, count // 2).round().astype(np.int64)
    axis = np.log(values) if is_logarithmic else values
    wanted = np.linspace(axis[0], axis[-1], count - count // 2)
    sign = -1.0 if axis[0] > axis[-1] else 1.0
    by_place = np.clip(np.searchsorted(sign * axis, sign * wanted), 0, m - 1)
    return np.unique(np.concatenate([by_number, by_place]))


def filled(places: np.ndarray, count: int) -> np.ndarray:
    """`places`, and others between those that are far apart on a logarithmic axis."""
    axis = np.log(places)
    widest = abs(axis[-1] - axis[0]) / count
    if not widest > 0.0:
        return places
    parts = [places[:1]]
    for k in range(1, places.size):
        n = math.ceil(abs(axis[k] - axis[k - 1]) / widest)
        inside = np.exp(np.linspace(axis[k - 1], axis[k], max(n, 1) + 1)[1:-1])
        parts += [inside, places[k : k + 1]]
    return np.concatenate(parts)


def rows_to_show(track: Any, n: int, most: int) -> np.ndarray:
    """Rows by number; evenly from those that change, by the place of their first change."""
    if n <= most:
        return np.arange(n)
    items = np.asarray(track.event_item)
    _, first = np.unique(items, return_index=True)
    changed = items[np.sort(first)]
    if changed.size > most:
        changed = changed[np.linspace(0, changed.size - 1, most).round().astype(np.int64)]
    return np.sort(changed)


def coefficients_of(
    track: Any,
    values: np.ndarray,
    bounds: np.ndarray,
    names: tuple[str, str] = ("class +", "class −"),
    most_lines: int = MOST_LINES,
    most_points: int = MOST_POINTS,
) -> Coefficients | None:
    """Scaled coefficients along the track; None where nothing is ever different from 0."""
    t = np.asarray(track.t, dtype=np.float64)
    free = float(np.max(track.n_free, initial=1))
    count = int(np.clip(WORK / max(free, 1.0) ** 3, FEWEST_POINTS, most_points))
    places = spread(t, count, bool(np.all(t > 0)))
    at, where = values[places], t[places]
    if np.all(t > 0) and np.array_equal(values, t):  # lines bend on a logarithmic axis
        at = where = filled(where, count)
    solved = np.array([track.solution(float(place))[0] for place in where])
    n = solved.shape[1]
    rows = rows_to_show(track, n, most_lines)
    scale = np.maximum(bounds, np.abs(solved).max(axis=0))
    rows = rows[scale[rows] > 0]
    if rows.size == 0:
        return None
    table = solved[:, rows] / scale[rows]
    positive = table.sum(axis=0) >= 0
    return Coefficients(at, rows, np.abs(table), positive, names, n)
