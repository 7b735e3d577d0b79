"""The λ-path of a C-SVC with as many rows of either class, and its validation crossings, by hand.

Hastie et al. (2004) as in a text book: dense matrices, every direction from a fresh solve, one
event at a time, rows in general position (no ties), n of a few dozen. Imports nothing of kfu.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class SlowPath:
    """α and α_0 = λb at the breakpoints, in between linear in λ; f = (Σ α y K + α_0)/λ."""

    lam: np.ndarray
    alpha: np.ndarray  # (m, n)
    alpha_0: np.ndarray
    y: np.ndarray
    status: str

    def values(self, K: np.ndarray, lam: float) -> np.ndarray:
        """f at the rows of K (rows: points, columns: training rows)."""
        order = np.argsort(self.lam)
        known = self.lam[order]
        alpha = np.array([np.interp(lam, known, column[order]) for column in self.alpha.T])
        alpha_0 = np.interp(lam, known, self.alpha_0[order])
        return (K @ (alpha * self.y) + alpha_0) / lam


def slow_path(K: np.ndarray, y: np.ndarray, stop: float = 1e-3) -> SlowPath:
    n = len(y)
    assert y.sum() == 0, "as many rows of either class"
    g = K @ y
    first = np.flatnonzero(y > 0)[np.argmax(g[y > 0])]
    second = np.flatnonzero(y < 0)[np.argmin(g[y < 0])]
    lam = (g[first] - g[second]) / 2
    alpha_0 = -(g[first] + g[second]) / 2
    alpha = np.ones(n)
    margin, error = {int(first), int(second)}, set(range(n)) - {int(first), int(second)}
    lams, alphas, thresholds = [lam], [alpha.copy()], [alpha_0]
    status = "done"
    for _ in range(50 * n):
        if not error:
            status = "hard_margin"
            break
        F = sorted(margin)
        M = np.zeros((len(F) + 1, len(F) + 1))
        M[0, 1:] = M[1:, 0] = y[F]
        M[1:, 1:] = np.outer(y[F], y[F]) * K[np.ix_(F, F)]
        eta = np.linalg.solve(M, np.append(0.0, np.ones(len(F))))
        h = K[:, F] @ (y[F] * eta[1:]) + eta[0]
        f = (K @ (alpha * y) + alpha_0) / lam
        events = []
        for place, i in enumerate(F, start=1):  # a row leaves the margin
            if eta[place] > 1e-12:
                events.append((lam - alpha[i] / eta[place], i, "correct"))
            elif eta[place] < -1e-12:
                events.append((lam - (alpha[i] - 1) / eta[place], i, "error"))
        for i in set(range(n)) - margin:  # a row comes to it
            slope = 1 - y[i] * h[i]
            if (i in error and slope > 1e-12) or (i not in error and slope < -1e-12):
                events.append((lam * (f[i] - h[i]) / (y[i] - h[i]), i, "margin"))
        events = [event for event in events if event[0] < lam * (1 - 1e-12)]
        following, item, place = max(events, default=(stop, -1, ""))
        if following <= stop:
            following, place = stop, ""
        alpha[F] -= (lam - following) * eta[1:]
        alpha_0 -= (lam - following) * eta[0]
        lam = following
        margin.discard(item)
        error.discard(item)
        if place == "margin":
            margin.add(item)
        elif place:
            alpha[item] = float(place == "error")
            if place == "error":
                error.add(item)
        lams.append(lam)
        alphas.append(alpha.copy())
        thresholds.append(alpha_0)
        if not place:
            break
    return SlowPath(np.array(lams), np.array(alphas), np.array(thresholds), y, status)


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


def slow_track(path: SlowPath, sets: list[tuple[np.ndarray, np.ndarray]]) -> SlowTrack:
    """`sets`: (K between its rows and the training rows, labels) of the training and, perhaps, of
    the validation set. g = λf is linear in an interval, so its zero is that of a line."""
    counts: list[list[int]] = [[], []]
    crossings = []
    for k in range(len(path.lam)):
        upper = path.lam[k]
        lower = path.lam[min(k + 1, len(path.lam) - 1)]
        for number, (K, y) in enumerate(sets):
            just_after = upper - 1e-9 * (upper - lower)
            counts[number].append(wrong(path.values(K, just_after), y))
            g, at_end = upper * path.values(K, upper), lower * path.values(K, lower)
            for j in np.flatnonzero(g * at_end < 0):
                share = g[j] / (g[j] - at_end[j])
                delta = 1 if y[j] * g[j] > 0 else -1
                crossings.append((upper + share * (lower - upper), number, delta))
    crossings.sort(reverse=True)
    columns = np.array(crossings).reshape(-1, 3)
    train = np.array(counts[0])
    return SlowTrack(
        path.lam,
        train,
        np.array(counts[1]) if counts[1] else np.full(len(train), -1),
        columns[:, 0],
        columns[:, 1].astype(int),
        columns[:, 2].astype(int),
        path.status,
    )
