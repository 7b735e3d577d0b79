"""Kernel formulas written out in NumPy float64, one function per kernel: obvious and slow.

Every function takes two dense arrays (n × d, m × d) and the kernel's parameters and returns the
n × m matrix. Nothing here imports kfu.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def _pairs(X: Array, Z: Array) -> tuple[Array, Array]:
    return np.asarray(X, float)[:, None, :], np.asarray(Z, float)[None, :, :]


def linear(X: Array, Z: Array) -> Array:
    x, z = _pairs(X, Z)
    return (x * z).sum(axis=2)


def poly(X: Array, Z: Array, gamma: float, coef0: float, degree: int) -> Array:
    return (gamma * linear(X, Z) + coef0) ** degree


def squared_distance(X: Array, Z: Array) -> Array:
    x, z = _pairs(X, Z)
    return ((x - z) ** 2).sum(axis=2)


def rbf(X: Array, Z: Array, gamma: float) -> Array:
    return np.exp(-gamma * squared_distance(X, Z))


def laplacian(X: Array, Z: Array, gamma: float) -> Array:
    x, z = _pairs(X, Z)
    return np.exp(-gamma * np.abs(x - z).sum(axis=2))


def sigmoid(X: Array, Z: Array, gamma: float, coef0: float) -> Array:
    return np.tanh(gamma * linear(X, Z) + coef0)


def rational(X: Array, Z: Array, gamma: float) -> Array:
    return 1.0 / (1.0 + gamma * squared_distance(X, Z))


def chi2(X: Array, Z: Array, gamma: float) -> Array:
    x, z = _pairs(X, Z)
    total = x + z
    terms = np.where(total > 0, (x - z) ** 2 / np.where(total > 0, total, 1.0), 0.0)
    return np.exp(-gamma * terms.sum(axis=2))


def intersection(X: Array, Z: Array) -> Array:
    x, z = _pairs(X, Z)
    return np.minimum(x, z).sum(axis=2)


def rbf_ard(X: Array, Z: Array, gamma: Array) -> Array:
    x, z = _pairs(X, Z)
    return np.exp(-(np.asarray(gamma) * (x - z) ** 2).sum(axis=2))


def poly_ard(X: Array, Z: Array, gamma: Array, coef0: float, degree: int) -> Array:
    x, z = _pairs(X, Z)
    return ((np.asarray(gamma) * x * z).sum(axis=2) + coef0) ** degree


def precomputed(X: Array, Z: Array) -> Array:
    """K(row point r, column point c) = Z[c][r]; X only fixes the number of rows."""
    return np.asarray(Z, float)[:, : len(np.asarray(X).T)].T.copy()


ORACLES: dict[str, Callable[..., Array]] = {
    "linear": linear,
    "poly": poly,
    "rbf": rbf,
    "laplacian": laplacian,
    "sigmoid": sigmoid,
    "rational": rational,
    "chi2": chi2,
    "intersection": intersection,
    "rbf-ard": rbf_ard,
    "poly-ard": poly_ard,
    "precomputed": precomputed,
}


def log_derivative(evaluate: Callable[[float], Array], value: float, step: float = 1e-5) -> Array:
    """d evaluate(p) / d log p at p = value, by central differences with one extrapolation."""

    def central(h: float) -> Array:
        return (evaluate(value * np.exp(h)) - evaluate(value * np.exp(-h))) / (2.0 * h)

    return (4.0 * central(step / 2.0) - central(step)) / 3.0
