"""Centres by k-means++: rows far from those chosen so far, by chance.

Each next centre is drawn with probability proportional to w D², D the distance in feature space to
the nearest centre so far, D²(x, z) = K(x, x) + K(z, z) − 2K(x, z) (Arthur and Vassilvitskii 2007).
Candidates are drawn and evaluated a block at a time, from the distances D₀ at its beginning; one
whose distance has since become D is kept with probability D²/D₀², which makes the draw exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.kernels import KernelSpec
from kfu.least_squares.drawn_centres import Centres, drawn

MOST_CANDIDATES = 256  # at a time
CANDIDATE_VALUES = 2**24
ZERO_DISTANCE = 1e-6  # squared, of the largest K(x, x): float32 values know no smaller one


def kmeans_plus_plus(
    X: Any,
    kernel: KernelSpec,
    m: int,
    seed: int = 0,
    ridge: float | None = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    """`potential` of the info is Σ w D² at the end, as a part of Σ w D² to the first centre."""
    n = X.shape[0]
    rng = np.random.default_rng(seed)
    w = np.ones(n) if weight is None else weight
    gram = Gram(X, kernel, "float32", threads)
    diagonal = np.asarray(gram.diagonal())
    zero = ZERO_DISTANCE * float(np.abs(diagonal).max())
    D = np.full(n, np.inf)
    first = int(drawn(rng, w, 1)[0])
    chosen = [first]
    _approach(D, diagonal, np.asarray(gram.cross(X[[first]])), np.array([first]), zero)
    start = float(w @ D)
    most = min(max(CANDIDATE_VALUES // n, 8), MOST_CANDIDATES)
    while len(chosen) < m:
        sums = np.cumsum(w * D)
        if sums[-1] <= 0.0:
            break
        count = min(len(chosen), most)
        picked = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
        picked = np.minimum(picked, n - 1)
        keep_if = rng.random(count)
        values = np.asarray(gram.cross(X[picked]))
        between = values[picked]
        before = D[picked]
        now = before.copy()
        kept = []
        for j in range(count):
            if now[j] > 0.0 and keep_if[j] * before[j] < now[j] and len(chosen) < m:
                kept.append(j)
                chosen.append(int(picked[j]))
                _approach(now, diagonal[picked], between[:, [j]], picked[[j]], zero, diagonal)
                now[picked == picked[j]] = 0.0
        _approach(D, diagonal, values[:, kept], picked[kept], zero)
    return Centres(np.array(chosen), {"potential": float(w @ D) / start if start > 0.0 else 0.0})


def _approach(
    D: np.ndarray,
    diagonal: np.ndarray,
    values: np.ndarray,
    centres: np.ndarray,
    zero: float,
    diagonal_of_all: np.ndarray | None = None,
) -> None:
    """D = min(D, distances to the centres): `values` are K(points, centres)."""
    of_centres = (diagonal if diagonal_of_all is None else diagonal_of_all)[centres]
    for j in range(values.shape[1]):
        distance = diagonal + of_centres[j] - 2.0 * values[:, j]
        np.minimum(D, np.where(distance > zero, distance, 0.0), out=D)
    if diagonal_of_all is None:
        D[centres] = 0.0
