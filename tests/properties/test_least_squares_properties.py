"""What must hold of every full-kernel square-loss machine: identities, bounds and invariances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.kernels import KernelSpec
from kfu.least_squares import Spectrum, solve_code, solve_full
from kfu.least_squares.bounds import binary_loo_bound, code_loo_bound, loo_interval
from kfu.multiclass import decode, resolve_code
from tests.oracles import least_squares as oracle

KERNELS = [
    KernelSpec.make("rbf", gamma=0.7),
    KernelSpec.make("linear"),
    KernelSpec.make("poly", gamma=0.5, coef0=1.0, degree=2),
]
RUNS = settings(max_examples=25, deadline=None)


@st.composite
def problems(draw, least=2):
    """Rows with ties and zeros, targets, weights among them 0, a ridge and a kernel."""
    n = draw(st.integers(least, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.round(rng.normal(size=(n, draw(st.integers(1, 4)))), draw(st.sampled_from([0, 1, 12])))
    Y = rng.normal(size=(n, 2)) + 2.0
    w = rng.integers(0, 4, size=n)
    w[rng.choice(n, min(least, n), replace=False)] += 1
    return X, Y, w, draw(st.sampled_from([0.05, 1.0, 30.0])), draw(st.sampled_from(KERNELS))


def matrix(X, kernel):
    from kfu._gram import Gram

    return Gram(X, kernel.resolve(X), "float64").block()


@pytest.mark.parametrize("bias", [False, True])
@given(problems())
@RUNS
def test_leave_one_out_is_training_without_the_row(bias, problem):
    X, Y, w, ridge, kernel = problem
    found = solve_full(X, Y, kernel, ridge, weight=w, bias=bias)
    K = matrix(X, kernel)
    left = oracle.leave_one_out(K, Y, ridge, w, bias)
    np.testing.assert_allclose(found.loo, left, rtol=1e-8, atol=1e-8)
    spectrum = Spectrum(X, kernel, weight=w, bias=bias).solve(Y, ridge)
    np.testing.assert_allclose(spectrum.loo, found.loo, rtol=1e-8, atol=1e-8)


@given(problems(), st.integers(0, 2**32 - 1))
@RUNS
def test_no_other_function_is_better(problem, seed):
    X, Y, w, ridge, kernel = problem
    K = matrix(X, kernel)
    found = solve_full(X, Y, kernel, ridge, weight=w, bias=True)
    best = oracle.objective(K, Y, ridge, w, found.coef, found.bias)
    step = np.random.default_rng(seed).normal(size=found.coef.shape)
    for size in (1e-3, 1.0):
        other = oracle.objective(K, Y, ridge, w, found.coef + size * step, found.bias + size)
        assert (other >= best - 1e-9 * (1 + best)).all()


@pytest.mark.parametrize("bias", [False, True])
@given(problems())
@RUNS
def test_weights_are_copies(bias, problem):
    X, Y, w, ridge, kernel = problem
    found = solve_full(X, Y, kernel, ridge, weight=w, bias=bias)
    copied = solve_full(np.repeat(X, w, 0), np.repeat(Y, w, 0), kernel, ridge, bias=bias)
    seen = np.repeat(np.arange(len(w)), w)
    summed = np.zeros_like(found.coef)
    np.add.at(summed, seen, copied.coef)
    np.testing.assert_allclose(found.coef, summed, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.fitted[seen], copied.fitted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.bias, copied.bias, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@given(problems())
@RUNS
def test_weight_zero_is_left_out(bias, problem):
    X, Y, w, ridge, kernel = problem
    found = solve_full(X, Y, kernel, ridge, weight=w, bias=bias)
    rows = w > 0
    kernel = kernel.resolve(X)
    without = solve_full(X[rows], Y[rows], kernel, ridge, weight=w[rows], bias=bias)
    np.testing.assert_allclose(found.coef[rows], without.coef, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found.loo[rows], without.loo, rtol=1e-8, atol=1e-9)
    assert (found.coef[~rows] == 0).all()
    np.testing.assert_array_equal(found.loo[~rows], found.fitted[~rows])


@given(problems(), st.randoms(use_true_random=False))
@RUNS
def test_order_sparsity_and_threads(problem, random):
    X, Y, w, ridge, kernel = problem
    found = solve_full(X, Y, kernel, ridge, weight=w, bias=True)
    order = list(range(len(w)))
    random.shuffle(order)
    shuffled = solve_full(X[order], Y[order], kernel, ridge, weight=w[order], bias=True)
    sparse = solve_full(sp.csr_matrix(X), Y, kernel, ridge, weight=w, bias=True, threads=1)
    for name in ("coef", "fitted", "loo"):
        value = getattr(found, name)
        np.testing.assert_allclose(getattr(shuffled, name), value[order], rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(getattr(sparse, name), value, rtol=1e-7, atol=1e-8)


@given(problems())
@RUNS
def test_float32_refined_is_float64(problem):
    X, Y, w, _, kernel = problem
    ridge = 5.0
    double = solve_full(X, Y, kernel, ridge, weight=w, loo=False, precision="float64")
    single = solve_full(X, Y, kernel, ridge, weight=w, loo=False, precision="float32")
    scale = np.abs(double.coef).max()
    assert np.abs(single.coef - double.coef).max() <= 1e-8 * scale


@given(problems())
@RUNS
def test_intervals_and_binary_bound(problem):
    X, Y, w, ridge, kernel = problem
    y = np.where(Y[:, 0] > 2.0, 1.0, -1.0)
    found = solve_full(X, y, kernel, ridge, weight=w)
    low, high = loo_interval(found.fitted, found.coef, found.diagonal)
    slack = 1e-9 * (1 + np.abs(found.loo))
    assert (low <= found.loo + slack).all()
    assert (found.loo <= high + slack).all()
    left = oracle.leave_one_out(matrix(X, kernel), y[:, None], ridge, w)[:, 0]
    wrong = y * left < -1e-9
    possible = binary_loo_bound(y, found.fitted, found.coef, found.diagonal)
    assert not (wrong & ~possible).any()


@pytest.mark.parametrize("name", ["ova", "ava", "dense", "sparse"])
@pytest.mark.parametrize("decoding", ["square", "hinge", "exponential", "hamming"])
@given(problems(12), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_bounds_of_codes_cover_the_errors(name, decoding, problem, seed):
    X, _, w, ridge, kernel = problem
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(len(w)) % 4)
    code, _ = resolve_code(name, 4, 3)
    w = w + 1  # every class is there
    found = solve_code(X, labels, code, kernel, ridge, weight=w, decoding=decoding)
    possible = code_loo_bound(labels, code, found.fitted, found.coef, found.diagonal, decoding)
    wrong = found.loo_classes != labels
    assert not (wrong & ~possible).any()


@given(problems(12), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_complete_code_is_one_versus_all(problem, seed):
    X, _, w, ridge, kernel = problem
    labels = np.random.default_rng(seed).permutation(np.arange(len(w)) % 4)
    ova, complete = (resolve_code(name, 4)[0] for name in ("ova", "complete"))
    first = solve_code(X, labels, ova, kernel, ridge, weight=w + 1)
    second = solve_code(X, labels, complete, kernel, ridge, weight=w + 1)
    for name in ("fitted", "loo"):
        outputs = getattr(first, name)
        ranked = np.sort(outputs, axis=1)
        clear = ranked[:, -1] - ranked[:, -2] > 1e-9  # no tie
        a = decode(outputs, ova, "argmax")
        b = decode(getattr(second, name), complete, "square")
        np.testing.assert_array_equal(a[clear], b[clear])
