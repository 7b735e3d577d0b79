"""Ridge leverage scores from a sketch, and centres drawn by them (Alaoui and Mahoney 2015).

    τ_i = w_i (K_ii − k_iS (K_SS + ridge (s/Σw) I)⁻¹ k_Si) / ridge

with S a sketch of s random rows. Στ is about the number of dimensions the problem uses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from kfu._gram import Gram
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.drawn_centres import Centres, drawn
from kfu.least_squares.low_rank_fit import checked_ridge
from kfu.least_squares.whitening import diagonal_of, row_blocks
from kfu.solvers.blas_threads import blas_threads

LEAST_SKETCH, MOST_SKETCH = 100, 1000  # rows


def leverage_scores(
    X: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    sketch: int = MOST_SKETCH,
    seed: int = 0,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> np.ndarray:
    """Approximate ridge leverage scores of all rows, from a random sketch of that many rows."""
    n = X.shape[0]
    rng = np.random.default_rng(seed)
    w = np.ones(n) if weight is None else weight
    size = min(sketch, int(np.count_nonzero(w)))
    rows = np.sort(drawn(rng, w, size))
    gram = Gram(X, kernel, "float64", threads)
    shift = ridge * size / float(w.sum())
    scores = np.empty(n)
    with blas_threads(size, threads):
        K = np.asarray(gram.block(rows, rows))
        K[np.diag_indices(size)] += shift + 1e-12 * float(np.abs(K.diagonal()).max())
        factor = scipy.linalg.cholesky(K, lower=True)
        for part in row_blocks(n, size):
            # K(S, block) for the block's rows; columns of a precomputed matrix are its points.
            points = np.arange(part.start, part.stop)
            values = np.asarray(gram.block(rows, points))
            solved = scipy.linalg.solve_triangular(factor, values, lower=True)
            rest = diagonal_of(X, part, kernel, threads) - np.square(solved).sum(axis=0)
            scores[part] = np.maximum(rest, 0.0)
    return np.asarray(w * scores / ridge)


def by_leverage(
    X: Any,
    kernel: KernelSpec,
    m: int,
    seed: int = 0,
    ridge: float | None = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    """`effective_dimension` of the info is Στ."""
    if ridge is None:
        raise SettingsError("leverage scores depend on the ridge; give it")
    ridge = checked_ridge(ridge)
    sketch = min(max(m, LEAST_SKETCH), MOST_SKETCH)
    scores = leverage_scores(
        X, kernel, ridge, sketch=sketch, seed=seed, weight=weight, threads=threads
    )
    # Rows the sketch spans to the last digit keep a chance, so that m of them can be found.
    w = np.ones(len(scores)) if weight is None else weight
    scores = np.where(w > 0.0, np.maximum(scores, 1e-12 * max(scores.max(), 1e-300)), 0.0)
    rows = drawn(np.random.default_rng([seed, 1]), scores, m)
    return Centres(rows, {"effective_dimension": float(scores.sum()), "sketch": sketch})
