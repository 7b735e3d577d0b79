"""The tasks of kfu.engine.rectangle: what is done with one partition, on whatever machine.

Sums travel without the centres and their factor, which every worker has (`blank`): m² numbers
instead of twice as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import Dataset
from kfu.engine.partitions import Partition, ReadSettings, read_blocks
from kfu.engine.survey import class_numbers
from kfu.errors import DataError
from kfu.kernels import KernelSpec
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.whitening import BLOCK_VALUES, diagonal_of

MOST_BLOCK_ROWS = 8192
THREADS = 1  # of a task; workers are many


@dataclass(frozen=True)
class Job:
    """What tasks need to know besides their partition."""

    layout: ReadSettings
    kernel: KernelSpec
    classes: np.ndarray | None  # None: labels are the targets
    code: np.ndarray | None  # (classes, t): the targets of each class
    class_weight: np.ndarray | None  # one for each class
    scaler: Any  # a fitted one, or None
    block_rows: int  # 0: by the number of centres
    ridges: list[float]
    bias: bool

    @property
    def outputs(self) -> int:
        return 1 if self.code is None else int(self.code.shape[1])


@dataclass
class PartSums:
    """The sums of some rows; `state` is that of NormalEquations but its centres."""

    state: dict[str, Any]
    diagonal: float  # Σ w K(x, x)


def chosen_rows(item: tuple[Partition, np.ndarray], layout: ReadSettings) -> Any:
    """The rows of a partition with the given numbers (ascending)."""
    partition, rows = item
    parts, start = [], 0
    for block in read_blocks(partition, layout, MOST_BLOCK_ROWS):
        here = rows[(rows >= start) & (rows < start + block.n)] - start
        if len(here):
            parts.append(block.X[here])
        start += block.n
    return stacked(parts)


def stacked(parts: list[Any]) -> Any:
    if any(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return np.vstack(parts)


def blank(centres: Any, job: Job, precision: str, form: str) -> NormalEquations:
    """Sums of no rows: the centres and the factor of their kernel matrix."""
    return NormalEquations(centres, job.kernel, job.outputs, precision, THREADS, form=form)


def _fresh(start: NormalEquations) -> NormalEquations:
    w = start.whitening
    return NormalEquations(w, w.kernel, start.outputs, w.precision, THREADS, form=start.form)


def _detached(sums: NormalEquations) -> dict[str, Any]:
    state = dict(sums.__getstate__())
    del state["whitening"]
    return state


def attached(state: dict[str, Any], start: NormalEquations) -> NormalEquations:
    """The sums with their centres again; the arrays are those of `state`."""
    sums = NormalEquations.__new__(NormalEquations)
    sums.__dict__.update({**state, "whitening": start.whitening})
    sums.__dict__.update({"_systems": {}, "seconds": dict(state["seconds"])})
    return sums


def _blocks(
    partition: Partition, job: Job, m: int
) -> Iterator[tuple[Any, np.ndarray, np.ndarray | None]]:
    """X, targets and weights of the partition, a block at a time."""
    rows = job.block_rows or min(max(BLOCK_VALUES // max(m, 1), 64), MOST_BLOCK_ROWS)
    for block in read_blocks(partition, job.layout, rows):
        X = block.X if job.scaler is None else job.scaler.transform(block.X)
        job.kernel.check_data(X, source=partition.describe(), is_square=False)
        Y, weight = _targets(block, job, partition)
        yield X, Y, weight


def _targets(
    block: Dataset, job: Job, partition: Partition
) -> tuple[np.ndarray, np.ndarray | None]:
    if block.y is None:
        raise DataError(block.source, None, "the data have no labels", "give labelled data")
    if job.classes is None:
        return block.y.astype(np.float64)[:, None], block.weights
    assert job.code is not None
    numbers = class_numbers(block.y, job.classes, partition.describe())
    weight = block.weights
    if job.class_weight is not None:
        factor = job.class_weight[numbers]
        weight = factor if weight is None else weight * factor
    return job.code[numbers], weight


def sum_partition(partition: Partition, start: NormalEquations, job: Job) -> PartSums:
    """The normal equations of the rows of a partition."""
    sums = _fresh(start)
    diagonal = 0.0
    for X, Y, weight in _blocks(partition, job, start.whitening.m):
        sums.add(X, Y, weight)
        values = diagonal_of(X, slice(0, X.shape[0]), job.kernel, THREADS)
        diagonal += float(values.sum() if weight is None else values @ weight)
    return PartSums(_detached(sums), diagonal)


def merge_sums(a: PartSums, b: PartSums, start: NormalEquations, job: Job) -> PartSums:
    """The sums of both; neither is changed."""
    sums = _fresh(start).merge(attached(a.state, start)).merge(attached(b.state, start))
    return PartSums(_detached(sums), a.diagonal + b.diagonal)


def joined(part: PartSums, start: NormalEquations) -> NormalEquations:
    return attached(part.state, start)


def loo_partition(partition: Partition, sums: NormalEquations, job: Job) -> np.ndarray:
    """Σ w (y − f^(−i))² over the rows, the mean over outputs, for each ridge.

    `sums` factors its system when it is first asked in a process, and keeps it.
    """
    totals = np.zeros(len(job.ridges))
    for X, Y, weight in _blocks(partition, job, sums.whitening.m):
        residual = Y - sums.loo_pass(X, Y, job.ridges, weight, bias=job.bias)
        squares = np.square(residual).mean(axis=2)
        totals += squares.sum(axis=1) if weight is None else squares @ weight
    return totals
