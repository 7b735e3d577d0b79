"""Curves and areas against their definitions and scikit-learn, ties and weights included."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from kfu.errors import DataError, ModelError, SettingsError
from kfu.pairwise import ovo_code, ovr_scores
from kfu.validation.class_scores import class_scores
from kfu.validation.curves import Curve, auc, average_curves, average_precision, curve_of
from kfu.validation.delong import areas_and_covariance, auc_interval, delong_test
from kfu.validation.judged_models import check_alike
from tests.oracles import curves as oracle


@st.composite
def scored_rows(draw):
    """Both classes, scores with ties, small whole weights of which some are 0."""
    n = draw(st.integers(2, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.integers(-4, 5, size=n) / 2 if draw(st.booleans()) else rng.normal(size=n)
    positive = rng.random(n) < draw(st.sampled_from([0.2, 0.5, 0.8]))
    positive[:2] = [True, False]
    weights = rng.integers(0, 4, size=n).astype(float) if draw(st.booleans()) else np.ones(n)
    weights[:2] = np.maximum(weights[:2], 1)
    return positive, scores, weights


@settings(max_examples=100)
@given(scored_rows())
def test_points_and_areas_are_their_definitions(rows):
    positive, scores, weights = rows
    curve = curve_of(positive, scores, weights)
    expected = oracle.points(positive, scores, weights)
    obtained = np.column_stack([curve.thresholds, curve.fpr, curve.tpr, curve.precision])
    np.testing.assert_allclose(obtained, expected, rtol=1e-15)
    assert curve.auc == pytest.approx(oracle.area(positive, scores, weights), rel=1e-14)
    steps = np.diff(expected[:, 2]) * expected[1:, 3]
    assert curve.average_precision == pytest.approx(steps.sum(), rel=1e-14)


@settings(max_examples=100)
@given(scored_rows())
def test_scikit_learn_agrees(rows):
    positive, scores, weights = rows
    curve = curve_of(positive, scores, weights)
    fpr, tpr, thresholds = metrics.roc_curve(
        positive, scores, sample_weight=weights, drop_intermediate=False
    )
    np.testing.assert_allclose(curve.fpr, fpr, rtol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr, rtol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    area = metrics.roc_auc_score(positive, scores, sample_weight=weights)
    assert curve.auc == pytest.approx(area, rel=1e-12)
    kept = weights > 0
    found = metrics.average_precision_score(positive, scores, sample_weight=weights)
    assert curve.average_precision == pytest.approx(found, rel=1e-12)
    precision, recall, _ = metrics.precision_recall_curve(
        positive[kept], scores[kept], sample_weight=weights[kept]
    )
    np.testing.assert_allclose(curve.precision, precision[::-1], rtol=1e-12)
    np.testing.assert_allclose(curve.recall, recall[::-1], rtol=1e-12)


def test_areas_that_are_known():
    y = np.array([0, 0, 1, 1])
    assert auc(y, [1, 2, 3, 4]) == 1.0
    assert auc(y, [4, 3, 2, 1]) == 0.0
    assert auc(y, [7, 7, 7, 7]) == 0.5
    assert auc(y, [1, 3, 2, 4]) == 0.75
    assert average_precision(y, [7, 7, 7, 7]) == 0.5
    assert auc([-1, 1], [0.0, 1.0]) == 1.0


def test_whole_weights_are_repeated_rows():
    rng = np.random.default_rng(3)
    y, f, w = rng.random(40) < 0.4, rng.integers(0, 9, 40), rng.integers(1, 4, 40)
    weighted, repeated = curve_of(y, f, w), curve_of(np.repeat(y, w), np.repeat(f, w))
    np.testing.assert_array_equal(weighted.true_positives, repeated.true_positives)
    assert weighted.auc == repeated.auc


@pytest.mark.parametrize(
    ("positive", "scores", "words"),
    [
        ([1, 1], [0.1, 0.2], "every row is positive"),
        ([0, 0], [0.1, 0.2], "every row is not positive"),
        ([], [], "no rows"),
        ([0, 1], [0.1, math.nan], r"scores: NaN in row 1 \(counted from 0\)"),
        ([0, 1], [0.1, -math.inf], "infinity in row 1"),
        ([0, 1, 1], [0.1, 0.2], "3 numbers for 2 rows"),
        ([0, 2], [0.1, 0.2], "y == positive"),
        ([0, 1], ["a", "b"], "not numbers"),
    ],
)
def test_refused(positive, scores, words):
    with pytest.raises(DataError, match=words):
        curve_of(positive, scores)


def test_only_rows_that_count_make_a_curve():
    with pytest.raises(DataError, match="every row is positive"):
        curve_of([1, 1, 0], [1, 2, 3], [1, 1, 0])


# ---- thresholds -----------------------------------------------------------------------------


@settings(max_examples=100)
@given(scored_rows())
def test_best_thresholds_achieve_what_they_say(rows):
    positive, scores, weights = rows
    curve = curve_of(positive, scores, weights)
    best = curve.best_accuracy()
    called = scores >= best.threshold
    assert best.value == pytest.approx(weights[called == positive].sum() / weights.sum())
    assert best.value == pytest.approx(curve.accuracy.max())
    youden = curve.best_youden()
    called = scores >= youden.threshold
    tpr = weights[called & positive].sum() / weights[positive].sum()
    fpr = weights[called & ~positive].sum() / weights[~positive].sum()
    assert (youden.tpr, youden.fpr) == pytest.approx((tpr, fpr))
    assert youden.value == pytest.approx((curve.tpr - curve.fpr).max())


def test_threshold_of_the_machine_is_preferred():
    y = np.array([0, 0, 1, 1])
    assert curve_of(y, [-2.0, -1.0, 3.0, 4.0]).best_accuracy().threshold == 0.0
    assert curve_of(y, [1.0, 2.0, 3.0, 5.0]).best_accuracy().threshold == 2.5
    # one error at 1.5 and at -3.5: the nearer to 0
    tie = curve_of([1, 0, 0, 1], [-3.0, -2.0, 1.0, 2.0]).best_accuracy()
    assert (tie.threshold, tie.value) == (1.5, 0.75)
    assert curve_of([0, 0, 0, 1], [-4.0, -3.0, -2.0, -5.0]).best_accuracy().threshold == 0.0
    none = curve_of([0, 0, 0, 1], [4.0, 3.0, 2.0, 1.0]).best_accuracy()
    assert none.threshold == np.nextafter(4.0, 5.0)
    near = [1.0, np.nextafter(1.0, 2.0)]
    assert curve_of([0, 1], near).best_accuracy().threshold == near[1]


# ---- averages -------------------------------------------------------------------------------


def test_average_of_one_curve_is_the_curve():
    rng = np.random.default_rng(0)
    y, f = rng.random(50) < 0.4, rng.integers(0, 12, 50)
    curve = curve_of(y, f)
    average = average_curves([curve], np.unique(curve.fpr))
    for x, tpr in zip(average.grid, average.tpr, strict=True):
        assert tpr == curve.tpr[np.isclose(curve.fpr, x)].max()
    average = average_curves([curve], np.unique(curve.recall)[1:])
    for x, precision in zip(average.grid, average.precision, strict=True):
        assert precision == pytest.approx(curve.precision[np.isclose(curve.recall, x)].max())
    assert average.auc == curve.auc
    assert not average.tpr_std.any()
    assert average.auc_std == 0


def test_between_points_the_rates_are_those_of_chance():
    """Calling a tied row positive with probability p: tpr is linear in fpr, precision is not."""
    curve = curve_of([1, 1, 1, 0, 0, 1, 0], [2, 1, 1, 1, 1, 1, 0])  # groups 1+0-, 3+2-, 0+1-
    p = np.linspace(0, 1, 11)
    tp, fp = 1 + 3 * p, 2 * p
    at = average_curves([curve], fp[1:] / 3)
    np.testing.assert_allclose(at.tpr, tp[1:] / 4)
    at = average_curves([curve], tp / 4)
    np.testing.assert_allclose(at.precision, tp / (tp + fp))


def test_grid_points_that_are_rates_up_to_rounding():
    """fpr 3/10 and the grid's 0.3 are one place, whose best tpr counts."""
    y = np.tile([0, 1], 10)
    f = -np.arange(20.0)
    expected = np.linspace(0, 1, 11)
    average = average_curves([curve_of(y, f)], 11)
    np.testing.assert_allclose(average.tpr, expected, atol=1e-15)


def test_mean_and_spread_of_runs():
    first, second = curve_of([0, 0, 1, 1], [1, 2, 3, 4]), curve_of([0, 0, 1, 1], [1, 3, 2, 4])
    average = average_curves([first, second], 3)
    np.testing.assert_allclose(average.grid, [0, 0.5, 1])
    np.testing.assert_allclose(average.tpr, [0.75, 1, 1])
    np.testing.assert_allclose(average.tpr_std, [math.sqrt(0.125), 0, 0])
    np.testing.assert_allclose(average.precision, [1, 1, (1 + 2 / 3) / 2])
    assert average.auc == pytest.approx((1 + 0.75) / 2)
    assert average.auc_std == pytest.approx(0.25 / math.sqrt(2))
    assert average.n_runs == 2
    rescaled = curve_of([0, 0, 1, 1], [10, 30, 20, 40])  # thresholds take no part
    np.testing.assert_array_equal(average_curves([first, rescaled], 3).tpr, average.tpr)


def test_precision_of_a_curve_that_begins_with_errors():
    curve = curve_of([0, 1, 1], [3, 2, 1])
    average = average_curves([curve], np.array([0.0, 0.25, 0.5, 1.0]))
    np.testing.assert_allclose(average.precision, [0, 0.5 / 1.5, 0.5, 2 / 3])


def test_average_refuses():
    curve = curve_of([0, 1], [1, 2])
    with pytest.raises(SettingsError, match="no curves"):
        average_curves([])
    with pytest.raises(SettingsError, match="a grid of 1 points"):
        average_curves([curve], 1)
    for grid in ([0.5, 0.5], [-0.1, 0.5], [0.5, 1.1], []):
        with pytest.raises(SettingsError, match="has to rise"):
            average_curves([curve], np.array(grid))


def test_large_curve_is_fast_and_finite():
    rng = np.random.default_rng(1)
    y = rng.random(200_000) < 0.01
    curve = curve_of(y, rng.normal(size=y.size) + y)
    assert isinstance(curve, Curve)
    assert 0.7 < curve.auc < 0.8
    assert np.isfinite(average_curves([curve, curve]).precision).all()


# ---- class scores, models -------------------------------------------------------------------


def test_scores_of_the_classes_by_code():
    decision = np.array([[1.0, -2.0, 0.5], [-1.0, 3.0, 2.0]])
    np.testing.assert_array_equal(
        class_scores(decision[:, :1], np.array([[-1], [1]])), [[-1, 1], [1, -1]]
    )
    pairwise = ovo_code(3)
    np.testing.assert_array_equal(class_scores(decision, pairwise), ovr_scores(decision, pairwise))
    each = np.array([[-1, 1, -1], [-1, -1, 1], [1, -1, -1]])  # machine 0 is of class 2
    np.testing.assert_array_equal(class_scores(decision, each), decision[:, [1, 2, 0]])
    other = np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [0, 0, -1]])
    np.testing.assert_allclose(
        class_scores(decision, other), [[-0.5, 1.5, -0.25, -0.5], [1, -2, 1.5, -2]]
    )


def test_models_without_classes_have_no_curves():
    model = SimpleNamespace(n_classes=0, machine="svr", classes=np.empty(0))
    with pytest.raises(ModelError, match=r"f\.kfu: machine svr knows no classes"):
        check_alike([("f.kfu", model)])


# ---- DeLong ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(scored_rows(), st.integers(0, 10**6))
def test_variance_is_that_of_all_pairs(rows, seed):
    positive, first, _ = rows
    if min(positive.sum(), (~positive).sum()) < 2:
        return
    second = first + np.random.default_rng(seed).integers(-1, 2, size=first.size)
    areas, covariance = areas_and_covariance(positive, first, second)
    ones = np.ones(first.size)
    for k, f in enumerate((first, second)):
        assert areas[k] == pytest.approx(oracle.area(positive, f, ones), abs=1e-14)
        for j, g in enumerate((first, second)):
            expected = oracle.area_covariance(positive, f, g)
            assert covariance[k, j] == pytest.approx(expected, abs=1e-15, rel=1e-10)


def test_interval_covers_the_truth():
    """Normal classes one apart: AUC = Φ(1/√2); 95% intervals miss it about 5 times in 100."""
    rng = np.random.default_rng(5)
    truth = 0.5 * (1 + math.erf(0.5))
    y = np.repeat([False, True], [60, 40])
    missed = 0
    for _ in range(300):
        found = auc_interval(y, rng.normal(size=100) + y)
        assert found.low <= found.auc <= found.high
        missed += not found.low <= truth <= found.high
    assert 5 <= missed <= 30


def test_two_scores_of_the_same_rows():
    rng = np.random.default_rng(8)
    y = rng.random(150) < 0.5
    good, bad = rng.normal(size=150) + 2 * y, rng.normal(size=150)
    found = delong_test(y, good, bad)
    assert found.mean_difference == pytest.approx(auc(y, good) - auc(y, bad))
    variance = sum(oracle.area_covariance(y, f, f) for f in (good, bad))
    variance -= 2 * oracle.area_covariance(y, good, bad)
    assert found.statistic == pytest.approx(found.mean_difference / math.sqrt(variance))
    assert found.p_value == pytest.approx(math.erfc(found.statistic / math.sqrt(2)), rel=1e-9)
    half = 1.959963984540054 * math.sqrt(variance)
    assert (found.low, found.high) == pytest.approx(
        (found.mean_difference - half, found.mean_difference + half)
    )
    other = delong_test(y, bad, good)
    assert (other.statistic, other.p_value) == pytest.approx((-found.statistic, found.p_value))


def test_scores_that_order_alike_do_not_differ():
    rng = np.random.default_rng(8)
    y = rng.random(50) < 0.5
    f = rng.normal(size=50)
    found = delong_test(y, f, np.exp(f))
    assert (found.statistic, found.p_value, found.mean_difference) == (0.0, 1.0, 0.0)
    assert (found.low, found.high) == (0.0, 0.0)
    reversed_ = delong_test([0, 0, 1, 1], [1, 2, 3, 4], [4, 3, 2, 1])
    assert (reversed_.statistic, reversed_.p_value) == (math.inf, 0.0)


def test_a_single_row_of_a_class_has_no_interval():
    found = auc_interval([0, 0, 1], [1, 3, 2])
    assert found.auc == 0.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(delong_test([0, 0, 1], [1, 3, 2], [1, 2, 3]).p_value)


def test_delong_refuses():
    with pytest.raises(DataError, match="every row is positive"):
        auc_interval([1, 1], [1, 2])
    with pytest.raises(DataError, match="no row is positive"):
        auc_interval([0, 0], [1, 2])
    with pytest.raises(SettingsError, match="a confidence of 95"):
        auc_interval([0, 1], [1, 2], confidence=95)
    with pytest.raises(DataError, match="3 numbers for 2 rows"):
        delong_test([0, 1], [1, 2], [1, 2, 3])
