"""Bounds on leave-one-out errors and on the risk."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares import solve_code, solve_full
from kfu.least_squares.bounds import (
    STABLE_LOSSES,
    binary_loo_bound,
    code_loo_bound,
    generalised_cross_validation,
    loo_interval,
    multiclass_stability,
    ova_loo_bound,
    ramp_loss,
    stability_bound,
)
from kfu.multiclass import decode, resolve_code

RBF = KernelSpec.make("rbf", gamma=0.5)


def binary(n=80, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.8 * y[:, None], y


def test_binary_bound_by_both_of_its_formulas():
    X, y = binary()
    for ridge in (0.05, 1.0, 20.0):
        found = solve_full(X, y, RBF, ridge)
        possible = binary_loo_bound(y, found.fitted, found.coef, found.diagonal)
        margin = y * found.fitted[:, 0]
        np.testing.assert_array_equal(possible, margin <= 1.0 / (1.0 + ridge))  # K_ii = 1
        wrong = y * found.loo[:, 0] <= 0
        assert not (wrong & ~possible).any()
        assert 0 < wrong.sum() < possible.sum() < len(y)


def test_interval_holds_the_output_and_is_reached_far_from_all_rows():
    X, y = binary()
    X[0] = 100.0  # f^{-0}(x_0) = 0 = f_0 − c_0 K_00
    found = solve_full(X, y, RBF, 0.3)
    low, high = loo_interval(found.fitted, found.coef, found.diagonal)
    assert (low <= found.loo + 1e-12).all()
    assert (found.loo <= high + 1e-12).all()
    assert min(abs(low[0, 0]), abs(high[0, 0])) < 1e-12


def test_one_versus_all_is_the_square_decoding():
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, size=70)
    X = rng.normal(size=(70, 2)) + 1.5 * np.array([[0, 1], [1, -1], [-1, -1]])[labels]
    code, _ = resolve_code("ova", 3)
    found = solve_code(X, labels, code, RBF, 0.5)
    arguments = found.fitted, found.coef, found.diagonal
    plain = ova_loo_bound(labels, *arguments)
    np.testing.assert_array_equal(plain, code_loo_bound(labels, code, *arguments, "argmax"))
    np.testing.assert_array_equal(plain, code_loo_bound(labels, code, *arguments, "square"))
    assert 0 < (found.loo_classes != labels).sum() <= plain.sum() < 70
    shuffled = code[:, [2, 0, 1]]
    again = solve_code(X, labels, shuffled, RBF, 0.5)
    others = again.fitted, again.coef, again.diagonal
    np.testing.assert_array_equal(plain, code_loo_bound(labels, shuffled, *others, "argmax"))


def test_one_column_code():
    X, y = binary()
    labels = (y > 0).astype(int)
    code = np.array([[-1], [1]], dtype=np.int8)
    found = solve_code(X, labels, code, RBF, 1.0, decoding="argmax")
    arguments = found.fitted, found.coef, found.diagonal
    expected = binary_loo_bound(y, *arguments)
    for decoding in ("argmax", "square", "hinge", "hamming"):
        np.testing.assert_array_equal(code_loo_bound(labels, code, *arguments, decoding), expected)


def test_no_bound_for_votes():
    code, _ = resolve_code("ava", 3)
    with pytest.raises(SettingsError, match="no bound is known for decoding votes"):
        code_loo_bound(
            np.zeros(1, int), code, np.zeros((1, 3)), np.zeros((1, 3)), np.ones(1), "votes"
        )
    with pytest.raises(SettingsError, match="targets -1 and 1"):
        binary_loo_bound(np.arange(2), np.zeros(2), np.zeros(2), np.ones(2))


def test_gcv_without_freedom():
    assert generalised_cross_validation(np.ones(3), 3.0) == math.inf
    assert generalised_cross_validation(np.ones(4), 2.0) == 4.0


# -- stability -----------------------------------------------------------------------------------


def test_constants_of_the_square_loss():
    found = stability_bound(0.1, 50.0, 100, 1.0, delta=0.05)
    # λ = 1/2, B = 1, F = √2, σ = 2 (√2 + 1), β = σ² / 100, M = (√2 + 1)²
    F = math.sqrt(2.0)
    assert found.output_bound == pytest.approx(F)
    assert found.lipschitz == pytest.approx(2 * (F + 1))
    assert found.loss_bound == pytest.approx((F + 1) ** 2)
    assert found.beta == pytest.approx((2 * (F + 1)) ** 2 / 100)
    tail = math.sqrt(math.log(20) / 200)
    assert found.value == pytest.approx(
        0.1 + 2 * found.beta + (400 * found.beta + found.loss_bound) * tail
    )
    assert found.is_vacuous
    assert found.conditions


@pytest.mark.parametrize("loss", ["square", "absolute", "hinge"])
def test_stability_holds_when_a_row_is_replaced(loss):
    """β bounds the change of every loss; checked for the square loss, whose machine is ours, and
    by its constants for the others."""
    rule = STABLE_LOSSES[loss]
    f = np.linspace(-2, 2, 401)
    for y in (-1.0, 1.0):
        value = {"square": (f - y) ** 2, "absolute": abs(f - y), "hinge": np.maximum(0, 1 - y * f)}
        assert value[loss].max() <= rule.largest(2.0, 1.0) + 1e-12
        slopes = np.abs(np.diff(value[loss]) / np.diff(f))
        assert slopes.max() <= rule.lipschitz(2.0, 1.0) + 1e-9
        assert value[loss][200] <= rule.at_zero(1.0)
    if loss != "square":
        return
    X, y = binary(40)
    rng = np.random.default_rng(1)
    points = rng.normal(size=(200, 2)) * 2
    for ridge in (1.0, 40.0):
        bound = stability_bound(0.0, ridge, 40, 1.0)
        machine = solve_full(X, y, RBF, ridge)
        K = np.exp(-0.5 * ((points[:, None] - X) ** 2).sum(axis=2))
        before = K @ machine.coef
        assert np.abs(before).max() <= bound.output_bound
        for i in range(0, 40, 5):
            X_new, y_new = X.copy(), y.copy()
            X_new[i], y_new[i] = rng.normal(size=2), -y[i]
            other = solve_full(X_new, y_new, RBF, ridge)
            K_new = np.exp(-0.5 * ((points[:, None] - X_new) ** 2).sum(axis=2))
            after = K_new @ other.coef
            for target in (-1.0, 1.0):
                change = np.abs((before - target) ** 2 - (after - target) ** 2)
                assert change.max() <= bound.beta


def test_bound_becomes_useful_with_rows():
    values = [stability_bound(0.1, 0.5 * n, n, 1.0).value for n in (10**2, 10**4, 10**6, 10**8)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.12


def test_ramp_is_above_the_error():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, size=300)
    code, _ = resolve_code("complete", 4)
    decision = rng.normal(size=(300, code.shape[1])) + code[labels]
    wrong = decode(decision, code, "square") != labels
    for gamma in (0.01, 1.0, 30.0):
        ramp = ramp_loss(decision, labels, code, gamma)
        assert (ramp >= wrong).all()
        assert ((ramp >= 0) & (ramp <= 1)).all()
    assert ramp_loss(decision, labels, code, 1e-9).mean() == pytest.approx(wrong.mean())
    assert ((ramp > 0) & (ramp < 1)).any()


def test_multiclass_stability_by_its_formula():
    ova, _ = resolve_code("ova", 5)
    found = multiclass_stability(0.2, 1e-4, ova, 1000, 0.5, delta=0.1)
    tail = math.sqrt(math.log(10) / 2000)
    assert found.value == pytest.approx(
        0.2 + 4 * 2 * 1e-4 / 0.5 + (8 * 1000 * 2 * 1e-4 / 0.5 + 1) * tail
    )
    complete, _ = resolve_code("complete", 5)
    assert multiclass_stability(0.2, 1e-4, complete, 1000, 0.5).beta > found.beta
    with pytest.raises(SettingsError, match="without zeros"):
        multiclass_stability(0.2, 1e-4, resolve_code("ava", 5)[0], 1000, 0.5)


def test_refusals():
    for options in ({"delta": 0.0}, {"delta": 1.0}, {"loss": "zero-one"}, {"target_bound": np.inf}):
        with pytest.raises(SettingsError):
            stability_bound(0.1, 1.0, 10, 1.0, **options)
    with pytest.raises(SettingsError, match="0 rows"):
        stability_bound(0.1, 1.0, 0, 1.0)
    with pytest.raises(SettingsError, match="gamma is 0"):
        ramp_loss(np.zeros((1, 1)), np.zeros(1, int), np.array([[-1], [1]]), 0)
