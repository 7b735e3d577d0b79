"""Leave-one-out and its estimates as they are defined: quadratic programmes, one for each row.

Obvious and slow: kernel matrices of a dozen or two rows. Imports nothing of kfu. y is ±1, `upper`
the box of α, `ridge` the diagonal that squared slack adds to the kernel (0 without), f = Kβ + b.

Vapnik and Chapelle 2000; Chapelle 2002; Joachims 2000; Wahba, Lin and Zhang 2000.
"""

from __future__ import annotations

import numpy as np

from tests.oracles.machines import minimise, svc, svr


def trained(K, y, upper, ridge=None, *, bias=True, targets=None):
    """(α, b) of the classifier; b by the unbounded, else the middle of what is possible."""
    ridge = np.zeros(len(y)) if ridge is None else ridge
    alpha = y * svc(K, y, upper, ridge=ridge, bias=bias, targets=targets).beta
    scale = max(float(alpha.max()), 1e-12)
    alpha = np.where(alpha < 1e-7 * scale, 0.0, alpha)
    alpha = np.where(alpha > upper * (1 - 1e-7), upper, alpha)
    if not bias:
        return alpha, 0.0
    g = np.ones(len(y)) if targets is None else targets
    wanted = y * g - K @ (y * alpha) - y * alpha * ridge  # b where the margin is met
    free = (alpha > 0) & (alpha < upper)
    if free.any():
        return alpha, float(wanted[free].mean())
    grows = np.where(y > 0, alpha < upper, alpha > 0)
    low = wanted[grows].max(initial=-np.inf)
    high = wanted[~grows].min(initial=np.inf)
    return alpha, float((low + high) / 2)


def left_out(K, y, upper, ridge=None, *, bias=True, targets=None):
    """f^p(x_p): each row by the machine trained without it."""
    n = len(y)
    ridge = np.zeros(n) if ridge is None else ridge
    outputs = np.empty(n)
    for p in range(n):
        rest = np.delete(np.arange(n), p)
        own = None if targets is None else targets[rest]
        alpha, b = trained(
            K[np.ix_(rest, rest)], y[rest], upper[rest], ridge[rest], bias=bias, targets=own
        )
        outputs[p] = K[p, rest] @ (alpha * y[rest]) + b
    return outputs


def left_out_regression(K, y, costs, epsilon, *, bias=True):
    n = len(y)
    outputs = np.empty(n)
    for p in range(n):
        rest = np.delete(np.arange(n), p)
        beta = svr(K[np.ix_(rest, rest)], y[rest], costs[rest], epsilon, bias=bias).beta
        f = K[:, rest] @ beta
        b = 0.0
        if bias:
            used = np.abs(beta)
            free = (used > 1e-6 * costs[rest]) & (used < costs[rest] * (1 - 1e-6))
            b = float((y[rest] - f[rest] - np.sign(beta) * epsilon)[free].mean())
        outputs[p] = f[p] + b
    return outputs


def constrained_span(K, y, alpha, upper, p, *, bias=True, eta=0.0, boxes=True):
    """S_p² = min ‖Φ_p − Σ λ_i Φ_i‖² + η Σ λ²/α over the unbounded i ≠ p; ∞ where there is no λ."""
    free = [
        i for i in range(len(y)) if i != p and 1e-5 * alpha.max() < alpha[i] < upper[i] * (1 - 1e-5)
    ]
    if not free:
        return np.inf if bias else float(K[p, p])
    free = np.array(free)
    signs = y[free] * y[p]
    # in a = y_i y_p λ_i:  −α_i ≤ α_p a ≤ U − α_i
    low, high = -alpha[free] / alpha[p], (upper[free] - alpha[free]) / alpha[p]
    if not boxes:
        low, high = np.full(free.size, -np.inf), np.full(free.size, np.inf)
    H = K[np.ix_(free, free)] + np.diag(eta / alpha[free])
    H = 2 * H * np.outer(signs, signs)
    A, b = (signs[None, :], [1.0]) if bias else (None, None)
    if bias:
        reach = np.where(signs > 0, high, -low).sum()
        if reach < 1.0 - 1e-9:
            return np.inf
    a = minimise(H, -2 * signs * K[free, p], low, high, A, b)
    value = 0.5 * a @ H @ a - 2 * (signs * K[free, p]) @ a
    return max(0.0, float(K[p, p] + value))


def sphere(K):
    """R² = max Σ β K_ii − βᵀKβ, Σβ = 1, β ≥ 0."""
    n = len(K)
    start = np.full(n, 1.0 / n)
    d = np.diag(K).copy()
    beta = minimise(2 * K, -d, np.zeros(n), np.ones(n), np.ones((1, n)), [1.0], start)
    return float(d @ beta - beta @ K @ beta)


def gacv(K, y, f, alpha):
    total = 0.0
    for p in range(len(y)):
        margin = y[p] * f[p]
        total += max(0.0, 1.0 - margin)
        if margin < -1.0:
            total += 2.0 * alpha[p] * K[p, p]
        elif alpha[p] > 0:
            total += alpha[p] * K[p, p]
    return total / len(y)


def xi_alpha(K, y, f, alpha):
    """Rows with 2 α R² + ξ ≥ 1 among the support vectors."""
    spread = K.max() - K.min()
    slack = np.maximum(0.0, 1.0 - y * f)
    return (alpha > 0) & (2.0 * alpha * spread + slack >= 1.0)
