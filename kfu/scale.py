"""Scalers: what is done to features before the kernel sees them.

standard
    (x - mean) / standard deviation, feature by feature. Fitted on sparse data it does not centre,
    which would make them dense: it divides by the root mean square. For the centred form fit and
    transform ``X.toarray()``.
minmax
    The linear map of each feature's range onto [-1, 1] (option ``range``).
unit
    x / ||x||, example by example; a row of zeros stays.
divide
    x / constant (option ``constant``, default 255).

standard and minmax act as (x - shift) * factor + offset with one number each per feature. Sparse
data stay sparse when that maps 0 to 0 for every feature, and always with unit and divide; otherwise
the result is dense, nothing is approximated.

A feature that is constant in the training data never becomes NaN. Fitted on dense data, standard
takes it to 0 and minmax to the middle of the range. Fitted on sparse data, whose zeros stay zeros
for such features, standard takes it to 1 or -1 (it divides by the root mean square, which is the
constant's size; 0 stays 0) and minmax to 0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfu.data import Matrix, check_finite
from kfu.errors import DataError, ModelError, SettingsError
from kfu.io.atomic import atomic_output

FORMAT = "kfu-scaler"
VERSION = 1
ARRAYS = ("shift", "factor", "offset")
BLOCK_CELLS = 1 << 20  # what is computed in float64 at a time


@dataclass
class Scaler:
    """A fitted scaler. The arrays have one float64 per feature; unit and divide have none."""

    kind: str
    n_features: int
    options: dict[str, Any] = field(default_factory=dict)
    shift: np.ndarray | None = None
    factor: np.ndarray | None = None
    offset: np.ndarray | None = None

    @staticmethod
    def fit(X: Matrix, kind: str, **options: Any) -> Scaler:
        """The scaler of this kind for the training data X; options as in SCALERS."""
        if kind not in SCALERS:
            raise SettingsError(f"unknown scaler {kind!r}; choose one of {', '.join(SCALERS)}")
        defaults = SCALERS[kind].options
        unknown = sorted(set(options) - set(defaults))
        if unknown:
            known = ", ".join(defaults) or "none"
            raise SettingsError(f"scaler {kind} has no option {unknown[0]!r}; options: {known}")
        if X.shape[0] == 0:
            raise DataError("<data>", None, "no examples to fit a scaler on", "give some")
        scaler = Scaler(kind, int(X.shape[1]), {**defaults, **options})
        SCALERS[kind].fit(scaler, X)
        return scaler

    @property
    def keeps_sparse(self) -> bool:
        """Does transforming sparse data give sparse data?"""
        if self.factor is None:
            return True
        return not (self.offset - self.shift * self.factor).any()

    def transform(self, X: Matrix) -> Matrix:
        """The scaled data, as new arrays of the same precision.

        Files in libsvm text can have fewer or more columns than the training data. Absent
        features are 0, as everywhere; features that the training data did not have are kept as
        they are by standard and minmax.
        """
        result = SCALERS[self.kind].apply(self, X)
        check_finite(result, "<data>", "the scaled data")
        return result

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form; floats survive exactly."""
        options = {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()}
        content: dict[str, Any] = {
            "kind": self.kind,
            "n_features": self.n_features,
            "options": options,
        }
        if self.factor is not None:
            content.update({name: getattr(self, name).tolist() for name in ARRAYS})
        return content

    @staticmethod
    def from_dict(content: Any, source: str = "<scaler>") -> Scaler:
        """The scaler that to_dict described; ModelError when the description is not one."""
        try:
            return _scaler_of(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"no key {error}" if isinstance(error, KeyError) else str(error)
            raise ModelError(source, f"not a scaler ({reason})", "fit it again") from None


def _scaler_of(content: Any) -> Scaler:
    kind, n_features = content["kind"], content["n_features"]
    if kind not in SCALERS or type(n_features) is not int or n_features < 0:
        raise ValueError(f"kind {kind!r} with {n_features!r} features")
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in content["options"].items()}
    if set(options) != set(SCALERS[kind].options):
        raise ValueError(f"options {sorted(options)} of kind {kind!r}")
    scaler = Scaler(kind, n_features, options)
    if SCALERS[kind].has_arrays:
        for name in ARRAYS:
            array = np.array(content[name], dtype=np.float64)
            if array.shape != (n_features,) or not np.isfinite(array).all():
                raise ValueError(f"{name} is not a list of {n_features} finite numbers")
            setattr(scaler, name, array)
    elif kind == "divide":
        _check_constant(options["constant"])
    return scaler


def _resized(values: np.ndarray, d: int, fill: float) -> np.ndarray:
    if len(values) >= d:
        return values[:d]
    return np.concatenate([values, np.full(d - len(values), fill)])


def _apply_linear(scaler: Scaler, X: Matrix) -> Matrix:
    """(x - shift) * factor + offset, computed in float64, rounded once to the type of X."""
    assert scaler.shift is not None
    assert scaler.factor is not None
    assert scaler.offset is not None
    stays = scaler.keeps_sparse
    d = X.shape[1] if stays else max(X.shape[1], scaler.n_features)
    shift = _resized(scaler.shift, d, 0.0)
    factor = _resized(scaler.factor, d, 1.0)
    offset = _resized(scaler.offset, d, 0.0)
    if sp.issparse(X) and stays:
        j = X.indices
        result = X.copy()
        result.data = ((X.data - shift[j]) * factor[j] + offset[j]).astype(X.dtype, copy=False)
        return result
    result = np.empty((X.shape[0], d), X.dtype)
    step = max(1, BLOCK_CELLS // max(1, d))
    with np.errstate(over="ignore"):  # what overflows is reported by transform
        for begin in range(0, X.shape[0], step):
            block = X[begin : begin + step]
            full = np.zeros((block.shape[0], d))
            full[:, : X.shape[1]] = block.toarray() if sp.issparse(X) else block
            full -= shift
            full *= factor
            full += offset
            result[begin : begin + step] = full
    return result


def _unit_rows(X: Matrix) -> Matrix:
    """Rows of Euclidean norm 1; rows of zeros stay zero. Scaled first, so nothing overflows."""
    if not sp.issparse(X):
        largest = np.abs(X).max(axis=1, initial=0.0, keepdims=True)
        result = X / np.where(largest > 0, largest, 1)
        norm = np.sqrt(np.einsum("ij,ij->i", result, result, dtype=np.float64))[:, None]
        result /= np.where(norm > 0, norm, 1).astype(X.dtype)
        return result
    result = X.copy()
    lengths = np.diff(X.indptr)
    filled = lengths > 0
    starts = X.indptr[:-1][filled]
    for power in (0, 2):  # by the largest entry, then by the norm
        if not len(starts):
            break
        size = np.abs(result.data) if power == 0 else np.square(result.data, dtype=np.float64)
        total = (np.maximum if power == 0 else np.add).reduceat(size, starts)
        total = total if power == 0 else np.sqrt(total)
        result.data /= np.repeat(np.where(total > 0, total, 1), lengths[filled])
    return result


def _column_moments(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of dense columns, in float64, two passes."""
    mean = X.mean(axis=0, dtype=np.float64)
    variance = np.zeros(X.shape[1])
    step = max(1, BLOCK_CELLS // max(1, X.shape[1]))
    for begin in range(0, X.shape[0], step):
        deviation = X[begin : begin + step] - mean
        variance += np.einsum("ij,ij->j", deviation, deviation)
    return mean, np.sqrt(variance / X.shape[0])


def _fit_standard(scaler: Scaler, X: Matrix) -> None:
    scaler.offset = np.zeros(X.shape[1])
    if sp.issparse(X):
        squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), X.shape[1])
        size = np.sqrt(squares / X.shape[0])
        scaler.shift = np.zeros(X.shape[1])
        scaler.factor = 1 / np.where(size > 0, size, 1)
        return
    scaler.shift, deviation = _column_moments(X)
    constant = X.min(axis=0) == X.max(axis=0)
    scaler.shift[constant] = X[0, constant]  # exactly, whatever the mean rounded to
    scaler.factor = 1 / np.where(constant | (deviation == 0), 1, deviation)


def _fit_minmax(scaler: Scaler, X: Matrix) -> None:
    lower, upper = _range_of(scaler.options["range"])
    scaler.options["range"] = (lower, upper)
    if sp.issparse(X):
        least = np.asarray(X.min(axis=0).todense(), dtype=np.float64).ravel()
        most = np.asarray(X.max(axis=0).todense(), dtype=np.float64).ravel()
    else:
        least, most = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    varies = most > least
    scaler.shift = np.where(varies, least, 0.0)
    scaler.factor = np.where(varies, (upper - lower) / np.where(varies, most - least, 1), 0.0)
    middle = 0.0 if sp.issparse(X) else lower + (upper - lower) / 2
    scaler.offset = np.where(varies, lower, middle)


def _range_of(value: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(v) for v in value)
    except (TypeError, ValueError):
        raise SettingsError(f"range must be two numbers, got {value!r}") from None
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise SettingsError(f"range must increase, got {lower:g} to {upper:g}")
    return lower, upper


def _check_constant(constant: Any) -> None:
    if not isinstance(constant, int | float) or not np.isfinite(constant) or constant == 0:
        raise SettingsError(f"constant must be a finite number other than 0, got {constant!r}")


def _fit_nothing(scaler: Scaler, X: Matrix) -> None:
    """unit depends on no data."""


def _fit_divide(scaler: Scaler, X: Matrix) -> None:
    _check_constant(scaler.options["constant"])


def _apply_unit(scaler: Scaler, X: Matrix) -> Matrix:
    return _unit_rows(X)


def _apply_divide(scaler: Scaler, X: Matrix) -> Matrix:
    constant = X.dtype.type(scaler.options["constant"])
    if not sp.issparse(X):
        return X / constant
    result = X.copy()
    result.data /= constant
    return result


class Kind(NamedTuple):
    """A kind of scaler: how it is fitted, how it acts, its options with their defaults."""

    fit: Callable[[Scaler, Matrix], None]
    apply: Callable[[Scaler, Matrix], Matrix]
    options: dict[str, Any]
    has_arrays: bool


SCALERS: dict[str, Kind] = {
    "standard": Kind(_fit_standard, _apply_linear, {}, True),
    "minmax": Kind(_fit_minmax, _apply_linear, {"range": (-1.0, 1.0)}, True),
    "unit": Kind(_fit_nothing, _apply_unit, {}, False),
    "divide": Kind(_fit_divide, _apply_divide, {"constant": 255.0}, False),
}


def save_scaler(path: str | os.PathLike[str], scaler: Scaler) -> None:
    """Writes the parameters as JSON, atomically."""
    content = {"format": FORMAT, "version": VERSION, **scaler.to_dict()}
    with atomic_output(path, "w") as stream:
        json.dump(content, stream, indent=1)
        stream.write("\n")


def load_scaler(path: str | os.PathLike[str]) -> Scaler:
    """Reads what save_scaler wrote; ModelError for anything else."""
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8") as stream:
            content = json.load(stream)
    except OSError as error:
        raise ModelError(name, f"cannot be read ({error.strerror})", "check the path") from None
    except ValueError:
        raise ModelError(
            name, "not a scaler file (no JSON text)", "make one with kfu scale"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError(name, "not a scaler file", "make one with kfu scale")
    if content.get("version") != VERSION:
        raise ModelError(
            name,
            f"scaler file of version {content.get('version')!r}, this program reads {VERSION}",
            "fit the scaler again or use a newer kfu",
        )
    return Scaler.from_dict(content, name)
