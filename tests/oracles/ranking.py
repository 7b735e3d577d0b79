"""The ranking machine by brute force: pairs by double loops, the dual with G = P K Pᵀ written out.

Obvious and slow: dense matrices, a few dozen rows. Imports nothing of kfu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize


def all_pairs(y, qid):
    """The complete graph as a set of (preferred, other)."""
    rows = range(len(y))
    return {(u, v) for u in rows for v in rows if qid[u] == qid[v] and y[u] > y[v]}


def reaches(pairs, n):
    """The transitive closure of a graph of pairs, as a boolean matrix (Warshall)."""
    reach = np.zeros((n, n), dtype=bool)
    for u, v in pairs:
        reach[u, v] = True
    for k in range(n):
        reach |= np.outer(reach[:, k], reach[k, :])
    return reach


def incidence(pairs, n):
    """P (m, n): +1 at the preferred row, −1 at the other."""
    P = np.zeros((len(pairs), n))
    P[np.arange(len(pairs)), np.asarray(pairs)[:, 0]] += 1.0
    P[np.arange(len(pairs)), np.asarray(pairs)[:, 1]] -= 1.0
    return P


def solve_dual(K, pairs, upper, targets=None):
    """α that maximises tᵀα − ½ αᵀPKPᵀα in the box: L-BFGS-B, then an active set method.

    L-BFGS-B begins anew from where it ends until that gains nothing: its line search may give up
    far from the solution, where depends on the last bits of the machine's products.
    """
    P = incidence(pairs, len(K))
    G = P @ K @ P.T
    upper = np.asarray(upper, dtype=float)
    t = np.ones(len(P)) if targets is None else np.asarray(targets, dtype=float)
    alpha, value = np.zeros(len(P)), 0.0
    for _ in range(50):
        found = minimize(
            lambda a: 0.5 * a @ G @ a - t @ a,
            alpha,
            jac=lambda a: G @ a - t,
            bounds=[(0.0, float(u)) for u in upper],
            method="L-BFGS-B",
            options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50},
        )
        alpha = np.clip(found.x, 0.0, upper)
        if not found.fun < value - 1e-14 * abs(value):
            break
        value = found.fun
    return _solve_face(G, t, upper, alpha)


def _solve_face(G, t, upper, alpha):
    """The exact solution by the primal-dual active set method from a nearly exact `alpha`, or
    `alpha` where that method does not settle (G is singular: the solution is not unique)."""
    x, F = alpha, G @ alpha - t
    for _ in range(100):
        low, high = x - F <= 0.0, x - F >= upper
        free = ~(low | high)
        x = np.where(high, upper, 0.0)
        rest = t[free] - G[np.ix_(free, ~free)] @ x[~free]
        x[free] = np.linalg.lstsq(G[np.ix_(free, free)], rest, rcond=1e-12)[0]
        F = G @ x - t
        F[free] = 0.0
        is_inside = np.all((x >= 0.0) & (x <= upper))
        if is_inside and np.all(F[low] >= 0.0) and np.all(F[high] <= 0.0):
            return x
    return alpha


@dataclass
class Judgement:
    """What a dual point is worth; the names are those of kfu's reports."""

    objective: float
    primal: float
    kkt_gap: float
    coef: np.ndarray

    @property
    def duality_gap(self):
        return self.primal - self.objective


def judge(K, pairs, upper, alpha, targets=None):
    """Recompute every figure of the certificate from K, the pairs and α alone."""
    P = incidence(pairs, len(K))
    t = np.ones(len(P)) if targets is None else np.asarray(targets, dtype=float)
    coef = P.T @ alpha
    margin = P @ (K @ coef)
    F = margin - t
    square = 0.5 * coef @ K @ coef
    gap = max(0.0, (-F[alpha < upper]).max(initial=0.0), F[alpha > 0].max(initial=0.0))
    primal = square + (upper * np.maximum(0.0, -F)).sum()
    return Judgement(t @ alpha - square, primal, gap, coef)


def ndcg(scores, relevance, qid, at=10):
    """Mean over queries of DCG@at / ideal DCG@at, gains 2^y − 1; queries without gain left out."""
    found = []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        gain = 2.0 ** relevance[rows] - 1.0
        discount = 1.0 / np.log2(np.arange(2, 2 + min(at, len(rows))))
        ideal = (np.sort(gain)[::-1][:at] * discount).sum()
        if ideal > 0:
            order = np.argsort(-scores[rows], kind="stable")[:at]
            found.append((gain[order] * discount).sum() / ideal)
    return float(np.mean(found))
