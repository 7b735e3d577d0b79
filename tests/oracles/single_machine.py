"""Single-machine multiclass SVMs by a general-purpose optimiser, and judged from scratch.

Obvious and slow: dense matrices, a dozen examples. Imports nothing of kfu.

    crammer-singer    ½ Σ‖w_k‖² + Σ C_i max_k (f_k(x_i) + [k ≠ y_i] − f_{y_i}(x_i))
    weston-watkins    ½ Σ‖w_k‖² + Σ C_i Σ_{k ≠ y_i} max(0, f_k(x_i) + 2 − f_{y_i}(x_i))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, minimize

MARGINS = {"crammer-singer": 1.0, "weston-watkins": 2.0}


def coefficients(alpha, labels, n_classes):
    """B (n_classes × n) of the multipliers α (n × (n_classes − 1), rivals in increasing order)."""
    B = np.zeros((n_classes, len(labels)))
    for i, y in enumerate(labels):
        rivals = [k for k in range(n_classes) if k != y]
        B[rivals, i] = -alpha[i]
        B[y, i] = alpha[i].sum()
    return B


def dual_objective(kind, K, labels, B):
    """What the dual maximises, at B."""
    linear = MARGINS[kind] * B[labels, np.arange(len(labels))].sum()
    return linear - 0.5 * np.einsum("ki,ij,kj->", B, K, B)


def primal_objective(kind, K, labels, costs, B, bias):
    """The primal at f_k = Σ_i B_ki K(x_i, ·) + bias_k."""
    f = B @ K + bias[:, None]
    total = 0.5 * np.einsum("ki,ij,kj->", B, K, B)
    for i, y in enumerate(labels):
        rivals = [f[k, i] - f[y, i] + MARGINS[kind] for k in range(len(f)) if k != y]
        if kind == "crammer-singer":
            total += costs[i] * max(0.0, *rivals)
        else:
            total += costs[i] * sum(max(0.0, r) for r in rivals)
    return total


def solve_dual(kind, K, labels, n_classes, costs, *, bias=False):
    """B (n_classes × n) maximising the dual, by SLSQP over the multipliers α."""
    n, rivals = len(labels), n_classes - 1
    # B is linear in α: its columns are the images of the unit vectors.
    units = np.eye(n * rivals).reshape(-1, n, rivals)
    to_B = np.array([coefficients(unit, labels, n_classes).ravel() for unit in units]).T
    big = np.kron(np.eye(n_classes), K)
    Q = to_B.T @ big @ to_B
    p = np.full(n * rivals, MARGINS[kind])
    constraints = []
    if kind == "crammer-singer":
        rows = np.kron(np.eye(n), np.ones(rivals))
        constraints.append(LinearConstraint(rows, -np.inf, costs))
    if bias:
        sums = to_B.reshape(n_classes, n, -1).sum(axis=1)[1:]  # the first follows from the others
        constraints.append(LinearConstraint(sums, 0.0, 0.0))
    upper = np.repeat(costs, rivals)
    start, best = np.zeros(n * rivals), None
    for _ in range(3):  # SLSQP can stop early; restart from where it stopped
        found = minimize(
            lambda a: 0.5 * a @ Q @ a - p @ a,
            start,
            jac=lambda a: Q @ a - p,
            bounds=[(0.0, float(u)) for u in upper],
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-15},
        )
        if best is None or found.fun < best.fun:
            best = found
        start = np.clip(found.x, 0.0, upper)
    return coefficients(np.clip(best.x, 0.0, upper).reshape(n, rivals), labels, n_classes)


def project_row(kind, v, label, cost):
    """The point of a row's set nearest to v, by bisection on its one multiplier."""
    v = np.asarray(v, dtype=float)
    if kind == "crammer-singer":  # min(U, v + t) with sum zero
        upper = np.where(np.arange(len(v)) == label, cost, 0.0)

        def point(t):
            return np.minimum(upper, v + t)

        def excess(t):
            return point(t).sum()
    else:  # α_k = clip(v_y − v_k − S, 0, cost), S = Σα; excess grows with −S

        def alphas(S):
            return np.clip(np.delete(v[label] - v, label) - S, 0.0, cost)

        def point(t):
            B = np.insert(-alphas(-t), label, 0.0)
            B[label] = -B.sum()
            return B

        def excess(t):
            return alphas(-t).sum() + t

    reach = 2.0 * (np.abs(v).sum() + cost * len(v) + 1.0)
    low, high = -reach, reach
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return point(0.5 * (low + high))


@dataclass
class Judgement:
    """What a dual point is worth; the names are those of kfu's reports."""

    objective: float
    duality_gap: float
    kkt_gap: float
    infeasibility: float
    n_sv: int


def judge(kind, K, labels, costs, B, bias):
    """Recompute every figure of the certificate from K, the labels and the solution alone."""
    n_classes = len(B)
    f = B @ K + bias[:, None]
    gap, infeasibility = 0.0, np.abs(B.sum(axis=0)).max()
    for i, y in enumerate(labels):
        rivals = [k for k in range(n_classes) if k != y]
        alpha = -B[rivals, i]
        slope = f[y, i] - f[rivals, i] - MARGINS[kind]  # of the minimised dual, by α
        infeasibility = max(infeasibility, -alpha.min())
        if kind == "weston-watkins":
            infeasibility = max(infeasibility, alpha.max() - costs[i])
            gap = max(gap, *np.where(alpha < costs[i], -slope, 0.0))
            gap = max(gap, *np.where(alpha > 0.0, slope, 0.0))
        elif costs[i] > 0:
            # The row as a point of {weights ≥ 0, sum = C_i}: rivals have α, the class the rest.
            infeasibility = max(infeasibility, alpha.sum() - costs[i])
            slopes = np.append(slope, 0.0)
            weights = np.append(alpha, costs[i] - B[y, i])
            gap = max(gap, slopes[weights > 0].max() - slopes.min())
    objective = dual_objective(kind, K, labels, B)
    primal = primal_objective(kind, K, labels, costs, B, bias)
    n_sv = int(np.count_nonzero(np.any(B != 0, axis=0)))
    return Judgement(objective, primal - objective, gap, infeasibility, n_sv)
