"""Data files cut into partitions that can be read apart from each other.

    partitions = plan(["day-*.svm", "more.svm.gz"], ReadSettings(), partition_bytes=1 << 24)
    for partition in partitions:
        for block in read_blocks(partition, layout, 8192): ...

What a partition is depends on the file:

lines   a range of bytes of plain text (libsvm, CSV, TSV) that begins and ends at a line; a table's
        partitions carry its first lines, which name the columns.
rows    a range of rows of a .npy file, or of an uncompressed .npz with a dense X (memory-mapped).
whole   a file that can only be read from its beginning: gzip, compressed or sparse .npz.

The plan depends on the files and on `partition_bytes` alone, never on who reads. Partitions are
small and can be sent anywhere; the files have to be there under the same path.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import Dataset
from kfu.engine import array_ranges
from kfu.errors import DataError, SettingsError
from kfu.io import ALIASES, FORMATS, HEAD_BYTES, arrays, faults, iter_blocks, svmlight, table
from kfu.io.source import CHUNK_BYTES, GZIP_MAGIC, open_input, plain_suffix
from kfu.io.svmlight import TextOptions
from kfu.io.table import TableOptions

PARTITION_BYTES = 1 << 24
DELIMITERS = {"csv": None, "tsv": "\t"}
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class ReadSettings:
    """How files are read; the fields are options of kfu.io.read_dataset.

    With zero_based, n_features and dense known (see kfu.engine.survey.layout_of) every partition is
    read into the same columns and the same kind of matrix.
    """

    format: str = "auto"
    zero_based: Any = "auto"
    label_column: int | str | None = 0
    header: Any = "auto"
    n_features: int | None = None
    dense: Any = "auto"
    dtype: str = "float64"
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("zero_based", "header", "dense"):
            if getattr(self, name) not in ("auto", True, False):
                found = getattr(self, name)
                raise SettingsError(f"{name} must be 'auto', True or False, not {found!r}")
        if self.dtype not in ("float64", "float32"):
            raise SettingsError(f"dtype must be float64 or float32, not {self.dtype}")
        if self.n_features is not None and self.n_features < 1:
            raise SettingsError(f"n_features must be at least 1, not {self.n_features}")

    @property
    def text(self) -> TextOptions:
        kind = np.dtype(self.dtype)
        return TextOptions(self.zero_based, self.n_features, self.dense, kind, self.threads)

    def table(self, format: str) -> TableOptions:
        kind = np.dtype(self.dtype)
        return TableOptions(DELIMITERS[format], self.label_column, self.header, kind, self.threads)


@dataclass(frozen=True)
class Partition:
    """A part of a file: bytes begin..end of text, rows begin..end of arrays, or all of it."""

    index: int  # its place among all partitions
    path: str
    format: str
    kind: str
    begin: int
    end: int
    size: int  # of the file, which must not change between passes
    head: bytes = b""  # of a table: the lines before `begin` that say what the columns are

    def describe(self) -> str:
        if self.kind == "whole":
            return self.path
        unit = "bytes" if self.kind == "lines" else "rows"
        return f"{self.path} ({unit} {self.begin} to {self.end})"


# ---- planning -----------------------------------------------------------------------------------


def expand(paths: Paths) -> list[str]:
    """The files that paths and glob patterns name, absolute; those of a pattern sorted by name."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for item in given:
        name = os.fspath(item)
        if name == "-":
            raise SettingsError("standard input cannot be partitioned; give files")
        if os.path.exists(name) or not glob.has_magic(name):
            found.append(os.path.abspath(name))
            continue
        matches = sorted(p for p in glob.glob(name, recursive=True) if os.path.isfile(p))
        if not matches:
            raise DataError(name, None, "no file matches this pattern", "check the path")
        found += [os.path.abspath(match) for match in matches]
    if not found:
        raise SettingsError("no data files are given")
    for name in found:
        if found.count(name) > 1:
            raise SettingsError(f"{name} is given twice; its rows would count twice")
    return found


def plan(
    paths: Paths, settings: ReadSettings, partition_bytes: int = PARTITION_BYTES
) -> list[Partition]:
    """The partitions of all files, in the order of the files and of their rows."""
    if partition_bytes < 1:
        raise SettingsError(f"partition_bytes must be at least 1, not {partition_bytes}")
    partitions: list[Partition] = []
    for path in expand(paths):
        for kind, format, begin, end, size, head in _parts(path, settings, partition_bytes):
            index = len(partitions)
            partitions.append(Partition(index, path, format, kind, begin, end, size, head))
    return partitions


Part = tuple[str, str, int, int, int, bytes]


def _parts(path: str, settings: ReadSettings, partition_bytes: int) -> Iterator[Part]:
    with open_input(path) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            found = "not a regular file, so it cannot be read more than once"
            raise DataError(path, None, found, "store the data in a file")
        size = status.st_size
        if size == 0:
            raise faults.empty(path)
        head = stream.read(HEAD_BYTES)
        format = format_of(path, head, settings.format)
        if head.startswith(GZIP_MAGIC):
            yield "whole", format, 0, size, size, b""
        elif not FORMATS[format].is_text:
            cuts = array_ranges.row_cuts(path, format, partition_bytes)
            for begin, end in cuts:
                yield "rows", format, begin, end, size, b""
            if not cuts:
                yield "whole", format, 0, size, size, b""
        else:
            names = b"" if format == "svmlight" else _first_lines(stream, head, path)
            cuts = line_cuts(stream, size, partition_bytes, len(names))
            for begin, end in cuts:
                yield "lines", format, begin, end, size, names if begin else b""


def format_of(path: str, head: bytes, wanted: str = "auto") -> str:
    """The format: the one that is asked for, else by the extension, else by the first bytes."""
    name = ALIASES.get(wanted, wanted)
    if name in FORMATS:
        return name
    if name != "auto":
        choices = ", ".join(["auto", *FORMATS])
        raise SettingsError(f"unknown data format {wanted!r}; choose one of {choices}")
    suffix = plain_suffix(path)
    for known, entry in FORMATS.items():
        if suffix in entry.suffixes:
            return known
    if head.startswith(GZIP_MAGIC):
        return next(iter_blocks(path, 1, zero_based=True, dense=False)).format or "svmlight"
    if head.startswith(arrays.NPY_MAGIC):
        return "npy"
    if head.startswith(arrays.ZIP_MAGIC):
        return "npz"
    return table.table_format(head) or "svmlight"


def _first_lines(stream: Any, head: bytes, path: str) -> bytes:
    """A table's text up to and including its first line of data or its header."""
    stream.seek(len(head))
    while True:
        complete = head[: head.rfind(b"\n") + 1]
        found = table.first_data_line(complete)
        if found is None:
            more = stream.read(CHUNK_BYTES)
            if more:
                head += more
                continue
            found = table.first_data_line(head)
            if found is None:
                raise faults.empty(path)
        lines = head.split(b"\n", found[0])
        return head[: len(head) - len(lines[-1])] if len(lines) > found[0] else head


def line_cuts(stream: Any, size: int, step: int, least: int = 0) -> list[tuple[int, int]]:
    """Ranges of about `step` bytes that begin at lines and cover the file; the first one has at
    least `least` bytes. A line longer than a step makes its range longer."""
    edges = [0]
    for target in range(step, size, step):
        if target > edges[-1]:
            edge = _line_start(stream, max(target, least), size)
            if edges[-1] < edge < size:
                edges.append(edge)
    return list(zip(edges, [*edges[1:], size], strict=True))


def _line_start(stream: Any, position: int, size: int) -> int:
    """The first position from `position` on at which a line begins; `size` if there is none."""
    position = max(position - 1, 0)
    stream.seek(position)
    while chunk := stream.read(HEAD_BYTES):
        found = chunk.find(b"\n")
        if found >= 0:
            return int(position + found + 1)
        position += len(chunk)
    return size


# ---- reading ------------------------------------------------------------------------------------


def read_blocks(partition: Partition, settings: ReadSettings, block_rows: int) -> Iterator[Dataset]:
    """The rows of a partition in blocks of at most block_rows; nothing if it has none."""
    for block in READERS[partition.kind](partition, settings, block_rows):
        yield _settled(block, settings, partition.format)


def _read_lines(partition: Partition, settings: ReadSettings, block_rows: int) -> Iterator[Dataset]:
    with open_input(partition.path) as stream:
        _check_size(partition, os.fstat(stream.fileno()).st_size)
        stream.seek(partition.begin)
        lines = stream.read(partition.end - partition.begin)
    lines_of_head = partition.head.count(b"\n")
    try:
        dataset: Dataset | None
        if partition.format == "svmlight":
            dataset = svmlight.parse(lines, settings.text, partition.path, whole=False)
        else:
            parser = table.BlockParser(settings.table(partition.format), partition.path)
            if partition.head:
                parser.parse(partition.head)
            dataset = parser.parse(lines)
    except DataError as error:
        if error.line is None:
            raise
        line = error.line - lines_of_head + _lines_before(partition)
        raise DataError(error.source, line, error.found, error.remedy) from None
    if dataset is not None:
        yield from dataset.blocks(block_rows)


def _check_size(partition: Partition, size: int) -> None:
    if size != partition.size:
        found = f"{size} bytes where {partition.size} were found before"
        raise DataError(partition.path, None, found, "leave the file alone while it is read")


def _lines_before(partition: Partition) -> int:
    """How many lines of the file precede the partition; only messages need it."""
    count, left = 0, partition.begin
    with open_input(partition.path) as stream:
        while left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left))):
            count += chunk.count(b"\n")
            left -= len(chunk)
    return count


def _read_rows(partition: Partition, settings: ReadSettings, block_rows: int) -> Iterator[Dataset]:
    _check_size(partition, os.path.getsize(partition.path))
    for begin in range(partition.begin, partition.end, block_rows):
        end = min(begin + block_rows, partition.end)
        yield array_ranges.read_rows(
            partition.path, partition.format, begin, end, settings.label_column, settings.text
        )


def _read_whole(partition: Partition, settings: ReadSettings, block_rows: int) -> Iterator[Dataset]:
    with open_input(partition.path) as stream:
        _check_size(partition, os.fstat(stream.fileno()).st_size)
    yield from iter_blocks(
        partition.path,
        block_rows,
        format=partition.format,
        zero_based=settings.zero_based,
        label_column=settings.label_column,
        header=settings.header,
        n_features=settings.n_features,
        dense=settings.dense,
        dtype=settings.dtype,
        threads=settings.threads,
    )


def _settled(dataset: Dataset, settings: ReadSettings, format: str) -> Dataset:
    """The block with the columns and in the kind of matrix that were asked for."""
    dataset.format = format
    d = settings.n_features
    if d is not None and dataset.n_features != d:
        if not dataset.is_sparse or dataset.n_features > d:
            found = f"{dataset.n_features} features where {d} are expected"
            raise DataError(dataset.source, None, found, "use files with the same columns")
        dataset.X.resize(dataset.n, d)
    if settings.dense is True and dataset.is_sparse:
        dataset.X = dataset.X.toarray()
    elif settings.dense is False and not dataset.is_sparse:
        dataset.X = sp.csr_matrix(dataset.X)
    return dataset


READERS: dict[str, Callable[[Partition, ReadSettings, int], Iterator[Dataset]]] = {
    "lines": _read_lines,
    "rows": _read_rows,
    "whole": _read_whole,
}
