"""What must not change a single-machine multiclass SVM, or must change it in a known way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kfu._gram import Gram

from kfu import KernelSpec
from kfu.solvers import SolverSettings
from kfu.solvers.multiclass import SINGLE_MACHINES, solve_single_machine
from tests.oracles import single_machine as oracle

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.7},
    "laplacian": {"gamma": 0.4},
}


@st.composite
def problems(draw):
    """kind, X, labels, n_classes, costs, kernel; rows may repeat and classes be absent."""
    n, d, n_classes = draw(st.integers(1, 40)), draw(st.integers(1, 5)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from([0, 1, 6])))
    labels = rng.integers(0, n_classes, size=n)
    costs = draw(st.sampled_from([0.05, 1.0, 20.0])) * rng.integers(0, 4, size=n)
    name = draw(st.sampled_from(sorted(KERNELS)))
    kind = draw(st.sampled_from(sorted(SINGLE_MACHINES)))
    return kind, X, labels, n_classes, costs, KernelSpec.make(name, **KERNELS[name])


def fit(problem, *, bias=False, start=None, **options):
    chosen = {"threads": 1, "tolerance": 1e-5, "max_iterations": 300000, **options}
    return solve_single_machine(*problem, SolverSettings(**chosen), bias=bias, start=start)


def gram(problem):
    return Gram(problem[1], problem[-1], precision="float64").block().astype(float)


def assert_same_functions(problem, a, b, f_a, f_b):
    """f is determined up to the duality gaps: ½‖w_a − w‖² ≤ gap_a at the optimum w."""
    assert a.info.status == b.info.status == "converged"
    gaps = max(a.info.duality_gap, 0.0) + max(b.info.duality_gap, 0.0)
    assert a.info.objective == pytest.approx(b.info.objective, abs=gaps + 1e-9)
    K = gram(problem)
    assert np.abs(f_a - f_b).max() <= 2 * np.sqrt(gaps * max(K.diagonal().max(), 0.0)) + 1e-7


@given(problems(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_certificate_is_true(problem, bias):
    kind, _, labels, _, costs, _ = problem
    found = fit(problem, bias=bias)
    judged = oracle.judge(kind, gram(problem), labels, costs, found.coef, found.bias)
    if bias:  # biases are found in the limit: large costs on few values may take too many steps
        assume(found.info.status == "converged")
    assert found.info.status == "converged"
    scale = 1.0 + costs.max()
    assert judged.infeasibility <= 1e-12 * scale
    assert judged.kkt_gap <= 1.001e-5
    assert found.info.objective == pytest.approx(judged.objective, rel=1e-9, abs=1e-9)
    assert judged.duality_gap <= found.info.duality_gap + 1e-8 * scale
    if not bias:
        assert judged.duality_gap >= -1e-9 * scale


@given(problems(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_names_of_classes_and_the_order_of_rows(problem, bias, random):
    kind, X, labels, n_classes, costs, kernel = problem
    names, order = list(range(n_classes)), list(range(len(labels)))
    random.shuffle(names)
    random.shuffle(order)
    names, order = np.array(names), np.array(order)
    a = fit(problem, bias=bias)
    b = fit((kind, X[order], names[labels][order], n_classes, costs[order], kernel), bias=bias)
    if bias:  # biases are not unique: compare what the problem determines
        gaps = a.info.duality_gap + b.info.duality_gap
        assert a.info.objective == pytest.approx(b.info.objective, abs=gaps + 1e-9)
        return
    K = gram(problem)
    assert_same_functions(problem, a, b, a.coef @ K, b.coef[names] @ K[order])


@given(problems())
@settings(max_examples=25, deadline=None)
def test_a_weight_is_a_number_of_copies(problem):
    kind, X, labels, n_classes, costs, kernel = problem
    copies = np.random.default_rng(len(labels)).integers(0, 4, size=len(labels))
    if copies.sum() == 0:
        copies[0] = 1
    rows = np.repeat(np.arange(len(labels)), copies)
    polished = {"polish": True, "tolerance": 1e-6}
    weighted = (kind, X, labels, n_classes, costs * copies, kernel)
    a = fit(weighted, **polished)
    b = fit((kind, X[rows], labels[rows], n_classes, costs[rows], kernel), **polished)
    K = gram(problem)
    assert_same_functions(problem, a, b, a.coef @ K, b.coef @ K[rows])


@given(problems(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_warm_start_ends_where_a_cold_one_does(problem, bias):
    kind, X, labels, n_classes, costs, kernel = problem
    other = fit((kind, X, labels, n_classes, 3.0 * costs[::-1], kernel), bias=bias, tolerance=1e-2)
    cold, warm = fit(problem, bias=bias), fit(problem, bias=bias, start=other)
    gaps = cold.info.duality_gap + warm.info.duality_gap
    assert warm.info.status == "converged"
    assert warm.info.objective == pytest.approx(cold.info.objective, abs=gaps + 1e-9)


@given(problems(), st.floats(0.2, 5.0))
@settings(max_examples=20, deadline=None)
def test_scaling_the_kernel_is_scaling_the_costs(problem, factor):
    """K ← cK with C ← C/c gives coef ← coef/c and the same f."""
    kind, _, labels, n_classes, costs, _ = problem
    K = gram(problem)
    precomputed = KernelSpec.make("precomputed")
    a = fit((kind, K, labels, n_classes, costs, precomputed))
    b = fit((kind, factor * K, labels, n_classes, costs / factor, precomputed))
    gaps = a.info.duality_gap + factor * b.info.duality_gap
    assert factor * b.info.objective == pytest.approx(a.info.objective, abs=gaps + 1e-8)
