"""Rows of an estimator's data: their weights, the labels a model holds for them, seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.sklearn_bridge import check_weights

__all__ = ["model_labels", "rows_with_weight", "seed_of", "variance"]


def rows_with_weight(X: Any, sample_weight: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The rows of positive weight, None for all of them, and their weights, None for ones."""
    if sample_weight is None:
        return None, None
    weights = check_weights(sample_weight, X)
    rows = np.flatnonzero(weights > 0)
    if rows.size == 0:
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    if rows.size == weights.size:
        return None, weights
    return rows, weights[rows]


def variance(X: Any, weights: np.ndarray | None) -> float:
    """The variance of all entries, a row of weight w counting w times."""
    if weights is None and not sp.issparse(X):
        return float(X.var(dtype=np.float64))
    weights = np.ones(X.shape[0]) if weights is None else weights
    size = weights.sum() * X.shape[1]
    first = weights @ np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1) / size
    squares = X.multiply(X) if sp.issparse(X) else np.square(X - first)
    second = weights @ np.asarray(squares.sum(axis=1, dtype=np.float64)).reshape(-1) / size
    return float(second - first**2 if sp.issparse(X) else second)


def model_labels(classes: np.ndarray) -> np.ndarray:
    """The labels a model file can hold for these classes: numbers, strings, else their ranks."""
    if classes.dtype.kind in "biuf":
        labels = classes.astype(np.float64)
    elif all(isinstance(label, str) for label in classes.tolist()):
        labels = classes.astype(np.str_)
    else:
        return np.arange(classes.size, dtype=np.float64)
    distinct = np.unique(labels).size == classes.size
    return labels if distinct else np.arange(classes.size, dtype=np.float64)


def seed_of(random_state: Any) -> int:
    """A seed: the number itself, 0 for None, or one drawn from a generator of NumPy."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    is_number = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if not is_number or random_state < 0:
        raise ValueError(
            f"random_state must be None, a whole number of at least 0 or a generator of NumPy, "
            f"got {random_state!r}"
        )
    return int(random_state)
