"""Square-loss machines by definition: dense solves, and training again without each row.

Imports nothing of kfu. K is the whole kernel matrix; Y (n, t); weights w.
"""

from __future__ import annotations

import numpy as np


def solve(K, Y, ridge, w=None, bias=False):
    """(coef, bias) of min Σ w (f − y)² + ridge ‖f‖² from the (bordered) linear system."""
    n, t = Y.shape
    w = np.ones(n) if w is None else np.asarray(w, dtype=float)
    rows = np.flatnonzero(w > 0)
    A = K[np.ix_(rows, rows)] + np.diag(ridge / w[rows])
    coef = np.zeros((n, t))
    if not bias:
        coef[rows] = np.linalg.solve(A, Y[rows])
        return coef, np.zeros(t)
    ones = np.ones((rows.size, 1))
    bordered = np.block([[np.zeros((1, 1)), ones.T], [ones, A]])
    found = np.linalg.solve(bordered, np.vstack([np.zeros((1, t)), Y[rows]]))
    coef[rows] = found[1:]
    return coef, found[0]


def outputs(K, coef, b):
    return K @ coef + b


def leave_one_out(K, Y, ridge, w=None, bias=False):
    """f^{−i}(x_i) by training without row i, the ridge kept."""
    n, t = Y.shape
    w = np.ones(n) if w is None else np.asarray(w, dtype=float)
    out = np.empty((n, t))
    for i in range(n):
        without = w.copy()
        without[i] = 0.0
        if not without.any():
            out[i] = 0.0  # no rows: f = 0
            continue
        coef, b = solve(K, Y, ridge, without, bias)
        out[i] = K[i] @ coef + b
    return out


def objective(K, Y, ridge, w, coef, b):
    """Σ w (f − y)² + ridge cᵀKc of each column."""
    residual = K @ coef + b - Y
    return w @ residual**2 + ridge * np.einsum("it,ij,jt->t", coef, K, coef)


def smoother(K, ridge, w, bias=False):
    """H: fitted = H Y, column by column of the identity."""
    n = len(K)
    coef, b = solve(K, np.eye(n), ridge, w, bias)
    return K @ coef + b


def psvm(K, Y, ridge, w, bias=True):
    """Ridge regression on the basis functions K(x_j, ·) and 1, by normal equations."""
    basis = np.column_stack([K, np.ones(len(K))]) if bias else K
    A = basis.T @ (w[:, None] * basis) + ridge * np.eye(basis.shape[1])
    theta = np.linalg.solve(A, basis.T @ (w[:, None] * Y))
    return (theta[:-1], theta[-1]) if bias else (theta, np.zeros(Y.shape[1]))


def psvm_leave_one_out(K, Y, ridge, bias=True):
    """Without row i among the rows, with its basis function kept."""
    out = np.empty(Y.shape)
    for i in range(len(K)):
        w = np.ones(len(K))
        w[i] = 0.0
        coef, b = psvm(K, Y, ridge, w, bias)
        out[i] = K[i] @ coef + b
    return out


def rbf(X, gamma):
    X = np.asarray(X, dtype=float)
    distances = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-gamma * distances)
