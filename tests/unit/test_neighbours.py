"""Nearest neighbours in feature space against sorting written out, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from kfu.baselines import (
    WEIGHTINGS,
    class_coefficients,
    knn_regression,
    knn_scores,
    select_k,
    target_coefficients,
)
from kfu.baselines.distances import FeatureDistance
from kfu.baselines.neighbours import NUDGE, nearest_keys
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from tests.oracles.baselines import knn_classes, knn_means, neighbours_of
from tests.oracles.kernels import ORACLES

POWERS = {"none": 0, "inverse": 1, "inverse-squared": 2}
KERNELS = [
    KernelSpec.make("linear"),
    KernelSpec.make("rbf", gamma=0.4),
    KernelSpec.make("rational", gamma=0.4, weight=2.0),
    KernelSpec.make("rbf-ard", gamma=(0.2, 0.5, 2.0)),
    KernelSpec.make("laplacian", gamma=0.3, weight=3.0),
    KernelSpec.make("poly", gamma=0.5, coef0=1.0, degree=2),
    KernelSpec.combine("sum", [KernelSpec.make("linear"), KernelSpec.make("rbf", gamma=1.0)]),
]


def sample(seed, n=40, n_classes=3, d=3):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d)) + 0.5 * labels[:, None]
    return X, labels, rng.uniform(0.2, 3.0, n), rng.standard_normal((20, d)) + 0.5


def matrix(kernel, X, Z):
    if kernel.parts:
        return kernel.weight * sum(matrix(part, X, Z) for part in kernel.parts)
    return kernel.weight * ORACLES[kernel.name](X, Z, **kernel.params)


def squared_distances(kernel, Z, X):
    own = np.array([matrix(kernel, z[None], z[None])[0, 0] for z in Z])
    diagonal = np.diag(matrix(kernel, X, X))
    return own[:, None] + diagonal[None, :] - 2.0 * matrix(kernel, Z, X)


def test_every_weighting_has_an_oracle():
    assert set(POWERS) == set(WEIGHTINGS)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    which=st.integers(0, len(KERNELS) - 1),
    k=st.integers(1, 12),
    weighting=st.sampled_from(sorted(POWERS)),
    is_sparse=st.booleans(),
)
def test_scores_and_means(seed, which, k, weighting, is_sparse):
    X, labels, weight, Z = sample(seed)
    weight[::9] = 0.0
    kernel = KERNELS[which]
    y = np.cos(X[:, 0])
    squared = squared_distances(kernel, Z, X)
    winners, expected = knn_classes(squared, labels, weight, k, 3, POWERS[weighting])
    rows, new = (sp.csr_matrix(X), sp.csr_matrix(Z)) if is_sparse else (X, Z)
    options = {"neighbours": k, "weighting": weighting, "budget": 24 * len(X) * 7}
    scores = knn_scores(rows, class_coefficients(labels, weight), kernel, new, **options)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=2 * NUDGE)
    assert np.argmax(scores, axis=1).tolist() == winners.tolist()
    means = knn_regression(rows, target_coefficients(y, weight), kernel, new, **options)
    np.testing.assert_allclose(
        means[:, 0], knn_means(squared, y, weight, k, POWERS[weighting]), rtol=1e-6, atol=1e-9
    )


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 15), n=st.integers(1, 15))
def test_equal_keys_go_by_row_number(seed, k, n):
    keys = np.random.default_rng(seed).integers(0, 4, (10, n)).astype(float)
    k = min(k, n)
    expected = neighbours_of(keys, np.ones(n), k)
    assert nearest_keys(keys, k).tolist() == expected


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=lambda k: k.name)
@pytest.mark.parametrize("k", [1, 4, 15])
def test_scikit_learn_agrees(kernel, k):
    X, labels, _, Z = sample(21, n=300)
    Z = np.vstack([Z, X[:10]])  # points of the training set: distance 0
    y = np.column_stack([X[:, 0] ** 2, X[:, 1]])
    for weighting, name in (("none", "uniform"), ("inverse", "distance")):
        if weighting == "inverse" and kernel.name != "linear":
            continue  # the distances, unlike the neighbours, are those of the feature space
        options = {"neighbours": k, "weighting": weighting}
        peer = KNeighborsClassifier(k, weights=name).fit(X, labels)
        scores = knn_scores(X, class_coefficients(labels), kernel, Z, **options)
        np.testing.assert_allclose(scores, peer.predict_proba(Z), atol=1e-9)
        peer = KNeighborsRegressor(k, weights=name).fit(X, y)
        means = knn_regression(X, target_coefficients(y), kernel, Z, **options)
        np.testing.assert_allclose(means, peer.predict(Z), atol=1e-9)


def test_a_tie_of_classes_goes_to_the_nearer_one():
    X = np.array([[0.0], [1.0], [1.5], [3.0], [4.0]])
    coef = class_coefficients([2, 1, 1, 0, 2])
    linear = KernelSpec.make("linear")
    scores = knn_scores(X, coef, linear, np.array([[0.2], [1.6]]), neighbours=4)
    # 0.2: 2, 1, 1, 0 → class 1 has most; 1.6: rows 2, 1, 3, 0 → class 1 again.
    assert np.argmax(scores, axis=1).tolist() == [1, 1]
    scores = knn_scores(X, coef, linear, np.array([[0.2], [3.9]]), neighbours=2)
    assert np.argmax(scores, axis=1).tolist() == [2, 2]  # not 1 and not 0, the smaller classes
    np.testing.assert_allclose(scores, [[0, 0.5, 0.5], [0.5, 0, 0.5]], atol=2 * NUDGE)


def test_an_rbf_kernel_sees_beyond_its_width():
    """All K are 0 here, so 2 − 2K would call every row equally far."""
    X = np.array([[0.0], [50.0], [100.0]])
    kernel = KernelSpec.make("rbf", gamma=10.0)
    coef = class_coefficients([0, 1, 2])
    scores = knn_scores(X, coef, kernel, np.array([[80.0], [70.0], [20.0]]), neighbours=1)
    assert np.argmax(scores, axis=1).tolist() == [2, 1, 0]


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    which=st.integers(0, len(KERNELS) - 1),
    weighting=st.sampled_from(sorted(POWERS)),
)
def test_leave_one_out_of_every_k(seed, which, weighting):
    X, labels, weight, _ = sample(seed, n=25)
    X[5] = X[4]
    weight[[3, 8]] = 0.0
    kernel, kmax = KERNELS[which], 9
    y = np.sin(X[:, 1])
    squared = squared_distances(kernel, X, X)
    squared[5, 4] = squared[4, 5] = 0.0  # not the rounding of 2 − 2
    errors, squares = np.zeros(kmax), np.zeros(kmax)
    for i in range(len(X)):
        rest = weight.copy()
        rest[i] = 0.0
        line = squared[i : i + 1]
        for k in range(1, kmax + 1):
            winner = knn_classes(line, labels, rest, k, 3, POWERS[weighting])[0][0]
            errors[k - 1] += weight[i] * (winner != labels[i])
            squares[k - 1] += (
                weight[i] * (knn_means(line, y, rest, k, POWERS[weighting])[0] - y[i]) ** 2
            )
    options = {"kmax": kmax, "weight": weight, "weighting": weighting, "budget": 5000}
    choice = select_k(X, labels, kernel, n_classes=3, **options)
    np.testing.assert_allclose(choice.loo_error, errors / weight.sum(), atol=1e-12)
    assert choice.neighbours == int(np.argmin(choice.loo_error)) + 1
    choice = select_k(X, y, kernel, regression=True, **options)
    np.testing.assert_allclose(choice.loo_error, squares / weight.sum(), rtol=1e-6, atol=1e-12)
    assert choice.table()[2] == {"neighbours": 3, "loo_error": choice.loo_error[2]}


def test_precomputed_kernels_rank_but_do_not_measure():
    X, labels, weight, Z = sample(6)
    kernel, given_k = KERNELS[5], KernelSpec.make("precomputed")
    K, cross = matrix(kernel, X, X), matrix(kernel, Z, X)
    coef = class_coefficients(labels, weight)
    expected = knn_scores(X, coef, kernel, Z, neighbours=5)
    np.testing.assert_allclose(knn_scores(K, coef, given_k, cross, neighbours=5), expected)
    diagonal = np.diag(K)
    found = knn_scores(None, coef, given_k, cross, neighbours=5, diagonal=diagonal)
    np.testing.assert_allclose(found, expected)
    inside = select_k(K, labels, given_k, kmax=6, weight=weight, weighting="inverse")
    outside = select_k(X, labels, kernel, kmax=6, weight=weight, weighting="inverse")
    np.testing.assert_allclose(inside.loo_error, outside.loo_error)
    with pytest.raises(SettingsError, match="does not tell the distance to new rows"):
        knn_scores(K, coef, given_k, cross, neighbours=5, weighting="inverse")
    with pytest.raises(SettingsError, match="square training matrix"):
        knn_scores(None, coef, given_k, cross, neighbours=5)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_distances_of_feature_space(kernel):
    X, _, _, Z = sample(13)
    Z[0] = X[7]
    metric = FeatureDistance(X, kernel)
    found = metric.squared(metric.keys(Z), Z)
    np.testing.assert_allclose(found, squared_distances(kernel, Z, X), rtol=1e-6, atol=1e-12)
    assert found[0, 7] == 0.0


def test_bad_settings_are_refused():
    X, labels, weight, Z = sample(2)
    coef, linear = class_coefficients(labels, weight), KERNELS[0]
    for k in (0, -1, 1.5):
        with pytest.raises(SettingsError, match="an integer from 1"):
            knn_scores(X, coef, linear, Z, neighbours=k)
    with pytest.raises(SettingsError, match="41 neighbours asked for where there are 40 rows"):
        knn_scores(X, coef, linear, Z, neighbours=41)
    with pytest.raises(SettingsError, match="distance weights are 'cubic'"):
        knn_scores(X, coef, linear, Z, neighbours=1, weighting="cubic")
    with pytest.raises(SettingsError, match="one of them is negative"):
        knn_scores(X, -coef, linear, Z, neighbours=1)
    with pytest.raises(DataError, match="2 features where the training rows have 3"):
        knn_scores(X, coef, linear, Z[:, :2], neighbours=1)
    with pytest.raises(DataError, match="NaN in row 0"):
        knn_scores(X, coef, linear, Z * np.nan, neighbours=1)
    with pytest.raises(SettingsError, match="two rows of positive weight"):
        select_k(X, labels, linear, weight=np.eye(40)[0], regression=True)
    assert select_k(X, labels, linear, kmax=500).loo_error.size == 39
