"""libsvm/SVMlight text: reading into arrays, messages for bad lines, writing.

    label [qid:N] [cost:W] index:value index:value ... [# comment]

The parsing itself is in csrc/kfu/text_reader.cpp; this module decides layout and index base and
turns faults into messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfu import _reader
from kfu.data import Dataset
from kfu.errors import SettingsError
from kfu.io import faults

DENSE_ABOVE = 0.4  # share of stored entries from which full rows are smaller and faster
BLOCK_BYTES = 1 << 18
SAMPLE_BYTES = 1 << 16
BASES: dict[Any, int] = {"auto": 0, True: 1, False: 2}


class TextOptions(NamedTuple):
    """How SVMlight text is read; the fields are those of read_dataset."""

    zero_based: Any = "auto"
    n_features: int | None = None
    dense: Any = "auto"
    dtype: Any = np.float64
    threads: int = 1
    block_bytes: int = BLOCK_BYTES


def default_threads(threads: int | None) -> int:
    """The number of threads to use; None or 0: every processor this process may run on."""
    return threads or len(os.sched_getaffinity(0))


def parse(
    buffer: Any, options: TextOptions, source: str, first_line: int = 1, whole: bool = True
) -> Dataset | None:
    """The data set in a text buffer whose first line has number first_line in the source.

    With whole=False the buffer is a part of a text: it may hold no example (None) or no feature.
    """
    text = _reader.Text(buffer, ":", options.block_bytes, options.threads)
    parsed = _parse_layout(text, options)
    summary, rows, X = parsed
    if summary.fault is not None:
        raise faults.svmlight_error(summary.fault, buffer, source, first_line)
    if summary.n_rows == 0:
        if whole:
            raise faults.empty(source)
        return None
    if summary.n_entries == 0 and whole:
        raise faults.no_features(source)
    zero_based = _is_zero_based(options, summary)
    n = summary.n_rows
    return Dataset(
        X,
        labels_of(text, rows, n, summary.has_string_labels, buffer, source, first_line),
        rows.weight[:n].copy() if summary.has_cost else None,
        rows.qid[:n].copy() if summary.has_qid else None,
        source,
        zero_based,
        from_sparse_text=True,
    )


def _is_zero_based(options: TextOptions, summary: Any) -> bool:
    if options.zero_based == "auto":
        return bool(summary.has_zero_index)
    return bool(options.zero_based)


def _width(options: TextOptions, summary: Any) -> int:
    if options.n_features is not None:
        return options.n_features
    return max(0, int(summary.max_index) + (1 if _is_zero_based(options, summary) else 0))


def _parse_layout(text: Any, options: TextOptions) -> tuple[Any, Any, Any]:
    """Summary, row columns and X, dense or CSR as options.dense and the density rule say.

    A sample of lines tells whether full rows are likely; they are then filled directly. When the
    sample misled, the text is parsed again into CSR, so the result never depends on the sample.
    """
    base, limit = BASES[options.zero_based], options.n_features or 0
    if options.dense is not False:
        guess, zero_seen = text.estimate(SAMPLE_BYTES)
        zero_based = options.zero_based is True or (options.zero_based == "auto" and zero_seen)
        width = options.n_features or max(guess, 0) + (1 if zero_based else 0)
        cells = text.lines * width
        likely = cells > 0 and text.separators > DENSE_ABOVE * cells
        if likely:
            summary, rows, X = text.parse_dense(base, limit, options.dtype, width, zero_based)
            if summary.fault is not None:
                return summary, rows, None
            same_width = summary.fits and _width(options, summary) == width
            if same_width and _wants_dense(options, summary, width):
                return _recheck_limit(text, options, summary, rows, X[: summary.n_rows])
    summary, rows, indptr, indices, values = text.parse_csr(base, limit, options.dtype, np.int32)
    if not summary.fits and summary.fault is None:
        summary, rows, indptr, indices, values = text.parse_csr(
            base, limit, options.dtype, np.int64
        )
    if summary.fault is not None:
        return summary, rows, None
    width = _width(options, summary)
    n, entries = summary.n_rows, summary.n_entries
    arrays = (_trim(values, entries), _trim(indices, entries), indptr[: n + 1])
    X = sp.csr_matrix(arrays, shape=(n, width))
    X.has_sorted_indices = True
    X.has_canonical_format = True
    if _wants_dense(options, summary, width):
        X = X.toarray()
    return _recheck_limit(text, options, summary, rows, X)


def _wants_dense(options: TextOptions, summary: Any, width: int) -> bool:
    if options.dense != "auto":
        return bool(options.dense)
    return bool(summary.n_entries > DENSE_ABOVE * summary.n_rows * width)


def _recheck_limit(
    text: Any, options: TextOptions, summary: Any, rows: Any, X: Any
) -> tuple[Any, Any, Any]:
    """An index equal to n_features is too large when the text turned out to count from 0."""
    limit = options.n_features
    if limit is not None and _is_zero_based(options, summary) and summary.max_index >= limit:
        summary = text.parse_csr(BASES[True], limit, options.dtype, np.int64)[0]
    return summary, rows, X


def _trim(array: np.ndarray, size: int) -> np.ndarray:
    """The first elements; copied when the rest would keep much memory alive."""
    return array[:size] if 8 * size >= 7 * len(array) else array[:size].copy()


def labels_of(
    text: Any, rows: Any, n: int, has_strings: bool, buffer: Any, source: str, first_line: int
) -> np.ndarray:
    """Numeric labels, or the texts of all labels when one of them is no number."""
    if not has_strings:
        return rows.label[:n].copy()
    code, first_rows = text.intern_labels(rows, n)
    texts = []
    for row in first_rows:
        begin = int(rows.label_offset[row])
        token = bytes(buffer[begin : begin + int(rows.label_length[row])])
        try:
            texts.append(token.decode("utf-8"))
        except UnicodeDecodeError:
            line = first_line + faults.lines_before(buffer, begin)
            raise faults.binary(source, line, token) from None
    return np.array(texts, dtype=str)[code]


def parse_precomputed(buffer: Any, options: TextOptions, source: str) -> Dataset:
    """A kernel matrix in libsvm's convention: ``label 0:serial 1:K1 2:K2 ... m:Km`` per line.

    Every line holds all m values. A square matrix has the serial numbers 1..n, each once; a
    rectangular one (test rows against training columns) may number its rows at will.
    """
    text = _reader.Text(buffer, ":", options.block_bytes, options.threads)
    summary, rows, indptr, _, values = text.parse_csr(BASES[True], 0, options.dtype, np.int64)
    if summary.fault is not None:
        raise faults.svmlight_error(summary.fault, buffer, source, 1)
    n, width = summary.n_rows, int(summary.max_index)
    if n == 0:
        raise faults.empty(source)
    if width < 1:
        raise faults.no_features(source)
    counts = np.diff(indptr[: n + 1])
    bad = np.flatnonzero((counts != width + 1) | (counts == 0))
    if len(bad):
        raise faults.kernel_row(buffer, source, rows, int(bad[0]), int(counts[bad[0]]) - 1, width)
    table = values[: summary.n_entries].reshape(n, width + 1)
    serial = table[:, 0].astype(np.int64)
    wrong = serial != table[:, 0]
    if n == width:
        repeated = np.ones(n, dtype=bool)
        repeated[np.unique(serial, return_index=True)[1]] = False
        wrong |= (serial < 1) | (serial > n) | repeated
    if wrong.any():
        row = int(np.argmax(wrong))
        raise faults.kernel_serial(buffer, source, rows, row, float(table[row, 0]), n, width)
    return Dataset(
        np.ascontiguousarray(table[:, 1:]),
        labels_of(text, rows, n, summary.has_string_labels, buffer, source, 1),
        rows.weight[:n].copy() if summary.has_cost else None,
        rows.qid[:n].copy() if summary.has_qid else None,
        source,
        True,
        serial,
    )


def check_labels(texts: list[str], source: str) -> None:
    """SettingsError for a label that a line of SVMlight text cannot carry."""
    for label in texts:
        if not label or any(c.isspace() or c in ":#" for c in label):
            raise SettingsError(
                f"{source}: label {label!r} cannot be written as SVMlight text, which ends labels "
                "at blanks, ':' and '#'; write csv or npz, or rename the label"
            )


def heads_of(dataset: Dataset) -> Any:
    """Labels, qid and weights in the form the writers take; texts are checked."""
    label, texts, code = None, None, None
    if dataset.y is not None and dataset.y.dtype.kind in "US":
        values, code = np.unique(dataset.y, return_inverse=True)
        check_labels([str(v) for v in values], dataset.source)
        texts = [str(v).encode() for v in values]
    else:
        label = dataset.y
    return _reader.Heads(label, texts, code, dataset.qid, dataset.weights)


def format_blocks(dataset: Dataset, zero_based: bool) -> Iterator[bytes]:
    """The lines of a data set, in pieces.

    Zeros of dense data are left out. When no stored entry shows the number of features (or, in
    0-based text, that indices start at 0), the first line gets an explicit zero that does.
    """
    if dataset.y is None:
        raise SettingsError(
            f"{dataset.source}: the data have no labels, which SVMlight text requires; "
            "write csv, npy or npz"
        )
    X, d = dataset.X, dataset.n_features
    if sp.issparse(X):
        stored = X.indices
        has_first = bool((stored == 0).any())
        has_last = bool((stored == d - 1).any())
    else:
        has_first, has_last = _is_written(X[:, :1]), _is_written(X[:, d - 1 :])
    first = 0 if zero_based and not has_first and d > 0 else -1
    last = d - 1 if not has_last and d > 0 and not (d == 1 and first == 0) else -1
    style = (0 if zero_based else 1, first, last)
    heads = heads_of(dataset)
    rows = max(1, (1 << 20) // max(1, X.nnz // max(1, dataset.n) if sp.issparse(X) else d))
    for begin in range(0, dataset.n, rows):
        end = min(begin + rows, dataset.n)
        if sp.issparse(X):
            yield _reader.format_csr(heads, X.indptr, X.indices, X.data, begin, end, style)
        else:
            yield _reader.format_dense(heads, X, begin, end, style)


def _is_written(column: np.ndarray) -> bool:
    """Does the writer put an entry of this dense column into the file? (-0.0 is one.)"""
    return bool(((column != 0) | np.signbit(column)).any())


class BlockParser:
    """Parses SVMlight text that arrives in pieces of whole lines."""

    def __init__(self, options: TextOptions, source: str) -> None:
        self._options = options
        self._source = source
        self._line = 1
        self._n_rows = 0
        self._n_entries = 0
        self._first_qid: tuple[bool, int] | None = None

    def parse(self, lines: bytes) -> Dataset | None:
        """The examples of the next piece, None if it has none."""
        first_line = self._line
        self._line += lines.count(b"\n")
        dataset = parse(lines, self._options, self._source, first_line, whole=False)
        if dataset is None:
            return None
        if self._options.zero_based == "auto":
            self._options = self._options._replace(zero_based=dataset.zero_based)
        has_qid = dataset.qid is not None
        if self._first_qid is None:
            self._first_qid = (has_qid, first_line)
        elif self._first_qid[0] != has_qid:
            raise faults.qid_change(self._source, first_line, has_qid)
        self._n_rows += dataset.n
        self._n_entries += int(dataset.X.nnz if dataset.is_sparse else dataset.X.size)
        return dataset

    def finish(self) -> None:
        """DataError when the whole text had no example or no feature."""
        if self._n_rows == 0:
            raise faults.empty(self._source)
        if self._n_entries == 0:
            raise faults.no_features(self._source)
