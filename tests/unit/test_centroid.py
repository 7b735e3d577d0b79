"""The centroid classifier against distances to class means, written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestCentroid

from kfu.baselines import expansion_scores, kernel_centroid
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.pairwise import ovo_code, vote
from tests.oracles.baselines import centroid_classes
from tests.oracles.kernels import ORACLES


def sample(seed, n=40, n_classes=3, d=3):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    X = rng.standard_normal((n, d)) + labels[:, None]
    return X, labels, rng.uniform(0.2, 3.0, n), rng.standard_normal((25, d)) + 1.0


KERNELS = [
    KernelSpec.make("rbf", gamma=0.3),
    KernelSpec.make("linear"),
    KernelSpec.make("poly", gamma=0.5, coef0=1.0, degree=2),
]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), which=st.integers(0, 2), n_classes=st.integers(2, 4))
def test_the_nearest_mean_wins(seed, which, n_classes):
    X, labels, weight, Z = sample(seed, n_classes=n_classes)
    weight[-1] = 0.0
    kernel = KERNELS[which]
    found = kernel_centroid(X, labels, kernel, weight=weight)
    oracle = ORACLES[kernel.name]
    K, cross = oracle(X, X, **kernel.params), oracle(Z, X, **kernel.params)
    own = np.diag(oracle(Z, Z, **kernel.params))
    scores = expansion_scores(X, found.coef, kernel, Z, bias=found.bias)
    expected = centroid_classes(cross, K, own, labels, weight, n_classes)
    assert np.argmax(scores, axis=1).tolist() == expected.tolist()
    norms = np.array(found.info["squared_norms"])
    np.testing.assert_allclose(found.bias, -0.5 * norms, rtol=1e-12)
    # Pairwise machines made of the same scores vote the same way.
    code = ovo_code(n_classes)
    coef, bias = found.for_code(code)
    decision = cross @ coef.T + bias
    assert vote(decision, code).tolist() == expected.tolist()


def test_the_linear_one_is_nearest_centroid():
    X, labels, _, Z = sample(3, n=200)
    found = kernel_centroid(X, labels, KernelSpec.make("linear"))
    peer = NearestCentroid().fit(X, labels)
    scores = expansion_scores(X, found.coef, KernelSpec.make("linear"), Z, bias=found.bias)
    assert np.argmax(scores, axis=1).tolist() == peer.predict(Z).tolist()
    between = ((peer.centroids_[:, None] - peer.centroids_[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.info["squared_distances"], between, atol=1e-10)
    spread = [((X[labels == k] - peer.centroids_[k]) ** 2).sum(axis=1).mean() for k in range(3)]
    np.testing.assert_allclose(found.info["scatter"], spread, rtol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_leave_one_out_is_what_leaving_out_gives(kernel):
    X, labels, weight, _ = sample(11, n=35)
    X[0] += 3.0
    labels[0], labels[1:] = 2, np.minimum(labels[1:], 1)  # a class of a single row
    found = kernel_centroid(X, labels, kernel, weight=weight)
    K = ORACLES[kernel.name](X, X, **kernel.params)
    wrong = 0.0
    for i in range(len(X)):
        rest = weight.copy()
        rest[i] = 0.0
        k = centroid_classes(K[i : i + 1], K, K[i, i : i + 1], labels, rest, 3)[0]
        wrong += weight[i] * (k != labels[i])
    assert found.info["loo_error"] == pytest.approx(wrong / weight.sum(), abs=1e-12)
    assert found.info["loo_error"] >= weight[0] / weight.sum()


def test_binary_bias_and_weights_as_repeats():
    X, labels, _, _ = sample(5, n_classes=2)
    repeats = np.random.default_rng(0).integers(1, 4, len(X))
    kernel = KERNELS[0]
    weighted = kernel_centroid(X, labels, kernel, weight=repeats.astype(float))
    repeated = kernel_centroid(np.repeat(X, repeats, axis=0), np.repeat(labels, repeats), kernel)
    np.testing.assert_allclose(weighted.bias, repeated.bias, rtol=1e-12)
    assert weighted.info["train_error"] == pytest.approx(repeated.info["train_error"])
    _, bias = weighted.for_code(np.array([[-1], [1]]))
    low, high = weighted.info["squared_norms"]
    assert bias[0] == pytest.approx(0.5 * (low - high))


def test_sparse_and_precomputed_rows_give_the_same():
    X, labels, weight, Z = sample(8)
    kernel = KERNELS[0]
    plain = kernel_centroid(X, labels, kernel, weight=weight)
    sparse = kernel_centroid(sp.csr_matrix(X), labels, kernel, weight=weight)
    K = ORACLES["rbf"](X, X, gamma=0.3)
    given_k = kernel_centroid(K, labels, KernelSpec.make("precomputed"), weight=weight)
    for other in (sparse, given_k):
        np.testing.assert_allclose(other.coef, plain.coef)
        np.testing.assert_allclose(other.bias, plain.bias, rtol=1e-10)
    cross = ORACLES["rbf"](Z, X, gamma=0.3)
    spec = KernelSpec.make("precomputed")
    np.testing.assert_allclose(
        expansion_scores(None, given_k.coef, spec, cross, bias=given_k.bias),
        expansion_scores(X, plain.coef, kernel, Z, bias=plain.bias),
        rtol=1e-9,
        atol=1e-12,
    )


def test_bad_input_is_refused():
    X, labels, _, _ = sample(1)
    kernel = KERNELS[0]
    with pytest.raises(DataError, match="only one class"):
        kernel_centroid(X, np.zeros(len(X), dtype=int), kernel)
    with pytest.raises(DataError, match="class number 3 has no row of positive weight"):
        kernel_centroid(X, labels, kernel, weight=(labels != 2).astype(float))
    with pytest.raises(DataError, match="39 labels for 40 rows"):
        kernel_centroid(X, labels[1:], kernel)
    with pytest.raises(SettingsError, match="class indices"):
        kernel_centroid(X, labels - 1, kernel)
    with pytest.raises(SettingsError, match="resolve it first"):
        kernel_centroid(X, labels, KernelSpec.make("rbf"))
    X[2, 1] = np.nan
    with pytest.raises(DataError, match="NaN in row 2"):
        kernel_centroid(X, labels, kernel)
