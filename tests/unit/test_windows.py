"""Parzen windows, Nadaraya–Watson and the choice of the width against sums written out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.baselines import (
    class_coefficients,
    expansion_scores,
    nadaraya_watson_regression,
    nadaraya_watson_scores,
    parzen,
    select_width,
    target_coefficients,
)
from kfu.baselines.windows import check_window, leave_one_out_quotients
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from tests.oracles.baselines import parzen_scores, window_means
from tests.oracles.kernels import ORACLES

KERNELS = [
    KernelSpec.make("rbf", gamma=0.7),
    KernelSpec.make("laplacian", gamma=0.5),
    KernelSpec.make("rational", gamma=0.5),
    KernelSpec.make("rbf-ard", gamma=(0.5, 1.0, 0.2)),
]


def sample(seed, n=40, n_classes=3, d=3):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d)) + labels[:, None]
    return X, labels, rng.uniform(0.2, 3.0, n), rng.standard_normal((20, d)) + 1.0


def matrix(kernel, X, Z):
    return ORACLES[kernel.name](X, Z, **kernel.params)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), which=st.integers(0, 3), n_classes=st.integers(2, 4))
def test_parzen_scores_and_priors(seed, which, n_classes):
    X, labels, weight, Z = sample(seed, n_classes=n_classes)
    kernel = KERNELS[which]
    shares = np.bincount(labels, weight) / weight.sum()
    options = {"data": shares, "equal": np.full(n_classes, 1 / n_classes)}
    for name, priors in [*options.items(), (None, np.arange(1.0, n_classes + 1))]:
        given_prior = priors if name is None else name
        found = parzen(X, labels, kernel, weight=weight, prior=given_prior)
        expected = parzen_scores(matrix(kernel, Z, X), labels, weight, priors / priors.sum())
        scores = expansion_scores(X, found.coef, kernel, Z, bias=found.bias)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)
        assert not found.bias.any()
    # With the priors of the data the posterior is the score divided by the sum of scores.
    posterior = nadaraya_watson_scores(X, class_coefficients(labels, weight), kernel, Z)
    scores = parzen_scores(matrix(kernel, Z, X), labels, weight, shares)
    np.testing.assert_allclose(posterior, scores / scores.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("prior", ["data", "equal"])
def test_parzen_leave_one_out_is_what_leaving_out_gives(prior):
    X, labels, weight, _ = sample(4, n=60)
    kernel = KERNELS[0]
    K = matrix(kernel, X, X)
    wrong = 0.0
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        shares = np.bincount(labels[keep], weight[keep]) / weight[keep].sum()
        priors = shares if prior == "data" else np.full(3, 1 / 3)
        scores = parzen_scores(K[i : i + 1, keep], labels[keep], weight[keep], priors)
        wrong += weight[i] * (np.argmax(scores) != labels[i])
    found = parzen(X, labels, kernel, weight=weight, prior=prior)
    assert found.info["loo_error"] == pytest.approx(wrong / weight.sum(), abs=1e-12)
    assert found.info["loo_error"] > 0.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), which=st.integers(0, 3))
def test_regression_is_the_weighted_mean(seed, which):
    X, _, weight, Z = sample(seed)
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
    weight[::7] = 0.0
    kernel = KERNELS[which]
    expected = window_means(matrix(kernel, Z, X), y, weight)
    for rows, new in ((X, Z), (sp.csr_matrix(X), sp.csr_matrix(Z))):
        found = nadaraya_watson_regression(rows, target_coefficients(y, weight), kernel, new)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    one = nadaraya_watson_regression(X, target_coefficients(y[:, 0], weight), kernel, Z)
    np.testing.assert_allclose(one[:, 0], expected[:, 0], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "rbf-ard"])
def test_far_away_the_nearest_row_decides(name):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    coef = class_coefficients([0, 1, 2])
    Z = np.array([[100.0, 0.0], [-60.0, 0.0], [0.5, 90.0], [1.0, 0.0]])
    spec = KernelSpec.make(name, gamma=8.0 if name != "laplacian" else 40.0).resolve(X)
    assert not matrix(spec, Z, X)[:3].any()  # underflows everywhere
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = nadaraya_watson_scores(X, coef, spec, Z)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    np.testing.assert_allclose(posterior[[0, 1, 3]], np.eye(3)[[2, 0, 1]], atol=1e-3)
    np.testing.assert_allclose(posterior[2], [0.5, 0.5, 0.0], atol=1e-9)  # equally far


def test_out_of_reach_is_the_prior_with_a_warning():
    K = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0]])
    coef = class_coefficients([0, 1, 1], np.array([2.0, 1.0, 1.0]))
    with pytest.warns(UserWarning, match="1 of 2 rows are out of reach"):
        posterior = nadaraya_watson_scores(None, coef, KernelSpec.make("precomputed"), K)
    np.testing.assert_allclose(posterior, [[0.5, 0.5], [0.0, 1.0]])
    with pytest.warns(UserWarning, match="out of reach"):
        mean = nadaraya_watson_regression(
            None, target_coefficients([1.0, 4.0, 7.0]), KernelSpec.make("precomputed"), K
        )
    np.testing.assert_allclose(mean[:, 0], [4.0, 5.0])
    far = parzen(np.array([[0.0], [1e6], [2e6]]), [0, 1, 1], KERNELS[0])
    assert far.info["n_unreached"] == 3
    assert far.info["loo_error"] == 1.0


def test_leaving_out_keeps_windows_smaller_than_rounding():
    """K = 1 for the row itself and 1e-40, 1e-44 for the others: taking off afterwards gives 0/0."""
    X = np.array([[0.0], [9.6], [-10.06]])
    rows = target_coefficients([5.0, 1.0, 2.0])
    found, unreached = leave_one_out_quotients(X, rows, KernelSpec.make("rbf", gamma=1.0))
    a, b = np.exp(-(9.6**2)), np.exp(-(10.06**2))
    assert found[0, 0] == pytest.approx((a + 2 * b) / (a + b), rel=1e-9)
    assert unreached == 0


def test_the_width_with_the_smallest_leave_one_out_error():
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (80, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(80)
    weight = rng.uniform(0.5, 2.0, 80)
    grid = [0.01, 0.3, 3.0, 30.0, 3e4]
    choice = select_width(
        X, y, KernelSpec.make("rbf", gamma=1.0), gammas=grid, weight=weight, regression=True
    )
    expected = []
    for gamma in grid:
        K = ORACLES["rbf"](X, X, gamma=gamma)
        np.fill_diagonal(K, 0.0)
        logs = -gamma * (X - X.T) ** 2
        np.fill_diagonal(logs, -np.inf)
        K = np.exp(logs - logs.max(axis=1, keepdims=True))
        expected.append(weight @ (window_means(K, y, weight) - y) ** 2 / weight.sum())
    np.testing.assert_allclose(choice.loo_error, expected, rtol=1e-6)
    assert choice.gamma == grid[int(np.argmin(expected))] == choice.kernel.params["gamma"]
    assert choice.gamma in (3.0, 30.0)
    assert [row["gamma"] for row in choice.table()] == grid


def test_the_width_of_a_classifier():
    X, labels, weight, _ = sample(9, n=120)
    choice = select_width(X, labels, KernelSpec.make("rbf", gamma=1.0), weight=weight)
    for k in (0, 7, 12):
        kernel = KernelSpec.make("rbf", gamma=choice.gammas[k])
        found = parzen(X, labels, kernel, weight=weight)
        if not found.info["n_unreached"]:
            assert choice.loo_error[k] == pytest.approx(found.info["loo_error"])
    best = choice.loo_error.min()
    tied = np.flatnonzero(choice.loo_error == best)
    assert choice.gamma == choice.gammas[tied[np.argmin(choice.loo_log_loss[tied])]]
    ard = select_width(X, labels, KERNELS[3], gammas=[0.1, 1.0])
    ratio = np.array(ard.kernel.params["gamma"]) / np.array(KERNELS[3].params["gamma"])
    np.testing.assert_allclose(ratio, ratio[0])


def test_kernels_that_are_no_windows_and_other_bad_input():
    X, labels, _, _ = sample(1)
    for kernel in ("linear", "sigmoid"):
        with pytest.raises(SettingsError, match="can be negative"):
            parzen(X, labels, KernelSpec.make(kernel).resolve(X))
    check_window(KernelSpec.make("poly", degree=2, gamma=1.0))
    with pytest.raises(SettingsError, match="can be negative"):
        check_window(KernelSpec.make("poly", degree=3, gamma=1.0))
    with pytest.raises(SettingsError, match="prior is 'flat'"):
        parzen(X, labels, KERNELS[0], prior="flat")
    with pytest.raises(SettingsError, match="2 priors for 3 classes"):
        parzen(X, labels, KERNELS[0], prior=np.array([0.5, 0.5]))
    with pytest.raises(DataError, match="a negative kernel value"):
        parzen(-np.eye(4), [0, 1, 0, 1], KernelSpec.make("precomputed"))
    with pytest.raises(DataError, match="4 kernel values a row where the training rows have 3"):
        nadaraya_watson_scores(
            None, class_coefficients([0, 1, 0]), KernelSpec.make("precomputed"), np.ones((2, 4))
        )
    with pytest.raises(DataError, match="2 features where the training rows have 3"):
        nadaraya_watson_scores(X, class_coefficients(labels), KERNELS[0], X[:, :2])
    with pytest.raises(SettingsError, match="greater than 0"):
        select_width(X, labels, KERNELS[0], gammas=[0.0, 1.0])
    with pytest.raises(SettingsError, match="no single gamma"):
        select_width(X, labels, KernelSpec.make("linear"))
    with pytest.raises(SettingsError, match="two rows or more"):
        select_width(X[:1], labels[:1], KERNELS[0])
    with pytest.raises(DataError, match="every weight is 0"):
        class_coefficients(labels, np.zeros(len(labels)))
