"""The ranking solver against a brute-force QP, its own certificate, and its edge cases."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, read_dataset
from kfu.errors import DataError, SettingsError
from kfu.kernels import KERNELS
from kfu.ranking import complete_graph, edge_kinds, reduced_graph
from kfu.solvers import SolverSettings
from kfu.solvers.ranking import solve_ranking
from tests.oracles import kernels as formulas
from tests.oracles.ranking import judge, ndcg, solve_dual

LINEAR = KernelSpec.make("linear")


def queries(n, d, seed, levels=4, n_queries=5, noise=0.7):
    """Rows whose relevance is a noisy function of the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + noise * rng.normal(size=n)
    y = np.clip(np.floor(score + levels / 2), 0, levels - 1)
    return X, y, rng.integers(0, n_queries, n)


def rbf(gamma=0.5):
    return KernelSpec.make("rbf", gamma=gamma)


def matrix(kernel, X):
    if kernel.name == "linear":
        return formulas.linear(X, X)
    return formulas.rbf(X, X, kernel.params["gamma"])


def run(X, pairs, C, kernel=None, **options):
    costs = np.broadcast_to(np.asarray(C, dtype=float), (len(pairs),)).copy()
    extra = {k: options.pop(k) for k in ("targets", "start", "progress") if k in options}
    solution = solve_ranking(X, pairs, costs, kernel or rbf(), SolverSettings(**options), **extra)
    return solution, costs


@pytest.mark.parametrize("kernel", [LINEAR, rbf()], ids=["linear", "rbf"])
@pytest.mark.parametrize("graph", [complete_graph, reduced_graph])
@pytest.mark.parametrize("C", [0.03, 1.0, 30.0])
def test_agrees_with_a_brute_force_qp(C, graph, kernel):
    X, y, qid = queries(36, 3, 1)
    pairs = graph(y, qid)
    K = matrix(kernel, X)
    solution, costs = run(X, pairs, C, kernel, tolerance=1e-9)
    expected = judge(K, pairs, costs, solve_dual(K, pairs, costs))
    assert solution.info.status == "converged"
    assert solution.info.objective == pytest.approx(expected.objective, rel=1e-9, abs=1e-9)


def test_the_scores_agree_where_the_brute_force_is_exact():
    X, y, qid = queries(24, 3, 2)
    pairs = reduced_graph(y, qid)
    K = matrix(rbf(), X)
    solution, costs = run(X, pairs, 1.0, tolerance=1e-9)
    expected = judge(K, pairs, costs, solve_dual(K, pairs, costs))
    assert abs(expected.duality_gap) < 1e-12
    assert K @ solution.coef == pytest.approx(K @ expected.coef, abs=1e-7)


def test_unequal_costs_targets_and_costs_of_zero():
    X, y, qid = queries(30, 2, 3)
    pairs = complete_graph(y, qid)
    rng = np.random.default_rng(0)
    costs, targets = rng.uniform(0, 2, len(pairs)), rng.uniform(-0.5, 2, len(pairs))
    costs[::5] = 0.0
    K = matrix(rbf(), X)
    solution, _ = run(X, pairs, costs, targets=targets, tolerance=1e-9)
    expected = judge(K, pairs, costs, solve_dual(K, pairs, costs, targets), targets)
    assert solution.info.objective == pytest.approx(expected.objective, rel=1e-7)
    assert np.all(solution.alpha[::5] == 0.0)
    truth = judge(K, pairs, costs, solution.alpha, targets)
    assert solution.info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-8)


@pytest.mark.parametrize("chunk", [0, 2, 7, 64, 400])
@pytest.mark.parametrize("kernel", [LINEAR, rbf()], ids=["linear", "rbf"])
def test_the_certificate_is_true_for_every_chunk(kernel, chunk):
    X, y, qid = queries(220, 4, 4, n_queries=9)
    pairs = complete_graph(y, qid)
    K = matrix(kernel, X)
    solution, costs = run(X, pairs, 0.05, kernel, chunk=chunk, tolerance=1e-4)
    info = solution.info
    truth = judge(K, pairs, costs, solution.alpha)
    assert info.status == "converged"
    assert np.all((solution.alpha >= 0) & (solution.alpha <= costs))
    assert solution.coef == pytest.approx(truth.coef, abs=1e-12)
    assert info.objective == pytest.approx(truth.objective, rel=1e-10)
    assert info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-8)
    assert info.kkt_gap == pytest.approx(truth.kkt_gap, abs=1e-9)
    assert info.kkt_gap == info.kkt_violation <= 1e-4
    assert info.n_sv == np.count_nonzero(solution.coef)
    assert info.n_usv == np.count_nonzero((solution.alpha > 0) & (solution.alpha < costs))
    assert info.bias == 0.0
    assert info.bias_interval == (0.0, 0.0)


@pytest.mark.parametrize("precision", ["auto", "float32", "float64"])
@pytest.mark.parametrize("kernel", [LINEAR, rbf()], ids=["linear", "rbf"])
def test_layouts_and_precisions_agree(kernel, precision):
    X, y, qid = queries(150, 6, 5)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(np.float64)
    pairs = reduced_graph(y, qid)
    reference, _ = run(X, pairs, 1.0, kernel, precision="float64", tolerance=1e-6)
    for data in (X, sp.csr_matrix(X), X.astype(np.float32), sp.csr_matrix(X.astype(np.float32))):
        solution, _ = run(data, pairs, 1.0, kernel, precision=precision, tolerance=1e-6)
        assert solution.info.status == "converged"
        assert solution.info.layout == ("csr" if sp.issparse(data) else "dense")
        assert solution.info.objective == pytest.approx(reference.info.objective, rel=1e-8)


@pytest.mark.parametrize("kernel", [LINEAR, rbf(0.1)], ids=["linear", "rbf"])
@pytest.mark.parametrize("cache_mib", [0.0, 0.5, 1024.0])
def test_threads_do_not_change_a_bit_and_memory_no_digit(kernel, cache_mib):
    X, y, qid = queries(600, 50, 6, n_queries=30)
    pairs = complete_graph(y, qid)
    options = {"chunk": 128, "cache_mib": cache_mib}
    one, _ = run(X, pairs, 0.1, kernel, threads=1, **options)
    two, _ = run(X, pairs, 0.1, kernel, threads=2, **options)
    assert np.array_equal(one.alpha, two.alpha)
    assert np.array_equal(one.coef, two.coef)
    assert one.info.objective == two.info.objective
    assert one.info.iterations == two.info.iterations
    whole, _ = run(X, pairs, 0.1, kernel)
    assert abs(whole.info.objective - one.info.objective) <= (
        whole.info.duality_gap + one.info.duality_gap
    )


def test_a_precomputed_kernel_is_the_kernel():
    X, y, qid = queries(60, 3, 7)
    pairs = complete_graph(y, qid)
    direct, _ = run(X, pairs, 0.5, tolerance=1e-6)
    given, _ = run(matrix(rbf(), X), pairs, 0.5, KernelSpec.make("precomputed"), tolerance=1e-6)
    assert given.info.layout == "precomputed"
    assert given.info.objective == pytest.approx(direct.info.objective, rel=1e-8)


@pytest.mark.parametrize("name", [k for k, e in KERNELS.items() if not e.needs_non_negative])
def test_every_kernel_trains(name):
    if name == "precomputed":
        pytest.skip("tested above")
    X, y, qid = queries(60, 3, 8)
    pairs = reduced_graph(y, qid)
    spec = KernelSpec.make(name).resolve(X)
    solution, costs = run(X, pairs, 0.5, spec)
    assert solution.info.status == ("converged" if spec.is_psd else solution.info.status)
    assert np.all((solution.alpha >= 0) & (solution.alpha <= costs))
    if spec.is_psd:
        assert solution.info.kkt_gap <= 1e-3


def test_equal_rows_of_different_relevance_go_to_the_bound():
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    pairs = np.array([[0, 1], [2, 0]])
    solution, _ = run(X, pairs, 3.0, tolerance=1e-8)
    assert solution.alpha[0] == 3.0  # no scoring separates them
    assert solution.info.status == "converged"


def test_points_whose_pairs_cancel_are_no_support_vectors():
    X = np.array([[0.0], [1.0], [2.0], [5.0]])
    pairs = np.array([[0, 1], [1, 2]])  # α = 0.1 both: γ of row 1 cancels, row 3 is in no pair
    solution, _ = run(X, pairs, 0.1, tolerance=1e-8)
    assert solution.coef.tolist() == [0.1, 0.0, -0.1, 0.0]
    assert solution.info.n_sv == 2


def test_a_pair_of_double_cost_is_the_pair_given_twice():
    X, y, qid = queries(40, 3, 9)
    pairs = reduced_graph(y, qid)
    costs = np.where(edge_kinds(pairs, y), 2.0, 1.0)
    weighted, _ = run(X, pairs, costs, tolerance=1e-8)
    twice = np.concatenate([pairs, pairs[costs == 2.0]])
    repeated, _ = run(X, twice, 1.0, tolerance=1e-8)
    assert weighted.info.objective == pytest.approx(repeated.info.objective, rel=1e-9)
    K = matrix(rbf(), X)
    assert K @ weighted.coef == pytest.approx(K @ repeated.coef, abs=1e-5)


def test_polishing_goes_to_rounding_accuracy():
    X, y, qid = queries(40, 3, 10)
    pairs = reduced_graph(y, qid)
    solution, _ = run(X, pairs, 1.0, polish=True)
    assert solution.info.kkt_gap < 1e-9
    assert solution.info.precision == "float64"


def test_a_start_is_used_and_its_solution_needs_no_step():
    X, y, qid = queries(120, 3, 11)
    pairs = complete_graph(y, qid)
    first, _ = run(X, pairs, 0.2)
    again, _ = run(X, pairs, 0.2, start=first.alpha)
    assert again.info.iterations == 0
    assert np.array_equal(again.alpha, first.alpha)
    other, _ = run(X, pairs, 0.4, start=first.alpha)
    cold, _ = run(X, pairs, 0.4)
    assert other.info.status == "converged"
    assert abs(other.info.objective - cold.info.objective) <= (
        other.info.duality_gap + cold.info.duality_gap
    )


def test_stops_when_told_and_keeps_what_it_has():
    X, y, qid = queries(300, 3, 12)
    pairs = complete_graph(y, qid)
    K = matrix(rbf(), X)
    options = {"chunk": 16, "tolerance": 1e-6}
    few, costs = run(X, pairs, 1.0, max_iterations=50, **options)
    assert few.info.status == "max_iterations"
    assert few.info.iterations <= 50
    assert few.info.objective == pytest.approx(judge(K, pairs, costs, few.alpha).objective)
    assert few.info.objective > 0
    stopped, _ = run(X, pairs, 1.0, progress=lambda seen: seen.round >= 3, **options)
    assert stopped.info.status == "interrupted"
    assert stopped.info.rounds == 3

    def press_ctrl_c(seen):
        raise KeyboardInterrupt

    pressed, _ = run(X, pairs, 1.0, progress=press_ctrl_c, **options)
    assert pressed.info.status == "interrupted"
    assert pressed.info.objective > 0
    timed, _ = run(X, pairs, 1.0, max_seconds=1e-9, **options)
    assert timed.info.status == "max_seconds"


def test_large_values_of_the_kernel_use_float64():
    X, y, qid = queries(60, 3, 13)
    pairs = reduced_graph(y, qid)
    solution, _ = run(1000.0 * X, pairs, 1e-6, LINEAR, tolerance=1e-4)
    assert solution.info.precision == "float64"
    assert not solution.info.changed_precision
    assert solution.info.status == "converged"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"pairs": np.empty((0, 2), int)}, DataError, "no pair"),
        ({"pairs": np.array([[0, 9]])}, DataError, "pair 0 names row"),
        ({"pairs": np.array([[1, 1]])}, DataError, "prefers row 1 to itself"),
        ({"pairs": np.array([0, 1])}, DataError, "shape"),
        ({"pairs": np.array([[0.0, 1.0]])}, DataError, "type float64"),
        ({"costs": np.array([-1.0])}, SettingsError, "negative"),
        ({"costs": np.array([np.inf])}, SettingsError, "not finite"),
        ({"costs": np.array([1.0, 1.0])}, SettingsError, "shape"),
        ({"targets": np.array([np.nan])}, SettingsError, "not finite"),
        ({"start": np.array([2.0])}, SettingsError, "not feasible"),
    ],
)
def test_refusals(change, error, message):
    arguments = {"pairs": np.array([[0, 1]]), "costs": np.array([1.0]), **change}
    with pytest.raises(error, match=message):
        solve_ranking(
            np.eye(3),
            arguments["pairs"],
            arguments["costs"],
            LINEAR,
            SolverSettings(),
            targets=arguments.get("targets"),
            start=arguments.get("start"),
        )


def test_the_linear_kernel_agrees_with_liblinear_on_difference_vectors():
    svm = pytest.importorskip("sklearn.svm")
    X, y, qid = queries(50, 5, 14)
    pairs = complete_graph(y, qid)
    solution, costs = run(X, pairs, 0.1, LINEAR, tolerance=1e-7)
    difference = X[pairs[:, 0]] - X[pairs[:, 1]]
    side = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)
    peer = svm.LinearSVC(
        loss="hinge", C=0.1, fit_intercept=False, tol=1e-7, max_iter=10**5, dual=True
    ).fit(difference * side[:, None], side)
    w = peer.coef_[0]
    value = 0.5 * w @ w + (costs * np.maximum(0.0, 1.0 - difference @ w)).sum()
    assert solution.info.objective == pytest.approx(value, rel=1e-6)
    assert X.T @ solution.coef == pytest.approx(w, abs=1e-4)


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets")
@pytest.mark.parametrize("graph", [complete_graph, reduced_graph])
def test_ranks_better_than_least_squares_on_real_queries(graph):
    from kfu._gram import Gram

    train, test = (
        read_dataset(str(Path(os.environ["KFU_DATA"]) / f"lgbm_rank.{part}.gz"))
        for part in ("tr", "t")
    )
    dense = [np.c_[d.X.toarray(), np.ones(d.n)] for d in (train, test)]
    baseline = dense[1] @ np.linalg.lstsq(dense[0], train.y, rcond=None)[0]
    pairs = graph(train.y, train.qid)
    kernel = rbf(0.05)
    solution, _ = run(train.X, pairs, 1.0, kernel)
    assert solution.info.status == "converged"
    scores = Gram(train.X, kernel, "float64").decision(None, solution.coef, test.X)[:, 0]
    assert ndcg(scores, test.y, test.qid) > ndcg(baseline, test.y, test.qid) + 0.02
