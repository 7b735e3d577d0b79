"""The machines that have paths, as quadratic programs in signed coefficients β, at one value of the
parameter: what a path has to satisfy there.

    min ½ βᵀKβ + linear'β + kink Σ|β_i|,   lower ≤ β ≤ upper,   Σ_group β = total

`unit` is what a unit of f is in the gradient. Nothing here imports kfu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.oracles import interior_point


@dataclass
class Program:
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    kink: float = 0.0
    groups: np.ndarray | None = None  # the group of each row; None: no equality
    totals: tuple[float, ...] = ()
    unit: float = 1.0

    @property
    def rows_of_groups(self) -> np.ndarray:
        if self.groups is None:
            return np.zeros((0, len(self.linear)))
        return np.stack([self.groups == g for g in range(len(self.totals))]).astype(float)


def svc(y, w, lam, *, bias=True) -> Program:
    groups = np.zeros(len(y), dtype=int) if bias else None
    lower, upper = np.where(y > 0, 0.0, -w), np.where(y > 0, w, 0.0)
    return Program(-lam * y, lower, upper, 0.0, groups, (0.0,) if bias else (), lam)


def svr_lambda(y, w, lam, *, epsilon, bias=True) -> Program:
    groups = np.zeros(len(y), dtype=int) if bias else None
    return Program(-lam * y, -w, w, lam * epsilon, groups, (0.0,) if bias else (), lam)


def svr_epsilon(y, w, epsilon, *, cost, bias=True) -> Program:
    groups = np.zeros(len(y), dtype=int) if bias else None
    return Program(-1.0 * y, -cost * w, cost * w, epsilon, groups, (0.0,) if bias else ())


def one_class(y, w, nu) -> Program:
    nothing = np.zeros(len(w))
    return Program(nothing, nothing, w, 0.0, np.zeros(len(w), dtype=int), (nu * w.sum(),))


def nu_svc(y, w, nu) -> Program:
    half = 0.5 * nu * w.sum()
    lower, upper = np.where(y > 0, 0.0, -w), np.where(y > 0, w, 0.0)
    return Program(np.zeros(len(y)), lower, upper, 0.0, (y < 0).astype(int), (half, -half))


MACHINES: dict[tuple[str, str], Callable[..., Program]] = {
    ("svc", "lambda"): svc,
    ("svr", "lambda"): svr_lambda,
    ("svr", "epsilon"): svr_epsilon,
    ("one-class", "nu"): one_class,
    ("nu-svc", "nu"): nu_svc,
}


def violation(program: Program, K, beta, theta, room=1e-9) -> float:
    """The worst breach of the conditions by (β, θ of each group), in units of f; sums and boxes in
    units of the boxes."""
    slope = K @ beta + program.linear
    if program.groups is not None:
        slope = slope - np.asarray(theta)[program.groups]
    width = program.upper - program.lower
    near = room * width
    above, below = beta > near, beta < -near
    to_grow = slope + np.where(below, -program.kink, program.kink)
    to_fall = -slope + np.where(above, -program.kink, program.kink)
    short = np.where(beta < program.upper - near, -to_grow, 0.0).max(initial=0.0)
    beyond = np.where(beta > program.lower + near, -to_fall, 0.0).max(initial=0.0)
    outside = max((program.lower - beta).max(), (beta - program.upper).max(), 0.0)
    sums = np.abs(program.rows_of_groups @ beta - np.array(program.totals)).max(initial=0.0)
    return float(max(short / program.unit, beyond / program.unit, max(outside, sums) / width.max()))


def cold(program: Program, K) -> np.ndarray:
    """Kβ of the optimum, in units of f. A kink becomes two variables a row."""
    A, b = program.rows_of_groups, np.array(program.totals)
    if not program.kink:
        found = interior_point.solve(K, program.linear, program.lower, program.upper, A, b)
        assert found.violation <= 1e-7 * program.unit, found.violation
        return K @ found.x / program.unit
    H = np.block([[K, -K], [-K, K]])
    p = np.concatenate([program.linear + program.kink, program.kink - program.linear])
    upper = np.concatenate([program.upper, -program.lower])
    found = interior_point.solve(H, p, np.zeros(len(p)), upper, np.hstack([A, -A]), b)
    assert found.violation <= 1e-7 * program.unit, found.violation
    n = len(K)
    return K @ (found.x[:n] - found.x[n:]) / program.unit
