"""Leading eigenpairs of a kernel matrix and of its square sub-blocks.

K is computed once; the eigenpairs of a set of rows are those of the sub-block K[rows, rows], kept
so that machines on the same rows (the columns of a one-versus-rest code, and their folds) share
them. A few pairs of a large block come from Lanczos iterations (ARPACK), otherwise LAPACK's
eigh works on the whole block; the dividing line is measured in docs/baselines.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from kfu.errors import DataError

__all__ = ["Eigenpairs", "Spectra", "leading_eigenpairs"]

LANCZOS_ROWS = 500  # below this eigh is quick enough
LANCZOS_SHARE = 12  # Lanczos where at most one pair in so many is wanted


@dataclass(frozen=True)
class Eigenpairs:
    """λ_1 ≥ λ_2 ≥ ... > floor·λ_1 (D,) and the unit eigenvectors V (n, D)."""

    values: np.ndarray
    vectors: np.ndarray
    is_all: bool  #: every pair above the floor is here

    @property
    def count(self) -> int:
        return int(self.values.size)


def leading_eigenpairs(K: np.ndarray, count: int, floor: float) -> Eigenpairs:
    """The `count` leading pairs of a symmetric matrix, those with λ > floor·λ_1 (and > 0)."""
    n = K.shape[0]
    count = min(count, n)
    pairs = None
    if n >= LANCZOS_ROWS and count * LANCZOS_SHARE <= n:
        try:
            pairs = scipy.sparse.linalg.eigsh(K, count, which="LA", v0=np.ones(n))
        except scipy.sparse.linalg.ArpackError:
            pairs = None  # eigh does not fail
    if pairs is None:
        subset = None if count == n else (n - count, n - 1)
        pairs = scipy.linalg.eigh(K, subset_by_index=subset)
    values, vectors = pairs
    order = np.argsort(-values, kind="stable")
    values = values[order]
    kept = int(np.count_nonzero(values > max(floor * values[0], 0.0)))
    columns = np.asfortranarray(vectors[:, order[:kept]])
    return Eigenpairs(values[:kept], columns, kept < count or count == n)


class Spectra:
    """A kernel matrix and the eigenpairs of its sub-blocks, by set of rows."""

    def __init__(self, K: np.ndarray, count: int, floor: float, source: str = "data") -> None:
        asymmetry = float(np.abs(K - K.T).max(initial=0.0))
        if asymmetry > 1e-9 * max(float(np.abs(K).max(initial=0.0)), 1e-300):
            raise DataError(
                source, None, "the kernel matrix is not symmetric", "give a symmetric kernel"
            )
        self.K = K
        self.count = count
        self.floor = floor
        self.decompositions = 0
        self._known: dict[bytes, Eigenpairs] = {}

    def of(self, rows: np.ndarray) -> Eigenpairs:
        """The leading `count` eigenpairs of K[rows, rows]; `rows` is sorted."""
        key = rows.tobytes()
        if key not in self._known:
            block = self.K if rows.size == len(self.K) else self.K[np.ix_(rows, rows)]
            self._known[key] = leading_eigenpairs(block, self.count, self.floor)
            self.decompositions += 1
        return self._known[key]
