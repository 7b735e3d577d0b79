"""The first pass over partitions: how many rows, which columns, which classes.

Each partition is surveyed by itself; `layout_of` then decides, from all of them together, what the
reader of a whole file would have decided: whether libsvm text counts from 0 (an index 0 occurs),
how many features there are (the largest index), full rows or CSR (the share of stored entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kfu.data import format_label
from kfu.engine.partitions import Partition, ReadSettings, read_blocks
from kfu.errors import DataError
from kfu.io import faults
from kfu.io.svmlight import DENSE_ABOVE

BLOCK_ROWS = 1 << 16
MOST_CLASSES = 10_000
TARGETS = ("classes", "numbers")


@dataclass
class Survey:
    """What one partition holds. Columns of libsvm text are counted from 0 here."""

    rows: int = 0
    width: int = 0  # columns up to the last that occurs
    has_first_column: bool = False
    is_sparse: bool = False
    entries: int = 0  # stored ones
    classes: np.ndarray | None = None  # distinct labels, sorted; None for numbers as targets
    keys: np.ndarray | None = None  # the smallest keys of the draw of centres ...
    drawn: np.ndarray | None = None  # ... and their rows; only where rows have weights
    total_weight: float = 0.0


def survey_partition(
    partition: Partition, settings: ReadSettings, targets: str, seed: int, m: int
) -> Survey:
    """Read a partition once. `seed` and `m` are for the draw of centres from weighted rows."""
    is_text = partition.format == "svmlight"
    probing = settings
    if is_text:
        base = True if settings.zero_based == "auto" else settings.zero_based
        probing = replace(settings, zero_based=base, dense=False, n_features=None)
    result = Survey()
    weights: list[np.ndarray] = []
    has_weights = False
    classes: list[np.ndarray] = []
    for block in read_blocks(partition, probing, BLOCK_ROWS):
        if block.y is None:
            raise DataError(block.source, None, "the data have no labels", "give labelled data")
        result.rows += block.n
        result.is_sparse = block.is_sparse
        if block.is_sparse:
            result.entries += int(block.X.nnz)
            if block.X.nnz:
                result.width = max(result.width, int(block.X.indices.max()) + 1)
                result.has_first_column |= bool((block.X.indices == 0).any())
            if not is_text:
                result.width = block.n_features
        else:
            result.entries += block.X.size
            result.width = block.n_features
        if targets == "classes":
            classes = [union_of([*classes, np.unique(block.y)])]
            if len(classes[0]) > MOST_CLASSES:
                found = f"more than {MOST_CLASSES} different labels"
                raise DataError(partition.path, None, found, "fit numbers instead of classes")
        elif block.y.dtype.kind in "US":
            raise _not_a_number(partition.path, block.y)
        has_weights |= block.weights is not None
        weights.append(np.ones(block.n) if block.weights is None else block.weights)
    if targets == "classes":
        result.classes = union_of(classes)
    result.total_weight = float(sum(w.sum() for w in weights))
    if has_weights:
        weight = np.concatenate(weights)
        result.keys, result.drawn = smallest_keys(seed, partition.index, len(weight), m, weight)
    return result


def _not_a_number(path: str, y: np.ndarray) -> DataError:
    for label in np.unique(y):
        try:
            float(label)
        except ValueError:
            found = f"the label {str(label)!r} is no number"
            return DataError(path, None, found, "fit classes instead")
    return DataError(path, None, "labels are texts", "fit classes instead")


def smallest_keys(
    seed: int, index: int, rows: int, m: int, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The m smallest of E/w, E exponential, and their rows: drawing over all partitions is taking
    the m smallest of these. (Efraimidis and Spirakis 2006.) Rows of weight 0 are never drawn."""
    keys = np.random.default_rng([seed, index]).standard_exponential(rows)
    if weight is not None:
        with np.errstate(divide="ignore"):
            keys = np.where(weight > 0.0, keys / weight, np.inf)
    order = np.argsort(keys, kind="stable")[:m]
    order = order[np.isfinite(keys[order])]
    return keys[order], order


# ---- labels -------------------------------------------------------------------------------------


def label_text(label: object) -> str:
    """One text for a label however it is written: `+1`, `1.0` and 1 are `1`. A label that is a
    number in one partition may stand among texts in another."""
    try:
        return format_label(float(label))  # type: ignore[arg-type]
    except ValueError:
        return str(label)


def union_of(sets: Sequence[np.ndarray]) -> np.ndarray:
    """Sorted distinct labels of all sets; texts as soon as one set has texts."""
    sets = [labels for labels in sets if len(labels)]
    if not sets:
        return np.empty(0)
    if all(labels.dtype.kind not in "US" for labels in sets):
        return np.unique(np.concatenate(sets))
    return np.array(sorted({label_text(v) for labels in sets for v in labels}), dtype=str)


def class_numbers(y: np.ndarray, classes: np.ndarray, source: str) -> np.ndarray:
    """The place of each label in `classes`; DataError for a label that is not there."""
    values, places = np.unique(y, return_inverse=True)
    known = {label_text(label): k for k, label in enumerate(classes)}
    numbers = np.array([known.get(label_text(value), -1) for value in values], dtype=np.int64)
    if (numbers < 0).any():
        label = label_text(values[int(np.argmax(numbers < 0))])
        raise DataError(source, None, f"label {label} is none of the classes", "list all classes")
    return np.asarray(numbers[places])


# ---- deciding -----------------------------------------------------------------------------------


def layout_of(
    partitions: Sequence[Partition], surveys: Sequence[Survey], settings: ReadSettings
) -> ReadSettings:
    """The settings by which every partition is read into the same columns."""
    rows: dict[str, int] = {}
    for partition, found in zip(partitions, surveys, strict=True):
        rows[partition.path] = rows.get(partition.path, 0) + found.rows
    for path, count in rows.items():
        if count == 0:
            raise faults.empty(path)
    texts = [s for p, s in zip(partitions, surveys, strict=True) if p.format == "svmlight"]
    others = [s for p, s in zip(partitions, surveys, strict=True) if p.format != "svmlight"]
    zero_based = settings.zero_based
    if zero_based == "auto":
        zero_based = any(s.has_first_column for s in texts)
        shift = 0 if zero_based else 1
    else:
        shift = 0
    widths = [s.width - shift for s in texts if s.width] + [s.width for s in others if s.rows]
    width = settings.n_features or max(widths, default=0)
    if width == 0:
        raise faults.no_features(partitions[0].path)
    dense = settings.dense
    if dense == "auto":
        cells = sum(s.rows for s in surveys) * width
        entries = sum(s.entries for s in surveys)
        is_full = any(not s.is_sparse for s in surveys if s.rows)
        dense = is_full or entries > DENSE_ABOVE * cells
    return replace(settings, zero_based=zero_based, n_features=width, dense=dense)
