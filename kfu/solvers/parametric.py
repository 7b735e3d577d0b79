"""Solutions of a dual problem whose constants move with a number t, all of them.

    min over β  ½ βᵀ(K + diag(ridge))β + linear(t)ᵀβ + kink(t)ᵀ|β|
    s.t.        lower(t) ≤ β ≤ upper(t),   Σ_group β = total(t)   (one or two groups, or none)

with v(t) = v + t·v_rate. β and the multipliers θ are piecewise linear in t;
csrc/kfu/parametric_run.h follows them from event to event. A `Track` holds the breakpoints and
events, not the coefficients: those are rebuilt for any t from the states of the variables there, by
one fresh solve of

    K_AA β_A − E θ = −linear_A ∓ kink_A − K_AB β_B,   Eᵀβ_A = total − Σ_B β_B

over the free variables A, so that memory grows with the number of events and a rebuilt solution
carries no error of the way that led to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec

LOWER, UPPER, ZERO, FREE, FREE_BELOW = range(5)

STEPS_AT_ONCE = 2000  # breakpoints between two looks at the clock and the progress callback
SECONDS_AT_ONCE = 0.2
FINISHED = ("done", "hard_margin")
FAR = 1e-4  # beyond a bound by more than this part of the coefficients is not rounding


@dataclass
class ParametricProblem:
    """Arrays of length n; a rate of None is zero. See the head of the file."""

    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    linear_rate: np.ndarray | None = None
    lower_rate: np.ndarray | None = None
    upper_rate: np.ndarray | None = None
    kink: np.ndarray | None = None
    kink_rate: np.ndarray | None = None
    ridge: np.ndarray | None = None
    group: np.ndarray | None = None
    has_equality: bool = True
    total: tuple[float, ...] = (0.0, 0.0)
    total_rate: tuple[float, ...] = (0.0, 0.0)
    points: np.ndarray | None = None  # rows of X behind the variables; None: row i is variable i
    ends_without_bound: bool = False  # nothing changes any more once no β is at a bound but zero

    @property
    def n(self) -> int:
        return len(self.linear)

    @property
    def n_groups(self) -> int:
        if not self.has_equality:
            return 0
        return 1 if self.group is None else 2

    def arrays(self) -> dict[str, Any]:
        names = ("linear", "lower", "upper", "kink")
        found = {name: getattr(self, name) for name in names}
        found |= {f"{name}_rate": getattr(self, f"{name}_rate") for name in names}
        others = ("ridge", "group", "has_equality", "total", "total_rate")
        return found | {name: getattr(self, name) for name in others}

    def at(self, name: str, t: float) -> np.ndarray:
        value, rate = getattr(self, name), getattr(self, f"{name}_rate")
        return np.asarray(value if rate is None else value + t * rate, dtype=np.float64)


@dataclass
class Watch:
    """Rows whose outputs are followed too, and their labels ±1 (0: not counted)."""

    X: Any
    labels: np.ndarray


@dataclass(frozen=True)
class PathSettings:
    """max_steps 0: no limit. threads 0: every core. memory_mib bounds the rows of K that are kept
    (those of free variables always are)."""

    max_steps: int = 0
    threads: int = 0
    memory_mib: float = 1024.0

    @property
    def n_threads(self) -> int:
        return self.threads or len(os.sched_getaffinity(0))


@dataclass
class PathProgress:
    """What a progress callback sees now and then; returning True from it stops the path."""

    steps: int
    t: float
    start: float
    stop: float
    n_free: int
    seconds: float
    track: Callable[[], Track]


@dataclass
class Track:
    """A path that was followed. Row k of the columns is the state just after breakpoint k."""

    problem: ParametricProblem
    X: Any
    kernel: KernelSpec
    t: np.ndarray
    theta: np.ndarray
    objective: np.ndarray
    kkt: np.ndarray
    n_free: np.ndarray
    n_bound: np.ndarray
    n_null: np.ndarray
    train_errors: np.ndarray
    watch_errors: np.ndarray
    event_start: np.ndarray
    event_item: np.ndarray
    event_state: np.ndarray
    first_state: np.ndarray
    crossing_t: np.ndarray
    crossing_row: np.ndarray
    crossing_set: np.ndarray
    crossing_delta: np.ndarray
    status: str
    counters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def n_steps(self) -> int:
        return len(self.t) - 1

    def states_at(self, k: int) -> np.ndarray:
        """The states just after breakpoint k."""
        states = np.array(self.first_state, dtype=np.int8)
        last = int(self.event_start[k + 1])
        states[self.event_item[:last]] = self.event_state[:last]  # the last of each item stays
        return states

    def stretch_of(self, t: float) -> int:
        """The breakpoint after which the solution at t lies."""
        way = -1.0 if self.t[-1] < self.t[0] else 1.0
        values = way * self.t
        rounding = 1e-14 * abs(t)
        if not values[0] - rounding <= way * t <= values[-1] + rounding:
            raise SettingsError(
                f"{t:g} is outside the path, which goes from {self.t[0]:g} to {self.t[-1]:g}"
            )
        place = int(np.searchsorted(values, way * t, side="right")) - 1
        return min(max(place, 0), len(values) - 1)

    def solution(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """(β, θ by group) at t, solved afresh from the states there."""
        k = self.stretch_of(t)
        if k == self.n_steps and k > 0 and self.t[k] != self.t[k - 1]:
            k -= 1  # the states before the last event hold up to it
        return solve_states(self.problem, self.X, self.kernel, self.states_at(k), t)


def solve_states(
    problem: ParametricProblem, X: Any, kernel: KernelSpec, states: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """(β, θ) of the optimum at t whose variables have these states."""
    from kfu._gram import Gram

    lower, upper = problem.at("lower", t), problem.at("upper", t)
    beta = np.where(states == LOWER, lower, np.where(states == UPPER, upper, 0.0))
    free = np.flatnonzero((states == FREE) | (states == FREE_BELOW))
    beta[free] = 0.0
    points = np.arange(problem.n) if problem.points is None else np.asarray(problem.points)
    gram = Gram(X, kernel, "float64", 0)
    groups = max(problem.n_groups, 1)
    group = np.zeros(problem.n, dtype=np.int8) if problem.group is None else problem.group
    linear = problem.at("linear", t)
    offset = np.zeros(problem.n)
    if problem.kink is not None:
        offset = np.where(states == FREE_BELOW, -1.0, 1.0) * problem.at("kink", t)
    theta = np.zeros(groups)
    needs_theta = [g for g in range(problem.n_groups) if np.any(group[free] == g)]
    # At a breakpoint a variable is at the end of its piece up to rounding, and with a block that is
    # nearly singular rounding is not small. Those beyond their ends are put there, and the others
    # solved for again: cutting them off would leave the others where they do not fit.
    low, high = lower, upper
    if problem.kink is not None:
        low = np.where(states == FREE, np.maximum(lower, 0.0), lower)
        high = np.where(states == FREE, upper, np.minimum(upper, 0.0))
    while free.size:
        right = -linear[free] - offset[free]
        bounded = np.flatnonzero(beta)
        if bounded.size:
            right -= np.asarray(gram.block(points[free], points[bounded])) @ beta[bounded]
        M = np.array(gram.block(points[free], points[free]), dtype=np.float64)
        if problem.ridge is not None:
            M[np.diag_indices_from(M)] += problem.ridge[free]
        E = (
            np.stack([group[free] == g for g in needs_theta], axis=1).astype(np.float64)
            if needs_theta
            else np.zeros((free.size, 0))
        )
        need = np.array(
            [
                problem.total[g] + t * problem.total_rate[g] - beta[group == g].sum()
                for g in needs_theta
            ]
        )
        solved, found = _bordered(M, E, right, need)
        theta[needs_theta] = found
        ended = np.clip(solved, low[free], high[free])
        if np.max(np.abs(solved - ended)) > FAR * max(1.0, float(np.max(np.abs(ended)))):
            # No rounding: the block is singular to all digits, and of its many solutions this is
            # one outside of the box.
            beta[free], theta[needs_theta] = _boxed(M, E, right, need, low[free], high[free])
            break
        beyond = solved != ended
        stays = free[~beyond]
        if not np.any(beyond) or any(not np.any(group[stays] == g) for g in needs_theta):
            beta[free] = ended
            break
        beta[free[beyond]] = ended[beyond]
        free = stays
    empty = [g for g in range(problem.n_groups) if g not in needs_theta]
    if empty:
        used = np.flatnonzero(beta)
        F = linear.copy()
        if used.size:
            F += np.asarray(gram.block(points, points[used])) @ beta[used]
        if problem.ridge is not None:
            F += problem.ridge * beta
        for g in empty:
            theta[g] = _middle(problem, F, states, group == g, lower, upper, t)
    return beta, theta


def _bordered(
    M: np.ndarray, E: np.ndarray, right: np.ndarray, need: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M x − E θ = right, Eᵀx = need, with two steps of refinement."""
    border = float(np.mean(np.diag(M))) or 1.0 if E.shape[1] else 0.0
    raised = M + border * (E @ E.T)
    try:
        factor = scipy.linalg.cho_factor(raised, lower=True)
        solve = lambda b: scipy.linalg.cho_solve(factor, b)  # noqa: E731
    except scipy.linalg.LinAlgError:
        inverse = scipy.linalg.pinvh(raised)
        solve = lambda b: inverse @ b  # noqa: E731
    by_border = solve(E) if E.shape[1] else E
    x, theta = np.zeros(len(right)), np.zeros(E.shape[1])
    for _ in range(3):
        left = right - M @ x + E @ theta
        gap = need - E.T @ x
        step = solve(left + border * (E @ gap))
        if E.shape[1]:
            mu = np.linalg.solve(E.T @ by_border, gap - E.T @ step)
            step = step + by_border @ mu
            theta = theta + mu
        x = x + step
    return x, theta


def _boxed(
    M: np.ndarray,
    E: np.ndarray,
    right: np.ndarray,
    need: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """A solution of M x − E θ = right, Eᵀx = need with low ≤ x ≤ high, by least squares."""
    from scipy.optimize import lsq_linear

    groups = E.shape[1]
    A = np.block([[M, -E], [E.T, np.zeros((groups, groups))]])
    unbounded = np.full(groups, np.inf)
    # The method wants an inside; a box without one is given a little.
    high = np.maximum(high, low + 1e-12 * np.maximum(1.0, np.abs(low)))
    bounds = (np.concatenate([low, -unbounded]), np.concatenate([high, unbounded]))
    found = lsq_linear(A, np.concatenate([right, need]), bounds=bounds, method="bvls").x
    return found[: len(low)], found[len(low) :]


def _middle(
    problem: ParametricProblem,
    F: np.ndarray,
    states: np.ndarray,
    mine: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    t: float,
) -> float:
    """θ of a group without free variables: the middle of its interval."""
    kink = np.zeros(len(F)) if problem.kink is None else problem.at("kink", t)
    mine = mine & (lower < upper)
    up = mine & (states != UPPER)
    down = mine & (states != LOWER)
    up_off = np.where((states == LOWER) & (lower < 0), -kink, kink)
    down_off = np.where((states == UPPER) & (upper > 0), kink, -kink)
    high = np.min((F + up_off)[up], initial=np.inf)
    low = np.max((F + down_off)[down], initial=-np.inf)
    ends = [end for end in (low, high) if np.isfinite(end)]
    return float(np.mean(ends)) if ends else 0.0


def follow(
    problem: ParametricProblem,
    X: Any,
    kernel: KernelSpec,
    *,
    start: float,
    stop: float,
    beta: np.ndarray,
    labels: np.ndarray | None = None,
    watch: Watch | None = None,
    settings: PathSettings | None = None,
    progress: Callable[[PathProgress], Any] | None = None,
) -> Track:
    """Follow the solution from `start`, where `beta` is (nearly) optimal, to `stop`.

    `labels` ±1 are those whose wrong signs are counted along the way. Ctrl-C stops between two
    breakpoints: the track so far is returned with status "interrupted".
    """
    begin = time.perf_counter()
    settings = settings or PathSettings()
    run = make_run(problem, X, kernel, start, beta, labels, watch, settings, stop < start)

    def made(status: str) -> Track:
        return _track(run, problem, X, kernel, status, time.perf_counter() - begin)

    status, at_once, taken = run.status, 64, 0
    try:
        while status == "running":
            most = at_once
            if settings.max_steps:
                most = min(most, settings.max_steps - taken)
            before = time.perf_counter()
            status = run.advance(stop, most)
            elapsed = time.perf_counter() - before
            taken = run.n_breakpoints() - 1
            if elapsed < 0.5 * SECONDS_AT_ONCE:
                at_once = min(2 * at_once, STEPS_AT_ONCE)
            elif elapsed > SECONDS_AT_ONCE:
                at_once = max(at_once // 2, 1)
            if status == "running" and settings.max_steps and taken >= settings.max_steps:
                status = "max_steps"
            if progress is not None:
                seen = PathProgress(
                    steps=taken,
                    t=run.t,
                    start=start,
                    stop=stop,
                    n_free=int(run.n_free()),
                    seconds=time.perf_counter() - begin,
                    track=lambda: made("interrupted"),
                )
                if progress(seen) and status == "running":
                    status = "interrupted"
    except KeyboardInterrupt:
        status = "interrupted"
    return made(status)


def make_run(
    problem: ParametricProblem,
    X: Any,
    kernel: KernelSpec,
    t: float,
    beta: np.ndarray,
    labels: np.ndarray | None = None,
    watch: Watch | None = None,
    settings: PathSettings | None = None,
    ends: bool = False,
    records: bool = True,
    rows: Any = None,
) -> Any:
    """The run of the core at t, exact there. `rows` are KernelRows of the same data and points."""
    from kfu._path import KernelRows, ParametricRun

    settings = settings or PathSettings()
    points = np.arange(problem.n) if problem.points is None else np.asarray(problem.points)
    if rows is None:
        watched = None if watch is None else watch.X
        n_bytes = settings.memory_mib * 2**20
        rows = KernelRows(X, kernel, points, watched, n_bytes, settings.n_threads)
    options = {
        "threads": settings.n_threads,
        "stop_without_bound": bool(problem.ends_without_bound and ends),
        "records": records,
        "labels": labels,
        "watched_labels": None if watch is None else watch.labels,
    }
    return ParametricRun(rows, problem.arrays(), np.asarray(beta, dtype=np.float64), t, options)


def _track(
    run: Any, problem: ParametricProblem, X: Any, kernel: KernelSpec, status: str, seconds: float
) -> Track:
    columns = run.breakpoints()
    items, states = run.events()
    at, rows, sets, changes = run.sign_changes()
    ends = columns.pop("event_end")
    columns["theta"] = columns["theta"][:, : max(problem.n_groups, 1)]
    return Track(
        problem=problem,
        X=X,
        kernel=kernel,
        event_start=np.concatenate([[0], ends]),
        event_item=items,
        event_state=states,
        first_state=run.first_places(),
        crossing_t=at,
        crossing_row=rows,
        crossing_set=sets,
        crossing_delta=changes,
        status=status,
        counters=run.counters(),
        seconds=seconds,
        **columns,
    )
