"""Piecewise constant functions of λ, exactly: edges and values.

    value on [edges[i], edges[i+1]) is values[i]; the last interval has both its ends

λ > 0 lives on a logarithmic axis: widths of intervals are ratios, and the middle of an interval is
the geometric one. A count of errors along a regularisation path is such a function; the average of
several (the folds of a cross-validation) is one over the union of their edges, where nothing is
sampled and nothing missed.

At an edge some f(x) is exactly 0, and what a computed f says there is rounding: a function has the
value of the interval above its edge, and what is chosen from one lies inside an interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfu.errors import SettingsError

__all__ = ["AverageStep", "StepFunction", "average", "middle_of"]

# Means of fractions that are equal on paper differ by rounding.
EQUAL = 1e-12


def middle_of(low: float, high: float) -> float:
    """The geometric middle; of an interval that reaches 0 or ∞, a factor of 2 inside the other
    end."""
    if low <= 0.0:
        return 1.0 if math.isinf(high) else 0.5 * high
    return 2.0 * low if math.isinf(high) else math.sqrt(low) * math.sqrt(high)


@dataclass(frozen=True)
class StepFunction:
    """See the head of the file. Edges ascend strictly from a number ≥ 0; the last may be ∞."""

    edges: np.ndarray  # (k + 1,)
    values: np.ndarray  # (k,)

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        values = np.asarray(self.values, dtype=np.float64)
        if edges.ndim != 1 or edges.size < 2 or values.shape != (edges.size - 1,):
            raise ValueError(f"{edges.size} edges and {values.size} values; one edge more")
        if not edges[0] >= 0.0 or not np.all(edges[1:] > edges[:-1]):
            raise ValueError("edges have to ascend from a number that is not negative")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "values", values)

    @staticmethod
    def of_pieces(ends: np.ndarray, values: np.ndarray) -> StepFunction:
        """From pieces in order, of which some may be empty: piece i lies between ends[i] and
        ends[i + 1], ascending or descending. Pieces of equal value that touch become one."""
        ends, values = np.asarray(ends, np.float64), np.asarray(values, np.float64)
        if ends.size and ends[0] > ends[-1]:
            ends, values = ends[::-1], values[::-1]
        has_width = ends[1:] > ends[:-1]
        if not has_width.any():
            raise ValueError("a step function needs an interval of positive width")
        return StepFunction(np.append(ends[:-1][has_width], ends[-1]), values[has_width]).merged()

    # ---- values -----------------------------------------------------------------------------

    @property
    def low(self) -> float:
        return float(self.edges[0])

    @property
    def high(self) -> float:
        return float(self.edges[-1])

    @property
    def n_steps(self) -> int:
        return int(self.values.size)

    def index_of(self, x: np.ndarray | float) -> np.ndarray:
        """The interval that holds each x; −1 outside of the domain (and for NaN)."""
        x = np.asarray(x, dtype=np.float64)
        place = np.searchsorted(self.edges, x, side="right") - 1
        place = np.where(x == self.edges[-1], self.n_steps - 1, place)
        return np.where((x >= self.low) & (x <= self.high), place, -1)

    def __call__(self, x: np.ndarray | float) -> np.ndarray:
        """The values at x; NaN outside of the domain."""
        place = self.index_of(x)
        return np.where(place >= 0, self.values[place], np.nan)

    def middles(self) -> np.ndarray:
        """One point inside each interval, the geometric middle (`middle_of`)."""
        lows, highs = self.edges[:-1], self.edges[1:]
        points = np.sqrt(lows) * np.sqrt(highs)
        for k in {0, self.n_steps - 1}:  # only these may reach 0 or ∞
            points[k] = middle_of(float(lows[k]), float(highs[k]))
        # The middle of neighbouring numbers may round onto the upper end.
        return np.where(points < highs, points, lows)

    # ---- other functions --------------------------------------------------------------------

    def merged(self) -> StepFunction:
        """The same function without the edges at which nothing changes."""
        changes = np.flatnonzero(self.values[1:] != self.values[:-1]) + 1
        inner = self.edges[changes]
        return StepFunction(
            np.concatenate([self.edges[:1], inner, self.edges[-1:]]),
            self.values[np.concatenate([[0], changes])],
        )

    def restricted(self, low: float, high: float) -> StepFunction:
        """The part on [low, high] ∩ domain, which needs to have a width."""
        low, high = max(low, self.low), min(high, self.high)
        if not low < high:
            raise ValueError(f"no interval of the function lies between {low:g} and {high:g}")
        inside = (self.edges > low) & (self.edges < high)
        edges = np.concatenate([[low], self.edges[inside], [high]])
        return StepFunction(edges, self.values[self.index_of(edges[:-1])])

    def extended(self, low: float | None = None, high: float | None = None) -> StepFunction:
        """The function on a domain that reaches to low and high, constant beyond its ends."""
        edges = self.edges.copy()
        edges[0] = min(self.low, self.low if low is None else low)
        edges[-1] = max(self.high, self.high if high is None else high)
        return replace(self, edges=edges)

    def scaled(self, factor: float) -> StepFunction:
        """The function of factor · λ."""
        if not 0.0 < factor < math.inf:
            raise ValueError(f"{factor!r} is no factor of an axis")
        return replace(self, edges=self.edges * factor)

    def times(self, factor: float) -> StepFunction:
        """The values times a number: counts of errors become fractions."""
        return replace(self, values=self.values * factor)

    # ---- where it is small ------------------------------------------------------------------

    @property
    def minimum(self) -> float:
        return float(self.values.min())

    def intervals_below(self, bound: float) -> np.ndarray:
        """The maximal intervals (low, high), ascending, on which the value is at most `bound`."""
        inside = np.concatenate([[False], self.values <= bound, [False]])
        begins = np.flatnonzero(inside[1:] & ~inside[:-1])
        ends = np.flatnonzero(inside[:-1] & ~inside[1:])
        return np.column_stack([self.edges[begins], self.edges[ends]])

    def minimum_set(self) -> np.ndarray:
        """The maximal intervals on which the function has its minimum (but for rounding)."""
        return self.intervals_below(self.minimum + EQUAL * max(1.0, abs(self.minimum)))

    def argmin_interval(self) -> tuple[float, float]:
        """The interval of the minimum that is widest on the logarithmic axis; of equally wide ones
        that of the largest λ."""
        intervals = self.minimum_set()
        with np.errstate(divide="ignore"):
            widths = np.log(intervals[:, 1]) - np.log(intervals[:, 0])
        widest = np.flatnonzero(widths >= widths.max() * (1.0 - EQUAL))[-1]
        return float(intervals[widest, 0]), float(intervals[widest, 1])


@dataclass(frozen=True)
class AverageStep:
    """Mean and standard error of several functions; both step functions on the union of edges."""

    mean: StepFunction
    error: StepFunction  # the standard error of the mean; NaN everywhere for a single function
    count: int


def average(
    functions: Sequence[StepFunction], weights: np.ndarray | Sequence[float] | None = None
) -> AverageStep:
    """The mean over the functions at each point of their common domain, and its standard error.

    Error: sd/√k with the sd over functions (k − 1); with weights w (sizes of test parts) that of
    the weighted mean, √(k/(k−1) Σ w²(v − mean)²)/Σw, which is the same when all are equal.
    """
    if not functions:
        raise SettingsError("no curves to average; give at least one")
    low, high = max(f.low for f in functions), min(f.high for f in functions)
    if not low < high:
        raise SettingsError(
            f"the curves have no part in common: one begins at {low:g}, another ends at {high:g}"
        )
    share = np.ones(len(functions)) if weights is None else np.asarray(weights, np.float64)
    if share.shape != (len(functions),) or not np.all(share >= 0.0) or not share.sum() > 0.0:
        raise SettingsError(f"{share.size} weights for {len(functions)} curves; give one ≥ 0 each")
    share = share / share.sum()
    inner = np.concatenate([f.edges for f in functions])
    inner = np.unique(inner[(inner > low) & (inner < high)])
    edges = np.concatenate([[low], inner, [high]])

    mean = np.zeros(edges.size - 1)
    for f, weight in zip(functions, share, strict=True):
        mean += weight * f(edges[:-1])
    k = len(functions)
    error = np.full(edges.size - 1, np.nan)
    if k > 1:
        square = np.zeros(edges.size - 1)
        for f, weight in zip(functions, share, strict=True):
            square += (weight * (f(edges[:-1]) - mean)) ** 2
        error = np.sqrt(square * (k / (k - 1)))
    return AverageStep(StepFunction(edges, mean), StepFunction(edges, error), k)
