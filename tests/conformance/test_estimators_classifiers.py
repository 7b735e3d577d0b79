"""Classifiers beyond the pairwise SVC: losses, codes, hard margins, probabilities, baselines."""

from __future__ import annotations

import numpy as np
import pytest

import kfu
from kfu import SVC, NuSVC
from kfu.multiclass import CODES, resolve_code

pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn import svm as peer
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid


def problem(n_classes: int = 2, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_classification(
        n + 60, 8, n_informative=5, n_classes=n_classes, class_sep=0.9, random_state=n_classes
    )
    return X[:n], y[:n], X[n:]


# ---- losses, biases, margins -----------------------------------------------------------------


def test_squared_hinge_is_a_ridge_on_the_kernel():
    """(C/2) Σ ξ² is the hard margin of the kernel K + I/C."""
    X, y, Z = problem()
    ours = SVC(C=0.7, loss="squared_hinge", kernel="linear", tol=1e-8).fit(X, y)
    assert ours.model_.machine == "svc2"
    K = X @ X.T
    hard = SVC(C=float("inf"), kernel="precomputed", tol=1e-8).fit(K + np.eye(len(y)) / 0.7, y)
    np.testing.assert_allclose(
        ours.decision_function(Z), hard.decision_function(Z @ X.T), rtol=1e-5, atol=1e-5
    )


def test_the_hard_margin_is_the_limit_of_large_costs():
    X, y, Z = problem()
    hard = SVC(C=float("inf"), gamma=0.5, tol=1e-7).fit(X, y)
    soft = peer.SVC(C=1e9, gamma=0.5, tol=1e-7).fit(X, y)
    values = hard.decision_function(Z)
    np.testing.assert_allclose(values, soft.decision_function(Z), atol=1e-5)
    assert np.abs(hard.decision_function(X)[hard.support_]).min() == pytest.approx(1, abs=1e-5)
    assert hard.score(X, y) == 1.0


def test_a_regularised_bias_is_a_constant_feature():
    X, y, _ = problem()
    found = SVC(kernel="linear", fit_intercept="regularised", tol=1e-8).fit(X, y)
    wide = np.column_stack([X, np.ones(len(X))])
    plain = SVC(kernel="linear", fit_intercept=False, tol=1e-8).fit(wide, y)
    np.testing.assert_allclose(found.coef_[0], plain.coef_[0, :-1], atol=1e-5)
    assert found.intercept_[0] == pytest.approx(plain.coef_[0, -1], abs=1e-5)


def test_margins_of_the_rows():
    X, y, Z = problem()
    targets = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weights > 0
    whole = SVC(gamma=0.1, margins=targets).fit(X, y, sample_weight=weights)
    part = SVC(gamma=0.1, margins=targets[kept]).fit(X[kept], y[kept])
    np.testing.assert_allclose(whole.decision_function(Z), part.decision_function(Z), atol=1e-10)
    plain = SVC(gamma=0.1).fit(X, y).decision_function(Z)
    for margins in (targets, "auto"):
        adapted = SVC(gamma=0.1, margins=margins).fit(X, y).decision_function(Z)
        assert np.abs(adapted - plain).max() > 0.01


# ---- codes -----------------------------------------------------------------------------------


CODE_CASES = [(code, "rbf") for code in CODES if code[-1] not in "1357"] + [
    (code, kernel)
    for code in ("ava", "ova", "bch15", "crammer-singer", "weston-watkins")
    for kernel in ("rbf", "linear")
    if (code, kernel) not in (("ava", "rbf"), ("ova", "rbf"))
]


@pytest.mark.parametrize(("multiclass", "kernel"), CODE_CASES)
def test_codes(multiclass, kernel):
    X, y, Z = problem(4)
    names = np.array(["d", "a", "c", "b"])
    found = SVC(multiclass=multiclass, kernel=kernel, gamma=0.1).fit(X, names[y])
    model = found.model_
    scores = found.decision_function(Z)
    assert scores.shape == (len(Z), 4)
    np.testing.assert_array_equal(found.classes_[scores.argmax(axis=1)], found.predict(Z))
    assert found.score(X, names[y]) > (0.7 if kernel == "rbf" else 0.45)
    assert found.n_support_.sum() == found.support_.size == found.dual_coef_.shape[1]
    assert (np.diff(np.searchsorted(found.classes_, names[y][found.support_])) >= 0).all()
    np.testing.assert_array_equal(found.support_vectors_, X[found.support_])
    if multiclass == "ava":
        return
    assert found.dual_coef_.shape == (model.n_machines, found.support_.size)
    values = SVC(**{**found.get_params(), "decision_function_shape": "ovo"}).fit(X, names[y])
    decision = values.decision_function(Z)
    assert decision.shape == (len(Z), model.n_machines)
    if kernel == "linear":
        by_coef = Z @ found.coef_.T + found.intercept_
        by_dual = Z @ X[found.support_].T @ found.dual_coef_.T + found.intercept_
        np.testing.assert_allclose(by_coef, decision, atol=1e-9)
        np.testing.assert_allclose(by_dual, decision, atol=1e-9)


def test_one_against_all_is_binary_machines():
    X, y, Z = problem(3)
    found = SVC(multiclass="ova", gamma=0.1, tol=1e-7).fit(X, y)
    scores = found.decision_function(Z)
    for k in range(3):
        alone = peer.SVC(gamma=0.1, tol=1e-7).fit(X, y == k)
        np.testing.assert_allclose(scores[:, k], alone.decision_function(Z), atol=1e-4)


def test_a_code_matrix_and_a_decoding():
    X, y, Z = problem(4)
    code = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1], [-1, 1, -1]])
    by_matrix = SVC(multiclass=code, decoding="hamming", gamma=0.1).fit(X, y)
    np.testing.assert_array_equal(by_matrix.model_.code, code)
    assert by_matrix.model_.decoding == "hamming"
    assert by_matrix.decision_function(Z).shape == (len(Z), 4)
    dag = SVC(decoding="dag", gamma=0.1).fit(X, y)
    assert sorted(set(dag.decision_function(Z).ravel())) == [0, 1, 2, 3]
    np.testing.assert_array_equal(dag.decision_function(Z).argmax(axis=1), dag.predict(Z))
    with pytest.raises(ValueError, match="decoding argmax needs"):
        SVC(decoding="argmax").fit(X, y)
    with pytest.raises(ValueError, match="rainbow"):
        SVC(multiclass="rainbow").fit(X, y)


def test_pairs_in_any_order_and_orientation_are_shown_in_one():
    X, y, Z = problem(3)
    code = np.array([[0, 1, -1], [1, 0, 1], [-1, -1, 0]])  # (1,2), (0,2), (0,1)
    shared = {"kernel": "linear", "tol": 1e-8, "decision_function_shape": "ovo"}
    mixed = SVC(multiclass=code, **shared).fit(X, y)
    theirs = peer.SVC(**shared).fit(X, y)
    np.testing.assert_allclose(
        mixed.decision_function(Z), theirs.decision_function(Z), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(mixed.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(mixed.coef_, theirs.coef_, atol=1e-4)
    full = np.zeros((2, 2, len(y)))
    full[0][:, mixed.support_], full[1][:, theirs.support_] = mixed.dual_coef_, theirs.dual_coef_
    np.testing.assert_allclose(full[0], full[1], atol=1e-3)


def test_random_codes_follow_the_seed():
    X, y, _ = problem(5)
    codes = [
        SVC(multiclass="sparse", random_state=seed).fit(X, y).model_.code for seed in (None, 0, 1)
    ]
    np.testing.assert_array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[1], resolve_code("sparse", 5, 0)[0])
    assert not np.array_equal(codes[1], codes[2])
    drawn = SVC(multiclass="sparse", random_state=np.random.RandomState(3)).fit(X, y)
    again = SVC(multiclass="sparse", random_state=np.random.RandomState(3)).fit(X, y)
    np.testing.assert_array_equal(drawn.model_.code, again.model_.code)


@pytest.mark.parametrize("multiclass", ["ova", "complete", "crammer-singer", "weston-watkins"])
def test_two_classes_have_one_decision_value(multiclass):
    X, y, Z = problem()
    found = SVC(multiclass=multiclass, gamma=0.1).fit(X, y)
    decision = found.decision_function(Z)
    assert decision.shape == (len(Z),)
    np.testing.assert_array_equal((decision > 0).astype(int), found.predict(Z))


def test_class_weights_of_nu_svc_are_row_weights():
    X, y, Z = problem()
    by_class = NuSVC(nu=0.4, gamma=0.1, class_weight={1: 2.0}, tol=1e-7).fit(X, y)
    by_row = NuSVC(nu=0.4, gamma=0.1, tol=1e-7).fit(X, y, sample_weight=1.0 + (y == 1))
    np.testing.assert_allclose(by_class.decision_function(Z), by_row.decision_function(Z))
    plain = NuSVC(nu=0.4, gamma=0.1, tol=1e-7).fit(X, y)
    assert np.abs(by_class.decision_function(Z) - plain.decision_function(Z)).max() > 0.01


def test_an_infeasible_nu_is_told():
    X, y, _ = problem()
    rare = np.arange(len(y)) < 5
    with pytest.raises(ValueError, match=r"nu = 0\.5 is not feasible"):
        NuSVC(nu=0.5).fit(X, rare)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "absolute"}, "loss must be"),
        ({"fit_intercept": "free"}, "fit_intercept must be"),
        ({"fit_intercept": 2}, "fit_intercept must be"),
        ({"probability": "platt"}, "probability must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"random_state": 1.5}, "random_state must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": float("inf"), "multiclass": "crammer-singer"}, "finite cost"),
        ({"loss": "squared_hinge", "multiclass": "weston-watkins"}, "machine svc"),
        ({"margins": "wide"}, "margins"),
        ({"margins": [1.0, 2.0]}, "margins has shape"),
    ],
)
def test_bad_parameters_are_value_errors(parameters, message):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=message):
        SVC(**parameters).fit(X, y)


# ---- probabilities ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("probability", [True, "isotonic"])
def test_probabilities(kind, n_classes, probability):
    X, y, _ = problem(n_classes, n=150)
    truth, names = y[90:], np.array(["z", "m", "a"])[:n_classes]
    found = kind(probability=probability).fit(X[:90], names[y[:90]])
    Z = X[90:]
    p = found.predict_proba(Z)
    assert p.shape == (len(Z), n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.classes_[p.argmax(axis=1)], found.predict(Z))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(found.predict_log_proba(Z), np.log(p))
    if probability is True:  # columns in the order of classes_
        assert log_loss(names[truth], p, labels=found.classes_) < 0.9 * np.log(n_classes)
        assert found.model_.settings["probability"] == "sigmoid"


@pytest.mark.parametrize(
    ("n_classes", "multiclass"),
    [
        (3, "ova"),
        (3, [[1, 1, 1], [1, -1, 0], [-1, 0, -1]]),
        (2, [[1], [-1]]),
        (2, "crammer-singer"),
    ],
    ids=["ova", "matrix", "binary matrix", "binary single"],
)
def test_probabilities_of_codes(n_classes, multiclass):
    X, y, Z = problem(n_classes)
    found = SVC(probability=True, multiclass=multiclass, gamma=0.1)
    p = found.fit(X, y, sample_weight=np.arange(len(y)) % 5).predict_proba(Z)
    np.testing.assert_array_equal(p.argmax(axis=1), found.predict(Z))
    assert log_loss(y, found.predict_proba(X)) < 0.9 * np.log(n_classes)


def test_probabilities_are_there_only_when_asked_for():
    X, y, Z = problem()
    plain = SVC().fit(X, y)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(plain, name)
        assert hasattr(SVC(probability=True), name)
        with pytest.raises(AttributeError):
            getattr(plain, name)
    with pytest.raises(kfu.sklearn_bridge.NotFittedError):
        SVC(probability=True).predict_proba(Z)
    with pytest.raises(kfu.sklearn_bridge.NotFittedError, match="call 'fit' again"):
        plain.set_params(probability=True).predict_proba(Z)


# ---- baselines -------------------------------------------------------------------------------


def test_the_linear_centroid_is_the_nearest_mean():
    X, y, Z = problem(3)
    ours = kfu.KernelCentroid(kernel="linear").fit(X, y)
    np.testing.assert_array_equal(ours.predict(Z), NearestCentroid().fit(X, y).predict(Z))


@pytest.mark.parametrize("distance_weights", ["none", "inverse"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_neighbours_are_scikit_learns(distance_weights, n_classes):
    X, y, Z = problem(n_classes)
    ours = kfu.KernelKNN(5, kernel="linear", distance_weights=distance_weights).fit(X, y)
    weights = "uniform" if distance_weights == "none" else "distance"
    theirs = KNeighborsClassifier(5, weights=weights).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(Z), theirs.predict_proba(Z), atol=1e-6)
    assert ours.neighbours_ == 5
    chosen = kfu.KernelKNN().fit(X, y)
    assert 1 <= chosen.neighbours_ <= 50
    assert chosen.info_["loo_error"] < 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_windows(n_classes):
    X, y, Z = problem(n_classes)
    K = np.exp(-0.3 * ((Z[:, None] - X[None]) ** 2).sum(axis=2))
    sums = np.stack([K[:, y == k].sum(axis=1) for k in range(n_classes)], axis=1)
    watson = kfu.NadarayaWatson(gamma=0.3).fit(X, y)
    np.testing.assert_allclose(
        watson.predict_proba(Z), sums / sums.sum(axis=1, keepdims=True), atol=1e-10
    )
    parzen = kfu.ParzenClassifier(gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(parzen.predict(Z), sums.argmax(axis=1))
    equal = kfu.ParzenClassifier(gamma=0.3, prior="equal").fit(X, y)
    np.testing.assert_array_equal(equal.predict(Z), (sums / np.bincount(y)).argmax(axis=1))


def test_projections():
    X, y, Z = problem(3, n=60)
    fixed = kfu.KernelProjection(3, gamma=0.1).fit(X, y)
    assert fixed.dims_.tolist() == [3, 3, 3]
    assert fixed.score(X, y) > 0.6
    coded = kfu.KernelProjection(dim_penalty=0.5, gamma=0.1, multiclass="ova").fit(X, y)
    assert coded.decision_function(Z).shape == (len(Z), 3)
    assert coded.dims_.shape == (3,)
    with pytest.raises(ValueError, match="dims"):
        kfu.KernelProjection(0).fit(X, y)


def test_neighbours_need_rows():
    X, y, _ = problem()
    with pytest.raises(ValueError, match="precomputed"):
        kfu.KernelKNN(kernel="precomputed").fit(X @ X.T, y)
