"""Choosing centres: the picks of incomplete Cholesky, the chances of the random rules, classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.centres import SELECTIONS, choose_centres
from kfu.least_squares.leverage import leverage_scores
from kfu.least_squares.rectangle import trace_portion
from tests.oracles import low_rank as oracle

GAMMA = 0.3
RBF = KernelSpec.make("rbf", gamma=GAMMA)


def gauss(X, gamma=GAMMA):
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(-1))


def points(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("name", [name for name in SELECTIONS if name != "kmeans"])
@pytest.mark.parametrize("layout", ["dense", "csr", "precomputed"])
def test_every_rule_gives_distinct_rows_of_positive_weight_and_repeats_itself(name, layout):
    X = points(80)
    weight = np.where(np.arange(80) % 3 == 0, 0.0, 1.0)
    data, kernel = X, RBF
    if layout == "csr":
        data = sp.csr_matrix(X)
    elif layout == "precomputed":
        data, kernel = gauss(X), KernelSpec.make("precomputed")
    chosen = choose_centres(name, data, kernel, 20, seed=3, ridge=0.5, weight=weight)
    assert len(set(chosen.rows.tolist())) == 20 == chosen.info["m"]
    assert (weight[chosen.rows] > 0).all()
    again = choose_centres(name, data, kernel, 20, seed=3, ridge=0.5, weight=weight, threads=1)
    assert np.array_equal(chosen.rows, again.rows)
    if layout != "dense":
        dense = choose_centres(name, X, RBF, 20, seed=3, ridge=0.5, weight=weight)
        assert np.array_equal(chosen.rows, dense.rows)


@pytest.mark.parametrize("name", SELECTIONS)
def test_all_rows_may_be_centres(name):
    X = points(12)
    chosen = choose_centres(name, X, RBF, 12, ridge=1.0)
    assert sorted(chosen.rows) == list(range(12))


@pytest.mark.parametrize("name", SELECTIONS)
def test_one_row_is_enough(name):
    assert choose_centres(name, points(1), RBF, 1, ridge=1.0).rows.tolist() == [0]


def test_incomplete_cholesky_picks_as_the_whole_matrix_says():
    X = points(60)
    K = gauss(X)
    chosen = choose_centres("ic", X, RBF, 15)
    assert chosen.rows.tolist() == oracle.incomplete_cholesky(K, 15)
    tilde = oracle.approximate(K, chosen.rows)
    assert np.allclose(chosen.R.T @ chosen.R, tilde, atol=1e-10)
    assert chosen.info["trace_portion"] == pytest.approx(np.trace(tilde) / np.trace(K), rel=1e-10)
    assert trace_portion(X, RBF, chosen.rows) == pytest.approx(chosen.info["trace_portion"])


def test_incomplete_cholesky_stops_when_all_rows_are_spanned():
    X = points(40, d=3)
    linear = KernelSpec.make("linear")
    chosen = choose_centres("ic", X, linear, 10)
    assert len(chosen.rows) == 3
    assert chosen.info["trace_portion"] == pytest.approx(1.0, abs=1e-12)


def test_kmeans_plus_plus_leaves_out_repeated_rows():
    X = np.repeat(points(5), 10, axis=0)
    chosen = choose_centres("kmeans++", X, RBF, 20)
    assert len(np.unique(chosen.rows // 10)) == 5 == len(chosen.rows)
    assert chosen.info["potential"] == 0.0


def test_kmeans_plus_plus_draws_with_the_exact_chances():
    X = points(6, d=2, seed=4)
    expected = oracle.kmeans_plus_plus_sets(gauss(X), 4)
    runs = 1000
    seen = dict.fromkeys(expected, 0)
    for seed in range(runs):
        seen[
            frozenset(choose_centres("kmeans++", X, RBF, 4, seed=seed, threads=1).rows.tolist())
        ] += 1
    chi = sum((seen[s] - runs * p) ** 2 / (runs * p) for s, p in expected.items())
    assert chi < 40.0  # 14 degrees of freedom: a chance of 2·10⁻⁴


def test_leverage_scores_of_a_whole_sketch_are_exact():
    X = points(50)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 50)
    scores = leverage_scores(X, RBF, 0.3, sketch=50)
    assert np.allclose(scores, oracle.leverage(gauss(X), 0.3), atol=1e-9)
    # The sketch is drawn in proportion to the weights, which cancel in it: with equal ones exact.
    even = leverage_scores(X, RBF, 0.3, sketch=50, weight=np.full(50, 2.0))
    assert np.allclose(even, oracle.leverage(gauss(X), 0.3, np.full(50, 2.0)), atol=1e-9)
    assert (leverage_scores(X, RBF, 0.3, sketch=20, weight=weight) >= 0.0).all()


def test_leverage_prefers_rows_that_stand_alone():
    X = np.vstack([0.05 * points(190, seed=1), 3.0 * points(10, seed=2)])
    chosen = choose_centres("leverage", X, KernelSpec.make("rbf", gamma=1.0), 20, ridge=0.1)
    assert np.count_nonzero(chosen.rows >= 190) >= 7


def test_random_follows_the_weights():
    weight = np.ones(100)
    weight[:10] = 50.0
    hits = [
        choose_centres("random", points(100), RBF, 10, seed=s, weight=weight) for s in range(30)
    ]
    assert np.mean([np.mean(c.rows < 10) for c in hits]) > 0.6


def test_balanced_classes():
    labels = np.array(["rare"] * 3 + ["some"] * 17 + ["often"] * 80)
    chosen = choose_centres("random", points(100), RBF, 21, labels=labels)
    assert chosen.info["per_class"] == {"rare": 3, "some": 9, "often": 9}
    assert len(set(chosen.rows.tolist())) == 21


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"m": 0}, "0 centres out of 30"),
        ({"m": 31}, "31 centres out of 30"),
        ({"selection": "kmeens"}, "kmeans"),
        ({"selection": "leverage"}, "ridge"),
        ({"selection": "leverage", "ridge": -1.0}, "ridge is -1"),
        ({"selection": "ic", "labels": np.ones(30)}, "classes count for"),
        ({"m": 2, "weight": np.eye(1, 30)[0]}, "2 centres out of 1 rows"),
    ],
)
def test_settings_that_cannot_be_used(change, words):
    options = {"selection": "random", "m": 5, **change}
    name, m = options.pop("selection"), options.pop("m")
    with pytest.raises(SettingsError, match=words):
        choose_centres(name, points(30), RBF, m, **options)


def test_bad_weights():
    with pytest.raises(DataError, match="weight of row 2"):
        choose_centres("random", points(3), RBF, 1, weight=[1.0, np.nan, 1.0])
