"""From the track of the engine to the columns and records of a path."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.paths.path_file import record_keys
from kfu.paths.registry import VALUE_COLUMNS, PathDefinition
from kfu.paths.states import END, RESTART, START, Vocabulary
from kfu.solvers.parametric import FINISHED, Track

if TYPE_CHECKING:
    from kfu.machines.task import TrainingTask


def find_columns(
    definition: PathDefinition, task: TrainingTask, track: Track, n_valid: int
) -> dict[str, np.ndarray]:
    """One array for each column of the file, but for event and items; NaN is not known."""
    values = np.asarray(definition.value_of(track.t), dtype=np.float64)
    names = VALUE_COLUMNS[definition.parameter]
    found: dict[str, np.ndarray] = {"step": np.arange(len(track.t)), names[0]: values}
    if len(names) > 1:
        found[names[1]] = np.asarray(definition.second_value(values), dtype=np.float64)
    found["n_margin"] = np.asarray(track.n_free)
    found["n_error"] = np.asarray(track.n_bound)  # at a bound other than zero
    found["n_correct"] = np.asarray(track.n_null)
    nothing = np.zeros(0)
    found["bias"] = np.array(
        [
            definition.coefficients(task, nothing, theta, float(t))[1]
            for theta, t in zip(track.theta, track.t, strict=True)
        ]
    )
    found["objective"] = np.asarray(
        definition.objective(task, track.objective, track.theta, track.t)
    )
    found["train_error"] = rate(track.train_errors, task.n)
    found["valid_error"] = rate(track.watch_errors, n_valid)
    found["kkt"] = np.asarray(definition.violation(task, track.kkt, track.theta, track.t))
    return {key: found[key] for key in record_keys(definition.parameter) if key in found}


def rate(errors: Any, n: int) -> np.ndarray:
    """Counts as fractions; NaN where nothing was counted."""
    counts = np.asarray(errors, dtype=np.float64)
    return np.where(counts >= 0, counts / max(n, 1), np.nan)


def records_of(
    track: Track,
    words: Vocabulary,
    parameter: str,
    columns: Mapping[str, np.ndarray],
    first: int = 0,
    end: int | None = None,
) -> Iterator[dict[str, Any]]:
    """The breakpoints from `first` up to `end`, as the file has them.

    The events of the first breakpoint are those at the very beginning, after the states that the
    header holds. A restart has the states that were found anew where a path was resumed.
    """
    keys = record_keys(parameter)
    plain = {name: known_only(column[first:end]) for name, column in columns.items()}
    last = len(track.t) - 1
    resumed = frozenset(track.counters.get("resumed", ()))
    for k in range(first, last + 1 if end is None else end):
        some = slice(int(track.event_start[k]), int(track.event_start[k + 1]))
        items = [int(item) for item in track.event_item[some]]
        states = [int(state) for state in track.event_state[some]]
        said = [words.word(item, state) for item, state in zip(items, states, strict=True)]
        if k == 0:
            said = [START, *said]
        elif k in resumed:
            said = [RESTART, *said]
        if k == last and track.status in FINISHED:
            said = [*said, END]
        record = {"event": "+".join(said), "items": items}
        record |= {name: column[k - first] for name, column in plain.items()}
        yield {key: record[key] for key in keys}


def known_only(column: np.ndarray) -> list[Any]:
    """The values as plain numbers; None for what is not finite."""
    values = column.tolist()
    if np.isfinite(column).all():
        return list(values)
    return [value if math.isfinite(value) else None for value in values]
