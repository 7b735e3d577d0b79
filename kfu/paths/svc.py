"""The path of the C-SVC in λ = 1/C.

With β = λ·(signed dual coefficients), the dual of  min Σ w_i ξ_i + λ/2 ‖f‖²  is

    min ½ βᵀKβ − λ yᵀβ,   0 ≤ y_i β_i ≤ w_i,   Σβ = 0 (or no equality, without a bias),

whose linear term alone moves with t = λ; f = (Kβ − θ)/λ. Between two events β and g = λf are linear
in λ, f itself is linear in C.

Start. Above a certain λ₀ nothing but θ changes. If both classes weigh the same every β is at its
cost, y_i w_i. Otherwise the lighter class is, and the heavier one minimises ½βᵀKβ over its boxes
with the sum that balances the other (Hastie et al. 2004): one problem for the solver. λ₀ is where
the first row of the lighter class meets the margin. Without bias all β are at their cost from
λ₀ = max y_i (Kβ)_i on.

End. Once no row is at its cost (the classes are separated), β shrinks in proportion to λ and f
stays: the hard margin. If the kernel does not separate them the path goes on to λ → 0.

Hastie, Rosset, Tibshirani, Zhu, The entire regularization path for the support vector machine,
JMLR 5 (2004); Zapién, Regularization path algorithm for statistical learning (thesis, 2009), 2.2.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.machines.reductions import fill
from kfu.machines.task import TrainingTask
from kfu.paths.in_lambda import LambdaPath
from kfu.paths.registry import Span, Start
from kfu.paths.states import Vocabulary, two_sided
from kfu.solvers import DualProblem
from kfu.solvers.dual import solve
from kfu.solvers.parametric import (
    LOWER,
    UPPER,
    ParametricProblem,
    PathSettings,
    Track,
    make_run,
    solve_states,
)

# A path that does not end at a hard margin is followed down to this part of λ₀, or to where
# rounding in λf is this part of λ (last_of).
LOWEST = 1e-6
EXACTNESS = 1e-9
ROUNDING = 1e-12  # of Σ K_ii |β_i|
HIGHEST = (
    1e6  # times λ₀: nothing happens above it, and beside a larger λ the rest would be rounding
)
START_TOLERANCE = (
    1e-6  # of the solver at a start, relative to the gradient; the path makes it exact
)


class SvcPath(LambdaPath):
    machine = "svc"
    summary = "the C-SVC in λ = 1/C"

    def check(self, task: TrainingTask) -> None:
        if task.options.get("margins") is not None:
            raise SettingsError("a path has margins of 1; leave --margins out")
        signs = self.signs(task)
        assert signs is not None
        for sign, name in zip((-1.0, 1.0), task.classes, strict=True):
            if not np.any(task.weights[signs == sign] > 0):
                raise DataError(
                    task.source, None, f"no row of class {name} has a weight", "mend the weights"
                )

    def problem(self, task: TrainingTask) -> ParametricProblem:
        y = self.signs(task)
        assert y is not None
        return ParametricProblem(
            linear=np.zeros(task.n),
            linear_rate=-y,
            lower=np.where(y > 0, 0.0, -task.weights),
            upper=np.where(y > 0, task.weights, 0.0),
            has_equality=task.bias == "free",
            ends_without_bound=True,
        )

    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        y = self.signs(task)
        assert y is not None
        beta, how = heaviest(task, problem, y)
        top, bottom = first_and_last(task, problem, y, beta)
        low = span.low or bottom  # 0: as far as it goes
        high = top if span.high is None else min(span.high, HIGHEST * top)
        begin, end = (low, high) if span.upward else (high, low)
        if not (0.0 < begin < np.inf and 0.0 < end < np.inf) or (begin < end) != span.upward:
            raise SettingsError(
                f"no part of the path lies there: lambda goes from {top:.6g} (C = {1 / top:.6g}) "
                "down; give a range that begins below"
            )
        if begin < top:
            beta, how = self.solved_at(task, problem, begin), "solved"
        return Start(t=begin, stop=end, beta=beta, how=how)

    def solved_at(self, task: TrainingTask, problem: ParametricProblem, lam: float) -> np.ndarray:
        """β at λ, nearly: λ times the signed coefficients of the C-SVC with C = 1/λ."""
        y = self.signs(task)
        assert y is not None
        dual = DualProblem(
            signs=y,
            linear=-np.ones(task.n),
            lower=np.zeros(task.n),
            upper=task.weights / lam,
            points=np.arange(task.n),
            ridge=problem.ridge,
            has_equality=problem.has_equality,
        )
        X, kernel = task.solver_kernel()
        settings = replace(task.settings, tolerance=1e-5, polish=False)
        return lam * solve(dual, X, kernel, settings).beta

    def vocabulary(self, task: TrainingTask) -> Vocabulary:
        y = self.signs(task)
        assert y is not None
        return two_sided(y)

    def beyond(self, task: TrainingTask, path: Any, t: float) -> tuple[np.ndarray, float] | None:
        """Above λ₀ only θ moves; below a hard margin nothing does."""
        track: Track = path.track
        first, last = float(np.max(track.t)), float(np.min(track.t))
        if track.t[0] != first:
            return None  # an upward path says nothing of what lies outside
        if t > first and path.how in ("balanced", "majority", "all at their cost"):
            states = states_above(track)
            beta, theta = solve_states(track.problem, track.X, track.kernel, states, t)
            return self.coefficients(task, beta, theta, t)
        if 0.0 < t < last and track.status == "hard_margin":
            beta, theta = track.solution(last)
            return self.coefficients(task, beta, theta, last)
        return None


def states_above(track: Track) -> np.ndarray:
    """The states for λ > λ₀: rows that meet the margin just at λ₀ are at their bounds above it."""
    first = float(track.t[0])
    beta, _ = track.solution(first)
    lower, upper = track.problem.at("lower", first), track.problem.at("upper", first)
    room = 1e-9 * (upper - lower)
    states = np.where(beta <= lower + room, LOWER, track.first_state)
    return np.where(beta >= upper - room, UPPER, states)


def heaviest(
    task: TrainingTask, problem: ParametricProblem, y: np.ndarray
) -> tuple[np.ndarray, str]:
    """β for λ → ∞, and how it was found: the lighter class at its cost, the heavier one balancing
    it with the least ½βᵀKβ."""
    weights = task.weights
    if not problem.has_equality:
        return y * weights, "all at their cost"
    total = {sign: float(weights[y == sign].sum()) for sign in (1.0, -1.0)}
    if abs(total[1.0] - total[-1.0]) <= 1e-12 * (total[1.0] + total[-1.0]):
        return y * weights, "balanced"
    heavy = 1.0 if total[1.0] > total[-1.0] else -1.0
    rows = np.flatnonzero(y == heavy)
    X, kernel = task.solver_kernel()
    gram = Gram(X, kernel, "float64", task.settings.n_threads)
    beta = np.where(y == heavy, 0.0, y * weights)
    pull = heavy * outputs(gram, beta)[rows]
    start = fill(weights[rows], total[-heavy])
    scale = max(1.0, float(np.ptp(pull)) if pull.size else 1.0)
    dual = DualProblem(
        signs=np.full(rows.size, heavy),
        linear=pull,
        lower=np.zeros(rows.size),
        upper=weights[rows],
        points=rows,
        ridge=None if problem.ridge is None else problem.ridge[rows],
    )
    settings = replace(task.settings, tolerance=START_TOLERANCE * scale, polish=False)
    nearly = solve(dual, X, kernel, settings, start=heavy * start).beta
    signed = dual.signed(None)
    still = ParametricProblem(
        linear=signed["linear"],
        lower=signed["lower"],
        upper=signed["upper"],
        ridge=dual.ridge,
        total=(heavy * total[-heavy], 0.0),
        points=rows,
    )
    path_settings = PathSettings(threads=task.settings.threads, memory_mib=task.settings.cache_mib)
    run = make_run(still, X, kernel, 0.0, nearly, settings=path_settings, records=False)
    beta[rows] = run.beta()
    return beta, "majority"


def first_and_last(
    task: TrainingTask, problem: ParametricProblem, y: np.ndarray, beta: np.ndarray
) -> tuple[float, float]:
    """λ₀, above which nothing but θ changes, and the λ that a path without an end goes down to."""
    X, kernel = task.solver_kernel()
    gram = Gram(X, kernel, "float64", task.settings.n_threads)
    g = outputs(gram, beta)
    if problem.ridge is not None:
        g += problem.ridge * beta
    used = task.weights > 0
    diagonal = np.asarray(gram.diagonal())
    size = float(diagonal @ np.abs(beta))
    if problem.has_equality:
        top = nearest_rows(task, y, g, beta, used)
    else:
        top = float(np.max((y * g)[used]))
    if top <= ROUNDING * size:
        # Classes with the same mean: f is constant at every λ, and only rounding is left of λ₀.
        top = max(float(np.max(diagonal)), np.finfo(float).tiny)
    return top, last_of(top, diagonal, beta)


def last_of(top: float, diagonal: np.ndarray, beta: np.ndarray, unit: float = 1.0) -> float:
    """The λ that a path from `top` without an end goes down to; f is of size `unit`.

    Rounding in Kβ is about ε Σ K_ii |β_i| / √m for m terms: their errors have either sign.
    """
    terms = max(int(np.count_nonzero(beta)), 1)
    rounding = float(np.finfo(float).eps) * float(diagonal @ np.abs(beta)) / math.sqrt(terms)
    return max(LOWEST * top, min(rounding / (EXACTNESS * unit), 1e-2 * top))


def nearest_rows(
    task: TrainingTask, y: np.ndarray, g: np.ndarray, beta: np.ndarray, used: np.ndarray
) -> float:
    """Half the distance in g between the rows of the two classes that meet the margin first."""
    ends = []
    for sign in (1.0, -1.0):
        mine = used & (y == sign)
        inside = mine & (np.abs(beta) > 0) & (np.abs(beta) < task.weights)
        if np.any(inside):
            ends.append(float(np.mean((sign * g)[inside])))
        else:
            ends.append(float(np.max((sign * g)[mine & (beta != 0)])))
    return 0.5 * sum(ends)


def outputs(gram: Gram, beta: np.ndarray) -> np.ndarray:
    """Kβ of all rows, in float64."""
    used = np.flatnonzero(beta)
    found = np.zeros(len(beta))
    everything = np.arange(len(beta))
    for first in range(0, used.size, 1024):
        part = used[first : first + 1024]
        found += beta[part] @ np.asarray(gram.block(part, everything))
    return found
