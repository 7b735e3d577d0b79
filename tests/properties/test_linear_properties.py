"""What must not change a linear machine, and what must change it in a known way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.kernels import KernelSpec
from kfu.solvers import DualProblem, SolverSettings, solve
from kfu.solvers import linear as linear_solver
from kfu.solvers.linear import LinearRun, solve_linear
from tests.oracles import linear_dual as oracle

TOLERANCE = 1e-6
SETTINGS = SolverSettings(tolerance=TOLERANCE, threads=1)


@st.composite
def problems(draw):
    """A small problem of any kind: weights, ridge, equality, repeated and empty rows, scales."""
    n = draw(st.integers(4, 60))
    d = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from([0, 1, 6])))
    X[rng.uniform(size=X.shape) < draw(st.sampled_from([0.0, 0.6]))] = 0.0
    X *= draw(st.sampled_from([0.1, 1.0, 30.0]))
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    costs = np.full(n, draw(st.sampled_from([0.05, 1.0, 20.0])))
    if draw(st.booleans()):
        costs *= rng.integers(0, 3, size=n)
    ridge = draw(st.sampled_from([None, 0.0, 0.5]))
    ridges = None if ridge is None else np.full(n, ridge) * rng.uniform(size=n)
    bias = draw(st.booleans())
    problem = DualProblem(y, np.full(n, -1.0), np.zeros(n), costs, np.arange(n), ridges, bias)
    return X, problem


def with_method(name, X, problem, **options):
    """The solution by Newton steps alone, or by epochs first, whatever the data would get."""
    before = linear_solver.CHEAP_STEP
    linear_solver.CHEAP_STEP = np.inf if name == "newton" else 0.0
    try:
        return solve_linear(problem, X, SETTINGS, **options)
    finally:
        linear_solver.CHEAP_STEP = before


def assert_same_objective(solution, expected):
    assert solution.info.objective == pytest.approx(expected, rel=1e-6, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["newton", "descent"]), st.booleans())
def test_every_problem_is_solved_and_certified(case, method, sparse):
    X, problem = case
    solution = with_method(method, sp.csr_matrix(X) if sparse else X, problem)
    assert solution.info.status == "converged"
    assert solution.info.kkt_gap <= TOLERANCE
    signed = problem.signed(None)
    Q = oracle.matrix(X, signed["ridge"])
    lower, upper, beta = signed["lower"], signed["upper"], solution.beta
    found = oracle.gap(Q, signed["linear"], lower, upper, beta, problem.has_equality)
    assert found <= TOLERANCE + 1e-14 * np.abs(Q).max() * np.abs(beta).sum()
    assert np.all((beta >= lower) & (beta <= upper))
    if problem.has_equality:
        assert abs(beta.sum()) <= 1e-13 * (1 + np.abs(beta).sum())
    # Any other solution is no better than the duality gap says.
    kernel = KernelSpec.make("linear")
    other = solve(
        problem, X, kernel, SolverSettings(solver="svmfu", tolerance=1e-4, max_iterations=20000)
    )
    slack = 1e-9 * (1 + abs(other.info.objective))
    assert other.info.objective <= solution.info.objective + solution.info.duality_gap + slack


@settings(max_examples=25, deadline=None)
@given(problems(), st.sampled_from(["newton", "descent"]), st.integers(0, 2**32 - 1))
def test_order_of_rows_and_rotation_do_not_matter(case, method, seed):
    X, problem = case
    expected = with_method(method, X, problem).info.objective
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    shuffled = DualProblem(
        problem.signs[order],
        problem.linear[order],
        problem.lower[order],
        problem.upper[order],
        problem.points,
        None if problem.ridge is None else problem.ridge[order],
        problem.has_equality,
    )
    rotation, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    assert_same_objective(with_method(method, X[order], shuffled), expected)
    assert_same_objective(with_method(method, X @ rotation, problem), expected)


@settings(max_examples=25, deadline=None)
@given(problems(), st.sampled_from(["newton", "descent"]))
def test_rows_by_number_are_rows_by_copy(case, method):
    X, problem = case
    rows = np.arange(len(X))[::-1] // 2
    chosen = DualProblem(
        problem.signs,
        problem.linear,
        problem.lower,
        problem.upper,
        rows,
        problem.ridge,
        problem.has_equality,
    )
    expected = with_method(method, X[rows], problem).info.objective
    assert_same_objective(with_method(method, X, chosen), expected)


@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1), st.sampled_from([1e-12, 1e-3, 1.0, 100.0]))
def test_balancing_gives_a_feasible_point_near_by(case, seed, size):
    X, problem = case
    run = LinearRun(problem, X, SETTINGS, None)
    rng = np.random.default_rng(seed)
    beta = np.clip(size * rng.normal(size=len(X)), run.lower, run.upper)
    balanced = run.balanced(beta)
    assert np.all((balanced >= run.lower) & (balanced <= run.upper))
    if not problem.has_equality:
        assert balanced is beta
        return
    assert abs(balanced.sum()) <= 1e-14 * (1e-300 + np.abs(beta).sum() * len(X))
    assert np.abs(balanced - beta).sum() <= 1.01 * abs(beta.sum()) + 1e-14 * np.abs(beta).sum()
