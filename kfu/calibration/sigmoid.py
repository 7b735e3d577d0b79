"""Platt's sigmoid: P(+|f) = 1 / (1 + exp(A f + B)), fitted by regularised maximum likelihood.

    min over A, B of  −Σ w_i [t_i log P_i + (1 − t_i) log(1 − P_i)],
    t = (N₊ + 1)/(N₊ + 2) for positive rows,  1/(N₋ + 2) for negative rows,

N₊ and N₋ the weights of the two sides. The targets are what a uniform prior on each side's rate
leaves after its rows were seen; they keep A finite where the rows are separated, and B where all
rows are of one side. With z = A f + B the loss of a row is log(1 + e^z) − (1 − t) z: convex, and
evaluated without overflow. It is minimised by Newton's method with backtracking in f shifted and
scaled to mean 0 and variance 1, so neither the unit of f nor its offset matters.

A < 0 where larger outputs are more often positive. A > 0 says that they are less often, which on
out-of-sample outputs means that the machine has learnt nothing; it is reported as it is
(`is_increasing`).

Platt, Probabilistic outputs for support vector machines (1999); Lin, Lin and Weng, A note on
Platt's probabilistic outputs for support vector machines, Machine Learning 68 (2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from kfu.calibration.sample import Sample, make_sample

__all__ = ["Sigmoid", "fit_sigmoid"]

MOST_STEPS = 200
# A Newton step this small, relative to max(1, |A|, |B|) in scaled f, is the last: its error is
# about the square.
SMALL_STEP = 1e-9
# Relative rounding error allowed for in a loss.
LOSS_ROUNDING = 1e-13
# Spread of f below this, relative to its magnitude, is rounding: f is constant.
CONSTANT = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Sigmoid:
    """P(+|f) = 1 / (1 + exp(A f + B))."""

    A: float
    B: float

    @property
    def is_increasing(self) -> bool:
        """Whether larger outputs are not less probable to be positive."""
        return self.A <= 0

    @property
    def threshold(self) -> float:
        """The output of probability ½: −B/A; NaN for a constant sigmoid."""
        return -self.B / self.A if self.A else math.nan

    def __call__(self, decision: Any) -> np.ndarray:
        """P(+|f) of each decision value."""
        f = np.asarray(decision, dtype=np.float64)
        with np.errstate(over="ignore"):  # an infinite exponent is the probability 0 or 1
            return np.asarray(expit(-(self.A * f + self.B)))

    def to_dict(self) -> dict[str, Any]:
        return {"A": self.A, "B": self.B}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Sigmoid:
        """The inverse of `to_dict`; ValueError for anything else."""
        if not isinstance(values, Mapping) or set(values) != {"A", "B"}:
            raise ValueError("a sigmoid has the entries A and B")
        for name in ("A", "B"):
            value = values[name]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value):
                raise ValueError(f"{name} of a sigmoid has to be a finite number, not {value!r}")
        return Sigmoid(float(values["A"]), float(values["B"]))


def fit_sigmoid(decision: Any, positive: Any, weight: Any = None) -> Sigmoid:
    """The sigmoid of largest regularised likelihood for outputs f (n,) of one binary machine.

    `positive` is boolean, 0/1 or ±1. Where f is constant or all rows are of one side, A is 0 and P
    the mean target.
    """
    return fit_sigmoid_to(make_sample(decision, positive, weight))


def fit_sigmoid_to(sample: Sample) -> Sigmoid:
    """`fit_sigmoid` of a checked sample."""
    n_positive, n_negative = sample.n_positive, sample.n_negative
    # 1 − t, kept as such because t rounds to 1 for large counts.
    rest = np.where(sample.positive, 1 / (n_positive + 2), (n_negative + 1) / (n_negative + 2))
    below = sample.weight @ rest
    above = n_positive * (n_positive + 1) / (n_positive + 2) + n_negative / (n_negative + 2)
    flat = math.log(below / above)
    f = sample.decision
    magnitude = float(np.abs(f).max())
    if magnitude == 0 or n_positive == 0 or n_negative == 0:
        return Sigmoid(0.0, flat)
    relative = f / magnitude
    share = sample.weight / sample.weight.sum()
    centre = float(share @ relative)
    spread = math.sqrt(share @ (relative - centre) ** 2)
    if not spread > CONSTANT:
        return Sigmoid(0.0, flat)
    slope, offset = _newton((relative - centre) / spread, rest, share, flat)
    with np.errstate(over="ignore"):
        A = float(np.float64(slope) / spread / magnitude)
    B = offset - slope * centre / spread
    return Sigmoid(A, B) if math.isfinite(A) else Sigmoid(0.0, flat)


def _newton(g: np.ndarray, rest: np.ndarray, share: np.ndarray, flat: float) -> tuple[float, float]:
    """The minimiser (A, B) for outputs g of mean 0 and variance 1, from A = 0."""
    point = np.array([0.0, flat])
    value = _loss(point, g, rest, share)
    for _ in range(MOST_STEPS):
        up = expit(point[0] * g + point[1])  # 1 − P
        slope = share * (up - rest)
        gradient = np.array([slope @ g, slope.sum()])
        curve = share * up * (1 - up)
        h_aa, h_ab, h_bb = curve @ (g * g), curve @ g, curve.sum()
        ridge = 1e-14 * (h_aa + h_bb) + np.finfo(np.float64).tiny
        step = -np.linalg.solve([[h_aa + ridge, h_ab], [h_ab, h_bb + ridge]], gradient)
        descent = gradient @ step
        length = 1.0
        is_last = np.abs(step).max() <= SMALL_STEP * max(1.0, np.abs(point).max())
        while not is_last:
            trial = _loss(point + length * step, g, rest, share)
            # Near the minimum the loss no longer resolves a step, and full steps are right.
            if trial <= value + 1e-4 * length * descent + LOSS_ROUNDING * abs(value):
                break
            length /= 2
            if length < 1e-10:
                return float(point[0]), float(point[1])
        point = point + length * step
        if is_last:
            break
        value = trial
    return float(point[0]), float(point[1])


def _loss(point: np.ndarray, g: np.ndarray, rest: np.ndarray, share: np.ndarray) -> float:
    z = point[0] * g + point[1]
    return float(share @ (np.logaddexp(0.0, z) - rest * z))
