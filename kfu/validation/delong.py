"""Confidence intervals and tests of the area under the ROC curve (DeLong).

With positive rows x_1 … x_m and negative rows z_1 … z_n, ψ(x, z) = 1, ½, 0 for f(x) >, =, < f(z),

    AUC = mean ψ,   V_i = mean_j ψ(x_i, z_j),   W_j = mean_i ψ(x_i, z_j),
    var AUC = S_V/m + S_W/n,

S the sample variances, and covariances for two scores of the same rows. DeLong, DeLong and
Clarke-Pearson, Biometrics 44 (1988). V and W come from mid-ranks in O(n log n) rather than from the
m·n pairs (Sun and Xu, IEEE Signal Processing Letters 21, 2014):

    V_i = (rank of x_i in all − rank of x_i in the positives)/n,
    W_j = 1 − (rank of z_j in all − rank of z_j in the negatives)/m.

Intervals are normal ones cut to [0, 1]. Where the classes are separated perfectly the variance is 0
and the interval a point, which says little; with a single row of a class there is no variance, and
the ends are NaN. Weights have no place in this variance.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from kfu.errors import DataError
from kfu.validation.checked import flags, numbers
from kfu.validation.compare import Comparison, check_confidence, normal_quantile

__all__ = ["AucInterval", "auc_interval", "delong_test"]

# A variance below this share of the two it is the difference of is rounding (equal scores).
ROUNDING = 1e-14


class AucInterval(NamedTuple):
    auc: float
    low: float
    high: float
    std_error: float
    confidence: float


def auc_interval(is_positive: Any, scores: Any, confidence: float = 0.95) -> AucInterval:
    """The AUC of ``scores`` with its interval."""
    check_confidence(confidence)
    areas, covariance = areas_and_covariance(is_positive, scores)
    error = math.sqrt(covariance[0, 0]) if covariance[0, 0] >= 0 else math.nan
    low, high = cut(areas[0], normal_quantile(confidence) * error, 0.0, 1.0)
    return AucInterval(float(areas[0]), low, high, error, confidence)


def delong_test(
    is_positive: Any, scores_a: Any, scores_b: Any, confidence: float = 0.95
) -> Comparison:
    """Whether two scores of the same rows have the same AUC; the statistic is normal.

    Scores that order every pair alike have difference 0, statistic 0 and p-value 1.
    """
    check_confidence(confidence)
    areas, covariance = areas_and_covariance(is_positive, scores_a, scores_b)
    difference = float(areas[0] - areas[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    if variance <= ROUNDING * (covariance[0, 0] + covariance[1, 1]):
        variance = 0.0
    error = math.sqrt(variance) if variance >= 0 else math.nan
    if error > 0 or math.isnan(error):
        statistic = difference / error
        p_value = float(2 * stats.norm.sf(abs(statistic)))
    else:
        statistic = math.copysign(math.inf, difference) if difference else 0.0
        p_value = 0.0 if difference else 1.0
    low, high = cut(difference, normal_quantile(confidence) * error, -1.0, 1.0)
    return Comparison("DeLong", statistic, None, p_value, difference, low, high, confidence)


def cut(middle: float, half: float, least: float, most: float) -> tuple[float, float]:
    if math.isnan(half):
        return math.nan, math.nan
    return max(float(middle) - half, least), min(float(middle) + half, most)


def areas_and_covariance(is_positive: Any, *scores: Any) -> tuple[np.ndarray, np.ndarray]:
    """The AUC of each of ``scores`` and the covariance matrix of these areas (NaN if unknown)."""
    columns = [numbers(values, "scores") for values in scores]
    positive = flags(is_positive, "labels", columns[0].size)
    m, n = int(positive.sum()), int((~positive).sum())
    if m == 0 or n == 0:
        found = "no row is positive" if m == 0 else "every row is positive"
        raise DataError("labels", None, found, "an area needs positive and negative rows")
    V, W = np.empty((len(columns), m)), np.empty((len(columns), n))
    for k, f in enumerate(columns):
        numbers(f, "scores", positive.size)
        in_all = stats.rankdata(f)
        V[k] = (in_all[positive] - stats.rankdata(f[positive])) / n
        W[k] = 1 - (in_all[~positive] - stats.rankdata(f[~positive])) / m
    areas = V.mean(axis=1)
    if min(m, n) < 2:
        return areas, np.full((len(columns), len(columns)), np.nan)
    return areas, np.atleast_2d(np.cov(V)) / m + np.atleast_2d(np.cov(W)) / n
