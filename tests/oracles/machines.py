"""The SVM machines as textbooks state them: duals for a general-purpose optimiser, primals to hold
against, and the conditions of optimality, all from a kernel matrix.

Regression has 2n variables (α, α*) here. Obvious and slow: n of a few dozen. C_i is the cost of row
i, w_i its weight, W = Σ w_i, f = Kβ + b. Imports nothing of kfu.

Vapnik 1995; Cortes and Vapnik 1995; Schölkopf, Smola, Williamson and Bartlett 2000; Schölkopf,
Platt, Shawe-Taylor, Smola and Williamson 2001; Chang and Lin, LIBSVM (2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, minimize


@dataclass
class Optimum:
    """β by row and the value of the maximised dual."""

    beta: np.ndarray
    objective: float


def minimise(H, p, lower, upper, A=None, b=None, start=None):
    """x minimising ½ xᵀHx + pᵀx with lower ≤ x ≤ upper and Ax = b.

    Variables whose bounds meet are taken out first: the optimiser stumbles over them.
    """
    fixed = lower == upper
    if fixed.any():
        x = np.array(lower, dtype=float)
        free = ~fixed
        rest = None if A is None else np.asarray(b) - A[:, fixed] @ x[fixed]
        x[free] = minimise(
            H[np.ix_(free, free)],
            p[free] + H[np.ix_(free, fixed)] @ x[fixed],
            lower[free],
            upper[free],
            None if A is None else A[:, free],
            rest,
        )
        return x
    x = np.clip(np.zeros(len(p)), lower, upper) if start is None else start
    best, value = x, np.inf
    for _ in range(4):  # SLSQP can stop early; restart from where it stopped
        found = minimize(
            lambda x: 0.5 * x @ H @ x + p @ x,
            x,
            jac=lambda x: H @ x + p,
            bounds=[
                (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
                for low, high in zip(lower, upper, strict=True)
            ],
            constraints=[] if A is None else [LinearConstraint(A, b, b)],
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-15},
        )
        x = np.clip(found.x, lower, upper)
        if value < np.inf and found.fun > value - 1e-13 * max(1.0, abs(value)):
            break
        best, value = x, found.fun
    return best


# ---- duals -----------------------------------------------------------------------------------


def svc(K, y, upper, *, targets=None, ridge=None, bias=True):
    """max gᵀα − ½ αᵀ(yyᵀ∘K + diag(ridge))α, 0 ≤ α ≤ upper, and yᵀα = 0 with a bias."""
    g = np.ones(len(y)) if targets is None else targets
    Q = K * np.outer(y, y) + np.diag(np.zeros(len(y)) if ridge is None else ridge)
    equality = (y[None, :], [0.0]) if bias else (None, None)
    alpha = minimise(Q, -g, np.zeros(len(y)), upper, *equality)
    return Optimum(y * alpha, float(g @ alpha - 0.5 * alpha @ Q @ alpha))


def nu_svc(K, y, weights, nu):
    """max −½ αᵀ(yyᵀ∘K)α, 0 ≤ α ≤ w, yᵀα = 0, Σα = νW; before the division by ρ."""
    Q = K * np.outer(y, y)
    A = np.vstack([y, np.ones(len(y))])
    alpha = minimise(Q, np.zeros(len(y)), np.zeros(len(y)), weights, A, [0.0, nu * weights.sum()])
    return Optimum(y * alpha, float(-0.5 * alpha @ Q @ alpha))


def one_class(K, weights, nu):
    """max −½ αᵀKα, 0 ≤ α ≤ w, Σα = νW."""
    n = len(weights)
    A = np.ones((1, n))
    alpha = minimise(K, np.zeros(n), np.zeros(n), weights, A, [nu * weights.sum()])
    return Optimum(alpha, float(-0.5 * alpha @ K @ alpha))


def svr(K, y, costs, epsilon, *, bias=True):
    """max yᵀ(α − α*) − ε Σ(α + α*) − ½ (α − α*)ᵀK(α − α*), 0 ≤ α, α* ≤ C, Σ(α − α*) = 0."""
    n = len(y)
    A = np.concatenate([np.ones(n), -np.ones(n)])[None, :]
    equality = (A, [0.0]) if bias else (None, None)
    return _two_sided(K, epsilon - y, epsilon + y, costs, *equality)


def nu_svr(K, y, costs, nu):
    """max yᵀ(α − α*) − ½ (α − α*)ᵀK(α − α*), 0 ≤ α, α* ≤ C_i, Σα = Σα* = ν Σ C_i / 2."""
    n = len(y)
    A = np.kron(np.eye(2), np.ones((1, n)))
    return _two_sided(K, -y, y, costs, A, [nu * costs.sum() / 2.0] * 2)


def _two_sided(K, p, p_star, costs, A, b):
    n = len(p)
    H = np.block([[K, -K], [-K, K]])
    linear = np.concatenate([p, p_star])
    upper = np.concatenate([costs, costs])
    x = minimise(H, linear, np.zeros(2 * n), upper, A, b)
    return Optimum(x[:n] - x[n:], float(-linear @ x - 0.5 * x @ H @ x))


def hard_margin_plane(X, y):
    """(w, b) of least ½‖w‖² with y(⟨w, x⟩ + b) ≥ 1, from the primal; X is linearly separable."""
    rows = y[:, None] * np.column_stack([X, np.ones(len(y))])
    d = X.shape[1]
    found = minimize(
        lambda v: 0.5 * v[:d] @ v[:d],
        np.zeros(d + 1),
        jac=lambda v: np.append(v[:d], 0.0),
        constraints=[LinearConstraint(rows, 1.0, np.inf)],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return found.x[:d], float(found.x[d])


# ---- primals, at given (β, b) ------------------------------------------------------------------


def _norm(K, beta):
    return float(beta @ K @ beta)


def primal_svc(K, y, costs, beta, bias, targets=1.0):
    slack = np.maximum(0.0, targets - y * (K @ beta + bias))
    return 0.5 * _norm(K, beta) + float(costs @ slack)


def primal_svc2(K, y, costs, beta, bias, targets=1.0):
    slack = np.maximum(0.0, targets - y * (K @ beta + bias))
    return 0.5 * (_norm(K, beta) + float(costs @ slack**2))


def primal_nu_svc(K, y, weights, nu, beta, bias, rho):
    slack = np.maximum(0.0, rho - y * (K @ beta + bias))
    return 0.5 * _norm(K, beta) - nu * rho * weights.sum() + float(weights @ slack)


def primal_one_class(K, weights, nu, beta, rho):
    slack = np.maximum(0.0, rho - K @ beta)
    return 0.5 * _norm(K, beta) - nu * rho * weights.sum() + float(weights @ slack)


def primal_svr(K, y, costs, epsilon, beta, bias):
    loss = np.maximum(0.0, np.abs(K @ beta + bias - y) - epsilon)
    return 0.5 * _norm(K, beta) + float(costs @ loss)


def primal_nu_svr(K, y, costs, nu, beta, bias, epsilon):
    # Both sides of the tube, so that an ε below 0 is judged too.
    residual = K @ beta + bias - y
    loss = np.maximum(0.0, residual - epsilon) + np.maximum(0.0, -residual - epsilon)
    return 0.5 * _norm(K, beta) + nu * epsilon * float(costs.sum()) + float(costs @ loss)


# ---- optimality ----------------------------------------------------------------------------------


def pair_gap(gradient, x, upper, signs, group):
    """The gap of the maximal violating pair: within each group (one multiplier each),

    max{−s_i G_i : x_i s_i can grow} − min{−s_i G_i : x_i s_i can fall}, 0 at least.
    """
    worst = 0.0
    for g in np.unique(group):
        mine = group == g
        value = (-signs * gradient)[mine]
        grows, falls = (x < upper)[mine], (x > 0)[mine]
        positive = signs[mine] > 0
        up = value[np.where(positive, grows, falls)]
        low = value[np.where(positive, falls, grows)]
        if up.size and low.size:
            worst = max(worst, float(up.max() - low.min()))
    return worst


def worst_violation(slope, x, upper):
    """The worst of: slope ≥ 0 where x can grow, slope ≤ 0 where x can fall."""
    return max(0.0, (-slope[x < upper]).max(initial=0.0), slope[x > 0].max(initial=0.0))
