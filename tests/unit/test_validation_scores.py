"""Scores of rankings and of regressions against their definitions and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from kfu.errors import DataError, SettingsError
from kfu.validation.ranking_scores import (
    ndcg,
    ndcg_per_query,
    pair_counts,
    pair_error,
    rising_pairs,
)
from kfu.validation.regression_scores import correlation, kendall, mae, mse, r2, spearman
from tests.oracles import curves as oracle

# A worked example: grades of x1 … x7, ranked x4, x5, x7, x6, x3, x2, x1.
GRADES = np.array([1, 1, 3, 2, 1, 3, 4])
SCORES = np.array([1, 2, 3, 7, 6, 4, 5])


def test_worked_example():
    assert ndcg(SCORES, GRADES, at=5) == pytest.approx(0.68524, abs=5e-6)
    assert ndcg(SCORES, GRADES, at=3) == pytest.approx(0.48572, abs=5e-6)
    assert ndcg(GRADES, GRADES, at=None) == 1.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6),
    st.integers(1, 7),
)
def test_equal_scores_count_the_mean_over_their_orders(rows, at):
    scores, grades = (list(column) for column in zip(*rows, strict=True))
    if max(grades) == 0:
        assert ndcg(scores, grades, at=at) == 1.0
        return
    expected = oracle.expected_ndcg(scores, grades, at)
    assert ndcg(scores, grades, at=at) == pytest.approx(expected, rel=1e-12)


def test_queries_are_scored_one_by_one():
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 9, size=120) * 7
    grades, scores = rng.integers(0, 5, size=120), rng.integers(0, 20, size=120)
    names, values = ndcg_per_query(scores, grades, qid, at=4)
    np.testing.assert_array_equal(names, np.unique(qid))
    for name, value in zip(names, values, strict=True):
        of = qid == name
        gains = 2.0 ** grades[of] - 1
        expected = metrics.ndcg_score([gains], [scores[of]], k=4)
        assert value == pytest.approx(expected, rel=1e-12)
        linear = ndcg(scores[of], grades[of], at=4, gains="linear")
        assert linear == pytest.approx(metrics.ndcg_score([grades[of]], [scores[of]], k=4))
    assert ndcg(scores, grades, qid, at=4) == pytest.approx(values.mean())


def test_queries_without_relevant_rows():
    scores, grades, qid = [3, 2, 1, 2], [0, 0, 0, 1], [1, 1, 2, 2]
    assert ndcg(scores, grades, qid) == 1.0
    assert ndcg(scores, grades, qid, empty="zero") == 0.5
    assert ndcg([3, 2, 2, 1], grades, qid, empty="skip") == pytest.approx(1 / math.log2(3))
    assert math.isnan(ndcg([1, 2], [0, 0], empty="skip"))


def test_constant_scores_are_not_perfect():
    assert ndcg([0, 0], [0, 1], at=1) == 0.5
    assert pair_error([0, 0], [0, 1]) == 1.0


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-2, 3), st.integers(0, 3)), min_size=1, max_size=40
    )
)
def test_pairs_are_counted_as_written_out(rows):
    scores, grades, qid = (np.array(column) for column in zip(*rows, strict=True))
    assert pair_counts(scores, grades, qid) == oracle.pair_counts(scores, grades, qid)


@given(st.permutations(range(9)), st.integers(0, 9))
def test_rising_pairs_of_a_permutation(order, n):
    rank = np.argsort(order[:n])
    expected = sum(rank[i] < rank[j] for i in range(n) for j in range(i + 1, n))
    assert rising_pairs(rank) == expected


def test_pair_error_of_two_grades_is_one_minus_auc():
    rng = np.random.default_rng(2)
    y, f = rng.integers(0, 2, 300), rng.permutation(300)
    assert pair_error(f, y) == pytest.approx(1 - metrics.roc_auc_score(y, f))
    assert pair_error(f, f) == 0.0
    assert math.isnan(pair_error([1, 2], [3, 3]))
    assert math.isnan(pair_error([1, 2], [3, 4], qid=[1, 2]))


def test_many_pairs_do_not_overflow():
    n = 200_000
    f = np.arange(n, dtype=float)
    assert pair_counts(-f, f) == (n * (n - 1) // 2, n * (n - 1) // 2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"relevance": [0, -1]}, DataError, "-1 in row 1 .* grades start at 0"),
        ({"relevance": [0, 5000]}, DataError, "too large for a gain"),
        ({"relevance": [0]}, DataError, "1 numbers for 2 rows"),
        ({"scores": [0, math.nan]}, DataError, "NaN in row 1"),
        ({"qid": [1]}, DataError, "1 queries for 2 rows"),
        ({"at": 0}, SettingsError, "positions count from 1"),
        ({"gains": "cubic"}, SettingsError, "gains 'cubic'; choose one of exponential, linear"),
        ({"empty": "no"}, SettingsError, "empty 'no'; choose one of one, zero, skip"),
    ],
)
def test_ranking_refuses(options, error, words):
    with pytest.raises(error, match=words):
        ndcg(**{"scores": [1, 2], "relevance": [0, 1], **options})


# ---- regression -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_weighted", [False, True])
def test_errors_are_scikit_learns(is_weighted):
    rng = np.random.default_rng(4)
    y, f = rng.normal(size=(2, 50))
    w = rng.integers(0, 3, size=50).astype(float) if is_weighted else None
    assert mse(y, f, w) == pytest.approx(metrics.mean_squared_error(y, f, sample_weight=w))
    assert mae(y, f, w) == pytest.approx(metrics.mean_absolute_error(y, f, sample_weight=w))
    assert r2(y, f, w) == pytest.approx(metrics.r2_score(y, f, sample_weight=w))


def test_r2_at_its_edges():
    assert r2([1, 1, 1], [1, 1, 1]) == 1.0
    assert r2([1, 1, 1], [1, 1, 2]) == 0.0
    assert math.isnan(r2([1], [1]))
    assert math.isnan(r2([1, 2], [1, 2], [1, 0]))
    assert r2([1, 2, 3], [2, 2, 2]) == 0.0
    assert r2([5, 5, 9], [5, 6, 0], [1, 1, 0]) == 0.0  # the row of weight 0 is no variance


def test_rank_correlations_are_scipys():
    rng = np.random.default_rng(6)
    y, f = rng.integers(0, 9, 60), rng.integers(0, 9, 60)
    assert spearman(y, f) == pytest.approx(stats.spearmanr(y, f).statistic)
    assert kendall(y, f) == pytest.approx(stats.kendalltau(y, f).statistic)
    assert correlation(y, f) == pytest.approx(np.corrcoef(y, f)[0, 1])
    assert spearman(y, np.exp(y)) == pytest.approx(1.0)
    assert correlation([1e200, -1e200, 0], [1, -1, 0]) == pytest.approx(1.0)
    for measure in (spearman, kendall, correlation):
        assert math.isnan(measure([1, 1, 1], [1, 2, 3]))


def test_regression_refuses():
    with pytest.raises(DataError, match="no rows"):
        mse([], [])
    with pytest.raises(DataError, match="predictions: 1 numbers for 2 rows"):
        mae([1, 2], [1])
    with pytest.raises(DataError, match="every weight is 0"):
        r2([1, 2], [1, 2], [0, 0])
