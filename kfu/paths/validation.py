"""The validation error of a classifier for every λ of its path, exactly (Algorithm 2).

Between two breakpoints of a path g = λf is linear in λ at every point x, so the sign of f(x)
changes at most once, at a λ with g = 0 in closed form; the number of validation rows predicted
wrongly is a step function of λ (Zapién, *Regularization path algorithm for statistical learning*,
2009, section 2.3). The engine finds the crossings as it goes (kfu.solvers.parametric, `Watch`);
here they become that function.

The rule for f = 0. The thesis counts such rows as errors in its table and as right in its formula
(y f < 0). Here they are what `predict` makes of them: f = 0 is the smaller of the two classes, the
one coded −1, so a row of that class is right and one of the other wrong. It matters to rows on
which f is 0 for a whole interval (a zero row of a linear kernel without bias); at a crossing itself
it is a matter of one point, where a step function has the value of the interval above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kfu.errors import SettingsError
from kfu.paths.step_function import StepFunction

__all__ = ["CrossingCount", "WatchedTrack", "crossings_per_interval", "error_counts", "error_curve"]

# The codes of `crossing_set`, and the column of counts that goes with each.
SETS = {"train": (0, "train_errors"), "valid": (1, "watch_errors")}
# A path that is a hard margin from its first point on is shown down to this part of it.
BELOW_A_SINGLE_POINT = 1e-6
NEAR = 1e-12  # a crossing at a breakpoint, but for rounding


class WatchedTrack(Protocol):
    """What is needed of a kfu.solvers.parametric.Track."""

    @property
    def t(self) -> np.ndarray: ...
    @property
    def train_errors(self) -> np.ndarray: ...
    @property
    def watch_errors(self) -> np.ndarray: ...
    @property
    def crossing_t(self) -> np.ndarray: ...
    @property
    def crossing_set(self) -> np.ndarray: ...
    @property
    def crossing_delta(self) -> np.ndarray: ...
    @property
    def status(self) -> str: ...


def error_counts(track: WatchedTrack, of: str = "valid") -> StepFunction:
    """How many rows of the validation (or "train"ing) set are wrong, for every λ of the track.

    The count at the first breakpoint and the crossings say it all, those at a breakpoint included
    (a row with f = 0 there, a bias that jumps since no row is on the margin). A track whose
    crossings do not lead from count to count, as one that was read from a file has none, gives the
    counts at its breakpoints.
    """
    code, column = SETS[of]
    t = np.asarray(track.t, dtype=np.float64)
    counts = np.asarray(getattr(track, column), dtype=np.int64)
    if counts.size == 0 or counts[0] < 0:
        raise SettingsError(f"the path was followed without labels of {of} rows; give them")
    if t.size == 1 and track.status == "hard_margin":  # f is the same for all smaller λ
        return StepFunction(t[0] * np.array([BELOW_A_SINGLE_POINT, 1.0]), counts)
    if t.size < 2:
        raise SettingsError("the path has a single point: there is no interval to validate")
    sign = -1.0 if t[0] > t[-1] else 1.0  # along sign · t the track goes up
    along = sign * t
    mine = np.asarray(track.crossing_set) == code
    at = sign * np.asarray(track.crossing_t, dtype=np.float64)[mine]
    order = np.argsort(at, kind="stable")
    at = together(np.clip(at[order], along[0], along[-1]))
    total = np.concatenate(
        [[0], np.cumsum(np.asarray(track.crossing_delta, np.int64)[mine][order])]
    )
    if not leads_from_count_to_count(along, counts, at, total):
        return StepFunction.of_pieces(t, counts[:-1])
    ends = np.concatenate([along[:1], at, along[-1:]])
    return StepFunction.of_pieces(sign * ends, counts[0] + total)


def together(at: np.ndarray) -> np.ndarray:
    """Ascending places, those that only rounding parts put where the first of them is: equal rows
    change sides at once, and there is no error between."""
    if at.size == 0:
        return at
    begins = np.concatenate([[True], np.diff(at) > NEAR * np.abs(at[1:])])
    return at[np.maximum.accumulate(np.where(begins, np.arange(at.size), 0))]


def leads_from_count_to_count(
    along: np.ndarray, counts: np.ndarray, at: np.ndarray, total: np.ndarray
) -> bool:
    """Whether counts[0] + total is counts at all breakpoints but those with a crossing on them,
    which may have been counted before or after."""
    room = NEAR * np.abs(along)
    before = np.searchsorted(at, along - room, side="left")
    through = np.searchsorted(at, along + room, side="right")
    is_clear = before == through
    return bool(np.all(counts[0] + total[before[is_clear]] == counts[is_clear]))


def error_curve(track: WatchedTrack, n_rows: int, of: str = "valid") -> StepFunction:
    """`error_counts` as a fraction of the n_rows of the set."""
    if n_rows < 1:
        raise SettingsError("no rows to validate with; give at least one")
    return error_counts(track, of).times(1.0 / n_rows)


@dataclass(frozen=True)
class CrossingCount:
    """How many rows of a set change sides between two breakpoints; counts follow the track."""

    counts: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.counts.mean()) if self.counts.size else float("nan")

    @property
    def sd(self) -> float:
        return float(self.counts.std(ddof=1)) if self.counts.size > 1 else float("nan")

    @property
    def most(self) -> int:
        return int(self.counts.max(initial=0))

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "sd": self.sd, "most": self.most, "intervals": self.counts.size}


def crossings_per_interval(track: WatchedTrack, of: str = "valid") -> CrossingCount:
    """The crossings of each interval of the track, those at its first breakpoint included.

    Where training and validation rows are alike the thesis expects fewer than one on average, so
    that the breakpoints suffice to find the best λ.
    """
    code, _ = SETS[of]
    t = np.asarray(track.t, dtype=np.float64)
    sign = -1.0 if t[0] > t[-1] else 1.0
    at = sign * np.asarray(track.crossing_t, np.float64)[np.asarray(track.crossing_set) == code]
    if t.size < 2:
        return CrossingCount(np.zeros(0, dtype=np.int64))
    interval = np.clip(np.searchsorted(sign * t, at, side="right") - 1, 0, t.size - 2)
    return CrossingCount(np.bincount(interval, minlength=t.size - 1))
