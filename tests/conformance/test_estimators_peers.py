"""NuSVC, SVR, NuSVR and OneClassSVM beside those of scikit-learn, which are LIBSVM's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import kfu

pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn import svm as peer
from sklearn.datasets import make_classification, make_friedman1

KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 0.2, "coef0": 1.0},
    "rbf": {"gamma": 0.1},
}
MACHINES = {
    "NuSVC": {"nu": 0.6, "decision_function_shape": "ovo"},
    "OneClassSVM": {"nu": 0.2},
    "SVR": {"C": 2.0, "epsilon": 0.3},
    "NuSVR": {"C": 2.0, "nu": 0.4},
}
TOLERANCE = 1e-6
WITHIN = 1e-3


def data_of(name: str, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and rows for prediction."""
    if name in ("SVR", "NuSVR"):
        X, y = make_friedman1(n + 60, n_features=6, noise=0.5, random_state=3)
        X, y = 3 * (X - 0.5), y / 3
    else:
        X, y = make_classification(
            n + 60, 6, n_informative=5, n_redundant=0, n_classes=3, class_sep=1.2, random_state=4
        )
    if name == "OneClassSVM":
        X = X + 4.0  # else the linear machine is w = 0
    return X[:n], y[:n], X[n:]


def fitted_pair(name, kernel, weighted=False, as_sparse=False):
    X, y, Z = data_of(name)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y)) if weighted else None
    if weighted:
        weights[::7] = 0.0
    if as_sparse:
        X, Z = sp.csr_matrix(X), sp.csr_matrix(Z)
    shared = {"kernel": kernel, "tol": TOLERANCE, **KERNELS[kernel], **MACHINES[name]}
    ours = getattr(kfu, name)(**shared).fit(X, y, sample_weight=weights)
    theirs = getattr(peer, name)(**shared).fit(X, y, sample_weight=weights)
    return ours, theirs, Z


def values_of(estimator, Z):
    has_decision = hasattr(estimator, "decision_function")
    return estimator.decision_function(Z) if has_decision else estimator.predict(Z)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_agree(name, kernel, weighted):
    ours, theirs, Z = fitted_pair(name, kernel, weighted)
    expected, found = values_of(theirs, Z), values_of(ours, Z)
    assert found.shape == expected.shape
    assert np.ptp(expected) > 0.1  # of a size that can differ
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=WITHIN * scale)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_attributes_agree(name, kernel):
    ours, theirs, _ = fitted_pair(name, kernel)
    X, _, _ = data_of(name)
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    if kernel == "rbf":  # linear: many α give one w
        scale = max(1.0, np.abs(theirs.dual_coef_).max())
        np.testing.assert_allclose(dense_dual(ours), dense_dual(theirs), atol=1e-3 * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=WITHIN, atol=WITHIN)
    np.testing.assert_allclose(ours.n_support_, theirs.n_support_, atol=3)
    assert ours.n_support_.shape == theirs.n_support_.shape
    assert ours.n_support_.sum() == ours.support_.size
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert ours.support_.dtype == theirs.support_.dtype
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == 0
    assert np.shape(ours.n_iter_) == np.shape(theirs.n_iter_)
    if kernel == "linear":
        atol = WITHIN * np.abs(theirs.coef_).max()
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    else:
        with pytest.raises(AttributeError, match="linear kernel"):
            _ = ours.coef_


def dense_dual(estimator):
    full = np.zeros((estimator.dual_coef_.shape[0], estimator.shape_fit_[0]))
    full[:, estimator.support_] = estimator.dual_coef_
    return full


@pytest.mark.parametrize("name", MACHINES)
def test_sparse_agrees(name):
    ours, theirs, Z = fitted_pair(name, "rbf", as_sparse=True)
    expected = values_of(theirs, Z)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(values_of(ours, Z), expected, rtol=0, atol=WITHIN * scale)
    assert sp.issparse(ours.support_vectors_)


def test_scores_of_novelty_agree():
    ours, theirs, Z = fitted_pair("OneClassSVM", "rbf")
    scores = ours.score_samples(Z)
    np.testing.assert_allclose(scores, theirs.score_samples(Z), atol=1e-3 * scores.max())
    np.testing.assert_allclose(scores - ours.offset_, ours.decision_function(Z), atol=1e-12)
    assert ours.offset_ == pytest.approx(theirs.offset_[0], rel=1e-3)
    assert ours.intercept_ == pytest.approx(-ours.offset_)
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    assert set(ours.predict(Z)) == {-1, 1}
    X, _, _ = data_of("OneClassSVM")
    again = kfu.OneClassSVM(nu=0.2, gamma=0.1, tol=TOLERANCE)
    inside = again.fit_predict(X)
    clear = np.abs(again.decision_function(X)) > 1e-3  # rows on the boundary have either sign
    assert clear.mean() > 0.5
    np.testing.assert_array_equal(inside[clear], ours.predict(X)[clear])
    np.testing.assert_array_equal(inside[clear], theirs.predict(X)[clear])


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9])
def test_nu_bounds_the_share_of_outliers(nu):
    X, _, _ = data_of("OneClassSVM")
    found = kfu.OneClassSVM(nu=nu, gamma=0.1, tol=1e-6).fit(X)
    n_outside = np.count_nonzero(found.decision_function(X) < -1e-6)
    assert n_outside <= nu * len(X) <= found.support_.size


def test_the_tube_of_nu_svr():
    X, y, _ = data_of("NuSVR")
    found = kfu.NuSVR(nu=0.4, C=2.0, gamma=0.1, tol=1e-6).fit(X, y)
    errors = np.abs(found.predict(X) - y)
    assert found.epsilon_ > 0
    assert np.count_nonzero(errors > found.epsilon_ + 1e-6) <= 0.4 * len(y) <= found.support_.size
    # SVR with the tube that was found is the same machine.
    same = kfu.SVR(epsilon=found.epsilon_, C=2.0, gamma=0.1, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(same.predict(X), found.predict(X), atol=1e-4)


def test_regression_scores_are_scikit_learns():
    X, y, _ = data_of("SVR")
    ours, theirs, _ = fitted_pair("SVR", "rbf")
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)
    assert ours.score(X, y) > 0.8


@pytest.mark.parametrize("fit_intercept", [False, "regularised"])
def test_regression_without_a_free_bias(fit_intercept):
    """Without a bias f of y + c is not f + c; a regularised bias is that of the kernel K + 1."""
    X, y, Z = data_of("SVR")
    K, Kz = np.exp(-0.1 * squares(X, X)), np.exp(-0.1 * squares(Z, X))
    shift = 1.0 if fit_intercept else 0.0
    found = kfu.SVR(gamma=0.1, tol=1e-7, fit_intercept=fit_intercept).fit(X, y)
    plain = kfu.SVR(kernel="precomputed", tol=1e-7, fit_intercept=False).fit(K + shift, y)
    np.testing.assert_allclose(found.predict(Z), plain.predict(Kz + shift), atol=1e-5)
    assert plain.intercept_[0] == 0.0
    assert (found.intercept_[0] != 0.0) == bool(fit_intercept)


def squares(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
