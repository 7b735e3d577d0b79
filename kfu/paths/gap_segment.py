"""What two approximate solutions prove of every cost between theirs.

β₀ at C₀ and β₁ at C₁ > C₀ are feasible (kfu.paths.sloped_loss). For 0 ≤ μ ≤ 1 let

    C_μ = (1−μ) C₀ + μ C₁,   β_μ = (1−μ) β₀ + μ β₁.

The box of C is linear in C, so β_μ is feasible for C_μ: no kernel value is needed to have a
solution at any cost between, nor to judge it, since its outputs Kβ_μ are those of the ends, mixed.
The gap

    G(μ) = ‖w_μ‖² + C_μ L(Kβ_μ + b_μ) − S(β_μ)

has a first term that is quadratic in μ and known from three numbers, β₀ᵀKβ₀, β₀ᵀKβ₁, β₁ᵀKβ₁. L
is evaluated at a few knots μ_j, each with its best bias; between two knots b_μ is taken linear, so
that f is linear in μ, L convex and S concave: their chords bound them on the right side. With
chords, G and the primal P are quadratic on each piece, and the largest value of G/P there is at its
ends or where (G/P)' = 0, a quadratic equation. As P − G is not negative, (P − D)/P grows with P and
falls with D, so what is proved with bounds holds for the values, at all costs, not at sampled ones.

Between exact solutions without an event between them β is linear in C, and G = 0. In general, G is
of second order in C₁ − C₀: the number of breakpoints grows as 1/√gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kfu.paths.sloped_loss import SlopedLoss, product

if TYPE_CHECKING:
    from kfu.paths.gap_breakpoint import Breakpoint

N_PIECES = 8  # between knots
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Judgement:
    """Primal value and gap at one cost, both bounds from above, and the bias they are for."""

    primal: float
    gap: float
    bias: float

    @property
    def relative(self) -> float:
        return self.gap / self.primal if self.primal > 0.0 else 0.0


class Segment:
    """The costs between two breakpoints; see the head of the file."""

    def __init__(self, low: Breakpoint, high: Breakpoint, loss: SlopedLoss, has_bias: bool) -> None:
        self.low, self.high = low, high
        across = product(low.beta, high.outputs)
        self.norms = (low.norm, across, high.norm)
        self.knots = np.linspace(0.0, 1.0, N_PIECES + 1)
        self.biases = np.empty(N_PIECES + 1)
        self.losses = np.empty(N_PIECES + 1)
        self.gains = np.empty(N_PIECES + 1)
        for j, mu in enumerate(self.knots):
            outputs = (1.0 - mu) * low.outputs + mu * high.outputs
            self.biases[j] = loss.best_bias(outputs) if has_bias else 0.0
            self.losses[j] = loss.value(outputs + self.biases[j])
            self.gains[j] = (1.0 - mu) * low.gain + mu * high.gain
            if loss.epsilon and 0 < j < N_PIECES:
                self.gains[j] = loss.gain(self.beta(mu))
        self.worst = self._worst()

    @property
    def sag(self) -> float:
        """How far the relative gap inside lies above the line between those of the ends."""
        judged = np.array([self.judge(float(mu)).relative for mu in self.knots])
        line = np.interp(self.knots, [0.0, 1.0], [judged[0], judged[-1]])
        return float((judged - line).max())

    def place(self, cost: float) -> float:
        """μ of a cost."""
        width = self.high.cost - self.low.cost
        return min(max((cost - self.low.cost) / width, 0.0), 1.0) if width > 0.0 else 0.0

    def beta(self, mu: float) -> np.ndarray:
        """β_μ. What is at the same bound at both ends is exactly at it: the box is that of C_μ."""
        return (1.0 - mu) * self.low.beta + mu * self.high.beta

    def outputs(self, mu: float) -> np.ndarray:
        return (1.0 - mu) * self.low.outputs + mu * self.high.outputs

    def judge(self, mu: float) -> Judgement:
        """The bounds at μ."""
        bias = float(np.interp(mu, self.knots, self.biases))
        loss = float(np.interp(mu, self.knots, self.losses))
        gain = float(np.interp(mu, self.knots, self.gains))
        cost = (1.0 - mu) * self.low.cost + mu * self.high.cost
        norm = float(self._norm(np.array(mu)))
        return Judgement(0.5 * norm + cost * loss, max(norm + cost * loss - gain, 0.0), bias)

    def _norm(self, mu: np.ndarray) -> np.ndarray:
        first, across, second = self.norms
        return (1.0 - mu) ** 2 * first + 2.0 * mu * (1.0 - mu) * across + mu**2 * second

    def _worst(self) -> float:
        """The largest relative gap of the bounds over all pieces."""
        begin, end = self.knots[:-1], self.knots[1:]
        values = []
        for part in (0.0, 0.5, 1.0):
            mu = (1.0 - part) * begin + part * end
            cost = (1.0 - mu) * self.low.cost + mu * self.high.cost
            loss = (1.0 - part) * self.losses[:-1] + part * self.losses[1:]
            gain = (1.0 - part) * self.gains[:-1] + part * self.gains[1:]
            norm = self._norm(mu)
            values.append((norm + cost * loss - gain, 0.5 * norm + cost * loss))
        gap = _quadratic(*(value[0] for value in values))
        primal = _quadratic(*(value[1] for value in values))
        # (g/p)' = 0  <=>  g'p - gp' = 0; the cubic terms cancel.
        a = gap[2] * primal[1] - gap[1] * primal[2]
        b = 2.0 * (gap[2] * primal[0] - gap[0] * primal[2])
        c = gap[1] * primal[0] - gap[0] * primal[1]
        worst = 0.0
        for s in (np.zeros_like(begin), np.ones_like(begin), *_roots(a, b, c)):
            inside = np.clip(np.nan_to_num(s, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
            top = gap[0] + inside * (gap[1] + inside * gap[2])
            bottom = primal[0] + inside * (primal[1] + inside * primal[2])
            ratio = np.where(bottom > 0.0, top / np.maximum(bottom, TINY), 0.0)
            worst = max(worst, float(ratio.max()))
        return worst


def _quadratic(
    first: np.ndarray, middle: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients of the parabola through values at 0, ½ and 1."""
    return first, 4.0 * middle - 3.0 * first - last, 2.0 * (first + last) - 4.0 * middle


def _roots(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Real roots of a s² + b s + c, NaN or infinite where there are none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        half = -0.5 * (b + np.copysign(np.sqrt(b * b - 4.0 * a * c), b))
        return half / a, c / half
