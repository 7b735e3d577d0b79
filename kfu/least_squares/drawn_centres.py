"""Centres that have been chosen, and rows drawn in proportion to a size of theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Centres:
    """Row numbers in the order chosen, and figures: `m`, `seconds`, and what the rule knows.

    `means` are the centres where they are no rows (kmeans); `rows` is then where they started.
    """

    rows: np.ndarray
    info: dict[str, Any] = field(default_factory=dict)
    R: np.ndarray | None = None  # (m, n) of ic
    means: np.ndarray | None = None

    def of(self, X: Any) -> Any:
        """The centres as vectors; X holds the rows they were chosen from."""
        return X[self.rows] if self.means is None else self.means


def drawn(rng: np.random.Generator, size: np.ndarray, m: int) -> np.ndarray:
    """m rows without replacement, each next one with probability proportional to its size; rows
    of size 0 only when no others are left (Efraimidis and Spirakis 2006)."""
    with np.errstate(divide="ignore"):
        keys = np.where(size > 0.0, rng.standard_exponential(len(size)) / size, np.inf)
    first = np.argpartition(keys, m - 1)[:m]
    return first[np.argsort(keys[first], kind="stable")]
