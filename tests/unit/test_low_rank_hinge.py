"""The hinge loss on low-rank features against a kernel machine on the whole of K̃."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_hinge import low_rank_hinge
from kfu.solvers.settings import SolverSettings
from tests.oracles import low_rank as oracle

RBF = KernelSpec.make("rbf", gamma=0.3)
TIGHT = SolverSettings(tolerance=1e-7)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=150) > 0, 1.0, -1.0)
    K = np.exp(-0.3 * np.square(X[:, None] - X[None]).sum(-1))
    return X, y, K, rng.choice(150, 30, replace=False)


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_machine_on_the_approximate_kernel(case, weighted):
    X, y, K, rows = case
    weight = np.random.default_rng(0).uniform(0.0, 2.0, 150) if weighted else None
    tilde = oracle.approximate(K, rows)
    fit = low_rank_hinge(X, y, RBF, rows, 2.0, weight=weight, settings=TIGHT)
    model = SVC(C=2.0, kernel="precomputed", tol=1e-7).fit(tilde, y, sample_weight=weight)
    outputs = fit.decision(X, X, RBF)[:, 0]
    assert np.allclose(outputs, model.decision_function(tilde), atol=1e-4)
    figures = fit.info["machines"][0]
    assert figures["status"] == "converged"
    # Primal less dual, recomputed from the expansion: the certificate is of this machine.
    c = fit.coef[:, 0]
    costs = np.full(150, 2.0) if weight is None else 2.0 * weight
    slack = costs @ np.maximum(1.0 - y * outputs, 0.0)
    primal = 0.5 * c @ K[np.ix_(rows, rows)] @ c + slack
    assert primal - figures["objective"] == pytest.approx(0.0, abs=1e-4)
    assert primal >= figures["objective"] - 1e-8


def test_no_bias_and_columns_that_skip_rows(case):
    X, y, K, rows = case
    code = np.column_stack([y, np.where(X[:, 2] > 0, y, 0.0)])
    fit = low_rank_hinge(X, code, RBF, rows, 1.0, bias=False, settings=TIGHT)
    assert (fit.bias == 0.0).all()
    seen = X[:, 2] > 0
    tilde = oracle.approximate(K, rows)
    c = fit.coef
    outputs = fit.decision(X, X, RBF)
    for k, used in enumerate([np.ones(150, bool), seen]):
        primal = 0.5 * c[:, k] @ K[np.ix_(rows, rows)] @ c[:, k]
        primal += np.maximum(1.0 - code[used, k] * outputs[used, k], 0.0).sum()
        assert primal == pytest.approx(fit.info["machines"][k]["objective"], rel=1e-5)
    assert np.allclose(outputs, tilde @ np.linalg.lstsq(tilde, outputs, rcond=1e-10)[0], atol=1e-6)


def test_float32_features(case):
    X, y, _, rows = case
    fine = low_rank_hinge(X, y, RBF, rows)
    coarse = low_rank_hinge(X, y, RBF, rows, precision="float32")
    gap = np.abs(fine.decision(X, X, RBF) - coarse.decision(X, X, RBF)).max()
    assert gap < 0.02


def test_what_cannot_be_done(case):
    X, y, _, rows = case
    with pytest.raises(SettingsError, match="cost"):
        low_rank_hinge(X, y, RBF, rows, 0.0)
    with pytest.raises(DataError, match="target of 2"):
        low_rank_hinge(X, 2.0 * np.abs(y), RBF, rows)
    with pytest.raises(DataError, match="one sign"):
        low_rank_hinge(X, np.ones(150), RBF, rows)
