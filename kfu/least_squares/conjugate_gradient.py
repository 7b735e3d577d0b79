"""Conjugate gradients for several right-hand sides at once (Hestenes and Stiefel 1952).

    A X = B,   A symmetric positive definite, known by its products A P alone,

with a preconditioner M⁻¹ ≈ A⁻¹. Each column is a run of its own, with its own step lengths

    α = (rᵀz) / (pᵀAp),   x += αp,   r −= αAp,   z = M⁻¹r,   β = (r'ᵀz') / (rᵀz),   p = z + βp,

but the columns share the products, which is what costs: reading A (or computing it) once serves all
of them. A column whose residual ‖r‖ ≤ tolerance·‖b‖ leaves the products.

The r that is updated drifts from b − Ax by rounding. Every `refresh` steps b − Ax is computed anew.
While the drift is small beside r it is left alone: putting the true residual into the recurrence
spoils the conjugacy of the directions, and on ill-conditioned systems the run with it. A column
that has drifted further starts again from its true residual. At the end all true residuals are
computed; columns that only seemed to have converged go on. A column that no such round brings
further has reached what rounding permits and is given up as "stalled". Nothing is random, and no
step depends on time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import SettingsError

__all__ = ["CGResult", "conjugate_gradient"]

Product = Callable[[np.ndarray], np.ndarray]

REFRESH = 50  # steps after which the true residual is computed
LARGEST_DRIFT = 0.1  # of the updated residual from the true one, relative to it
LEAST_PROGRESS = 0.5  # of the true residual from one verification to the next, else it stalls
LONE_ROWS = 10_000  # up to which a dot product runs on one thread, the same whatever their number
NONE_BAD = np.zeros(1, dtype=bool)


@dataclass
class CGResult:
    """The solution (n, t) and, for each column, how it was reached.

    `status` is "converged", "max_iterations", "stalled" (rounding permits no better), "indefinite"
    (a direction p with pᵀAp ≤ 0 was met: A is not positive definite), "overflow" (a product was not
    finite), "interrupted" (Ctrl-C) or "stopped" (`progress` asked for it). `residuals` are
    ‖b − Ax‖/‖b‖, computed from scratch.
    """

    solution: np.ndarray
    residuals: np.ndarray
    iterations: np.ndarray
    status: list[str]
    products: int  # products with A, counted by columns
    least_curvature: float  # min pᵀAp/pᵀp met: never below the smallest eigenvalue of A

    @property
    def converged(self) -> bool:
        return all(status == "converged" for status in self.status)

    def info(self) -> dict[str, Any]:
        """Plain figures for a report."""
        return {
            "status": next((s for s in self.status if s != "converged"), "converged"),
            "iterations": int(self.iterations.max(initial=0)),
            "residual": float(self.residuals.max(initial=0.0)),
            "products": self.products,
        }


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """leftᵀright of each column, by one thread."""
    return np.einsum("ij,ij->j", left, right)


class _Columns:
    """The columns still being solved: iterates and directions side by side, C-ordered."""

    def __init__(self, apply: Product, precondition: Product | None, B: np.ndarray) -> None:
        self.apply = apply
        self.precondition = precondition
        self.B = B
        self.X = np.zeros_like(B)
        self.scale = np.sqrt(_dots(B, B))
        self.divisor = np.where(self.scale > 0.0, self.scale, 1.0)
        self.iterations = np.zeros(B.shape[1], dtype=np.int64)
        self.products = 0
        self.least_curvature = math.inf
        self.active = np.empty(0, dtype=np.int64)
        self.lone_residual: float | None = None  # of the last step, if it was a lone one

    def product(self, P: np.ndarray) -> np.ndarray:
        self.products += P.shape[1]
        return self.apply(P)

    def residual_of(self, columns: np.ndarray) -> np.ndarray:
        """b − Ax of some columns, from scratch; those still at x = 0 need no product."""
        moved = np.flatnonzero(np.any(self.X[:, columns] != 0.0, axis=0))
        R = np.ascontiguousarray(self.B[:, columns])
        if moved.size:
            R[:, moved] -= self.product(np.ascontiguousarray(self.X[:, columns[moved]]))
        return R

    def relative(self, R: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.sqrt(_dots(R, R)) / self.divisor[columns]

    def begin(self, columns: np.ndarray, R: np.ndarray) -> None:
        """(Re)start the given columns along their preconditioned residuals."""
        self.active, self.R = columns, R
        self.x = np.ascontiguousarray(self.X[:, columns])
        Z = self._preconditioned(R)
        self.rz = _dots(R, Z)
        self.P = Z.copy() if Z is R else Z

    def _preconditioned(self, R: np.ndarray) -> np.ndarray:
        return R if self.precondition is None else self.precondition(R)

    def step(self, refresh: bool) -> np.ndarray:
        """One step of every active column. Returns which of them met pᵀAp ≤ 0 (not moved)."""
        Q = self.product(self.P)
        self.lone_residual = None
        if not refresh and Q.shape[1] == 1 and len(Q) <= LONE_ROWS and self._lone_step(Q):
            return NONE_BAD
        curvature, length = _dots(self.P, Q), _dots(self.P, self.P)
        self.finite = np.isfinite(curvature)
        usable = (curvature > 0.0) & self.finite & (self.rz > 0.0)
        if usable.all() and length.all():  # nearly always; small problems feel all the rest
            self.least_curvature = min(self.least_curvature, float((curvature / length).min()))
            alpha = self.rz / curvature
            self.iterations[self.active] += 1
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(length > 0.0, curvature / length, math.inf)
            self.least_curvature = min(self.least_curvature, float(np.min(ratio, initial=math.inf)))
            alpha = np.where(usable, self.rz / np.where(usable, curvature, 1.0), 0.0)
            self.iterations[self.active[usable]] += 1
        self.x += alpha * self.P
        self.R -= alpha * Q
        goes_on = usable & ~self._replace_drifted() if refresh else usable
        Z = self._preconditioned(self.R)
        rz = _dots(self.R, Z)
        if goes_on.all():
            beta = rz / self.rz
        else:
            beta = np.where(goes_on, rz / np.where(goes_on, self.rz, 1.0), 0.0)
        self.P *= beta
        self.P += Z
        self.rz = rz
        return ~usable

    def _lone_step(self, Q: np.ndarray) -> bool:
        """The step of a single short column, in plain numbers: arrays of one number take as long as
        its products. False, nothing being changed, where it is not an ordinary one."""
        p, q, r, rz = self.P[:, 0], Q[:, 0], self.R[:, 0], float(self.rz[0])
        curvature, length = float(p @ q), float(p @ p)
        if not (0.0 < curvature < math.inf and rz > 0.0 and length > 0.0):
            return False
        self.least_curvature = min(self.least_curvature, curvature / length)
        alpha = rz / curvature
        self.x[:, 0] += alpha * p
        r -= alpha * q
        self.finite = ~NONE_BAD
        self.iterations[self.active[0]] += 1
        Z = self._preconditioned(self.R)
        self.rz = np.array([r @ Z[:, 0]])
        p *= float(self.rz[0]) / rz
        p += Z[:, 0]
        self.lone_residual = math.sqrt(float(r @ r)) / float(self.divisor[self.active[0]])
        return True

    def _replace_drifted(self) -> np.ndarray:
        """Put the true residual in place of one that has lost touch with it; says which were."""
        self.X[:, self.active] = self.x
        true = self.residual_of(self.active)
        drift = self.relative(true - self.R, self.active)
        drifted = drift > LARGEST_DRIFT * self.relative(self.R, self.active)
        self.R[:, drifted] = true[:, drifted]
        return drifted

    def drop(self, gone: np.ndarray) -> None:
        """Store and leave the active columns marked in `gone`."""
        self.X[:, self.active] = self.x
        kept = ~gone
        self.active, self.rz = self.active[kept], self.rz[kept]
        self.R, self.P, self.x = (
            np.ascontiguousarray(part[:, kept]) for part in (self.R, self.P, self.x)
        )


def conjugate_gradient(
    apply: Product,
    B: np.ndarray,
    *,
    precondition: Product | None = None,
    start: np.ndarray | None = None,
    tolerance: float = 1e-8,
    max_iterations: int | None = None,
    refresh: int = REFRESH,
    progress: Callable[[int, float], bool | None] | None = None,
) -> CGResult:
    """Solve A X = B (n, t) to ‖b − Ax‖ ≤ tolerance·‖b‖ in every column.

    `apply` gives A P and `precondition` M⁻¹ R for C-ordered (n, s) arrays, 1 ≤ s ≤ t, symmetric and
    positive definite both; neither may change its argument. max_iterations = None permits
    10 n + 100 steps. `progress` gets the step and the worst relative residual, and may return True
    to stop. Ctrl-C ends the run between steps with what is reached.
    """
    B = np.ascontiguousarray(B, dtype=np.float64)
    if B.ndim != 2:
        raise SettingsError("right-hand sides are given as the columns of a matrix")
    if not (math.isfinite(tolerance) and 0.0 < tolerance < 1.0):
        raise SettingsError(f"tolerance is {tolerance!r}; a number between 0 and 1 is needed")
    if max_iterations is not None and max_iterations < 1:
        raise SettingsError(f"max_iterations is {max_iterations!r}; at least 1 is needed")
    if refresh < 1:
        raise SettingsError(f"refresh is {refresh!r}; at least 1 is needed")
    limit = 10 * B.shape[0] + 100 if max_iterations is None else int(max_iterations)
    columns = _Columns(apply, precondition, B)
    if start is not None:
        if start.shape != B.shape:
            raise SettingsError(f"a start of shape {start.shape} for right-hand sides {B.shape}")
        columns.X[:, columns.scale > 0.0] = start[:, columns.scale > 0.0]
    return _run(columns, tolerance, limit, refresh, progress)


def _run(
    columns: _Columns,
    tolerance: float,
    limit: int,
    refresh: int,
    progress: Callable[[int, float], bool | None] | None,
) -> CGResult:
    t = columns.B.shape[1]
    status = np.full(t, "running", dtype=object)
    verified = np.full(t, math.inf)  # true residuals of the last verification
    everyone = np.arange(t)
    steps, ending = 0, ""
    while True:
        running = everyone[status == "running"]
        R = columns.residual_of(running)
        relative = columns.relative(R, running)
        done = relative <= tolerance
        idle = ~(done | (relative <= LEAST_PROGRESS * verified[running]))
        verified[running] = relative
        status[running[done]] = "converged"
        status[running[idle]] = ending or "stalled"
        going = ~(done | idle)
        if ending:
            status[running[going]] = ending
        if ending or not going.any():
            break
        columns.begin(running[going], np.ascontiguousarray(R[:, going]))
        steps, ending = _until_all_seem_solved(
            columns, status, tolerance, limit, refresh, progress, steps
        )
    failed = everyone[(status == "indefinite") | (status == "overflow")]
    verified[failed] = columns.relative(columns.residual_of(failed), failed)
    return CGResult(
        columns.X,
        verified,
        columns.iterations,
        [str(s) for s in status],
        columns.products,
        columns.least_curvature,
    )


def _until_all_seem_solved(
    columns: _Columns,
    status: np.ndarray,
    tolerance: float,
    limit: int,
    refresh: int,
    progress: Callable[[int, float], bool | None] | None,
    steps: int,
) -> tuple[int, str]:
    """Step until no column is active; the second value says why, if that was not convergence."""
    ending = ""
    try:
        while columns.active.size:
            if steps >= limit:
                ending = "max_iterations"
                break
            steps += 1
            bad = columns.step(refresh=steps % refresh == 0)
            lone = columns.lone_residual
            if lone is not None and tolerance < lone < math.inf and progress is None:
                continue
            relative = columns.relative(columns.R, columns.active)
            gone = bad | ~((relative > tolerance) & (relative < math.inf))  # NaN is gone too
            if gone.any():
                overflow = ~(np.isfinite(relative) & columns.finite)
                status[columns.active[bad & (relative > tolerance)]] = "indefinite"
                status[columns.active[overflow]] = "overflow"
                gone |= overflow
            if progress is not None and progress(steps, float(np.max(relative))):
                ending = "stopped"
                break
            if gone.any():
                columns.drop(gone)
    except KeyboardInterrupt:
        ending = "interrupted"
    columns.drop(np.ones(columns.active.size, dtype=bool))
    return steps, ending
