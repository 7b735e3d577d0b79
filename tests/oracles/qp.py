"""The dual of the C-SVC, solved by a general-purpose optimiser and judged from scratch.

Obvious and slow: dense matrices, n of a few dozen. Imports nothing of kfu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, minimize


def solve_dual(K, y, upper, *, bias=True):
    """alpha maximising Σα − ½ αᵀ(yyᵀ∘K)α with 0 ≤ α ≤ upper and, with a bias, yᵀα = 0."""
    Q = K * np.outer(y, y)
    n = len(y)
    constraints = [LinearConstraint(y[None, :], 0.0, 0.0)] if bias else []
    best = None
    start = np.zeros(n)
    for _ in range(3):  # SLSQP can stop early; restart from where it stopped
        found = minimize(
            lambda a: 0.5 * a @ Q @ a - a.sum(),
            start,
            jac=lambda a: Q @ a - 1.0,
            bounds=[(0.0, float(u)) for u in upper],
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        if best is None or found.fun < best.fun:
            best = found
        start = np.clip(found.x, 0.0, upper)
    return np.clip(best.x, 0.0, upper)


@dataclass
class Judgement:
    """What a dual point is worth; the names are those of kfu's reports."""

    objective: float
    kkt_gap: float
    kkt_violation: float
    duality_gap: float
    equality: float


def judge(K, y, upper, alpha, bias, *, has_bias=True):
    """Recompute every figure of the certificate from K, the labels and the solution alone."""
    coef = alpha * y
    f = K @ coef + bias
    margin = y * f
    G = y * (K @ coef) - 1.0  # gradient of the minimised dual
    objective = alpha.sum() - 0.5 * coef @ K @ coef
    slack = np.maximum(0.0, 1.0 - margin)
    primal = 0.5 * coef @ K @ coef + (upper * slack).sum()
    can_grow, can_fall = alpha < upper, alpha > 0
    if has_bias:
        up = np.where(y > 0, can_grow, can_fall)
        low = np.where(y > 0, can_fall, can_grow)
        values = -y * G
        gap = max(0.0, values[up].max() - values[low].min()) if up.any() and low.any() else 0.0
    else:
        gap = max(0.0, (-G[can_grow]).max(initial=0.0), G[can_fall].max(initial=0.0))
    violation = max(
        0.0, (1.0 - margin[can_grow]).max(initial=0.0), (margin[can_fall] - 1.0).max(initial=0.0)
    )
    return Judgement(objective, gap, violation, primal - objective, float(y @ alpha))
