"""Sets of row numbers as ranges [first, last], which is short for the sets a path begins with."""

from __future__ import annotations

from typing import Any

import numpy as np


def ranges_of(items: np.ndarray) -> list[list[int]]:
    """Ascending row numbers as ranges, both ends included."""
    if not len(items):
        return []
    breaks = np.flatnonzero(np.diff(items) != 1)
    firsts = np.concatenate([[0], breaks + 1])
    lasts = np.concatenate([breaks, [len(items) - 1]])
    return [[int(items[a]), int(items[b])] for a, b in zip(firsts, lasts, strict=True)]


def items_of(ranges: Any) -> np.ndarray:
    """The inverse of ranges_of; ValueError for what are no ranges."""
    parts = [np.zeros(0, dtype=np.int64)]
    for pair in ranges:
        first, last = (int(end) for end in pair)
        if first < 0 or last < first:
            raise ValueError(f"{pair} is no range of rows")
        parts.append(np.arange(first, last + 1))
    return np.concatenate(parts)
