"""The real data sets: every layout, precision, solver, cache and chunk gives LIBSVM's solution.

Objectives agree to 1e-5 relative, decision values to 1e-2 at tolerance 1e-3 and 1e-4 at 1e-6.
scikit-learn's build of LIBSVM is the peer; its objective is recomputed from its coefficients.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, Scaler, read_dataset, train
from kfu.solvers import SOLVERS, SolverSettings

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets"),
]

# name: file, C, gamma
SETS = {
    "a1a": ("a1a.tr.gz", 1.0, 0.05),
    "heart_scale": ("heart_scale.svm.gz", 1.0, 1 / 13),
    "w1a": ("w1a.tr.gz", 1.0, 0.05),
    "svmguide1": ("svmguide1.tr.gz", 2.0, 2.0),
    "letter-A": ("letter.tr.gz", 1.0, 1 / 16),
}
DECISION_ATOL = {1e-3: 1e-2, 1e-6: 1e-4}

VARIANTS = {
    "default": {},
    "dense": {"layout": "dense"},
    "csr": {"layout": "csr"},
    "float32-data": {"dtype": "float32"},
    "float64-rows": {"precision": "float64"},
    "one-thread": {"threads": 1},
    "two-threads": {"threads": 2},
    "first-order": {"selection": "first"},
    "no-shrinking": {"shrinking": False},
    "one-row": {"cache_rows": 1},
    "hundred-rows": {"cache_rows": 100},
    "chunk-2": {"chunk": 2},
    "chunk-100": {"chunk": 100},
    "one-chunk": {"chunk": 10**9},
    **{f"solver-{name}": {"solver": name} for name in SOLVERS},
}


@functools.cache
def problem(name):
    file, cost, gamma = SETS[name]
    dataset = read_dataset(str(Path(os.environ["KFU_DATA"]) / file))
    X, y = dataset.X, dataset.y
    if name == "svmguide1":
        X = Scaler.fit(X, "minmax").transform(X)
    if name == "letter-A":
        y = np.where(y == 1, 1.0, -1.0)
    return X, y, cost, gamma


@functools.cache
def peer(name, tolerance):
    """LIBSVM's dual objective and decision values."""
    from sklearn.svm import SVC

    X, y, cost, gamma = problem(name)
    model = SVC(C=cost, gamma=gamma, tol=tolerance, cache_size=1500).fit(X, y)
    coef = model.dual_coef_.toarray()[0] if sp.issparse(model.dual_coef_) else model.dual_coef_[0]
    decision = model.decision_function(X)
    # coefᵀK coef through f: Σ_j c_j (f_j − b)
    norm = coef @ (decision[model.support_] - model.intercept_[0])
    return np.abs(coef).sum() - 0.5 * norm, decision


def fit(name, tolerance, layout=None, dtype=None, cache_rows=None, **settings):
    X, y, cost, gamma = problem(name)
    if layout == "dense" and sp.issparse(X):
        X = X.toarray()
    if layout == "csr":
        X = sp.csr_matrix(X)
    if dtype is not None:
        X = X.astype(dtype)
    if cache_rows is not None:
        settings["cache_mib"] = cache_rows * X.shape[0] * 4 / 2**20
    kernel = KernelSpec.make("rbf", gamma=gamma)
    model = train(
        X, y, kernel=kernel, cost=cost, settings=SolverSettings(tolerance=tolerance, **settings)
    )
    return model, X


@pytest.mark.parametrize("tolerance", list(DECISION_ATOL))
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", SETS)
def test_agrees_with_libsvm(name, variant, tolerance):
    expected, peer_decision = peer(name, tolerance)
    model, X = fit(name, tolerance, **VARIANTS[variant])
    assert model.info["status"] == "converged"
    assert model.info["kkt_gap"] <= tolerance
    assert model.info["objective"] == pytest.approx(expected, rel=1e-5)
    decision = model.decision_function(X)[:, 0]
    assert np.abs(decision - peer_decision).max() <= DECISION_ATOL[tolerance]


def test_the_objective_of_a1a():
    model, _ = fit("a1a", 1e-3)
    assert model.info["objective"] == pytest.approx(567.787, rel=1e-5)
    assert model.info["kkt_gap"] <= 1e-3


def test_svmguide1_accuracy():
    folder = Path(os.environ["KFU_DATA"])
    learn = read_dataset(str(folder / "svmguide1.tr.gz"))
    test = read_dataset(str(folder / "svmguide1.t.gz"))
    scaler = Scaler.fit(learn.X, "minmax")
    kernel = KernelSpec.make("rbf", gamma=2.0)
    model = train(scaler.transform(learn.X), learn.y, kernel=kernel, cost=2.0)
    model.scaler = scaler
    assert np.mean(model.predict(test.X) == test.y) == 0.96875
