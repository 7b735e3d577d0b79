"""Which m of the n rows become the centres of a low-rank machine.

random     rows at random, in proportion to their weights; or the same number from every class.
kmeans++   each next centre with probability proportional to w D², D the distance in feature space
           to the nearest centre so far, D²(x, z) = K(x, x) + K(z, z) − 2K(x, z) (Arthur and
           Vassilvitskii 2007). Candidates are drawn and evaluated a block at a time, from the
           distances D₀ at its beginning; one whose distance has since become D is kept with
           probability D²/D₀², which makes the draw exact.
leverage   with probability proportional to approximate ridge leverage scores
           τ_i = w_i (K_ii − k_iS (K_SS + ridge (s/Σw) I)⁻¹ k_Si) / ridge, S a sketch of s random
           rows (Alaoui and Mahoney 2015); Στ is about the number of dimensions the problem uses.
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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from kfu._gram import Gram
from kfu.errors import SettingsError
from kfu.kernel_registry import nearest
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import checked_data, checked_ridge, checked_weight
from kfu.least_squares.mean_centres import class_means
from kfu.least_squares.memory import require_memory
from kfu.least_squares.whitening import diagonal_of, row_blocks
from kfu.solvers.blas_threads import blas_threads

MOST_CANDIDATES = 256  # of kmeans++ at a time
CANDIDATE_VALUES = 2**24
ZERO_DISTANCE = 1e-6  # squared, of the largest K(x, x): float32 values know no smaller one
ZERO_PIVOT = 1e-12  # of the largest K(x, x)
FEW_VALUES = 2**14  # of R, for each unknown of a factorisation of about the same cost
LEAST_SKETCH, MOST_SKETCH = 100, 1000  # rows


@dataclass
class Centres:
    """Row numbers in the order chosen, and figures: `m`, `seconds`, and what the rule knows.

    `means` are the centres where they are no rows (kmeans); `rows` is then where they started.
    """

    rows: np.ndarray
    info: dict[str, Any] = field(default_factory=dict)
    R: np.ndarray | None = None  # (m, n) of ic
    means: np.ndarray | None = None

    def of(self, X: Any) -> Any:
        """The centres as vectors; X holds the rows they were chosen from."""
        return X[self.rows] if self.means is None else self.means


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


def _drawn(rng: np.random.Generator, size: np.ndarray, m: int) -> np.ndarray:
    """m rows without replacement, each next one with probability proportional to its size; rows
    of size 0 only when no others are left (Efraimidis and Spirakis 2006)."""
    with np.errstate(divide="ignore"):
        keys = np.where(size > 0.0, rng.standard_exponential(len(size)) / size, np.inf)
    first = np.argpartition(keys, m - 1)[:m]
    return first[np.argsort(keys[first], kind="stable")]


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
    return Centres(_drawn(rng, weight, m))


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
    return _drawn(rng, weight, len(weight))


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
    first = int(_drawn(rng, w, 1)[0])
    chosen = [first]
    _approach(D, diagonal, np.asarray(gram.cross(X[[first]])), np.array([first]), zero)
    start = float(w @ D)
    most = min(max(CANDIDATE_VALUES // n, 8), MOST_CANDIDATES)
    while len(chosen) < m:
        sums = np.cumsum(w * D)
        if sums[-1] <= 0.0:
            break
        count = min(len(chosen), most)
        drawn = np.searchsorted(sums, rng.random(count) * sums[-1], side="right")
        drawn = np.minimum(drawn, n - 1)
        keep_if = rng.random(count)
        values = np.asarray(gram.cross(X[drawn]))
        between = values[drawn]
        before = D[drawn]
        now = before.copy()
        kept = []
        for j in range(count):
            if now[j] > 0.0 and keep_if[j] * before[j] < now[j] and len(chosen) < m:
                kept.append(j)
                chosen.append(int(drawn[j]))
                _approach(now, diagonal[drawn], between[:, [j]], drawn[[j]], zero, diagonal)
                now[drawn == drawn[j]] = 0.0
        _approach(D, diagonal, values[:, kept], drawn[kept], zero)
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
    rows = np.sort(_drawn(rng, w, size))
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
    rows = _drawn(np.random.default_rng([seed, 1]), scores, m)
    return Centres(rows, {"effective_dimension": float(scores.sum()), "sketch": sketch})


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
