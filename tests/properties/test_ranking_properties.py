"""What must hold for every ranking problem: feasibility, certificates, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu import KernelSpec
from kfu.errors import DataError
from kfu.ranking import complete_graph, reduced_graph
from kfu.solvers import SolverSettings
from kfu.solvers.ranking import solve_ranking
from tests.oracles.kernels import rbf
from tests.oracles.ranking import all_pairs, judge

KERNEL = KernelSpec.make("rbf", gamma=0.7)
TIGHT = SolverSettings(tolerance=1e-7, threads=1)


@st.composite
def problems(draw):
    """Rows on a coarse grid (so that some are equal), levels with ties, a few queries."""
    n = draw(st.integers(2, 14))
    column = st.lists(st.integers(-2, 2), min_size=n, max_size=n)
    X = np.array([draw(column), draw(column)], dtype=float).T
    y = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    qid = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    return X, y, qid, draw(st.sampled_from([0.05, 1.0, 20.0]))


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([complete_graph, reduced_graph]))
def test_solutions_are_feasible_and_certified(problem, graph):
    X, y, qid, C = problem
    if not all_pairs(y, qid):
        with pytest.raises(DataError, match="no pair"):
            graph(y, qid)
        return
    pairs = graph(y, qid)
    costs = np.full(len(pairs), C)
    solution = solve_ranking(X, pairs, costs, KERNEL, TIGHT)
    truth = judge(rbf(X, X, 0.7), pairs, costs, solution.alpha)
    assert solution.info.status == "converged"
    assert np.all((solution.alpha >= 0) & (solution.alpha <= C))
    assert truth.kkt_gap <= 1.01e-7
    assert solution.info.objective == pytest.approx(truth.objective, rel=1e-10, abs=1e-12)
    assert solution.info.duality_gap == pytest.approx(truth.duality_gap, abs=1e-8 * (1 + C))
    assert abs(solution.coef.sum()) <= 1e-12 * (1 + np.abs(solution.coef).sum())


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(0, 1000))
def test_the_order_of_rows_and_pairs_does_not_matter(problem, seed):
    X, y, qid, C = problem
    if not all_pairs(y, qid):
        return
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    pairs = complete_graph(y, qid)
    moved = rng.permutation(complete_graph(y[order], qid[order]))
    one = solve_ranking(X, pairs, np.full(len(pairs), C), KERNEL, TIGHT)
    two = solve_ranking(X[order], moved, np.full(len(pairs), C), KERNEL, TIGHT)
    assert two.info.objective == pytest.approx(one.info.objective, rel=1e-7)
    K = rbf(X, X, 0.7)
    assert (K @ one.coef)[order] == pytest.approx(K[order][:, order] @ two.coef, abs=2e-2)


@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(0.1, 10.0))
def test_scaling_the_kernel_and_the_costs_together_changes_no_score(problem, factor):
    """K·a with C/a has the solution α/a: the same f, the objective divided by a."""
    X, y, qid, C = problem
    if not all_pairs(y, qid):
        return
    pairs = complete_graph(y, qid)
    plain = solve_ranking(X, pairs, np.full(len(pairs), C), KERNEL, TIGHT)
    scaled_kernel = KernelSpec.make("rbf", gamma=0.7, weight=factor)
    scaled = solve_ranking(X, pairs, np.full(len(pairs), C / factor), scaled_kernel, TIGHT)
    assert scaled.info.objective * factor == pytest.approx(plain.info.objective, rel=1e-6)
