"""Choosing λ from exact validation curves: one split, k folds, or bootstrap samples.

Each split is trained along its whole path and its validation error known for every λ
(kfu.paths.validation); the curves are averaged over the union of their steps, so that the mean and
its standard error are exact for every λ too, and their minimum is the minimum, not the best of a
grid (Zapién 2009, section 2.3.3).

Which λ. "minimum": the geometric middle of the interval on which the mean error is smallest (where
there are several such intervals, the widest on the logarithmic axis, then that of the largest λ):
as far as possible from a λ at which a row changes sides. "one-se": the largest λ, that is the
smoothest f, whose mean error is within one standard error of the minimum (Breiman et al. 1984); of
the topmost step that qualifies the geometric middle is taken, for the same reason.

Where the curves are known. A path that ended with a hard margin says what f is for all smaller λ,
so its curve goes on as it is. Above the first breakpoint of a path its curve is not used: averages
are over the λ all splits share.

λ and the number of rows. The objective is a *sum* of losses plus λ/2 ‖f‖², so one λ weighs less
beside more rows: λ chosen on splits that train on n_f of n rows is, for all n rows, a weaker
regularisation by n_f/n. The thesis reuses λ as it is, and so does the default here;
rescale=True multiplies each curve's λ by n/n_f, which keeps λ per row (weights count as rows).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.paths.step_function import EQUAL, AverageStep, StepFunction, average, middle_of
from kfu.paths.validation import (
    CrossingCount,
    WatchedTrack,
    crossings_per_interval,
    error_curve,
)
from kfu.validation.folds import SPLITTERS, make_folds

__all__ = ["RULES", "Choice", "PathSplit", "ValidationCurves", "choose", "follow_splits", "splits"]


# ---- splits ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathSplit:
    """Rows to train on (each once), how often each counts, and rows to validate with."""

    train: np.ndarray
    valid: np.ndarray
    counts: np.ndarray | None = None  # None: each counts once

    @property
    def n_train(self) -> float:
        return float(self.train.size if self.counts is None else self.counts.sum())


BOOTSTRAP = "bootstrap"
MOST_DRAWS = 1000


def splits(
    kind: str,
    n: int,
    *,
    k: int = 5,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    fraction: float = 0.5,
    seed: int = 0,
    repeats: int = 1,
) -> list[PathSplit]:
    """Splits of n rows of a `kind` of kfu.validation.SPLITTERS, or "bootstrap".

    "bootstrap": k samples of n rows drawn with replacement, validated with the rows not drawn; a
    row drawn twice counts twice. Samples that miss a class or leave nothing to validate with are
    drawn again. "hold-out" holds out `fraction` of the rows, k times (the thesis' half and half).
    """
    if kind == BOOTSTRAP:
        return _bootstrap(n, k, labels, seed)
    if kind not in SPLITTERS:
        known = ", ".join([*SPLITTERS, BOOTSTRAP])
        raise SettingsError(f"no kind of splits '{kind}'; choose one of {known}")
    if kind == "hold-out":
        repeats = k
    folds = make_folds(
        kind,
        n,
        k=k,
        labels=labels,
        groups=groups,
        seed=seed,
        repeats=repeats,
        fraction=fraction,
    )
    return [PathSplit(train, test) for train, test in folds]


def _bootstrap(n: int, k: int, labels: np.ndarray | None, seed: int) -> list[PathSplit]:
    if k < 1 or n < 2:
        raise SettingsError(f"{k} bootstrap samples of {n} rows; give at least 1 of 2 or more")
    rng = np.random.default_rng(seed)
    codes = np.zeros(n, dtype=np.int64) if labels is None else np.unique(labels, False, True)[1]
    n_classes = int(codes.max()) + 1
    found: list[PathSplit] = []
    for _ in range(MOST_DRAWS + k):
        counts = np.bincount(rng.integers(0, n, n), minlength=n)
        train, valid = np.flatnonzero(counts), np.flatnonzero(counts == 0)
        if valid.size and np.unique(codes[train]).size == n_classes:
            found.append(PathSplit(train, valid, counts[train].astype(np.float64)))
            if len(found) == k:
                return found
    raise SettingsError(
        f"bootstrap samples of {n} rows keep missing a class; use stratified folds instead"
    )


# ---- curves ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitCurve:
    """What one split's path says: its error for every λ, and figures of the path."""

    error: StepFunction
    n_train: float
    n_valid: int
    crossings: CrossingCount
    status: str
    n_breakpoints: int


@dataclass(frozen=True)
class ValidationCurves:
    """The curves of the splits and their average over the λ they share."""

    curves: list[SplitCurve]
    average: AverageStep
    n: float  # rows (or weight) that the λ of the average speaks of
    is_rescaled: bool

    @property
    def mean(self) -> StepFunction:
        return self.average.mean

    @property
    def standard_error(self) -> StepFunction:
        return self.average.error

    @property
    def crossings(self) -> CrossingCount:
        """The validation crossings of all intervals of all splits together."""
        return CrossingCount(np.concatenate([curve.crossings.counts for curve in self.curves]))

    def choose(self, rule: str = "minimum") -> Choice:
        n_valid = self.curves[0].n_valid if len(self.curves) == 1 else None
        return choose(self.average, rule, n_valid=n_valid)


def follow_splits(
    parts: Sequence[PathSplit],
    follow: Callable[[PathSplit], WatchedTrack],
    *,
    n: float,
    threads: int = 1,
    rescale: bool = False,
    by_rows: bool = False,
    on_split: Callable[[int, SplitCurve], None] | None = None,
) -> ValidationCurves:
    """Follow the path of each split, `threads` at a time, and average the validation errors.

    `follow(split)` trains on split.train (weights split.counts) and watches split.valid; the
    engine works without the interpreter lock, so that threads run side by side. `n` is the number
    of rows (or their weight) of the final training, for `rescale` (head of the file). by_rows: the
    splits count by their validation rows, which is the error of all of them together, instead of
    alike. `on_split` hears of each split as it is done, in their order.
    """
    if not parts:
        raise SettingsError("no splits to validate with; give at least one")
    if not n > 0:
        raise SettingsError(f"{n:g} rows to train in the end; give a positive number")

    def one(split: PathSplit) -> SplitCurve:
        track = follow(split)
        error = error_curve(track, split.valid.size)
        if rescale:
            error = error.scaled(n / split.n_train)
        return SplitCurve(
            error,
            split.n_train,
            int(split.valid.size),
            crossings_per_interval(track),
            track.status,
            int(np.size(track.t)),
        )

    curves: list[SplitCurve] = []
    with ThreadPoolExecutor(max(1, min(threads, len(parts)))) as pool:
        try:
            for number, curve in enumerate(pool.map(one, parts)):
                curves.append(curve)
                if on_split is not None:
                    on_split(number, curve)
        except BaseException:  # Ctrl-C too: splits that have not begun never do
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    lowest = min(curve.error.low for curve in curves)
    errors = [
        curve.error.extended(low=lowest) if curve.status == "hard_margin" else curve.error
        for curve in curves
    ]
    sizes = [curve.n_valid for curve in curves] if by_rows else None
    return ValidationCurves(curves, average(errors, sizes), float(n), rescale)


# ---- choice ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """A λ, why it was chosen, and what is to be expected of it."""

    rule: str
    lam: float
    error: float  # the mean validation error at lam
    standard_error: float  # of that mean; NaN where it is not known
    minimum: float  # the smallest mean error of all λ
    bound: float  # the largest mean error that the rule accepts
    interval: tuple[float, float]  # around lam, on which the error is within the bound

    @property
    def cost(self) -> float:
        """C = 1/λ."""
        return 1.0 / self.lam

    def to_dict(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "lambda": self.lam,
            "C": self.cost,
            "error": self.error,
            "standard_error": self.standard_error,
            "minimum": self.minimum,
            "bound": self.bound,
            "interval": list(self.interval),
        }


RULES = ("minimum", "one-se")


def choose(
    curve: AverageStep | StepFunction, rule: str = "minimum", *, n_valid: int | None = None
) -> Choice:
    """λ by a rule of RULES (head of the file).

    A single curve has no spread over splits: its standard error is √(e(1−e)/n_valid), that of a
    fraction of n_valid rows, where n_valid is given; "one-se" cannot do without.
    """
    if rule not in RULES:
        raise SettingsError(f"no rule '{rule}' to choose lambda; choose one of {', '.join(RULES)}")
    mean = curve.mean if isinstance(curve, AverageStep) else curve

    def error_at(lam: float) -> float:
        spread = float(curve.error(lam)) if isinstance(curve, AverageStep) else math.nan
        if math.isnan(spread) and n_valid:
            share = float(mean(lam))
            spread = math.sqrt(max(0.0, share * (1.0 - share)) / n_valid)
        return spread

    interval = mean.argmin_interval()
    lam = middle_of(*interval)
    bound = mean.minimum
    if rule == "one-se":
        spread = error_at(lam)
        if math.isnan(spread):
            raise SettingsError(
                "the rule one-se needs a standard error; give several splits, or the number of "
                "validation rows"
            )
        bound += spread
        accepted = bound + EQUAL * max(1.0, bound)
        interval = tuple(mean.intervals_below(accepted)[-1].tolist())
        top = int(np.flatnonzero(mean.values <= accepted)[-1])
        lam = middle_of(float(mean.edges[top]), float(mean.edges[top + 1]))
    return Choice(rule, lam, float(mean(lam)), error_at(lam), mean.minimum, bound, interval)
