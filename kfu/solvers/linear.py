"""The dual problem under the plain linear kernel, through w: two methods and one certificate.

    min ½ βᵀ(XXᵀ + diag(ridge)) β + linearᵀβ + kinkᵀ|β|,
    lower ≤ β ≤ upper,  Σβ = const (or no equality)

Coordinate descent (csrc/kfu/linear_dual.h) reads a row to move a variable: sparse rows of many
features, texts above all, converge within a few dozen epochs. Where there are few features, or the
epochs promise to be too many, Newton steps in w take over (kfu.solvers.linear_newton): their number
hardly depends on C or on the scale of the data. Both keep β inside its box; Σβ is made exact at the
end. The certificate is that of every solution (csrc/kfu/certificate.h), from a gradient computed
from scratch in float64.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.solvers.dual import DualProblem, Info, Progress, ProgressCallback, Solution
from kfu.solvers.linear_newton import MOST_DIRECT, SAMPLE_PER_FEATURE, ProximalNewton
from kfu.solvers.settings import SolverSettings

LEAST_VARIABLES = 500  # below, chunks of the kernel matrix take a few milliseconds
MANY_VARIABLES = 3000  # from here on also with rows longer than SHORT_ROW values
SHORT_ROW = 100
PENALTY = 0.01  # of the imbalance Σβ − c in coordinate descent, as a part of the mean ‖x‖²
CHEAP_STEP = 6.0  # multiply-adds of a Newton step, per value of X: no coordinate descent then
FIRST_WIDTH = 0.3  # by which the first proximal term may move F
LEAST_EPOCHS = 10  # before their promise is judged
LEAST_EPOCHS_OF_LARGE = 400  # where a Newton step is many steps of conjugate gradients
WINDOW = 6  # epochs it is judged by, at least
MOST_EPOCHS = 5000
MOST_FAILED_OFFERS = 6  # ends of coordinate descent that the exact gradient did not confirm
TYPICAL_NEWTON_STEPS = 60
MOST_NEWTON_STEPS = 2000
MOST_IDLE_CENTRES = 25  # proximal subproblems that improve neither the gap nor the objective
POLISHED_VARIABLES = 512  # SolverSettings.polish
POLISHED_GAP = 1e-11
ROUNDING = 1e-15  # of a sum, relative to the sum of absolute values
UNLIMITED = 2**62


def suits_linear(problem: DualProblem, X: Any, kernel: KernelSpec) -> bool:
    """Whether `solve_linear` is the way to solve `problem`: the kernel is x·z itself, there is one
    equality or none, and the kernel solver would not be done with it in no time.

    Where few rows become support vectors the kernel solver is up to five times faster, by
    milliseconds; where many do, it takes ten to a hundred times as long, and with a large C or
    unscaled features it may not end at all. Long rows make a Newton step dear, so that it takes
    more of them to tell.
    """
    n = len(problem.signs)
    if not isinstance(kernel, KernelSpec):  # a form that has no name, as K + 1
        return False
    is_plain = kernel.name == "linear" and not kernel.parts and kernel.weight == 1.0
    if not is_plain or problem.group is not None or n < LEAST_VARIABLES:
        return False
    row = X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]
    return bool(row <= SHORT_ROW or n >= MANY_VARIABLES)


def solve_linear(
    problem: DualProblem,
    X: Any,
    settings: SolverSettings,
    *,
    start: np.ndarray | None = None,
    progress: ProgressCallback | None = None,
) -> Solution:
    """Solve `problem` over the rows of X under K(x, z) = x·z, from the feasible β `start`.

    Ctrl-C stops between two epochs or Newton steps: the solution so far is returned with status
    "interrupted". `max_iterations` bounds the steps of coordinate descent plus the Newton steps.
    """
    begin = time.perf_counter()
    run = LinearRun(problem, X, settings, start)
    status = run.iterate(progress, begin)
    try:
        beta, certificate = run.finish()
    except KeyboardInterrupt:
        status = "interrupted"
        beta, certificate = run.finish()
    if status not in ("converged", "interrupted") and certificate["kkt_gap"] <= settings.tolerance:
        status = "converged"  # the last point was better than any judged before
    seconds = dict(run.seconds)
    seconds["other"] = time.perf_counter() - begin - sum(seconds.values())
    info = Info(status=status, seconds=seconds, solver="linear", **certificate, **run.counters())
    info.warnings = _warnings(info, settings)
    return Solution(alpha=problem.signs * beta, beta=beta, bias=info.bias, info=info)


class LinearRun:
    """One run: the best solution so far, and the methods as iterators over epochs and steps."""

    def __init__(
        self, problem: DualProblem, X: Any, settings: SolverSettings, start: np.ndarray | None
    ) -> None:
        from kfu._linear import LinearProblem

        if problem.group is not None:
            raise SettingsError("the linear solver takes one equality; two groups have two")
        self.X = _canonical(X)
        self.arrays = arrays = problem.signed(start)
        self.lower = np.asarray(arrays["lower"], dtype=np.float64)
        self.upper = np.asarray(arrays["upper"], dtype=np.float64)
        kink = arrays["kink"]
        self.kink = np.zeros(len(self.lower)) if kink is None else np.asarray(kink, float)
        given = np.clip(np.asarray(arrays["beta"], dtype=np.float64), self.lower, self.upper)
        self.target_sum = math.fsum(given)
        self.settings = settings
        self.tolerance = settings.tolerance
        if settings.polish and len(given) <= POLISHED_VARIABLES:
            scale = 1.0 + float(np.abs(arrays["linear"]).max(initial=0.0))
            self.tolerance = min(self.tolerance, POLISHED_GAP * scale)
        self.rows = LinearProblem(self.X, arrays, settings.n_threads)
        if not np.isfinite(self.rows.squares()).all():
            found = "a feature is not finite, or its square overflows"
            raise DataError("data", None, found, "mend or scale the features")
        self.most_steps = settings.max_iterations or UNLIMITED
        self.iterations = self.rounds = self.shrinks = self.centres = 0
        # The phases of the kernel solver, so that reports of several machines add up.
        self.seconds = dict.fromkeys(
            ("selection", "block", "subproblem", "gradient", "verification"), 0.0
        )
        self.best = given
        self.best_gap = np.inf
        self.best_objective = -np.inf
        self.seen_gap = np.inf  # by whatever the method at work sees of it
        self.current: Callable[[], np.ndarray] = lambda: given  # β at any moment

    # -- driving ----------------------------------------------------------------------------------

    def iterate(self, progress: ProgressCallback | None, begin: float) -> str:
        """Run to the end or a limit; the status as the Info has it."""
        status = "running"
        last = time.perf_counter()
        try:
            for status in self._methods():
                now = time.perf_counter()
                self.seconds["subproblem"] += now - last
                last = now
                if status == "running" and 0 < self.settings.max_seconds < now - begin:
                    status = "max_seconds"
                if progress is not None:
                    seen = Progress(
                        round=self.rounds,
                        iterations=self.iterations,
                        gap=self.seen_gap,
                        tolerance=self.settings.tolerance,
                        seconds=now - begin,
                        beta=lambda: self.balanced(self.current()),
                    )
                    if progress(seen) and status == "running":
                        status = "interrupted"
                if status != "running":
                    break
        except KeyboardInterrupt:
            status = "interrupted"
        self.seconds["subproblem"] -= self.seconds["gradient"]
        return status

    def _methods(self) -> Iterator[str]:
        """The status after every epoch or step."""
        if self.offer(self.best):
            yield "converged"
        beta, theta, gap = self.best, 0.0, np.inf
        if not self._newton_is_cheap():
            yield from self._descend(beta)
            beta, theta, gap = self.descent.beta(), self.descent.theta, self.seen_gap
        yield from self._newton(beta, theta, min(FIRST_WIDTH, gap))

    def offer(self, beta: np.ndarray, F: np.ndarray | None = None) -> bool:
        """Judge β, keep it if it is the best so far; True when it meets the tolerance.

        F is the gradient at β where that is known.
        """
        begin = time.perf_counter()
        balanced = self.balanced(beta)
        if F is None or balanced is not beta:
            F = self.rows.gradient(balanced)
        found = self.rows.certificate(balanced, F)
        self.seen_gap = found["kkt_gap"]
        is_done = self.seen_gap <= self.tolerance
        if is_done or found["objective"] >= self.best_objective:
            self.best, self.best_gap = balanced, self.seen_gap
            self.best_objective = found["objective"]
        self.seconds["gradient"] += time.perf_counter() - begin
        return is_done

    def finish(self) -> tuple[np.ndarray, dict[str, Any]]:
        """The best β and its certificate, from scratch."""
        begin = time.perf_counter()
        if self.best_gap > self.tolerance:
            self.offer(self.current())
        certificate = self.rows.certificate(self.best, self.rows.gradient(self.best))
        self.seconds["verification"] = time.perf_counter() - begin
        return self.best, certificate

    def counters(self) -> dict[str, Any]:
        """What the Info wants to know; there is no cache and no kernel value."""
        absent = ("kernel_evaluations", "verification_evaluations", "cache_hits", "cache_misses")
        return {
            **dict.fromkeys((*absent, "reductions", "chunk"), 0),
            "iterations": self.iterations,
            "rounds": self.rounds,
            "shrinks": self.shrinks,
            "refinements": self.centres,
            "precision": "float64",
            "changed_precision": False,
            "simd": "baseline",
            "layout": self.rows.layout,
        }

    # -- the two methods --------------------------------------------------------------------------

    def _descend(self, beta: np.ndarray) -> Iterator[str]:
        """Epochs of coordinate descent, until done or until Newton steps promise more."""
        from kfu._linear import Descent

        self.descent = descent = Descent(self.rows, beta, PENALTY, self.settings.shrinking)
        self.current = descent.beta
        goal, failed = self.tolerance, 0
        gaps: list[float] = []
        while self.rounds < MOST_EPOCHS and failed <= MOST_FAILED_OFFERS:
            epoch = descent.epoch(self.most_steps - self.iterations)
            self.iterations += epoch["steps"]
            self.rounds += 1
            self.shrinks = descent.shrinks
            self.seen_gap = epoch["gap"]
            gaps.append(epoch["gap"])
            if epoch["gap"] <= goal and epoch["finished"]:
                if self.offer(descent.beta()):
                    yield "converged"
                failed += 1
                goal *= 0.5  # what was set aside, or making Σβ exact, moved F too far
                descent.unshrink()
                gaps.clear()
            elif self._is_slow(gaps, epoch["visits"]):
                return
            yield "max_iterations" if self.iterations >= self.most_steps else "running"

    def _is_slow(self, gaps: list[float], visits: int) -> bool:
        """Whether the epochs left, at the pace of the last third, cost more than Newton steps."""
        least = LEAST_EPOCHS if min(self.X.shape) <= MOST_DIRECT else LEAST_EPOCHS_OF_LARGE
        if len(gaps) < least:
            return False
        window = max(WINDOW, len(gaps) // 3)
        pace = math.log(max(gaps[-1 - window], 1e-300) / max(gaps[-1], 1e-300)) / window
        left = math.log(max(gaps[-1] / self.tolerance, 1.0))
        newton = TYPICAL_NEWTON_STEPS * self._step_cost()
        return pace <= 0.0 or left / pace * 2.0 * visits * self._row_cost() > newton

    def _row_cost(self) -> float:
        """Values of a row."""
        n, d = self.X.shape
        return self.X.nnz / max(n, 1) if sp.issparse(self.X) else d

    def _newton_is_cheap(self) -> bool:
        """Whether a Newton step is little more than its passes over the rows."""
        return self._step_cost() <= CHEAP_STEP * self.X.shape[0] * self._row_cost()

    def _step_cost(self) -> float:
        """Multiply-adds of a Newton step."""
        n, d = self.X.shape
        row = self._row_cost()
        size = min(n, d)
        if size > MOST_DIRECT:  # conjugate gradients
            return 400.0 * n * row
        factorisation = size**3 / 24.0  # at the speed of dense arithmetic
        return 3.0 * n * row + factorisation + 0.5 * SAMPLE_PER_FEATURE * size * row**2

    def _newton(self, beta: np.ndarray, theta: float, width: float) -> Iterator[str]:
        """Newton steps on proximal subproblems, each centred at the solution of the last."""
        newton = ProximalNewton(self.rows, self.X, self.arrays, self.target_sum, self.tolerance)
        newton.start(beta, theta, max(width, self.tolerance))
        self.current = newton.current
        smallest, objective, idle = np.inf, -np.inf, 0
        while newton.steps < MOST_NEWTON_STEPS and self.iterations < self.most_steps:
            solved = newton.step()
            self.rounds += 1
            if solved is None:
                self.iterations += 1
            else:
                self.centres += 1
                if self.offer(solved, newton.F):
                    yield "converged"
                is_better = self.best_objective - objective > 1e-6 * abs(self.best_objective)
                idle = 0 if is_better or self.seen_gap < 0.9 * smallest else idle + 1
                smallest = min(smallest, self.seen_gap)
                objective = self.best_objective
                if idle > MOST_IDLE_CENTRES:
                    yield "stalled"
            yield "running"
        yield "max_iterations"

    # -- feasibility ------------------------------------------------------------------------------

    def balanced(self, beta: np.ndarray) -> np.ndarray:
        """β with Σβ = const: the unbounded variables share what is missing; if they cannot take it
        all, the bounded ones follow in the order in which moving them costs least."""
        if not self.arrays["has_equality"]:
            return beta
        excess = math.fsum(beta) - self.target_sum
        rounding = ROUNDING * float(np.abs(beta).sum())
        if abs(excess) <= rounding:
            return beta
        beta = beta.copy()
        is_inside = (beta > self.lower) & (beta < self.upper)
        free = np.flatnonzero(is_inside & ((beta != 0.0) | (self.kink == 0.0)))
        while len(free) and abs(excess) > rounding:
            low, high = self.lower[free], self.upper[free]
            beta[free] = np.clip(beta[free] - excess / len(free), low, high)
            last, excess = excess, math.fsum(beta) - self.target_sum
            if abs(excess) > 0.5 * abs(last):
                break  # rounding is all that is left, or bounds keep them from taking it
            free = free[(beta[free] > low) & (beta[free] < high)]
        if abs(excess) > rounding:
            self._move_bounded(beta, excess)
        return beta

    def _move_bounded(self, beta: np.ndarray, excess: float) -> None:
        """Take `excess` off Σβ: the largest slope first where β has to fall, the smallest where it
        has to rise."""
        F = self.rows.gradient(beta)
        if excess > 0.0:
            bound, order = self.lower, np.argsort(-F - np.where(beta > 0.0, 1, -1) * self.kink)
        else:
            bound, order = self.upper, np.argsort(F + np.where(beta < 0.0, -1, 1) * self.kink)
        room = np.abs(bound - beta)[order]
        order, room = order[room > 0.0], room[room > 0.0]
        whole = int(np.searchsorted(np.cumsum(room), abs(excess)))
        beta[order[:whole]] = bound[order[:whole]]
        if whole < len(order):
            rest = abs(excess) - float(room[:whole].sum())
            k = order[whole]
            beta[k] = np.clip(beta[k] - math.copysign(rest, excess), self.lower[k], self.upper[k])


def _canonical(X: Any) -> Any:
    """X, or what the core takes for it: an array, or CSR whose entries are unique."""
    if not sp.issparse(X):
        return np.asarray(X)
    X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _warnings(info: Info, settings: SolverSettings) -> list[str]:
    if info.status == "stalled":
        return [
            f"no step improves the solution in float64; the gap stays at {info.kkt_gap:.3g} "
            "(unscaled features, a hard margin that does not exist, or a tolerance below rounding)"
        ]
    if info.status == "max_iterations" and not settings.max_iterations:
        return [
            f"stopped after {MOST_NEWTON_STEPS} Newton steps, the limit when none is given; scale "
            "the features, lower the cost, or loosen the tolerance"
        ]
    return []
