"""Rows with scores for one class against the rest: what a curve is drawn from, and its figures.

Also the files such rows come in: text, a line for each row with its label and its score, separated
by blanks, a tab, a comma or a semicolon. Blank lines and lines that start with # are skipped, and
so is a first line whose second word is no number (a header).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.data import format_label
from kfu.errors import DataError, SettingsError
from kfu.io.source import read_buffer, source_name
from kfu.validation.curves import Curve, curve_of
from kfu.validation.delong import AucInterval, auc_interval, delong_test
from kfu.validation.regression_scores import correlation, spearman

__all__ = ["ScoredRows", "compare_scores", "positive_label", "read_scores", "score_rows"]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Scores of rows, their curve, and the interval of its area (None where rows have weights)."""

    name: str  #: of the model or the file
    positive: str  #: label of the positive class
    is_positive: np.ndarray
    scores: np.ndarray
    curve: Curve
    interval: AucInterval | None

    def summary(self) -> dict[str, Any]:
        """Plain values, for a report."""
        n_positive = int(self.is_positive.sum())
        accuracy, youden = self.curve.best_accuracy(), self.curve.best_youden()
        return {
            "positive": self.positive,
            "n_positive": n_positive,
            "n_negative": int(self.is_positive.size) - n_positive,
            "auc": self.curve.auc,
            "auc_low": None if self.interval is None else self.interval.low,
            "auc_high": None if self.interval is None else self.interval.high,
            "average_precision": self.curve.average_precision,
            "best_accuracy": {"threshold": accuracy.threshold, "accuracy": accuracy.value},
            "best_youden": {
                "threshold": youden.threshold,
                "youden": youden.value,
                "tpr": youden.tpr,
                "fpr": youden.fpr,
            },
        }


def score_rows(
    name: str,
    positive: str,
    is_positive: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray | None = None,
    confidence: float = 0.95,
) -> ScoredRows:
    """The curve of ``scores``; ``name`` is what an error is said of."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(
            name,
            None,
            f"the score of row {bad[0]} (counted from 0) is {scores[bad[0]]}",
            "scores have to be finite; look for extreme features or kernel parameters",
        )
    if is_positive.all() or not is_positive.any():
        found = "the only label" if is_positive.size and is_positive.all() else "in no row"
        raise DataError(
            name,
            None,
            f"label {positive} is {found} of {is_positive.size} labelled rows",
            "a curve needs positive and negative rows",
        )
    curve = curve_of(is_positive, scores, weights)
    interval = None if weights is not None else auc_interval(is_positive, scores, confidence)
    return ScoredRows(name, positive, is_positive, scores, curve, interval)


def compare_scores(first: ScoredRows, second: ScoredRows, confidence: float) -> dict[str, Any]:
    """How two scores of the same rows differ, for a report; DeLong's test where rows have no
    weights."""
    test = None
    if first.interval is not None and second.interval is not None:
        test = delong_test(first.is_positive, first.scores, second.scores, confidence)
    return {
        "positive": first.positive,
        "auc_difference": first.curve.auc - second.curve.auc,
        "auc_difference_low": None if test is None else test.low,
        "auc_difference_high": None if test is None else test.high,
        "delong_p": None if test is None else test.p_value,
        "correlation": correlation(first.scores, second.scores),
        "rank_correlation": spearman(first.scores, second.scores),
    }


# ---- files ----------------------------------------------------------------------------------

SEPARATOR = re.compile(r"\s*[,;\t]\s*|\s+")


def read_scores(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels, as texts in kfu's spelling, and scores of the file ``path`` (or stdin, ``-``)."""
    source = source_name(path)
    try:
        text = bytes(read_buffer(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(source, None, "not a text file", "give lines 'label score'") from None
    labels: list[str] = []
    scores: list[float] = []
    may_be_header = True
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        words = SEPARATOR.split(line)
        if len(words) != 2:
            found = f"{len(words)} columns"
            raise DataError(source, number, found, "write the label and the score, nothing else")
        score = number_of(words[1])
        if score is None and may_be_header:
            may_be_header = False
            continue
        may_be_header = False
        if score is None or not math.isfinite(score):
            raise DataError(
                source, number, f"score '{words[1]}'", "scores have to be finite numbers"
            )
        labels.append(label_text(words[0].strip("\"'")))
        scores.append(score)
    if not labels:
        raise DataError(source, None, "no rows", "write a line 'label score' for each row")
    return np.array(labels, dtype=str), np.array(scores)


def number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def label_text(text: str) -> str:
    """A label as kfu writes it: "+1" and "1.0" are the class 1."""
    number = number_of(text)
    return format_label(number) if number is not None and math.isfinite(number) else text


def positive_label(labels: list[np.ndarray], sources: list[str], asked: str | None) -> str:
    """The positive class of label columns: as asked, or the larger of the two there are."""
    names = np.unique(np.concatenate(labels)).tolist()
    where = sources[0] if len(sources) == 1 else f"{sources[0]} and the other files"
    if asked is not None:
        if label_text(asked) not in names:
            raise SettingsError(f"--positive {asked}: the labels of {where} are {shown(names)}")
        return label_text(asked)
    if len(names) == 1:
        raise DataError(
            where, None, f"every label is {names[0]}", "a curve needs positive and negative rows"
        )
    if len(names) > 2:
        raise SettingsError(
            f"{where} has {len(names)} labels ({shown(names)}); choose one with --positive"
        )
    first, second = (number_of(name) for name in names)
    if first is None or second is None:
        return str(max(names))
    return str(names[0] if first > second else names[1])


def shown(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
