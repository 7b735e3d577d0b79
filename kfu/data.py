"""The data set every part of kfu works on, and the rules for labels and arrays.

Labels are numbers (float64) when every label is one, otherwise texts. Classes are sorted,
numerically or lexicographically, so nothing depends on the order of the rows; in a binary problem
the larger class is the positive one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import DataError

MAX_FEATURES = 2**31 - 1  # the kernels count features in 32 bits
Matrix = Any  # np.ndarray or scipy.sparse.csr_matrix; scipy ships no types


@dataclass
class Dataset:
    """Examples with their labels, weights and query numbers.

    X: C-contiguous float64 or float32 array, or CSR matrix with sorted, unique indices.
    y: float64 array if every label is a number, str array otherwise, None without labels.
    weights: per-example cost factors (float64); qid: query numbers (int64) for ranking.
    serial: row numbers (int64, from 1) of a precomputed kernel, None for every other data set.
    source: name for messages; zero_based: whether the file counted features from 0.
    from_sparse_text: read from libsvm text, whose rows leave zeros (so trailing columns) out.
    format: the format it was read in (a key of kfu.io.FORMATS), None for arrays.
    """

    X: Matrix
    y: np.ndarray | None = None
    weights: np.ndarray | None = None
    qid: np.ndarray | None = None
    source: str = "<array>"
    zero_based: bool = False
    serial: np.ndarray | None = None
    from_sparse_text: bool = False
    format: str | None = None

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def density(self) -> float:
        """Share of entries that are stored (sparse) or non-zero (dense)."""
        cells = self.n * self.n_features
        stored = self.X.nnz if self.is_sparse else np.count_nonzero(self.X)
        return float(stored) / cells if cells else 0.0

    def take(self, rows: slice | np.ndarray) -> Dataset:
        """The data set of some rows; a slice of dense data shares memory."""

        def part(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return Dataset(
            self.X[rows],
            part(self.y),
            part(self.weights),
            part(self.qid),
            self.source,
            self.zero_based,
            part(self.serial),
            self.from_sparse_text,
            self.format,
        )

    def blocks(self, block_rows: int) -> Iterator[Dataset]:
        """The data set in consecutive pieces of at most block_rows rows."""
        for begin in range(0, self.n, block_rows):
            yield self.take(slice(begin, begin + block_rows))


def check_width(X: Matrix, source: str) -> None:
    """DataError when X has more features than a machine can be trained on (libsvm text may)."""
    if X.shape[1] <= MAX_FEATURES:
        return
    row = ""
    if sp.issparse(X) and X.nnz:
        largest = int(np.argmax(X.indices))
        row = f" (the largest number is in row {np.searchsorted(X.indptr, largest, 'right')})"
    raise DataError(
        source,
        None,
        f"{X.shape[1]} features{row}; at most {MAX_FEATURES} are supported",
        "number the features that occur from 1 on",
    )


def format_label(value: Any) -> str:
    """Text of a label: integers without decimals, other numbers in shortest exact form."""
    if isinstance(value, str):
        return str(value)
    number = float(value)
    if number.is_integer() and abs(number) < 2**63:
        return str(int(number))
    return repr(number)


def format_labels(y: np.ndarray) -> list[str]:
    """format_label of every element; each distinct label is formatted once."""
    values, codes = np.unique(y, return_inverse=True)
    texts = np.array([format_label(v) for v in values], dtype=object)
    return list(texts[codes])


def classes_of(y: np.ndarray) -> np.ndarray:
    """Sorted distinct labels: numerically for numbers, lexicographically for texts."""
    return np.unique(y)


def encode_labels(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Position of each label in the sorted classes (int64), -1 for labels that are not there."""
    if (y.dtype.kind in "US") != (classes.dtype.kind in "US"):
        # A text label never equals a numeric one; compare what they print as.
        y = np.array(format_labels(y), dtype=str)
        texts = np.array([format_label(c) for c in classes], dtype=str)
        order = np.argsort(texts)
        codes = encode_labels(y, texts[order])
        return np.where(codes < 0, -1, order[codes]).astype(np.int64)
    position = np.searchsorted(classes, y)
    position[position == len(classes)] = 0
    return np.where(classes[position] == y, position, -1).astype(np.int64)


def require_classes(dataset: Dataset) -> np.ndarray:
    """The classes of a classification data set, or DataError when there are fewer than two."""
    if dataset.y is None:
        raise DataError(dataset.source, None, "the data have no labels", "give labelled data")
    classes = classes_of(dataset.y)
    if len(classes) < 2:
        only = format_label(classes[0]) if len(classes) else "none"
        raise DataError(
            dataset.source,
            None,
            f"all {dataset.n} labels are {only}, a classifier needs two classes",
            "add examples of another class, or check which column holds the label",
        )
    return classes


def check_X(X: Any, *, dtype: Any = None, source: str = "<array>") -> Matrix:  # noqa: N802
    """X as kfu computes with it: 2-D, finite, float64 or float32, C-contiguous or sorted CSR.

    The array itself is returned when it already is that; nothing is copied without need and the
    argument is never changed. dtype=None keeps float32 and float64 and turns the rest to float64.
    """
    if sp.issparse(X):
        return _check_sparse(X, dtype, source)
    array = np.asarray(X)
    if array.ndim != 2:
        raise DataError(
            source,
            None,
            f"expected a 2-D array of examples by features, got {array.ndim}-D",
            "reshape(-1, 1) makes a column of single features, reshape(1, -1) a single example",
        )
    if array.dtype.kind == "c":
        raise DataError(source, None, "complex numbers", "give real features")
    try:
        result = np.ascontiguousarray(array, dtype=_real_type(array.dtype, dtype))
    except (TypeError, ValueError) as error:
        raise DataError(source, None, f"not numeric ({error})", "give a numeric array") from None
    check_finite(result, source)
    return result


def _real_type(found: np.dtype, wanted: Any) -> np.dtype:
    if wanted is not None:
        return np.dtype(wanted)
    return found if found in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)


def _check_sparse(X: Any, dtype: Any, source: str) -> Matrix:
    if X.dtype.kind == "c":
        raise DataError(source, None, "complex numbers", "give real features")
    result = sp.csr_matrix(X)  # shares the arrays when X is CSR already
    wanted = _real_type(result.dtype, dtype)
    if result.dtype != wanted:
        result = result.astype(wanted)
    if not result.has_canonical_format:
        if result.format == X.format and np.shares_memory(result.data, X.data):
            result = result.copy()  # the caller's matrix keeps its order
        result.sum_duplicates()
    check_finite(result, source)
    return result


def check_finite(X: Matrix, source: str, what: str = "X") -> None:
    """DataError naming the first row and column with NaN or infinity."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) and values.dtype != object:
            return  # one cheap pass; a sum that overflows is looked at element by element
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        entry = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        column, value = int(X.indices[entry]), values[entry]
    else:
        row, column = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        value = values[row, column]
    raise DataError(
        source,
        None,
        f"{what} contains {_name(value)} in row {row}, column {column} (counted from 0)",
        "kernel machines need finite numbers: impute or drop missing values",
    )


def _name(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity"


def check_y(y: Any, n: int, source: str = "<array>") -> np.ndarray:
    """Labels as a 1-D float64 or str array of n elements."""
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(source, None, f"labels are {array.ndim}-D", "give one label per example")
    if len(array) != n:
        raise DataError(
            source, None, f"{len(array)} labels for {n} examples", "give one label per example"
        )
    if array.dtype.kind in "biuf":
        result = array.astype(np.float64)
        if not np.isfinite(result).all():
            row = int(np.argmin(np.isfinite(result)))
            raise DataError(
                source, None, f"label {_name(result[row])} in row {row}", "give finite labels"
            )
        return result
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "O":
        if all(isinstance(v, str) for v in array):
            return array.astype(str)
        try:
            return check_y(array.astype(np.float64), n, source)
        except (TypeError, ValueError):
            pass
    raise DataError(
        source, None, f"labels of type {array.dtype}", "give numbers or texts, not a mixture"
    )


def check_weights(weights: Any, n: int, source: str = "<array>") -> np.ndarray:
    """Per-example weights as n finite, non-negative float64 numbers, not all zero."""
    array = np.ascontiguousarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise DataError(
            source, None, f"weights of shape {array.shape} for {n} examples", "give one per example"
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            source,
            None,
            f"weight {float(array[row])!r} in row {row} (counted from 0)",
            "weights are finite and not negative",
        )
    if n and not array.any():
        raise DataError(source, None, "every weight is 0", "give some example a positive weight")
    return array


def with_columns(X: Matrix, width: int) -> Matrix:
    """X with zero columns appended, or its last columns left out. X itself is not changed."""
    if X.shape[1] == width:
        return X
    if sp.issparse(X):
        if X.shape[1] > width:
            return sp.csr_matrix(X[:, :width])
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    if X.shape[1] > width:
        return np.ascontiguousarray(X[:, :width])
    if width > 2 * X.shape[1] + 1000:  # mostly zeros: do not let one large index fill the memory
        return with_columns(sp.csr_matrix(X), width)
    return np.hstack([X, np.zeros((X.shape[0], width - X.shape[1]), dtype=X.dtype)])
