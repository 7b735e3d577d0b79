"""Graphs of preference pairs within queries.

A pair (u, v) says that row u should score higher than row v. Relevance levels y induce them inside
each query:

complete  every u, v with y_u > y_v. Up to n²/2 pairs for a query of n rows.
reduced   (Zapién 2009, Algorithm 3) for each level R below the query's highest one: a random row k
          of level R stands for the level. *Intra* pairs k ≻ v for every other row v of level R, and
          *inter* pairs u ≻ k for every row u of the next higher level. Fewer than 2n pairs, and by
          transitivity a scoring that satisfies all of them satisfies the complete graph. With two
          levels there are n − 1 pairs.

Levels are those that occur in the query itself, in their order: a level that a query lacks leaves
no gap, and the highest level of each query gets no intra pairs (the printed algorithm, taken
literally with the levels of the whole data set, loses the link across a missing level and adds
pairs at the top of queries without the highest level). An intra pair asks for an order the
relevance does not know; its violation matters less, so `edge_kinds` tells the two apart and they
may be given different costs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfu.errors import DataError, SettingsError

__all__ = ["GRAPHS", "complete_graph", "edge_kinds", "make_graph", "reduced_graph"]


def complete_graph(
    y: np.ndarray, qid: np.ndarray | None = None, *, source: str = "y"
) -> np.ndarray:
    """All pairs (m, 2), int64, [preferred, other], query by query in the order of `qid`'s values.

    Rows without qid are one query. Within a query: from the least to the most relevant preferred
    row, each beside all rows of lower levels. Raises DataError when no query has two levels.
    """
    order, query, level = _sorted_by_query(y, qid, source)
    n = len(order)
    begin = np.searchsorted(query, query, side="left")
    # The first sorted place of each row's own (query, level): rows before it, from `begin` on, are
    # the less relevant ones of the query.
    is_first = np.ones(n, dtype=bool)
    is_first[1:] = (query[1:] != query[:-1]) | (level[1:] != level[:-1])
    first = np.maximum.accumulate(np.where(is_first, np.arange(n), 0))
    count = first - begin
    m = int(count.sum())
    if m == 0:
        raise _no_pair(source, qid)
    place = np.repeat(np.arange(n), count)
    offset = np.arange(m) - np.repeat(np.cumsum(count) - count, count)
    pairs = np.empty((m, 2), dtype=np.int64)
    pairs[:, 0] = order[place]
    pairs[:, 1] = order[begin[place] + offset]
    return pairs


def reduced_graph(
    y: np.ndarray, qid: np.ndarray | None = None, seed: int = 0, *, source: str = "y"
) -> np.ndarray:
    """The reduced graph (m, 2), int64, [preferred, other]; `seed` draws the rows that stand for
    their levels. Raises DataError when no query has two levels.
    """
    order, query, level = _sorted_by_query(y, qid, source)
    n = len(order)
    is_first = np.ones(n, dtype=bool)
    is_first[1:] = (query[1:] != query[:-1]) | (level[1:] != level[:-1])
    group_begin = np.flatnonzero(is_first)  # a group: the rows of one level of one query
    group = np.cumsum(is_first) - 1
    size = np.diff(np.append(group_begin, n))
    drawn = np.random.default_rng(seed).random(len(size))
    stands = group_begin + np.minimum((drawn * size).astype(np.int64), size - 1)
    group_query = query[group_begin]
    has_higher = np.append(group_query[1:] == group_query[:-1], False)
    has_lower = np.append(False, has_higher[:-1])
    place = np.arange(n)
    intra = has_higher[group] & (place != stands[group])
    inter = has_lower[group]
    if not inter.any():
        raise _no_pair(source, qid)
    preferred = np.concatenate([stands[group[intra]], place[inter]])
    other = np.concatenate([place[intra], stands[group[inter] - 1]])
    # Query by query, so that pairs that share rows are neighbours.
    arrange = np.argsort(query[preferred], kind="stable")
    return np.stack([order[preferred[arrange]], order[other[arrange]]], axis=1)


def edge_kinds(pairs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """True for inter pairs (different relevance), False for intra pairs, by pair."""
    y = np.asarray(y)
    return y[pairs[:, 0]] != y[pairs[:, 1]]


GRAPHS: dict[str, Callable[..., np.ndarray]] = {
    "complete": lambda y, qid, seed, source: complete_graph(y, qid, source=source),
    "reduced": lambda y, qid, seed, source: reduced_graph(y, qid, seed, source=source),
}


def make_graph(
    name: str, y: np.ndarray, qid: np.ndarray | None = None, seed: int = 0, *, source: str = "y"
) -> np.ndarray:
    """The graph called `name`, a key of GRAPHS."""
    if name not in GRAPHS:
        raise SettingsError(f"graph is {name!r}; choose one of {', '.join(GRAPHS)}")
    return GRAPHS[name](y, qid, seed, source)


def _sorted_by_query(
    y: np.ndarray, qid: np.ndarray | None, source: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows sorted by query, then relevance, then row number: (rows, their query, their y)."""
    level = np.asarray(y)
    if level.ndim != 1:
        raise DataError(source, None, f"relevance of shape {level.shape}", "give one per row")
    if not np.issubdtype(level.dtype, np.number) and level.dtype != np.bool_:
        raise DataError(
            source,
            None,
            "relevance that is not a number",
            "ranking needs numbers, larger is better",
        )
    bad = np.flatnonzero(~np.isfinite(level)) if level.size else level
    if bad.size:
        raise DataError(
            source, None, f"relevance {level[bad[0]]} in row {bad[0] + 1}", "give finite numbers"
        )
    query = np.zeros(len(level), dtype=np.int64) if qid is None else np.asarray(qid)
    if query.shape != level.shape:
        raise DataError(
            source, None, f"{len(level)} rows but {len(query)} query numbers", "give one per row"
        )
    order = np.lexsort((level, query))
    return order.astype(np.int64), query[order], level[order]


def _no_pair(source: str, qid: np.ndarray | None) -> DataError:
    where = "the data" if qid is None else "each query"
    return DataError(
        source,
        None,
        f"no pair to learn from: all rows of {where} have the same relevance",
        "ranking needs a query (qid:) whose rows differ in relevance",
    )
