"""Isotonic calibration: the nondecreasing P(+|f) nearest to the outcomes in weighted least squares.

    min Σ w_i (P(f_i) − o_i)²  subject to  P(f_i) ≤ P(f_j) where f_i ≤ f_j

Rows with equal f are first replaced by their mean; then neighbours that violate the order are
pooled until none do. The fit is a step function with few steps; it is stored by the two ends of
each step (knots), interpolated linearly between steps and constant outside the outputs seen.
Values are kept within [1/(n + 2), 1 − 1/(n + 2)], n the weight of the sample: no finite sample
shows that a class is impossible. There is no other smoothing.

It follows any monotone distortion, and needs more rows than the sigmoid to do so, about
a thousand.

Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates
(KDD 2002); Ayer et al., An empirical distribution function for sampling with incomplete
information, Ann. Math. Stat. 26 (1955).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.calibration.sample import Sample, make_sample

try:  # since SciPy 1.12
    from scipy.optimize import isotonic_regression as scipy_isotonic
except ImportError:  # pragma: no cover
    scipy_isotonic = None

__all__ = ["Isotonic", "fit_isotonic"]


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Piecewise linear P(+|f) through the knots (decision, probability), constant outside."""

    decision: np.ndarray  #: float64 (k,), strictly increasing
    probability: np.ndarray  #: float64 (k,), nondecreasing, in (0, 1)

    is_increasing = True

    def __call__(self, decision: Any) -> np.ndarray:
        """P(+|f) of each decision value."""
        f = np.asarray(decision, dtype=np.float64)
        return np.asarray(np.interp(f, self.decision, self.probability))

    def to_dict(self) -> dict[str, Any]:
        return {"decision": self.decision.tolist(), "probability": self.probability.tolist()}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Isotonic:
        """The inverse of `to_dict`; ValueError for anything else."""
        if not isinstance(values, Mapping) or set(values) != {"decision", "probability"}:
            raise ValueError("an isotonic link has the entries decision and probability")
        try:
            f = np.array(values["decision"], dtype=np.float64)
            p = np.array(values["probability"], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("the knots of an isotonic link have to be numbers") from None
        if f.ndim != 1 or f.size == 0 or f.shape != p.shape:
            raise ValueError(f"isotonic knots of shapes {f.shape} and {p.shape} do not fit")
        if not (np.isfinite(f).all() and (np.diff(f) > 0).all()):
            raise ValueError("the outputs of isotonic knots have to be finite and increasing")
        if not ((p > 0).all() and (p < 1).all() and (np.diff(p) >= 0).all()):
            raise ValueError("the probabilities of isotonic knots have to increase within (0, 1)")
        return Isotonic(f, p)


def fit_isotonic(decision: Any, positive: Any, weight: Any = None) -> Isotonic:
    """The isotonic link for outputs f (n,) of one binary machine; O(n log n).

    `positive` is boolean, 0/1 or ±1.
    """
    return fit_isotonic_to(make_sample(decision, positive, weight))


def fit_isotonic_to(sample: Sample) -> Isotonic:
    """`fit_isotonic` of a checked sample."""
    order = np.argsort(sample.decision, kind="stable")
    f, w = sample.decision[order], sample.weight[order]
    first = np.flatnonzero(np.concatenate(([True], f[1:] != f[:-1])))
    weight = np.add.reduceat(w, first)
    wins = np.add.reduceat(np.where(sample.positive[order], w, 0.0), first)
    fitted = pool_adjacent_violators(wins / weight, weight)
    margin = 1 / (sample.weight.sum() + 2)
    return _knots(f[first], np.clip(fitted, margin, 1 - margin))


def pool_adjacent_violators(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The nondecreasing sequence nearest to `values` in weighted least squares; O(n)."""
    if scipy_isotonic is not None:
        return np.asarray(scipy_isotonic(values, weights=weight).x, dtype=np.float64)
    return _pool(values, weight)


def _pool(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The same without SciPy 1.12: a stack of blocks (sum, weight, length), merged as they come."""
    sums: list[float] = []
    weights: list[float] = []
    lengths: list[int] = []
    for total, w in zip((values * weight).tolist(), weight.tolist(), strict=True):
        length = 1
        while sums and sums[-1] * w >= total * weights[-1]:
            total += sums.pop()
            w += weights.pop()
            length += lengths.pop()
        sums.append(total)
        weights.append(w)
        lengths.append(length)
    return np.repeat(np.array(sums) / np.array(weights), lengths)


def _knots(f: np.ndarray, p: np.ndarray) -> Isotonic:
    """Only the first and the last point of each run of equal probabilities."""
    rises = p[1:] > p[:-1]
    kept = np.concatenate(([True], rises)) | np.concatenate((rises, [True]))
    # Means of one block may differ in the last bit; the knots never fall.
    return Isotonic(f[kept], np.maximum.accumulate(p[kept]))
