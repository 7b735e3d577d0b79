"""Curves, areas, their variances and ranking scores from their definitions: loops over pairs,
thresholds and orders. Obvious and slow; imports nothing of kfu."""

from __future__ import annotations

import itertools
import math

import numpy as np


def points(is_positive, scores, weights):
    """(threshold, fpr, tpr, precision) for every distinct score, falling, after (inf, 0, 0, 1)."""
    total_pos = sum(w for p, w in zip(is_positive, weights, strict=True) if p)
    total_neg = sum(w for p, w in zip(is_positive, weights, strict=True) if not p)
    rows = [(math.inf, 0.0, 0.0, 1.0)]
    kept = {f for f, w in zip(scores, weights, strict=True) if w > 0}
    for threshold in sorted(kept, reverse=True):
        called = [k for k, f in enumerate(scores) if f >= threshold]
        tp = sum(weights[k] for k in called if is_positive[k])
        fp = sum(weights[k] for k in called if not is_positive[k])
        rows.append((threshold, fp / total_neg, tp / total_pos, tp / (tp + fp)))
    return np.array(rows)


def kernel(x, z):
    return 1.0 if x > z else 0.5 if x == z else 0.0


def area(is_positive, scores, weights):
    """The weighted share of pairs of a positive and a negative row that are in order."""
    won = total = 0.0
    for p, f, w in zip(is_positive, scores, weights, strict=True):
        for q, g, v in zip(is_positive, scores, weights, strict=True):
            if p and not q:
                total += w * v
                won += w * v * kernel(f, g)
    return won / total


def area_covariance(is_positive, first, second):
    """DeLong's covariance of the areas of two scores, from all pairs."""
    pos = [k for k, p in enumerate(is_positive) if p]
    neg = [k for k, p in enumerate(is_positive) if not p]
    psi = [np.array([[kernel(f[i], f[j]) for j in neg] for i in pos]) for f in (first, second)]
    V = [table.mean(axis=1) for table in psi]
    W = [table.mean(axis=0) for table in psi]
    by_pos = sum((a - V[0].mean()) * (b - V[1].mean()) for a, b in zip(*V, strict=True))
    by_neg = sum((a - W[0].mean()) * (b - W[1].mean()) for a, b in zip(*W, strict=True))
    m, n = len(pos), len(neg)
    return by_pos / (m - 1) / m + by_neg / (n - 1) / n


def ndcg_of_order(grades, at):
    def dcg(values):
        return sum((2.0**y - 1) / math.log2(i + 2) for i, y in enumerate(values[:at]))

    return dcg(grades) / dcg(sorted(grades, reverse=True))


def expected_ndcg(scores, grades, at):
    """The mean of NDCG over every order that the scores allow (n! of them: tiny n only)."""
    values = []
    for order in itertools.permutations(range(len(scores))):
        if all(scores[i] >= scores[j] for i, j in itertools.pairwise(order)):
            values.append(ndcg_of_order([grades[i] for i in order], at))
    return sum(values) / len(values)


def pair_counts(scores, grades, qid):
    """(pairs with y_i > y_j and f_i <= f_j, pairs with y_i > y_j), each within one query."""
    n = len(scores)
    pairs = [
        (i, j) for i in range(n) for j in range(n) if qid[i] == qid[j] and grades[i] > grades[j]
    ]
    return sum(scores[i] <= scores[j] for i, j in pairs), len(pairs)
