"""Linear regularised least squares and its kernel form, written out and solved by NumPy.

    min Σ_i w_i (x_i·v + b − y_i)² + ridge ‖v‖²

Obvious and slow: stacked ordinary least squares, every leave-one-out machine trained. Imports
nothing of kfu.
"""

from __future__ import annotations

import numpy as np


def fit(X, Y, ridge, weight=None, intercept=False):
    """v (d, t) and b (t,), by ordinary least squares on rows stacked with √ridge·I.

    The intercept is a column of ones without a row of the penalty; rows are multiplied by √w.
    """
    n, d = X.shape
    root = np.ones(n) if weight is None else np.sqrt(weight)
    columns = np.column_stack([X, np.ones(n)]) if intercept else X
    penalty = np.sqrt(ridge) * np.eye(d, columns.shape[1])
    stacked = np.vstack([root[:, None] * columns, penalty])
    right = np.vstack([root[:, None] * Y, np.zeros((d, Y.shape[1]))])
    found = np.linalg.lstsq(stacked, right, rcond=None)[0]
    return found[:d], found[d] if intercept else np.zeros(Y.shape[1])


def loo_residuals(X, Y, ridge, weight=None, intercept=False):
    """y_i − f(x_i) of the machine trained without row i, by training all of them."""
    out = np.empty_like(Y)
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        part = None if weight is None else weight[rest]
        v, b = fit(X[rest], Y[rest], ridge, part, intercept)
        out[i] = Y[i] - X[i] @ v - b
    return out


def leverages(X, ridge, weight, intercept):
    """∂f_i/∂y_i, by training on every unit vector as the targets."""
    v, b = fit(X, np.eye(len(X)), ridge, weight, intercept)
    return np.diag(X @ v + b).copy()


def gcv(X, Y, ridge, weight, intercept):
    """(1/n) Σ w (y − f)² / (1 − tr H/n)², summed over targets."""
    v, b = fit(X, Y, ridge, weight, intercept)
    n = len(Y)
    df = leverages(X, ridge, weight, intercept).sum()
    return (weight @ (Y - X @ v - b) ** 2).sum() / n / (1.0 - df / n) ** 2


def kernel_coefficients(K, Y, ridge, weight, bias=False):
    """C and b of [[0, 1ᵀ], [1, K + ridge W⁻¹]] (b; C) = (0; Y); without bias its lower block."""
    n = len(K)
    system = K + ridge * np.diag(1.0 / weight)
    if not bias:
        return np.linalg.solve(system, Y), np.zeros(Y.shape[1])
    ones = np.ones((n, 1))
    whole = np.block([[np.zeros((1, 1)), ones.T], [ones, system]])
    found = np.linalg.solve(whole, np.vstack([np.zeros((1, Y.shape[1])), Y]))
    return found[1:], found[0]


def rbf(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
