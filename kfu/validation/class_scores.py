"""One score for each class from the decision values of a model: what one-versus-rest curves rank.

The larger the score, the more the model takes a row for the class. Two classes: f and −f.
One-versus-one: votes, equal votes parted by the decision values (kfu.pairwise.ovr_scores).
One machine for each class: its own value. Any other code: the mean of the decision values in favour
of the class, over the machines that see it.
"""

from __future__ import annotations

import numpy as np

from kfu.pairwise import ovr_scores, pairs_of

__all__ = ["class_scores"]


def class_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Scores (n, n_classes) of decision values (n, n_machines); `code` as in kfu.pairwise."""
    n_classes, n_machines = code.shape
    if n_machines == 1 and n_classes == 2:
        return decision * code[:, 0].astype(np.float64)
    if pairs_of(code) is not None:
        return ovr_scores(decision, code)
    is_positive = code > 0
    if n_machines == n_classes and np.all(is_positive.sum(axis=0) == 1):
        owner = np.argmax(is_positive, axis=0)
        if np.unique(owner).size == n_classes:
            scores = np.empty_like(decision)
            scores[:, owner] = decision
            return scores
    seen = np.maximum(np.abs(code).sum(axis=1), 1)
    return decision @ code.T.astype(np.float64) / seen
