"""Whether the kernel has finite values on the rows it is to be trained on.

Inner products of large features overflow, and squared distances with them. Where one value does,
K(x, x) does for some row, or K(x, ·) for the row with the largest feature; so these are looked at,
unless the largest feature alone tells that no value comes near the end of the numbers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from kfu._gram import Gram, largest_modulus
from kfu.data import Matrix
from kfu.errors import DataError
from kfu.kernels import KernelSpec
from kfu.solvers import SolverSettings

SAFE_SINGLE = 1e8  # no inner product of features up to it comes near the end of float32
SAFE_DOUBLE = 1e150  # nor, of values up to it, sums and squares near that of float64


def settings_in_range(
    X: Matrix, kernel: KernelSpec, settings: SolverSettings, source: str
) -> SolverSettings:
    """The settings, with rows of float64 where float32 would overflow and the precision is open.

    DataError when values of the kernel are not finite.
    """
    if kernel.is_precomputed or not X.shape[0] or not X.shape[1]:
        return settings
    largest = largest_modulus(X.data if sp.issparse(X) else X, settings.n_threads)
    if largest <= SAFE_SINGLE and _ceiling(kernel, largest, X.shape[1]) <= SAFE_DOUBLE:
        return settings
    sizes = np.maximum(_flat(X.max(axis=1)), -_flat(X.min(axis=1)))
    row = int(np.argmax(sizes))
    found = _first_infinite(X, kernel, "float64", row)
    if found is not None:
        raise _overflow(source, kernel, found, "scale the features (--scale)")
    if settings.precision == "float64" or sizes[row] <= SAFE_SINGLE:
        return settings
    found = _first_infinite(X, kernel, "float32", row)
    if found is None:
        return settings
    if settings.precision == "float32":
        remedy = "scale the features (--scale), or compute in float64"
        raise _overflow(source, kernel, found, remedy, " in float32")
    return replace(settings, precision="float64")


def _ceiling(kernel: KernelSpec, largest: float, n_features: int) -> float:
    """No value of the kernel exceeds it in modulus, where no feature exceeds `largest`.

    Inner products, distances and their like are at most 4·n_features·largest² of scaled features,
    and every kernel is at most the power of an affine function of them.
    """
    total = 0.0
    for weight, leaves in kernel.normal_form():
        value = abs(weight)
        for leaf in leaves:
            scale = 1.0 if leaf.scale is None else float(np.max(np.abs(leaf.scale), initial=1.0))
            reach = 4.0 * n_features * max(1.0, largest * scale) ** 2
            base = 1.0 + abs(leaf.gamma) * reach + reach + abs(leaf.coef0)
            power = max(leaf.degree, 1)
            value *= base**power if power * np.log(base) < np.log(SAFE_DOUBLE) else np.inf
        total += value
    return total


def _first_infinite(X: Matrix, kernel: KernelSpec, precision: str, row: int) -> int | None:
    gram = Gram(X, kernel, precision, 1)
    with np.errstate(all="ignore"):
        values = np.asarray(gram.block(np.array([row]), np.arange(X.shape[0])))[0]
        finite = np.isfinite(np.asarray(gram.diagonal())) & np.isfinite(values)
    return None if finite.all() else int(np.argmin(finite))


def _overflow(source: str, kernel: KernelSpec, row: int, remedy: str, where: str = "") -> DataError:
    return DataError(
        source,
        None,
        f"features so large that kernel {kernel.describe()} overflows{where} (row {row + 1})",
        remedy,
    )


def _flat(values: object) -> np.ndarray:
    dense = values.toarray() if hasattr(values, "toarray") else values
    return np.asarray(dense, dtype=np.float64).ravel()
