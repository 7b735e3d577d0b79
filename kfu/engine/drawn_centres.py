"""The centres of a fit over partitions: which rows they are, and fetching them.

`random` draws row numbers over all files from the generator that kfu.least_squares.centres uses in
memory. With weights, each partition draws keys E/w of its own generator and the smallest of all are
taken (kfu.engine.survey.smallest_keys). The other selections choose from a sample drawn so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.engine.local import Engine
from kfu.engine.partitions import Partition, ReadSettings
from kfu.engine.rectangle_tasks import chosen_rows, stacked
from kfu.engine.survey import Survey, smallest_keys
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.centres import choose_centres

SAMPLE_PER_CENTRE = 20
LEAST_SAMPLE = 2000


@dataclass(frozen=True)
class CentreRule:
    """How many centres, and by which selection."""

    m: int
    selection: str
    seed: int

    @property
    def sample_size(self) -> int:
        """Rows that the centres are selected from; `random` takes them as they are drawn."""
        return (
            self.m if self.selection == "random" else max(SAMPLE_PER_CENTRE * self.m, LEAST_SAMPLE)
        )


def find_centres(
    engine: Engine,
    partitions: Sequence[Partition],
    surveys: Sequence[Survey],
    layout: ReadSettings,
    rule: CentreRule,
    kernel: KernelSpec,
    scaler: Any,
    ridge: float,
) -> tuple[Any, KernelSpec, dict[str, Any]]:
    """The centres (scaled), the kernel resolved on the sample, and figures of the selection."""
    rows = drawn_rows(partitions, surveys, rule)
    X = _fetched(engine, rows, partitions, surveys, layout)
    if scaler is not None:
        X = scaler.transform(X)
    kernel = kernel.resolve(X)
    kernel.check_data(X, source=partitions[0].path, is_square=False)
    if rule.selection == "random":
        return X, kernel, {}
    n = sum(s.rows for s in surveys)
    # The sample's problem has the ridge of as many rows.
    chosen = choose_centres(
        rule.selection, X, kernel, rule.m, seed=rule.seed, ridge=ridge * len(rows) / n
    )
    figures = {"sample": len(rows), "selected": len(chosen.rows)}
    return chosen.of(X), kernel, figures


def drawn_rows(
    partitions: Sequence[Partition], surveys: Sequence[Survey], rule: CentreRule
) -> np.ndarray:
    """Numbers over all files of the rows drawn, in the order of the draw."""
    n = sum(s.rows for s in surveys)
    size = min(rule.sample_size, n)
    if all(s.keys is None for s in surveys):
        if rule.m > n:
            raise SettingsError(f"{rule.m} centres out of {n} rows of positive weight")
        return np.random.default_rng(rule.seed).choice(n, size, replace=False)
    keys: list[np.ndarray] = []
    rows: list[np.ndarray] = []
    start = 0
    for partition, survey in zip(partitions, surveys, strict=True):
        key, row = survey.keys, survey.drawn
        if key is None or row is None:
            key, row = smallest_keys(rule.seed, partition.index, survey.rows, size)
        keys.append(key)
        rows.append(row + start)
        start += survey.rows
    order = np.argsort(np.concatenate(keys), kind="stable")[:size]
    if rule.m > len(order):
        raise SettingsError(f"{rule.m} centres out of {len(order)} rows of positive weight")
    return np.asarray(np.concatenate(rows)[order])


def _fetched(
    engine: Engine,
    rows: np.ndarray,
    partitions: Sequence[Partition],
    surveys: Sequence[Survey],
    layout: ReadSettings,
) -> Any:
    """The rows with these numbers, in this order."""
    order = np.argsort(rows)
    ends = np.cumsum([s.rows for s in surveys])
    parts = np.searchsorted(ends, rows[order], side="right")
    items = []
    for k in np.unique(parts):
        begin = int(ends[k]) - surveys[k].rows
        items.append((partitions[k], rows[order][parts == k] - begin))
    X = stacked(engine.map("centres", chosen_rows, items, layout))
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    return X[place]
