"""The baselines written out from their definitions: loops over points, dense matrices.

Kernel matrices are arguments, so nothing here knows a kernel. Imports nothing of kfu.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def projection_machine(K, y, weight, dim):
    """(c, b, least hinge loss) of the kernel projection machine of dimension `dim`.

    The programme with slacks, as it is written in the definition, for K = V Λ Vᵀ.
    """
    values, vectors = np.linalg.eigh(K)
    lam, V = values[::-1][:dim], vectors[:, ::-1][:, :dim]
    n = len(y)
    margin = np.column_stack([y[:, None] * V, y, np.eye(n)])
    found = linprog(
        np.concatenate([np.zeros(dim + 1), weight]),
        A_ub=-margin,
        b_ub=-np.ones(n),
        bounds=[(None, None)] * (dim + 1) + [(0, None)] * n,
    )
    assert found.status == 0, found.message
    return V @ (found.x[:dim] / lam), found.x[dim], found.fun


def hinge_sum(values, y, weight):
    return sum(w * max(0.0, 1.0 - s * f) for f, s, w in zip(values, y, weight, strict=True))


def distance_to_mean(own, cross, within, weight):
    """‖φ(x) − c‖² from K(x,x), K(x, members), K(members, members) and the members' weights."""
    share = np.asarray(weight) / np.sum(weight)
    return own - 2.0 * (share @ cross) + share @ within @ share


def centroid_classes(K_new, K, own, labels, weight, n_classes):
    """The class with the nearest mean for each new point; K_new is (new, training)."""
    classes = []
    for row, k_own in zip(K_new, own, strict=True):
        distances = []
        for k in range(n_classes):
            m = np.flatnonzero((labels == k) & (weight > 0))
            if m.size == 0:
                distances.append(np.inf)
                continue
            distances.append(distance_to_mean(k_own, row[m], K[np.ix_(m, m)], weight[m]))
        classes.append(int(np.argmin(distances)))
    return np.array(classes)


def parzen_scores(K_new, labels, weight, priors):
    """π_k times the weighted mean of K over class k: (new, classes)."""
    return np.array(
        [
            [
                prior * np.sum(weight[labels == k] * row[labels == k]) / weight[labels == k].sum()
                for k, prior in enumerate(priors)
            ]
            for row in K_new
        ]
    )


def window_means(K_new, targets, weight):
    """Σ w y K / Σ w K for each new point; targets (training, outputs)."""
    return np.array([(weight * row) @ targets / (weight @ row) for row in K_new])


def neighbours_of(squared, weight, k):
    """The k nearest training points of each row of squared distances, equal ones by number."""
    order = []
    for row in squared:
        present = [i for i in range(len(row)) if weight[i] > 0]
        order.append(sorted(present, key=lambda i: (row[i], i))[:k])
    return order


def neighbour_shares(squared, members, weight, power):
    """w_i d_i^-power of the members; those at distance 0 alone where there are any."""
    d = np.sqrt(squared[members])
    if power and np.any(d == 0.0):
        return weight[members] * (d == 0.0)
    return weight[members] * (d**-power if power else 1.0)


def knn_classes(squared, labels, weight, k, n_classes, power=0):
    """(winning class, scores) of each row; equal scores go to the nearer class."""
    winners, scores = [], []
    for row, members in zip(squared, neighbours_of(squared, weight, k), strict=True):
        shares = neighbour_shares(row, members, weight, power)
        votes = np.zeros(n_classes)
        for i, share in zip(members, shares, strict=True):
            votes[labels[i]] += share
        votes /= votes.sum()
        best = np.flatnonzero(votes > votes.max() - 1e-9)
        winners.append(next(labels[i] for i in members if labels[i] in best))
        scores.append(votes)
    return np.array(winners), np.array(scores)


def knn_means(squared, y, weight, k, power=0):
    means = []
    for row, members in zip(squared, neighbours_of(squared, weight, k), strict=True):
        shares = neighbour_shares(row, members, weight, power)
        means.append(shares @ y[members] / shares.sum())
    return np.array(means)
