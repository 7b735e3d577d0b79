"""Random codes: of 10,000 matrices drawn, the one whose rows are farthest apart (largest ρ).

Allwein, Schapire and Singer, *Reducing multiclass to binary*, JMLR 1 (2000), with the details
settled as by Rifkin, *Everything old is new again* (2002), section 4.2.2:

dense   ⌈10 log₂ K⌉ columns of ±1, equally likely. Columns are drawn without replacement from the
        2^(K-1) - 1 ways to part K classes in two, so that none is constant and none equals another
        or its negative. For K <= 5 there are fewer than ⌈10 log₂ K⌉ such columns: so wide a dense
        code is impossible, and the code is all of them, that is, the complete code.
sparse  ⌈15 log₂ K⌉ columns; an entry is 0 with probability ½ and +1 or -1 with ¼ each. A column
        without both signs is drawn again at once (for six classes a third of them; whole matrices
        would hardly ever pass). Equal columns are allowed. No row is zero, and every two rows have
        opposite signs somewhere, as every code here has to.

The sign of a column is immaterial to symmetric machines; dense codes put the first class on the
negative side, which for two classes gives the binary code. Equal ρ: the first drawn is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kfu.multiclass.code_matrix import binary_code, code_fault

__all__ = ["DRAWS", "complete_columns", "dense_code", "n_partitions", "sparse_code"]

DRAWS = 10_000
CHUNK_ENTRIES = 1 << 22  # entries (of codes or of their Gram matrices) drawn at a time
BLAS_THREAD_OPERATIONS = 1 << 18  # products of fewer multiplications run in one thread
TABLED_CLASSES = 12  # up to here all 2^(K-1) - 1 columns are listed and drawn from

# Matrices drawn at a time, transposed: (count, n_columns, n_classes).
Drawer = Callable[[np.random.Generator, int], np.ndarray]


def n_partitions(n_classes: int) -> int:
    """In how many ways the classes can be parted in two: the columns of the complete code."""
    return (1 << (n_classes - 1)) - 1


def complete_columns(n_classes: int) -> np.ndarray:
    """All of them, (n_classes, 2^(n_classes-1) - 1); the first class is negative throughout.

    Column m has class k on the positive side where bit k-1 of m+1 is set.
    """
    numbers = np.arange(1, n_partitions(n_classes) + 1)
    bits = np.left_shift(numbers, 1) >> np.arange(n_classes)[:, None] & 1
    return (2 * bits - 1).astype(np.int8)


def dense_code(n_classes: int, seed: int, *, draws: int = DRAWS) -> np.ndarray:
    """The dense code; the complete one where there are not enough different columns (K <= 5)."""
    if n_classes == 2:
        return binary_code()
    n_columns = math.ceil(10 * math.log2(n_classes))
    if n_partitions(n_classes) <= n_columns:
        return complete_columns(n_classes)
    if n_classes <= TABLED_CLASSES:
        table = complete_columns(n_classes).T

        def draw(rng: np.random.Generator, count: int) -> np.ndarray:
            keys = rng.random((count, table.shape[0]), dtype=np.float32)
            return table[np.argpartition(keys, n_columns, axis=1)[:, :n_columns]]
    else:  # columns rarely coincide: matrices where some do are refused when they come up

        def draw(rng: np.random.Generator, count: int) -> np.ndarray:
            codes = rng.integers(0, 2, size=(count, n_columns, n_classes), dtype=np.int8)
            codes ^= codes[:, :, :1]
            return 2 * codes - 1

    return _farthest(draw, _has_different_columns, n_classes, n_columns, seed, draws)


def sparse_code(n_classes: int, seed: int, *, draws: int = DRAWS) -> np.ndarray:
    """The sparse code."""
    if n_classes == 2:
        return binary_code()
    n_columns = math.ceil(15 * math.log2(n_classes))
    entries = np.array([0, 0, 1, -1], dtype=np.int8)

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        columns = np.empty((n_classes, count * n_columns), dtype=np.int8)
        bad = np.arange(columns.shape[1])
        while bad.size:
            again = entries[rng.integers(0, 4, size=(n_classes, bad.size), dtype=np.int8)]
            columns[:, bad] = again
            bad = bad[(again.max(axis=0) != 1) | (again.min(axis=0) != -1)]
        return columns.T.reshape(count, n_columns, n_classes)

    return _farthest(draw, _keeps_the_rules, n_classes, n_columns, seed, draws)


def _keeps_the_rules(code: np.ndarray) -> bool:
    return code_fault(code) is None


def _has_different_columns(code: np.ndarray) -> bool:
    """Requires columns in one orientation."""
    return _keeps_the_rules(code) and np.unique(code, axis=1).shape[1] == code.shape[1]


def _farthest(
    draw: Drawer,
    is_allowed: Callable[[np.ndarray], bool],
    n_classes: int,
    n_columns: int,
    seed: int,
    draws: int,
) -> np.ndarray:
    """The allowed matrix of largest ρ among so many drawn; drawing goes on until one is allowed.

    Only matrices that would be kept are examined by `is_allowed`.
    """
    rng = np.random.default_rng(seed)
    chunk = max(1, min(draws, CHUNK_ENTRIES // (n_classes * max(n_classes, n_columns))))
    best: np.ndarray | None = None
    best_product, drawn = math.inf, 0
    while drawn < draws or best is None:
        count = min(chunk, draws - drawn) if drawn < draws else chunk
        codes = draw(rng, count)
        largest = _largest_products(codes.astype(np.float32), best_product)
        for k in np.argsort(largest, kind="stable"):
            if largest[k] >= best_product:
                break
            code = np.ascontiguousarray(codes[k].T)
            if is_allowed(code):
                best, best_product = code, float(largest[k])
                break
        drawn += count
    return best


def _largest_products(signs: np.ndarray, limit: float) -> np.ndarray:
    """The largest product of two rows of each matrix, ρ = (n_columns - it) / 2; infinite for
    matrices in which some product reaches the limit.

    Rows are taken in blocks: matrices over the limit drop out early, and each product is small
    enough for BLAS to do it in one thread, where starting more would take longer than the product.
    """
    count, n_columns, n_classes = signs.shape
    largest = np.full(count, -np.inf, dtype=np.float32)
    alive = np.arange(count)
    step = max(1, BLAS_THREAD_OPERATIONS // (n_classes * n_columns))
    for begin in range(0, n_classes, step):
        block = np.arange(begin, min(begin + step, n_classes))
        products = np.matmul(signs[:, :, block].transpose(0, 2, 1), signs)
        products[:, block - begin, block] = -np.inf
        largest[alive] = np.maximum(largest[alive], products.max(axis=(1, 2)))
        is_below = largest[alive] < limit
        if not is_below.all():
            largest[alive[~is_below]] = np.inf
            alive, signs = alive[is_below], signs[is_below]
    return largest
