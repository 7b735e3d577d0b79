"""The linear solver against a general QP optimiser, the kernel solver and its own certificate."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.solvers import DualProblem, SolverSettings, solve
from kfu.solvers import linear as linear_solver
from kfu.solvers.linear import solve_linear, suits_linear
from tests.oracles import linear_dual as oracle

LINEAR = KernelSpec.make("linear")
METHODS = ["newton", "descent"]


@pytest.fixture(params=METHODS)
def method(request, monkeypatch):
    """Both methods, whatever the data would get: Newton steps alone, or epochs first."""
    monkeypatch.setattr(linear_solver, "CHEAP_STEP", np.inf if request.param == "newton" else 0.0)
    return request.param


def blobs(n, d, seed, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * np.outer(y, np.ones(d)) / np.sqrt(d), y


def svc(y, cost, *, bias=True, ridge=None):
    n = len(y)
    upper = np.broadcast_to(np.asarray(cost, dtype=float), n).copy()
    return DualProblem(y, np.full(n, -1.0), np.zeros(n), upper, np.arange(n), ridge, bias)


def judged(X, problem, solution, start=None):
    """Recompute the figures of the certificate from the matrix written out."""
    signed = problem.signed(start)
    Q = oracle.matrix(X[problem.points], signed["ridge"])
    lower, upper, beta = signed["lower"], signed["upper"], solution.beta
    found = oracle.gap(Q, signed["linear"], lower, upper, beta, problem.has_equality)
    rounding = 1e-15 * np.abs(Q).max() * np.abs(beta).sum()
    assert solution.info.kkt_gap == pytest.approx(found, abs=1e-9 + rounding)
    expected = oracle.objective(Q, signed["linear"], beta)
    assert solution.info.objective == pytest.approx(expected, rel=1e-9, abs=1e-12 + rounding)
    assert np.all(beta >= lower)
    assert np.all(beta <= upper)
    if problem.has_equality:
        assert abs(beta.sum() - signed["beta"].sum()) <= 1e-13 * (1 + np.abs(beta).sum())
    assert np.array_equal(solution.alpha, problem.signs * beta)


@pytest.mark.parametrize("ridge", [None, "even", "uneven"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_agrees_with_a_general_qp_optimiser(method, cost, bias, ridge):
    X, y = blobs(26, 3, 4)
    ridges = {"even": np.full(26, 0.3), "uneven": np.linspace(0.0, 2.0, 26)}
    problem = svc(y, cost, bias=bias, ridge=ridges.get(ridge))
    signed = problem.signed(None)
    Q = oracle.matrix(X, signed["ridge"])
    lower, upper = signed["lower"], signed["upper"]
    best = oracle.solve(Q, signed["linear"], lower, upper, 0.0 if bias else None)
    expected = oracle.objective(Q, signed["linear"], best)
    solution = solve_linear(problem, X, SolverSettings(tolerance=1e-7))
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(expected, rel=1e-6)
    assert solution.info.objective >= expected - 1e-8 * (1 + abs(expected))
    assert solution.info.kkt_gap <= 1e-7
    judged(X, problem, solution)


CASES = {
    "plain": lambda X, y: (X, svc(y, 1.0)),
    "no bias": lambda X, y: (X, svc(y, 1.0, bias=False)),
    "small cost": lambda X, y: (X, svc(y, 1e-3)),
    "large cost": lambda X, y: (X, svc(y, 1e3)),
    "squared slack": lambda X, y: (X, svc(y, np.inf, ridge=np.full(len(y), 0.5))),
    "nearly hard": lambda X, y: (X, svc(y, np.inf, bias=False, ridge=np.full(len(y), 1e-3))),
    "weights": lambda X, y: (X, svc(y, np.arange(len(y)) % 4 * 0.5)),
    "duplicates": lambda X, y: (np.repeat(X[::4], 4, axis=0), svc(np.repeat(y[:40], 4), 1.0)),
    "constant feature": lambda X, y: (np.c_[X, np.full(len(y), 30.0)], svc(y, 1.0)),
    "zero rows": lambda X, y: (X * (np.arange(len(y)) % 3 > 0)[:, None], svc(y, 1.0)),
    "zero rows, no bias": lambda X, y: (X * (y > 0)[:, None], svc(y, 1.0, bias=False)),
    "unscaled": lambda X, y: (X * 10.0 ** np.arange(-2, X.shape[1] - 2), svc(y, 1.0)),
    "shifted": lambda X, y: (X + 2000.0, svc(y, 1.0)),
    "unbalanced": lambda X, y: (X, svc(np.where(np.arange(len(y)) < 5, 1.0, -1.0), 2.0)),
}


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_kernel_solver(method, name, tolerance):
    X, problem = CASES[name](*blobs(160, 5, 7))
    settings = SolverSettings(tolerance=tolerance)
    limited = SolverSettings(
        solver="svmfu", tolerance=1e-7, precision="float64", max_iterations=200000
    )
    reference = solve(problem, X, LINEAR, limited)
    solution = solve_linear(problem, X, settings)
    assert solution.info.status == "converged"
    assert solution.info.kkt_gap <= tolerance
    certain = reference.info.duality_gap  # the reference may stop early where the data are unscaled
    slack = solution.info.duality_gap + 1e-9 * abs(reference.info.objective)
    assert solution.info.objective <= reference.info.objective + certain + slack
    assert solution.info.objective >= reference.info.objective - slack
    if tolerance == 1e-6 and reference.info.status == "converged":
        expected = reference.info.objective
        assert solution.info.objective == pytest.approx(expected, rel=1e-6)
    judged(X, problem, solution)


def test_a_hard_margin(method):
    X, y = blobs(80, 4, 1, shift=6.0)
    reference = solve(svc(y, 1e6), X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-6))
    solution = solve_linear(svc(y, np.inf), X, SolverSettings(tolerance=1e-6))
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    assert solution.info.n_sv < 20


def test_a_hard_margin_that_does_not_exist_ends_with_a_warning(monkeypatch):
    monkeypatch.setattr(linear_solver, "MOST_NEWTON_STEPS", 200)
    X, y = blobs(60, 2, 1, shift=0.1)
    solution = solve_linear(svc(y, np.inf), X, SolverSettings())
    assert solution.info.status in ("stalled", "max_iterations")
    assert len(solution.info.warnings) == 1


@pytest.mark.parametrize("layout", ["dense32", "fortran", "csr64", "csr32", "csr long", "csc"])
def test_layouts_agree(method, layout):
    X, y = blobs(300, 6, 2)
    X = np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32).astype(np.float64)
    reference = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-6))
    data = X.astype(np.float32) if layout.endswith("32") else X
    if layout.startswith("csr"):
        data = sp.csr_matrix(data)
    if layout == "csr long":
        data.indices, data.indptr = data.indices.astype(np.int64), data.indptr.astype(np.int64)
    if layout == "fortran":
        data = np.asfortranarray(X)
    if layout == "csc":
        data = sp.csc_matrix(X)
    solution = solve_linear(svc(y, 1.0), data, SolverSettings(tolerance=1e-6))
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-9)
    assert solution.info.layout == ("csr" if layout.startswith("cs") else "dense")
    assert solution.info.precision == "float64"


def test_entries_of_csr_given_twice_are_added(method):
    X, y = blobs(120, 4, 2)
    rows = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2), rows.shape
    )
    expected = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-6)).info.objective
    found = solve_linear(svc(y, 1.0), twice, SolverSettings(tolerance=1e-6)).info.objective
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_threads_do_not_change_a_bit(method, layout):
    X, y = blobs(6000, 8, 11)
    data = sp.csr_matrix(X) if layout == "csr" else X
    settings = SolverSettings(threads=1, max_iterations=20000)
    one = solve_linear(svc(y, 1.0), data, settings)
    two = solve_linear(svc(y, 1.0), data, replace(settings, threads=2))
    assert np.array_equal(one.beta, two.beta)
    assert one.info.objective == two.info.objective


def test_more_features_than_rows(method):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 400)), np.where(np.arange(90) % 2 == 0, 1.0, -1.0)
    problem = svc(y, 1.0)
    reference = solve(problem, X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-7))
    for data in (X, X.astype(np.float32), sp.csr_matrix(X)):
        solution = solve_linear(problem, data, SolverSettings(tolerance=1e-6))
        assert solution.info.status == "converged"
        assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("kind", ["svc", "no bias", "squared slack", "kink"])
def test_coordinate_descent_alone_is_enough_for_texts(kind, shrinking):
    rng = np.random.default_rng(1)
    X = sp.random(600, 2000, density=0.01, format="csr", random_state=rng)
    X.data += 0.1
    y = np.where(X @ rng.normal(size=2000) > 0, 1.0, -1.0)
    problem = {
        "svc": svc(y, 1.0),
        "no bias": svc(y, 1.0, bias=False),
        "squared slack": svc(y, np.inf, ridge=np.full(600, 0.5)),
        "kink": DualProblem(
            np.ones(600),
            -y,
            np.full(600, -1.0),
            np.ones(600),
            np.arange(600),
            None,
            True,
            0.3 * y**2,
        ),
    }[kind]
    reference = solve(problem, X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-6))
    settings = SolverSettings(tolerance=1e-4, shrinking=shrinking)
    solution = solve_linear(problem, X, settings)
    assert solution.info.status == "converged"
    assert solution.info.refinements == 0  # no Newton steps
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    assert (solution.info.shrinks > 0) == shrinking


def test_the_order_of_an_epoch_is_a_permutation():
    from kfu._linear import Descent, LinearProblem

    # Orthogonal rows: every variable reaches its minimum at its one visit, in whatever order.
    problem = svc(np.ones(300), 100.0, bias=False)
    rows = LinearProblem(np.diag(np.linspace(1.0, 2.0, 300)), problem.signed(None), 1)
    descent = Descent(rows, np.zeros(300), 0.01, True)
    epoch = descent.epoch(10**9)
    assert epoch["visits"] == epoch["steps"] == 300
    assert descent.beta() == pytest.approx(np.linspace(1.0, 2.0, 300) ** -2, rel=1e-12)
    assert descent.epoch(10**9)["gap"] < 1e-12


def test_conjugate_gradients_reach_the_same_solution(monkeypatch):
    from kfu.solvers import linear_newton

    X, y = blobs(400, 30, 5)
    expected = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-5)).info.objective
    monkeypatch.setattr(linear_newton, "MOST_DIRECT", 0)
    solution = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-5))
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(expected, rel=1e-6)


def test_two_variables_may_share_a_row(method):
    # ε-insensitive regression: α and α* of a row, signs + and −, linear ε ∓ y.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    target = X @ [1.0, -2.0, 0.5] + 0.3 + 0.1 * rng.normal(size=60)
    signs = np.r_[np.ones(60), -np.ones(60)]
    linear = np.r_[0.05 - target, 0.05 + target]
    points = np.tile(np.arange(60), 2)
    problem = DualProblem(signs, linear, np.zeros(120), np.full(120, 5.0), points)
    reference = solve(problem, X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-7))
    solution = solve_linear(problem, X, SolverSettings(tolerance=1e-6))
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    assert solution.bias == pytest.approx(reference.bias, abs=1e-5)
    judged(X, problem, solution)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
def test_a_kink_is_two_variables_in_one(method, cost, bias):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    X[::9] = 0.0
    target = X @ [1.0, -2.0, 0.5] + 0.3 + 0.2 * rng.normal(size=80)
    n, costs = len(X), np.full(len(X), cost)
    kink = DualProblem(
        np.ones(n), -target, -costs, costs, np.arange(n), None, bias, np.full(n, 0.1)
    )
    twice = DualProblem(
        np.r_[np.ones(n), -np.ones(n)],
        np.r_[0.1 - target, 0.1 + target],
        np.zeros(2 * n),
        np.r_[costs, costs],
        np.tile(np.arange(n), 2),
        has_equality=bias,
    )
    settings = SolverSettings(tolerance=1e-6)
    solution, other = solve_linear(kink, X, settings), solve_linear(twice, X, settings)
    reference = solve(kink, X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-7))
    assert solution.info.status == "converged"
    assert solution.info.kkt_gap <= 1e-6
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    assert other.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    assert 0 < solution.info.n_usv < solution.info.n_sv
    if bias:
        assert solution.beta.sum() == pytest.approx(0.0, abs=1e-13 * (1 + n * cost))


def test_two_groups_are_refused():
    X, y = blobs(20, 2, 1)
    problem = replace(svc(y, 1.0), group=(y > 0).astype(int))
    assert not suits_linear(problem, X, LINEAR)
    with pytest.raises(SettingsError, match="group"):
        solve_linear(problem, X, SolverSettings())


def test_a_start_sets_the_sum(method):
    # One-class: Σα = νn, reached from a start that is feasible and nothing else.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 3)) + 2.0
    start = np.r_[np.ones(20), np.zeros(80)]
    problem = DualProblem(np.ones(100), np.zeros(100), np.zeros(100), np.ones(100), np.arange(100))
    settings = SolverSettings(tolerance=1e-6)
    solution = solve_linear(problem, X, settings, start=start)
    reference = solve(problem, X, LINEAR, replace(settings, solver="svmfu"), start=start)
    assert solution.beta.sum() == pytest.approx(20.0, rel=1e-14)
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    judged(X, problem, solution, start)


def test_a_solution_is_a_start_that_needs_no_step(method):
    X, y = blobs(200, 4, 8)
    first = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-5))
    again = solve_linear(svc(y, 1.0), X, SolverSettings(tolerance=1e-4), start=first.beta)
    assert again.info.iterations == 0
    assert np.array_equal(again.beta, first.beta)


def test_one_class_alone_has_nothing_to_move():
    X, _ = blobs(20, 2, 1)
    solution = solve_linear(svc(np.ones(20), 1.0), X, SolverSettings())
    assert solution.info.status == "converged"
    assert not solution.beta.any()


@pytest.mark.parametrize("steps", [1, 7, 300])
def test_limits_leave_a_feasible_solution(method, steps):
    X, y = blobs(500, 5, 9, shift=0.2)
    problem = svc(y, 10.0)
    solution = solve_linear(problem, X, SolverSettings(tolerance=1e-9, max_iterations=steps))
    assert solution.info.iterations <= steps
    if steps < 10:
        assert solution.info.status == "max_iterations"
    assert solution.info.objective > 0.0 or steps == 1
    judged(X, problem, solution)
    hurried = solve_linear(problem, X, SolverSettings(tolerance=1e-9, max_seconds=1e-9))
    assert hurried.info.status == "max_seconds"
    judged(X, problem, hurried)


def test_progress_sees_a_feasible_solution_and_can_stop(method):
    X, y = blobs(300, 5, 9)
    problem = svc(y, 1.0)
    seen = []

    def watch(progress):
        beta = progress.beta()
        assert abs(beta.sum()) <= 1e-12 * (1 + np.abs(beta).sum())
        seen.append((progress.round, progress.iterations, progress.gap))
        return len(seen) == 3

    solution = solve_linear(problem, X, SolverSettings(tolerance=1e-9), progress=watch)
    assert solution.info.status == "interrupted"
    assert len(seen) == 3
    assert [s[0] for s in seen] == [1, 2, 3]
    judged(X, problem, solution)


def test_an_interrupt_returns_the_solution_so_far(method):
    X, y = blobs(300, 5, 9)
    problem = svc(y, 1.0)
    calls = []

    def interrupt(progress):
        calls.append(progress.round)
        if len(calls) == 2:
            raise KeyboardInterrupt

    solution = solve_linear(problem, X, SolverSettings(tolerance=1e-9), progress=interrupt)
    assert solution.info.status == "interrupted"
    assert solution.info.objective > 0.0
    judged(X, problem, solution)


def test_polishing_reaches_rounding_accuracy():
    X, y = blobs(100, 4, 3)
    solution = solve_linear(svc(y, 1.0), X, SolverSettings(polish=True))
    assert solution.info.status == "converged"
    assert solution.info.kkt_gap < 1e-10


def test_features_that_are_not_finite_are_refused():
    X, y = blobs(20, 2, 1)
    X[3, 1] = np.nan
    with pytest.raises(DataError, match="not finite"):
        solve_linear(svc(y, 1.0), X, SolverSettings())


def test_times_add_up_and_have_the_phases_of_the_kernel_solver():
    X, y = blobs(300, 5, 9)
    reference = solve(svc(y, 1.0), X, LINEAR, SolverSettings(solver="svmfu"))
    info = solve_linear(svc(y, 1.0), X, SolverSettings()).info
    assert list(info.seconds) == list(reference.info.seconds)
    assert all(value >= 0.0 for value in info.seconds.values())
    assert info.to_dict().keys() == reference.info.to_dict().keys()


def test_it_suits_the_plain_linear_kernel_alone():
    _, y = blobs(5000, 1, 0)
    X = np.zeros((5000, 10))
    assert suits_linear(svc(y, 1.0), X, LINEAR)
    assert not suits_linear(svc(y[:20], 1.0), X, LINEAR)
    assert suits_linear(svc(y[:600], 1.0), X, LINEAR)
    assert not suits_linear(svc(y[:600], 1.0), np.zeros((600, 300)), LINEAR)
    assert suits_linear(svc(y[:600], 1.0), sp.csr_matrix((600, 300)), LINEAR)
    assert not suits_linear(svc(y, 1.0), X, KernelSpec.make("linear", weight=2.0))
    assert not suits_linear(svc(y, 1.0), X, KernelSpec.make("rbf", gamma=1.0))
    combined = KernelSpec.combine("sum", [LINEAR, KernelSpec.make("rbf", gamma=1.0)])
    assert not suits_linear(svc(y, 1.0), X, combined)


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA is not set")
@pytest.mark.parametrize("name", ["a1a.tr.gz", "heart_scale.svm.gz", "reuters-grain.tr.gz"])
@pytest.mark.parametrize("cost", [1e-3, 1.0])
@pytest.mark.parametrize("bias", [True, False])
def test_real_data(name, cost, bias):
    from kfu.io import read_dataset

    data = read_dataset(os.path.join(os.environ["KFU_DATA"], name))
    problem = svc(np.where(data.y > 0, 1.0, -1.0), cost, bias=bias)
    reference = solve(problem, data.X, LINEAR, SolverSettings(solver="svmfu", tolerance=1e-5))
    solution = solve_linear(problem, data.X, SolverSettings(tolerance=1e-5))
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-6)
    judged(data.X, problem, solution)
