"""A path as one HTML page: the same panels as the picture, with hover, zoom and the events.

The page holds everything itself (data, style, script): it asks for nothing, works from a file and
without a network. Its size is bounded: of more than MOST_POINTS breakpoints or steps of a curve
an even choice is embedded, with the smallest value of each curve kept, and the page says so; of an
event with many rows the first MOST_ITEMS are named.

The script is page.js and the style page.css, beside this file.
"""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.io.atomic import atomic_output
from kfu.io.json_values import plain
from kfu.paths.shown_path import ShownPath, shown_path, spread
from kfu.paths.step_function import StepFunction

if TYPE_CHECKING:
    from kfu.paths.path import RegularisationPath
    from kfu.paths.selection import Choice, ValidationCurves

__all__ = ["page_data", "page_of", "write", "write_page"]

MOST_POINTS = 5000
MOST_ITEMS = 12
MOST_LINES = 60  # coefficients drawn
DIGITS = 7  # of numbers in the page

FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<h1>{title}</h1>
<p id="note">{note}</p>
<p id="help">Move over a panel for the breakpoint there; wheel or + and − zoom, drag moves, arrow
keys go from breakpoint to breakpoint, double click or 0 shows all.</p>
<div id="panels"></div>
<div id="readout" role="status" aria-live="polite"></div>
<noscript><p>The panels need JavaScript; the page holds it and asks for nothing.</p></noscript>
<script type="application/json" id="data">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""


def write(
    path: RegularisationPath,
    file: str,
    *,
    folds: ValidationCurves | None = None,
    choice: Choice | None = None,
) -> None:
    """Write the page of a path; `folds` and `choice` where λ was chosen by them."""
    shown = shown_path(path, folds=folds, choice=choice)
    write_page(shown, file)


def write_page(shown: ShownPath, file: str) -> None:
    with atomic_output(file, "w") as stream:
        stream.write(page_of(shown))


def page_of(shown: ShownPath) -> str:
    """The whole page as text."""
    data = page_data(shown)
    # A "</script>" inside of the data would end it.
    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    folder = resources.files("kfu.paths")
    return FRAME.format(
        title=html.escape(shown.title or "regularisation path"),
        note=html.escape(" ".join(data["notes"])),
        style=folder.joinpath("page.css").read_text(encoding="utf-8").strip(),
        script=folder.joinpath("page.js").read_text(encoding="utf-8").strip(),
        data=text.replace("<", "\\u003c"),
    )


def rounded(values: np.ndarray) -> list[float | None]:
    """Numbers with DIGITS digits, which take a third of the room; None for NaN."""
    return [None if np.isnan(v) else float(f"{v:.{DIGITS}g}") for v in values.tolist()]


def page_data(shown: ShownPath) -> dict[str, Any]:
    """What the script draws, as plain values."""
    m = len(shown.values)
    kept = spread(shown.values, MOST_POINTS, shown.is_logarithmic)
    notes = [
        f"{m} breakpoints, from {shown.symbol} = {shown.values[0]:.4g} to {shown.values[-1]:.4g}."
    ]
    if len(kept) < m:
        notes.append(f"{len(kept)} of them are in this page, evenly chosen.")
    events = [shown.events[k] for k in kept]
    words = list(dict.fromkeys(events))
    numbers = {word: k for k, word in enumerate(words)}
    curves = [steps_data(name, steps, notes) for name, steps in shown.error_steps().items()]
    if shown.folds is not None:
        name = f"mean of {len(shown.folds.curves)} splits"
        curves.append(steps_data(name, shown.folds.mean, notes, shown.folds.standard_error))
    return {
        "symbol": shown.symbol,
        "parameter": shown.parameter,
        "logarithmic": shown.is_logarithmic,
        "notes": notes,
        "step": kept,
        "value": rounded(shown.values[kept]),
        "words": words,
        "event": [numbers[event] for event in events],
        "items": [shown.items[k][:MOST_ITEMS] for k in kept],
        "n_items": [len(shown.items[k]) for k in kept],
        **{name: rounded(column[kept]) for name, column in shown.columns.items()},
        "curves": curves,
        "coefficients": coefficient_data(shown, notes),
        "choice": None if shown.choice is None else shown.choice.to_dict(),
    }


def steps_data(
    name: str, steps: StepFunction, notes: list[str], error: StepFunction | None = None
) -> dict[str, Any]:
    """Edges and values, of long ones an even choice that keeps the smallest value. `error` has the
    same edges."""
    kept = np.arange(steps.n_steps)
    if steps.n_steps > MOST_POINTS:
        kept = spread(steps.edges[:-1], MOST_POINTS, steps.low > 0)
        kept = np.unique(np.append(kept, int(np.argmin(steps.values))))
        notes.append(f"Of the {steps.n_steps} steps of the error ({name}) {kept.size} are here.")
    return {
        "name": name,
        "edges": rounded(np.append(steps.edges[:-1][kept], steps.high)),
        "values": rounded(steps.values[kept]),
        "error": None if error is None else rounded(error.values[kept]),
    }


def coefficient_data(shown: ShownPath, notes: list[str]) -> dict[str, Any] | None:
    found = shown.coefficients
    if found is None:
        return None
    rows = np.arange(found.rows.size)
    if rows.size > MOST_LINES:
        rows = np.linspace(0, rows.size - 1, MOST_LINES).round().astype(np.int64)
    if rows.size < found.n:
        notes.append(f"The coefficients of {rows.size} of {found.n} rows are drawn.")
    return {
        "at": rounded(found.at),
        "rows": found.rows[rows],
        "positive": found.positive[rows],
        "names": found.names,
        "lines": [[round(float(v), 4) for v in found.table[:, r]] for r in rows],
    }
