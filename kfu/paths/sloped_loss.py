"""The losses of the support vector machines, as one: two slopes and a tube.

    L(f) = Σ_i below_i (y_i − ε − f_i)₊ + above_i (f_i − y_i − ε)₊

  svc   ε = 0; weight c_i below for y = +1, above for y = −1: c_i (1 − y f)₊
  svr   weight c_i on both sides: c_i |f − y|_ε

The dual of min ½‖w‖² + C·L is max D = S(β) − ½ βᵀKβ over −C·above ≤ β ≤ C·below (and Σβ = 0 where
the bias is free), S(β) = yᵀβ − ε Σ|β|, f = Kβ + b. For any feasible β and any b

    primal − dual = βᵀKβ + C·L(Kβ + b) − S(β) ≥ 0.

The b that makes it smallest is a knot of L, found by sorting: with it the certificate does not lean
on how well a solver that stopped early has met the conditions of the free variables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-12  # of a sum of weights, relative to their total


def product(a: np.ndarray, b: np.ndarray) -> float:
    """Σ a_i b_i by pairwise summation: more accurate than BLAS, and without its threads, which cost
    more than the sum where cores are busy."""
    return float((a * b).sum())


@dataclass(frozen=True)
class SlopedLoss:
    """See the head of the file; arrays of one entry a row."""

    y: np.ndarray
    below: np.ndarray
    above: np.ndarray
    epsilon: float = 0.0

    @staticmethod
    def hinge(signs: np.ndarray, weights: np.ndarray) -> SlopedLoss:
        y = np.asarray(signs, dtype=np.float64)
        return SlopedLoss(y, np.where(y > 0, weights, 0.0), np.where(y < 0, weights, 0.0))

    @staticmethod
    def tube(y: np.ndarray, weights: np.ndarray, epsilon: float) -> SlopedLoss:
        weights = np.asarray(weights, dtype=np.float64)
        return SlopedLoss(np.asarray(y, dtype=np.float64), weights, weights, float(epsilon))

    def value(self, f: np.ndarray) -> float:
        """L(f)."""
        rest = self.y - f
        short = self.below * np.maximum(rest - self.epsilon, 0.0)
        return float((short + self.above * np.maximum(-rest - self.epsilon, 0.0)).sum())

    def gain(self, beta: np.ndarray) -> float:
        """S(β)."""
        total = product(self.y, beta)
        return total - self.epsilon * float(np.abs(beta).sum()) if self.epsilon else total

    def box(self, cost: float) -> tuple[np.ndarray, np.ndarray]:
        """The bounds of β."""
        return -cost * self.above, cost * self.below

    def best_bias(self, outputs: np.ndarray) -> float:
        """The b of least L(outputs + b); the middle where it is an interval.

        The slope of L in b is −Σ below before the first knot and grows by the weight of each knot
        it passes: y − ε − f with `below`, y + ε − f with `above`.
        """
        rest = self.y - outputs
        if self.epsilon == 0.0:
            knots, weights = rest, self.below + self.above
        else:
            knots = np.concatenate([rest - self.epsilon, rest + self.epsilon])
            weights = np.concatenate([self.below, self.above])
        counted = weights > 0.0
        if not counted.all():
            knots, weights = knots[counted], weights[counted]
        if knots.size == 0:
            return 0.0
        order = np.argsort(knots)
        slope = np.cumsum(weights[order]) - float(self.below.sum())
        rounding = ROUNDING * float(weights.sum())
        first = int(np.searchsorted(slope, -rounding))
        first = min(first, knots.size - 1)
        last = first
        if abs(slope[first]) <= rounding and first + 1 < knots.size:
            last = first + 1
        return 0.5 * float(knots[order[first]] + knots[order[last]])
