"""The arrays that scores are computed from: one message for each way in which they can be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.data import check_weights
from kfu.errors import DataError

__all__ = ["flags", "numbers", "row_weights"]


def numbers(values: Any, what: str, n: int | None = None) -> np.ndarray:
    """``values`` as a 1-D float64 array of finite numbers (n of them), or DataError on ``what``."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(what, None, "not numbers", "give one number per row") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(what, None, f"{array.ndim}-D", "give one number per row")
    if n is not None and array.size != n:
        raise DataError(what, None, f"{array.size} numbers for {n} rows", "give one per row")
    is_bad = ~np.isfinite(array)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        name = "NaN" if np.isnan(array[row]) else "infinity"
        raise DataError(
            what,
            None,
            f"{name} in row {row} (counted from 0)",
            "give finite numbers, or drop the row",
        )
    return array


def flags(values: Any, what: str, n: int | None = None) -> np.ndarray:
    """``values`` as a 1-D array of booleans; numbers have to be 0 and 1 (or -1 and 1)."""
    array = np.asarray(values)
    if array.dtype.kind != "b":
        array = numbers(values, what, n)
        known = np.isin(array, (0.0, 1.0)).all() or np.isin(array, (-1.0, 1.0)).all()
        if not known:
            raise DataError(
                what,
                None,
                "values other than true and false",
                "compare the labels with the positive one first: y == positive",
            )
        return array > 0
    if array.ndim != 1 or (n is not None and array.size != n):
        raise DataError(what, None, f"shape {array.shape}", "give one value per row")
    return array


def row_weights(weights: Any, n: int) -> np.ndarray:
    """``weights`` checked (finite, not negative, not all 0); None stands for a 1 each."""
    return np.ones(n) if weights is None else check_weights(weights, n, "weights")
