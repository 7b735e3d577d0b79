"""Ranges of rows of NumPy files without reading the rest.

A .npy file is memory-mapped. So are the arrays of a .npz whose members are stored uncompressed, as
numpy.savez writes them: a member is a .npy file at an offset of the archive. The rows of a range
then pass through the project's own readers (kfu.io.arrays) with all their checks.
"""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np

from kfu.data import Dataset
from kfu.errors import DataError
from kfu.io import arrays
from kfu.io.svmlight import TextOptions

LOCAL_HEADER = struct.Struct("<26xHH")  # of a member: the lengths of its name and of its extra
LOCAL_HEADER_BYTES = 30
PER_ROW = ("X", "y", "weights")


def row_cuts(path: str, format: str, step: int) -> list[tuple[int, int]]:
    """Ranges of rows of about `step` bytes each; none where the file can only be read whole."""
    content = _mapped(path, format)
    X = content.get("X")
    if X is None or X.ndim != 2 or X.shape[0] == 0:
        return []
    rows = max(1, step // max(1, X.shape[1] * X.itemsize))
    return [(begin, min(begin + rows, len(X))) for begin in range(0, len(X), rows)]


def read_rows(
    path: str,
    format: str,
    begin: int,
    end: int,
    label_column: int | str | None,
    options: TextOptions,
) -> Dataset:
    """Rows begin..end of a file that row_cuts has cut."""
    content = _mapped(path, format)
    part = io.BytesIO()
    source = path if begin == 0 else f"{path} (rows from {begin} on)"
    if format == "npy":
        np.save(part, content["X"][begin:end], allow_pickle=False)
        return arrays.parse_npy(part.getvalue(), label_column, options, source)
    n = len(content["X"])
    for name, values in content.items():
        if values.ndim == 0 or len(values) != n:
            found = f"{name} of shape {values.shape} for {n} examples"
            raise DataError(path, None, found, "give one value per example")
    np.savez(part, **{name: values[begin:end] for name, values in content.items()})
    return arrays.parse_npz(part.getvalue(), options, source)


def _mapped(path: str, format: str) -> dict[str, Any]:
    """The arrays with one entry per row, memory-mapped; nothing where that is impossible."""
    try:
        if format == "npy":
            return {"X": np.load(path, mmap_mode="r", allow_pickle=False)}
        return _members(path)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile):
        return {}  # the reader of the whole file says what is wrong


def _members(path: str) -> dict[str, Any]:
    content: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as stream:
        known = {f"{name}.npy": name for name in PER_ROW}
        for entry in archive.infolist():
            if entry.filename not in known:
                continue
            if entry.compress_type != zipfile.ZIP_STORED:
                return {}
            stream.seek(entry.header_offset)
            name_length, extra_length = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER_BYTES))
            stream.seek(entry.header_offset + LOCAL_HEADER_BYTES + name_length + extra_length)
            version = np.lib.format.read_magic(stream)
            if version == (1, 0):
                shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            else:
                shape, is_fortran, dtype = np.lib.format.read_array_header_2_0(stream)
            if dtype.hasobject or 0 in shape:
                return {}
            content[known[entry.filename]] = np.memmap(
                path, dtype, "r", stream.tell(), shape, order="F" if is_fortran else "C"
            )
    return content
