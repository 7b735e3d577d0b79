"""The ranking machine's dual: pairs of rows in, one coefficient for each row out.

    max  Σ_p t_p α_p − ½ αᵀ P K Pᵀ α    s.t.  0 ≤ α_p ≤ C_p,

row p of P being +1 at the preferred row of the pair, −1 at the other; f(x) = Σ_i γ_i K(x_i, x) with
γ = Pᵀα. It is the dual of  ½‖f‖² + Σ_p C_p max(0, t_p − (f(x_u) − f(x_v))):  no bias, no equality.
How it is solved is told in csrc/kfu/rank_dual.h, rank_rounds.h, rank_steps.h and rank_newton.h;
graphs of pairs are made in kfu.ranking.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.solvers.dual import STATUS_NAMES, Info, Progress, ProgressCallback
from kfu.solvers.settings import SolverSettings


@dataclass
class RankingSolution:
    """α by pair, the expansion γ by row of X, and the Info (bias 0; n_sv counts rows, n_usv pairs
    strictly inside their box; kkt_gap is the largest projected gradient)."""

    alpha: np.ndarray
    coef: np.ndarray
    info: Info


def solve_ranking(
    X: Any,
    pairs: np.ndarray,
    costs: np.ndarray,
    kernel: KernelSpec,
    settings: SolverSettings,
    *,
    targets: np.ndarray | None = None,
    start: np.ndarray | None = None,
    progress: ProgressCallback | None = None,
) -> RankingSolution:
    """Solve the problem above for `pairs` (m, 2) of rows of X, the preferred one first.

    `costs` (m,) are the bounds C_p, `targets` (m,) the margins t_p (1 if None), `start` (m,) a
    feasible α. Of the settings, `chunk` bounds the rows of a subproblem; solver, selection and
    shrinking do not apply. Ctrl-C stops between two rounds: the solution so far is returned with
    status "interrupted".
    """
    from kfu._rank import RankRun

    begin = time.perf_counter()
    arrays = _checked(X, pairs, costs, targets, start)
    run = RankRun(X, kernel, arrays, settings.core_options())
    status = _iterate(run, settings, progress, begin)
    try:
        certificate = run.certificate()
    except KeyboardInterrupt:  # heard after the certificate was computed: it is at hand now
        certificate = run.certificate()
    seconds = run.seconds()
    seconds["other"] = time.perf_counter() - begin - sum(seconds.values())
    info = Info(
        status=status,
        seconds=seconds,
        **certificate,
        kkt_violation=certificate["kkt_gap"],  # there is no bias that could make them differ
        bias=0.0,
        bias_std=0.0,
        bias_interval=(0.0, 0.0),
        reductions=0,
        shrinks=0,
        **run.counters(),
    )
    info.warnings = _warnings(info, settings, len(arrays["points"]))
    return RankingSolution(alpha=run.alpha(), coef=run.coefficients(), info=info)


def _checked(
    X: Any,
    pairs: np.ndarray,
    costs: np.ndarray,
    targets: np.ndarray | None,
    start: np.ndarray | None,
) -> dict[str, Any]:
    """The arrays of the core, after checks that a caller of the library may have forgotten."""
    n = int(X.shape[0])
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise DataError(
            "pairs",
            None,
            f"an array of shape {pairs.shape} and type {pairs.dtype}",
            "give row numbers of shape (m, 2), the preferred row first",
        )
    if len(pairs) == 0:
        raise DataError("pairs", None, "there is no pair", "ranking learns from pairs of rows")
    if pairs.min() < 0 or pairs.max() >= n:
        bad = int(np.flatnonzero(np.any((pairs < 0) | (pairs >= n), axis=1))[0])
        raise DataError(
            "pairs", None, f"pair {bad} names row {pairs[bad].tolist()} of {n}", "rows count from 0"
        )
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if same.size:
        raise DataError(
            "pairs", None, f"pair {same[0]} prefers row {pairs[same[0], 0]} to itself", "remove it"
        )
    upper = _by_pair("costs", costs, len(pairs))
    if upper.min() < 0:
        raise SettingsError("the cost of a pair is negative; costs are at least 0")
    target = None if targets is None else _by_pair("targets", targets, len(pairs))
    alpha = np.zeros(len(pairs)) if start is None else _by_pair("start", start, len(pairs))
    if np.any((alpha < 0) | (alpha > upper)):
        raise SettingsError("start is not feasible; each entry lies between 0 and the pair's cost")
    # Rows that occur in a pair, without a sort of all pairs.
    occurs = np.zeros(n, dtype=bool)
    occurs[pairs[:, 0]] = True
    occurs[pairs[:, 1]] = True
    points = np.flatnonzero(occurs)
    position = np.zeros(n, dtype=np.int32)
    position[points] = np.arange(len(points), dtype=np.int32)
    return {
        "points": points.astype(np.int64),
        "preferred": position[pairs[:, 0]],
        "other": position[pairs[:, 1]],
        "upper": upper,
        "target": target,
        "alpha": alpha,
    }


def _by_pair(name: str, values: np.ndarray, m: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (m,):
        raise SettingsError(f"{name} has shape {array.shape}; one number for each of {m} pairs")
    if not np.all(np.isfinite(array)):
        raise SettingsError(f"{name} holds a number that is not finite")
    return array


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
                    beta=run.coefficients,
                )
                if progress(seen) and status == "running":
                    status = "interrupted"
    except KeyboardInterrupt:
        status = "interrupted"
    return STATUS_NAMES.get(status, status)


def _warnings(info: Info, settings: SolverSettings, n: int) -> list[str]:
    found = []
    if settings.chunk and info.chunk < min(settings.chunk, n):
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
            f"no step improves the solution at {info.precision}; the largest projected gradient "
            f"stays at {info.kkt_gap:.3g} (unscaled features, an indefinite kernel, or a tolerance "
            "below rounding)"
        )
    return found
