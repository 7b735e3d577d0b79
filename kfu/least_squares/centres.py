"""Which m of the n rows become the centres of a low-rank machine.

random     rows at random, in proportion to their weights; or the same number from every class.
kmeans++   rows far from those chosen, by chance (kfu.least_squares.kmeans_plus_plus).
leverage   with probability proportional to approximate ridge leverage scores
           (kfu.least_squares.leverage).
ic         incomplete Cholesky with pivoting (Fine and Scheinberg 2001): always the row with the
           largest w_i (K_ii − K̃_ii). O(n m²) time and n m numbers. It prefers outliers: under a
           Gaussian kernel its part of the trace is often below that of random rows.

kmeans     means of rows instead of rows: Lloyd's algorithm from those of kmeans++, which deal them
           to classes by their spread; in every class by itself where there are labels
           (kfu.least_squares.mean_centres).

None needs more than a block of kernel values, but `ic`, which keeps R with K̃ = RᵀR. Rows of
weight 0 are never chosen. Fewer than m centres come back from `kmeans++` and `ic` when all rows are
spanned by those chosen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.errors import SettingsError
from kfu.kernel_registry import nearest
from kfu.kernels import KernelSpec
from kfu.least_squares.drawn_centres import Centres, drawn
from kfu.least_squares.kmeans_plus_plus import kmeans_plus_plus
from kfu.least_squares.leverage import by_leverage
from kfu.least_squares.low_rank_fit import checked_data, checked_weight
from kfu.least_squares.mean_centres import class_means
from kfu.least_squares.memory import require_memory
from kfu.solvers.blas_threads import blas_threads

ZERO_PIVOT = 1e-12  # of the largest K(x, x)
FEW_VALUES = 2**14  # of R, for each unknown of a factorisation of about the same cost


Selection = Callable[
    [Any, KernelSpec, int, int, float | None, np.ndarray | None, int],
    Centres,
]


def choose_centres(
    selection: str,
    X: Any,
    kernel: KernelSpec,
    m: int,
    *,
    seed: int = 0,
    ridge: float | None = None,
    weight: Any = None,
    threads: int = 0,
    labels: Any = None,
) -> Centres:
    """m centres out of the rows of X by one of SELECTIONS; `ridge` is for `leverage`.

    With `labels`, `random` takes equal numbers from every class (as far as it has them), and a mean
    of `kmeans` is one of rows of the same class.
    """
    if selection not in SELECTIONS:
        hint = nearest(selection, list(SELECTIONS))
        raise SettingsError(f"unknown selection of centres {selection!r}; {hint}")
    if labels is not None and selection not in BY_CLASS:
        known = " and ".join(BY_CLASS)
        raise SettingsError(f"classes count for the selections {known}, not for {selection}")
    X, kernel = checked_data(X, kernel)
    n = X.shape[0]
    weight = checked_weight(weight, n)
    usable = n if weight is None else int(np.count_nonzero(weight))
    if not 1 <= m <= usable:
        raise SettingsError(f"{m} centres out of {usable} rows of positive weight")
    begin = time.perf_counter()
    if labels is not None:
        chosen = BY_CLASS[selection](X, kernel, labels, m, seed, weight, threads)
    else:
        chosen = SELECTIONS[selection](X, kernel, m, seed, ridge, weight, threads)
    seconds = time.perf_counter() - begin
    chosen.info |= {"selection": selection, "m": len(chosen.rows), "seconds": seconds}
    return chosen


def random_rows(
    X: Any,
    kernel: KernelSpec,
    m: int,
    seed: int = 0,
    ridge: float | None = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    if weight is None:
        return Centres(rng.choice(n, m, replace=False))
    return Centres(drawn(rng, weight, m))


def balanced_rows(
    X: Any,
    kernel: KernelSpec,
    labels: Any,
    m: int,
    seed: int,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    """Random rows, of every class as many as of the others, or all it has."""
    labels = np.asarray(labels)
    usable = np.arange(len(labels)) if weight is None else np.flatnonzero(weight > 0.0)
    rng = np.random.default_rng(seed)
    usable = rng.permutation(usable) if weight is None else usable[_order(rng, weight[usable])]
    # The k-th row of its class has turn k; the m first turns are taken.
    _, classes = np.unique(labels[usable], return_inverse=True)
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(classes.max() + 1))
    turn = np.empty(len(usable), dtype=np.int64)
    turn[order] = np.arange(len(usable)) - starts[classes[order]]
    rows = usable[np.argsort(turn, kind="stable")[:m]]
    names, counts = np.unique(labels[rows], return_counts=True)
    return Centres(rows, {"per_class": dict(zip(names.tolist(), counts.tolist(), strict=True))})


def _order(rng: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    return drawn(rng, weight, len(weight))


def incomplete_cholesky(
    X: Any,
    kernel: KernelSpec,
    m: int,
    seed: int = 0,
    ridge: float | None = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    """R (m, n) with K̃ = RᵀR and the trace portion Σ w K̃_ii / Σ w K_ii; nothing is random."""
    n = X.shape[0]
    require_memory(
        8.0 * n * m, f"incomplete Cholesky of {n} rows and {m} centres", "select by kmeans++"
    )
    gram = Gram(X, kernel, "float64", threads)
    diagonal = np.asarray(gram.diagonal())
    w = np.ones(n) if weight is None else weight
    D = diagonal.copy()
    R = np.empty((m, n))
    least = ZERO_PIVOT * float(np.abs(diagonal).max())
    rows: list[int] = []
    with blas_threads(n * m // FEW_VALUES, threads):
        for k in range(m):
            p = int(np.argmax(w * D))
            if not D[p] > least:
                break
            row = R[k]
            row[:] = np.asarray(gram.cross(X[[p]]))[:, 0]
            row -= R[:k, p] @ R[:k]
            row /= math.sqrt(D[p])
            D -= np.square(row)
            D[p] = 0.0
            rows.append(p)
    total = float(w @ diagonal)
    portion = 1.0 - float(w @ np.maximum(D, 0.0)) / total if total > 0.0 else 0.0
    return Centres(np.array(rows, dtype=np.int64), {"trace_portion": portion}, R[: len(rows)])


def by_means(
    X: Any,
    kernel: KernelSpec,
    m: int,
    seed: int = 0,
    ridge: float | None = None,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    return class_by_class(X, kernel, None, m, seed, weight, threads)


def class_by_class(
    X: Any,
    kernel: KernelSpec,
    labels: Any,
    m: int,
    seed: int,
    weight: np.ndarray | None = None,
    threads: int = 0,
) -> Centres:
    """Means of the rows of each class, or of all rows without labels."""
    if kernel.is_precomputed:
        raise SettingsError("a precomputed kernel has no means of rows; select rows, by kmeans++")
    rows = kmeans_plus_plus(X, kernel, m, seed, None, weight, threads).rows
    means, info = class_means(X, rows, labels=labels, weight=weight, threads=threads)
    return Centres(rows, info, means=means)


BY_CLASS: dict[str, Callable[..., Centres]] = {"random": balanced_rows, "kmeans": class_by_class}
SELECTIONS: dict[str, Selection] = {
    "random": random_rows,
    "kmeans++": kmeans_plus_plus,
    "leverage": by_leverage,
    "ic": incomplete_cholesky,
    "kmeans": by_means,
}
