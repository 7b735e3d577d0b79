"""How well scores rank rows within queries: NDCG and pairwise error.

NDCG at m of one query, its rows in falling order of the score, y_(i) the relevance at position i:

    dcg = Σ_{i ≤ m} (2^{y_(i)} − 1) / log₂(i + 1),      ndcg = dcg / (dcg of the ideal order).

Järvelin and Kekäläinen, ACM TOIS 20 (2002); the gains are those of Burges et al. (2005). Rows of
equal score have no order. The value is the mean over all their orders, which needs no chance: every
row of a group of equal scores gets the mean gain of the group (McSherry and Najork, ECIR 2008). A
constant score gets what random order gets, never 1.

A query with no relevant row has ideal dcg 0. It counts 1, as in LightGBM and XGBoost (whatever the
order, it is as good as can be); `empty` makes it count 0 or not at all.

Pairwise error: of all pairs of rows of one query with y_i > y_j, the share with f_i ≤ f_j. Equal
scores are errors, as no order was found. For relevances 0 and 1 in one query without equal scores
it is 1 − AUC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.validation.checked import numbers

__all__ = ["GAINS", "RANKING_SCORES", "ndcg", "ndcg_per_query", "pair_counts", "pair_error"]

GAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exponential": lambda y: np.expm1(y * math.log(2.0)),
    "linear": lambda y: y,
}
# What a query without relevant rows counts; NaN: it is left out of the mean.
EMPTY_QUERY = {"one": 1.0, "zero": 0.0, "skip": math.nan}
LARGEST_GRADE = 1000.0  # 2^y stays far below the largest float64


def ndcg(
    scores: Any,
    relevance: Any,
    qid: Any = None,
    at: int | None = 10,
    gains: str = "exponential",
    empty: str = "one",
) -> float:
    """The mean over queries of NDCG at position ``at`` (None: the whole list).

    ``qid`` None takes all rows as one query. NaN when no query counts (``empty="skip"``).
    """
    values = ndcg_per_query(scores, relevance, qid, at, gains, empty)[1]
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if counted.size else math.nan


def ndcg_per_query(
    scores: Any,
    relevance: Any,
    qid: Any = None,
    at: int | None = 10,
    gains: str = "exponential",
    empty: str = "one",
) -> tuple[np.ndarray, np.ndarray]:
    """The queries, sorted, and the NDCG of each."""
    for what, name, known in (("gains", gains, GAINS), ("empty", empty, EMPTY_QUERY)):
        if name not in known:
            raise SettingsError(f"{what} '{name}'; choose one of {', '.join(known)}")
    if at is not None and at < 1:
        raise SettingsError(f"NDCG at position {at}; positions count from 1")
    f, y, names, query = checked_rows(scores, relevance, qid)
    check_grades(y, gains)
    gain = GAINS[gains](y)
    position = np.arange(f.size) - first_of_group(np.sort(query))
    discount = 1 / np.log2(position + 2.0)
    if at is not None:
        discount[position >= at] = 0.0

    order = np.lexsort((-f, query))
    query_of, f, gain_of = query[order], f[order], gain[order]
    is_first = np.append(True, (query_of[1:] != query_of[:-1]) | (f[1:] != f[:-1]))
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, f.size))
    obtained = np.add.reduceat(gain_of, starts) / sizes * np.add.reduceat(discount, starts)
    dcg = np.bincount(query_of[starts], obtained, minlength=len(names))

    best = np.lexsort((-gain, query))
    ideal = np.bincount(query[best], gain[best] * discount, minlength=len(names))
    values = np.full(len(names), EMPTY_QUERY[empty])
    return names, np.divide(dcg, ideal, out=values, where=ideal > 0)


def pair_error(scores: Any, relevance: Any, qid: Any = None) -> float:
    """The share of pairs in the wrong order or in none; NaN when there is no pair to order."""
    wrong, pairs = pair_counts(scores, relevance, qid)
    return wrong / pairs if pairs else math.nan


def pair_counts(scores: Any, relevance: Any, qid: Any = None) -> tuple[int, int]:
    """How many pairs (y_i > y_j, one query) have f_i ≤ f_j, and how many pairs there are.

    O(n log n). Rows are put in order of (query, y, falling f) and numbered by (falling query, f,
    falling place). A pair that stands in rising order in both is one of the same query with larger
    y and larger f: the other cases, equal y, equal f and different queries, all make it fall in
    one of the two. So the pairs in order are the rising pairs of one permutation.
    """
    f, y, _, query = checked_rows(scores, relevance, qid)
    order = np.lexsort((-f, y, query))
    f, y, query = f[order], y[order], query[order]
    n = f.size
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((-np.arange(n), f, -query))] = np.arange(n)
    new_query = np.append(True, query[1:] != query[:-1])
    new_grade = new_query | np.append(True, y[1:] != y[:-1])
    pairs = pairs_within(new_query) - pairs_within(new_grade)
    return pairs - rising_pairs(rank), pairs


RANKING_SCORES: dict[str, Callable[..., float]] = {"ndcg": ndcg, "pair_error": pair_error}


# ---- inside ---------------------------------------------------------------------------------


def checked_rows(
    scores: Any, relevance: Any, qid: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, relevances, the sorted queries and each row's position among them."""
    f = numbers(scores, "scores")
    y = numbers(relevance, "relevance", f.size)
    if f.size == 0:
        raise DataError("scores", None, "no rows", "give at least one")
    if qid is None:
        return f, y, np.zeros(1, dtype=np.int64), np.zeros(f.size, dtype=np.int64)
    names, query = np.unique(np.asarray(qid).ravel(), return_inverse=True)
    if query.size != f.size:
        raise DataError("qid", None, f"{query.size} queries for {f.size} rows", "give one per row")
    return f, y, names, query.astype(np.int64, copy=False)


def is_graded(relevance: Any) -> bool:
    """Whether `ndcg` is defined: grades from 0 on, of which 2^y can be formed."""
    y = np.asarray(relevance, dtype=np.float64)
    known = y[np.isfinite(y)]
    return bool(np.all((known >= 0) & (known <= LARGEST_GRADE)))


def check_grades(y: np.ndarray, gains: str) -> None:
    row = int(np.argmin(y))
    if y[row] < 0:
        raise DataError(
            "relevance", None, f"{y[row]:g} in row {row} (counted from 0)", "grades start at 0"
        )
    row = int(np.argmax(y))
    if gains == "exponential" and y[row] > LARGEST_GRADE:
        raise DataError(
            "relevance",
            None,
            f"{y[row]:g} in row {row} (counted from 0), too large for a gain of 2^y",
            "use grades such as 0 to 4, or linear gains",
        )


def first_of_group(ordered: np.ndarray) -> np.ndarray:
    """For each place of a sorted array the first place with the same value."""
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return np.repeat(starts, np.diff(np.append(starts, ordered.size)))


def pairs_within(is_first: np.ndarray) -> int:
    """Pairs of places in the same group; groups are consecutive and begin where flagged."""
    sizes = np.diff(np.append(np.flatnonzero(is_first), is_first.size))
    return int(np.sum(sizes * (sizes - 1)) // 2)


def rising_pairs(rank: np.ndarray) -> int:
    """Pairs i < j with rank_i < rank_j of a permutation of 0 … n−1, in O(n log n).

    Two ranks part at their highest different binary digit. Going through the digits from the
    highest, rows with equal higher digits stand together, in their original order, and the block
    with higher digits p begins at place p·2^(digit+1); what counts is the zeros before each one
    in its block. Then each block is parted, zeros first, for the next digit.
    """
    total = 0
    n = rank.size
    for digit in reversed(range(max(n - 1, 0).bit_length())):
        is_one = (rank >> digit) & 1
        start = (rank >> (digit + 1)) << (digit + 1)
        zeros = np.append(0, np.cumsum(1 - is_one))
        zeros_before = zeros[:-1] - zeros[start]
        total += int(zeros_before @ is_one)
        zeros_in_block = zeros[np.minimum(start + (2 << digit), n)] - zeros[start]
        ones_before = np.arange(n) - start - zeros_before
        place = start + np.where(is_one == 1, zeros_in_block + ones_before, zeros_before)
        parted = np.empty_like(rank)
        parted[place] = rank
        rank = parted
    return total
