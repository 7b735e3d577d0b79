"""Tracks from the records of a file, and two tracks as one: how a path is read and resumed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kfu.errors import DataError
from kfu.paths.path_file import PathFile, record_keys
from kfu.paths.registry import VALUE_COLUMNS, PathDefinition
from kfu.paths.states import MARKS, RESTART, Vocabulary
from kfu.solvers.parametric import ParametricProblem, Track

if TYPE_CHECKING:
    from kfu.machines.task import TrainingTask


def columns_of(found: PathFile) -> dict[str, np.ndarray]:
    """The columns of a file, as kfu.paths.columns.find_columns gives them; NaN for null."""
    columns = {}
    for key in record_keys(found.header["parameter"]):
        if key in ("event", "items"):
            continue
        values = [record[key] for record in found.records]
        if any(value is None for value in values):
            values = [np.nan if value is None else value for value in values]
        columns[key] = np.array(values)
    return columns


def track_of(
    found: PathFile,
    definition: PathDefinition,
    task: TrainingTask,
    problem: ParametricProblem,
    words: Vocabulary,
    first: np.ndarray,
    n_valid: int = 0,
) -> Track:
    """The track of a file's records; DataError names a line whose events cannot be.

    θ and the minimised objective are not in the file, nor are changes of sign between breakpoints.
    """
    items, states, start = events_of(found, words, len(first))
    columns = columns_of(found)
    name = VALUE_COLUMNS[definition.parameter][0]
    t = np.array([definition.t_of(float(value)) for value in columns[name]])
    way = np.diff(t) * (1.0 if found.header["span"]["upward"] else -1.0)
    if np.any(way < 0):
        line = int(np.argmin(way)) + (4 if found.is_csv else 3)
        raise DataError(found.name, line, f"{name} goes back", "compute the path again")
    X, kernel = task.solver_kernel()
    status = UNFINISHED
    if found.is_finished:
        is_hard = problem.ends_without_bound and columns["n_error"][-1] == 0
        status = "hard_margin" if is_hard else "done"
    nothing = np.zeros(0, dtype=np.int64)
    resumed = [k for k, record in enumerate(found.records) if RESTART in record["event"].split("+")]
    return Track(
        problem=problem,
        X=X,
        kernel=kernel,
        t=t,
        theta=np.full((len(t), max(problem.n_groups, 1)), np.nan),
        objective=np.full(len(t), np.nan),
        kkt=columns["kkt"].astype(np.float64),
        n_free=columns["n_margin"],
        n_bound=columns["n_error"],
        n_null=columns["n_correct"],
        train_errors=counts(columns["train_error"], task.n),
        watch_errors=counts(columns["valid_error"], n_valid),
        event_start=start,
        event_item=items,
        event_state=states,
        first_state=np.asarray(first, dtype=np.int8),
        crossing_t=np.zeros(0),
        crossing_row=nothing,
        crossing_set=nothing.astype(np.int8),
        crossing_delta=nothing.astype(np.int8),
        status=status,
        counters={RESUMED: resumed},
    )


def events_of(
    found: PathFile, words: Vocabulary, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(items, states, where those of each breakpoint begin) of all records."""
    items: list[int] = []
    states: list[int] = []
    start = [0]
    for k, record in enumerate(found.records):
        said = [word for word in record["event"].split("+") if word and word not in MARKS]
        try:
            if len(said) != len(record["items"]):
                raise ValueError(f"{len(said)} words for {len(record['items'])} items")
            for item, word in zip(record["items"], said, strict=True):
                if not 0 <= item < n:
                    raise ValueError(f"no row {item}")
                states.append(words.state(item, word))
                items.append(item)
        except (ValueError, KeyError) as error:
            line = k + (3 if found.is_csv else 2)
            raise DataError(
                found.name, line, f"events that cannot be ({error})", "compute the path again"
            ) from None
        start.append(len(items))
    return (
        np.array(items, dtype=np.int64),
        np.array(states, dtype=np.int8),
        np.array(start, dtype=np.int64),
    )


def counts(rates: np.ndarray, n: int) -> np.ndarray:
    """Fractions of n rows as counts; −1 where nothing was counted."""
    rates = rates.astype(np.float64)
    return np.where(np.isnan(rates), -1.0, np.round(rates * n)).astype(np.int64)


COLUMNS = (
    *("t", "theta", "objective", "kkt", "n_free", "n_bound", "n_null"),
    *("train_errors", "watch_errors"),
)
UNFINISHED = "unfinished"  # status of a track whose file has no end
RESUMED = "resumed"  # counter of a track: the breakpoints at which it was taken up again
CROSSINGS = ("crossing_t", "crossing_row", "crossing_set", "crossing_delta")


def shortened(track: Track, n: int) -> Track:
    """The first n breakpoints of a track."""
    last = int(track.event_start[n])
    columns = {name: getattr(track, name)[:n] for name in COLUMNS}
    way = 1.0 if track.t[-1] >= track.t[0] else -1.0
    inside = way * track.crossing_t <= way * track.t[n - 1]
    return replace(
        track,
        event_start=track.event_start[: n + 1],
        event_item=track.event_item[:last],
        event_state=track.event_state[:last],
        status="interrupted",
        counters={RESUMED: [k for k in track.counters.get(RESUMED, ()) if k < n]},
        **columns,
        **{name: getattr(track, name)[inside] for name in CROSSINGS},
    )


def joined(before: Track, after: Track) -> Track:
    """A track and the one that was followed from a point in the stretch after its end, as one.

    The first breakpoint of `after` is no event. Where it has other states than `before` ends with
    (of tied rows, others may be free), it is kept, and its events are the differences.
    """
    old, new = before.states_at(before.n_steps), after.states_at(0)
    changed = np.flatnonzero(old != new)
    skip = 0 if changed.size else 1
    begin = int(after.event_start[1])
    sizes = np.diff(after.event_start)[1:]
    resumed = list(before.counters.get(RESUMED, ()))
    if changed.size:
        sizes = np.concatenate([[changed.size], sizes])
        resumed.append(len(before.t))
    start = np.concatenate([before.event_start, before.event_start[-1] + np.cumsum(sizes)])
    names = (*COLUMNS, *CROSSINGS)
    kept = {name: skip if name in COLUMNS else 0 for name in names}
    columns = {
        name: np.concatenate([getattr(before, name), getattr(after, name)[kept[name] :]])
        for name in names
    }
    return Track(
        problem=after.problem,
        X=after.X,
        kernel=after.kernel,
        event_start=start.astype(np.int64),
        event_item=np.concatenate([before.event_item, changed, after.event_item[begin:]]),
        event_state=np.concatenate([before.event_state, new[changed], after.event_state[begin:]]),
        first_state=before.first_state,
        status=after.status,
        counters={**after.counters, RESUMED: resumed},
        seconds=before.seconds + after.seconds,
        **columns,
    )
