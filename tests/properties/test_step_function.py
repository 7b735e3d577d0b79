"""Step functions against dense evaluation of the obvious definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfu.errors import SettingsError
from kfu.paths.step_function import StepFunction, average, middle_of

# Few different numbers, so that edges of different functions often coincide.
NUMBERS = [k / 8 for k in range(1, 33)]


@st.composite
def step_functions(draw, low=None, high=None):
    edges = sorted(draw(st.sets(st.sampled_from(NUMBERS), min_size=2, max_size=9)))
    if low is not None:
        edges = [low, *(e for e in edges if low < e < high), high]
    values = draw(st.lists(st.integers(0, 4), min_size=len(edges) - 1, max_size=len(edges) - 1))
    return StepFunction(np.array(edges), np.array(values))


def slow_value(f, x):
    """The definition, interval by interval."""
    for k in range(len(f.values)):
        is_last = k == len(f.values) - 1
        if f.edges[k] <= x < f.edges[k + 1] or (is_last and x == f.edges[-1]):
            return f.values[k]
    return math.nan


GRID = np.array(sorted({*NUMBERS, *(x + 1 / 16 for x in NUMBERS), 0.0, 5.0}))


@given(step_functions())
def test_values(f):
    np.testing.assert_array_equal(f(GRID), [slow_value(f, x) for x in GRID])
    assert np.isnan(f(np.nan))


@given(step_functions())
def test_merging_changes_no_value(f):
    merged = f.merged()
    np.testing.assert_array_equal(merged(GRID), f(GRID))
    assert np.all(np.diff(merged.values) != 0)


@given(step_functions(), st.sampled_from(NUMBERS), st.sampled_from(NUMBERS))
def test_restriction_and_extension(f, a, b):
    low, high = min(a, b), max(a, b)
    inside = GRID[(low <= GRID) & (high > GRID) & (f.low <= GRID) & (f.high > GRID)]
    if max(low, f.low) < min(high, f.high):
        part = f.restricted(low, high)
        assert (part.low, part.high) == (max(low, f.low), min(high, f.high))
        np.testing.assert_array_equal(part(inside), f(inside))
    wide = f.extended(low / 2, 2 * high)
    np.testing.assert_array_equal(wide(inside), f(inside))
    assert wide(min(low / 2, f.low)) == f.values[0]
    assert wide(max(2 * high, f.high)) == f.values[-1]


@given(step_functions(), st.sampled_from([0.25, 2.0, 3.0]))
def test_scaling(f, factor):
    np.testing.assert_array_equal(f.scaled(factor)(factor * f.middles()), f.values)
    np.testing.assert_array_equal(f.times(factor).values, f.values * factor)


@given(step_functions())
def test_where_it_is_smallest(f):
    assert f.minimum == min(f.values)
    points = f.middles()
    assert np.all((points >= f.edges[:-1]) & (points < f.edges[1:]))
    intervals = f.minimum_set()
    covered = [any(low <= x < high for low, high in intervals) for x in points]
    np.testing.assert_array_equal(covered, f.values == f.values.min())
    low, high = f.argmin_interval()
    ratios = intervals[:, 1] / intervals[:, 0]
    assert math.isclose(high / low, ratios.max(), rel_tol=1e-11)
    later = intervals[intervals[:, 0] > low]
    assert np.all(later[:, 1] / later[:, 0] < (high / low) * (1 - 1e-13))


@given(step_functions(), st.integers(0, 4))
def test_intervals_below_a_bound(f, bound):
    intervals = f.intervals_below(bound)
    covered = [any(low <= x < high for low, high in intervals) for x in f.middles()]
    np.testing.assert_array_equal(covered, f.values <= bound)
    assert np.all(intervals[1:, 0] > intervals[:-1, 1])  # maximal: they do not touch


@given(st.lists(step_functions(low=0.125, high=4.0), min_size=1, max_size=6), st.data())
def test_average(functions, data):
    weights = data.draw(
        st.none() | st.lists(st.integers(1, 5), min_size=len(functions), max_size=len(functions))
    )
    found = average(functions, weights)
    points = GRID[(GRID >= 0.125) & (GRID <= 4.0)]
    table = np.array([[slow_value(f, x) for x in points] for f in functions])
    w = np.ones(len(functions)) if weights is None else np.array(weights, float)
    mean = w @ table / w.sum()
    np.testing.assert_allclose(found.mean(points), mean, atol=1e-13)
    if len(functions) == 1:
        assert np.all(np.isnan(found.error.values))
    elif weights is None:
        se = np.std(table, axis=0, ddof=1) / math.sqrt(len(functions))
        np.testing.assert_allclose(found.error(points), se, atol=1e-13)
    else:
        k = len(functions)
        se = np.sqrt(k / (k - 1) * (w[:, None] ** 2 * (table - mean) ** 2).sum(axis=0)) / w.sum()
        np.testing.assert_allclose(found.error(points), se, atol=1e-13)


@given(step_functions(), step_functions())
def test_average_is_over_the_common_part(f, g):
    low, high = max(f.low, g.low), min(f.high, g.high)
    if low >= high:
        with pytest.raises(SettingsError, match="no part in common"):
            average([f, g])
    else:
        found = average([f, g])
        assert (found.mean.low, found.mean.high) == (low, high)


def test_pieces_may_descend_and_be_empty():
    f = StepFunction.of_pieces(np.array([8.0, 4.0, 4.0, 2.0, 1.0]), np.array([3, 9, 2, 2]))
    np.testing.assert_array_equal(f.edges, [1.0, 4.0, 8.0])
    np.testing.assert_array_equal(f.values, [2.0, 3.0])
    g = StepFunction.of_pieces(np.array([1.0, 1.0, 4.0, 8.0]), np.array([7, 2, 3]))
    np.testing.assert_array_equal(g.edges, f.edges)
    np.testing.assert_array_equal(g.values, f.values)
    with pytest.raises(ValueError, match="positive width"):
        StepFunction.of_pieces(np.array([2.0, 2.0]), np.array([1.0]))


def test_middles_of_open_ends():
    assert middle_of(1.0, 4.0) == 2.0
    assert middle_of(0.0, 4.0) == 2.0
    assert middle_of(3.0, math.inf) == 6.0
    assert 0.0 < middle_of(0.0, math.inf) < math.inf
    f = StepFunction(np.array([0.0, 1.0, 4.0, math.inf]), np.array([1, 2, 3]))
    np.testing.assert_array_equal(f.middles(), [0.5, 2.0, 8.0])
    assert f.argmin_interval() == (0.0, 1.0)


@pytest.mark.parametrize(
    ("edges", "values"), [([1.0], []), ([1.0, 1.0], [0]), ([-1.0, 1.0], [0]), ([0.0, 1.0], [0, 1])]
)
def test_what_is_no_step_function(edges, values):
    with pytest.raises(ValueError):
        StepFunction(np.array(edges), np.array(values))


def test_averages_of_nothing_and_bad_weights():
    f = StepFunction(np.array([1.0, 2.0]), np.array([0.0]))
    with pytest.raises(SettingsError, match="no curves"):
        average([])
    with pytest.raises(SettingsError, match="weights"):
        average([f], [1.0, 2.0])
    with pytest.raises(SettingsError, match="weights"):
        average([f], [0.0])
