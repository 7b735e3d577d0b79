"""Conjugate gradients, products with kernels and preconditioners against written-out matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.conjugate_gradient import conjugate_gradient
from kfu.least_squares.iterative import solve_iterative, solve_iterative_with_bias
from kfu.least_squares.kernel_products import KernelOperator
from kfu.least_squares.preconditioners import (
    PIVOTS,
    PRECONDITIONERS,
    chosen_rank,
    incomplete_cholesky,
    make_preconditioner,
)
from tests.oracles import least_squares_linear as oracle

RBF = KernelSpec.make("rbf", gamma=0.5)


def spd(n, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.geomspace(1.0, condition, n)) @ Q.T


def points(n, d=3, t=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, t))


# --------------------------------------------------------------------------- conjugate gradients


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_solves_every_column(condition):
    A = spd(40, condition)
    B = np.random.default_rng(1).normal(size=(40, 5)) * np.geomspace(1e-6, 1e6, 5)
    goal = 1e-11 if condition < 1e6 else 1e-9  # the better one is beyond rounding
    result = conjugate_gradient(lambda P: A @ P, B, tolerance=goal)
    assert result.converged
    true = np.linalg.norm(B - A @ result.solution, axis=0) / np.linalg.norm(B, axis=0)
    assert true.max() <= goal
    np.testing.assert_allclose(result.residuals, true, rtol=0.1, atol=1e-3 * goal)
    np.testing.assert_allclose(
        result.solution / np.geomspace(1e-6, 1e6, 5),
        np.linalg.solve(A, B / np.geomspace(1e-6, 1e6, 5)),
        rtol=0,
        atol=1e-9,
    )


def test_columns_are_runs_of_their_own():
    """An eigenvector takes one step, a zero none, and neither holds up the others."""
    A = spd(30, 1e2)
    values, vectors = np.linalg.eigh(A)
    hard = np.random.default_rng(0).normal(size=30)
    sizes = []

    def apply(P):
        sizes.append(P.shape[1])
        return A @ P

    B = np.column_stack([vectors[:, 3], np.zeros(30), hard, vectors[:, :4].sum(axis=1)])
    result = conjugate_gradient(apply, B)
    assert result.converged
    assert result.iterations[0] == 1
    assert result.iterations[1] == 0
    assert result.iterations[3] == 4
    alone = conjugate_gradient(lambda P: A @ P, hard[:, None])
    assert abs(result.iterations[2] - alone.iterations[0]) <= 2  # sums in another order
    np.testing.assert_allclose(result.solution[:, 2], alone.solution[:, 0], atol=1e-7)
    np.testing.assert_array_equal(result.solution[:, 1], 0.0)
    np.testing.assert_allclose(result.solution[:, 0], vectors[:, 3] / values[3], atol=1e-10)
    assert sizes[0] == 3  # the zero column never enters
    assert sizes[5] == 1  # only the hard one is left
    assert result.products == sum(sizes)


def test_true_residual_decides():
    """Without refreshing, the updated residual of a badly conditioned run loses touch."""
    A = spd(50, 1e12)
    B = np.random.default_rng(0).normal(size=(50, 2))
    result = conjugate_gradient(lambda P: A @ P, B, tolerance=1e-15, max_iterations=1000)
    true = np.linalg.norm(B - A @ result.solution, axis=0) / np.linalg.norm(B, axis=0)
    np.testing.assert_allclose(result.residuals, true, rtol=0.5)
    assert not result.converged
    assert set(result.status) <= {"stalled", "max_iterations"}


def test_preconditioner_start_and_determinism():
    A = spd(50, 1e3) + np.diag(np.geomspace(1.0, 1e6, 50))
    B = np.random.default_rng(0).normal(size=(50, 3))
    plain = conjugate_gradient(lambda P: A @ P, B)
    scaled = conjugate_gradient(lambda P: A @ P, B, precondition=lambda R: R / np.diag(A)[:, None])
    assert plain.converged
    assert scaled.converged
    assert scaled.iterations.max() < plain.iterations.max()
    again = conjugate_gradient(lambda P: A @ P, B)
    np.testing.assert_array_equal(plain.solution, again.solution)
    warm = conjugate_gradient(lambda P: A @ P, B, start=np.linalg.solve(A, B))
    assert warm.converged
    assert warm.iterations.max() == 0


def test_limits_stops_and_indefinite_matrices():
    A = spd(60, 1e6)
    B = np.ones((60, 1))
    short = conjugate_gradient(lambda P: A @ P, B, max_iterations=3)
    assert short.status == ["max_iterations"]
    assert short.iterations.tolist() == [3]
    true = np.linalg.norm(B - A @ short.solution) / np.linalg.norm(B)
    assert short.residuals[0] == pytest.approx(true, rel=1e-6)
    seen = []

    def stop(step, residual):
        seen.append((step, residual))
        return step == 5

    stopped = conjugate_gradient(lambda P: A @ P, B, progress=stop)
    assert stopped.status == ["stopped"]
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5]

    def interrupt(step, residual):
        if step == 4:
            raise KeyboardInterrupt

    assert conjugate_gradient(lambda P: A @ P, B, progress=interrupt).status == ["interrupted"]
    bad = A - 500.0 * np.eye(60)
    result = conjugate_gradient(lambda P: bad @ P, np.random.default_rng(0).normal(size=(60, 2)))
    assert set(result.status) == {"indefinite"}
    assert np.linalg.eigvalsh(bad)[0] <= result.least_curvature <= 0.0
    assert np.isfinite(result.residuals).all()
    for wrong in ({"tolerance": 0.0}, {"max_iterations": 0}, {"refresh": 0}):
        with pytest.raises(SettingsError):
            conjugate_gradient(lambda P: A @ P, B, **wrong)
    with pytest.raises(SettingsError, match="start"):
        conjugate_gradient(lambda P: A @ P, B, start=np.zeros((3, 1)))


# --------------------------------------------------------------------------- products


@pytest.mark.parametrize("is_sparse", [False, True])
def test_product_is_that_of_the_matrix(is_sparse, monkeypatch):
    monkeypatch.setattr("kfu.least_squares.kernel_products.BLOCK_ROWS", 17)
    X, V = points(60)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    data = sp.csr_matrix(X) if is_sparse else X
    operator = KernelOperator(data, RBF, 0.3, weight)
    A = oracle.rbf(X, X, 0.5) + 0.3 * np.diag(1.0 / weight)
    np.testing.assert_allclose(operator(V), A @ V, rtol=0, atol=1e-12)
    assert operator.kernel_evaluations == 60 * 60
    np.testing.assert_allclose(
        operator.columns(np.array([4, 9])), (A - np.diag(0.3 / weight))[:, [4, 9]]
    )
    assert operator.kernel_evaluations == 60 * 62
    with pytest.raises(SettingsError, match="weight 0"):
        KernelOperator(X, RBF, 0.3, np.arange(60.0))


def test_product_of_a_kernel_matrix():
    X, V = points(30)
    K = oracle.rbf(X, X, 0.5)
    operator = KernelOperator(K, KernelSpec.make("precomputed"), 0.1)
    np.testing.assert_allclose(operator(V), K @ V + 0.1 * V, atol=1e-12)


# --------------------------------------------------------------------------- preconditioners


@pytest.mark.parametrize("pivots", PIVOTS)
@pytest.mark.parametrize("rank", [1, 20, 70, 100])
def test_incomplete_cholesky_is_nystrom_of_its_pivots(pivots, rank):
    X, _ = points(150)
    K = oracle.rbf(X, X, 0.5)
    found = incomplete_cholesky(KernelOperator(X, RBF, 1.0), rank, pivots=pivots, seed=3)
    S = found.pivots
    assert len(set(S.tolist())) == len(S) == found.factor.shape[1] <= rank
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)] + 1e-13 * np.eye(len(S)), K[S])
    approximation = found.factor @ found.factor.T
    np.testing.assert_allclose(approximation, expected, atol=1e-6)
    np.testing.assert_allclose(approximation[S], K[S], atol=1e-9)
    assert found.trace_left == pytest.approx(np.trace(K - approximation) / 150, abs=1e-10)
    again = incomplete_cholesky(KernelOperator(X, RBF, 1.0), rank, pivots=pivots, seed=3)
    np.testing.assert_array_equal(again.factor, found.factor)


def test_greedy_pivots_are_those_of_the_textbook():
    X, _ = points(40)
    K = oracle.rbf(X, X, 0.5) * np.outer(np.arange(1, 41), np.arange(1, 41))
    operator = KernelOperator(K, KernelSpec.make("precomputed"), 1.0)
    found = incomplete_cholesky(operator, 12, pivots="greedy")
    left, expected = K.copy(), []
    for _ in range(12):
        p = int(np.argmax(np.diag(left)))
        expected.append(p)
        left = left - np.outer(left[:, p], left[p]) / left[p, p]
    assert found.pivots.tolist() == expected


@pytest.mark.parametrize("pivots", PIVOTS)
def test_low_rank_is_found_and_ends_the_factorisation(pivots):
    X = np.repeat(points(6)[0], 10, axis=0)
    K = oracle.rbf(X, X, 0.5)
    found = incomplete_cholesky(KernelOperator(X, RBF, 1.0), 40, pivots=pivots)
    assert found.factor.shape[1] == 6
    np.testing.assert_allclose(found.factor @ found.factor.T, K, atol=1e-10)
    assert found.trace_left == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_preconditioner_inverts_its_matrix(name, is_weighted):
    X, R = points(50)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 50) if is_weighted else None
    operator = KernelOperator(X, RBF, 0.2, weight)
    made = make_preconditioner(name, operator, rank=10)
    shift = np.diag(0.2 / (np.ones(50) if weight is None else weight))
    if made.apply is None:
        assert name == "none"
        return
    if name == "diagonal":
        M = np.eye(50) + shift
    else:
        pivots = {"random-pivots": "random", "pivoted-cholesky": "greedy", "nystrom": "uniform"}
        F = incomplete_cholesky(operator, 10, pivots=pivots[name]).factor
        M = F @ F.T + shift
        assert made.info["rank"] == 10
    before = R.copy()
    np.testing.assert_allclose(made.apply(R), np.linalg.solve(M, R), atol=1e-10)
    np.testing.assert_array_equal(R, before)


# --------------------------------------------------------------------------- the whole


@pytest.mark.parametrize("name", PRECONDITIONERS)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_solution_is_that_of_cholesky(name, bias, is_sparse):
    X, Y = points(120)
    weight = np.random.default_rng(2).integers(0, 3, 120).astype(float)
    kept = weight > 0
    K = oracle.rbf(X[kept], X[kept], 0.5)
    expected, b = oracle.kernel_coefficients(K, Y[kept], 0.1, weight[kept], bias)
    data = sp.csr_matrix(X) if is_sparse else X
    options = {"weight": weight, "preconditioner": name, "rank": 30, "tolerance": 1e-11}
    if bias:
        coef, found_bias, info = solve_iterative_with_bias(data, Y, RBF, 0.1, **options)
        np.testing.assert_allclose(found_bias, b, atol=1e-8)
    else:
        coef, info = solve_iterative(data, Y, RBF, 0.1, **options)
    np.testing.assert_allclose(coef[kept], expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(coef[~kept], 0.0)
    assert info["status"] == "converged"
    assert info["residual"] <= 1e-11
    assert info["kernel_evaluations"] > 0


def test_iterations_fall_with_the_rank():
    X, Y = points(200)
    for name in ("random-pivots", "pivoted-cholesky", "nystrom"):
        counts = [
            solve_iterative(X, Y, RBF, 1e-2, preconditioner=name, rank=rank)[1]["iterations"]
            for rank in (5, 25, 75, 150)
        ]
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] < counts[0] / 5


def test_weights_are_copies_rows_permute_and_starts_help():
    X, Y = points(80)
    weight = np.random.default_rng(1).integers(1, 4, 80).astype(float)
    copies = np.repeat(np.arange(80), weight.astype(int))
    coef, _ = solve_iterative(X, Y, RBF, 0.5, weight=weight, tolerance=1e-11)
    of_copies, _ = solve_iterative(X[copies], Y[copies], RBF, 0.5, tolerance=1e-11)
    summed = np.zeros_like(coef)
    np.add.at(summed, copies, of_copies)
    np.testing.assert_allclose(summed, coef, atol=1e-9)
    order = np.random.default_rng(0).permutation(80)
    permuted, _ = solve_iterative(
        X[order], Y[order], RBF, 0.5, weight=weight[order], tolerance=1e-11
    )
    np.testing.assert_allclose(permuted, coef[order], atol=1e-9)
    _, info = solve_iterative(X, Y, RBF, 0.5, weight=weight, start=coef)
    assert info["iterations"] == 0


def test_kernel_matrix_and_default_gamma():
    X, Y = points(40)
    weight = np.arange(40) % 3.0
    K = oracle.rbf(X, X, 1.0 / 3.0)
    by_matrix, _ = solve_iterative(
        K, Y, KernelSpec.make("precomputed"), 0.5, weight=weight, tolerance=1e-11
    )
    by_rows, _ = solve_iterative(X, Y, KernelSpec.make("rbf"), 0.5, weight=weight, tolerance=1e-11)
    np.testing.assert_allclose(by_matrix, by_rows, atol=1e-8)
    kept = weight > 0
    expected, _ = oracle.kernel_coefficients(K[np.ix_(kept, kept)], Y[kept], 0.5, weight[kept])
    np.testing.assert_allclose(by_matrix[kept], expected, atol=1e-8)


def test_threads_do_not_change_the_product():
    X, V = points(300)
    one, two = (KernelOperator(X, RBF, 0.1, threads=k)(V) for k in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_edges_and_errors():
    coef, _ = solve_iterative([[1.0]], [3.0], RBF, 1.0)
    np.testing.assert_allclose(coef, [[1.5]])
    coef, bias, _ = solve_iterative_with_bias([[1.0]], [3.0], RBF, 1.0)
    np.testing.assert_allclose(coef, [[0.0]], atol=1e-7)
    np.testing.assert_allclose(bias, [3.0])
    X, Y = points(20)
    for ridge in (0.0, -1.0, np.nan):
        with pytest.raises(SettingsError, match="ridge"):
            solve_iterative(X, Y, RBF, ridge)
    with pytest.raises(SettingsError, match="rank"):
        solve_iterative(X, Y, RBF, 1.0, rank=21)
    with pytest.raises(SettingsError, match="diagonal"):
        solve_iterative(X, Y, RBF, 1.0, preconditioner="jacobi")
    with pytest.raises(DataError, match="finite"):
        solve_iterative(X, np.full(20, np.inf), RBF, 1.0)
    K = np.diag(np.linspace(-2.0, 3.0, 20))
    with pytest.raises(DataError, match="not positive definite"):
        solve_iterative(K, Y, KernelSpec.make("precomputed"), 0.5, preconditioner="none")
    assert 1 <= chosen_rank(5) <= 5
    assert chosen_rank(10000) == 300


def test_rank_bows_to_memory(monkeypatch):
    monkeypatch.setattr("kfu.least_squares.preconditioners.available_bytes", lambda: 10**8)
    assert chosen_rank(10**5) == 10
