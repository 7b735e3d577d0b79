"""RankSVM: the machine of difference vectors, its weights, queries and score."""

from __future__ import annotations

import numpy as np
import pytest

from kfu import RankSVM

pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC


def queries(n: int = 60, n_queries: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 4))
    qid = rng.integers(0, n_queries, n)
    values = X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=n) + 5.0 * qid
    y = np.zeros(n)
    for query in range(n_queries):  # three levels in each query
        rows = np.flatnonzero(qid == query)
        y[rows] = np.digitize(values[rows], np.quantile(values[rows], [0.4, 0.8]))
    return X, y, qid


def pairs_of(y, qid):
    return [
        (i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]
    ]


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_machine_of_difference_vectors(weighted):
    X, y, qid = queries()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    ours = RankSVM(C=0.1, kernel="linear", tol=1e-6)
    ours.fit(X, y, qid=qid, sample_weight=weights if weighted else None)
    pairs = np.array(pairs_of(y, qid))
    sign = np.where(np.arange(len(pairs)) % 2, 1.0, -1.0)  # LinearSVC wants two classes
    differences = sign[:, None] * (X[pairs[:, 0]] - X[pairs[:, 1]])
    theirs = LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    theirs.fit(differences, sign, sample_weight=weights[pairs[:, 0]] * weights[pairs[:, 1]])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.info_["n_pairs"] == len(pairs)
    assert ours.intercept_.tolist() == [0.0]


def test_the_score_is_the_share_of_pairs_in_order():
    X, y, qid = queries()
    ranker = RankSVM(kernel="rbf", gamma=0.2).fit(X, y, qid=qid)
    f = ranker.predict(X)
    expected = np.mean([f[i] > f[j] for i, j in pairs_of(y, qid)])
    assert ranker.score(X, y, qid=qid) == pytest.approx(expected)
    assert expected > 0.8
    np.testing.assert_array_equal(ranker.decision_function(X), f)
    assert np.isnan(ranker.score(X, np.ones(len(y)), qid=qid))


def test_queries_matter_and_may_have_any_names():
    X, y, qid = queries()
    y = y + 10 * qid  # between queries relevances say nothing
    by_number = RankSVM(kernel="linear", tol=1e-6).fit(X, y, qid=qid)
    names = np.array(["red", "blue", "green", "grey"])
    by_name = RankSVM(kernel="linear", tol=1e-6).fit(X, y, qid=names[qid])
    np.testing.assert_allclose(by_name.coef_, by_number.coef_, atol=1e-5)
    one = RankSVM(kernel="linear", tol=1e-6).fit(X, y)
    same = RankSVM(kernel="linear", tol=1e-6).fit(X, y, qid=np.ones(len(y)))
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert np.abs(one.coef_ - by_number.coef_).max() > 0.1


def test_the_reduced_graph():
    X, y, qid = queries()
    whole = RankSVM(kernel="linear").fit(X, y, qid=qid)
    reduced = RankSVM(kernel="linear", graph="reduced").fit(X, y, qid=qid)
    assert reduced.info_["n_pairs"] < 2 * len(y) < whole.info_["n_pairs"]
    assert reduced.score(X, y, qid=qid) > 0.75
    other = RankSVM(kernel="linear", graph="reduced", random_state=1).fit(X, y, qid=qid)
    assert not np.array_equal(other.coef_, reduced.coef_)


def test_rows_of_no_weight_take_their_query_along():
    X, y, qid = queries()
    weights = (np.arange(len(y)) % 4 > 0).astype(float)
    kept = weights > 0
    whole = RankSVM(tol=1e-6, gamma=0.2).fit(X, y, qid=qid, sample_weight=weights)
    part = RankSVM(tol=1e-6, gamma=0.2).fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(whole.predict(X), part.predict(X), atol=1e-6)
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(kept)[part.support_])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": np.zeros(3)}, "qid has shape"),
        ({"y": np.ones(60)}, "no pair to learn from"),
        ({"y": np.full(60, np.nan)}, "NaN"),
        ({"y": None}, "requires y"),
    ],
)
def test_bad_data_are_value_errors(change, message):
    X, y, qid = queries()
    given = {"y": y, "qid": qid, **change}
    with pytest.raises(ValueError, match=message):
        RankSVM().fit(X, given["y"], qid=given["qid"])


@pytest.mark.parametrize(
    ("parameters", "message"), [({"graph": "star"}, "graph"), ({"C": float("inf")}, "C must be")]
)
def test_bad_parameters_are_value_errors(parameters, message):
    X, y, qid = queries()
    with pytest.raises(ValueError, match=message):
        RankSVM(**parameters).fit(X, y, qid=qid)


def test_search_over_one_query():
    X, y, _ = queries()
    search = GridSearchCV(RankSVM(gamma=0.2), {"C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.4
