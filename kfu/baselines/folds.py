"""Folds of a cross-validation: dealt by class from a seed, or given."""

from __future__ import annotations

import numpy as np

from kfu.errors import SettingsError

__all__ = ["checked_folds", "stratified_folds"]


def stratified_folds(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The fold 0..count−1 of each row: every class shuffled and dealt, one deal after the other."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(labels.size)
    order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(labels.size, dtype=np.int64)
    folds[order] = np.arange(labels.size) % count
    return folds


def checked_folds(
    folds: int | np.ndarray, labels: np.ndarray, weights: np.ndarray, seed: int
) -> np.ndarray:
    """The fold of each row; −1 for rows without weight."""
    present = weights > 0.0
    if np.ndim(folds) > 0:
        given = np.asarray(folds)
        if given.shape != labels.shape or np.unique(given[present]).size < 2:
            raise SettingsError("folds are one number a row, two different ones or more")
        return np.where(present, np.unique(given, return_inverse=True)[1].reshape(-1), -1)
    count = int(folds)
    if not 2 <= count <= int(np.count_nonzero(present)):
        raise SettingsError(
            f"{count} {'fold' if count == 1 else 'folds'} of {np.count_nonzero(present)} rows; "
            "give 2 or more, at most one a row"
        )
    fold_of = np.full(labels.size, -1, dtype=np.int64)
    fold_of[present] = stratified_folds(labels[present], count, seed)
    return fold_of
