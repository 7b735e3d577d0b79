"""The validation crossings of the λ-path of tests/oracles/paths.py, row by row and step by step.

Imports nothing of kfu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.oracles.paths import OraclePath


@dataclass
class SlowTrack:
    """The columns of a followed path that validation reads."""

    t: np.ndarray
    train_errors: np.ndarray
    watch_errors: np.ndarray
    crossing_t: np.ndarray
    crossing_set: np.ndarray
    crossing_delta: np.ndarray
    status: str


def wrong(f: np.ndarray, y: np.ndarray) -> int:
    """Rows whose predicted class is another; f = 0 is predicted as −1."""
    return int(np.sum(np.where(f > 0, 1.0, -1.0) != y))


def slow_track(path: OraclePath, y: np.ndarray, sets: list) -> SlowTrack:
    """`sets`: (K between its rows and the training rows, labels) of the training and, perhaps, of
    the validation set. g = λf is linear in an interval, so its zero is that of a line. Events at
    one λ are one breakpoint."""
    lambdas = np.array(path.lambdas)
    is_new = np.append(True, lambdas[1:] < lambdas[:-1] * (1 - 1e-11))
    t = lambdas[is_new]
    counts: list[list[int]] = [[], []]
    crossings = []
    for k, upper in enumerate(t):
        lower = t[min(k + 1, len(t) - 1)]
        for number, (K, labels) in enumerate(sets):
            just_after = upper - 1e-9 * (upper - lower)
            counts[number].append(wrong(path.decision(K, y, just_after), labels))
            g = upper * path.decision(K, y, upper)
            at_end = lower * path.decision(K, y, lower)
            for j in np.flatnonzero(g * at_end < 0):
                share = g[j] / (g[j] - at_end[j])
                delta = 1 if labels[j] * g[j] > 0 else -1
                crossings.append((upper + share * (lower - upper), number, delta))
    crossings.sort(reverse=True)
    columns = np.array(crossings).reshape(-1, 3)
    train = np.array(counts[0])
    return SlowTrack(
        t,
        train,
        np.array(counts[1]) if counts[1] else np.full(len(train), -1),
        columns[:, 0],
        columns[:, 1].astype(int),
        columns[:, 2].astype(int),
        "done" if path.moved[-1][1] == "end" else "hard_margin",
    )
