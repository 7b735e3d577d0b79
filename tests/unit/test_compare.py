"""Tests between classifiers against their formulas, and their error rates under chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from kfu.errors import DataError, SettingsError
from kfu.validation.compare import corrected_resampled_t_test, mcnemar, paired_t_test


def correctness(b, c, both=10, neither=5):
    """Rows that the first alone, the second alone, both or neither get right."""
    first = np.repeat([True, False, True, False], [b, c, both, neither])
    second = np.repeat([False, True, True, False], [b, c, both, neither])
    return first, second


@pytest.mark.parametrize(("b", "c"), [(0, 1), (3, 9), (9, 3), (6, 6), (12, 12), (0, 20)])
def test_exact_p_value_is_the_sum_of_both_tails(b, c):
    found = mcnemar(*correctness(b, c), method="exact")
    weights = [math.comb(b + c, k) / 2 ** (b + c) for k in range(b + c + 1)]
    both_tails = sum(w for k, w in enumerate(weights) if abs(2 * k - b - c) >= abs(b - c))
    assert found.p_value == pytest.approx(both_tails, rel=1e-12)
    mid = mcnemar(*correctness(b, c), method="mid-p").p_value
    assert mid == pytest.approx(both_tails - (weights[b] if b != c else 0), rel=1e-12)
    n = b + c + 15
    assert found.mean_difference == pytest.approx((b - c) / n)
    per_row = np.array([1] * b + [-1] * c + [0] * 15)
    half = 1.959963984540054 * per_row.std() / math.sqrt(n)
    assert (found.low, found.high) == pytest.approx(
        (max(per_row.mean() - half, -1), min(per_row.mean() + half, 1))
    )
    assert found.degrees_of_freedom is None


def test_chi_squared_with_its_correction():
    found = mcnemar(*correctness(40, 20), method="chi2")
    assert found.statistic == pytest.approx(19**2 / 60)
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(found.statistic / 2)))
    assert found.degrees_of_freedom == 1
    assert mcnemar(*correctness(30, 30), method="chi2").p_value == 1.0
    assert mcnemar(*correctness(40, 20)) == found
    assert mcnemar(*correctness(14, 10)).test == "McNemar (exact)"


def test_classifiers_that_agree():
    found = mcnemar(*correctness(0, 0))
    assert (found.statistic, found.p_value, found.mean_difference) == (0.0, 1.0, 0.0)
    assert found.summary()["note"].startswith("0 rows right by the first alone")


def test_mcnemar_refuses():
    with pytest.raises(SettingsError, match="no rows"):
        mcnemar([], [])
    with pytest.raises(SettingsError, match="unknown method 'fisher'"):
        mcnemar([1, 0], [0, 1], method="fisher")
    with pytest.raises(DataError, match="y == positive"):
        mcnemar([1, 2], [0, 1])
    with pytest.raises(DataError, match="one value per row"):
        mcnemar(np.array([True, False]), np.array([True]))


def test_corrected_t_is_the_formula():
    d = np.random.default_rng(0).normal(0.02, 0.05, size=50)
    found = corrected_resampled_t_test(d, 100, 100)  # 50 splits into halves
    s2 = np.sum((d - d.mean()) ** 2) / 49
    error = math.sqrt((1 / 50 + 1) * s2)
    assert found.statistic == pytest.approx(d.mean() / error)
    assert found.degrees_of_freedom == 49
    assert found.p_value == pytest.approx(2 * stats.t.cdf(-abs(d.mean() / error), 49))
    half = stats.t.ppf(0.975, 49) * error
    assert (found.low, found.high) == pytest.approx((d.mean() - half, d.mean() + half))
    sizes = corrected_resampled_t_test(d, np.full(50, 90), [9, 11] * 25)
    assert sizes.statistic == corrected_resampled_t_test(d, 90, 10).statistic


def test_plain_t_is_scipys_and_warns_of_itself():
    a, b = np.random.default_rng(1).random((2, 10))
    found = paired_t_test(a - b)
    expected = stats.ttest_rel(a, b)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert "p-value is too small" in found.note


def test_correction_keeps_the_error_rate_where_the_plain_test_does_not():
    """Means over overlapping halves of the same 40 numbers of mean 0: 5% should be rejected."""
    rng = np.random.default_rng(7)
    plain = corrected = 0
    for _ in range(300):
        sample = rng.normal(size=40)
        d = np.array([sample[rng.permutation(40)[:20]].mean() for _ in range(15)])
        plain += paired_t_test(d).p_value < 0.05
        corrected += corrected_resampled_t_test(d, 20, 20).p_value < 0.05
    assert plain > 60
    assert corrected < 30


def test_differences_without_spread():
    found = corrected_resampled_t_test([0.1] * 5, 80, 20)
    assert (found.statistic, found.p_value) == (math.inf, 0.0)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert paired_t_test([-0.1] * 3).statistic == -math.inf
    found = paired_t_test([0.0, 0.0])
    assert (found.statistic, found.p_value, found.low, found.high) == (0.0, 1.0, 0.0, 0.0)


def test_t_tests_refuse():
    with pytest.raises(SettingsError, match="needs at least 2 splits"):
        paired_t_test([0.1])
    with pytest.raises(DataError, match="NaN in row 1"):
        paired_t_test([0.1, math.nan])
    with pytest.raises(SettingsError, match="parts of 0 and 10 rows"):
        corrected_resampled_t_test([0.1, 0.2], 0, 10)
    with pytest.raises(SettingsError, match="a confidence of 1"):
        paired_t_test([0.1, 0.2], confidence=1)
