"""ROC and precision-recall curves, their areas, and averages of curves.

A score f and a threshold t call a row positive when f ≥ t. With P and N the weights of the positive
and of the negative rows, and TP(t), FP(t) the weights of those with f ≥ t,

    tpr = recall = TP/P,   fpr = FP/N,   precision = TP/(TP + FP).

There is one point for each distinct score (rows of equal score are called positive together), and
the point (0, 0) before them, at the threshold +inf. Curves are exact: no grid, no binning.

- AUC: the area under the polygon through the ROC points, which is the probability that a positive
  row scores above a negative one, equal scores counted one half (the Mann-Whitney statistic):
  Hanley and McNeil, Radiology 143 (1982).
- Average precision: Σ (recall_k − recall_{k−1}) precision_k, no interpolation.
- Averages over runs are vertical (Fawcett, *An introduction to ROC analysis*, Pattern Recognition
  Letters 27, 2006): mean and standard deviation of tpr at each fpr of a grid, and of precision at
  each recall. Thresholds take no part, so that scores of different runs need not be comparable.
  Between points tpr is linear in fpr; precision is not linear in recall, FP is linear in TP (Davis
  and Goadrich, ICML 2006). Where a curve is vertical, its best value counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.validation.checked import flags, numbers, row_weights

__all__ = [
    "AverageCurve",
    "BestThreshold",
    "Curve",
    "auc",
    "average_curves",
    "average_precision",
    "curve_of",
]

# Two rates this close are the same: grids like 0.3 and rates like 3/10 differ by rounding.
SAME_RATE = 1e-12


class BestThreshold(NamedTuple):
    """Call rows with f ≥ ``threshold`` positive; ``value`` is what was maximised there."""

    threshold: float
    value: float
    fpr: float
    tpr: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Weights of true and false positives at falling thresholds, from (0, 0) to (P, N)."""

    thresholds: np.ndarray  #: +inf, then the distinct scores, falling
    true_positives: np.ndarray
    false_positives: np.ndarray

    @property
    def positives(self) -> float:
        return float(self.true_positives[-1])

    @property
    def negatives(self) -> float:
        return float(self.false_positives[-1])

    @property
    def tpr(self) -> np.ndarray:
        return self.true_positives / self.positives

    recall = tpr

    @property
    def fpr(self) -> np.ndarray:
        return self.false_positives / self.negatives

    @property
    def precision(self) -> np.ndarray:
        """TP/(TP + FP); 1 at the first point, where no row is called positive."""
        called = self.true_positives + self.false_positives
        return np.divide(self.true_positives, called, out=np.ones_like(called), where=called > 0)

    @property
    def auc(self) -> float:
        """Area under the ROC curve: the share of pairs in order, equal scores counted half."""
        tp = self.true_positives
        pairs = np.diff(self.false_positives) @ (tp[1:] + tp[:-1]) / 2
        return float(pairs / (self.positives * self.negatives))

    @property
    def average_precision(self) -> float:
        return float(np.diff(self.true_positives) @ self.precision[1:] / self.positives)

    @property
    def accuracy(self) -> np.ndarray:
        """The share of rows called right at each threshold."""
        right = self.true_positives + (self.negatives - self.false_positives)
        return right / (self.positives + self.negatives)

    def best_accuracy(self) -> BestThreshold:
        return self.best(self.accuracy)

    def best_youden(self) -> BestThreshold:
        """The threshold with the largest tpr − fpr (Youden, Cancer 3, 1950)."""
        return self.best(self.tpr - self.fpr)

    def best(self, values: np.ndarray) -> BestThreshold:
        """The threshold where ``values`` (one per point) is largest.

        All thresholds between two neighbouring scores are alike: 0, the machine's own, is taken
        where it is among them, else the middle. Among equal values the threshold nearest to 0 is
        taken; values are compared up to rounding.
        """
        scores = self.thresholds[1:]
        below = np.append(scores, -np.inf)  # the largest score not called positive at a point
        above = np.append(np.inf, scores)  # the smallest score called positive
        with np.errstate(invalid="ignore"):
            middle = below + (above - below) / 2
        middle = np.where(middle > below, middle, above)
        middle[0] = np.nextafter(scores[0], np.inf)
        middle[-1] = scores[-1]
        middle[(below < 0) & (above >= 0)] = 0.0
        candidates = np.flatnonzero(values >= values.max() - SAME_RATE)
        k = int(candidates[np.argmin(np.abs(middle[candidates]))])
        return BestThreshold(
            float(middle[k]), float(values[k]), float(self.fpr[k]), float(self.tpr[k])
        )

    def tpr_at(self, fpr: np.ndarray) -> np.ndarray:
        """tpr where the curve passes the given fpr; the upper end where it is vertical."""
        x, y = self.fpr, self.tpr
        left = np.searchsorted(x, fpr + SAME_RATE, side="right") - 1
        return between(x, y, left, np.minimum(left + 1, x.size - 1), fpr)

    def precision_at(self, recall: np.ndarray) -> np.ndarray:
        """Precision where the curve passes the given recall; the upper end where it is vertical.

        At recall 0 it is the precision of the highest score.
        """
        x = self.recall
        right = np.clip(np.searchsorted(x, recall - SAME_RATE, side="left"), 0, x.size - 1)
        left = np.maximum(right - 1, 0)
        wanted = np.clip(recall, 0.0, 1.0)
        fp = between(x, self.false_positives, left, right, wanted)
        tp = wanted * self.positives
        called = tp + fp
        return np.divide(tp, called, out=np.full_like(called, self.precision[1]), where=tp > 0)


def between(
    x: np.ndarray, y: np.ndarray, left: np.ndarray, right: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """y at ``at`` on the line through the points left and right; y[left] where they coincide."""
    width = x[right] - x[left]
    share = np.divide(at - x[left], width, out=np.zeros_like(at), where=width > 0)
    return y[left] + np.clip(share, 0.0, 1.0) * (y[right] - y[left])


def curve_of(is_positive: Any, scores: Any, weights: Any = None) -> Curve:
    """The curve of ``scores`` for rows that are positive or not. Rows of weight 0 do not count."""
    f = numbers(scores, "scores")
    positive = flags(is_positive, "labels", f.size)
    w = row_weights(weights, f.size)
    counted = w > 0
    f, positive, w = f[counted], positive[counted], w[counted]
    if f.size == 0 or positive.all() or not positive.any():
        found = (
            "no rows" if f.size == 0 else f"every row is {'' if positive[0] else 'not '}positive"
        )
        raise DataError("labels", None, found, "a curve needs positive and negative rows")
    order = np.argsort(-f, kind="stable")
    f, positive, w = f[order], positive[order], w[order]
    last = np.append(np.flatnonzero(f[1:] != f[:-1]), f.size - 1)  # of each group of equal scores
    tp = np.cumsum(np.where(positive, w, 0.0))[last]
    fp = np.cumsum(np.where(positive, 0.0, w))[last]
    return Curve(np.append(np.inf, f[last]), np.append(0.0, tp), np.append(0.0, fp))


def auc(is_positive: Any, scores: Any, weights: Any = None) -> float:
    """The area under the ROC curve."""
    return curve_of(is_positive, scores, weights).auc


def average_precision(is_positive: Any, scores: Any, weights: Any = None) -> float:
    """Σ (recall_k − recall_{k−1}) precision_k over falling thresholds."""
    return curve_of(is_positive, scores, weights).average_precision


@dataclass(frozen=True, eq=False)
class AverageCurve:
    """Vertical averages of n_runs curves; standard deviations have n_runs − 1 below the line.

    ``grid`` holds the values of fpr for ``tpr`` and those of recall for ``precision``. ``auc`` and
    ``average_precision`` are means of the runs' exact areas, not areas of the averaged curves.
    """

    grid: np.ndarray
    tpr: np.ndarray
    tpr_std: np.ndarray
    precision: np.ndarray
    precision_std: np.ndarray
    n_runs: int
    auc: float
    auc_std: float
    average_precision: float
    average_precision_std: float


def average_curves(curves: Sequence[Curve], grid: np.ndarray | int = 101) -> AverageCurve:
    """The average of ``curves`` over a grid of rates, given or as so many equal steps from 0 to 1.

    With one curve the standard deviations are 0.
    """
    if not curves:
        raise SettingsError("no curves to average; give at least one")
    if isinstance(grid, (int, np.integer)):
        if grid < 2:
            raise SettingsError(f"a grid of {grid} points; give at least 2")
        rates = np.linspace(0.0, 1.0, int(grid))
    else:
        rates = numbers(grid, "grid")
        if rates.size == 0 or rates.min() < 0 or rates.max() > 1 or np.any(np.diff(rates) <= 0):
            raise SettingsError("the grid of rates has to rise, from 0 or more to 1 or less")
    tpr, tpr_std = mean_and_std([curve.tpr_at(rates) for curve in curves])
    precision, precision_std = mean_and_std([curve.precision_at(rates) for curve in curves])
    area, area_std = mean_and_std([np.array(curve.auc) for curve in curves])
    mean_ap, std_ap = mean_and_std([np.array(curve.average_precision) for curve in curves])
    return AverageCurve(
        rates,
        tpr,
        tpr_std,
        precision,
        precision_std,
        len(curves),
        float(area),
        float(area_std),
        float(mean_ap),
        float(std_ap),
    )


def mean_and_std(runs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    stacked = np.stack(runs)
    spread = stacked.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros_like(stacked[0])
    return stacked.mean(axis=0), spread
