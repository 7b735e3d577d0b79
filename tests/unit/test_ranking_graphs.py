"""Graphs of preference pairs against double loops, and their edge cases."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.ranking import GRAPHS, complete_graph, edge_kinds, make_graph, reduced_graph
from tests.oracles.ranking import all_pairs, ndcg, reaches


def as_set(pairs):
    found = {tuple(pair) for pair in pairs.tolist()}
    assert len(found) == len(pairs)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_complete_graph_has_every_pair_once(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, 4, 40), rng.integers(-2, 5, 40)
    pairs = complete_graph(y, qid)
    assert pairs.dtype == np.int64
    assert as_set(pairs) == all_pairs(y, qid)


@pytest.mark.parametrize("seed", range(6))
def test_reduced_graph_implies_the_complete_one(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, 5, 50), rng.integers(0, 6, 50)
    pairs = reduced_graph(y, qid, seed)
    assert pairs.dtype == np.int64
    graph = as_set(pairs)
    assert len(graph) < 2 * len(y)
    reach = reaches(graph, len(y))
    assert not reach.diagonal().any()  # no cycle: some scoring satisfies all pairs
    assert all(reach[u, v] for u, v in all_pairs(y, qid))
    assert all(qid[u] == qid[v] and y[u] >= y[v] for u, v in graph)


def test_reduced_graph_has_the_size_of_the_algorithm():
    rng = np.random.default_rng(3)
    y, qid = rng.choice([0.0, 1.0, 5.0], 60), rng.integers(0, 4, 60)  # levels 2 to 4 are missing
    expected = 0
    for query in np.unique(qid):
        sizes = np.unique(y[qid == query], return_counts=True)[1]
        if len(sizes) > 1:
            expected += (sizes[:-1] - 1).sum() + sizes[1:].sum()
    pairs = reduced_graph(y, qid, 1)
    assert len(pairs) == expected
    inter = edge_kinds(pairs, y)
    assert np.array_equal(inter, y[pairs[:, 0]] > y[pairs[:, 1]])
    for query in np.unique(qid):  # no intra pair at the top of a query
        top = y[qid == query].max()
        inside = (qid[pairs[:, 0]] == query) & ~inter
        assert np.all(y[pairs[inside, 0]] < top)


def test_two_levels_give_one_pair_less_than_rows():
    y = np.r_[np.zeros(75), np.ones(75)]
    assert len(reduced_graph(y, None, 0)) == 149  # the counts of the published mixture data
    assert len(complete_graph(y)) == 5625


def test_the_seed_draws_the_rows_and_the_order_of_rows_is_free():
    y = np.repeat([0, 1, 2], 20)
    assert np.array_equal(reduced_graph(y, None, 5), reduced_graph(y, None, 5))
    assert not np.array_equal(reduced_graph(y, None, 5), reduced_graph(y, None, 6))
    order = np.random.default_rng(0).permutation(60)
    mapped = {(int(order[u]), int(order[v])) for u, v in complete_graph(y[order])}
    assert mapped == as_set(complete_graph(y))


def test_rows_without_qid_are_one_query():
    assert as_set(complete_graph(np.array([1, 0, 2]))) == {(0, 1), (2, 1), (2, 0)}


def test_a_query_with_one_level_gives_no_pair():
    y, qid = np.array([1, 1, 0, 3]), np.array([7, 7, 9, 9])
    for name in GRAPHS:
        assert make_graph(name, y, qid).tolist() == [[3, 2]]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("y", "qid", "message"),
    [
        ([1.0, 1.0], None, "no pair to learn from: all rows of the data"),
        ([1.0], None, "no pair to learn from"),
        ([], None, "no pair to learn from"),
        ([0.0, 1.0], [1, 2], "all rows of each query"),
        ([0.0, np.nan], None, "relevance nan in row 2"),
        ([0.0, 1.0], [1], "2 rows but 1 query numbers"),
        ([[0.0, 1.0]], None, "shape"),
    ],
)
def test_refusals(name, y, qid, message):
    with pytest.raises(DataError, match=message):
        make_graph(name, np.array(y), None if qid is None else np.array(qid), source="f.svm")


def test_other_refusals():
    with pytest.raises(DataError, match="not a number"):
        complete_graph(np.array(["a", "b"]))
    with pytest.raises(SettingsError, match="complete, reduced"):
        make_graph("ring", np.array([0, 1]))


def test_the_oracle_of_ndcg_gives_the_published_example():
    # Zapién (2009), section 2.4.7: ranks of x1..x7 and the order x4 x5 x7 x6 x3 x2 x1.
    y = np.array([1, 1, 3, 2, 1, 3, 4])
    scores = np.array([1.0, 2.0, 3.0, 7.0, 6.0, 4.0, 5.0])
    assert ndcg(scores, y, np.zeros(7), at=5) == pytest.approx(0.68524, abs=1e-5)
    assert ndcg(scores, y, np.zeros(7), at=3) == pytest.approx(0.48572, abs=1e-5)
