"""The dual solver against a general QP optimiser and against its own certificate, recomputed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.kernels import KernelSpec
from kfu.solvers import SOLVERS, DualProblem, SolverSettings, solve
from tests.oracles.qp import judge, solve_dual


def blobs(n, d, seed, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * np.outer(y, np.ones(d)) / np.sqrt(d), y


def rbf(X, gamma):
    squares = (X * X).sum(axis=1)
    return np.exp(-gamma * np.maximum(squares[:, None] + squares[None, :] - 2 * X @ X.T, 0.0))


def svc_problem(y, upper, rows, bias):
    n = len(y)
    return DualProblem(
        signs=y,
        linear=np.full(n, -1.0),
        lower=np.zeros(n),
        upper=upper,
        points=rows,
        has_equality=bias,
    )


def run(X, y, C, *, gamma=0.5, bias=True, start=None, kernel=None, **settings):
    upper = np.broadcast_to(np.asarray(C, dtype=float), y.shape).copy()
    problem = svc_problem(y, upper, np.arange(len(y)), bias)
    spec = kernel or KernelSpec.make("rbf", gamma=gamma)
    return solve(problem, X, spec, SolverSettings(**settings), start=start), upper


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_a_general_qp_optimiser(seed, C, bias):
    X, y = blobs(30, 3, seed)
    K = rbf(X, 0.5)
    upper = np.full(30, C)
    expected = judge(K, y, upper, solve_dual(K, y, upper, bias=bias), 0.0).objective
    solution, _ = run(X, y, C, bias=bias, tolerance=1e-6)
    assert solution.info.objective == pytest.approx(expected, rel=2e-5, abs=1e-6)
    assert solution.info.objective >= expected - 1e-5 * (1 + abs(expected))


def test_agrees_with_the_optimiser_on_unequal_costs():
    X, y = blobs(24, 2, 5)
    upper = np.random.default_rng(0).uniform(0.0, 3.0, size=24)
    upper[3] = 0.0
    K = rbf(X, 0.5)
    expected = judge(K, y, upper, solve_dual(K, y, upper), 0.0).objective
    solution, _ = run(X, y, upper, tolerance=1e-6)
    assert solution.info.objective == pytest.approx(expected, rel=2e-5)
    assert solution.alpha[3] == 0.0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_certificate_is_true(solver, bias):
    X, y = blobs(300, 4, 3)
    K = rbf(X, 0.5)
    solution, upper = run(X, y, 2.0, bias=bias, solver=solver, tolerance=1e-4)
    info = solution.info
    truth = judge(K, y, upper, solution.alpha, solution.bias, has_bias=bias)
    assert info.status == "converged"
    assert info.objective == pytest.approx(truth.objective, rel=1e-10)
    assert info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert info.kkt_violation == pytest.approx(truth.kkt_violation, abs=1e-9)
    assert info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-8)
    assert info.kkt_gap <= 1e-4
    if bias:
        assert abs(truth.equality) < 1e-10
    assert np.all(solution.alpha >= 0)
    assert np.all(solution.alpha <= upper)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_certificate_is_true_over_several_blocks(layout):
    X, y = blobs(2500, 4, 3, shift=0.6)
    data = sp.csr_matrix(X) if layout == "csr" else X
    solution, upper = run(data, y, 0.5)
    info = solution.info
    truth = judge(rbf(X, 0.5), y, upper, solution.alpha, solution.bias)
    assert info.n_sv > 1100
    assert info.verification_evaluations < info.n_sv * len(y)
    assert info.objective == pytest.approx(truth.objective, rel=1e-10)
    assert info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert info.kkt_violation == pytest.approx(truth.kkt_violation, abs=1e-9)
    assert info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("chunk", [0, 2, 5, 64, 400])
@pytest.mark.parametrize("rows", [0, 1, 50, 400])
def test_any_chunk_and_cache_gives_the_same_solution(solver, chunk, rows):
    X, y = blobs(400, 5, 11)
    reference, _ = run(X, y, 1.0, tolerance=1e-5, chunk=400)
    mib = rows * 400 * 4 / 2**20
    solution, _ = run(X, y, 1.0, tolerance=1e-5, solver=solver, chunk=chunk, cache_mib=mib)
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-7)
    assert solution.info.kkt_gap <= 1e-5
    assert solution.bias == pytest.approx(reference.bias, abs=1e-4)


@pytest.mark.parametrize("precision", ["auto", "float32", "float64"])
@pytest.mark.parametrize("layout", ["dense64", "dense32", "csr64", "csr32"])
@pytest.mark.parametrize("selection", ["first", "second"])
def test_layouts_precisions_and_selections_agree(precision, layout, selection):
    X, y = blobs(250, 6, 2)
    X = np.where(np.abs(X) < 0.4, 0.0, X).astype(np.float32).astype(np.float64)
    reference, _ = run(X, y, 1.0, precision="float64", tolerance=1e-5)
    data = X.astype(np.float32) if layout.endswith("32") else X
    data = sp.csr_matrix(data) if layout.startswith("csr") else data
    solution, _ = run(data, y, 1.0, precision=precision, selection=selection, tolerance=1e-5)
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-7)
    assert solution.info.layout == ("csr" if layout.startswith("csr") else "dense")


def test_threads_do_not_change_a_bit():
    X, y = blobs(3000, 10, 4, shift=0.7)
    one, _ = run(X, y, 1.0, threads=1, chunk=256)
    two, _ = run(X, y, 1.0, threads=2, chunk=256)
    assert np.array_equal(one.beta, two.beta)
    assert one.bias == two.bias


def test_shrinking_ends_with_a_full_check():
    X, y = blobs(3000, 3, 8, shift=2.5)
    shrunk, upper = run(X, y, 1.0, chunk=60, tolerance=1e-4)
    full, _ = run(X, y, 1.0, chunk=60, tolerance=1e-4, shrinking=False)
    assert shrunk.info.shrinks > 0
    assert full.info.shrinks == 0
    assert shrunk.info.objective == pytest.approx(full.info.objective, rel=1e-7)
    truth = judge(rbf(X, 0.5), y, upper, shrunk.alpha, shrunk.bias)
    assert truth.kkt_gap <= 1e-4


def test_kept_rows_have_the_columns_that_left():
    """Rows of unbounded variables follow the order of shrinking: F of those that left is theirs."""
    X, y = blobs(4000, 60, 8, shift=1.0)
    settings = {"chunk": 64, "tolerance": 3e-5, "kernel": KernelSpec.make("rbf", gamma=0.005)}
    shrunk, upper = run(X, y, 1.0, **settings)
    assert shrunk.info.shrinks > 1
    assert shrunk.info.refinements == 0  # what a wrong F would call for
    full, _ = run(X, y, 1.0, **settings, shrinking=False)
    assert shrunk.info.objective == pytest.approx(full.info.objective, rel=1e-8)
    truth = judge(rbf(X, 0.005), y, upper, shrunk.alpha, shrunk.bias)
    assert shrunk.info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert shrunk.info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-6)
    # Each value K(support vector, point) is computed at least once, and hardly more often.
    least = shrunk.info.n_sv * len(y)
    assert least <= shrunk.info.kernel_evaluations < 2.5 * least


def test_the_explicit_w_of_a_linear_kernel_shrinks_too():
    X, y = blobs(4000, 3, 8, shift=2.5)
    linear = KernelSpec.make("linear")
    settings = {"kernel": linear, "solver": "svmfu", "chunk": 60, "tolerance": 1e-4}
    shrunk, upper = run(X, y, 1.0, **settings)
    full, _ = run(X, y, 1.0, **settings, shrinking=False)
    assert shrunk.info.shrinks > 0
    assert shrunk.info.objective == pytest.approx(full.info.objective, rel=1e-7)
    assert judge(X @ X.T, y, upper, shrunk.alpha, shrunk.bias).kkt_gap <= 1e-4 * (1 + 1e-6)


def test_a_warm_start_is_recognised_as_optimal():
    X, y = blobs(500, 4, 1)
    cold, _ = run(X, y, 5.0, tolerance=1e-5, precision="float64")
    warm, _ = run(X, y, 5.0, tolerance=1e-5, start=cold.beta, precision="float64")
    assert warm.info.iterations == 0
    assert np.array_equal(warm.beta, cold.beta)


def test_a_warm_start_from_elsewhere_reaches_the_same_optimum():
    X, y = blobs(500, 4, 1)
    cold, _ = run(X, y, 5.0, tolerance=1e-5)
    weaker, _ = run(X, y, 1.0, tolerance=1e-3)
    warm, _ = run(X, y, 5.0, tolerance=1e-5, start=weaker.beta)
    assert warm.info.objective == pytest.approx(cold.info.objective, rel=1e-8)


@pytest.mark.parametrize("solver", ["svmfu", "smo"])
def test_duplicates_with_opposite_labels(solver):
    X, y = blobs(100, 2, 6)
    X = np.vstack([X, X])
    y = np.concatenate([y, -y])
    solution, upper = run(X, y, 10.0, solver=solver, tolerance=1e-4)
    truth = judge(rbf(X, 0.5), y, upper, solution.alpha, solution.bias)
    assert solution.info.status == "converged"
    assert truth.kkt_gap <= 1e-4


def test_a_gap_that_float32_misses_is_refined():
    X, y = blobs(700, 3, 9, shift=0.5)
    solution, upper = run(X, y, 300.0, gamma=0.2, tolerance=1e-5)
    truth = judge(rbf(X, 0.2), y, upper, solution.alpha, solution.bias)
    assert solution.info.status == "converged"
    assert solution.info.refinements > 0
    assert truth.kkt_gap <= 1e-5 * (1 + 1e-6)


def test_a_cost_that_float32_cannot_serve_goes_on_in_float64():
    X, y = blobs(600, 3, 9, shift=0.5)
    solution, upper = run(X, y, 1e5, gamma=0.05)
    truth = judge(rbf(X, 0.05), y, upper, solution.alpha, solution.bias)
    assert solution.info.status == "converged"
    assert solution.info.changed_precision
    assert solution.info.precision == "float64"
    assert any("float32" in warning for warning in solution.info.warnings)
    assert truth.kkt_gap <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1.0, 1e4, 1e7])
@pytest.mark.parametrize("bias", [True, False])
def test_the_scale_of_the_features_is_no_obstacle(scale, bias):
    """α ~ 1/scale² may be far below C times the rounding unit: it must not be lost."""
    X, y = blobs(100, 2, 0, shift=4.0)
    kernel = KernelSpec.make("linear")
    cost = max(1.0, 10.0 / scale**2)
    solution, upper = run(scale * X, y, cost, kernel=kernel, bias=bias)
    truth = judge(scale**2 * X @ X.T, y, upper, solution.alpha, solution.bias, has_bias=bias)
    assert solution.info.status == "converged"
    assert truth.kkt_gap <= 1e-3 * (1 + 1e-6)
    assert np.all(y * (scale**2 * X @ X.T @ solution.beta + solution.bias) > 0)


def test_unscaled_data_under_a_polynomial():
    rng = np.random.default_rng(0)
    X = 100 * rng.normal(size=(200, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    solution, upper = run(X, y, 1.0, kernel=KernelSpec.make("poly", gamma=1.0, degree=3))
    truth = judge((X @ X.T) ** 3, y, upper, solution.alpha, solution.bias)
    assert solution.info.status == "converged"
    assert solution.info.precision == "float64"
    assert truth.kkt_gap <= 1.1e-3


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_extrapolation_of_pair_steps_keeps_the_answer(precision):
    """A nearly singular K over the unbounded variables: thousands of steps, most of them saved."""
    X, y = blobs(400, 5, 3, shift=0.5)
    solution, upper = run(X, y, 1000.0, gamma=0.05, chunk=400, precision=precision)
    truth = judge(rbf(X, 0.05), y, upper, solution.alpha, solution.bias)
    assert solution.info.extrapolations > 10
    assert solution.info.status == "converged"
    assert truth.kkt_gap <= 1e-3 * (1 + 1e-6)
    assert abs(solution.beta.sum()) <= 1e-9
    assert np.all((solution.alpha >= 0) & (solution.alpha <= upper))


@pytest.mark.parametrize("bias", [True, False])
def test_extrapolation_of_rounds_keeps_the_answer(bias):
    """More unbounded variables than the chunk holds."""
    X, y = blobs(1500, 20, 3)
    solution, upper = run(X, y, 10.0, gamma=0.05, chunk=128, bias=bias, tolerance=1e-4)
    truth = judge(rbf(X, 0.05), y, upper, solution.alpha, solution.bias, has_bias=bias)
    assert solution.info.n_usv > 128
    assert solution.info.extrapolations > 0
    assert truth.kkt_gap <= 1e-4 * (1 + 1e-6)
    plain, _ = run(X, y, 10.0, gamma=0.05, chunk=1500, bias=bias, tolerance=1e-5)
    assert solution.info.objective == pytest.approx(plain.info.objective, rel=1e-6)
    if bias:
        assert abs(solution.beta.sum()) <= 1e-9


def test_tight_tolerances_are_reached():
    X, y = blobs(700, 3, 9)
    for tolerance in (1e-6, 1e-8):
        solution, upper = run(X, y, 1.0, tolerance=tolerance)
        truth = judge(rbf(X, 0.5), y, upper, solution.alpha, solution.bias)
        assert solution.info.status == "converged"
        assert truth.kkt_gap <= 1.01 * tolerance


def test_polishing_reaches_rounding_accuracy_whatever_the_tolerance():
    X, y = blobs(300, 3, 9)
    plain, _ = run(X, y, 1.0, tolerance=1e-2)
    polished, upper = run(X, y, 1.0, tolerance=1e-2, polish=True)
    limited, _ = run(X, y, 1.0, tolerance=1e-2, polish=True, max_iterations=10**6)
    assert plain.info.kkt_gap > 1e-6
    assert judge(rbf(X, 0.5), y, upper, polished.alpha, polished.bias).kkt_gap < 1e-9
    assert np.array_equal(polished.beta, limited.beta)
    large, _ = run(*blobs(600, 3, 9), 1.0, tolerance=1e-2, polish=True)
    assert large.info.kkt_gap > 1e-6


def test_a_chunk_keeps_to_the_memory_budget():
    X, y = blobs(1000, 3, 1)
    budget = 100 * 100 * 4 / 2**20
    solution, _ = run(X, y, 1.0, chunk=900, cache_mib=budget)
    assert solution.info.chunk == 100
    assert any("cut from 900 to 100" in warning for warning in solution.info.warnings)


def test_iteration_and_time_limits_keep_a_feasible_point():
    X, y = blobs(600, 3, 2, shift=0.3)
    solution, _ = run(X, y, 100.0, max_iterations=50, tolerance=1e-6)
    assert solution.info.status == "max_iterations"
    assert solution.info.iterations == 50
    assert abs(y @ solution.alpha) < 1e-9
    assert solution.info.kkt_gap > 1e-6
    timed, _ = run(X, y, 100.0, max_seconds=1e-9, tolerance=1e-9, chunk=50)
    assert timed.info.status == "max_seconds"


def test_progress_can_stop_the_run():
    X, y = blobs(600, 3, 2, shift=0.3)
    upper = np.full(600, 10.0)
    problem = svc_problem(y, upper, np.arange(600), True)
    seen = []

    def stop_after_two(state):
        seen.append((state.round, state.gap, state.n_sv))
        return len(seen) == 2

    spec = KernelSpec.make("rbf", gamma=0.5)
    solution = solve(problem, X, spec, SolverSettings(chunk=20), progress=stop_after_two)
    assert solution.info.status == "interrupted"
    assert len(seen) == 2
    assert seen[1][0] > seen[0][0]


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_linear_kernel_through_its_weights(layout):
    X, y = blobs(700, 8, 3)
    K = X @ X.T
    data = sp.csr_matrix(X) if layout == "csr" else X
    kernel = KernelSpec.make("linear")
    solution, upper = run(data, y, 0.5, kernel=kernel, chunk=100, tolerance=1e-5)
    truth = judge(K, y, upper, solution.alpha, solution.bias)
    assert truth.kkt_gap <= 1.01e-5
    assert solution.info.objective == pytest.approx(truth.objective, rel=1e-10)


def test_an_indefinite_kernel_ends_with_an_honest_certificate():
    X, y = blobs(200, 3, 4)
    kernel = KernelSpec.make("sigmoid", gamma=1.0, coef0=-1.0)
    solution, upper = run(X, y, 1.0, kernel=kernel)
    truth = judge(np.tanh(X @ X.T - 1.0), y, upper, solution.alpha, solution.bias)
    assert solution.info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert solution.info.status in ("converged", "stalled")
    if solution.info.status == "converged":
        assert truth.kkt_gap <= 1e-3


def test_no_unbounded_support_vector_gives_the_middle_of_the_interval():
    X = np.array([[-1.0], [1.0]])
    y = np.array([-1.0, 1.0])
    solution, upper = run(X, y, 0.01, tolerance=1e-6)
    assert solution.info.n_usv == 0
    low, high = solution.info.bias_interval
    assert low < high
    assert solution.bias == pytest.approx(0.5 * (low + high))
    assert judge(rbf(X, 0.5), y, upper, solution.alpha, solution.bias).kkt_violation < 1e-6


def test_the_certificate_of_a_large_support_is_true():
    """Beyond a few thousand SVs bounded points that are surely satisfied keep float32 values."""
    X, y = blobs(6000, 4, 3, shift=0.3)
    solution, upper = run(X, y, 0.05)
    info = solution.info
    assert info.n_sv > 3000
    assert info.n_usv < info.n_sv / 2
    assert info.verification_evaluations < info.n_sv**2 / 2
    truth = judge(rbf(X, 0.5), y, upper, solution.alpha, solution.bias)
    assert info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert info.kkt_violation == pytest.approx(truth.kkt_violation, abs=1e-9)
    assert info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-7)
    assert info.objective == pytest.approx(truth.objective, rel=1e-6)


def test_dense_data_of_zeros_are_trained_as_sparse():
    X, y = blobs(400, 40, 5)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.8, 0.0, X)
    dense, _ = run(X, y, 1.0, tolerance=1e-5)
    sparse, _ = run(sp.csr_matrix(X), y, 1.0, tolerance=1e-5)
    assert dense.info.layout == sparse.info.layout == "csr"
    assert np.array_equal(dense.alpha, sparse.alpha)


def test_data_far_from_the_origin_stay_dense():
    X, y = blobs(300, 40, 5)
    X[:, 16:] = 0.0
    X[:, :16] += 3000.0
    solution, _ = run(X, y, 1.0)
    assert solution.info.layout == "dense"
    assert solution.info.precision == "float32"


def test_unbounded_variables_at_zero_are_part_of_the_certificate():
    """A box around zero: such a variable can violate while its coefficient is zero."""
    from kfu.solvers import DualProblem, solve

    rng = np.random.default_rng(0)
    n = 200
    X = rng.normal(size=(n, 3))
    target = np.sin(X[:, 0])
    problem = DualProblem(
        signs=np.ones(n),
        linear=-target,
        lower=np.full(n, -1.0),
        upper=np.full(n, 1.0),
        points=np.arange(n),
        ridge=None,
        has_equality=True,
    )
    kernel = KernelSpec.make("rbf", gamma=0.5)
    solution = solve(problem, X, kernel, SolverSettings(max_iterations=3))
    K = rbf(X, 0.5)
    F = K @ solution.beta - target
    up, low = solution.beta < 1.0, solution.beta > -1.0
    assert solution.info.kkt_gap == pytest.approx(F[low].max() - F[up].min(), abs=1e-9)
