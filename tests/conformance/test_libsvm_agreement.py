"""ν-SVC, one-class, ε-SVR and ν-SVR on real data: LIBSVM's objective, with and without weights.

scikit-learn's build of LIBSVM is the peer, since it takes a weight for each row. Its objective is
recomputed here from its coefficients and a float64 kernel; kfu's is minus that. Both divide the
coefficients of ν-SVC by the margin ρ and so its objective by ρ², which multiplies the error of ρ:
0.005 on heart_scale at ν = 0.1, where LIBSVM's float32 rows leave five digits. So ν-SVC's is
compared before the division, with ρ = νW / Σ|β|.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, Scaler, read_dataset, train
from kfu.solvers import SolverSettings

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets"),
]

svm = pytest.importorskip("sklearn.svm")

MOST_ROWS = 1200
# name: file, whether its labels are numbers to predict, γ, C, ε
SETS = {
    "heart_scale": ("heart_scale.svm.gz", False, 1 / 13, None, None),
    "a1a": ("a1a.tr.gz", False, 0.05, None, None),
    "housing": ("housing.svm.gz", True, 0.5, 10.0, 1.0),
    "abalone": ("abalone.svm.gz", True, 1.0, 5.0, 0.5),
    "cpusmall": ("cpusmall.svm.gz", True, 0.5, 20.0, 1.0),
}
CLASSES = [name for name, facts in SETS.items() if not facts[1]]
NUMBERS = [name for name, facts in SETS.items() if facts[1]]
CASES = [
    *(("nu-svc", name, {"nu": nu}) for name in CLASSES for nu in (0.1, 0.4)),
    *(("one-class", name, {"nu": nu}) for name in SETS for nu in (0.1, 0.5)),
    *(("svr", name, {}) for name in NUMBERS),
    *(("nu-svr", name, {"nu": nu}) for name in NUMBERS for nu in (0.2, 0.6)),
]


@functools.cache
def problem(name):
    """(X, y, K): at most MOST_ROWS rows spread over the file, the numbers' features in [0, 1]."""
    file, is_number, gamma, _, _ = SETS[name]
    dataset = read_dataset(str(Path(os.environ["KFU_DATA"]) / file))
    rows = np.linspace(0, dataset.n - 1, min(dataset.n, MOST_ROWS)).astype(int)
    X, y = dataset.X[rows], dataset.y[rows]
    if is_number:
        X = Scaler.fit(X, "minmax").transform(X)
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    squares = (dense**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2.0 * dense @ dense.T
    return X, y, np.exp(-gamma * np.maximum(distances, 0.0))


def weights_of(kind, n):
    if kind == "alike":
        return None
    weights = np.random.default_rng(4).uniform(0.2, 2.0, size=n)
    if kind == "some-zero":
        weights[::7] = 0.0
    return weights


def peer_of(machine, name, options):
    gamma, cost, epsilon = SETS[name][2:]
    common = {"gamma": gamma, "tol": 1e-6, "cache_size": 500}
    if machine == "nu-svc":
        return svm.NuSVC(nu=options["nu"], **common)
    if machine == "one-class":
        return svm.OneClassSVM(nu=options["nu"], **common)
    if machine == "svr":
        return svm.SVR(C=cost, epsilon=epsilon, **common)
    return svm.NuSVR(C=cost, nu=options["nu"], **common)


def objective(machine, beta, K, y, epsilon):
    """The maximised dual of coefficients β; ν-SVC's as it is for Σ|β| = 1."""
    if machine == "nu-svc":
        beta = beta / np.abs(beta).sum()
    square = 0.5 * beta @ K @ beta
    if machine in ("nu-svc", "one-class"):
        return -square
    tube = epsilon * np.abs(beta).sum() if machine == "svr" else 0.0
    return y @ beta - tube - square


def by_row(support, coefficients, n):
    beta = np.zeros(n)
    row = coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients)
    beta[support] = row.reshape(-1)
    return beta


@pytest.mark.parametrize("weighting", ["alike", "weighed", "some-zero"])
@pytest.mark.parametrize(("machine", "name", "options"), CASES)
def test_the_objective_is_that_of_libsvm(machine, name, options, weighting):
    X, y, K = problem(name)
    n = len(y)
    gamma, cost, epsilon = SETS[name][2:]
    weights = weights_of(weighting, n)
    kept = np.arange(n) if weights is None else np.flatnonzero(weights)
    peer = peer_of(machine, name, options)
    peer.fit(X[kept], y[kept], sample_weight=None if weights is None else weights[kept])
    settings = SolverSettings(tolerance=1e-6)
    if epsilon is not None and machine == "svr":
        options = {**options, "epsilon": epsilon}
    costs = {"cost": cost} if machine in ("svr", "nu-svr") else {}
    model = train(
        X,
        y,
        machine=machine,
        kernel=KernelSpec.make("rbf", gamma=gamma),
        sample_weight=weights,
        settings=settings,
        **costs,
        **options,
    )
    theirs = by_row(kept[peer.support_], peer.dual_coef_, n)
    ours = by_row(model.support, model.coef, n)
    expected = objective(machine, theirs, K, y, epsilon)
    reached = objective(machine, ours, K, y, epsilon)
    assert model.info["status"] == "converged"
    assert reached == pytest.approx(expected, rel=1e-5)
    told = reached * (np.abs(ours).sum() ** 2 if machine == "nu-svc" else 1.0)
    assert model.info["objective"] == pytest.approx(told, rel=1e-8)
    f = K @ ours + model.bias[0]
    reach = np.abs(f).max()
    np.testing.assert_allclose(model.decision_function(X)[:, 0], f, rtol=0, atol=1e-8 * reach)
    their_f = K @ theirs + peer.intercept_[0]
    np.testing.assert_allclose(f, their_f, rtol=0, atol=1e-4 * reach)
