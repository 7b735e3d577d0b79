"""Span-corrected outputs against spans by definition and against real leaving out."""

from __future__ import annotations

import numpy as np
import pytest
from kfu._gram import Gram
from sklearn.svm import SVC

from kfu.calibration import fit_sigmoid, span_corrected_outputs, squared_spans
from kfu.kernels import KernelSpec
from tests.oracles import calibration as oracle


def problem(seed, n=28, gamma=0.5, noise=0.6):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) * 0.9 + noise * y[:, None]
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
    return X, K, y


def trained(seed, C=1.0, has_bias=True):
    _, K, y = problem(seed, n=20)
    upper = np.full(len(y), C)
    alpha, bias = oracle.machine_output(K, y, upper, has_bias)
    alpha = np.where(alpha < 1e-7, 0.0, np.where(alpha > C * (1 - 1e-7), C, alpha))
    return K, y, upper, alpha, K @ (alpha * y) + bias


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_spans_by_definition(seed, has_bias):
    K, y, upper, alpha, f = trained(seed, has_bias=has_bias)
    S = np.flatnonzero(alpha > 0)
    free = np.flatnonzero((alpha > 1e-5) & (alpha < upper * (1 - 1e-5)))
    assert 2 < free.size < S.size < len(y)
    spans = squared_spans(alpha, K[np.ix_(S, S)], upper, has_bias)
    for p in range(len(y)):
        expected = oracle.squared_span(K, p, free, has_bias) if p in S else 0.0
        assert spans[p] == pytest.approx(expected, rel=1e-5, abs=1e-8)
    corrected = span_corrected_outputs(f, y, alpha, K[np.ix_(S, S)], upper, has_bias)
    np.testing.assert_allclose(corrected, f - y * alpha * spans, rtol=1e-12)


def categories(alpha, C):
    return np.where(alpha < 1e-6 * C, 0, np.where(alpha > C * (1 - 1e-6), 2, 1))


def check_left_out(K, y, C, solve):
    """Exact where no other row changes its category, and nearer than f on the whole."""
    has_bias = solve is libsvm
    alpha, f = solve(K, y, C)
    S = np.flatnonzero(alpha > 0)
    corrected = span_corrected_outputs(f, y, alpha, K[np.ix_(S, S)], C, has_bias)
    true, is_same = np.empty(len(y)), np.empty(len(y), dtype=bool)
    for p in range(len(y)):
        rest = np.delete(np.arange(len(y)), p)
        without, _ = solve(K[np.ix_(rest, rest)], y[rest], C)
        outputs = K[:, rest] @ (without * y[rest])
        free = categories(without, C) == 1
        bias = (y[rest] - outputs[rest])[free].mean() if has_bias else 0.0
        true[p] = outputs[p] + bias
        is_same[p] = np.array_equal(categories(without, C), categories(alpha, C)[rest])
    error, before = np.abs(corrected - true), np.abs(f - true)
    moved = is_same & (alpha > 0)
    assert moved.sum() >= 3
    assert error[is_same].max() < 1e-4 < before[moved].min()
    assert error.mean() < 0.6 * before.mean()
    # The sigmoid of the outputs as they are is too sure.
    assert fit_sigmoid(f, y).A < fit_sigmoid(corrected, y).A < 0


def libsvm(K, y, C):
    machine = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return alpha, machine.decision_function(K)


def general(K, y, C):
    alpha, bias = oracle.machine_output(K, y, np.full(len(y), C), has_bias=False)
    alpha = np.where(alpha < 1e-7, 0.0, np.where(alpha > C * (1 - 1e-7), C, alpha))
    return alpha, K @ (alpha * y) + bias


def test_outputs_are_those_of_leaving_out():
    _, K, y = problem(4, n=90, gamma=0.2)
    check_left_out(K, y, 1.0, libsvm)


def test_outputs_are_those_of_leaving_out_without_bias():
    _, K, y = problem(4, n=28, gamma=0.2)
    check_left_out(K, y, 1.0, general)


def test_a_gram_may_take_the_place_of_the_matrix():
    X, _, _ = problem(1, n=20)
    K, y, upper, alpha, f = trained(1)
    S = np.flatnonzero(alpha > 0)
    gram = Gram(X, KernelSpec.make("rbf", gamma=0.5), precision="float64")
    np.testing.assert_allclose(
        span_corrected_outputs(f, y, alpha, gram, upper),
        span_corrected_outputs(f, y, alpha, K[np.ix_(S, S)], upper),
        atol=1e-9,
    )


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_the_unit_of_the_kernel(unit):
    K, _, upper, alpha, _ = trained(2)
    S = np.flatnonzero(alpha > 0)
    plain = squared_spans(alpha, K[np.ix_(S, S)], upper)
    scaled = squared_spans(alpha, K[np.ix_(S, S)] * unit, upper)
    np.testing.assert_allclose(scaled, plain * unit, rtol=1e-6, atol=1e-9 * unit)


def test_equal_rows_have_no_span():
    """A singular matrix: rows 0 and 1 are the same point, and span each other."""
    X = np.array([[0.0], [0.0], [1.0], [2.5]])
    K = np.exp(-((X - X.T) ** 2))
    spans = squared_spans(np.full(4, 0.5), K, 1.0)
    np.testing.assert_allclose(spans[:2], 0.0, atol=1e-9)
    for p in (2, 3):
        expected = oracle.squared_span(K, p, range(4), True)
        assert spans[p] == pytest.approx(expected, rel=1e-6)
    # Bounded vectors beside a singular set, low rank (linear kernel), no bias.
    alpha = np.array([0.5, 0.5, 1.0, 0.0])
    linear = np.outer([1.0, 1.0, 3.0], [1.0, 1.0, 3.0])
    np.testing.assert_allclose(squared_spans(alpha, linear, 1.0, False), 0.0, atol=1e-9)


def test_without_unbounded_vectors():
    K = np.array([[1.0, 0.3], [0.3, 2.0]])
    f, y = np.array([0.7, -0.4]), np.array([1.0, -1.0])
    # With a bias categories have to change: nothing is corrected.
    np.testing.assert_array_equal(span_corrected_outputs(f, y, [1.0, 1.0], K, 1.0), f)
    # Without one the others stay where they are: f loses its own term, exactly.
    found = span_corrected_outputs(f, y, [1.0, 1.0], K, 1.0, has_bias=False)
    np.testing.assert_allclose(found, [0.7 - 1.0, -0.4 + 2.0])


def test_one_unbounded_vector():
    K = np.array([[1.0, 0.3, 0.1], [0.3, 2.0, 0.2], [0.1, 0.2, 1.5]])
    spans = squared_spans([0.4, 1.0, 1.0], K, 1.0)
    np.testing.assert_allclose(spans, [0.0, 2.0 + 1.0 - 0.6, 1.5 + 1.0 - 0.2])
    # Without bias its own span is its length.
    assert squared_spans([0.4, 1.0, 1.0], K, 1.0, has_bias=False)[0] == pytest.approx(1.0)


def test_costs_of_each_row():
    K = np.eye(4) + 0.1
    spans = squared_spans([0.5, 0.5, 0.5, 0.0], K[:3, :3], [1.0, 1.0, 0.5, 1.0])
    free = oracle.squared_span(K, 2, [0, 1], True)
    assert spans[2] == pytest.approx(free)  # bounded
    assert spans[0] == pytest.approx(oracle.squared_span(K, 0, [1], True))
    assert spans[3] == 0
    hard = squared_spans([0.5, 0.5, 0.5], K[:3, :3], np.inf)
    assert hard[2] == pytest.approx(free)


def test_no_support_vector_and_bad_arguments():
    assert span_corrected_outputs([0.5], [1], [0.0], np.empty((0, 0)), 1.0).tolist() == [0.5]
    with pytest.raises(ValueError, match="support vectors"):
        squared_spans([1.0, 0.0], np.eye(2), 1.0)
    with pytest.raises(ValueError, match="alpha"):
        squared_spans([-1.0], np.eye(1), 1.0)
    with pytest.raises(ValueError, match="costs"):
        squared_spans([1.0], np.eye(1), np.nan)
    with pytest.raises(ValueError, match="not finite"):
        squared_spans([1.0], [[np.nan]], 1.0)
    with pytest.raises(ValueError, match="do not fit"):
        span_corrected_outputs([0.5, 1.0], [1], [0.0], np.empty((0, 0)), 1.0)
    with pytest.raises(ValueError, match="-1 or"):
        span_corrected_outputs([0.5], [0], [0.0], np.empty((0, 0)), 1.0)
