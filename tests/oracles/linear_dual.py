"""The dual problem of a linear machine, solved by a general-purpose optimiser, and its figures.

    min ½ βᵀ(XXᵀ + diag(ridge)) β + linearᵀβ,   lower ≤ β ≤ upper,  Σβ = total (or no equality)

Obvious and slow: the matrix is written out, n of a few dozen. Imports nothing of kfu.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize


def matrix(X, ridge):
    """XXᵀ + diag(ridge), written out."""
    X = X.astype(float)
    K = (X @ X.T).toarray() if sp.issparse(X) else X @ X.T
    return K + np.diag(np.zeros(len(K)) if ridge is None else ridge)


def objective(Q, linear, beta):
    """The maximised dual at β."""
    return -0.5 * beta @ Q @ beta - linear @ beta


def solve(Q, linear, lower, upper, total):
    """β of the largest objective; `total` is Σβ, None without equality."""
    scale = max(1.0, np.abs(Q).max())  # SLSQP stops by absolute differences
    constraints = [] if total is None else [LinearConstraint(np.ones((1, len(Q))), total, total)]
    beta = np.clip(np.zeros(len(Q)), lower, upper)
    for _ in range(2):  # SLSQP can stop early; restart from where it stopped
        beta = minimize(
            lambda b: -objective(Q, linear, b) / scale,
            beta,
            jac=lambda b: (Q @ b + linear) / scale,
            bounds=list(zip(lower, upper, strict=True)),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-16},
        ).x
    return np.clip(beta, lower, upper)


def gap(Q, linear, lower, upper, beta, has_equality):
    """The gap of the maximal violating pair; without equality the largest projected gradient."""
    F = Q @ beta + linear
    up = F[beta < upper].min(initial=np.inf)
    low = F[beta > lower].max(initial=-np.inf)
    return max(0.0, low - up) if has_equality else max(0.0, -up, low)
