"""The one dual problem and its solution.

    min  ½ αᵀQα + pᵀα + kinkᵀ|α|   s.t.  lower ≤ α ≤ upper,  sᵀα = const (or no equality),
    Q = S K S + diag(ridge),  s = ±1

The kink is the ε of regression: one variable α in [−C, C] for each point. Groups split the equality
in two (the ν machines); sᵀα is then constant over either group.

Machines prepare the arrays (kfu.machines); nothing here knows of them. The core works with β = s∘α
(csrc/kfu/dual.h), which is also what a model stores: f(x) = Σ β_i K(x_i, x) + bias.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from kfu.kernels import KernelSpec
from kfu.solvers.settings import SolverSettings


@dataclass
class DualProblem:
    """Arrays of length n_variables; see the head of the file.

    `points` gives the row of the data behind each variable (several may share one).
    """

    signs: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    ridge: np.ndarray | None = None
    has_equality: bool = True
    kink: np.ndarray | None = None
    group: np.ndarray | None = None  # 0 or 1 for each variable

    def signed(self, beta: np.ndarray | None) -> dict[str, Any]:
        """The arrays in the form of the core, with the start point `beta` (zeros if None)."""
        positive = self.signs > 0
        return {
            "linear": self.signs * self.linear,
            "lower": np.where(positive, self.lower, -self.upper),
            "upper": np.where(positive, self.upper, -self.lower),
            "ridge": self.ridge,
            "kink": self.kink,
            "group": self.group,
            "points": self.points,
            "has_equality": self.has_equality,
            "beta": np.zeros(len(self.signs)) if beta is None else beta,
        }


@dataclass
class Info:
    """What a run tells of itself. The certificate (objective to bias_interval) is recomputed from
    float64 kernel values, from scratch, after the last round."""

    status: str  # converged, max_iterations, max_seconds, interrupted or stalled
    objective: float  # the maximised dual
    duality_gap: float
    kkt_gap: float
    kkt_violation: float
    bias: float
    bias_std: float
    bias_interval: tuple[float, float]
    n_sv: int
    n_usv: int
    iterations: int
    rounds: int
    kernel_evaluations: int
    verification_evaluations: int
    cache_hits: int
    cache_misses: int
    reductions: int
    shrinks: int
    refinements: int
    chunk: int
    precision: str
    changed_precision: bool
    simd: str
    layout: str
    seconds: dict[str, float] = field(default_factory=dict)  # by phase; they add up to the run
    margin: float = 0.0  # ρ of the machines with two groups
    renewals: int = 0  # times the gradient was mended, where rows take two bytes a value
    extrapolations: int = 0  # steps along the differences of earlier rounds
    solver: str = "svmfu"  # which ran
    warnings: list[str] = field(default_factory=list)

    @property
    def cache_hit_rate(self) -> float:
        looked = self.cache_hits + self.cache_misses
        return self.cache_hits / looked if looked else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cache_hit_rate": self.cache_hit_rate}


@dataclass
class Solution:
    """α (and β = s∘α), the bias of f, and the Info."""

    alpha: np.ndarray
    beta: np.ndarray
    bias: float
    info: Info


@dataclass
class Progress:
    """What a progress callback sees between two rounds. Returning True from it stops the run."""

    round: int
    iterations: int
    gap: float
    tolerance: float
    seconds: float
    beta: Callable[[], np.ndarray]
    stage: str = ""  # which of several machines, when there are several
    objective: Callable[[], float] = lambda: float("nan")  # the dual, by the maintained gradient

    @property
    def n_sv(self) -> int:
        return int(np.count_nonzero(self.beta()))


ProgressCallback = Callable[[Progress], bool | None]

STATUS_NAMES = {"optimal": "converged"}  # of the core -> of the Info, where they differ


def solve(
    problem: DualProblem,
    X: Any,
    kernel: KernelSpec,
    settings: SolverSettings,
    *,
    start: np.ndarray | None = None,
    progress: ProgressCallback | None = None,
    store: Any = None,
) -> Solution:
    """Solve `problem` over the rows of X, from the feasible β `start` (zeros if None).

    `store` is a KernelStore of the same X and kernel that other problems share. The solver "auto"
    takes the plain linear kernel through w where that suits (kfu.solvers.linear).
    Ctrl-C stops between two rounds: the solution so far is returned with status "interrupted".
    """
    from kfu._solver import DualRun
    from kfu.solvers.linear import solve_linear, suits_linear

    if settings.solver == "auto" and suits_linear(problem, X, kernel):
        return solve_linear(problem, X, settings, start=start, progress=progress)
    begin = time.perf_counter()
    if store is None:
        store = make_store(X, kernel, settings)
    run = DualRun(store, problem.signed(start), settings.core_options())
    del store  # the run holds it; it may give memory back when nobody else does
    status = _iterate(run, settings, progress, begin)
    try:
        certificate = run.certificate()
    except KeyboardInterrupt:  # heard after the certificate was computed: it is at hand now
        certificate = run.certificate()
    counters = run.counters()
    seconds = run.seconds()
    seconds["other"] = time.perf_counter() - begin - sum(seconds.values())
    solver = "svmfu" if settings.solver == "auto" else settings.solver
    info = Info(status=status, seconds=seconds, solver=solver, **certificate, **counters)
    info.warnings = _warnings(info, settings, len(problem.signs))
    beta = run.beta()
    return Solution(alpha=problem.signs * beta, beta=beta, bias=info.bias, info=info)


def make_store(X: Any, kernel: KernelSpec, settings: SolverSettings) -> Any:
    """What the problems over the rows of X share: see csrc/kfu/kernel_store.h."""
    from kfu._solver import KernelStore

    return KernelStore(X, kernel, settings.n_threads, settings.simd)


def _iterate(
    run: Any, settings: SolverSettings, progress: ProgressCallback | None, begin: float
) -> str:
    status = "running"
    try:
        while status == "running":
            status = run.round()
            elapsed = time.perf_counter() - begin
            if status == "running" and settings.max_seconds and elapsed > settings.max_seconds:
                status = "max_seconds"
            if progress is not None:
                counters = run.counters()
                seen = Progress(
                    round=counters["rounds"],
                    iterations=counters["iterations"],
                    gap=run.gap(),
                    tolerance=settings.tolerance,
                    seconds=elapsed,
                    beta=run.beta,
                    objective=run.objective,
                )
                if progress(seen) and status == "running":
                    status = "interrupted"
    except KeyboardInterrupt:
        status = "interrupted"
    return STATUS_NAMES.get(status, status)


def _warnings(info: Info, settings: SolverSettings, n: int) -> list[str]:
    found = []
    if settings.solver in ("auto", "svmfu") and info.chunk < min(info.n_usv, n):
        found.append(
            f"the chunk ({info.chunk}) is smaller than the number of unbounded SVs "
            f"({info.n_usv}); a larger --chunk or --cache-mib may be faster"
        )
    if settings.chunk and info.chunk < min(settings.chunk, n) and settings.solver != "smo":
        found.append(
            f"the chunk was cut from {settings.chunk} to {info.chunk} to stay within --cache-mib"
        )
    if info.changed_precision:
        found.append(
            "float32 kernel values did not reach the tolerance; the run went on in float64 "
            "(large C, or nearly equal points)"
        )
    if info.status == "max_iterations" and not settings.max_iterations:
        found.append(
            f"stopped after {info.iterations} iterations, the limit when none is given; scale the "
            "features, lower the cost, or set --max-iterations"
        )
    if info.status == "stalled":
        found.append(
            f"no step improves the solution at {info.precision}; the gap stays at "
            f"{info.kkt_gap:.3g} (unscaled features, an indefinite kernel, or a tolerance below "
            "rounding)"
        )
    return found
