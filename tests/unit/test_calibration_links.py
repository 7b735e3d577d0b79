"""Sigmoid and isotonic links against general optimisers, scikit-learn, and hard samples."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from kfu.calibration import Isotonic, Sigmoid, fit_isotonic, fit_sigmoid
from kfu.calibration.isotonic import _pool, pool_adjacent_violators
from kfu.errors import DataError
from tests.oracles import calibration as oracle


def sample(seed: int, n: int = 40, slope: float = 1.5, shift: float = 0.4):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n)
    positive = rng.uniform(size=n) < 1 / (1 + np.exp(-slope * f - shift))
    return f, positive, rng.uniform(0.1, 3.0, size=n)


def gradient(link: Sigmoid, f, positive, weight):
    """Of the loss, by the formula w (t − P) of Lin, Lin and Weng."""
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    t = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    slope = weight * (t - link(f))
    return np.array([slope @ f, slope.sum()]) / weight.sum()


@pytest.mark.parametrize("seed", range(6))
def test_the_sigmoid_is_the_most_likely_one(seed):
    f, positive, weight = sample(seed)
    link = fit_sigmoid(f, positive, weight)
    best = oracle.fit_sigmoid(f, positive, weight)
    np.testing.assert_allclose([link.A, link.B], best, atol=2e-5)
    loss = oracle.sigmoid_loss((link.A, link.B), f, positive, weight)
    assert loss <= oracle.sigmoid_loss(best, f, positive, weight) + 1e-12
    assert np.abs(gradient(link, f, positive, weight)).max() < 1e-10


def test_outcomes_may_be_signs_or_numbers():
    f, positive, _ = sample(1)
    link = fit_sigmoid(f, positive)
    assert fit_sigmoid(f, positive.astype(int)) == link
    assert fit_sigmoid(f, np.where(positive, 1.0, -1.0)) == link
    with pytest.raises(ValueError, match="boolean"):
        fit_sigmoid(f, positive + 1)


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1.0, 1e9, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_the_unit_and_the_offset_of_outputs_do_not_matter(unit, offset):
    f, positive, weight = sample(2)
    plain = fit_sigmoid(f, positive, weight)
    moved = fit_sigmoid((f + offset) * unit, positive, weight)
    np.testing.assert_allclose(moved((f + offset) * unit), plain(f), rtol=1e-6)
    assert moved.A * unit == pytest.approx(plain.A, rel=1e-6)


def test_separated_rows_have_a_finite_steep_sigmoid():
    f = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    link = fit_sigmoid(f, f > 0)
    best = oracle.fit_sigmoid(f, f > 0, np.ones(6))
    np.testing.assert_allclose([link.A, link.B], best, atol=1e-5)
    assert link.A < -0.5
    # More rows at the same places: steeper, still finite, and stationary.
    for times in (10, 10**2, 10**3, 10**4, 10**5, 10**7):
        weight = np.full(6, float(times))
        steeper = fit_sigmoid(f, f > 0, weight)
        assert -50 < steeper.A < link.A
        residual = 1 / (3 * times + 2)  # the targets' distance from 0 and 1
        assert np.abs(gradient(steeper, f, f > 0, weight)).max() < 1e-7 * residual + 1e-15
        link = steeper


@pytest.mark.parametrize(("n", "side"), [(1, True), (1, False), (7, True), (7, False)])
def test_one_side_only(n, side):
    f = np.linspace(-1, 2, n)
    link = fit_sigmoid(f, np.full(n, side))
    expected = (n + 1) / (n + 2) if side else 1 / (n + 2)
    assert link.A == 0
    np.testing.assert_allclose(link(f), expected, rtol=1e-12)
    assert math.isnan(link.threshold)
    isotonic = fit_isotonic(f, np.full(n, side))
    np.testing.assert_allclose(isotonic(f), expected, rtol=1e-12)


def test_constant_outputs_give_the_mean_target():
    positive = np.array([1, 1, 1, 0])
    expected = (3 * 4 / 5 + 1 / 3) / 4
    for value in (0.0, -2.5, 1e300):
        link = fit_sigmoid(np.full(4, value), positive)
        assert link.A == 0
        np.testing.assert_allclose(link(value), expected, rtol=1e-12)
    assert fit_isotonic(np.full(4, 2.0), positive)([-9.0, 2.0, 9.0]).tolist() == [0.75] * 3


def test_probabilities_do_not_overflow():
    link = Sigmoid(-3.0, 1.0)
    with np.errstate(all="raise", under="ignore"):
        assert link([-1e308, 0.0, 1e308]).tolist() == [0.0, link(0.0), 1.0]
    assert link.threshold == pytest.approx(1 / 3)
    assert link(link.threshold) == pytest.approx(0.5)


def test_outputs_that_say_the_contrary_are_reported():
    f, positive, _ = sample(3, n=200, slope=3.0)
    assert fit_sigmoid(f, positive).is_increasing
    assert not fit_sigmoid(-f, positive).is_increasing


@pytest.mark.parametrize("fit", [fit_sigmoid, fit_isotonic])
def test_bad_samples(fit):
    with pytest.raises(DataError, match="not finite"):
        fit([0.0, math.nan], [0, 1])
    with pytest.raises(DataError, match="no row"):
        fit([], np.zeros(0, dtype=bool))
    with pytest.raises(DataError, match="no row"):
        fit([1.0], [1], [0.0])
    with pytest.raises(DataError, match="negative"):
        fit([1.0], [1], [-1.0])
    with pytest.raises(ValueError, match="decision values"):
        fit([1.0, 2.0], [1])
    # A row of weight 0 is not there, whatever it holds.
    link = fit([0.0, 1.0, math.inf], [0, 1, 1], [1, 1, 0])
    assert link(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("digits", [0, 1, 8])
def test_isotonic_equals_scikit_learn(seed, digits):
    f, positive, weight = sample(seed, n=120)
    f = np.round(f, digits)
    n = weight.sum()
    theirs = IsotonicRegression(y_min=1 / (n + 2), y_max=1 - 1 / (n + 2), out_of_bounds="clip").fit(
        f, positive.astype(float), weight
    )
    points = np.linspace(f.min() - 1, f.max() + 1, 997)
    link = fit_isotonic(f, positive, weight)
    np.testing.assert_allclose(link(points), theirs.predict(points), atol=1e-9)
    assert link.decision.size <= np.unique(f).size


@pytest.mark.parametrize("seed", range(5))
def test_pooling_without_scipys(seed):
    rng = np.random.default_rng(seed)
    values, weight = rng.integers(0, 4, size=60) / 3, rng.uniform(0.1, 2, size=60)
    np.testing.assert_allclose(
        _pool(values, weight), pool_adjacent_violators(values, weight), atol=1e-12
    )


def test_isotonic_keeps_few_knots_and_is_quick():
    rng = np.random.default_rng(0)
    f = rng.normal(size=300_000)
    positive = rng.uniform(size=f.size) < 1 / (1 + np.exp(-2 * f))
    start = time.perf_counter()
    link = fit_isotonic(f, positive)
    assert time.perf_counter() - start < 3.0
    assert link.decision.size < 3000
    rates = 1 / (1 + np.exp(-2 * np.linspace(-2, 2, 9)))
    np.testing.assert_allclose(link(np.linspace(-2, 2, 9)), rates, atol=0.03)


BAD_SIGMOIDS = [{}, {"A": 1.0}, {"A": "1", "B": 0}, {"A": math.nan, "B": 0.0}, [1, 2]]
BAD_ISOTONICS = [
    {"decision": [0.0]},
    {"decision": [], "probability": []},
    {"decision": [0.0, 1.0], "probability": [0.5]},
    {"decision": [1.0, 0.0], "probability": [0.4, 0.5]},
    {"decision": [0.0, 1.0], "probability": [0.5, 0.4]},
    {"decision": [0.0, 1.0], "probability": [0.0, 0.4]},
    {"decision": [0.0, 1.0], "probability": [0.4, 1.0]},
    {"decision": [0.0, math.inf], "probability": [0.4, 0.5]},
    {"decision": ["a"], "probability": [0.5]},
    {"decision": [0.0], "probability": [math.nan]},
]


@pytest.mark.parametrize("values", BAD_SIGMOIDS)
def test_bad_sigmoids_are_refused(values):
    with pytest.raises(ValueError, match="sigmoid"):
        Sigmoid.from_dict(values)


@pytest.mark.parametrize("values", BAD_ISOTONICS)
def test_bad_isotonics_are_refused(values):
    with pytest.raises(ValueError, match="isotonic"):
        Isotonic.from_dict(values)
