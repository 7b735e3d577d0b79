"""The file of a path: a header, then one record for each breakpoint; JSON lines or CSV.

JSON lines: the first line is the header, an object that begins with ``"format": "kfu-path"``; every
other line is a breakpoint with the keys of `record_keys`. CSV: ``# kfu-path`` and the header on the
first line, the names of the columns on the second, items separated by spaces. Both hold the same
numbers, written so that reading them gives the same float64; what is not known is null or empty.

    event   one word for each item, joined by "+": the state the item goes to (kfu.paths.states);
            "start", "restart" and "end" stand for no item
    items   row numbers, counted from 0

ε-paths (kfu.paths.gap_path) and paths of least squares (kfu.paths.rls) are tables: their records
are solutions at some values (event "solve" or "grid") with the columns that the header names as
``more_columns``; models are trained afresh (kfu.paths.table_file).

A file whose last record has no "end" is a path that was stopped; one that ends within a line was
cut off while it was written. Either can be resumed: nothing but the last line is ever lost.

Writing goes to ``NAME.part`` beside the file, line by line, and that becomes NAME when the run ends
(finished, at its limit of steps, or interrupted). A killed run leaves ``NAME.part``. Devices and
pipes are written to directly.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import itertools
import json
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from kfu.errors import DataError
from kfu.io.atomic import cannot_write
from kfu.io.json_values import plain
from kfu.io.source import cannot_read, open_input

# The parameters that paths have -> the columns that hold their values.
VALUE_COLUMNS: dict[str, tuple[str, ...]] = {
    "lambda": ("lambda", "C"),
    "epsilon": ("epsilon",),
    "nu": ("nu",),
}
FORMAT = "kfu-path"
VERSION = 1
JSON_PREFIX = re.compile(rb'[ \t]*\{\s*"format"\s*:\s*"kfu-path"')
CSV_PREFIX = b"# kfu-path "
PART_SUFFIX = ".part"

FIGURES = (
    *("event", "items", "n_margin", "n_error", "n_correct"),
    *("bias", "objective", "train_error", "valid_error", "kkt"),
)
WHOLE = frozenset({"step", "n_margin", "n_error", "n_correct"})
REQUIRED = ("machine", "parameter", "kernel", "n", "n_features", "classes", "start", "data")


def record_keys(parameter: str, more: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys of a breakpoint, in their order; `more` are those of a table."""
    return ("step", *VALUE_COLUMNS[parameter], *FIGURES, *more)


def keys_of(header: Mapping[str, Any]) -> tuple[str, ...]:
    return record_keys(header["parameter"], header.get("more_columns") or ())


def is_table(header: Mapping[str, Any]) -> bool:
    """Whether the records are solutions at some values, not the events of a whole path."""
    return bool(header.get("more_columns"))


def is_path_head(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a path."""
    return head.startswith(CSV_PREFIX) or JSON_PREFIX.match(head) is not None


def is_csv_name(path: str) -> bool:
    return path.lower().removesuffix(PART_SUFFIX).endswith(".csv")


# ---- lines ----------------------------------------------------------------------------------


def header_lines(header: Mapping[str, Any], is_csv: bool) -> str:
    text = json.dumps(plain({"format": FORMAT, "version": VERSION, **header}), ensure_ascii=False)
    if not is_csv:
        return text + "\n"
    return f"{CSV_PREFIX.decode()}{text}\n{','.join(keys_of(header))}\n"


def record_line(record: Mapping[str, Any], is_csv: bool) -> str:
    if not is_csv:
        return json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n"
    cells = []
    for value in plain(record).values():
        if isinstance(value, list):
            cells.append(" ".join(map(str, value)))
        else:
            cells.append("" if value is None else str(value))
    return ",".join(cells) + "\n"


def _parsed_json(line: str) -> dict[str, Any]:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("not an object")
    return record


def _parsed_csv(line: str, keys: tuple[str, ...]) -> dict[str, Any]:
    cells = next(csv.reader(io.StringIO(line)))
    if len(cells) != len(keys):
        raise ValueError(f"{len(cells)} columns of {len(keys)}")
    record: dict[str, Any] = {}
    for key, cell in zip(keys, cells, strict=True):
        if key == "event":
            record[key] = cell
        elif key == "items":
            record[key] = [int(item) for item in cell.split()]
        elif key in WHOLE:
            record[key] = int(cell)
        else:
            record[key] = float(cell) if cell else None
    return record


# ---- reading --------------------------------------------------------------------------------


@dataclass
class PathFile:
    """What a path file holds. `ends`: bytes up to the end of each whole record."""

    name: str
    header: dict[str, Any]
    records: list[dict[str, Any]]
    ends: list[int]
    cut_line: int | None  # the number of a last line that was cut off
    is_csv: bool

    @property
    def is_finished(self) -> bool:
        return bool(self.records) and "end" in self.records[-1]["event"].split("+")


def read_path_file(path: str | os.PathLike[str], *, warns: bool = True) -> PathFile:
    """Read a path file; DataError names the line that is wrong.

    A last line that was cut off is left out, with a warning unless it is not wanted.
    """
    name = os.fspath(path)
    with open_input(name) as stream:
        try:
            content = stream.read()
        except OSError as error:
            raise cannot_read(name, error) from None
    if not is_path_head(content):
        raise DataError(
            name, None, "not the file of a path", "give a file that 'kfu path' has written"
        )
    lines = content.split(b"\n")
    is_whole = lines[-1] == b""  # every line ends with a newline
    is_csv = content.startswith(CSV_PREFIX)
    first = 2 if is_csv else 1
    header = _header(name, lines, is_whole, is_csv)
    keys = keys_of(header)
    records: list[dict[str, Any]] = []
    cut_line = None
    for number, line in enumerate(lines[first:-1] if is_whole else lines[first:], start=first + 1):
        is_last = number == len(lines)
        try:
            text = line.decode("utf-8")
            record = _parsed_csv(text, keys) if is_csv else _parsed_json(text)
            _check_record(record, keys, len(records))
        except (ValueError, KeyError, TypeError, StopIteration) as error:
            if is_last and not is_whole:
                cut_line = number
                break
            raise DataError(
                name, number, f"no breakpoint of a path ({error})", "compute the path again"
            ) from None
        if is_last and not is_whole:  # whole, but for the end of the line
            cut_line = number
            break
        records.append(record)
    if not records:
        raise DataError(name, first + 1, "no breakpoint", "compute the path again")
    ends = list(itertools.accumulate(len(line) + 1 for line in lines[: first + len(records)]))
    if cut_line is not None and warns:
        warnings.warn(
            f"{name}:{cut_line}: cut off while it was written; the path is read up to "
            f"{keys[1]} = {records[-1][keys[1]]:g} (--resume goes on from there)",
            stacklevel=2,
        )
    return PathFile(name, header, records, ends[first:], cut_line, is_csv)


def _header(name: str, lines: list[bytes], is_whole: bool, is_csv: bool) -> dict[str, Any]:
    if len(lines) == 1 or (is_csv and len(lines) == 2 and not is_whole):
        raise DataError(
            name, 1, "the header is cut off, nothing of the path is left", "compute it again"
        )
    text = lines[0][len(CSV_PREFIX) :] if is_csv else lines[0]
    try:
        header = json.loads(text)
    except ValueError:
        raise DataError(
            name, 1, "a damaged header of a path file", "compute the path again"
        ) from None
    version = header.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise DataError(
            name,
            1,
            f"version {version!r} of the path file, and this kfu reads up to {VERSION}",
            "use the kfu that wrote it, or a newer one",
        )
    missing = [key for key in REQUIRED if key not in header]
    if missing or header["parameter"] not in VALUE_COLUMNS:
        found = f"a header without {missing[0]}" if missing else "a path in an unknown parameter"
        raise DataError(name, 1, found, "compute the path again")
    return dict(header)


def _check_record(record: Mapping[str, Any], keys: tuple[str, ...], step: int) -> None:
    """ValueError unless the record has the keys, in the types replaying needs."""
    if tuple(record) != keys:
        missing = [key for key in keys if key not in record]
        raise ValueError(f"no {missing[0]}" if missing else "unknown keys")
    if record["step"] != step:
        raise ValueError(f"step {record['step']} where {step} follows")
    if not isinstance(record[keys[1]], float | int):
        raise ValueError(f"{keys[1]} is no number")
    items = record["items"]
    if not isinstance(items, list) or not all(type(item) is int for item in items):
        raise ValueError("items are no row numbers")


# ---- writing --------------------------------------------------------------------------------


class PathWriter:
    """Writes a path as it is found; see the head of the file.

    Records are appended as a whole: an exception in the middle (Ctrl-C) leaves a piece that the
    next append writes over. `close` gives the file its name, `discard` leaves all as it was. As a
    context it closes, and discards where an exception ends the block. A symbolic link stays one;
    devices and pipes are written to directly, as nothing can be renamed over them.
    """

    def __init__(self, path: str, header: Mapping[str, Any]) -> None:
        self._begin(path, is_csv_name(path), "wb", 0)
        try:
            text = header_lines(header, self.is_csv).encode()
            self._write(text)
        except Exception:
            self.discard()
            raise
        self._done = (len(text), 0)

    @staticmethod
    def go_on(found: PathFile, path: str, keep: int) -> PathWriter:
        """Go on after the first `keep` records of a file that was read; `path` is its name in the
        end."""
        writer = PathWriter.__new__(PathWriter)
        part, earlier = part_name(path), os.path.realpath(found.name)
        length = found.ends[keep - 1]
        try:
            with open(earlier, "rb") as stream:
                stream.seek(length)
                rest = stream.read()
            if earlier != part:
                os.replace(earlier, part)
        except OSError as error:
            raise cannot_write(path, error) from None
        writer._begin(path, found.is_csv, "r+b", length)
        writer._done = (length, keep)
        writer._before = (earlier, length, rest)
        return writer

    def _begin(self, path: str, is_csv: bool, mode: str, length: int) -> None:
        self.path, self.is_csv = path, is_csv
        self.target, self.part = os.path.realpath(path), part_name(path)
        self.is_direct = is_special(path)
        # Of a file that is gone on with: its name, and what it held after the part that is kept.
        self._before: tuple[str, int, bytes] | None = None
        try:
            if self.is_direct:
                self._stream: IO[bytes] = open(path, "wb")  # noqa: SIM115 (close() closes it)
                return
            if os.path.isdir(self.target):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if os.path.exists(self.target) and not os.access(self.target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if os.path.islink(self.part) or is_special(self.part):
                raise FileExistsError(errno.EEXIST, f"{self.part} is in the way")
            self._stream = open(self.part, mode)  # noqa: SIM115
            self._stream.seek(length)
            self._stream.truncate()
        except OSError as error:
            raise cannot_write(path, error) from None

    @property
    def written(self) -> int:
        """The number of records that are in the file."""
        return self._done[1]

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        lines = [record_line(record, self.is_csv).encode() for record in records]
        length, count = self._done
        if not self.is_direct and self._stream.tell() != length:  # what an interrupted append left
            self._stream.seek(length)
            self._stream.truncate()
        self._write(b"".join(lines))
        self._done = (length + sum(map(len, lines)), count + len(lines))

    def _write(self, text: bytes) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def close(self) -> None:
        if self._stream.closed:
            return
        try:
            if not self.is_direct:
                os.fsync(self._stream.fileno())
            self._stream.close()
            if self.is_direct:
                return
            if os.path.exists(self.target):
                os.chmod(self.part, stat.S_IMODE(os.stat(self.target).st_mode))
            os.replace(self.part, self.target)
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def discard(self) -> None:
        """Drop what was written: an earlier file of the name stays, and one that was gone on with
        is as it was."""
        if self._stream.closed:
            return
        with contextlib.suppress(OSError):
            if self._before is not None:
                earlier, length, rest = self._before
                self._stream.seek(length)
                self._stream.truncate()
                self._stream.write(rest)
                self._stream.flush()
                if earlier != self.part:
                    os.replace(self.part, earlier)
            elif not self.is_direct:
                os.unlink(self.part)
        with contextlib.suppress(OSError):
            self._stream.close()

    def __enter__(self) -> PathWriter:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def is_special(path: str) -> bool:
    """Whether the name is that of a device or a pipe, perhaps by a link."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def part_name(path: str) -> str:
    """What a path file is called while it is written: beside the file that a link leads to."""
    return os.path.realpath(path) + PART_SUFFIX


def write_path_file(
    path: str, header: Mapping[str, Any], records: Iterable[Mapping[str, Any]]
) -> None:
    """Write a whole path at once."""
    with PathWriter(path, header) as writer:
        writer.append(records)


def path_lines(
    header: Mapping[str, Any], records: Iterable[Mapping[str, Any]], is_csv: bool = False
) -> Iterator[str]:
    """The lines of a path file, for a pipe."""
    yield header_lines(header, is_csv)
    for record in records:
        yield record_line(record, is_csv)
