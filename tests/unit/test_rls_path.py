"""The path of regularised least squares: figures at every λ against the definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machines import train
from kfu.paths.rls import rls_path
from tests.oracles.gap_path import (
    rbf_matrix,
    ridge_degrees_of_freedom,
    rls_coefficients,
    rls_left_out,
)

GAMMA = 0.7
RBF = KernelSpec.make("rbf", gamma=GAMMA)


def regression(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, 1.0 + np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * rng.normal(size=n)


def classes(n=60, seed=1):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    labels[:3] = 0, 1, 2
    centres = np.array([[0.0, 1.5], [1.5, 0.0], [-1.0, -1.0]])
    return rng.normal(size=(n, 2)) + centres[labels], np.array(["a", "b", "c"])[labels]


def test_every_figure_by_definition():
    X, y = regression()
    X_valid, y_valid = regression(25, seed=2)
    path = rls_path(X, y, RBF, lam_range=(1e-4, 10.0), n_points=7, X_valid=X_valid, y_valid=y_valid)
    K, n = rbf_matrix(X, X, GAMMA), len(y)
    assert path.lam == pytest.approx(np.geomspace(1e-4, 10.0, 7))
    for k, lam in enumerate(path.lam):
        coef = rls_coefficients(K, y, lam * n)
        fitted, df = K @ coef, ridge_degrees_of_freedom(K, lam * n)
        squared = np.mean((fitted - y) ** 2)
        assert path.train_error[k] == pytest.approx(squared, rel=1e-8)
        assert path.loo[k] == pytest.approx(np.mean((rls_left_out(K, y, lam * n) - y) ** 2), 1e-7)
        assert path.df[k] == pytest.approx(df, rel=1e-8)
        assert path.gcv[k] == pytest.approx(squared / (1 - df / n) ** 2, rel=1e-7)
        value = np.sum((fitted - y) ** 2) + lam * n * coef @ K @ coef
        assert path.objective[k] == pytest.approx(value, rel=1e-8)
        f = rbf_matrix(X_valid, X, GAMMA) @ coef
        assert path.valid_error[k] == pytest.approx(np.mean((f - y_valid) ** 2), rel=1e-7)
    assert np.all(path.kkt <= 1e-10)


def test_at_any_lambda_is_what_training_gives():
    X, y = regression()
    path = rls_path(X, y, RBF)
    for lam in (3e-5, 0.01, 2.0):  # off the grid
        model, other = path.at(lam), train(X, y, machine="rls", kernel=RBF, lam=lam)
        assert model.predict(X) == pytest.approx(other.predict(X), abs=1e-8)
        assert model.info["loo_mse"] == pytest.approx(other.info["loo_mse"], rel=1e-6)
        assert model.loo == pytest.approx(other.loo, abs=1e-7)
        assert model.info["lambda"] == lam
        assert model.info["objective"] == pytest.approx(other.info["objective"], rel=1e-7)


@pytest.mark.parametrize("bias", [False, True])
def test_classes_weights_and_bias(bias):
    X, y = classes()
    weights = np.random.default_rng(3).choice([0.0, 1.0, 2.0], len(y))
    weights[:3] = 1.0
    X_valid, y_valid = classes(30, seed=4)
    y_valid = y_valid.astype("U8")
    y_valid[0] = "unknown"
    path = rls_path(
        X,
        y,
        RBF,
        machine="rlsc",
        sample_weight=weights,
        class_weight={"a": 2.0},
        bias=bias,
        grid=[0.1, 1e-3, 0.1],
        X_valid=X_valid,
        y_valid=y_valid,
    )
    assert path.lam.tolist() == [1e-3, 0.1]
    for k, lam in enumerate(path.lam):
        other = train(
            X,
            y,
            machine="rlsc",
            kernel=RBF,
            lam=lam,
            sample_weight=weights,
            class_weight={"a": 2.0},
            bias=bias,
        )
        model = path.at(lam)
        got, wanted = model.decision_function(X), other.decision_function(X)
        assert got == pytest.approx(wanted, abs=1e-7)
        assert path.loo_error[k] == pytest.approx(other.info["loo_error"], abs=1e-12)
        wrong = np.average(model.predict(X) != y, weights=weights)
        assert path.train_error[k] == pytest.approx(wrong)
        assert path.valid_error[k] == np.mean(model.predict(X_valid) != y_valid)
    assert np.all(path.kkt <= 1e-9)
    for row in path.records():
        assert row["n_correct"] == np.count_nonzero(weights == 0)
        assert row["n_margin"] + row["n_correct"] == len(y)


def test_records_descend_and_best():
    X, y = regression()
    path = rls_path(X, y, RBF, lam_range=(1e-5, 1e2), n_points=30)
    rows = list(path.records())
    assert [row["step"] for row in rows] == list(range(30))
    assert [row["lambda"] for row in rows] == path.lam[::-1].tolist()
    assert {row["event"] for row in rows} == {"grid"}
    assert all(row["items"] == [] and row["C"] is None and row["bias"] == 0.0 for row in rows)
    assert path.best() == path.lam[np.argmin(path.loo)]
    assert path.best("gcv") == path.lam[np.argmin(path.gcv)]
    for criterion in ("valid_error", "loo_error", "train_error"):
        with pytest.raises(SettingsError):
            path.best(criterion)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_precomputed_and_sparse(is_sparse):
    X, y = regression()
    K = X @ X.T + 1.0
    data = sp.csr_matrix(K) if is_sparse else K
    path = rls_path(
        data, y, KernelSpec.make("precomputed"), grid=[0.01], X_valid=K[:9], y_valid=y[:9]
    )
    f = K @ rls_coefficients(K, y, 0.01 * len(y))
    assert path.valid_error[0] == pytest.approx(np.mean((f - y)[:9] ** 2), rel=1e-8)
    linear = rls_path(
        sp.csr_matrix(X) if is_sparse else X, y, KernelSpec.make("linear"), grid=[0.01]
    )
    g = X @ X.T @ rls_coefficients(X @ X.T, y, 0.01 * len(y))
    assert linear.at(0.01).predict(X) == pytest.approx(g, abs=1e-9)


def test_one_row():
    path = rls_path(np.ones((1, 2)), [3.0], RBF, grid=[1.0])
    assert path.at(1.0).predict(np.ones((1, 2))) == pytest.approx([1.5])
    assert path.loo[0] == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "svc"}, "rls or rlsc"),
        ({"grid": []}, "one at least"),
        ({"grid": [0.0]}, "greater than 0"),
        ({"grid": ["x"]}, "not numbers"),
        ({"lam_range": (1.0, 0.1)}, "empty"),
        ({"lam_range": (0.1, 1.0), "grid": [1.0]}, "one of them"),
        ({"lam_range": (0.1, 1.0), "n_points": 0}, "n_points"),
        ({"bias": "regularised"}, "free bias or none"),
    ],
)
def test_bad_settings(options, message):
    X, y = regression(10)
    with pytest.raises(SettingsError, match=message):
        rls_path(X, y, RBF, **options)


def test_bad_data():
    X, y = classes()
    with pytest.raises(SettingsError, match="without zeros"):
        rls_path(X, y, RBF, machine="rlsc", multiclass="ovo")
    numbers = np.arange(len(y), dtype=float)
    with pytest.raises(DataError, match="positive weight"):
        rls_path(X, numbers, RBF, sample_weight=np.zeros(len(y)))
    path = rls_path(X, numbers, RBF, grid=[1.0])
    for wrong in ({}, {"value": 1.0, "lam": 1.0}, {"lam": 0.0}, {"lam": np.inf}):
        with pytest.raises(SettingsError):
            path.at(**wrong)
    with pytest.raises(DataError, match="validation data"):
        path.validate(X[:3], numbers[:2])
