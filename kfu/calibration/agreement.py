"""Probabilities that agree with the label the model predicts.

Labels come from votes of the raw outputs (f > 0), probabilities from fitted links; the two need not
name the same class. For two classes they differ where f is between 0 and −B/A, the output at which
the sigmoid passes ½. Programs that print both owe the reader one answer: here p is moved as little
as possible so that the predicted class w has the largest probability by at least GAP,

    min ‖p' − p‖²  subject to  p'_w ≥ p'_k + GAP for every k ≠ w,  Σ p' = 1.

The solution raises w and lowers its rivals to a common level t (p'_w = t + GAP), and leaves classes
below t alone: t is the mean of w and of the j largest rivals, for the least j at which no further
rival exceeds t. Of two classes it is a clip of P(+) to ½ ± GAP/2 on the label's side, so P stays
monotone in f where the link is. GAP is small, and large enough to survive float32 and six printed
digits.
"""

from __future__ import annotations

import numpy as np

__all__ = ["GAP", "agree", "disagreement"]

GAP = 2e-6


def disagreement(p: np.ndarray, winners: np.ndarray) -> np.ndarray:
    """Which rows of p (n, K) have their largest entry elsewhere than at winners (n,)."""
    return np.asarray(np.argmax(p, axis=1) != winners)


def agree(p: np.ndarray, winners: np.ndarray) -> np.ndarray:
    """The nearest probabilities whose largest entry is at `winners`, by at least GAP.

    Rows of p sum to 1, and so do those of the result.
    """
    n_classes = p.shape[1]
    own = np.take_along_axis(p, winners[:, None], axis=1)
    rivals = p.copy()
    np.put_along_axis(rivals, winners[:, None], -np.inf, axis=1)
    rows = np.flatnonzero(own[:, 0] < rivals.max(axis=1) + GAP)
    if rows.size == 0:
        return p
    # Levels t_j for j = 1 .. K−1 rivals, largest first.
    largest = -np.sort(-rivals[rows], axis=1)[:, :-1]
    levels = (own[rows] - GAP + np.cumsum(largest, axis=1)) / np.arange(2, n_classes + 1)
    levels[:, -1] = (1 - GAP) / n_classes  # the same, without rounding: all classes are pooled
    following = np.concatenate((largest[:, 1:], np.full((rows.size, 1), -np.inf)), axis=1)
    stop = np.argmax(levels >= following, axis=1)
    level = np.take_along_axis(levels, stop[:, None], axis=1)
    moved = np.minimum(p[rows], level)
    np.put_along_axis(moved, winners[rows, None], level + GAP, axis=1)
    result = p.copy()
    result[rows] = moved
    return result
