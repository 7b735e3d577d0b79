"""Bagged least squares: the mean of machines trained on parts of the rows, as one expansion.

    f = (1/J) Σ_j f_j,  f_j by regularised least squares on the rows of part j

Random parts (Rifkin 2002, section 3.7.3) help methods that are weak on one part. Disjoint parts of
p rows each, J = ℓ/p of them (section 5.3), use every row once: the cost falls from ℓ³ to ℓp², the
memory from ℓ² to p², and the mean is more stable than each of its parts, its stability being p/ℓ of
theirs. Each part gets `ridge`, the product of λ and its number of rows.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import (
    LowRankFit,
    checked_data,
    checked_targets,
    checked_weight,
)
from kfu.least_squares.subset_methods import subset


def bagged(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    size: int,
    ridge: float,
    *,
    parts: int = 10,
    disjoint: bool = False,
    seed: int = 0,
    weight: Any = None,
    bias: bool = False,
    threads: int = 0,
) -> LowRankFit:
    """Mean of `parts` machines on random parts of `size` rows each, drawn without replacement, or
    of all the disjoint parts of about `size` rows (`parts` is then not used).

    The rows of the fit are the union of the parts. Rows of weight 0 are in no part.
    """
    X, kernel = checked_data(X, kernel)
    n = X.shape[0]
    Y, weight = checked_targets(Y, n), checked_weight(weight, n)
    candidates = np.arange(n) if weight is None else np.flatnonzero(weight > 0.0)
    dealt = deal(candidates, size, parts, disjoint, seed)
    begin = time.perf_counter()
    total = np.zeros(Y.shape)
    offset = np.zeros(Y.shape[1])
    for part in dealt:
        fit = subset(X, Y, kernel, part, ridge, weight=weight, bias=bias, threads=threads)
        total[part] += fit.coef
        offset += fit.bias
    rows = np.unique(np.concatenate(dealt))
    info = {
        "method": "bagging",
        "parts": len(dealt),
        "size": max(len(part) for part in dealt),
        "disjoint": disjoint,
        "m": len(rows),
        "ridge": float(ridge),
        "precision": "float64",
        "seconds": {"solve": time.perf_counter() - begin},
    }
    return LowRankFit(
        rows, total[rows] / len(dealt), offset / len(dealt), float(ridge), info, kernel
    )


def deal(
    candidates: np.ndarray, size: int, parts: int, disjoint: bool, seed: int
) -> list[np.ndarray]:
    """The rows of each part, sorted. Disjoint parts differ by at most one row in size."""
    n = len(candidates)
    if not 1 <= size <= n:
        raise SettingsError(f"parts of {size} rows out of {n} rows of positive weight")
    if parts < 1:
        raise SettingsError(f"{parts} parts; at least one is needed")
    rng = np.random.default_rng(seed)
    if disjoint:
        count = max(round(n / size), 1)
        return [np.sort(part) for part in np.array_split(rng.permutation(candidates), count)]
    return [np.sort(rng.choice(candidates, size, replace=False)) for _ in range(parts)]
