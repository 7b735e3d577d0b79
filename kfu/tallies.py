"""What predictions are held against, block by block: numbers of a regression, orders of a ranking.

Classes are counted by kfu.report.Confusion; these have the same interface: `add` a block, then
`summary` for the report and `warnings` for people. Rates are fractions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.data import Dataset
from kfu.machine_kinds import RANKER
from kfu.model import Model
from kfu.report import Confusion
from kfu.validation.ranking_scores import is_graded, ndcg, pair_error
from kfu.validation.regression_scores import correlation


class RegressionTally:
    """Sums of a regression's errors; rows whose label is no number are set apart."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.targets: list[np.ndarray] = []
        self.predictions: list[np.ndarray] = []

    def add(self, block: Dataset, predicted: np.ndarray) -> None:
        self.n_rows += len(predicted)
        if block.y is None:
            return
        target = as_numbers(block.y)
        known = np.isfinite(target)
        self.targets.append(target[known])
        self.predictions.append(predicted[known])

    def summary(self) -> dict[str, Any]:
        y = np.concatenate(self.targets) if self.targets else np.zeros(0)
        f = np.concatenate(self.predictions) if self.predictions else np.zeros(0)
        found: dict[str, Any] = {"n": self.n_rows, "n_labelled": int(y.size)}
        if y.size == 0:
            return {**found, "mse": None, "mae": None, "r2": None, "correlation": None}
        residual = y - f
        spread = float(np.sum((y - y.mean()) ** 2))
        return {
            **found,
            "mse": float(np.mean(residual**2)),
            "mae": float(np.mean(np.abs(residual))),
            "r2": 1.0 - float(residual @ residual) / spread if spread > 0 else None,
            "correlation": _or_none(correlation(y, f)) if y.size > 1 and spread > 0 else None,
        }

    def warnings(self) -> list[str]:
        missing = self.n_rows - sum(part.size for part in self.targets)
        if self.targets and 0 < missing < self.n_rows:
            return [f"{missing} rows have no number as label; they are not counted"]
        return []


class RankingTally:
    """Scores with their relevance and query; the figures need all rows of a query together."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []

    def add(self, block: Dataset, predicted: np.ndarray) -> None:
        self.n_rows += len(predicted)
        if block.y is not None:
            self.blocks.append((predicted, as_numbers(block.y), block.qid))

    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "n": self.n_rows,
            "n_labelled": 0,
            "ndcg": None,
            "pair_error": None,
        }
        if not self.blocks:
            return found
        score = np.concatenate([part[0] for part in self.blocks])
        relevance = np.concatenate([part[1] for part in self.blocks])
        has_queries = all(part[2] is not None for part in self.blocks)
        qid = np.concatenate([np.asarray(part[2]) for part in self.blocks]) if has_queries else None
        known = np.isfinite(relevance)
        score, relevance = score[known], relevance[known]
        qid = None if qid is None else qid[known]
        found["n_labelled"] = int(known.sum())
        if known.any():
            if is_graded(relevance):
                found["ndcg"] = _or_none(ndcg(score, relevance, qid, at=10))
            found["pair_error"] = _or_none(pair_error(score, relevance, qid))
            found["n_queries"] = 1 if qid is None else int(np.unique(qid).size)
        return found

    def warnings(self) -> list[str]:
        found = []
        if self.blocks and any(part[2] is None for part in self.blocks):
            found.append("rows without qid: all rows count as one query")
        if not all(is_graded(part[1]) for part in self.blocks):
            found.append("relevance that is no grade such as 0 to 4: there is no NDCG of it")
        return found


class ClassTally:
    """kfu.report.Confusion under the interface of this module."""

    def __init__(self, classes: np.ndarray) -> None:
        self.confusion = Confusion(classes)

    @property
    def n_rows(self) -> int:
        return self.confusion.n_rows

    def add(self, block: Dataset, predicted: np.ndarray) -> None:
        self.confusion.add(block.y, predicted)

    def summary(self) -> dict[str, Any]:
        return {**self.confusion.summary(), "confusion": self.confusion.table()}

    def warnings(self) -> list[str]:
        return self.confusion.warnings()


Tally = ClassTally | RegressionTally | RankingTally


def tally_of(model: Model) -> Tally:
    """What the predictions of this model are counted with."""
    if model.has_classes:
        return ClassTally(model.classes)
    return RankingTally() if model.kind == RANKER else RegressionTally()


def as_numbers(y: np.ndarray) -> np.ndarray:
    """Labels as numbers, NaN for those that are none."""
    if y.dtype.kind not in "US":
        return y.astype(np.float64)
    values = np.full(len(y), np.nan)
    for row, text in enumerate(y):
        try:
            values[row] = float(text)
        except ValueError:
            continue
    return values


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
