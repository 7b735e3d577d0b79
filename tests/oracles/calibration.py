"""Calibration by general-purpose optimisers and by definition, slow and obvious.

Imports nothing of kfu.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from tests.oracles.qp import solve_dual


def sigmoid_loss(parameters, f, positive, weight):
    """Platt's regularised negative log-likelihood, one row at a time."""
    A, B = parameters
    n_positive = sum(w for w, p in zip(weight, positive, strict=True) if p)
    n_negative = sum(w for w, p in zip(weight, positive, strict=True) if not p)
    total = 0.0
    for value, p, w in zip(f, positive, weight, strict=True):
        target = (n_positive + 1) / (n_positive + 2) if p else 1 / (n_negative + 2)
        z = A * value + B
        total += w * (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z))
    return total


def fit_sigmoid(f, positive, weight):
    """(A, B) by Nelder–Mead and then BFGS."""
    start = np.zeros(2)
    arguments = (f, positive, weight)
    options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000}
    rough = minimize(sigmoid_loss, start, arguments, method="Nelder-Mead", options=options)
    fine = minimize(sigmoid_loss, rough.x, arguments, method="BFGS", options={"gtol": 1e-10})
    return min((rough, fine), key=lambda found: found.fun).x


def couple_pairs(R):
    """min Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)² over the simplex, by SLSQP."""
    n_classes = len(R)

    def objective(p):
        return sum(
            (R[j, i] * p[i] - R[i, j] * p[j]) ** 2
            for i in range(n_classes)
            for j in range(n_classes)
            if i != j
        )

    return _over_simplex(objective, n_classes)


def bradley_terry_value(p, r, code):
    """Σ_m of the log-likelihood of the generalised Bradley–Terry model."""
    value = 0.0
    for machine, rate in enumerate(r):
        above = sum(p[k] for k in range(len(p)) if code[k, machine] > 0)
        below = sum(p[k] for k in range(len(p)) if code[k, machine] < 0)
        value += rate * np.log(above / (above + below))
        value += (1 - rate) * np.log(below / (above + below))
    return value


def bradley_terry(r, code):
    return _over_simplex(lambda p: -bradley_terry_value(np.maximum(p, 1e-12), r, code), len(code))


def _over_simplex(objective, n_classes):
    found = minimize(
        objective,
        np.full(n_classes, 1 / n_classes),
        bounds=[(0, 1)] * n_classes,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return found.x


def nearest_with_winner(p, winner, gap):
    """min ‖q − p‖² with Σq = 1 and q_winner ≥ q_k + gap, by SLSQP."""
    others = [k for k in range(len(p)) if k != winner]
    constraints = [{"type": "eq", "fun": lambda q: q.sum() - 1}]
    constraints += [{"type": "ineq", "fun": lambda q, k=k: q[winner] - q[k] - gap} for k in others]
    found = minimize(
        lambda q: ((q - p) ** 2).sum(),
        np.full(len(p), 1 / len(p)),
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-16},
    )
    return found.x


def squared_span(K, p, others, has_bias):
    """min ‖Φ_p − Σ λ_i Φ_i‖² over `others`, Σλ = 1 with a bias, by least squares."""
    others = [i for i in others if i != p]
    eigenvalues, vectors = np.linalg.eigh(K)
    points = vectors * np.sqrt(np.maximum(eigenvalues, 0))
    target = points[p]
    directions = points[others]
    if has_bias:
        target = target - directions[0]
        directions = directions[1:] - directions[0]
    if len(directions) == 0:
        return target @ target
    solution = np.linalg.lstsq(directions.T, target, rcond=1e-10)[0]
    rest = target - directions.T @ solution
    return rest @ rest


def machine_output(K, y, upper, has_bias):
    """(alpha, bias) of the C-SVC; the bias is the middle of its interval."""
    alpha = solve_dual(K, y, upper, bias=has_bias)
    if not has_bias:
        return alpha, 0.0
    scores = y - K @ (alpha * y)
    free = (alpha > 1e-6 * upper) & (alpha < upper * (1 - 1e-6))
    if free.any():
        return alpha, float(scores[free].mean())
    lower = ((alpha < upper / 2) & (y > 0)) | ((alpha > upper / 2) & (y < 0))
    low = scores[lower].max(initial=-np.inf)
    high = scores[~lower].min(initial=np.inf)
    return alpha, float((low + high) / 2)


def reliability_by_loops(p, outcome, edges):
    """(share, mean probability, frequency) of each nonempty bin, upper edges included."""
    table = []
    for k in range(len(edges) - 1):
        is_in = (p > edges[k]) & (p <= edges[k + 1])
        if k == 0:
            is_in |= p == edges[0]
        if is_in.any():
            table.append((is_in.mean(), p[is_in].mean(), outcome[is_in].mean()))
    return np.array(table)
