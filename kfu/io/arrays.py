"""NumPy files.

.npy: a 2-D array with the label in its first column (or the one label_column names by number;
None: no labels). A 2-D array is what every tool can write; labels that are texts need .npz.

.npz: arrays X (2-D) and, optionally, y, weights, qid. Instead of X there can be the pieces of a
CSR matrix as scipy.sparse.save_npz names them (data, indices, indptr, shape), so that a file of
save_npz is read as it is.

Pickled objects are never loaded.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import Dataset, check_weights, check_X, check_y
from kfu.errors import DataError, SettingsError
from kfu.io import faults
from kfu.io.svmlight import DENSE_ABOVE, TextOptions
from kfu.io.table import COLUMN_RANGE, shown_column

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
PIECES = ("data", "indices", "indptr", "shape")


def _load(buffer: Any, source: str) -> Any:
    magic = bytes(buffer[:6])
    if not magic.startswith((NPY_MAGIC, ZIP_MAGIC)):
        raise DataError(source, None, "not a NumPy file", "write it with numpy.save or numpy.savez")
    try:
        return np.load(io.BytesIO(buffer), allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile, OSError) as error:
        raise _damaged(source, error) from None


def _damaged(source: str, error: Exception) -> DataError:
    if "allow_pickle" in str(error):
        return DataError(
            source, None, "an array of Python objects", "save numbers, and texts as a str array"
        )
    return DataError(source, None, "damaged or truncated NumPy file", "write or copy it again")


def _numeric(array: np.ndarray, options: TextOptions, source: str) -> np.ndarray:
    if array.ndim != 2:
        raise DataError(
            source,
            None,
            f"an array of shape {array.shape}, expected examples by features",
            "save a 2-D array",
        )
    if array.dtype.kind not in "biuf":
        raise DataError(source, None, f"an array of type {array.dtype}", "save real numbers")
    if array.shape[0] == 0:
        raise faults.empty(source)
    return check_X(array, dtype=options.dtype, source=source)


def parse_npy(
    buffer: Any, label_column: int | str | None, options: TextOptions, source: str
) -> Dataset:
    """The data set in a .npy file."""
    array = _load(buffer, source)
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(source, None, "a .npz archive", "read it with format npz")
    if label_column is None:
        return Dataset(_numeric(array, options, source), source=source)
    try:
        column = int(label_column)
    except ValueError:
        raise DataError(
            source,
            None,
            f"label column {label_column!r} of an array without names",
            "give its number",
        ) from None
    if array.ndim == 2 and array.shape[1] < 2:
        raise DataError(
            source, None, "a single column holds label and features", "add features, or no label"
        )
    if array.ndim == 2 and not -array.shape[1] <= column < array.shape[1]:
        raise DataError(
            source,
            None,
            f"label column {shown_column(column)} of an array with {array.shape[1]} columns",
            COLUMN_RANGE.format(array.shape[1]),
        )
    table = _numeric(array, options, source)
    X = np.ascontiguousarray(np.delete(table, column, axis=1))
    return Dataset(X, array[:, column].astype(np.float64), source=source)


def parse_npz(buffer: Any, options: TextOptions, source: str) -> Dataset:
    """The data set in a .npz file."""
    archive = _load(buffer, source)
    if isinstance(archive, np.ndarray):
        raise DataError(source, None, "a single array", "read it with format npy")
    with archive:
        try:
            content = {name: archive[name] for name in archive.files if _is_known(name)}
        except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, OSError) as error:
            raise _damaged(source, error) from None
        found = ", ".join(archive.files[:10]) or "nothing"
    X: Any
    if "X" in content:
        X = _numeric(content["X"], options, source)
    elif all(piece in content for piece in PIECES):
        X = _csr_of(content, options, source)
    else:
        raise DataError(
            source,
            None,
            f"an archive with {found}",
            "save the features as X (and labels as y), or as scipy.sparse.save_npz does",
        )
    if sp.issparse(X) and options.dense == "auto" and X.nnz > DENSE_ABOVE * np.prod(X.shape):
        X = X.toarray()
    n = X.shape[0]
    y = check_y(content["y"], n, source) if "y" in content else None
    weights = check_weights(content["weights"], n, source) if "weights" in content else None
    return Dataset(X, y, weights, _qid_of(content, n, source), source)


def _is_known(name: str) -> bool:
    return name in ("X", "y", "weights", "qid", "format", *PIECES)


def _csr_of(content: dict[str, np.ndarray], options: TextOptions, source: str) -> Any:
    kind = content.get("format")
    name = kind.item() if kind is not None and kind.ndim == 0 else "csr"
    name = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    if name != "csr":
        raise DataError(source, None, f"a sparse matrix in {name} form", "save it as CSR")
    pieces = (content["data"], content["indices"], content["indptr"])
    try:
        shape = tuple(int(v) for v in content["shape"])
        X = sp.csr_matrix(pieces, shape=shape)
        X.check_format(full_check=True)
        if X.dtype.kind not in "biuf":
            raise ValueError(f"values of type {X.dtype}")
    except (ValueError, TypeError) as error:
        raise DataError(
            source, None, f"inconsistent CSR pieces ({error})", "write the file again"
        ) from None
    if X.shape[0] == 0:
        raise faults.empty(source)
    return check_X(X, dtype=options.dtype, source=source)


def _qid_of(content: dict[str, np.ndarray], n: int, source: str) -> np.ndarray | None:
    if "qid" not in content:
        return None
    qid = content["qid"]
    if qid.shape != (n,) or qid.dtype.kind not in "iu":
        raise DataError(
            source, None, f"qid of shape {qid.shape} and type {qid.dtype}", f"save {n} integers"
        )
    return qid.astype(np.int64)


def write_npy(stream: Any, dataset: Dataset, zero_based: bool) -> None:
    """Label in the first column (when there are labels), then the features."""
    X = dataset.X.toarray() if dataset.is_sparse else dataset.X
    if dataset.qid is not None or dataset.weights is not None:
        raise SettingsError(
            f"{dataset.source}: .npy has no place for weights and query numbers; write .npz"
        )
    if dataset.y is None:
        np.save(stream, X, allow_pickle=False)
        return
    if dataset.y.dtype.kind in "US":
        raise SettingsError(f"{dataset.source}: .npy has no place for text labels; write .npz")
    np.save(stream, np.column_stack([dataset.y, X]), allow_pickle=False)


class _Pipe:
    """A stream that is only written forwards, as gzip streams and pipes have to be."""

    def __init__(self, stream: Any) -> None:
        self.write = stream.write
        self.flush = stream.flush


def write_npz(stream: Any, dataset: Dataset, zero_based: bool) -> None:
    """X, or the CSR pieces of save_npz, and y, weights, qid where present; fixed time stamps."""
    target: Any = _Pipe(stream)
    content: dict[str, np.ndarray] = {}
    if dataset.is_sparse:
        X = dataset.X
        content.update(format=np.array(b"csr"), shape=np.array(X.shape))
        content.update(data=X.data, indices=X.indices, indptr=X.indptr)
    else:
        content["X"] = dataset.X
    for name in ("y", "weights", "qid"):
        values = getattr(dataset, name)
        if values is not None:
            content[name] = values
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in content.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)
