"""What must not change a machine: order of rows, sign of labels, layout, cache, chunk, start."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu import KernelSpec, train
from kfu.solvers import SOLVERS, SolverSettings

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.7},
    "laplacian": {"gamma": 0.4},
    "rational": {"gamma": 0.5},
}
TOLERANCE = 1e-5


@st.composite
def problems(draw):
    """A small two-class problem, kernel and cost; rows may repeat, labels may contradict."""
    n = draw(st.integers(8, 60))
    d = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from([0, 1, 6])))
    X[rng.uniform(size=X.shape) < draw(st.sampled_from([0.0, 0.6]))] = 0.0
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    kernel = draw(st.sampled_from(sorted(KERNELS)))
    cost = draw(st.sampled_from([0.05, 1.0, 20.0]))
    return X, y, KernelSpec.make(kernel, **KERNELS[kernel]), cost


def fit(problem, *, X=None, y=None, start=None, bias=True, sample_weight=None, **options):
    X = problem[0] if X is None else X
    y = problem[1] if y is None else y
    return train(
        X,
        y,
        kernel=problem[2],
        cost=problem[3],
        bias=bias,
        start=start,
        sample_weight=sample_weight,
        settings=SolverSettings(**{"tolerance": TOLERANCE, "threads": 1, **options}),
    )


def assert_same(a, b, X, *, sign=1.0, rtol=1e-6):
    """Equal objectives, and equal decision values as far as the tolerance determines them."""
    assert a.info["objective"] == pytest.approx(b.info["objective"], rel=rtol, abs=1e-8)
    fa, fb = a.decision_function(X)[:, 0], sign * b.decision_function(X)[:, 0]
    # f is determined up to the duality gap: ½‖w_a − w_b‖² ≤ gap_a + gap_b; the bias up to kkt_gap
    # where an unbounded vector fixes it.
    if fixes_bias(a) and fixes_bias(b):
        reach = np.sqrt(2 * (a.info["duality_gap"] + b.info["duality_gap"]))
        slack = 2 * reach * np.sqrt(largest_diagonal(a, X)) + 4 * TOLERANCE
        assert np.abs(fa - fb).max() <= slack + 1e-7


def fixes_bias(model):
    """Whether a coefficient is well inside its box, not by rounding alone."""
    share = np.abs(model.coef[0]) / model.settings["cost"]
    return bool(np.any((share > 1e-3) & (share < 1 - 1e-3)))


def largest_diagonal(model, X):
    from kfu._gram import Gram

    return max(1.0, float(Gram(X, model.kernel, precision="float64").diagonal().max()))


@given(problems(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_rows(problem, random):
    order = list(range(len(problem[1])))
    random.shuffle(order)
    a = fit(problem)
    b = fit(problem, X=problem[0][order], y=problem[1][order])
    assert_same(a, b, problem[0])


@given(problems())
@settings(max_examples=30, deadline=None)
def test_flipping_the_labels_flips_the_sign(problem):
    assert_same(fit(problem), fit(problem, y=-problem[1]), problem[0], sign=-1.0)


@given(problems())
@settings(max_examples=30, deadline=None)
def test_dense_equals_csr(problem):
    assert_same(fit(problem), fit(problem, X=sp.csr_matrix(problem[0])), problem[0])


@given(problems())
@settings(max_examples=30, deadline=None)
def test_float32_rows_equal_float64_rows(problem):
    a, b = fit(problem, precision="float32"), fit(problem, precision="float64")
    assert_same(a, b, problem[0])


@given(problems(), st.integers(2, 60), st.integers(0, 60), st.sampled_from(sorted(SOLVERS)))
@settings(max_examples=60, deadline=None)
def test_any_solver_chunk_and_cache(problem, chunk, rows, solver):
    mib = rows * len(problem[1]) * 4 / 2**20
    a = fit(problem)
    b = fit(problem, chunk=chunk, cache_mib=mib, solver=solver)
    assert_same(a, b, problem[0])


@given(problems(), st.floats(0.1, 10.0))
@settings(max_examples=30, deadline=None)
def test_warm_equals_cold(problem, factor):
    elsewhere = fit((*problem[:3], problem[3] * factor))
    assert_same(fit(problem), fit(problem, start=elsewhere), problem[0])


@given(problems(), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_an_integer_weight_is_a_repeated_row(problem, times):
    weights = np.ones(len(problem[1]))
    weights[0] = times + 1
    X = np.vstack([problem[0], np.repeat(problem[0][:1], times, axis=0)])
    y = np.concatenate([problem[1], np.repeat(problem[1][:1], times)])
    assert_same(fit(problem, sample_weight=weights), fit(problem, X=X, y=y), problem[0])


@given(problems())
@settings(max_examples=20, deadline=None)
def test_a_row_of_weight_zero_is_not_there(problem):
    weights = np.ones(len(problem[1]))
    weights[-1] = 0.0
    if len(set(problem[1][:-1])) < 2:
        return
    a = fit(problem, sample_weight=weights)
    b = fit(problem, X=problem[0][:-1], y=problem[1][:-1])
    assert len(problem[1]) - 1 not in a.support
    assert_same(a, b, problem[0][:-1])


@given(problems())
@settings(max_examples=20, deadline=None)
def test_without_bias_flipping_labels_is_exact_negation(problem):
    a = fit(problem, bias=False)
    b = fit(problem, y=-problem[1], bias=False)
    assert a.bias[0] == 0.0
    assert np.allclose(a.decision_function(problem[0]), -b.decision_function(problem[0]), atol=1e-3)
