"""k nearest neighbours in feature space: classification, regression and the choice of k.

The distance is that of the kernel (kfu.baselines.distances); for linear, rbf and rational kernels
the neighbours are those of the input space. Rows of weight 0 are not there; of equally distant rows
the first ones are nearer. With neighbours i = 1..k of x, row weights w_i and distance weights q_i,

    score_c(x) = Σ_{i in c} w_i q_i / Σ_i w_i q_i        regression: Σ w_i q_i y_i / Σ w_i q_i

q is 1 ("none"), 1/d ("inverse") or 1/d² ("inverse-squared"), d the distance in feature space; where
neighbours lie on the point itself, they alone count. Classes with equal scores: the one with the
nearest neighbour wins, which `knn_scores` marks by adding NUDGE to its score.

`select_k` scores every k up to a limit by leave-one-out in one pass: the sorted neighbours of each
row are found once, and the votes of k neighbours are running sums.

Cover and Hart, IEEE Trans. Inf. Theory 13 (1967); Dudani, IEEE Trans. SMC 6 (1976).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.baselines.distances import FeatureDistance
from kfu.baselines.rows import (
    BLOCK_BYTES,
    checked_labels,
    checked_new_rows,
    checked_rows,
    checked_weights,
    class_coefficients,
    class_totals,
    row_blocks,
    target_coefficients,
)
from kfu.data import Matrix
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec

__all__ = [
    "WEIGHTINGS",
    "NeighbourChoice",
    "knn_regression",
    "knn_scores",
    "nearest_keys",
    "select_k",
]

NUDGE = 1e-10
SAME = 1e-12  # scores that differ by less are equal


def _inverse(power: float) -> Callable[[np.ndarray], np.ndarray]:
    def weigh(squared: np.ndarray) -> np.ndarray:
        is_zero = squared == 0.0
        # Relative to the nearest (the first): only shares count, and nothing can overflow.
        ratio = squared[:, :1] / np.where(is_zero, 1.0, squared)
        return np.where(is_zero[:, :1], is_zero.astype(float), ratio ** (power / 2.0))

    return weigh


# Weights of neighbours (rows, k), nearest first, from their squared distances; None = all equal.
WEIGHTINGS: dict[str, Callable[[np.ndarray], np.ndarray] | None] = {
    "none": None,
    "inverse": _inverse(1.0),
    "inverse-squared": _inverse(2.0),
}


def nearest_keys(keys: np.ndarray, k: int) -> np.ndarray:
    """Columns (rows, k) of the k smallest keys of each row, ascending; equal keys by column."""
    n_columns = keys.shape[1]
    if k < n_columns:
        chosen = np.argpartition(keys, k - 1, axis=1)[:, :k]
        last = np.take_along_axis(keys, chosen, axis=1).max(axis=1)
        # Which of several equal keys argpartition takes is open: settle those at the boundary.
        crowded = np.flatnonzero((keys <= last[:, None]).sum(axis=1) > k)
        for row in crowded:
            nearer = np.flatnonzero(keys[row] < last[row])
            equal = np.flatnonzero(keys[row] == last[row])
            chosen[row] = np.concatenate([nearer, equal[: k - nearer.size]])
        chosen.sort(axis=1)
    else:
        chosen = np.broadcast_to(np.arange(n_columns), keys.shape)
    order = np.argsort(np.take_along_axis(keys, chosen, axis=1), axis=1, kind="stable")
    return np.take_along_axis(chosen, order, axis=1)


# ---- prediction --------------------------------------------------------------------------------


def knn_scores(
    vectors: Matrix | None,
    coef: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    *,
    neighbours: int,
    weighting: str = "none",
    threads: int = 0,
    diagonal: np.ndarray | None = None,
    budget: int = BLOCK_BYTES,
) -> np.ndarray:
    """Score of each class (n, K) for the rows of X: its share of the votes of the neighbours.

    `vectors` are the training rows and `coef` their class coefficients (K, n_vectors), see
    kfu.baselines.rows. For a precomputed kernel X holds the kernel values with the vectors, and
    `vectors` the training matrix or `diagonal` its diagonal.
    """
    if np.any(coef < 0.0):
        raise SettingsError("class coefficients are row weights, and one of them is negative")
    scores = np.empty((X.shape[0], coef.shape[0]))
    labels = np.argmax(coef, axis=0)
    search = _search(
        vectors, coef.sum(axis=0), kernel, X, neighbours, weighting, threads, diagonal, budget
    )
    for rows, members, weights in search:
        votes = _votes(labels[members], weights, coef.shape[0])
        first = _first_seen(labels[members], coef.shape[0])
        scores[rows] = votes + NUDGE * _winners(votes, first, only_ties=True)
    return scores


def knn_regression(
    vectors: Matrix | None,
    coef: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    *,
    neighbours: int,
    weighting: str = "none",
    threads: int = 0,
    diagonal: np.ndarray | None = None,
    budget: int = BLOCK_BYTES,
) -> np.ndarray:
    """Mean target of the neighbours (n, outputs); `coef` is that of `target_coefficients`."""
    weights = coef[-1]
    targets = (coef[:-1] / np.where(weights > 0.0, weights, 1.0)).T
    result = np.empty((X.shape[0], coef.shape[0] - 1))
    search = _search(vectors, weights, kernel, X, neighbours, weighting, threads, diagonal, budget)
    for rows, members, shares in search:
        sums = np.einsum("rk,rko->ro", shares, targets[members])
        result[rows] = sums / shares.sum(axis=1, keepdims=True)
    return result


def _search(
    vectors: Matrix | None,
    weights: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    k: int,
    weighting: str,
    threads: int,
    diagonal: np.ndarray | None,
    budget: int,
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """For blocks of rows of X: the slice, the neighbours (rows, k) and their weights w·q."""
    weigh = _weighting(weighting)
    absent = weights <= 0.0
    _check_k(k, int(np.count_nonzero(~absent)))
    metric = FeatureDistance(vectors, kernel, diagonal=diagonal, threads=threads)
    X = checked_new_rows(X, weights.size, None if vectors is None else vectors.shape[1], kernel)
    for rows in row_blocks(X.shape[0], 24 * weights.size, budget):
        keys = metric.keys(X[rows])
        keys[:, absent] = np.inf
        members = nearest_keys(keys, k)
        shares = weights[members]
        if weigh is not None:
            chosen = np.take_along_axis(keys, members, axis=1)
            shares = shares * weigh(metric.squared(chosen, X[rows]))
        yield rows, members, shares


def _weighting(name: str) -> Callable[[np.ndarray], np.ndarray] | None:
    if name not in WEIGHTINGS:
        known = ", ".join(WEIGHTINGS)
        raise SettingsError(f"distance weights are {name!r}; choose one of {known}")
    return WEIGHTINGS[name]


def _check_k(k: int, available: int) -> None:
    if int(k) != k or k < 1:
        raise SettingsError(f"neighbours is {k!r}; an integer from 1 is needed")
    if k > available:
        raise SettingsError(
            f"{k} neighbours asked for where there are {available} rows of positive weight"
        )


def _votes(labels: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Share (rows, K) of each class in the weights of the neighbours."""
    n_rows = labels.shape[0]
    cells = labels + n_classes * np.arange(n_rows)[:, None]
    sums = np.bincount(cells.ravel(), weights.ravel(), minlength=n_rows * n_classes)
    votes = sums.reshape(n_rows, n_classes)
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def _first_seen(labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Position (rows, K) of the nearest neighbour of each class; k where there is none."""
    first = np.full((labels.shape[0], n_classes), labels.shape[1])
    lines = np.arange(labels.shape[0])
    for position in range(labels.shape[1] - 1, -1, -1):
        first[lines, labels[:, position]] = position
    return first


def _winners(votes: np.ndarray, first: np.ndarray, *, only_ties: bool) -> np.ndarray:
    """0/1 (..., K): the class with most votes, of several the one with the nearest neighbour.

    `only_ties` marks no class where the most votes are one class's alone.
    """
    is_best = votes >= votes.max(axis=-1, keepdims=True) * (1.0 - SAME)
    position = np.where(is_best, first, np.iinfo(np.int64).max)
    marks = np.zeros(votes.shape)
    np.put_along_axis(marks, np.argmin(position, axis=-1)[..., None], 1.0, axis=-1)
    return marks * (is_best.sum(axis=-1, keepdims=True) > 1) if only_ties else marks


# ---- the choice of k ---------------------------------------------------------------------------


@dataclass
class NeighbourChoice:
    """Leave-one-out of every k up to a limit."""

    neighbours: int  #: the k with the smallest error, the smallest such
    loo_error: np.ndarray  #: (kmax,), of k = 1, 2, ...: share of errors or mean squared error

    def table(self) -> list[dict[str, float]]:
        """One plain row for each k, for reports."""
        return [
            {"neighbours": k, "loo_error": float(e)} for k, e in enumerate(self.loo_error, start=1)
        ]


def select_k(
    X: Any,
    targets: Any,
    kernel: KernelSpec,
    *,
    kmax: int = 50,
    weight: np.ndarray | None = None,
    weighting: str = "none",
    regression: bool = False,
    n_classes: int | None = None,
    threads: int = 0,
    budget: int = BLOCK_BYTES,
    source: str = "data",
) -> NeighbourChoice:
    """Choose k by leave-one-out; `targets` are class indices, or numbers with regression=True.

    kmax is lowered to the number of other rows that have weight. Errors are weighted by the rows.
    """
    X = checked_rows(X, kernel, source)
    n = X.shape[0]
    weights = checked_weights(weight, n, source)
    weigh = _weighting(weighting)
    absent = weights <= 0.0
    _check_k(kmax, max(int(kmax), 1))
    kmax = min(int(kmax), n - int(np.count_nonzero(absent)) - 1)
    if kmax < 1:
        raise SettingsError("leave-one-out needs two rows of positive weight or more")
    if regression:
        goals = target_coefficients(targets, None)[:-1].T
        score: Callable[..., np.ndarray] = _running_squares
    else:
        labels = checked_labels(targets, n, source)
        coef = class_coefficients(labels, weights, n_classes)
        class_totals(coef, source)
        goals, score = np.eye(coef.shape[0])[labels], _running_errors
    metric = FeatureDistance(X, kernel, threads=threads)
    own = metric.diagonal  # K(z, z) of the training rows, where the metric needs it
    total = np.zeros(kmax)
    for rows in row_blocks(n, 24 * n + 40 * kmax * goals.shape[1], budget):
        keys = metric.keys(X[rows])
        keys[:, absent] = np.inf
        keys[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = np.inf
        members = nearest_keys(keys, kmax)
        shares = np.broadcast_to(weights[members], members.shape)
        if weigh is not None:
            chosen = np.take_along_axis(keys, members, axis=1)
            of_rows = None if own is None else own[rows]
            shares = shares * weigh(metric.squared(chosen, X[rows], of_rows))
        total += weights[rows] @ score(shares, goals[members], goals[rows])
    loo_error = total / weights.sum()
    return NeighbourChoice(int(np.argmin(loo_error)) + 1, loo_error)


def _running_errors(shares: np.ndarray, of_members: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(rows, kmax): whether the votes of the first k neighbours go wrong, for every k."""
    votes = np.cumsum(shares[:, :, None] * of_members, axis=1)
    first = _first_seen(np.argmax(of_members, axis=2), truth.shape[1])
    winners = _winners(votes, first[:, None, :], only_ties=False)
    return 1.0 - np.einsum("rkc,rc->rk", winners, truth)


def _running_squares(shares: np.ndarray, of_members: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(rows, kmax): squared error of the mean of the first k neighbours, for every k."""
    sums = np.cumsum(shares[:, :, None] * of_members, axis=1)
    means = sums / np.cumsum(shares, axis=1)[:, :, None]
    return np.asarray(((means - truth[:, None, :]) ** 2).mean(axis=2))
