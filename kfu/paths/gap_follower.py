"""Breakpoints of an ε-path: solved from one another by differences, as few as the gap allows.

A solve starts from β⁰, the β of a neighbour scaled by the ratio of the costs (what is at its bound
follows it), whose outputs Kβ⁰ are known by the same scaling. The difference δ = β − β⁰ is the
solution of

    min ½ δᵀKδ + (Kβ⁰ − y)ᵀδ,   lower − β⁰ ≤ δ ≤ upper − β⁰,  Σδ = 0,

the one dual problem again (kfu.solvers.dual), started at 0: only rows that move cost kernel values.
Outputs are then brought up to date, Kβ = Kβ⁰ + Kδ, in float64, so that every certificate is one of
float64 values of K, whatever the precision of the solver's rows. (An SVR has a kink at β = 0, which
the shift would move; it starts from β⁰ itself.)

Solves stop early. The gap of a breakpoint is to take a small part of the promised one, the rest is
for the stretch to its neighbour; the tolerance that does so is learnt on the way. The first point
is the middle of the range, where training is cheap (many rows start from what a sample of them
says, kfu.paths.gap_start); from there the path goes up, then down. The step is chosen from the gap
proved on the last stretch (of second order in the step); a stretch whose gap is too large gets a
point in its middle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kfu.paths.gap_breakpoint import Breakpoint, KernelSums, Tally
from kfu.paths.gap_segment import Segment
from kfu.paths.gap_start import guess
from kfu.paths.sloped_loss import SlopedLoss, product
from kfu.solvers.dual import DualProblem, Solution, make_store, solve
from kfu.solvers.settings import SolverSettings

POINT_PART = 0.05  # of the promised gap, aimed at for a breakpoint
LARGEST_PART = 0.4  # of it that a breakpoint may take
SAFETY = 0.6  # of the gap that a step is chosen for: dividing costs more than a shorter step
LONGEST_STEP = math.log(50.0)
LEAST_STEP = 1e-7  # in log C: below, a stretch is not divided any more
GROWTH = 1.5  # of a step over the last, where the last has used something of the gap
USUAL_SAG = 0.09  # gap of a stretch, relative to p (1 − p) ℓ²; see first_step
AT_BOUND = 1e-12  # distance from a bound, relative to the width of the box, that is rounding
SHARED_ROWS_PART = 0.5  # of the cache, for rows that the solves after the first have in common
MOST_ATTEMPTS = 8  # at the tolerance of a breakpoint


class StoppedError(Exception):
    """The path ends here; the argument is its status."""


class GapFollower:
    """One run; `points` and `segments` are what is proved so far, ascending in cost."""

    def __init__(
        self,
        X: Any,
        kernel: Any,
        loss: SlopedLoss,
        gap: float,
        *,
        has_bias: bool,
        settings: SolverSettings,
        max_steps: int = 0,
        progress: Callable[[Breakpoint, int], bool | None] | None = None,
    ) -> None:
        self.X, self.kernel, self.loss, self.gap = X, kernel, loss, gap
        self.n = X.shape[0]
        self.has_bias, self.settings = has_bias, settings
        self.max_steps, self.progress = max_steps, progress
        self.begin = time.perf_counter()
        self.store = make_store(X, kernel, settings)
        self.sums = KernelSums(X, kernel, settings.n_threads)
        spread = 1.0 if loss.epsilon == 0.0 and _is_signs(loss.y) else float(np.std(loss.y)) or 1.0
        self.tolerance = min(math.sqrt(gap), 0.2) * spread
        self.points: list[Breakpoint] = []
        self.segments: list[Segment] = []
        self.tally = Tally()
        self.status = "done"

    # ---- the whole range -----------------------------------------------------------------------

    def run(self, low: float, high: float) -> None:
        """Cover [low, high]. KeyboardInterrupt only when there is nothing to keep."""
        try:
            middle = math.exp(0.5 * (math.log(low) + math.log(high)))
            first = self.first(min(max(middle, low), high))
            self.points.append(first)
            self.share_rows()
            self.march(first, high)
            self.march(first, low)
        except StoppedError as stopped:
            self.status = str(stopped)
        except KeyboardInterrupt:
            if not self.points:
                raise
            self.status = "interrupted"
        if not self.points:
            raise KeyboardInterrupt
        self.tally.seconds["total"] = time.perf_counter() - self.begin

    def first(self, cost: float) -> Breakpoint:
        settings = self.limited(self.tolerance)
        guessed = guess(self.X, self.kernel, self.loss, cost, self.has_bias, settings)
        if guessed is None:
            return self.solved(cost, np.zeros(self.n), np.zeros(self.n))
        beta, evaluations = guessed
        rows = np.flatnonzero(beta)
        self.tally.kernel_evaluations += evaluations
        self.tally.moved_rows += rows.size
        self.tally.verification_evaluations += rows.size * self.n
        return self.solved(cost, beta, self.sums(rows, beta[rows]))

    def share_rows(self) -> None:
        """Rows that move at one breakpoint often move at the next: those to come keep them."""
        if self.n > 1 and getattr(self.kernel, "name", "") not in ("linear", "precomputed"):
            self.store.share_rows(SHARED_ROWS_PART * self.settings.cache_mib * 2.0**20)
            left = self.settings.cache_mib * (1.0 - SHARED_ROWS_PART)
            self.settings = replace(self.settings, cache_mib=left)

    def march(self, here: Breakpoint, end: float) -> None:
        """Breakpoints from `here` to the cost `end`, upward or downward."""
        step = self.first_step(here)
        while here.cost != end:
            left = abs(math.log(end / here.cost))
            n_left = max(math.ceil(left / step - 0.05), 1)
            length = left / n_left
            sign = 1.0 if end > here.cost else -1.0
            cost = end if n_left == 1 else here.cost * math.exp(sign * length)
            there = self.solved(cost, *self.scaled(here, cost))
            pieces = self.proved(*((here, there) if sign > 0 else (there, here)))
            self.keep(pieces, at_end=sign > 0)
            last = pieces[-1] if sign > 0 else pieces[0]
            step = self.next_step(last, there)
            here = there

    def keep(self, pieces: list[Segment], at_end: bool) -> None:
        if at_end:
            self.segments += pieces
            self.points += [piece.high for piece in pieces]
        else:
            self.segments = pieces + self.segments
            self.points = [piece.low for piece in pieces] + self.points

    def proved(self, low: Breakpoint, high: Breakpoint) -> list[Segment]:
        """Segments from `low` to `high`, divided until each proves the promised gap."""
        segment = Segment(low, high, self.loss, self.has_bias)
        if segment.worst <= self.gap:
            return [segment]
        is_hopeless = max(low.gap, high.gap) > self.gap  # the solver did not get there
        if is_hopeless or math.log(high.cost / low.cost) < LEAST_STEP:
            self.status = "stalled"
            return [segment]
        cost = math.sqrt(low.cost) * math.sqrt(high.cost)
        middle = self.solved(cost, *self.scaled(low, cost))
        return self.proved(low, middle) + self.proved(middle, high)

    # ---- the steps -----------------------------------------------------------------------------

    def first_step(self, point: Breakpoint) -> float:
        """Where the optimal value is as a power of the cost, V ~ C^p, p is the part of C·L in it.
        Between exact solutions a distance of ℓ = log(C₁/C₀) apart the chord of L gives a gap of at
        most (ΔC |ΔL| − ‖Δw‖²)/4, relative to V less than p (1 − p) ℓ²/4; it comes to a good deal
        less. (Where nothing is left to fit, at the hard margin, p = 0 and V is constant.)
        """
        return self.step_for(USUAL_SAG * _curvature(point))

    def next_step(self, last: Segment, here: Breakpoint) -> float:
        """The same with the factor that the last stretch has shown, and the trend of p (1 − p)."""
        length = math.log(last.high.cost / last.low.cost)
        before = _curvature(last.low if here is last.high else last.high)
        now = _curvature(here)
        if last.sag <= 1e-3 * self.gap or before + now == 0.0:
            return min(4.0 * length, LONGEST_STEP)
        shown = last.sag / (length**2 * 0.5 * (before + now))
        trend = math.sqrt(now / before) if before > 0.0 else 1.0
        return min(self.step_for(shown * now * max(trend, 1.0)), GROWTH * length)

    def step_for(self, sag: float) -> float:
        """The longest step whose gap, `sag` times its square, leaves room for that of the ends."""
        room = SAFETY * (1.0 - POINT_PART) * self.gap
        return min(math.sqrt(room / sag), LONGEST_STEP) if sag > 0.0 else LONGEST_STEP

    # ---- one breakpoint ------------------------------------------------------------------------

    def scaled(self, point: Breakpoint, cost: float) -> tuple[np.ndarray, np.ndarray]:
        factor = cost / point.cost
        beta, outputs = factor * point.beta, factor * point.outputs
        for old, new in zip(self.loss.box(point.cost), self.loss.box(cost), strict=True):
            beta = np.where((point.beta == old) & (old != 0.0), new, beta)
        return self.inside(beta, cost), outputs

    def inside(self, beta: np.ndarray, cost: float) -> np.ndarray:
        """β at its bounds where only rounding parts it from them: it would count as moved."""
        lower, upper = self.loss.box(cost)
        near = AT_BOUND * (upper - lower)
        beta = np.where(beta >= upper - near, upper, beta)
        return np.where(beta <= lower + near, lower, beta)

    def solved(self, cost: float, beta: np.ndarray, outputs: np.ndarray) -> Breakpoint:
        """The breakpoint at `cost`, from the feasible β with its outputs Kβ."""
        if self.max_steps and len(self.points) >= self.max_steps:
            raise StoppedError("max_steps")
        tolerance = self.tolerance
        for _ in range(MOST_ATTEMPTS):
            solution = self.difference(cost, beta, outputs, tolerance)
            beta, outputs = self.moved(cost, beta, outputs, solution)
            point = self.measured(cost, beta, outputs)
            if solution.info.status in ("interrupted", "max_seconds"):
                raise StoppedError(solution.info.status)
            if point.gap <= LARGEST_PART * self.gap or solution.info.status != "converged":
                break
            tolerance *= min(max(0.5 * LARGEST_PART * self.gap / point.gap, 1e-3), 0.2)
        part = math.sqrt(POINT_PART * self.gap / max(point.gap, 1e-3 * self.gap))
        self.tolerance = tolerance * min(max(part, 0.25), 1.5)
        if self.progress is not None and self.progress(point, len(self.points)):
            raise StoppedError("interrupted")
        return point

    def difference(
        self, cost: float, beta: np.ndarray, outputs: np.ndarray, tolerance: float
    ) -> Solution:
        lower, upper = self.loss.box(cost)
        is_shifted = self.loss.epsilon == 0.0
        problem = DualProblem(
            signs=np.ones(self.n),
            linear=outputs - self.loss.y if is_shifted else -self.loss.y,
            lower=lower - beta if is_shifted else lower,
            upper=upper - beta if is_shifted else upper,
            points=np.arange(self.n),
            has_equality=self.has_bias,
            kink=None if is_shifted else np.full(self.n, self.loss.epsilon),
        )
        return solve(
            problem,
            self.X,
            self.kernel,
            self.limited(tolerance),
            start=None if is_shifted or not beta.any() else beta,
            store=self.store,
        )

    def limited(self, tolerance: float) -> SolverSettings:
        settings = replace(self.settings, tolerance=tolerance)
        if not settings.max_seconds:
            return settings
        left = settings.max_seconds - (time.perf_counter() - self.begin)
        return replace(settings, max_seconds=max(left, 1e-9))

    def moved(
        self, cost: float, beta: np.ndarray, outputs: np.ndarray, solution: Solution
    ) -> tuple[np.ndarray, np.ndarray]:
        """β and its outputs after the solve; what reached a bound is exactly at it."""
        found = solution.beta
        if self.loss.epsilon == 0.0:
            lower, upper = self.loss.box(cost)
            found = np.where(found == upper - beta, upper, beta + found)
            found = np.where(solution.beta == lower - beta, lower, found)
            found = np.clip(found, lower, upper)
        change = found - beta
        rows = np.flatnonzero(change)
        self.tally.add(solution, rows.size, self.n)
        return found, outputs + self.sums(rows, change[rows])

    def measured(self, cost: float, beta: np.ndarray, outputs: np.ndarray) -> Breakpoint:
        bias = self.loss.best_bias(outputs) if self.has_bias else 0.0
        return Breakpoint(
            cost=cost,
            beta=beta,
            outputs=outputs,
            bias=bias,
            norm=max(product(beta, outputs), 0.0),
            loss=self.loss.value(outputs + bias),
            gain=self.loss.gain(beta),
        )


def _curvature(point: Breakpoint) -> float:
    """p (1 − p), p the part of the loss in the primal."""
    part = point.cost * point.loss / point.primal if point.primal > 0.0 else 0.0
    return part * (1.0 - part)


def _is_signs(y: np.ndarray) -> bool:
    return bool(np.all(np.abs(y) == 1.0))
