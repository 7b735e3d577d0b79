"""RLS and RLSC beside their definition, scikit-learn's KernelRidge and its checks."""

from __future__ import annotations

import numpy as np
import pytest

from kfu import RLS, RLSC

sklearn = pytest.importorskip("sklearn")
from sklearn.kernel_ridge import KernelRidge  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402


def sample(n=70, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def rbf(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(-1))


def beyond(estimator):
    """The check of class weights asks that 87 % of the rows of noise go to a class of 10⁷ times the
    weight. Leave-one-out loses no row of that class and then saves one of another: 86 %."""
    if getattr(estimator, "lam_by", "squares") == "squares":
        return {}
    return {"check_class_weight_classifiers": "errors are counted, down to the least weight"}


@parametrize_with_checks(
    [
        RLS(ridge=1.0),
        RLSC(ridge=1.0),
        RLS(),
        RLSC(),
        RLSC(fit_intercept=True, lam_by="errors"),
        RLS(ridge=1.0, method="cg"),
    ],
    expected_failed_checks=beyond,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_coefficients_and_leave_one_out_by_definition():
    X, y = sample()
    model = RLS(ridge=0.5, gamma=0.3).fit(X, y)
    K = rbf(X, X, 0.3) + 0.5 * np.eye(len(y))
    np.testing.assert_allclose(model.dual_coef_[0], np.linalg.solve(K, y), rtol=1e-10)
    for row in (0, 17, 69):
        kept = np.delete(np.arange(len(y)), row)
        c = np.linalg.solve(K[np.ix_(kept, kept)], y[kept])
        assert model.loo_predictions_[row] == pytest.approx(K[row, kept] @ c, abs=1e-11)


def test_lam_is_ridge_over_rows():
    X, y = sample()
    a, b = RLS(lam=0.01, gamma=0.3).fit(X, y), RLS(ridge=0.7, gamma=0.3).fit(X, y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-12)
    assert a.ridge_ == pytest.approx(0.7)
    with pytest.raises(ValueError, match="both set the ridge"):
        RLS(ridge=1.0, lam=1.0).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_ridge_of_scikit_learn(weighted):
    X, y = sample()
    w = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else None
    peer = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, y, sample_weight=w)
    own = RLS(ridge=0.5, gamma=0.3).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(own.predict(X), peer.predict(X), atol=1e-9)


def test_the_chosen_ridge_has_the_least_leave_one_out_error():
    X, y = sample()
    chosen = RLS(gamma=0.3).fit(X, y)
    error = np.mean((chosen.loo_predictions_ - y) ** 2)
    for factor in (0.1, 0.5, 2.0, 10.0):
        other = RLS(ridge=chosen.ridge_ * factor, gamma=0.3).fit(X, y)
        assert np.mean((other.loo_predictions_ - y) ** 2) >= error - 1e-12


def test_complete_code_predicts_as_one_against_all():
    X, y = sample(120)
    labels = np.digitize(y, [-1.0, 0.0, 1.0])
    Z, _ = sample(200, seed=5)
    said = [
        RLSC(ridge=0.3, gamma=0.3, multiclass=code).fit(X, labels).predict(Z)
        for code in ("ova", "complete")
    ]
    np.testing.assert_array_equal(*said)


def test_leave_one_out_labels_and_error():
    X, y = sample(90)
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [-0.7, 0.7])]
    model = RLSC(ridge=0.3, gamma=0.3).fit(X, labels)
    for row in (0, 33, 89):
        kept = np.delete(np.arange(len(y)), row)
        left_out = RLSC(ridge=0.3, gamma=0.3).fit(X[kept], labels[kept])
        assert left_out.predict(X[row : row + 1])[0] == model.loo_labels_[row]
    assert model.loo_error_ == pytest.approx(np.mean(model.loo_labels_ != labels))


@pytest.mark.parametrize("approximation", ["rectangle", "falkon", "subset", "nystrom", "bagging"])
def test_low_rank_comes_near_the_full_machine(approximation):
    X, y = sample(300)
    full = RLS(ridge=0.3, gamma=0.3).fit(X, y)
    low = RLS(ridge=0.3, gamma=0.3, approximation=approximation, centres=150, random_state=0)
    low.fit(X, y)
    Z, target = sample(300, seed=9)
    base = np.mean((full.predict(Z) - target) ** 2)
    found = np.mean((low.predict(Z) - target) ** 2)
    limit = {"nystrom": 5.0}.get(approximation, 1.5)
    assert found <= limit * base
    assert low.loo_predictions_ is None


def test_all_rows_as_centres_are_the_full_machine():
    X, y = sample(60)
    full = RLS(ridge=0.3, gamma=0.3).fit(X, y)
    low = RLS(ridge=0.3, gamma=0.3, approximation="rectangle", centres=60).fit(X, y)
    np.testing.assert_allclose(low.predict(X), full.predict(X), atol=1e-7)
