"""Single-machine multiclass SVMs: all K functions from one optimisation problem.

    min ½ Σ_k ‖w_k‖² + Σ_i C_i · loss_i,    f_k(x) = ⟨w_k, φ(x)⟩ + b_k,  predict argmax_k f_k

    crammer-singer    loss_i = max_k (f_k(x_i) + [k ≠ y_i]) − f_{y_i}(x_i)
    weston-watkins    loss_i = Σ_{k ≠ y_i} max(0, f_k(x_i) + 2 − f_{y_i}(x_i))

K. Crammer, Y. Singer, JMLR 2 (2001) 265–292; J. Weston, C. Watkins, ESANN (1999). The biases b_k
are zero unless asked for. The dual variables are a matrix, f_k = Σ_i coef[k, i] K(x_i, ·) + b_k:
every column of `coef` sums to zero and is ≤ 0 but for the class of its example.
csrc/kfu/multiclass_row.h derives the dual, its KKT conditions and the exact optimum of one column;
multiclass_dual.h is the solver.

With two classes both are the binary C-SVC (without bias): f_1 − f_0 of crammer-singer at cost C is
its f at cost 2C, and f_1 = −f_0 of weston-watkins at cost C is its f at cost C.
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


@dataclass(frozen=True)
class SingleMachine:
    """A loss over all classes at once."""

    margin: float  # asked of f_y − f_k
    summary: str


SINGLE_MACHINES: dict[str, SingleMachine] = {
    "crammer-singer": SingleMachine(1.0, "one slack an example: the worst rival class pays"),
    "weston-watkins": SingleMachine(2.0, "a slack for each rival class of an example"),
}


@dataclass
class MulticlassSolution:
    """f_k(x) = Σ_i coef[k, i] K(x_i, x) + bias[k], and the report of the run."""

    coef: np.ndarray  # (n_classes, n)
    bias: np.ndarray  # (n_classes,), zeros without biases
    info: Info


@dataclass
class MulticlassProgress(Progress):
    """As Progress; `beta` gives the coefficients so far, n_classes × n."""

    @property
    def n_sv(self) -> int:
        return int(np.count_nonzero(np.any(self.beta() != 0.0, axis=0)))


def solve_single_machine(
    kind: str,
    X: Any,
    labels: np.ndarray,
    n_classes: int,
    costs: np.ndarray,
    kernel: KernelSpec,
    settings: SolverSettings,
    *,
    bias: bool = False,
    start: MulticlassSolution | np.ndarray | None = None,
    progress: ProgressCallback | None = None,
) -> MulticlassSolution:
    """The machine called `kind` for the rows of X, whose classes are `labels` in 0..n_classes−1.

    `costs` are the C_i; a row of cost 0 is there and never a support vector. `kernel` is resolved.
    `start` is a solution, or its coefficients, to begin with: it is brought within the bounds of
    this problem. The status of the Info is "converged" when the KKT conditions are met to
    settings.tolerance (in units of f) by float64 kernel values; objective is the maximised dual
    and duality_gap primal − dual, of the same values. n_sv counts rows with a coefficient, n_usv
    those off the corners of their bounds, iterations the rows that were solved and reductions the
    steps of all free rows together. Fields that speak of one bias, and of caches this solver does
    not have, are zero.

    With `bias`, whose dual has one equality for each class, kkt_gap covers the move that b would
    make next, and duality_gap the |b_k Σ_i coef_ki| that is left.

    Ctrl-C stops between two rounds: the solution so far is returned with status "interrupted".
    """
    from kfu._multiclass import MulticlassRun

    begin = time.perf_counter()
    labels, costs = _checked(kind, X, labels, n_classes, costs)
    problem = {
        "kind": kind,
        "n_classes": n_classes,
        "labels": labels,
        "costs": costs,
        "has_bias": bias,
        "coef": None,
        "bias": None,
    }
    if start is not None:
        coef = start.coef if isinstance(start, MulticlassSolution) else start
        problem["coef"] = feasible_start(kind, coef, labels, n_classes, costs).T
        if bias and isinstance(start, MulticlassSolution):
            problem["bias"] = start.bias
    run = MulticlassRun(X, kernel, problem, settings.core_options())
    status = _iterate(run, settings, progress, begin)
    try:
        certificate = run.certificate()
    except KeyboardInterrupt:  # heard after the certificate was computed: it is at hand now
        certificate = run.certificate()
    counters = run.counters()
    seconds = run.seconds()
    seconds["other"] = time.perf_counter() - begin - sum(seconds.values())
    info = Info(
        status=status,
        bias=0.0,
        bias_std=0.0,
        bias_interval=(0.0, 0.0),
        cache_hits=0,
        cache_misses=0,
        shrinks=0,
        seconds=seconds,
        **certificate,
        **counters,
    )
    info.warnings = _warnings(info, settings, len(labels))
    return MulticlassSolution(coef=run.coef(), bias=run.bias(), info=info)


def feasible_start(
    kind: str, coef: Any, labels: np.ndarray, n_classes: int, costs: np.ndarray
) -> np.ndarray:
    """`coef` (n_classes × n) within the bounds of a problem with these labels and costs.

    Multipliers α = −coef of the rival classes are made ≥ 0 and cut to the cost: each of them, or
    (crammer-singer) all of a row in proportion. What is feasible stays as it is.
    """
    coef = np.array(coef, dtype=np.float64)
    if coef.shape != (n_classes, len(labels)):
        raise SettingsError(
            f"the start has shape {coef.shape}; {n_classes} classes and {len(labels)} rows need "
            f"{(n_classes, len(labels))}"
        )
    if not np.all(np.isfinite(coef)):
        raise SettingsError("the start has coefficients that are not finite")
    columns = np.arange(len(labels))
    alpha = np.maximum(-coef, 0.0)
    alpha[labels, columns] = 0.0
    total = alpha.sum(axis=0)
    shared = kind == "crammer-singer"
    over = total > costs if shared else np.any(alpha > costs, axis=0)
    if shared:
        alpha[:, over] *= costs[over] / total[over]
    else:
        alpha[:, over] = np.minimum(alpha[:, over], costs[over])
    total = alpha.sum(axis=0)
    own = coef[labels, columns]
    limit = costs if shared else np.inf
    is_sum = (np.abs(own - total) <= 1e-14 * len(coef) * total) & (own <= limit)
    feasible = 0.0 - alpha
    feasible[labels, columns] = np.where(is_sum, own, np.minimum(total, limit))
    return feasible


def _checked(
    kind: str, X: Any, labels: Any, n_classes: int, costs: Any
) -> tuple[np.ndarray, np.ndarray]:
    if kind not in SINGLE_MACHINES:
        raise SettingsError(f"kind is {kind!r}; choose one of {', '.join(SINGLE_MACHINES)}")
    if n_classes < 2:
        raise SettingsError(f"{n_classes} classes; a multiclass machine needs at least 2")
    n = X.shape[0]
    if n == 0:
        raise DataError("data", None, "no rows", "training needs at least one example")
    labels, costs = np.asarray(labels), np.asarray(costs, dtype=np.float64)
    for name, values in (("labels", labels), ("costs", costs)):
        if values.shape != (n,):
            raise SettingsError(f"{name} have shape {values.shape}; {n} rows need {(n,)}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise SettingsError(f"labels are {labels.dtype}; give class indices 0..{n_classes - 1}")
    outside = (labels < 0) | (labels >= n_classes)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise SettingsError(
            f"the label of row {row + 1} is {labels[row]}; class indices are 0..{n_classes - 1}"
        )
    bad = ~np.isfinite(costs) | (costs < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise SettingsError(
            f"the cost of row {row + 1} is {costs[row]:g}; costs are finite and not negative"
        )
    return labels.astype(np.int64), costs


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
                seen = MulticlassProgress(
                    round=counters["rounds"],
                    iterations=counters["iterations"],
                    gap=run.gap(),
                    tolerance=settings.tolerance,
                    seconds=elapsed,
                    beta=run.coef,
                )
                if progress(seen) and status == "running":
                    status = "interrupted"
    except KeyboardInterrupt:
        status = "interrupted"
    return STATUS_NAMES.get(status, status)


def _warnings(info: Info, settings: SolverSettings, n: int) -> list[str]:
    found = []
    if settings.chunk and info.rounds and info.chunk < min(settings.chunk, n):
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
            f"no step improves the solution at {info.precision}; the violation stays at "
            f"{info.kkt_gap:.3g} (unscaled features, an indefinite kernel, or a tolerance below "
            "rounding)"
        )
    return found
