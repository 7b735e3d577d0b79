"""Code matrices in text files.

One line for each class, in the order of the sorted labels; entries +1, -1 and 0 (1.0 and the like
too), separated by blanks or commas; the rest of a line after # is a comment, blank lines are
skipped; gzip is recognised. The matrix has to be a code (see kfu/multiclass/code_matrix.py).
"""

from __future__ import annotations

import os
import re

import numpy as np

from kfu.errors import DataError
from kfu.io.faults import quoted
from kfu.io.source import read_buffer, source_name
from kfu.multiclass.code_matrix import code_fault

__all__ = ["read_code"]

SEPARATOR = re.compile(r"\s*,\s*|\s+")
ENTRY = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def read_code(path: str | os.PathLike[str], n_classes: int) -> np.ndarray:
    """The code of a text file, int8 (n_classes, n_machines), or DataError with file and line."""
    source = source_name(path)
    text = bytes(read_buffer(path)).decode("utf-8-sig", "backslashreplace")
    rows: list[list[int]] = []
    lines: list[int] = []  # where each row stands
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        if len(rows) == n_classes:
            raise DataError(
                source,
                number,
                f"more rows than the {n_classes} classes of the data",
                "give one row for each class, in the order of the sorted labels",
            )
        rows.append([_entry(token, source, number) for token in SEPARATOR.split(content)])
        lines.append(number)
        if len(rows[-1]) != len(rows[0]):
            raise DataError(
                source,
                number,
                f"{len(rows[-1])} entries where line {lines[0]} has {len(rows[0])}",
                "give every row one entry for each machine",
            )
    if len(rows) < n_classes:
        raise DataError(
            source,
            lines[-1] if lines else None,
            f"the file ends after {len(rows)} rows; the data have {n_classes} classes",
            "give one row for each class, in the order of the sorted labels",
        )
    code = np.array(rows, dtype=np.int8)
    fault = code_fault(code)
    if fault is not None:
        line_of_fault = lines[fault.rows[-1]] if fault.rows else lines[0]
        raise DataError(source, line_of_fault, fault.found, fault.remedy)
    return code


def _entry(token: str, source: str, line: int) -> int:
    value = float(token) if ENTRY.fullmatch(token) else None
    if value not in (-1.0, 0.0, 1.0):
        shown = f"entry {quoted(token.encode())}" if token else "an empty entry"
        raise DataError(
            source, line, shown, "write +1, -1 or 0, separated by blanks or single commas"
        )
    return int(value)
