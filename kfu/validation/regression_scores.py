"""How well numbers are predicted: errors, explained variance, and agreement of the order.

With weights w (1 each by default), W = Σw, targets y and predictions f:

    mse = Σ w(y − f)²/W,   mae = Σ w|y − f|/W,   r2 = 1 − Σ w(y − f)²/Σ w(y − ȳ)², ȳ weighted.

Spearman's correlation is Pearson's of the mid-ranks; Kendall's is tau-b. Both count equal values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from kfu.errors import DataError
from kfu.validation.checked import numbers, row_weights

__all__ = ["REGRESSION_SCORES", "correlation", "kendall", "mae", "mse", "r2", "spearman"]


def mse(target: Any, predicted: Any, weights: Any = None) -> float:
    """Mean squared error."""
    y, f, w = checked(target, predicted, weights)
    return float(np.average((y - f) ** 2, weights=w))


def mae(target: Any, predicted: Any, weights: Any = None) -> float:
    """Mean absolute error."""
    y, f, w = checked(target, predicted, weights)
    return float(np.average(np.abs(y - f), weights=w))


def r2(target: Any, predicted: Any, weights: Any = None) -> float:
    """Share of the targets' variance that is explained; 0 is what their mean achieves.

    Targets that are all equal have no variance: 1 when they are met exactly, else 0. NaN for fewer
    than two rows that count.
    """
    y, f, w = checked(target, predicted, weights)
    if np.count_nonzero(w) < 2:
        return math.nan
    left = float(np.sum(w * (y - f) ** 2))
    if np.ptp(y[w > 0]) == 0:
        return 1.0 if left == 0 else 0.0
    return 1.0 - left / float(np.sum(w * (y - np.average(y, weights=w)) ** 2))


def correlation(first: Any, second: Any) -> float:
    """Pearson's correlation of two columns; NaN when one of them is constant."""
    a, b, _ = checked(first, second, None)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()  # so that no square over- or underflows
    return float(np.clip((a @ b) / math.sqrt(float(a @ a) * float(b @ b)), -1.0, 1.0))


def spearman(target: Any, predicted: Any) -> float:
    """Rank correlation: Pearson's of the mid-ranks; NaN when one of the columns is constant."""
    y, f, _ = checked(target, predicted, None)
    return correlation(stats.rankdata(y), stats.rankdata(f))


def kendall(target: Any, predicted: Any) -> float:
    """Kendall's tau-b; NaN when one of the columns is constant."""
    y, f, _ = checked(target, predicted, None)
    if np.ptp(y) == 0 or np.ptp(f) == 0:
        return math.nan
    return float(stats.kendalltau(y, f).statistic)


REGRESSION_SCORES: dict[str, Callable[..., float]] = {
    "mse": mse,
    "mae": mae,
    "r2": r2,
    "spearman": spearman,
    "kendall": kendall,
}


def checked(target: Any, predicted: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = numbers(target, "target")
    if y.size == 0:
        raise DataError("target", None, "no rows", "give at least one")
    return y, numbers(predicted, "predictions", y.size), row_weights(weights, y.size)
