"""Reading and writing data sets: libsvm/SVMlight text, CSV, TSV, .npy and .npz, plain or gzip.

    dataset = read_dataset("train.svm.gz")
    write_dataset("train.csv", dataset)
    for block in iter_blocks("-", 1000): ...

The format follows from the extension (.csv, .tsv, .npy, .npz, each possibly with .gz), otherwise
from the first line of data: index:value pairs are libsvm text, commas, semicolons or tabs a table.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfu import _reader
from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io import arrays, svmlight, table
from kfu.io.atomic import atomic_output
from kfu.io.source import plain_suffix, read_buffer, source_name, stream_chunks
from kfu.io.svmlight import TextOptions, default_threads
from kfu.io.table import TableOptions

__all__ = ["FORMATS", "atomic_output", "iter_blocks", "read_dataset", "write_dataset"]


class ReadOptions(NamedTuple):
    """The options of both text formats; each reader takes its own."""

    text: TextOptions
    table: TableOptions
    precomputed: bool


class Format(NamedTuple):
    """A file format: how a buffer is read and how a data set is written to a binary stream."""

    read: Callable[[Any, ReadOptions, str], Dataset]
    write: Callable[[Any, Dataset, bool], None]
    suffixes: tuple[str, ...]
    is_text: bool


def _read_svmlight(buffer: Any, options: ReadOptions, source: str) -> Dataset:
    if options.precomputed:
        return svmlight.parse_precomputed(buffer, options.text, source)
    dataset = svmlight.parse(buffer, options.text, source)
    assert dataset is not None
    return dataset


def _write_svmlight(stream: Any, dataset: Dataset, zero_based: bool) -> None:
    for block in svmlight.format_blocks(dataset, zero_based):
        stream.write(block)


def _read_delimited(delimiter: str | None) -> Callable[[Any, ReadOptions, str], Dataset]:
    def read(buffer: Any, options: ReadOptions, source: str) -> Dataset:
        dataset = table.parse(buffer, options.table._replace(delimiter=delimiter), source)
        return _as_kernel(dataset) if options.precomputed else dataset

    return read


def _write_delimited(delimiter: str) -> Callable[[Any, Dataset, bool], None]:
    def write(stream: Any, dataset: Dataset, zero_based: bool) -> None:
        for block in table.format_blocks(dataset, delimiter):
            stream.write(block)

    return write


def _read_npy(buffer: Any, options: ReadOptions, source: str) -> Dataset:
    dataset = arrays.parse_npy(buffer, options.table.label_column, options.text, source)
    return _as_kernel(dataset) if options.precomputed else dataset


def _read_npz(buffer: Any, options: ReadOptions, source: str) -> Dataset:
    dataset = arrays.parse_npz(buffer, options.text, source)
    return _as_kernel(dataset) if options.precomputed else dataset


def _as_kernel(dataset: Dataset) -> Dataset:
    """A matrix of kernel values without serial numbers: the rows are numbered in their order."""
    if sp.issparse(dataset.X):
        dataset.X = dataset.X.toarray()
    dataset.serial = np.arange(1, dataset.n + 1, dtype=np.int64)
    return dataset


FORMATS: dict[str, Format] = {
    "svmlight": Format(_read_svmlight, _write_svmlight, (), True),
    "csv": Format(_read_delimited(None), _write_delimited(","), (".csv",), True),
    "tsv": Format(_read_delimited("\t"), _write_delimited("\t"), (".tsv", ".tab"), True),
    "npy": Format(_read_npy, arrays.write_npy, (".npy",), False),
    "npz": Format(_read_npz, arrays.write_npz, (".npz",), False),
}
ALIASES = {"libsvm": "svmlight", "svm": "svmlight"}


def _chosen_format(format: str) -> str | None:
    name = ALIASES.get(format, format)
    if name == "auto":
        return None
    if name not in FORMATS:
        choices = ", ".join(["auto", *FORMATS])
        raise SettingsError(f"unknown data format {format!r}; choose one of {choices}")
    return name


def _format_by_suffix(path: str | os.PathLike[str]) -> str | None:
    suffix = plain_suffix(path)
    return next((name for name, f in FORMATS.items() if suffix in f.suffixes), None)


def _format_by_content(head: bytes) -> str:
    if head.startswith(arrays.NPY_MAGIC):
        return "npy"
    if head.startswith(arrays.ZIP_MAGIC):
        return "npz"
    return table.table_format(head) or "svmlight"


def _read_options(
    *,
    zero_based: Any = "auto",
    label_column: int | str | None = 0,
    header: Any = "auto",
    n_features: int | None = None,
    dense: Any = "auto",
    dtype: Any = np.float64,
    threads: int | None = None,
    precomputed: bool = False,
) -> ReadOptions:
    for name, value in (("zero_based", zero_based), ("header", header), ("dense", dense)):
        if value not in ("auto", True, False):
            raise SettingsError(f"{name} must be 'auto', True or False, not {value!r}")
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise SettingsError(f"dtype must be float64 or float32, not {kind}")
    if n_features is not None and n_features < 1:
        raise SettingsError(f"n_features must be at least 1, not {n_features}")
    count = default_threads(threads)
    text = TextOptions(zero_based, n_features, dense, kind, count)
    return ReadOptions(text, TableOptions(None, label_column, header, kind, count), precomputed)


def read_dataset(path: str | os.PathLike[str], *, format: str = "auto", **options: Any) -> Dataset:
    """The data set in a file, or on standard input if the path is ``-``.

    format: auto, svmlight (libsvm), csv, tsv, npy or npz.
    zero_based: libsvm text counts features from 0 (True), 1 (False), or from 0 exactly when an
        index 0 occurs ("auto").
    label_column: of tables and .npy, a number counted from 0 (negative from the end), a name in
        the header, or None for data without labels. Default: the first column.
    header: whether the first line of a table names the columns; "auto" says yes when no field of
        it (other than the label) is a number.
    n_features: number of columns of X. In libsvm text a larger index is an error and absent ones
        are 0, so its default is the largest index; the other formats must have just that many.
    dense: full rows (True), CSR (False), or ("auto") tables and arrays as they are and sparse data
        in full rows when more than 0.4 of the entries are stored.
    dtype: float64 or float32. threads: default every processor.
    precomputed: the data are kernel values; libsvm text carries serial numbers as ``0:i``, the
        other formats number rows in their order. They are returned as ``serial``.

    DataError, with the line where there is one, for whatever cannot be read exactly.
    """
    chosen = _chosen_format(format)
    settings = _read_options(**options)
    source = source_name(path)
    buffer = read_buffer(path)
    name = chosen or _format_by_suffix(path) or _format_by_content(bytes(buffer[:HEAD_BYTES]))
    return _settled(FORMATS[name].read(buffer, settings, source), settings.text, name)


def _settled(dataset: Dataset, options: TextOptions, format: str) -> Dataset:
    """The data set in the layout and with the number of features that were asked for."""
    dataset.format = format
    d = options.n_features
    if d is not None and dataset.n_features != d:
        if not dataset.is_sparse or dataset.n_features > d:
            raise DataError(
                dataset.source,
                None,
                f"{dataset.n_features} features where {d} are expected",
                "use data with the same columns (and check which column holds the label)",
            )
        dataset.X.resize(dataset.n, d)
    if options.dense is True and dataset.is_sparse:
        dataset.X = dataset.X.toarray()
    elif options.dense is False and not dataset.is_sparse and dataset.serial is None:
        dataset.X = sp.csr_matrix(dataset.X)
    return dataset


HEAD_BYTES = 1 << 16  # what the format is recognised by


def write_dataset(
    path: str | os.PathLike[str],
    dataset: Dataset,
    *,
    format: str = "auto",
    zero_based: bool | None = None,
) -> None:
    """Writes a data set so that read_dataset gives it back with identical numbers.

    The format follows from the extension, svmlight text by default; a name that ends in .gz is
    compressed. ``-`` is standard output. zero_based: default as the data were read. The file
    appears complete or not at all.
    """
    name = _chosen_format(format) or _format_by_suffix(path) or "svmlight"
    base = dataset.zero_based if zero_based is None else zero_based
    with atomic_output(path) as stream:
        if os.fspath(path).lower().endswith(".gz"):
            # No name and no time in the header: equal data give equal files.
            with gzip.GzipFile("", "wb", 6, stream, 0) as packed:
                FORMATS[name].write(packed, dataset, base)
        else:
            FORMATS[name].write(stream, dataset, base)


def iter_blocks(
    path: str | os.PathLike[str], block_rows: int, *, format: str = "auto", **options: Any
) -> Iterator[Dataset]:
    """The data set in consecutive blocks of at most block_rows rows, in constant memory.

    Text is read as it arrives, also from standard input: a pipe that has no more right now gives
    the rows that have come as a (shorter) block. Options as in read_dataset. Two things a
    block cannot know: libsvm text with zero_based="auto" counts from 0 when the first block has an
    index 0 (an index 0 that comes later is then an error), and without n_features each block has
    as many columns as its largest index. Blocks with text labels and blocks with numbers only can
    alternate. .npy and .npz are read as a whole and cut.
    """
    if block_rows < 1:
        raise SettingsError(f"block_rows must be at least 1, not {block_rows}")
    settings = _read_options(**options)
    chosen = _chosen_format(format) or _format_by_suffix(path)
    if (chosen is not None and not FORMATS[chosen].is_text) or settings.precomputed:
        yield from read_dataset(path, format=format, **options).blocks(block_rows)
        return
    yield from _blocks_of_text(path, block_rows, chosen, settings)


def _blocks_of_text(
    path: str | os.PathLike[str], block_rows: int, chosen: str | None, settings: ReadOptions
) -> Iterator[Dataset]:
    source = source_name(path)
    chunks = stream_chunks(path)
    pending = bytearray()
    for chunk in chunks:
        pending += chunk
        complete = pending.rfind(b"\n") + 1
        if len(pending) >= HEAD_BYTES or table.first_data_line(pending[:complete]):
            break
    name = chosen or _format_by_content(bytes(pending[:HEAD_BYTES]))
    if not FORMATS[name].is_text:
        for chunk in chunks:
            pending += chunk
        whole = FORMATS[name].read(pending, settings, source)
        yield from _settled(whole, settings.text, name).blocks(block_rows)
        return
    if name == "svmlight":
        parser: Any = svmlight.BlockParser(settings.text, source)
    else:
        delimiter = "\t" if name == "tsv" else None
        parser = table.BlockParser(settings.table._replace(delimiter=delimiter), source)
    for lines in _whole_lines(pending, chunks, block_rows):
        dataset = parser.parse(lines)
        if dataset is not None:
            yield _settled(dataset, settings.text, name)
    parser.finish()


def _whole_lines(pending: bytearray, chunks: Iterator[bytes], block_rows: int) -> Iterator[bytes]:
    """The text in pieces of block_rows lines; the last may be shorter and lack its line feed.

    A piece is also shorter when its lines have come and the next ones are being waited for.
    """
    for chunk in chunks:
        yield from _cut(pending, block_rows)
        complete = 0 if chunk else pending.rfind(b"\n") + 1
        if complete:
            lines = bytes(pending[:complete])
            del pending[:complete]
            yield lines
        pending += chunk
    yield from _cut(pending, block_rows)
    if pending:
        yield bytes(pending)


def _cut(pending: bytearray, block_rows: int) -> Iterator[bytes]:
    """Removes pieces of exactly block_rows lines from the front of pending."""
    begin = 0
    view = memoryview(pending)
    pieces = []
    while (length := _reader.end_of_line(view[begin:], block_rows)) >= 0:
        pieces.append(bytes(view[begin : begin + length]))
        begin += length
    view.release()
    del pending[:begin]
    yield from pieces
