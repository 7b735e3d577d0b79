"""How far a point of a path is from the solution there, recomputed from float64 kernel values.

With F = (K + ridge)β + linear(t) and the multiplier θ of a variable's group (0 without an
equality), β is optimal when no variable gains by moving: for one that can grow F + kink − θ ≥ 0,
for one that can fall θ − F + kink ≥ 0 (with the sign of the kink on its side of zero).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.solvers.parametric import ParametricProblem

AT_BOUND = 1e-12  # of the width of the box
BLOCK_CELLS = 1 << 21


@dataclass(frozen=True)
class Certificate:
    """The minimised objective, the worst violation in units of F, and how far β is infeasible."""

    objective: float
    violation: float
    imbalance: float


def outputs(X: Any, kernel: Any, beta: np.ndarray, threads: int = 0) -> np.ndarray:
    """Kβ over all rows, in float64, a block of rows at a time."""
    n, support = len(beta), np.flatnonzero(beta)
    values = np.zeros(n)
    if not support.size:
        return values
    gram = Gram(X, kernel, precision="float64", threads=threads)
    rows = max(64, BLOCK_CELLS // support.size)
    for first in range(0, n, rows):
        some = np.arange(first, min(n, first + rows))
        values[some] = gram.block(some, support) @ beta[support]
    return values


def certify(
    problem: ParametricProblem,
    X: Any,
    kernel: Any,
    t: float,
    beta: np.ndarray,
    theta: np.ndarray,
    threads: int = 0,
) -> Certificate:
    """The certificate of β and θ at t."""
    n = len(beta)
    linear, lower, upper = (problem.at(name, t) for name in ("linear", "lower", "upper"))
    kink = np.zeros(n) if problem.kink is None else problem.at("kink", t)
    product = outputs(X, kernel, beta, threads)
    if problem.ridge is not None:
        product += problem.ridge * beta
    F = product + linear
    objective = 0.5 * float(beta @ product) + float(linear @ beta) + float(kink @ np.abs(beta))

    group = np.zeros(n, np.int64) if problem.group is None else np.asarray(problem.group, np.int64)
    groups = problem.n_groups
    threshold = np.asarray(theta, dtype=np.float64)[group] if groups else np.zeros(n)
    room = AT_BOUND * (upper - lower)
    up = F + np.where(beta >= 0.0, kink, -kink) - threshold
    down = threshold - F - np.where(beta > 0.0, kink, -kink)
    rising = np.where(beta < upper - room, -up, 0.0).max(initial=0.0)
    falling = np.where(beta > lower + room, -down, 0.0).max(initial=0.0)
    outside = max((lower - beta).max(initial=0.0), (beta - upper).max(initial=0.0))
    imbalance = 0.0
    if groups:
        totals = np.array(problem.total[:groups]) + t * np.array(problem.total_rate[:groups])
        sums = np.bincount(group, weights=beta, minlength=groups)
        imbalance = float(np.abs(sums - totals).max())
    return Certificate(objective, float(max(rising, falling)), max(imbalance, float(outside)))
