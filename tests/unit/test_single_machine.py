"""Crammer–Singer and Weston–Watkins machines: optima, certificates, limits and refusals."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from kfu._gram import Gram

from kfu import KernelSpec
from kfu.errors import DataError, SettingsError
from kfu.solvers import DualProblem, SolverSettings, solve
from kfu.solvers.multiclass import SINGLE_MACHINES, feasible_start, solve_single_machine
from tests.oracles import single_machine as oracle

KINDS = sorted(SINGLE_MACHINES)
RBF = KernelSpec.make("rbf", gamma=0.5)
LINEAR = KernelSpec.make("linear")


def blobs(n, n_classes, seed=0, d=3, spread=1.5):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + spread * rng.normal(size=(n_classes, d))[labels]
    return X, labels


def fit(kind, X, labels, *, kernel=RBF, cost=1.0, n_classes=None, bias=False, start=None, **opts):
    costs = np.broadcast_to(np.asarray(cost, dtype=float), len(labels)).copy()
    progress = opts.pop("progress", None)
    settings = SolverSettings(**{"threads": 1, "tolerance": 1e-6, **opts})
    n_classes = n_classes or int(labels.max()) + 1
    return solve_single_machine(
        kind, X, labels, n_classes, costs, kernel, settings,
        bias=bias, start=start, progress=progress,
    )  # fmt: skip


def matrix(X, kernel=RBF):
    return Gram(X, kernel, precision="float64").block().astype(float)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n_classes", "cost"), [(2, 1.0), (3, 0.3), (4, 20.0)])
def test_agrees_with_a_general_qp_optimiser(kind, bias, n_classes, cost):
    X, labels = blobs(12, n_classes, seed=n_classes)
    costs = cost * np.linspace(0.5, 1.5, 12)
    K = matrix(X)
    B = oracle.solve_dual(kind, K, labels, n_classes, costs, bias=bias)
    found = fit(kind, X, labels, cost=costs, bias=bias, tolerance=1e-8)
    expected = oracle.dual_objective(kind, K, labels, B)
    assert found.info.status == "converged"
    assert found.info.objective == pytest.approx(expected, rel=1e-6)
    # ½‖w − w'‖² is at most the difference of the objectives: f is determined.
    np.testing.assert_allclose(found.coef @ K, B @ K, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kernel", [RBF, LINEAR], ids=["rbf", "linear"])
def test_the_certificate_is_true(kind, bias, kernel):
    X, labels = blobs(150, 5, seed=3)
    costs = np.linspace(0.0, 4.0, 150)
    found = fit(kind, X, labels, kernel=kernel, cost=costs, bias=bias, tolerance=1e-4)
    judged = oracle.judge(kind, matrix(X, kernel), labels, costs, found.coef, found.bias)
    info = found.info
    assert info.status == "converged"
    assert judged.infeasibility <= 1e-12
    assert judged.kkt_gap <= 1e-4
    assert info.objective == pytest.approx(judged.objective, rel=1e-10)
    assert info.n_sv == judged.n_sv
    assert judged.duality_gap <= info.duality_gap + 1e-9
    assert judged.duality_gap <= 1e-4 * costs.sum()
    if bias:
        assert np.abs(found.coef.sum(axis=1)).max() <= 1e-4
        assert found.bias.sum() == pytest.approx(0.0, abs=1e-9)
    else:
        assert info.duality_gap == pytest.approx(judged.duality_gap, rel=1e-6, abs=1e-9)
        assert info.kkt_gap == pytest.approx(judged.kkt_gap, rel=1e-6, abs=1e-12)
        assert not found.bias.any()


@pytest.mark.parametrize("kind", KINDS)
def test_one_example_is_one_exact_row(kind):
    rng = np.random.default_rng(5)
    for _ in range(30):
        n_classes = int(rng.integers(2, 8))
        label, cost, x = int(rng.integers(n_classes)), rng.uniform(0.1, 3), rng.uniform(0.2, 3)
        start = feasible_start(
            kind, rng.normal(size=(n_classes, 1)), np.array([label]), n_classes, np.array([cost])
        )
        found = fit(
            kind, np.array([[x]]), np.array([label]), kernel=LINEAR, cost=cost,
            n_classes=n_classes, start=start, precision="float64", tolerance=1e-12,
        )  # fmt: skip
        B, kappa = start[:, 0], x * x
        G = B * kappa - oracle.MARGINS[kind] * (np.arange(n_classes) == label)
        expected = oracle.project_row(kind, B - G / kappa, label, cost)
        np.testing.assert_allclose(found.coef[:, 0], expected, atol=1e-12)
        assert found.info.iterations <= 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_two_classes_are_a_binary_machine(kind, bias):
    X, labels = blobs(80, 2, seed=1)
    scale = {"crammer-singer": 2.0, "weston-watkins": 1.0}[kind]
    y = 2.0 * labels - 1.0
    n = len(y)
    problem = DualProblem(
        signs=y, linear=np.full(n, -1.0), lower=np.zeros(n), upper=np.full(n, scale * 1.5),
        points=np.arange(n), has_equality=bias,
    )  # fmt: skip
    binary = solve(problem, X, RBF, SolverSettings(tolerance=1e-8, threads=1, precision="float64"))
    found = fit(kind, X, labels, cost=1.5, bias=bias, tolerance=1e-8, precision="float64")
    K = matrix(X)
    f = found.coef @ K + found.bias[:, None]
    expected = binary.beta @ K + (binary.bias if bias else 0.0)
    multiple = {"crammer-singer": 1.0, "weston-watkins": 0.5}[kind]
    np.testing.assert_allclose(multiple * (f[1] - f[0]), expected, atol=1e-5)
    objective = {"crammer-singer": 0.5, "weston-watkins": 2.0}[kind] * binary.info.objective
    assert found.info.objective == pytest.approx(objective, rel=1e-7)


def test_the_linear_machine_of_another_package():
    svm = pytest.importorskip("sklearn.svm")
    X, labels = blobs(300, 4, seed=8, d=5)
    found = fit("crammer-singer", X, labels, kernel=LINEAR, cost=0.5, tolerance=1e-5)
    other = svm.LinearSVC(
        multi_class="crammer_singer", C=0.5, fit_intercept=False, tol=1e-7, max_iter=100000
    ).fit(X, labels)
    f = other.coef_ @ X.T
    slack = np.max(f + 1.0 - np.eye(4)[labels].T, axis=0) - f[labels, np.arange(300)]
    primal = 0.5 * np.sum(other.coef_**2) + 0.5 * slack.sum()
    assert found.info.objective == pytest.approx(primal, rel=1e-4)
    np.testing.assert_allclose(found.coef @ X, other.coef_, atol=5e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [2, 7, 40])
def test_any_chunk_reaches_the_same_optimum(kind, chunk):
    X, labels = blobs(120, 3, seed=2)
    whole = fit(kind, X, labels, tolerance=1e-7)
    parts = fit(kind, X, labels, tolerance=1e-7, chunk=chunk)
    assert parts.info.status == "converged"
    assert parts.info.chunk == chunk
    assert parts.info.rounds > whole.info.rounds
    assert parts.info.objective == pytest.approx(whole.info.objective, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_and_precisions_agree(kind):
    X, labels = blobs(90, 3, seed=4)
    X[np.abs(X) < 0.7] = 0.0
    expected = fit(kind, X, labels, precision="float64")
    others = [
        fit(kind, sp.csr_matrix(X), labels),
        fit(kind, X.astype(np.float32), labels, tolerance=1e-4),
        fit(kind, matrix(X), labels, kernel=KernelSpec.make("precomputed")),
        fit(kind, X, labels, precision="float32", tolerance=1e-4),
    ]
    assert [o.info.layout for o in others] == ["csr", "dense", "precomputed", "dense"]
    for other in others:
        assert other.info.status == "converged"
        assert other.info.objective == pytest.approx(expected.info.objective, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [RBF, LINEAR], ids=["rbf", "linear"])
def test_threads_do_not_change_a_bit(kind, kernel):
    X, labels = blobs(5000, 5, seed=6)  # enough for every loop to be shared out
    one, two = (
        fit(kind, X, labels, kernel=kernel, threads=t, bias=True, max_iterations=4000, chunk=500)
        for t in (1, 3)
    )
    assert one.info.iterations == two.info.iterations > 0
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.bias, two.bias)
    assert one.info.objective == two.info.objective


@pytest.mark.parametrize("kind", KINDS)
def test_a_cost_that_float32_cannot_serve_goes_on_in_float64(kind):
    X, labels = blobs(60, 3, seed=7, d=2, spread=0.3)
    hard = {"cost": 1e5, "tolerance": 1e-5, "kernel": KernelSpec.make("rbf", gamma=5.0)}
    found = fit(kind, X, labels, **hard)
    assert found.info.status == "converged"
    assert found.info.kkt_gap <= 1e-5
    refined = found.info.refinements > 0 or found.info.changed_precision
    assert refined
    if found.info.changed_precision:
        assert any("float64" in w for w in found.info.warnings)


@pytest.mark.parametrize("kind", KINDS)
def test_an_ill_conditioned_problem_is_helped_by_steps_of_all_free_rows(kind):
    """Points on a line, near neighbours of different classes, large costs."""
    rng = np.random.default_rng(15)
    X = np.sort(rng.normal(size=(60, 1)), axis=0)
    labels = rng.integers(0, 3, size=60)
    kernel = KernelSpec.make("laplacian", gamma=0.4)
    found = fit(kind, X, labels, kernel=kernel, cost=60.0, tolerance=1e-7, max_iterations=200000)
    judged = oracle.judge(
        kind, matrix(X, kernel), labels, np.full(60, 60.0), found.coef, found.bias
    )
    assert found.info.status == "converged"
    assert found.info.reductions > 0
    assert judged.kkt_gap <= 1.001e-7
    assert judged.duality_gap <= 1e-7 * judged.objective


@pytest.mark.parametrize("kind", KINDS)
def test_polishing_reaches_rounding_accuracy(kind):
    X, labels = blobs(40, 3, seed=9)
    found = fit(kind, X, labels, tolerance=1e-2, polish=True)
    assert found.info.status == "converged"
    assert found.info.kkt_gap <= 1e-10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [False, True])
def test_a_warm_start_is_recognised_as_optimal(kind, bias):
    X, labels = blobs(100, 4, seed=10)
    cold = fit(kind, X, labels, bias=bias, tolerance=1e-5)
    warm = fit(kind, X, labels, bias=bias, start=cold, tolerance=1.2e-5)
    assert warm.info.iterations == 0
    np.testing.assert_array_equal(warm.coef, cold.coef)
    np.testing.assert_allclose(warm.bias, cold.bias, atol=1e-12)
    other = fit(kind, X, labels, bias=bias, cost=0.5, start=cold, tolerance=1e-7)
    again = fit(kind, X, labels, bias=bias, cost=0.5, tolerance=1e-7)
    assert other.info.objective == pytest.approx(again.info.objective, rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_limits_keep_a_feasible_point(kind):
    X, labels = blobs(200, 4, seed=11)
    full = fit(kind, X, labels)
    runs = {
        "max_iterations": fit(kind, X, labels, max_iterations=7),
        "max_seconds": fit(kind, X, labels, max_seconds=1e-9, chunk=4),
        "interrupted": fit(kind, X, labels, chunk=4, progress=lambda seen: seen.round >= 3),
    }
    assert runs["max_iterations"].info.iterations == 7
    assert runs["interrupted"].info.rounds == 3
    for status, found in runs.items():
        assert found.info.status == status
        judged = oracle.judge(kind, matrix(X), labels, np.ones(200), found.coef, found.bias)
        assert judged.infeasibility <= 1e-12
        assert found.info.objective == pytest.approx(judged.objective, rel=1e-10)
        assert 0 < found.info.objective < full.info.objective
        assert found.info.objective + found.info.duality_gap >= full.info.objective


def test_ctrl_c_keeps_what_is_done():
    X, labels = blobs(100, 3, seed=12)
    seen = []

    def progress(state):
        seen.append((state.n_sv, state.beta().shape))
        if state.round == 2:
            raise KeyboardInterrupt

    found = fit("crammer-singer", X, labels, chunk=5, progress=progress)
    assert found.info.status == "interrupted"
    assert seen[-1] == (found.info.n_sv, (3, 100))


@pytest.mark.parametrize("kind", KINDS)
def test_zero_vectors_duplicates_and_absent_classes(kind):
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    labels = np.array([0, 1, 0, 2, 2])
    found = fit(kind, X, labels, kernel=LINEAR, n_classes=5, cost=2.0)
    judged = oracle.judge(kind, X @ X.T, labels, np.full(5, 2.0), found.coef, found.bias)
    assert found.info.status == "converged"
    assert judged.duality_gap <= 1e-5
    nothing = fit(kind, np.zeros((3, 2)), np.array([0, 1, 2]), kernel=LINEAR)
    losses = {"crammer-singer": 1.0, "weston-watkins": 4.0}[kind]
    assert nothing.info.objective == pytest.approx(3 * losses)
    alone = fit(kind, X, np.zeros(5, dtype=int), n_classes=2)
    assert alone.info.status == "converged"
    free = fit(kind, X, labels, cost=0.0)
    assert not free.coef.any()
    assert free.info.status == "converged"
    assert free.info.objective == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_an_indefinite_kernel_ends_with_an_honest_certificate(kind):
    X, labels = blobs(60, 3, seed=13)
    kernel = KernelSpec.make("sigmoid", gamma=1.0, coef0=-1.0)
    found = fit(kind, X, labels, kernel=kernel, tolerance=1e-4, max_iterations=20000)
    judged = oracle.judge(kind, matrix(X, kernel), labels, np.ones(60), found.coef, found.bias)
    assert found.info.kkt_gap == pytest.approx(judged.kkt_gap, rel=1e-6, abs=1e-9)
    assert (found.info.status == "converged") == (judged.kkt_gap <= 1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_values_that_overflow_are_no_success(kind):
    labels = np.arange(3)
    huge = fit(kind, 1e200 * np.eye(3), labels, kernel=LINEAR)
    K = np.eye(3) + np.where(np.eye(3) > 0, 0.0, np.inf)
    infinite = fit(kind, K, labels, kernel=KernelSpec.make("precomputed"))
    for found in (huge, infinite):
        assert found.info.status == "stalled"
        assert found.info.kkt_gap >= 1.0
        assert any("no step improves" in w for w in found.info.warnings)


def test_a_chunk_keeps_to_the_memory_budget():
    X, labels = blobs(300, 3, seed=14)
    found = fit("crammer-singer", X, labels, cache_mib=0.01, chunk=200, tolerance=1e-3)
    assert found.info.chunk == int(np.sqrt(0.01 * 2**20 / 4))
    assert any("cut" in w for w in found.info.warnings)
    assert found.info.status == "converged"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "one-for-all"}, "choose one of crammer-singer, weston-watkins"),
        ({"n_classes": 1}, "at least 2"),
        ({"labels": np.array([0, 1, 3])}, "label of row 3 is 3"),
        ({"labels": np.array([0, 1])}, "labels have shape"),
        ({"labels": np.array([0.0, 1.0, 2.0])}, "class indices"),
        ({"costs": np.array([1.0, -1.0, 1.0])}, "cost of row 2"),
        ({"costs": np.array([1.0, np.nan, 1.0])}, "cost of row 2"),
        ({"start": np.zeros((2, 3))}, "the start has shape"),
        ({"start": np.full((3, 3), np.nan)}, "not finite"),
    ],
)
def test_refusals(change, message):
    arguments = {
        "kind": "crammer-singer", "X": np.eye(3), "labels": np.arange(3), "n_classes": 3,
        "costs": np.ones(3), "kernel": RBF, "settings": SolverSettings(), **change,
    }  # fmt: skip
    with pytest.raises(SettingsError, match=message):
        solve_single_machine(**arguments)


def test_no_rows_are_refused():
    with pytest.raises(DataError, match="no rows"):
        fit("crammer-singer", np.zeros((0, 2)), np.zeros(0, dtype=int), n_classes=2)


@pytest.mark.data
@pytest.mark.parametrize(
    ("kind", "cost", "bias", "percent"),
    [
        ("crammer-singer", 1.0, False, 8.1),
        ("weston-watkins", 2.0, False, 8.05),
        ("weston-watkins", 2.0, True, 7.8),
    ],
)
def test_satimage(kind, cost, bias, percent):
    """Rifkin (2002) gives 7.85% for one-vs-all at σ = 0.25 and C = 2, and quotes 8.1% of Crammer.

    C = 1 here is C = 2 of a machine with margins ±1.
    """
    folder = os.environ.get("KFU_DATA")
    if not folder:
        pytest.skip("KFU_DATA is not set")
    from kfu.io import read_dataset

    train = read_dataset(Path(folder) / "satimage.tr.gz")
    test = read_dataset(Path(folder) / "satimage.t.gz")
    classes, labels = np.unique(train.y, return_inverse=True)
    X, Z = (np.asarray(sp.csr_matrix(part.X).todense()) / 100.0 for part in (train, test))
    kernel = KernelSpec.make("rbf", sigma=0.25)
    found = fit(kind, X, labels, kernel=kernel, cost=cost, bias=bias, tolerance=1e-3)
    f = Gram(X, kernel, precision="float64").decision(None, found.coef.T, Z) + found.bias
    error = 100.0 * np.mean(classes[f.argmax(axis=1)] != test.y)
    assert found.info.status == "converged"
    assert error == pytest.approx(percent, abs=0.15)
