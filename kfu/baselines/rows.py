"""Rows, classes and weights as every baseline takes them, and expansions as they give them back.

A baseline is given rows X (dense or CSR), the class index 0..K−1 of each row, and row weights
w_i ≥ 0; a row of weight 0 takes no part. Its class coefficients are the matrix (K, n) with w_i at
the class of row i and 0 elsewhere. They and the rows are all that k nearest neighbours and the
Nadaraya–Watson estimator keep, and centroids and Parzen windows only rescale them.

An `Expansion` has one score for each class, f_k(x) = Σ_i coef[k, i] K(x_i, x) + bias[k], and the
largest score wins, the first of equal ones. `for_code` turns it into machines with votes
(kfu.pairwise): for a code of pairs the machine of a pair is the difference of its two scores, and
the vote then has the same winner, since the class of the largest score wins all its pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu._gram import Gram
from kfu.data import Matrix, check_weights, check_X
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec

# Memory of one block of kernel values, in bytes.
BLOCK_BYTES = 32 << 20


@dataclass
class Expansion:
    """One kernel expansion for each class, and figures worth reporting."""

    coef: np.ndarray  #: (K, n)
    bias: np.ndarray  #: (K,)
    info: dict[str, Any] = field(default_factory=dict)

    def for_code(self, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n_machines, n) and biases of Σ_k code[k, m] f_k; see the head."""
        signs = np.asarray(code, dtype=np.float64).T
        return signs @ self.coef, signs @ self.bias


def checked_rows(X: Any, kernel: KernelSpec, source: str) -> Matrix:
    """X as the kernels take it; DataError when it is empty or the kernel is not defined on it."""
    X = check_X(X, source=source)
    if X.shape[0] == 0:
        raise DataError(source, None, "no rows", "give at least one example")
    if not kernel.is_resolved:
        raise SettingsError(f"kernel {kernel.describe()} has no value of gamma; resolve it first")
    kernel.check_data(X, source=source)
    return X


def checked_new_rows(X: Any, n_vectors: int, n_features: int | None, kernel: KernelSpec) -> Matrix:
    """Rows to predict: finite, and as wide as the vectors, or their kernel values with them all.

    `n_features` is that of the vectors, None where a precomputed kernel has none.
    """
    X = check_X(X, source="X")
    width = n_vectors if kernel.is_precomputed else n_features
    if X.shape[1] != width:
        what = "kernel values a row" if kernel.is_precomputed else "features"
        raise DataError(
            "X", None, f"{X.shape[1]} {what} where the training rows have {width}", "give as many"
        )
    return X


def checked_weights(weight: np.ndarray | None, n: int, source: str) -> np.ndarray:
    return np.ones(n) if weight is None else check_weights(weight, n, source)


def checked_labels(labels: Any, n: int, source: str) -> np.ndarray:
    """Class indices as int64, one for each row, from 0 on."""
    array = np.asarray(labels)
    if array.shape != (n,):
        raise DataError(source, None, f"{array.size} labels for {n} rows", "give one label a row")
    if array.dtype.kind not in "iu" or array.min(initial=0) < 0:
        raise SettingsError("labels are the class indices 0, 1, ...; encode them first")
    return array.astype(np.int64)


def class_coefficients(
    labels: Any, weight: np.ndarray | None = None, n_classes: int | None = None
) -> np.ndarray:
    """(K, n): the weight of each row at its class, 0 elsewhere.

    The first half of what a Nadaraya–Watson or nearest-neighbour model keeps, beside its rows.
    """
    labels = checked_labels(labels, np.asarray(labels).size, "labels")
    count = int(labels.max(initial=-1)) + 1 if n_classes is None else n_classes
    if labels.max(initial=-1) >= count:
        raise SettingsError(f"a label is {labels.max()} with {count} classes")
    coef = np.zeros((count, labels.size))
    coef[labels, np.arange(labels.size)] = checked_weights(weight, labels.size, "weights")
    return coef


def target_coefficients(y: Any, weight: np.ndarray | None = None) -> np.ndarray:
    """(outputs + 1, n) for regression: the rows w_i·y_i, and last the weights w_i themselves."""
    targets = np.atleast_2d(np.asarray(y, dtype=np.float64).T)
    if not np.all(np.isfinite(targets)):
        raise DataError("targets", None, "a target is not a finite number", "mend the targets")
    weights = checked_weights(weight, targets.shape[1], "weights")
    return np.vstack([targets * weights, weights])


def class_totals(coef: np.ndarray, source: str) -> np.ndarray:
    """W_k, the total weight of each class; DataError when a class has none."""
    totals: np.ndarray = coef.sum(axis=1)
    if coef.shape[0] < 2:
        raise DataError(source, None, "only one class", "a classifier needs two classes or more")
    if np.any(totals <= 0.0):
        empty = int(np.argmin(totals))
        raise DataError(
            source,
            None,
            f"class number {empty + 1} has no row of positive weight",
            "give every class a row of positive weight",
        )
    return totals


def row_blocks(n_rows: int, row_bytes: int, budget: int = BLOCK_BYTES) -> Iterator[slice]:
    """Consecutive slices of rows that need at most `budget` bytes together, at least one row."""
    step = max(1, budget // max(row_bytes, 1))
    for begin in range(0, n_rows, step):
        yield slice(begin, min(begin + step, n_rows))


def expansion_scores(
    vectors: Matrix | None,
    coef: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    *,
    bias: np.ndarray | float = 0.0,
    threads: int = 0,
) -> np.ndarray:
    """Σ_i coef[k, i] K(x_i, x) + bias[k] for the rows of X: float64 (n, K).

    For a precomputed kernel the rows of X are the kernel values with all vectors, which are not
    looked at.
    """
    coef = np.atleast_2d(coef)
    width = None if vectors is None else vectors.shape[1]
    X = checked_new_rows(X, coef.shape[1], width, kernel)
    sums = np.empty((X.shape[0], coef.shape[0]))
    gram = None
    if not kernel.is_precomputed:
        gram = Gram(vectors, kernel, precision="float64", threads=threads)
    for rows in row_blocks(X.shape[0], 8 * X.shape[1]):
        if gram is None:
            sums[rows] = kernel.weight * (dense(X[rows]) @ coef.T)
        else:
            sums[rows] = gram.decision(None, coef.T, X[rows])
    return sums + bias


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def weighted_error(is_wrong: np.ndarray, weight: np.ndarray) -> float:
    """Share of the weight that is on wrong rows."""
    return float(weight @ is_wrong / weight.sum())
