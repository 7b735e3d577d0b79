"""From the track of the engine to the columns and records of a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.paths.path_file import record_keys
from kfu.paths.registry import VALUE_COLUMNS, PathDefinition
from kfu.paths.states import CORRECT, ERROR, MARGIN, SET_OF_WORD, Vocabulary

if TYPE_CHECKING:
    from kfu.machines.task import TrainingTask
    from kfu.solvers.parametric import Track

# The ends of a track after which nothing follows; the file's last record then says "end".
FINISHED = ("done", "hard_margin")
SETS = (MARGIN, ERROR, CORRECT)


def find_columns(
    definition: PathDefinition, task: TrainingTask, track: Track, n_valid: int
) -> dict[str, np.ndarray]:
    """One array for each column of the file, but for event and items; NaN is not known."""
    values = np.asarray(definition.value_of(track.t), dtype=np.float64)
    names = VALUE_COLUMNS[definition.parameter]
    found: dict[str, np.ndarray] = {"step": np.arange(len(track.t)), names[0]: values}
    if len(names) > 1:
        found[names[1]] = np.asarray(definition.second_value(values), dtype=np.float64)
    found |= set_sizes(track, definition.vocabulary(task))
    nothing = np.zeros(0)
    found["bias"] = np.array(
        [
            definition.coefficients(task, nothing, theta, float(t))[1]
            for theta, t in zip(track.theta, track.t, strict=True)
        ]
    )
    found["objective"] = np.asarray(definition.objective(task, track.objective, track.t))
    found["train_error"] = rate(track.train_errors, task.n)
    found["valid_error"] = rate(track.watch_errors, n_valid)
    found["kkt"] = np.asarray(track.kkt, dtype=np.float64)
    return {key: found[key] for key in record_keys(definition.parameter) if key in found}


def set_sizes(track: Track, words: Vocabulary) -> dict[str, np.ndarray]:
    """How many rows are on the margin, at their cost bound and without a coefficient, after the
    events of each breakpoint."""
    number = {name: k for k, name in enumerate(SETS)}
    table = np.zeros((len(words.words), 5), dtype=np.int64)
    for side, known in enumerate(words.words):
        for state, word in known.items():
            table[side, state] = number[SET_OF_WORD[word]]
    set_of = table[words.sides]  # (n, states)
    first = np.take_along_axis(set_of, np.asarray(track.first_state, np.int64)[:, None], 1)[:, 0]

    # Each event takes its item out of the set it was in, which is where its last event put it.
    start = np.asarray(track.event_start, dtype=np.int64)
    items = np.asarray(track.event_item, dtype=np.int64)[start[1] :]
    entered = set_of[items, np.asarray(track.event_state, np.int64)[start[1] :]]
    order = np.argsort(items, kind="stable")
    left = np.empty_like(entered)
    left[order[1:]] = entered[order[:-1]]
    is_first = np.concatenate([[True], items[order[1:]] != items[order[:-1]]])[: len(order)]
    left[order[is_first]] = first[items[order[is_first]]]
    changes = np.zeros((len(items) + 1, len(SETS)), dtype=np.int64)
    np.add.at(changes, (np.arange(1, len(items) + 1), entered), 1)
    np.add.at(changes, (np.arange(1, len(items) + 1), left), -1)
    counts = np.bincount(first, minlength=len(SETS)) + np.cumsum(changes, axis=0)
    after = counts[start[1:] - start[1]]
    return {f"n_{name}": after[:, k] for name, k in number.items()}


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
) -> Iterator[dict[str, Any]]:
    """The breakpoints from `first` on, as the file has them."""
    keys = record_keys(parameter)
    plain = {name: column.tolist() for name, column in columns.items()}
    last = len(track.t) - 1
    for k in range(first, last + 1):
        begin, end = int(track.event_start[k]), int(track.event_start[k + 1])
        items = [int(item) for item in track.event_item[begin:end]] if k else []
        states = track.event_state[begin:end] if k else []
        said = [words.word(item, int(state)) for item, state in zip(items, states, strict=True)]
        if k == 0:
            said = ["start"]
        elif track.t[k] == track.t[k - 1]:  # states found anew where a path was resumed
            said = ["restart", *said]
        if k == last and track.status in FINISHED:
            said = [*said, "end"]
        record = {"event": "+".join(said), "items": items}
        record |= {name: column[k] for name, column in plain.items()}
        yield {key: record[key] for key in keys}
