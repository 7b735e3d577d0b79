"""Folds: which rows train and which rows test, for cross-validation and hold-out.

    for train, test in make_folds("stratified", n, k=5, labels=y, seed=0): ...

A split is the pair (training rows, test rows) of sorted int64 arrays; the training rows are all
rows that are not tested. `Folds` keeps the test rows alone and forms the training rows when a split
is asked for, so that leave-one-out takes memory for n numbers, not n².

Chance comes from `numpy.random.default_rng(seed)` alone: equal arguments give equal folds on every
platform. A repetition r > 0 of the same splitter draws from `default_rng([seed, r])`, so that the
first repetition is what one without repetitions gives.

Kohavi, *A study of cross-validation and bootstrap for accuracy estimation and model selection*,
IJCAI 1995 (stratification and repetition).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from kfu.data import check_y, format_label
from kfu.errors import SettingsError

__all__ = [
    "SPLITTERS",
    "Folds",
    "Split",
    "by_group",
    "hold_out",
    "k_fold",
    "leave_one_out",
    "make_folds",
    "repeated",
    "stratified",
]

Split = tuple[np.ndarray, np.ndarray]
Seed = int | Sequence[int]


class Folds(Sequence[Split]):
    """The splits of n rows, in order; read like a list of (training rows, test rows)."""

    def __init__(self, n: int, tests: Sequence[np.ndarray]) -> None:
        self.n = n
        self.tests = [np.sort(np.asarray(rows, dtype=np.int64)) for rows in tests]

    def __len__(self) -> int:
        return len(self.tests)

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> Folds: ...
    def __getitem__(self, index: int | slice) -> Split | Folds:
        if isinstance(index, slice):
            return Folds(self.n, self.tests[index])
        test = self.tests[index]
        is_training = np.ones(self.n, dtype=bool)
        is_training[test] = False
        return np.flatnonzero(is_training).astype(np.int64, copy=False), test.copy()

    def __iter__(self) -> Iterator[Split]:
        return (self[k] for k in range(len(self)))

    def __add__(self, other: Folds) -> Folds:
        if self.n != other.n:
            raise ValueError(f"folds of {self.n} rows and of {other.n} rows")
        return Folds(self.n, [*self.tests, *other.tests])

    def __repr__(self) -> str:
        return f"Folds({len(self)} splits of {self.n} rows)"


# ---- splitters ------------------------------------------------------------------------------


def k_fold(n: int, k: int, seed: Seed = 0, shuffle: bool = True) -> Folds:
    """k parts of n rows whose sizes differ by at most 1; without ``shuffle`` consecutive rows."""
    check_parts(n, k, "rows")
    rows = np.random.default_rng(seed).permutation(n) if shuffle else np.arange(n)
    return Folds(n, np.array_split(rows, k))


def stratified(labels: Any, k: int, seed: Seed = 0) -> Folds:
    """k parts in which each class, and the whole, is spread evenly: counts differ by at most 1.

    The rows of each class, shuffled, are dealt to the parts in turn; the next class goes on where
    the last one ended. A class with fewer than k rows is missing from some test parts (a warning
    says so), but never from a training part. A class of one row would be, and is refused.
    """
    y = check_y(labels, len(labels), "labels")
    check_parts(y.size, k, "rows")
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    check_class_sizes(classes, counts, k)
    dealt = by_class(codes, np.random.default_rng(seed))
    return Folds(y.size, [dealt[part::k] for part in range(k)])


def by_group(groups: Any, k: int, seed: Seed = 0) -> Folds:
    """k parts of whole groups (queries, patients, ...), of nearly equal size.

    Groups go to the smallest part so far, the largest group first; the seed decides between groups
    of equal size. Greedy, so no part exceeds the mean by more than the largest group.
    """
    groups = np.asarray(groups)
    if groups.ndim != 1:
        raise SettingsError(f"groups are {groups.ndim}-D; give one group per row")
    names, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    check_parts(len(names), k, "groups")
    chance = np.random.default_rng(seed).permutation(len(names))
    part_of = np.empty(len(names), dtype=np.int64)
    filled = np.zeros(k, dtype=np.int64)
    for group in np.lexsort((chance, -sizes)):
        part_of[group] = np.argmin(filled)
        filled[part_of[group]] += sizes[group]
    parts = part_of[codes]
    return Folds(groups.size, [np.flatnonzero(parts == part) for part in range(k)])


def leave_one_out(n: int) -> Folds:
    """n splits: each row tested once, by all others."""
    check_parts(n, 2, "rows")
    return Folds(n, list(np.arange(n).reshape(n, 1)))


def hold_out(n: int, fraction: float = 0.25, labels: Any = None, seed: Seed = 0) -> Folds:
    """One split that tests a ``fraction`` of the rows, of each class alike when there are labels.

    At least one row is tested and one trains. With labels, a class of one row is not tested.
    """
    if not 0 < fraction < 1:
        raise SettingsError(f"a test fraction of {fraction:g}; give one between 0 and 1")
    check_parts(n, 2, "rows")
    rng = np.random.default_rng(seed)
    wanted = min(max(round(fraction * n), 1), n - 1)
    if labels is None:
        return Folds(n, [rng.permutation(n)[:wanted]])
    y = check_y(labels, n, "labels")
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if np.any(counts == 1):
        warnings.warn(
            f"{class_names(classes[counts == 1])} has a single row, which is not tested",
            UserWarning,
            stacklevel=2,
        )
    rows = by_class(codes, rng)
    test = rows[evenly(counts, wanted)]
    if test.size == 0 or test.size == n:
        raise SettingsError(
            f"a test fraction of {fraction:g} of {n} rows in {len(classes)} classes leaves nothing "
            "to test or to train; give another fraction, or no labels"
        )
    return Folds(n, [test])


def repeated(splitter: Callable[[Seed], Folds], times: int, seed: int = 0) -> Folds:
    """``times`` times the splits of ``splitter``, a function of a seed; the first uses ``seed``."""
    if times < 1:
        raise SettingsError(f"{times} repetitions; give at least 1")
    folds = splitter(seed)
    for repetition in range(1, times):
        folds = folds + splitter([seed, repetition])
    return folds


# ---- by name --------------------------------------------------------------------------------


class Splitter(NamedTuple):
    """A kind of splits: ``make`` gets the arguments of `make_folds` by name."""

    make: Callable[..., Folds]
    needs: tuple[str, ...] = ()  #: arguments that have to be given
    is_random: bool = True  #: repetitions differ


SPLITTERS: dict[str, Splitter] = {
    "k-fold": Splitter(lambda n, k, seed, **_: k_fold(n, k, seed)),
    "sequential": Splitter(
        lambda n, k, seed, **_: k_fold(n, k, seed, shuffle=False), is_random=False
    ),
    "stratified": Splitter(lambda labels, k, seed, **_: stratified(labels, k, seed), ("labels",)),
    "group": Splitter(lambda groups, k, seed, **_: by_group(groups, k, seed), ("groups",)),
    "loo": Splitter(lambda n, **_: leave_one_out(n), is_random=False),
    "hold-out": Splitter(
        lambda n, fraction, labels, seed, **_: hold_out(n, fraction, labels, seed)
    ),
}


def make_folds(
    kind: str,
    n: int,
    *,
    k: int = 10,
    labels: Any = None,
    groups: Any = None,
    seed: int = 0,
    repeats: int = 1,
    fraction: float = 0.25,
) -> Folds:
    """The splits of ``kind``, one of SPLITTERS; arguments that it has no use for are ignored.

    ``fraction`` is the tested part of "hold-out"; with ``repeats`` that is repeated random
    sub-sampling.
    """
    if kind not in SPLITTERS:
        raise SettingsError(f"unknown kind of folds '{kind}'; choose one of {', '.join(SPLITTERS)}")
    splitter = SPLITTERS[kind]
    given = {"labels": labels, "groups": groups}
    for name in splitter.needs:
        if given[name] is None:
            raise SettingsError(f"{kind} folds need {name}; give them, or choose k-fold")
    for name, values in given.items():
        if values is not None and len(values) != n:
            raise SettingsError(f"{len(values)} {name} for {n} rows; give one per row")
    if repeats != 1 and not splitter.is_random:
        raise SettingsError(f"{kind} folds are the same every time; leave the repetitions out")
    return repeated(
        lambda draw: splitter.make(n=n, k=k, seed=draw, fraction=fraction, **given), repeats, seed
    )


# ---- inside ---------------------------------------------------------------------------------


def by_class(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows, shuffled, class after class."""
    rows = rng.permutation(codes.size)
    return rows[np.argsort(codes[rows], kind="stable")]


def evenly(counts: np.ndarray, wanted: int) -> np.ndarray:
    """Which rows to test, of rows ordered by class: ``wanted`` ones shared out in proportion.

    Each class gets the whole part of its share, and the largest remainders one more; never all of
    its rows, and none of a class of one row.
    """
    share = counts * (wanted / counts.sum())
    take = np.minimum(np.floor(share).astype(np.int64), counts - 1)
    left = wanted - int(take.sum())
    order = np.argsort(-(share - take), kind="stable")
    room = order[take[order] < counts[order] - 1]
    take[room[:left]] += 1
    begin = np.cumsum(counts) - counts
    position = np.arange(counts.sum()) - np.repeat(begin, counts)
    return position < np.repeat(take, counts)


def check_parts(n: int, k: int, what: str) -> None:
    if int(k) != k or k < 2:
        raise SettingsError(f"{k} {'fold' if k == 1 else 'folds'}; give a whole number from 2 on")
    if n < k:
        raise SettingsError(f"{k} folds of {n} {what}; give at most as many folds as {what}")


def check_class_sizes(classes: np.ndarray, counts: np.ndarray, k: int) -> None:
    single = classes[counts == 1]
    if single.size:
        hint = (
            "; or are the labels numbers to predict? then choose k-fold"
            if classes.dtype.kind == "f" and 2 * single.size > classes.size > 2
            else ""
        )
        raise SettingsError(
            f"{class_names(single)} has one example: the fold that tests it trains without the "
            "class, and leave-one-out would too; leave the example out, or merge the class with "
            f"another{hint}"
        )
    if np.any(counts < k):
        few = counts < k
        warnings.warn(
            f"{class_names(classes[few])} has fewer than {k} examples (at least "
            f"{counts[few].min()}); it is missing from some test parts",
            UserWarning,
            stacklevel=3,
        )


def class_names(classes: np.ndarray) -> str:
    shown = ", ".join(f"'{format_label(value)}'" for value in classes[:3])
    more = f" and {classes.size - 3} others" if classes.size > 3 else ""
    return f"class {shown}{more}" if classes.size == 1 else f"each of the classes {shown}{more}"
