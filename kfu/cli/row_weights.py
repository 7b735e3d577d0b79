"""``--weights FILE`` and ``--margins FILE``: one number per row of the data."""

from __future__ import annotations

import gzip
import math

import numpy as np

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io.source import reason_of


def row_weights(path: str | None, dataset: Dataset) -> np.ndarray | None:
    """The weights of the rows of ``dataset``: from ``path``, or the data's own, or None.

    Blank lines and ``#`` comments are skipped; a weight is a finite number >= 0.
    """
    if path is None:
        return dataset.weights
    if dataset.weights is not None:
        raise SettingsError(
            f"--weights {path}: {dataset.source} already gives its rows weights (cost:); "
            "use one of the two"
        )
    weights = read_numbers(path)
    if len(weights) != dataset.n:
        raise DataError(
            path,
            None,
            f"{len(weights)} weights for the {dataset.n} rows of {dataset.source}",
            "give one number per row",
        )
    if not np.any(weights > 0):
        raise DataError(path, None, "every weight is 0", "give at least two rows a weight > 0")
    return weights


def read_numbers(path: str) -> np.ndarray:
    """The numbers >= 0 of a text file, one a line."""
    opened = gzip.open if path.endswith(".gz") else open
    values: list[float] = []
    try:
        with opened(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.split("#", 1)[0].strip()
                if text:
                    values.append(number_of(text, path, number))
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        raise DataError(path, None, "not a text file", "give one number per line") from None
    except OSError as error:
        reason = reason_of(error)
        raise DataError(path, None, reason, "give a file with one number per line") from None
    return np.array(values)


def read_labels(path: str, dataset: Dataset) -> np.ndarray:
    """The words of a text file, one a line, as many as the data have rows."""
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as stream:
            words = [line.split("#", 1)[0].strip() for line in stream]
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        raise DataError(path, None, "not a text file", "give one group per line") from None
    except OSError as error:
        reason = reason_of(error)
        raise DataError(path, None, reason, "give a file with one group per line") from None
    words = [word for word in words if word]
    if len(words) != dataset.n:
        found = f"{len(words)} groups for the {dataset.n} rows of {dataset.source}"
        raise DataError(path, None, found, "give one per row")
    return np.array(words)


def number_of(text: str, path: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise DataError(path, line, f"'{text}' is not a weight", "give a number >= 0")
    return value
