"""Choosing a ridge among those tried, by what leave-one-out (or the like) says of each.

loo     the mean square of the exact leave-one-out residuals, summed over the outputs
gcv     generalised cross-validation
error   the share of rows that their leave-one-out outputs put into a wrong class; of equal shares
        the one of the least `loo`

Means are over rows by weight. Figures within 1e-12 of each other are equal, and of ridges that are
equal in everything the largest is taken. The square is smooth and knows how far off an output is;
the error is what a classifier is judged by, but moves in steps of one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.kernel_registry import nearest
from kfu.least_squares.leave_one_out import class_indicators
from kfu.multiclass.decoding import decode

__all__ = ["CRITERIA", "CodedClasses", "RidgeChoice", "RidgeTable", "best_ridge", "coded_classes"]

CRITERIA = ("loo", "gcv", "error")
EQUAL = 1e-12  # relative difference of criteria that counts as a tie


@dataclass(frozen=True)
class RidgeTable:
    """One entry for each ridge, ascending. `error` is the 0/1 leave-one-out error, None without
    classes; `df` the effective degrees of freedom, `train` the mean squared training error."""

    ridge: np.ndarray
    loo: np.ndarray
    gcv: np.ndarray
    df: np.ndarray
    train: np.ndarray
    error: np.ndarray | None = None

    def best(self, criterion: str) -> int:
        """The place of the ridge that `criterion` chooses."""
        return best_ridge(self.ridge, criterion, **{key: getattr(self, key) for key in CRITERIA})

    def merged(self, other: RidgeTable) -> RidgeTable:
        ridge, order = np.unique(np.concatenate([self.ridge, other.ridge]), return_index=True)

        def both(name: str) -> Any:
            a, b = getattr(self, name), getattr(other, name)
            return None if a is None else np.concatenate([a, b])[order]

        return RidgeTable(ridge, *(both(name) for name in ("loo", "gcv", "df", "train", "error")))


@dataclass(frozen=True)
class RidgeChoice:
    """The ridge that minimises `criterion`, its place in the table of all that were tried, and
    whether it is the first or last of them (a wider grid may then have a better one)."""

    ridge: float
    table: RidgeTable
    index: int
    criterion: str
    at_edge: bool


@dataclass(frozen=True)
class CodedClasses:
    """The class index of each row, the code whose columns are the targets, and its decoding."""

    labels: np.ndarray
    code: np.ndarray
    decoding: str

    def of(self, rows: Any) -> CodedClasses:
        return CodedClasses(self.labels[rows], self.code, self.decoding)

    def is_wrong(self, outputs: np.ndarray) -> np.ndarray:
        """Which rows the outputs (n, t) put into a wrong class; all whose outputs are NaN."""
        wrong = decode(np.nan_to_num(outputs), self.code, self.decoding) != self.labels
        return np.asarray(wrong | np.isnan(outputs).any(axis=1))


def coded_classes(
    labels: Any, code: Any, decoding: str, shape: tuple[int, ...]
) -> CodedClasses | None:
    """None without labels; checked against the code and the shape (n, t) of the targets."""
    if (labels is None) != (code is None):
        raise SettingsError("the 0/1 error needs both labels and their code")
    if labels is None:
        return None
    classes, matrix = np.asarray(labels), np.asarray(code)
    class_indicators(classes, matrix.shape[0])  # for its checks
    if (classes.size, matrix.shape[1]) != shape:
        raise SettingsError(
            f"{classes.size} labels and a code of {matrix.shape[1]} columns for targets of shape "
            f"{shape}; give a label for each row and a target column for each column of the code"
        )
    return CodedClasses(classes, matrix, decoding)


def check_criterion(criterion: str, labels: Any = None, known: tuple[str, ...] = CRITERIA) -> None:
    if criterion not in known:
        raise SettingsError(f"criterion is {criterion!r}; {nearest(criterion, list(known))}")
    if criterion == "error" and labels is None:
        raise SettingsError("criterion error needs class labels and their code")


def best_ridge(ridges: Any, criterion: str, **figures: np.ndarray | None) -> int:
    """The place of the ridge chosen; `figures` are named as the criteria, an entry for each."""
    places = np.arange(len(ridges))
    for key in ("error", "loo") if criterion == "error" else (criterion,):
        found = figures[key]
        assert found is not None
        values = np.nan_to_num(np.asarray(found)[places], nan=np.inf)
        lowest = values.min()
        places = places[values <= lowest + EQUAL * abs(lowest)]
    return int(places[np.argmax(np.asarray(ridges)[places])])
