"""Centres that are means of rows: k-means by Lloyd's algorithm, in each class where there are some.

    each row to the nearest centre, each centre to the (weighted) mean of its rows, a few times

Distances are those of the features, so that the centres are vectors among the data but none of its
rows. With m of them K̃ spans more of K than with as many rows (Zhang, Tsang and Kwok 2008: the error
of K̃ is bounded by the distances that k-means makes small), and means of one class lie where its
rows are dense, away from the border to others. A few steps do nearly all there is to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.least_squares.memory import require_memory
from kfu.least_squares.whitening import row_blocks
from kfu.solvers.blas_threads import blas_threads

STEPS = 5
FEW_VALUES = 2**14  # products behind each unknown of a factorisation of about the same cost


def class_means(
    X: Any,
    starts: np.ndarray,
    *,
    labels: Any = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
    steps: int = STEPS,
) -> tuple[np.ndarray, dict[str, Any]]:
    """The centres (len(starts), d) that begin at the rows `starts`, and figures.

    With `labels` a centre is a mean of rows of the class it starts in. `distortion` is the weighted
    mean of the squared distances to the nearest centre (of the class), `moved` the share of rows
    that changed their centre in the last step.
    """
    m, d = len(starts), X.shape[1]
    require_memory(24.0 * m * d, f"{m} means of {d} features", "select rows, by kmeans++")
    w = np.ones(X.shape[0]) if weight is None else weight
    groups = np.zeros(X.shape[0], dtype=np.int64)
    if labels is not None:
        groups = np.unique(np.asarray(labels), return_inverse=True)[1].reshape(-1)
    means = np.empty((m, d))
    distance, moved = 0.0, 0
    with blas_threads(m * d // FEW_VALUES, threads):
        for group in np.unique(groups[starts]):
            here = np.flatnonzero(groups[starts] == group)
            rows = np.flatnonzero((groups == group) & (w > 0.0))
            found = _lloyd(X[rows], _dense(X[starts[here]]), w[rows], steps)
            means[here], distance, moved = found[0], distance + found[1], moved + found[2]
    used = int(np.count_nonzero(w))
    return means, {"distortion": distance / float(w.sum()), "moved": moved / used, "steps": steps}


def _lloyd(X: Any, centres: np.ndarray, w: np.ndarray, steps: int) -> tuple[np.ndarray, float, int]:
    """Centres after so many steps, Σ w D² to them, and how many rows the last step moved."""
    n, m = X.shape[0], len(centres)
    nearest, distances = _nearest(X, centres)
    moved = n
    for _ in range(steps):
        sums = sp.csr_matrix((w, (nearest, np.arange(n))), shape=(m, n))
        total = np.asarray(sums.sum(axis=1)).reshape(-1)
        added = sums @ X
        kept = total > 0.0  # a centre without rows stays
        centres = centres.copy()
        centres[kept] = _dense(added)[kept] / total[kept, None]
        before = nearest
        nearest, distances = _nearest(X, centres)
        moved = int(np.count_nonzero(nearest != before))
        if moved == 0:
            break
    return centres, float(w @ distances), moved


def _nearest(X: Any, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of each row, and the squared distance to it.

    Products in float32: a centre that is nearest but for rounding is as good.
    """
    columns = np.ascontiguousarray(centres.T, dtype=np.float32)
    squares = np.square(centres).sum(axis=1)
    nearest = np.empty(X.shape[0], dtype=np.int64)
    distances = np.empty(X.shape[0])
    for part in row_blocks(X.shape[0], len(centres)):
        rows = X[part].astype(np.float32)
        values = squares.astype(np.float32) - 2.0 * np.asarray(rows @ columns)
        nearest[part] = np.argmin(values, axis=1)
        least = values[np.arange(len(values)), nearest[part]]
        of_rows = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.square(rows).sum(1)
        distances[part] = np.maximum(np.asarray(of_rows).reshape(-1) + least, 0.0)
    return nearest, distances


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
