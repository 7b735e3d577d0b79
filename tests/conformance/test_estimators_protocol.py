"""What every estimator owes its users: weights, kernels, copies, searches, warm starts, and life
without scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import kfu
from kfu import KernelSpec, estimators
from kfu.errors import ConvergenceWarning
from kfu.estimators.base import SolvedEstimator
from kfu.solvers import SolverSettings

pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

OF_ITS_OWN = {"KernelProjection": {"dims": 3}, "NuSVC": {"nu": 0.3}}
PRECISE = {"tol": 1e-7}


def made(name: str, **parameters):
    kind = getattr(kfu, name)
    precise = PRECISE if issubclass(kind, SolvedEstimator) else {}
    return kind(**{"gamma": 0.2, **precise, **OF_ITS_OWN.get(name, {}), **parameters})


def problem(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(130, 4))
    values = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=130)
    y = values if name in ("SVR", "NuSVR", "RLS") else np.digitize(values, [-0.6, 0.6])
    return X[:80], y[:80], X[80:]


def values_of(estimator, Z):
    has_decision = hasattr(estimator, "decision_function")
    return estimator.decision_function(Z) if has_decision else estimator.predict(Z)


def squares(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def gauss(A, B):
    return np.exp(-0.2 * squares(A, B))


@pytest.mark.parametrize("name", estimators.__all__)
def test_defaults_are_those_of_the_solver(name):
    expected = SolverSettings(polish=issubclass(getattr(kfu, name), SolvedEstimator))
    assert getattr(kfu, name)()._settings() == expected


@pytest.mark.parametrize("name", estimators.__all__)
def test_rows_of_no_weight_are_not_there(name):
    X, y, Z = problem(name)
    weights = np.ones(len(y))
    weights[::3], weights[1] = 0, -1
    keep = weights > 0
    whole = made(name).fit(X, y, sample_weight=weights)
    part = made(name).fit(X[keep], y[keep])
    np.testing.assert_allclose(values_of(whole, Z), values_of(part, Z), atol=1e-6)
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(keep)[part.support_])
    np.testing.assert_array_equal(whole.support_vectors_, X[whole.support_])
    with pytest.raises(ValueError, match="zero or negative weights"):
        made(name).fit(X, y, sample_weight=-np.ones(len(y)))


@pytest.mark.parametrize("name", [n for n in estimators.__all__ if n != "KernelKNN"])
def test_a_kernel_may_be_a_matrix_or_a_function(name):
    X, y, Z = problem(name)
    expected = values_of(made(name).fit(X, y), Z)
    by_matrix = made(name, kernel="precomputed").fit(gauss(X, X), y)
    by_function = made(name, kernel=gauss).fit(X, y)
    by_spec = made(name, kernel=KernelSpec.make("rbf", gamma=0.2)).fit(X, y)
    for found in (
        values_of(by_matrix, gauss(Z, X)),
        values_of(by_function, Z),
        values_of(by_spec, Z),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ValueError, match="square"):
        made(name, kernel="precomputed").fit(X, y)


def test_a_training_that_fails_leaves_the_model_as_it_was():
    X, y, Z = problem("SVC")
    found = kfu.SVC(kernel=gauss).fit(X, y)
    expected = found.decision_function(Z)
    with pytest.raises(ValueError, match="tol"):
        found.set_params(tol=-1.0).fit(X[:40] + 1.0, y[:40])
    np.testing.assert_array_equal(found.decision_function(Z), expected)


@pytest.mark.parametrize("name", estimators.__all__)
def test_sparse_is_dense(name):
    X, y, Z = problem(name)
    X, Z = np.where(np.abs(X) < 0.5, 0, X), np.where(np.abs(Z) < 0.5, 0, Z)
    dense = made(name).fit(X, y)
    sparse = made(name).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(values_of(sparse, sp.csc_matrix(Z)), values_of(dense, Z), atol=1e-4)


@pytest.mark.parametrize("name", estimators.__all__)
def test_copies(name, tmp_path):
    X, y, Z = problem(name)
    found = made(name).fit(X, y)
    expected = values_of(found, Z)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(values_of(again, Z), expected)
    fresh = clone(found)
    assert fresh.get_params() == found.get_params()
    assert not hasattr(fresh, "model_")
    np.testing.assert_allclose(values_of(fresh.fit(X, y), Z), expected, atol=1e-9)
    found.model_.save(tmp_path / "m.kfu")
    loaded = kfu.load(tmp_path / "m.kfu")
    np.testing.assert_array_equal(loaded.decision_function(Z), found.model_.decision_function(Z))


@pytest.mark.parametrize("name", [n for n in estimators.__all__ if n != "OneClassSVM"])
def test_searches_and_pipelines(name):
    X, y, Z = problem(name)
    step = name.lower()
    grid = {f"{step}__gamma": [0.01, 0.3]}
    search = GridSearchCV(make_pipeline(StandardScaler(), made(name)), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.4
    assert search.predict(Z).shape == (len(Z),)


WARM = {
    "SVC": {},
    "NuSVC": {},
    "OneClassSVM": {"nu": 0.3},
    "SVR": {"epsilon": 0.05},
    "NuSVR": {},
}


@pytest.mark.parametrize("name", WARM)
def test_warm_starts(name):
    X, y, Z = problem(name)
    warm = made(name, warm_start=True, polish=False, tol=1e-5, **WARM[name]).fit(X, y)
    cold, expected = np.sum(warm.n_iter_), values_of(warm, Z)
    objective = warm.info_["objective"]
    warm.fit(X, y)
    assert np.sum(warm.n_iter_) < 0.6 * cold
    assert warm.info_["objective"] == pytest.approx(objective, rel=1e-4)
    np.testing.assert_allclose(values_of(warm, Z), expected, atol=1e-3)
    # Other rows, or weights that leave rows out: a new start, and the right answer.
    warm.fit(X[:60], y[:60])
    anew = made(name, tol=1e-5, **WARM[name]).fit(X[:60], y[:60])
    np.testing.assert_allclose(values_of(warm, Z), values_of(anew, Z), atol=1e-3)
    warm.fit(X[:60], y[:60], sample_weight=np.arange(60) % 2)
    assert warm.fit_status_ == 0
    # A training that fails leaves no trace in the next one.
    with pytest.raises(ValueError):
        warm.set_params(gamma=-1.0).fit(X, y)
    warm.set_params(gamma=0.2).fit(X, y)
    np.testing.assert_allclose(values_of(warm, Z), expected, atol=1e-3)


def test_warm_starts_end_where_the_machines_change():
    X, y, Z = problem("SVC")
    warm = kfu.SVC(gamma=0.2, warm_start=True, tol=1e-6)
    for change in (
        {"multiclass": "ova"},
        {"multiclass": "sparse"},
        {"random_state": 3},
        {"multiclass": np.array([[1, 1, 1], [1, -1, 0], [-1, 0, -1]])},
        {"loss": "squared_hinge"},
        {"multiclass": "crammer-singer", "loss": "hinge"},
        {"multiclass": "ava"},
        {"C": 2.0},
    ):
        warm.set_params(**change).fit(X, y)
        cold = clone(warm).fit(X, y)
        np.testing.assert_allclose(
            warm.model_.decision_function(Z), cold.model_.decision_function(Z), atol=1e-3
        )
    relabelled = warm.fit(X, y + 1)
    assert relabelled.classes_.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["SVR", "NuSVR", "OneClassSVM", "NuSVC", "RankSVM"])
def test_stopping_early_is_told(name):
    X, y, _ = problem(name)
    with pytest.warns(ConvergenceWarning):
        found = made(name, max_iter=1, tol=1e-9, polish=False).fit(X, y)
    assert found.fit_status_ == 1
    assert found.info_["status"] == "max_iterations"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("SVR", {"epsilon": -1.0}, "epsilon"),
        ("SVR", {"C": float("inf")}, "C must be"),
        ("SVR", {"fit_intercept": "maybe"}, "fit_intercept must be"),
        ("NuSVR", {"nu": 0.0}, "nu"),
        ("NuSVR", {"C": 0.0}, "C must be"),
        ("NuSVC", {"nu": 1.5}, "nu"),
        ("OneClassSVM", {"nu": -0.1}, "nu"),
        ("OneClassSVM", {"max_iter": -5}, "max_iter must be"),
        ("KernelKNN", {"neighbours": 0}, "neighbours"),
        ("KernelKNN", {"distance_weights": "cubic"}, "distance_weights"),
        ("ParzenClassifier", {"prior": "flat"}, "prior"),
        ("ParzenClassifier", {"kernel": "linear"}, "linear"),
        ("KernelCentroid", {"gamma": "large"}, "gamma must be"),
    ],
)
def test_bad_parameters_are_value_errors(name, parameters, message):
    X, y, _ = problem(name)
    with pytest.raises(ValueError, match=message):
        made(name, **parameters).fit(X, y)


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_constant_targets(name):
    X, y, Z = problem(name)
    found = made(name).fit(X, np.full(len(y), 2.5))
    np.testing.assert_allclose(found.predict(Z), 2.5, atol=1e-6)


@pytest.mark.parametrize("name", ["SVR", "OneClassSVM"])
def test_one_row(name):
    found = made(name).fit([[1.0, 2.0]], [3.0])
    assert np.isfinite(values_of(found, [[1.0, 2.0], [0.0, 0.0]])).all()


# ---- without scikit-learn --------------------------------------------------------------------

WITHOUT = """
import sys
for name in ("sklearn", "pandas"):
    sys.modules[name] = None
import pickle
import numpy as np
import kfu
from kfu import estimators
from kfu.sklearn_bridge import HAS_SKLEARN, NotFittedError
assert not HAS_SKLEARN

def refuses(call, error=ValueError):
    try:
        call()
    except error:
        return True
    return False

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
f = X[:, 0] + X[:, 1] ** 2
for name in estimators.__all__:
    numbers = name in ("SVR", "NuSVR", "RLS", "RankSVM")
    y = f if name in ("SVR", "NuSVR", "RLS") else np.digitize(f, [0.0, 1.0])
    if not numbers:
        y = np.array(["a", "b", "c"])[y]
    options = {"nu": 0.3} if name == "NuSVC" else {"dims": 4} if name == "KernelProjection" else {}
    made = getattr(kfu, name)(**options)
    assert refuses(lambda: made.predict(X), NotFittedError), name
    assert refuses(lambda: made.set_params(cost=1)), name
    assert made.set_params(gamma=0.5) is made and made.get_params()["gamma"] == 0.5
    assert repr(made).startswith(name + "(") and "gamma=0.5" in repr(made)
    assert made.fit(X, y, sample_weight=np.ones(60)) is made
    predicted = made.predict(X)
    assert (pickle.loads(pickle.dumps(made)).predict(X) == predicted).all()
    if name == "OneClassSVM":
        assert (made.fit_predict(X) == predicted).all() and set(predicted) <= {-1, 1}
        continue
    assert made.score(X, y) > 0.5, name
    assert refuses(lambda: made.fit(X, None)) and refuses(lambda: made.fit(X, y[:-1])), name
    if numbers:
        assert refuses(lambda: made.fit(X, np.full(60, np.nan))), name
        assert refuses(lambda: made.fit(X, np.full(60, "a"))), name
svr = kfu.SVR(C=10.0).fit(X, f)
left = f - svr.predict(X)
assert abs(svr.score(X, f) - (1 - (left @ left) / np.square(f - f.mean()).sum())) < 1e-12
assert not hasattr(kfu.SVC(), "predict_proba")
assert hasattr(kfu.SVC(probability=True), "predict_proba")
assert refuses(lambda: kfu.SVC(probability=True).predict_proba(X), NotFittedError)
labels = f > 0.5
p = kfu.SVC(probability=True).fit(X, labels).predict_proba(X)
assert p.shape == (60, 2) and abs(p.sum(axis=1) - 1).max() < 1e-12
assert ((p[:, 1] > 0.5) == labels).mean() > 0.8
print("done")
"""


def test_without_scikit_learn():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert run.stdout.strip() == "done", run.stderr
