"""Low-rank least squares written out with whole matrices; nothing here knows how kfu does it.

K is the full kernel matrix of the rows, `rows` the centres, Y (n, t), w the row weights.
"""

from __future__ import annotations

import itertools

import numpy as np


def root(K):
    """A with AᵀA = K."""
    values, vectors = np.linalg.eigh(K)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def rectangle(K, rows, Y, ridge, w=None, bias=False):
    """(c, b) by least squares on the rows √w (K_ℓm c + b − y) and √ridge K_mm^½ c."""
    n, m = len(K), len(rows)
    w = np.ones(n) if w is None else w
    design = np.zeros((n + m, m + bias))
    design[:n, :m] = K[:, rows]
    design[:n, m:] = 1.0
    design[:n] *= np.sqrt(w)[:, None]
    design[n:, :m] = np.sqrt(ridge) * root(K[np.ix_(rows, rows)])
    targets = np.vstack([np.sqrt(w)[:, None] * Y, np.zeros((m, Y.shape[1]))])
    found = np.linalg.lstsq(design, targets, rcond=1e-15)[0]
    return found[:m], (found[m] if bias else np.zeros(Y.shape[1]))


def approximate(K, rows):
    """K̃ = K_ℓm K_mm⁺ K_mℓ."""
    return K[:, rows] @ np.linalg.pinv(K[np.ix_(rows, rows)], rcond=1e-13, hermitian=True) @ K[rows]


def full(K, Y, ridge, w=None):
    """c with (K + ridge W⁻¹) c = Y; rows of weight 0 left out."""
    w = np.ones(len(K)) if w is None else w
    used = np.flatnonzero(w > 0)
    c = np.zeros(Y.shape)
    c[used] = np.linalg.solve(K[np.ix_(used, used)] + np.diag(ridge / w[used]), Y[used])
    return c


def loo_outputs(K, rows, Y, ridge, w=None, bias=False):
    """Output at each row of the machine trained without it (its weight 0), centres kept."""
    w = np.ones(len(K)) if w is None else w
    out = np.empty(Y.shape)
    for i in range(len(K)):
        without = w.copy()
        without[i] = 0.0
        c, b = rectangle(K, rows, Y, ridge, without, bias)
        out[i] = K[i, rows] @ c + b
    return out


def incomplete_cholesky(K, m):
    """Picks, by the diagonal of the whole K − K̃ computed anew in each step."""
    picks = []
    for _ in range(m):
        rest = K - approximate(K, picks) if picks else K
        picks.append(int(np.argmax(rest.diagonal())))
    return picks


def leverage(K, ridge, w=None):
    """Ridge leverage scores, the diagonal of K (K + ridge W⁻¹)⁻¹."""
    w = np.ones(len(K)) if w is None else w
    return np.diag(K @ np.linalg.inv(K + np.diag(ridge / w)))


def kmeans_plus_plus_sets(K, m):
    """The probability of each set of m centres under D² sampling, by going through all orders."""
    n = len(K)
    square = K.diagonal()[:, None] + K.diagonal() - 2 * K
    chances: dict[frozenset[int], float] = {}
    for order in itertools.permutations(range(n), m):
        chance = 1.0 / n
        for k in range(1, m):
            D = square[:, order[:k]].min(axis=1)
            chance *= D[order[k]] / D.sum()
        chances[frozenset(order)] = chances.get(frozenset(order), 0.0) + chance
    return chances
