"""The certificate of a model at one cost, from its definition: dense kernel matrix, plain sums."""

import numpy as np


def rbf_matrix(A, B, gamma):
    difference = A[:, None, :] - B[None, :, :]
    return np.exp(-gamma * (difference**2).sum(axis=2))


def spread(model, n):
    """The coefficients of a model by row of the training data."""
    beta = np.zeros(n)
    beta[model.support] = model.coef[0]
    return beta


def svc_values(K, y, weights, cost, beta, bias):
    """(primal, dual) of the C-SVC with f = Kβ + bias; a dual of −∞ where β is outside its box."""
    primal = 0.5 * beta @ K @ beta + cost * weights @ np.maximum(0.0, 1.0 - y * (K @ beta + bias))
    alpha = y * beta
    slack = 1e-9 * cost
    if np.any(alpha < -slack) or np.any(alpha > cost * weights + slack):
        return primal, -np.inf
    return primal, alpha.sum() - 0.5 * beta @ K @ beta


def svr_values(K, y, weights, cost, epsilon, beta, bias):
    """(primal, dual) of the ε-SVR."""
    miss = np.maximum(0.0, np.abs(K @ beta + bias - y) - epsilon)
    primal = 0.5 * beta @ K @ beta + cost * weights @ miss
    if np.any(np.abs(beta) > cost * weights * (1 + 1e-9)):
        return primal, -np.inf
    return primal, y @ beta - epsilon * np.abs(beta).sum() - 0.5 * beta @ K @ beta


def least_loss(loss_of_bias, knots):
    """The smallest value of a convex piecewise linear function, by trying every knot."""
    return min(loss_of_bias(knot) for knot in knots)


def rls_coefficients(K, Y, ridge):
    """(K + ridge I)⁻¹ Y."""
    return np.linalg.solve(K + ridge * np.eye(len(K)), Y)


def rls_left_out(K, Y, ridge):
    """Outputs at each row of the machine that was trained without it, one by one."""
    n = len(K)
    found = np.empty_like(Y)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        coef = rls_coefficients(K[np.ix_(others, others)], Y[others], ridge)
        found[i] = K[i, others] @ coef
    return found


def ridge_degrees_of_freedom(K, ridge):
    return float(np.trace(np.linalg.solve(K + ridge * np.eye(len(K)), K)))
