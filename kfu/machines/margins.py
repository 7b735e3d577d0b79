"""Adaptive margins: the target g_i of each row's margin (Chapelle 2004, vicinal risk).

`margins` may be an array of positive numbers, or "auto": g_i = σ_i / σ̄ with σ_i the mean distance
in feature space to the NEIGHBOURS nearest rows, so that rows in dense regions are classified with a
small margin and lonely ones with a large one. Duplicates would give 0; the least target is
LEAST_TARGET of the mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.task import TrainingTask

NEIGHBOURS = 5
LEAST_TARGET = 1e-3
BLOCK_ROWS = 512


def row_margins(task: TrainingTask) -> np.ndarray:
    """g_i of all rows; ones where nothing is asked."""
    asked: Any = task.options.get("margins")
    if asked is None:
        return np.ones(task.n)
    if isinstance(asked, str):
        if asked != "auto":
            raise SettingsError(f"margins is {asked!r}; give auto or one number a row")
        return neighbourhood_widths(task)
    margins = np.asarray(asked, dtype=np.float64)
    if margins.shape != (task.n,):
        found = f"{margins.size} margins for {task.n} rows"
        raise DataError(task.source, None, found, "give one number a row")
    if not (np.isfinite(margins).all() and np.all(margins > 0)):
        row = int(np.argmin(np.isfinite(margins) & (margins > 0))) + 1
        raise DataError(
            task.source, None, f"the margin of row {row} is not > 0", "mend the margins"
        )
    return margins


def neighbourhood_widths(task: TrainingTask) -> np.ndarray:
    from kfu._gram import Gram

    if task.kernel.is_precomputed:
        K = np.asarray(task.X.toarray() if hasattr(task.X, "toarray") else task.X)
        diagonal = np.diag(K) * task.kernel.weight

        def block(rows: np.ndarray) -> np.ndarray:
            return np.asarray(K[rows], dtype=np.float64) * task.kernel.weight

    else:
        gram = Gram(task.X, task.kernel, "float64", task.settings.n_threads)
        diagonal = np.asarray(gram.diagonal())

        def block(rows: np.ndarray) -> np.ndarray:
            return np.asarray(gram.cross(task.X[rows])).T

    n, k = task.n, min(NEIGHBOURS, task.n - 1)
    widths = np.zeros(n)
    for begin in range(0, n, BLOCK_ROWS):
        rows = np.arange(begin, min(begin + BLOCK_ROWS, n))
        squares = diagonal[rows, None] + diagonal[None, :] - 2.0 * block(rows)
        squares[np.arange(rows.size), rows] = np.inf
        nearest = np.partition(squares, k - 1, axis=1)[:, :k]
        widths[rows] = np.sqrt(np.maximum(nearest, 0.0)).mean(axis=1)
    mean = float(widths.mean())
    if mean == 0.0:
        return np.ones(n)
    return np.maximum(widths / mean, LEAST_TARGET)
