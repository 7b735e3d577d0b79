"""What a link is fitted to: outputs of one binary machine, which rows are positive, and weights.

A row of weight w counts as w rows, everywhere; a row of weight 0 is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import DataError

__all__ = ["Sample", "checked_weight", "make_sample"]

SOURCE = "calibration"


@dataclass(frozen=True, eq=False)
class Sample:
    decision: np.ndarray  #: float64 (n,), finite
    positive: np.ndarray  #: bool (n,)
    weight: np.ndarray  #: float64 (n,), > 0

    @property
    def n_positive(self) -> float:
        return float(self.weight[self.positive].sum())

    @property
    def n_negative(self) -> float:
        return float(self.weight[~self.positive].sum())


def make_sample(decision: Any, positive: Any, weight: Any = None) -> Sample:
    """The checked sample without its rows of weight 0.

    `positive` is boolean, 0/1 or ±1. DataError when nothing is left or a value is not usable.
    """
    f = np.asarray(decision, dtype=np.float64)
    if f.ndim != 1:
        raise ValueError(f"decision has to be one-dimensional, not of shape {f.shape}")
    is_positive = _as_boolean(positive)
    if is_positive.shape != f.shape:
        raise ValueError(f"{f.shape[0]} decision values, but outcomes of {is_positive.shape}")
    w = checked_weight(weight, f.shape[0])
    kept = w > 0
    f, is_positive, w = f[kept], is_positive[kept], w[kept]
    if f.size == 0:
        raise DataError(SOURCE, None, "no row to fit to", "give outputs of at least one row")
    if not np.isfinite(f).all():
        raise DataError(SOURCE, None, "a decision value is not finite", "leave such rows out")
    return Sample(f, is_positive, w)


def checked_weight(weight: Any, n: int) -> np.ndarray:
    """Weights of n rows, 1 where none are given; DataError where one is negative or not finite."""
    if weight is None:
        return np.ones(n)
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != (n,):
        raise ValueError(f"weights of shape {w.shape} for {n} rows")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise DataError(SOURCE, None, "a weight is negative or not finite", "give weights >= 0")
    return w


def _as_boolean(positive: Any) -> np.ndarray:
    values = np.asarray(positive)
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind not in "iuf" or not np.isin(values, (-1, 0, 1)).all():
        raise ValueError("outcomes have to be boolean, 0/1 or -1/+1")
    return values > 0
