"""The ε-path: every cost of a range, each with a proof that its solution is good enough.

For n beyond the reach of the exact path. The support vector machines with a piecewise linear loss

    V(C) = min P(f; C),   P = ½‖w‖² + C·L(f),   L = Σ c_i (1 − y f)₊ (svc) or Σ c_i |f − y|_ε (svr)

are solved approximately at a handful of costs, the breakpoints; between two of them the solution is
the mixture that is linear in C (kfu.paths.gap_segment has the derivation). For every C of the range

    (P − D) / P ≤ gap,   so that   V ≤ P ≤ V / (1 − gap),

D being the dual value of the same coefficients, which lie within the box of that C as if trained
there. The proof needs no kernel values but those of the breakpoints, which are warm-started from
one another (kfu.paths.gap_follower).

Approximating a parametrised problem by few solutions with a certified gap: Giesen, Jaggi and Laue,
"Approximating parameterized convex optimization problems" (ESA 2010; ACM Transactions on Algorithms
9, 2012). That their number grows as 1/√gap where the value is concave in the parameter, as V is, a
minimum of functions linear in C: Giesen, Müller, Laue and Swiercy, "Approximating concavely
parameterized optimization problems" (NIPS 2012). There a solution is kept until its gap is used up;
here neighbours are mixed, which makes the stretches longer.

    path = follow_gap(X, y, kernel, cost_range=(1e-2, 1e2), gap=1e-2)
    path.at(3.0)              the Model at C = 3; its info has duality_gap and relative_gap
    path.gap_at(3.0)          the relative gap proved there, at most path.worst_gap
    path.points, path.costs   the breakpoints, ascending in C
    path.covered              the costs for which this holds: (lowest, highest)
    path.status               done, or why it covers less: interrupted, max_seconds, max_steps;
                              stalled: covers the range with a larger gap than was asked for
    path.records()            the rows of the path file, event "solve", and the `gap` of each
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machines.task import TrainingTask
from kfu.machines.training import prepare
from kfu.paths.gap_breakpoint import Breakpoint
from kfu.paths.gap_follower import GapFollower
from kfu.paths.gap_result import GapPath, signs_of
from kfu.paths.sloped_loss import SlopedLoss

if TYPE_CHECKING:
    from kfu.scale import Scaler
    from kfu.solvers.settings import SolverSettings

__all__ = ["COST_RANGE", "GapPath", "follow_gap"]

COST_RANGE = (1e-2, 1e2)
MACHINES = ("svc", "svr")


def follow_gap(
    X: Any,
    y: Any,
    kernel: KernelSpec | None = None,
    *,
    machine: str = "svc",
    cost_range: tuple[float, float] = COST_RANGE,
    gap: float = 1e-2,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: np.ndarray | None = None,
    bias: bool | str | None = None,
    settings: SolverSettings | None = None,
    X_valid: Any = None,
    y_valid: Any = None,
    scaler: Scaler | None = None,
    max_steps: int = 0,
    progress: Callable[[Breakpoint, int], bool | None] | None = None,
    source: str = "data",
    **options: Any,
) -> GapPath:
    """The path of `machine` (svc with two classes, svr with its `epsilon`) over a range of costs.

    X, y, kernel, weights and bias are those of kfu.train. `settings` gives cache, threads,
    precision and limits of the solver (max_seconds: of the whole path); its tolerance is not used.
    X_valid and y_valid give the validation error of each breakpoint. `scaler` is the one X has gone
    through: the models get it, and X_valid goes through it. `progress` is called with each
    breakpoint and the number of those kept before it; True ends the path there, as Ctrl-C does.
    """
    low, high = _checked_range(cost_range)
    if not (isinstance(gap, (int, float)) and 0.0 < gap < 1.0):
        raise SettingsError(f"gap is {gap!r}; give a number between 0 and 1, as 0.01")
    if machine not in MACHINES:
        raise SettingsError(f"machine {machine} has no gap path; choose {' or '.join(MACHINES)}")
    if max_steps < 0:
        raise SettingsError(f"max_steps is {max_steps!r}; give 0 (no limit) or more")
    task = prepare(
        X,
        y,
        machine=machine,
        kernel=kernel,
        class_weight=class_weight,
        sample_weight=sample_weight,
        bias=bias,
        settings=settings,
        source=source,
        **options,
    )
    if task.options.get("margins") is not None:
        raise SettingsError("a gap path takes no margins of single rows")
    loss = _loss_of(task)
    data, solved_kernel = task.solver_kernel()
    follower = GapFollower(
        data,
        solved_kernel,
        loss,
        float(gap),
        has_bias=task.has_free_bias,
        settings=task.settings,
        max_steps=max_steps,
        progress=progress,
    )
    follower.run(low, high)
    path = GapPath(
        task=task,
        loss=loss,
        gap=float(gap),
        points=follower.points,
        segments=follower.segments,
        status=follower.status,
        tally=follower.tally,
        scaler=scaler,
    )
    if X_valid is not None:
        path.validate(X_valid, y_valid)
    return path


def _loss_of(task: TrainingTask) -> SlopedLoss:
    if task.labels is None:
        assert task.targets is not None
        if not np.any(task.weights > 0.0):
            raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
        return SlopedLoss.tube(task.targets, task.weights, float(task.options["epsilon"]))
    if len(task.classes) != 2:
        raise DataError(
            task.source,
            None,
            f"{len(task.classes)} classes",
            "a path has two; leave the rows of the others out",
        )
    return SlopedLoss.hinge(signs_of(task, task.labels), task.weights)


def _checked_range(cost_range: tuple[float, float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in cost_range)
    except (TypeError, ValueError):
        raise SettingsError(f"the range of costs is {cost_range!r}; give two numbers") from None
    if not (np.isfinite(low) and np.isfinite(high) and low > 0.0):
        raise SettingsError(
            f"the range of costs is {low:g} to {high:g}; give finite numbers greater than 0"
        )
    if low > high:
        raise SettingsError(f"the range of costs is empty: {low:g} is above {high:g}")
    return low, high
