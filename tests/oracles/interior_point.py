"""Quadratic programs with boxes and equalities, by a primal-dual interior-point method.

    min ½ xᵀHx + pᵀx,   lower ≤ x ≤ upper,   Ax = b,      H positive semidefinite

Dense and slow (a factorisation of H + D at every iteration), but it needs no start, knows nothing
of active sets, and takes singular H and tied rows as they come. The last iterate is made exact by
solving for the variables that are inside their boxes; that is kept only if it is better. Nothing
here imports kfu.

Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2
(1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg


@dataclass
class Solution:
    """x, the multipliers of Ax = b (Hx + p − Aᵀθ is the gradient that boxes hold), and the worst
    violation of the conditions in units of that gradient."""

    x: np.ndarray
    theta: np.ndarray
    violation: float


def solve(H, p, lower, upper, A=None, b=None, *, iterations=200) -> Solution:
    """The optimum; boxes of no width are taken out first."""
    n = len(p)
    A = np.zeros((0, n)) if A is None else np.atleast_2d(np.asarray(A, dtype=float))
    b = np.zeros(len(A)) if b is None else np.asarray(b, dtype=float)
    inside = np.flatnonzero(upper > lower)
    x = np.array(lower, dtype=float)
    scale = float(np.mean(np.diag(H))) or 1.0
    width = float(np.mean((upper - lower)[inside]))
    H, p = H / scale, (p + H @ np.where(upper > lower, 0.0, lower)) / (scale * width)
    rest = (b - A @ np.where(upper > lower, 0.0, lower)) / width
    low, high = lower[inside] / width, upper[inside] / width
    part, equal = H[np.ix_(inside, inside)], A[:, inside]
    found, theta = interior(part, p[inside], low, high, equal, rest, iterations)
    best = violation(part @ found + p[inside] - equal.T @ theta, found, low, high)
    exact = refined(part, p[inside], low, high, equal, rest, found, theta)
    if exact is not None:
        better = violation(part @ exact[0] + p[inside] - equal.T @ exact[1], exact[0], low, high)
        if better < best:
            (found, theta), best = exact, better
    x[inside] = found * width
    return Solution(x, theta * scale * width, best * scale * width)


def interior(H, p, low, high, A, b, iterations):
    """The iterates of Mehrotra's method, to where they get no better."""
    n = len(p)
    x = 0.5 * (low + high)
    theta = np.zeros(len(A))
    from_low = np.full(n, max(1.0, float(np.abs(H @ x + p).max())))
    from_high = from_low.copy()
    best, least = (x, theta), np.inf
    worse = 0
    for _ in range(iterations):
        s, t = x - low, high - x
        stationary = H @ x + p - A.T @ theta - from_low + from_high
        feasible = A @ x - b
        mu = (s @ from_low + t @ from_high) / (2 * n)
        size = max(float(np.abs(stationary).max()), float(np.abs(feasible).max(initial=0.0)), mu)
        if size < least:
            best, least, worse = (x.copy(), theta.copy()), size, 0
        else:
            worse += 1
        if size < 1e-15 or worse > 8:
            break
        diagonal = from_low / s + from_high / t
        try:
            factor = scipy.linalg.cho_factor(H + np.diag(diagonal + 1e-15), lower=True)
        except scipy.linalg.LinAlgError:
            break
        by_rows = scipy.linalg.cho_solve(factor, A.T) if len(A) else A.T

        def direction(low_target, high_target):
            right = -stationary + low_target / s - high_target / t  # noqa: B023
            dx = scipy.linalg.cho_solve(factor, right)  # noqa: B023
            dtheta = np.zeros(len(A))
            if len(A):
                dtheta = scipy.linalg.lstsq(A @ by_rows, -feasible - A @ dx)[0]  # noqa: B023
                dx = dx + by_rows @ dtheta  # noqa: B023
            d_low = (low_target - from_low * dx) / s  # noqa: B023
            d_high = (high_target + from_high * dx) / t  # noqa: B023
            return dx, dtheta, d_low, d_high

        dx, dtheta, d_low, d_high = direction(-s * from_low, -t * from_high)
        step = min(longest(s, dx), longest(t, -dx), longest(from_low, d_low))
        step = min(step, longest(from_high, d_high))
        after = (s + step * dx) @ (from_low + step * d_low)
        after += (t - step * dx) @ (from_high + step * d_high)
        target = (after / (2 * n * mu)) ** 3 * mu if mu > 0 else 0.0
        dx, dtheta, d_low, d_high = direction(
            target - s * from_low - dx * d_low, target - t * from_high + dx * d_high
        )
        step = min(longest(s, dx), longest(t, -dx), longest(from_low, d_low))
        step = 0.9995 * min(step, longest(from_high, d_high))
        x, theta = x + step * dx, theta + step * dtheta
        from_low, from_high = from_low + step * d_low, from_high + step * d_high
        x = np.clip(x, low + 1e-300, high)
        if np.any(x - low <= 0) or np.any(high - x <= 0):
            break
    return best


def longest(values, change):
    """The longest step, at most 1, that keeps values + step·change ≥ 0."""
    falls = change < 0
    return min(1.0, float(np.min(-values[falls] / change[falls], initial=1.0)))


def refined(H, p, low, high, A, b, x, theta):
    """Solves for the variables inside their boxes, and again where that shows others to be there.

    Where many solutions exist it takes the one nearest to x. None if the sets do not settle.
    """
    gradient = H @ x + p - A.T @ theta
    at_low = (x - low < gradient) & (gradient > 0)
    at_high = (high - x < -gradient) & (gradient < 0)
    m = len(A)
    for _ in range(40):
        free = np.flatnonzero(~(at_low | at_high))
        exact = np.where(at_low, low, np.where(at_high, high, np.clip(x, low, high)))
        k = free.size
        if not k:
            return (exact, theta) if np.abs(A @ exact - b).max(initial=0.0) < 1e-12 else None
        system = np.zeros((k + m, k + m))
        system[:k, :k] = H[np.ix_(free, free)]
        system[:k, k:] = -A[:, free].T
        system[k:, :k] = A[:, free]
        for _ in range(3):
            right = np.concatenate([-(H @ exact + p - A.T @ theta)[free], b - A @ exact])
            step = scipy.linalg.lstsq(system, right, cond=1e-14, lapack_driver="gelsy")[0]
            exact[free] += step[:k]
            theta = theta + step[k:]
        gradient = H @ exact + p - A.T @ theta
        too_low, too_high = exact < low - 1e-13, exact > high + 1e-13
        wrong = (at_low & (gradient < -1e-15)) | (at_high & (gradient > 1e-15))
        if not np.any(too_low | too_high | wrong):
            return np.clip(exact, low, high), theta
        at_low, at_high = (at_low & ~wrong) | too_low, (at_high & ~wrong) | too_high
    return None


def violation(gradient, x, low, high, room=1e-9):
    """How much a variable that can move would gain by it; gradient is that with Aᵀθ taken off."""
    width = high - low
    rises = np.where(x < high - room * width, -gradient, 0.0).max(initial=0.0)
    falls = np.where(x > low + room * width, gradient, 0.0).max(initial=0.0)
    return float(max(rises, falls))
