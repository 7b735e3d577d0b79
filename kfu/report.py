"""Reports: what training and prediction found, as one JSON object and as a table for people.

Rates are fractions. A number that is not finite, or not known, is ``null`` in JSON.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kfu._version import __version__
from kfu.data import format_label
from kfu.io.atomic import atomic_output
from kfu.io.json_values import plain

# Keys of a training report, in their order. "settings" and the keys after "warnings" describe
# how the result was found; the others are the result.
TRAIN_KEYS = (
    "status",
    "machine",
    "kernel",
    "n",
    "n_features",
    "n_classes",
    "n_sv",
    "n_usv",
    "objective",
    "duality_gap",
    "kkt_gap",
    "kkt_violation",
    "bias",
    "bias_std",
    "iterations",
    "kernel_evaluations",
    "cache_hit_rate",
    "seconds",
    "peak_rss_mib",
    "warnings",
    "solver",
    "rounds",
    "chunk",
    "precision",
    "layout",
    "simd",
    "threads",
    "phases",
    "version",
    "settings",
)


# What only some machines report: several binary machines, nu, regression, ranking, probabilities.
MORE_KEYS = (
    *("n_machines", "multiclass", "decoding", "code_distance", "probability"),
    *("margin", "epsilon", "n_pairs", "dims", "method", "ridge", "lambda"),
    *("lambda_by", "centres"),
    *("trace_portion", "preconditioner", "rank", "trace_left", "residual", "condition"),
    *("loo", "loo_error", "loo_error_bound", "loo_mse", "gcv", "degrees_of_freedom"),
    *("stability_beta", "stability_bound", "stability_constants", "pruning", "path"),
)


def peak_rss_mib() -> float:
    """Largest resident memory of this process so far, in MiB.

    Read from /proc where there is one: getrusage also counts the parent at the time of the fork.
    """
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024, 1)
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def train_report(
    info: Mapping[str, Any],
    *,
    seconds: Mapping[str, float],
    warnings: Sequence[str],
    settings: Mapping[str, Any],
    threads: int,
    **facts: Any,
) -> dict[str, Any]:
    """The report of one training: the keys TRAIN_KEYS and, after them, those of MORE_KEYS known.

    ``info`` is what the machine recorded (the Info of its solver); ``facts`` are machine,
    kernel, n, n_features and n_classes.
    """
    known: dict[str, Any] = {**info, **facts, "phases": dict(info.get("seconds") or {})}
    if "cache_hit_rate" not in known:
        hits, misses = known.get("cache_hits") or 0, known.get("cache_misses") or 0
        known["cache_hit_rate"] = hits / (hits + misses) if hits + misses else 0.0
    known.update(
        seconds=dict(seconds),
        peak_rss_mib=peak_rss_mib(),
        warnings=list(warnings),
        threads=threads,
        version=__version__,
        settings=dict(settings),
    )
    report = {key: known.get(key) for key in TRAIN_KEYS}
    return {**report, **{key: facts[key] for key in MORE_KEYS if key in facts}}


class Confusion:
    """Counts predicted classes against true ones, block by block.

    Rows without a label (``?``, NaN, or 0 where 0 is no class, as SVMlight marks them) are
    set apart; a label the model has never seen counts as an error, since no answer could be
    right.
    """

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes
        self.labels = [format_label(value) for value in classes]
        self.position = {label: k for k, label in enumerate(self.labels)}
        k = len(self.labels)
        self.counts = np.zeros((k, k), dtype=np.int64)  # [true, predicted]
        self.predicted_unknown = np.zeros(k, dtype=np.int64)
        self.unknown: dict[str, int] = {}
        self.n_unlabelled = 0
        self.n_rows = 0

    def add(self, true: np.ndarray | None, predicted: np.ndarray) -> None:
        """``predicted`` holds positions in ``classes``; ``true`` labels as read, or None."""
        self.n_rows += len(predicted)
        if true is None:
            self.n_unlabelled += len(predicted)
            return
        values, inverse = np.unique(true, return_inverse=True)
        codes = np.array([self.code_of(value) for value in values], dtype=np.int64)
        rows = codes[inverse]
        labelled = rows >= 0
        np.add.at(self.counts, (rows[labelled], predicted[labelled]), 1)
        strangers = rows == -2
        np.add.at(self.predicted_unknown, predicted[strangers], 1)
        for value, code in zip(values, codes, strict=True):
            if code == -2:
                name = format_label(value)
                count = int(np.sum(rows[true == value] == -2))
                self.unknown[name] = self.unknown.get(name, 0) + count
        self.n_unlabelled += int(np.sum(rows == -1))

    def code_of(self, value: Any) -> int:
        """Position in ``classes``, -1 for "no label", -2 for a label the model does not know."""
        text = format_label(value)
        if text in self.position:
            return self.position[text]
        try:
            number = float(text)
        except ValueError:
            return -1 if text in ("", "?") else -2
        if math.isnan(number):
            return -1
        text = format_label(number)  # "1.0" and "+1" are the class 1
        if text in self.position:
            return self.position[text]
        return -1 if number == 0 else -2

    @property
    def n_labelled(self) -> int:
        return self.n_rows - self.n_unlabelled

    @property
    def n_correct(self) -> int:
        return int(np.trace(self.counts))

    @property
    def is_informative(self) -> bool:
        """Whether at least one row carries a label of the model."""
        return bool(self.counts.any())

    def warnings(self) -> list[str]:
        found = []
        if self.unknown:
            names = ", ".join(list(self.unknown)[:5]) + (", ..." if len(self.unknown) > 5 else "")
            known = ", ".join(self.labels[:10]) + (", ..." if len(self.labels) > 10 else "")
            if self.is_informative:
                found.append(
                    f"{sum(self.unknown.values())} rows have labels that the model does not know "
                    f"({names}; its classes: {known}); they count as errors"
                )
            else:
                found.append(
                    f"no row has a label of the model ({names}; its classes: {known}); "
                    "no accuracy is reported"
                )
        if self.n_unlabelled and self.is_informative:
            found.append(f"{self.n_unlabelled} rows have no label; they are not counted")
        return found

    def per_class(self) -> list[dict[str, Any]]:
        """One entry per class: label, n, predicted, correct, recall, precision."""
        table = []
        for k, label in enumerate(self.labels):
            n, correct = int(self.counts[k].sum()), int(self.counts[k, k])
            predicted = int(self.counts[:, k].sum() + self.predicted_unknown[k])
            table.append(
                {
                    "label": label,
                    "n": n,
                    "predicted": predicted,
                    "correct": correct,
                    "recall": correct / n if n else None,
                    "precision": correct / predicted if predicted else None,
                }
            )
        return table

    def table(self) -> dict[str, Any] | None:
        """The confusion matrix: labels, and counts by true class (rows) and predicted class."""
        if not self.is_informative:
            return None
        return {"labels": self.labels, "counts": self.counts.tolist()}

    def summary(self) -> dict[str, Any]:
        """n, n_labelled, accuracy, error and per_class (None without labels)."""
        accuracy = self.n_correct / self.n_labelled if self.is_informative else None
        return {
            "n": self.n_rows,
            "n_labelled": self.n_labelled if self.is_informative else 0,
            "accuracy": accuracy,
            "error": None
            if accuracy is None
            else (self.n_labelled - self.n_correct) / self.n_labelled,
            "per_class": self.per_class() if self.is_informative else None,
        }


def write_json(path: str, report: Mapping[str, Any]) -> None:
    """Write ``report`` as one JSON object, atomically; ``-`` is stdout."""
    text = json.dumps(plain(report), indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    with atomic_output(path, "wb") as stream:
        stream.write(text.encode())


def figure(value: Any) -> str:
    """A number for people: six significant digits, thousands kept together, '-' for unknown."""
    if value is None:
        return "-"
    if isinstance(value, (list, tuple, np.ndarray)):
        shown = [figure(item) for item in list(value)[:4]]
        return " ".join(shown) + (" ..." if len(value) > 4 else "")
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    return str(value)


def print_facts(
    facts: Sequence[tuple[str, Any]], title: str | None = None, *, to_stderr: bool = False
) -> None:
    """Name-value lines on stdout: a table on a terminal, ``name<spaces>value`` elsewhere."""
    rows = [[name, figure(value)] for name, value in facts]
    print_table(["", ""], rows, title=title, to_stderr=to_stderr)


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    title: str | None = None,
    to_stderr: bool = False,
) -> None:
    """Rows on stdout (or stderr): a rich table on a terminal, aligned plain text elsewhere."""
    stream = sys.stderr if to_stderr else sys.stdout
    cells = [[cell if isinstance(cell, str) else figure(cell) for cell in row] for row in rows]
    has_header = any(header)
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=title, show_header=has_header, title_justify="left")
        for k, name in enumerate(header):
            table.add_column(name, justify="left" if k == 0 or not has_header else "right")
        for row in cells:
            table.add_row(*(escape(cell) for cell in row))
        Console(stderr=to_stderr).print(table)
        return
    lines = [title] if title else []
    body = [list(header), *cells] if has_header else cells
    widths = [max(len(row[k]) for row in body) for k in range(len(header))] if body else []
    for row in body:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    stream.write("\n".join(lines) + "\n")
