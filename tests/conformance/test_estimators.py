"""kfu.SVC as a scikit-learn estimator, and beside scikit-learn's own SVC."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import kfu
from kfu import SVC, KernelSpec
from kfu.errors import ConvergenceWarning

sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn import svm as peer  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import (  # noqa: E402
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

KERNELS = {
    "linear": {},
    "poly": {"degree": 2, "gamma": 0.2, "coef0": 1.0},
    "rbf": {"gamma": 0.1},
    "sigmoid": {"gamma": 0.01, "coef0": 0.0},
}


@parametrize_with_checks(
    [SVC(), SVC(kernel="linear"), SVC(kernel="precomputed")],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_weights_are_repetitions(kernel):
    estimator = SVC(kernel=kernel, gamma=0.5, tol=1e-11, precision="float64")
    check_sample_weight_equivalence_on_dense_data("SVC", estimator)
    check_sample_weight_equivalence_on_sparse_data("SVC", estimator)


def problem(n_classes: int = 2, n: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_classification(
        n + 60, 8, n_informative=5, n_classes=n_classes, class_sep=0.7, random_state=n_classes
    )
    return X[:n], y[:n], X[n:]


def fitted_pair(kernel: str, n_classes: int, tol: float, **more: object) -> tuple[SVC, peer.SVC]:
    X, y, _ = problem(n_classes)
    shared = {"C": 1.5, "kernel": kernel, "tol": tol, **KERNELS[kernel], **more}
    return SVC(**shared).fit(X, y), peer.SVC(**shared).fit(X, y)


# ---- beside scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("tol", "within"), [(1e-3, 1e-2), (1e-6, 1e-4)])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decision_values_agree(kernel, n_classes, tol, within, shape):
    ours, theirs = fitted_pair(kernel, n_classes, tol, decision_function_shape=shape)
    _, _, Z = problem(n_classes)
    expected = theirs.decision_function(Z)
    found = ours.decision_function(Z)
    assert found.shape == expected.shape
    if shape == "ovr" and n_classes > 2:  # scores jump where a vote changes
        same = np.abs(found - expected).max(axis=1) < within
        assert same.mean() > 0.95
    else:
        np.testing.assert_allclose(found, expected, rtol=within, atol=within)
    assert np.mean(ours.predict(Z) == theirs.predict(Z)) > 0.9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_attributes_agree(kernel, n_classes):
    ours, theirs = fitted_pair(kernel, n_classes, 1e-8)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
    assert ours.shape_fit_ == theirs.shape_fit_
    assert ours.fit_status_ == theirs.fit_status_ == 0
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    np.testing.assert_allclose(dense_dual(ours), dense_dual(theirs), atol=1e-3)
    assert ours.n_support_.sum() == ours.support_.size == ours.dual_coef_.shape[1]
    np.testing.assert_allclose(ours.n_support_, theirs.n_support_, atol=2)
    X, y, _ = problem(n_classes)
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert (np.diff(y[ours.support_]) >= 0).all()  # grouped by class
    assert ours.n_iter_.size == theirs.n_iter_.size
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    else:
        with pytest.raises(AttributeError, match="linear kernel"):
            _ = ours.coef_


def dense_dual(estimator: SVC | peer.SVC) -> np.ndarray:
    full = np.zeros((estimator.dual_coef_.shape[0], estimator.shape_fit_[0]))
    full[:, estimator.support_] = estimator.dual_coef_
    return full


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("sparse", [False, True])
def test_gamma_means_what_it_means_in_scikit_learn(gamma, sparse):
    X, y, Z = problem()
    X, Z = (sp.csr_matrix(X), sp.csr_matrix(Z)) if sparse else (X, Z)
    ours = SVC(gamma=gamma, tol=1e-6).fit(X, y)
    theirs = peer.SVC(gamma=gamma, tol=1e-6).fit(X, y)
    assert ours.model_.kernel.params["gamma"] == pytest.approx(theirs._gamma, rel=1e-12)
    np.testing.assert_allclose(ours.decision_function(Z), theirs.decision_function(Z), atol=1e-4)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0}, {0: 0.2, 1: 2.0, 2: 1.0}])
def test_class_and_sample_weights_agree(class_weight):
    X, y, Z = problem(3)
    weights = np.random.default_rng(0).uniform(0.1, 3, size=len(y))
    shared = {"gamma": 0.2, "tol": 1e-6, "class_weight": class_weight}
    ours = SVC(**shared, decision_function_shape="ovo").fit(X, y, sample_weight=weights)
    theirs = peer.SVC(**shared, decision_function_shape="ovo").fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(Z), theirs.decision_function(Z), atol=1e-4)


# ---- weights, labels, kernels ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_rows_of_no_weight_are_not_there(kernel):
    X, y, Z = problem(3)
    weights = np.ones(len(y))
    weights[::3], weights[1] = 0, -1
    keep = weights > 0
    if kernel == "precomputed":
        K, Kz = np.tanh(X @ X.T), np.tanh(Z @ X.T)
        part = SVC(kernel=kernel).fit(K[np.ix_(keep, keep)], y[keep])
        whole = SVC(kernel=kernel).fit(K, y, sample_weight=weights)
        expected, found = part.decision_function(Kz[:, keep]), whole.decision_function(Kz)
    else:
        part = SVC(gamma=0.1).fit(X[keep], y[keep])
        whole = SVC(gamma=0.1).fit(X, y, sample_weight=weights)
        expected, found = part.decision_function(Z), whole.decision_function(Z)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(keep)[part.support_])


def test_weights_that_leave_one_class_or_none_are_refused():
    X, y, _ = problem()
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        SVC().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="positive weights belong to the same class"):
        SVC().fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="got 1 class"):
        SVC().fit(X, np.zeros(len(y)))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "a longer one"]),
        np.array(["no", "yes", "a longer one"], dtype=object),
        np.array([2**60, 2**60 + 1, 2**60 + 2]),
        np.array([-3, 7, 1], dtype=np.int8),
        np.array([0.0, 2.0, -1.0]),
    ],
    ids=["str", "object", "large", "int8", "float"],
)
def test_labels_come_back_as_they_are(labels, tmp_path):
    X, y, Z = problem(3)
    estimator = SVC().fit(X, labels[y])
    np.testing.assert_array_equal(estimator.classes_, np.unique(labels))
    predicted = estimator.predict(Z)
    assert predicted.dtype == labels.dtype
    assert set(predicted) <= set(labels)
    assert estimator.score(X, labels[y]) > 0.7
    estimator.model_.save(tmp_path / "m.kfu")
    loaded = kfu.load(tmp_path / "m.kfu")
    np.testing.assert_array_equal(
        loaded.decide(loaded.decision_function(Z)), np.searchsorted(estimator.classes_, predicted)
    )


def test_two_boolean_classes():
    X, y, Z = problem()
    assert SVC().fit(X, y.astype(bool)).predict(Z).dtype == bool


def test_a_kernel_function_is_its_matrix():
    X, y, Z = problem(3)

    def cosine(A, B):
        return (A @ B.T) / np.linalg.norm(A, axis=1)[:, None] / np.linalg.norm(B, axis=1)

    by_function = SVC(kernel=cosine).fit(X, y)
    by_matrix = SVC(kernel="precomputed").fit(cosine(X, X), y)
    np.testing.assert_array_equal(
        by_function.decision_function(Z), by_matrix.decision_function(cosine(Z, X))
    )
    weights = (np.arange(len(y)) % 4 > 0).astype(float)
    kept = SVC(kernel=cosine).fit(X[weights > 0], y[weights > 0])
    weighted = SVC(kernel=cosine).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.decision_function(Z), kept.decision_function(Z), atol=1e-12)
    with pytest.raises(ValueError, match="the kernel function returned shape"):
        SVC(kernel=lambda A, B: np.zeros((2, 2))).fit(X, y)


def test_kernels_by_specification():
    X, y, Z = problem()
    by_name = SVC(kernel="rbf", gamma=0.25).fit(X, y).decision_function(Z)
    spec = KernelSpec.make("rbf", gamma=0.25)
    for kernel in (spec, spec.to_dict()):
        np.testing.assert_array_equal(SVC(kernel=kernel).fit(X, y).decision_function(Z), by_name)
    for kernel in ("laplacian", "rational"):
        assert SVC(kernel=kernel).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "wavelet"}, "wavelet"),
        ({"C": 0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"gamma": "large"}, "gamma must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"max_iter": -2}, "max_iter must be"),
        ({"decision_function_shape": "ova"}, "decision_function_shape must be"),
        ({"class_weight": "equal"}, "class_weight must be"),
        ({"solver": "magic"}, "solver"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_bad_parameters_are_value_errors(parameters, message):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=message):
        SVC(**parameters).fit(X, y)


def test_a_precomputed_matrix_is_square_and_dense():
    X, y, _ = problem()
    K = X @ X.T
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(X, y)
    for kernel in ("precomputed", {"name": "precomputed"}, KernelSpec.make("precomputed")):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            SVC(kernel=kernel).fit(sp.csr_matrix(K), y)
        assert SVC(kernel=kernel).fit(K, y).score(K, y) > 0.7


# ---- protocol --------------------------------------------------------------------------------


def test_parameters():
    estimator = SVC(C=3.0, kernel="poly")
    assert estimator.get_params()["C"] == 3.0
    assert estimator.set_params(C=4.0, degree=2) is estimator
    assert clone(estimator).get_params() == estimator.get_params()
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(cost=1)


def test_pickling():
    X, y, Z = problem(3)
    estimator = SVC().fit(X, y)
    expected = estimator.decision_function(Z)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.decision_function(Z), expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sparse_is_dense(kernel):
    X, y, Z = problem()
    X, Z = np.where(np.abs(X) < 0.7, 0, X), np.where(np.abs(Z) < 0.7, 0, Z)
    parameters = {"kernel": kernel, "tol": 1e-6, **KERNELS[kernel]}
    dense = SVC(**parameters).fit(X, y)
    for form in (sp.csr_matrix, sp.csc_matrix, sp.coo_array):
        sparse = SVC(**parameters).fit(form(X), y)
        assert sp.issparse(sparse.support_vectors_)
        for rows in (Z, form(Z)):
            np.testing.assert_allclose(
                sparse.decision_function(rows), dense.decision_function(Z), atol=1e-4
            )


def test_float32_data():
    X, y, Z = problem()
    single = SVC(gamma=0.1, tol=1e-6).fit(X.astype(np.float32), y)
    double = SVC(gamma=0.1, tol=1e-6).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        single.decision_function(Z.astype(np.float32)), double.decision_function(Z), atol=1e-3
    )


def test_search_and_pipeline():
    X, y, Z = problem(3)
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(pipeline, {"svc__C": [0.1, 1, 10], "svc__gamma": [0.01, 0.1]}, cv=3)
    search.fit(X, y)
    assert search.best_score_ > 0.5
    assert search.predict(Z).shape == (len(Z),)
    matrix = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1]}, cv=3)
    assert matrix.fit(X @ X.T, y).best_score_ > 0.4  # the columns are split as well


def test_warm_start_needs_less():
    X, y, _ = problem()
    estimator = SVC(gamma=0.1, warm_start=True, tol=1e-5).fit(X, y)
    cold, objective = estimator.n_iter_.sum(), estimator.info_["objective"]
    estimator.fit(X, y)
    assert estimator.n_iter_.sum() < cold
    assert estimator.info_["objective"] == pytest.approx(objective, rel=1e-6)
    estimator.fit(X[:50], y[:50])  # other data: starts anew
    assert estimator.shape_fit_ == (50, X.shape[1])


def test_stopping_early_is_told():
    X, y, _ = problem()
    with pytest.warns(ConvergenceWarning):
        estimator = SVC(max_iter=1, C=100.0).fit(X, y)
    assert estimator.fit_status_ == 1
    assert estimator.info_["status"] == "max_iterations"


def test_the_report_certifies():
    X, y, _ = problem()
    info = SVC(gamma=0.1, tol=1e-4).fit(X, y).info_
    assert info["status"] == "converged"
    assert 0 <= info["kkt_gap"] <= 1e-4


def test_without_a_bias():
    X, y, _ = problem()
    estimator = SVC(fit_intercept=False).fit(X, y)
    assert estimator.intercept_.tolist() == [0.0]


def test_verbose_speaks_on_stderr(capfd):
    X, y, _ = problem()
    SVC(verbose=True).fit(X, y)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "gap" in captured.err


# ---- without scikit-learn --------------------------------------------------------------------

WITHOUT = """
import sys
for name in ("sklearn", "pandas"):
    sys.modules[name] = None
import pickle
import numpy as np, scipy.sparse as sp
from kfu import SVC
from kfu.sklearn_bridge import HAS_SKLEARN, NotFittedError
assert not HAS_SKLEARN
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)); y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "in", "out")
svc = SVC(C=2.0)
assert repr(svc) == "SVC(C=2.0)", repr(svc)
assert svc.get_params()["C"] == 2.0 and svc.set_params(C=3.0) is svc
for call, error in [
    (lambda: svc.predict(X), NotFittedError),
    (lambda: svc.set_params(cost=1), ValueError),
    (lambda: svc.fit(X[:, 0], y), ValueError),
    (lambda: svc.fit(X * np.nan, y), ValueError),
    (lambda: svc.fit(X * 1j, y), ValueError),
    (lambda: svc.fit(X, y[:-1]), ValueError),
    (lambda: svc.fit(X, X[:, 0]), ValueError),
    (lambda: svc.fit(X, None), ValueError),
    (lambda: svc.fit(X, y, sample_weight=np.ones(3)), ValueError),
    (lambda: svc.fit(X[:0], y[:0]), ValueError),
    (lambda: svc.fit(X, y).predict(X[:, :2]), ValueError),
]:
    try:
        call()
    except error:
        continue
    raise SystemExit(f"{call} did not raise {error}")
svc.fit(X, y, sample_weight=np.ones(60))
assert svc.score(X, y) > 0.85
sparse = SVC(C=3.0).fit(sp.csr_matrix(X), y).predict(sp.csr_matrix(X))
assert (sparse == svc.predict(X)).mean() > 0.95
assert (pickle.loads(pickle.dumps(svc)).decision_function(X) == svc.decision_function(X)).all()
print("done")
"""


def test_without_scikit_learn():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert run.stdout.strip() == "done", run.stderr


def test_importing_kfu_is_light():
    code = "import kfu, sys; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_every_public_name_is_there():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in kfu.__all__:
            assert getattr(kfu, name) is not None
    assert set(kfu.__all__) <= set(dir(kfu))
    with pytest.raises(AttributeError, match="no attribute 'svc'"):
        _ = kfu.svc
