"""Delimited tables: CSV, TSV and semicolon-separated text.

The label stands in the first column unless said otherwise. In a header the names ``qid:`` and
``cost:`` mark query numbers and example weights (with the colon, as in SVMlight text, so that no
feature is taken for one). Lines that start with # and blank lines are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfu import _reader
from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io import faults
from kfu.io.svmlight import BLOCK_BYTES, labels_of

BOM = b"\xef\xbb\xbf"
QID, COST = "qid:", "cost:"
NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII
)
COLUMN_RANGE = "there are columns 1 (the first) to {0}, or -1 (the last) to -{0}"
PAIR = re.compile(rb"[^\s:,;]+:\S*")


class TableOptions(NamedTuple):
    """How tables are read; delimiter None: comma, or semicolon or tab if there is no comma."""

    delimiter: str | None = None
    label_column: int | str | None = 0
    header: Any = "auto"
    dtype: Any = np.float64
    threads: int = 1
    block_bytes: int = BLOCK_BYTES


class Layout(NamedTuple):
    """What the first lines of a table say."""

    delimiter: str
    names: list[str] | None
    n_fields: int
    label_field: int  # -1: none
    skip_lines: int  # lines up to and including the header
    qid_field: int | None
    cost_field: int | None


def first_data_line(buffer: Any) -> tuple[int, bytes] | None:
    """Number (from 1) and content of the first line that is neither blank nor a comment."""
    begin, number = 0, 0
    size = len(buffer)
    while begin < size:
        end = buffer.find(b"\n", begin)
        end = size if end < 0 else end
        line = bytes(buffer[begin:end])
        if number == 0:
            line = line.removeprefix(BOM)
        number += 1
        if line.strip() and not line.lstrip().startswith(b"#"):
            return number, line
        begin = end + 1
    return None


def table_format(head: bytes) -> str | None:
    """'csv' or 'tsv' when the first line of data looks like a table, None otherwise."""
    found = first_data_line(head)
    if found is None:
        return None
    line = found[1].partition(b"#")[0].strip()
    tokens = line.split()
    if len(tokens) > 1 and PAIR.fullmatch(tokens[1]):
        return None  # label index:value ...
    if b"," in line or b";" in line:
        return "csv"
    return "tsv" if b"\t" in line else None


def split_fields(line: str, delimiter: str) -> list[str]:
    """The fields of one line, without blanks around them and without their quotes."""
    fields: list[str] = []
    position = 0
    blanks = re.compile(r"[^\S\t]*" if delimiter == "\t" else r"\s*")
    while True:
        position = blanks.match(line, position).end()  # type: ignore[union-attr]
        quoted = re.compile(r'"((?:[^"]|"")*)"').match(line, position)
        if quoted:
            fields.append(quoted.group(1).replace('""', '"'))
            position = quoted.end()
            end = line.find(delimiter, position)
        else:
            end = line.find(delimiter, position)
            fields.append(line[position : len(line) if end < 0 else end].strip())
        if end < 0:
            return fields
        position = end + 1


def _delimiter_of(line: str) -> str:
    return next((c for c in ",;\t" if c in line), ",")


def read_layout(buffer: Any, options: TableOptions, source: str) -> Layout:
    """Columns, header and label column from the first line of data."""
    found = first_data_line(buffer)
    if found is None:
        raise faults.empty(source)
    number, raw = found
    try:
        line = raw.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        line = raw.decode("utf-8", "backslashreplace").rstrip("\r")
    delimiter = options.delimiter or _delimiter_of(line)
    fields = split_fields(line, delimiter)
    wanted = options.label_column
    header = options.header
    if header == "auto":
        header = _names_columns(fields, wanted)
    names = fields if header else None
    label = _label_field(wanted, names, len(fields), source)
    if len(fields) - (label >= 0) < 1:
        raise DataError(
            source, number, "the table has no feature column", "separate columns with , ; or tab"
        )

    def place(name: str) -> int | None:
        return names.index(name) if names is not None and name in names else None

    skip = number if header else number - 1
    return Layout(delimiter, names, len(fields), label, skip, place(QID), place(COST))


def _names_columns(fields: list[str], label: int | str | None) -> bool:
    """Is this first line a header? Yes when no field, the label's aside, is a number."""
    try:
        aside = int(label) % len(fields) if label is not None else None
    except ValueError:
        aside = None
    others = [f for i, f in enumerate(fields) if i != aside] or fields
    return not any(NUMBER.fullmatch(f) for f in others)


def _label_field(
    wanted: int | str | None, names: list[str] | None, n_fields: int, source: str
) -> int:
    if wanted is None:
        return -1
    if isinstance(wanted, str):
        if names is not None and wanted in names:
            return names.index(wanted)
        try:
            wanted = int(wanted)
        except ValueError:
            where = "without header" if names is None else f"with columns {', '.join(names[:20])}"
            raise DataError(
                source,
                None,
                f"no column {wanted!r} in a table {where}",
                "name a column of the header or give its number",
            ) from None
    if not -n_fields <= wanted < n_fields:
        raise DataError(
            source,
            None,
            f"label column {shown_column(wanted)} of a table with {n_fields} columns",
            COLUMN_RANGE.format(n_fields),
        )
    return wanted % n_fields


def shown_column(index: int) -> int:
    """A column index as messages (and the command line) number it: 1 is the first, -1 the last."""
    return index + 1 if index >= 0 else index


def parse(buffer: Any, options: TableOptions, source: str) -> Dataset:
    """The data set in a table."""
    layout = read_layout(buffer, options, source)
    dataset = _parse_rows(buffer, options, layout, source, 1)
    if dataset is None:
        raise faults.empty(source)
    return dataset


def _parse_rows(
    buffer: Any, options: TableOptions, layout: Layout, source: str, first_line: int
) -> Dataset | None:
    text = _reader.Text(buffer, layout.delimiter, options.block_bytes, options.threads)
    skip = max(0, layout.skip_lines - (first_line - 1))
    fault, n, has_strings, rows, values = text.parse_table(
        layout.delimiter, layout.n_fields, layout.label_field, skip, options.dtype
    )
    if fault is not None:
        raise faults.table_error(fault, buffer, source, first_line)
    if n == 0:
        return None
    y = None
    if layout.label_field >= 0:
        y = labels_of(text, rows, n, has_strings, buffer, source, first_line)
        if has_strings:
            y = np.char.replace(y, '""', '"')
    return _with_roles(Dataset(values[:n], y, source=source), layout, first_line)


def _with_roles(dataset: Dataset, layout: Layout, first_line: int) -> Dataset:
    """Moves the qid: and cost: columns out of X."""
    roles = [f for f in (layout.qid_field, layout.cost_field) if f is not None]
    if not roles:
        return dataset

    def column(field: int | None) -> np.ndarray | None:
        if field is None:
            return None
        before_label = 0 <= layout.label_field < field
        return dataset.X[:, field - before_label].astype(np.float64)

    qid, cost = column(layout.qid_field), column(layout.cost_field)
    source = dataset.source
    if qid is not None and ((qid != np.floor(qid)) | (qid < 0)).any():
        raise DataError(source, None, "a qid: that is no integer >= 0", "number the queries")
    if cost is not None and (cost < 0).any():
        raise DataError(source, None, "a negative cost:", "give weights >= 0")
    keep = [
        i
        for i in range(layout.n_fields)
        if i not in (layout.label_field, layout.qid_field, layout.cost_field)
    ]
    columns = [i - (0 <= layout.label_field < i) for i in keep]
    dataset.X = np.ascontiguousarray(dataset.X[:, columns])
    dataset.qid = None if qid is None else qid.astype(np.int64)
    dataset.weights = cost
    return dataset


class BlockParser:
    """Parses a table that arrives in pieces of whole lines."""

    def __init__(self, options: TableOptions, source: str) -> None:
        self._options = options
        self._source = source
        self._layout: Layout | None = None
        self._line = 1
        self._n_rows = 0

    def parse(self, lines: bytes) -> Dataset | None:
        """The examples of the next piece, None if it has none."""
        first_line = self._line
        self._line += lines.count(b"\n")
        if self._layout is None:
            if first_data_line(lines) is None:
                return None
            layout = read_layout(lines, self._options, self._source)
            self._layout = layout._replace(skip_lines=layout.skip_lines + first_line - 1)
        dataset = _parse_rows(lines, self._options, self._layout, self._source, first_line)
        self._n_rows += 0 if dataset is None else dataset.n
        return dataset

    def finish(self) -> None:
        """DataError when the whole text had no example."""
        if self._n_rows == 0:
            raise faults.empty(self._source)


def quote(label: str, delimiter: str) -> bytes:
    """A label as a field: in quotes where it needs them."""
    if "\n" in label or "\r" in label or not label:
        raise SettingsError(f"label {label!r} cannot be written in a table; write npz")
    plain = label.strip() == label and not any(c in label for c in f'"{delimiter},;\t#')
    text = label if plain else '"' + label.replace('"', '""') + '"'
    return text.encode()


def format_blocks(dataset: Dataset, delimiter: str) -> Iterator[bytes]:
    """The table, in pieces: a header (label, qid:, cost:, x1, x2, ...), then a line per example."""
    label, texts, code = dataset.y, None, None
    if dataset.y is not None and dataset.y.dtype.kind in "US":
        values, code = np.unique(dataset.y, return_inverse=True)
        label, texts = None, [quote(str(v), delimiter) for v in values]
    heads = _reader.Heads(label, texts, code, dataset.qid, dataset.weights)
    names = ["label"] * (dataset.y is not None) + [QID] * (dataset.qid is not None)
    names += [COST] * (dataset.weights is not None)
    names += [f"x{j + 1}" for j in range(dataset.n_features)]
    yield (delimiter.join(names) + "\n").encode()
    rows = max(1, (1 << 20) // max(1, dataset.n_features))
    for block in range(0, dataset.n, rows):
        end = min(block + rows, dataset.n)
        if sp.issparse(dataset.X):
            part = Dataset.take(dataset, slice(block, end))
            piece = _reader.Heads(
                None if label is None else part.y,
                texts,
                None if code is None else code[block:end],
                part.qid,
                part.weights,
            )
            yield _reader.format_table(piece, part.X.toarray(), 0, end - block, delimiter)
        else:
            yield _reader.format_table(heads, dataset.X, block, end, delimiter)
