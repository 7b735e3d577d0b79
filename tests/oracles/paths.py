"""The λ-path of the C-SVC followed step by step: the KKT system solved afresh at every step.

Hastie, Rosset, Tibshirani, Zhu 2004. Obvious and slow, for data in general position (no ties, no
duplicates, K positive definite on the margin). α in [0, w], f = (Σ y_j α_j K(x_j, ·) + α₀)/λ, λ
falls. Imports nothing of kfu.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import LinearConstraint, minimize

SMALL = 1e-9


@dataclass
class OraclePath:
    """Breakpoints k = 0..m: λ, α and α₀ there; the sets and errors just below."""

    lambdas: list[float] = field(default_factory=list)
    alphas: list[np.ndarray] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)
    margins: list[list[int]] = field(default_factory=list)  # I_α after the event
    moved: list[tuple[int, str]] = field(default_factory=list)  # the event of k = 1..m

    def at(self, lam):
        """(α, α₀) at λ, which are linear between breakpoints."""
        lambdas = np.array(self.lambdas)
        k = int(np.clip(np.searchsorted(-lambdas, -lam), 1, len(lambdas) - 1))
        share = (lambdas[k - 1] - lam) / (lambdas[k - 1] - lambdas[k])
        alpha = (1 - share) * self.alphas[k - 1] + share * self.alphas[k]
        return alpha, (1 - share) * self.offsets[k - 1] + share * self.offsets[k]

    def decision(self, K, y, lam):
        alpha, offset = self.at(lam)
        return (K @ (y * alpha) + offset) / lam


def start_of_path(K, y, w):
    """(λ, α, α₀, margin) at the largest λ that matters."""
    heavy = 1.0 if w[y > 0].sum() >= w[y < 0].sum() else -1.0
    many, few = y == heavy, y == -heavy
    total = w[few].sum()
    alpha = w.astype(float).copy()
    if w[many].sum() > total * (1 + 1e-12):
        alpha[many] = majority(K, y, w, many, few, total)
    g = K @ (y * alpha)
    inside = many & (alpha > SMALL) & (alpha < w - SMALL)
    alpha[many & (alpha <= SMALL)] = 0.0
    at_top = many & (alpha >= w - SMALL)
    alpha[at_top] = w[at_top]
    rho = heavy * (np.mean(heavy * g[inside]) if inside.any() else np.max(heavy * g[many & at_top]))
    nearest = np.flatnonzero(few)[np.argmax(-heavy * g[few])]
    lam = heavy * (rho - g[nearest]) / 2
    offset = -(rho + g[nearest]) / 2
    margin = sorted({*np.flatnonzero(inside).tolist(), int(nearest)})
    if not inside.any():
        first = np.flatnonzero(at_top)[np.argmax(heavy * g[at_top])]
        margin = sorted({int(first), int(nearest)})
    return float(lam), alpha, float(offset), margin


def majority(K, y, w, many, few, total):
    """α of the heavier class that minimise αᵀYKYα with the lighter class at its bounds."""
    Q = K * np.outer(y, y)
    fixed = Q[np.ix_(many, few)] @ w[few]
    inner = Q[np.ix_(many, many)]
    upper = w[many]
    found = minimize(
        lambda a: 0.5 * a @ inner @ a + fixed @ a,
        upper * (total / upper.sum()),
        jac=lambda a: inner @ a + fixed,
        bounds=[(0.0, float(u)) for u in upper],
        constraints=[LinearConstraint(np.ones((1, upper.size)), total, total)],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return refined(inner, fixed, upper, total, found.x)


def refined(Q, p, upper, total, alpha):
    """The QP's solution to rounding accuracy, from the sets that SLSQP found."""
    free = (alpha > 1e-6) & (alpha < upper - 1e-6)
    alpha = np.where(alpha >= upper - 1e-6, upper, np.where(free, alpha, 0.0))
    if not free.any():
        return alpha
    k = int(free.sum())
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = Q[np.ix_(free, free)]
    system[k, :k] = system[:k, k] = 1.0
    right = np.append(-p[free] - Q[np.ix_(free, ~free)] @ alpha[~free], total - alpha[~free].sum())
    alpha[free] = np.linalg.solve(system, right)[:k]
    return alpha


def follow(K, y, w=None, *, stop=1e-3, max_steps=10000):
    """The path from λ_max down to `stop`, or to where no point is at its bound."""
    y = np.asarray(y, dtype=float)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=float)
    lam, alpha, offset, margin = start_of_path(K, y, w)
    path = OraclePath([lam], [alpha.copy()], [offset], [list(margin)])
    while len(path.moved) < max_steps:
        at_bound = [i for i in range(len(y)) if i not in margin and alpha[i] > 0]
        if not at_bound and path.moved:
            break
        step = next_event(K, y, w, lam, alpha, offset, margin)
        if step is None or step[0] <= stop:
            finish(path, K, y, stop, lam, alpha, offset, margin)
            break
        lam_next, item, where, direction = step
        alpha[margin] -= (lam - lam_next) * direction[1:]
        offset -= (lam - lam_next) * direction[0]
        lam = lam_next
        if where == "margin":
            margin.append(item)
        else:
            margin.remove(item)
            alpha[item] = 0.0 if where == "correct" else w[item]
        path.lambdas.append(lam)
        path.alphas.append(alpha.copy())
        path.offsets.append(offset)
        path.margins.append(sorted(margin))
        path.moved.append((item, where))
    return path


def finish(path, K, y, stop, lam, alpha, offset, margin):
    direction = direction_of(K, y, margin)
    alpha = alpha.copy()
    alpha[margin] -= (lam - stop) * direction[1:]
    path.lambdas.append(stop)
    path.alphas.append(alpha)
    path.offsets.append(offset - (lam - stop) * direction[0])
    path.margins.append(sorted(margin))
    path.moved.append((-1, "end"))


def direction_of(K, y, margin):
    """(η₀, η): how fast α₀ and the α of the margin fall with λ."""
    k = len(margin)
    system = np.zeros((k + 1, k + 1))
    system[0, 1:] = system[1:, 0] = y[margin]
    system[1:, 1:] = K[np.ix_(margin, margin)] * np.outer(y[margin], y[margin])
    return np.linalg.solve(system, np.append(0.0, np.ones(k)))


def next_event(K, y, w, lam, alpha, offset, margin):
    """(λ, item, where it goes, direction) of the event at the largest λ below; None at the end."""
    direction = direction_of(K, y, margin)
    g = K @ (y * alpha) + offset
    h = K[:, margin] @ (y[margin] * direction[1:]) + direction[0]
    best = None
    for position, item in enumerate(margin):
        speed = direction[1 + position]
        if abs(speed) > 1e-14:
            end = 0.0 if speed > 0 else w[item]
            found = lam - (alpha[item] - end) / speed
            best = larger(best, (found, item, "correct" if speed > 0 else "error"))
    for item in range(len(y)):
        if item in margin:
            continue
        # y f = 1:  y (g − (λ₀ − λ) h) = λ
        closing = 1 - y[item] * h[item]
        is_error = alpha[item] > 0
        if (closing > 1e-14) == is_error and abs(closing) > 1e-14:
            found = (y[item] * g[item] - lam * y[item] * h[item]) / closing
            best = larger(best, (found, item, "margin"))
    return None if best is None or best[0] <= 0 else (*best, direction)


def larger(best, candidate):
    return candidate if best is None or candidate[0] > best[0] else best


def kkt_violation(K, y, w, lam, alpha, offset):
    """The worst violation of the optimality conditions, in units of y f."""
    margin = y * (K @ (y * alpha) + offset) / lam
    room = 1e-9 * w
    short = np.where(alpha < w - room, 1 - margin, 0.0).max(initial=0.0)
    beyond = np.where(alpha > room, margin - 1, 0.0).max(initial=0.0)
    outside = max((-alpha).max(), (alpha - w).max(), 0.0)
    return max(short, beyond, outside, abs(y @ alpha))
