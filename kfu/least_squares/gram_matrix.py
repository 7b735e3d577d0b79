"""The whole kernel matrix in one array, and products with it that store none of it.

The matrix is symmetric: each value is evaluated once, in bands of rows, and written to both halves.
A Cholesky factorisation overwrites one half and the diagonal, so that the other half, with the
diagonal kept apart, still is the matrix (kfu/least_squares/cholesky.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.errors import DataError
from kfu.kernels import KernelSpec

__all__ = ["GramMatrix", "gram_bytes", "gram_matrix", "gram_product", "outputs_at"]

BANDS = 32  # bands of rows, as long as they have between NARROW and WIDE rows
NARROW, WIDE = 16, 256
ASYMMETRY = 1e-8  # of a precomputed kernel, relative to its largest value


@dataclass(frozen=True)
class GramMatrix:
    """K in Fortran order, its diagonal (float64) and its 1-norm."""

    values: np.ndarray
    diagonal: np.ndarray
    norm: float


def band_rows(n: int) -> int:
    return int(np.clip(n // BANDS, NARROW, WIDE))


def gram_bytes(n: int, itemsize: int) -> int:
    """Bytes at the peak of `gram_matrix`: n² values, and a band with its moduli."""
    return itemsize * n * (n + 2 * min(band_rows(n), n)) + 2**20


def _bands(gram: Gram, rows: np.ndarray, width: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """(begin, end, K(rows[begin:end], rows[begin:])) for consecutive bands."""
    for begin in range(0, rows.size, width):
        end = min(begin + width, rows.size)
        yield begin, end, gram.block(rows[begin:end], rows[begin:])


def gram_matrix(
    X: Any, kernel: KernelSpec, rows: np.ndarray, *, precision: str, threads: int
) -> GramMatrix:
    """K(rows, rows). DataError where a value is not finite or a precomputed K not symmetric."""
    n = rows.size
    gram = Gram(X, kernel, precision, threads)
    values = np.empty((n, n), dtype=precision, order="F")
    sums = np.zeros(n)
    for begin, end, band in _bands(gram, rows, band_rows(n)):
        _check_band(gram, kernel, rows, begin, end, band)
        values.T[begin:end, begin:] = band
        values[begin:end, begin:] = band
        np.abs(band, out=band)
        sums[begin:end] += band.sum(axis=1)
        sums[end:] += band[:, end - begin :].sum(axis=0)
        del band  # before the next one is there
    return GramMatrix(values, values.diagonal().astype(np.float64), float(sums.max()))


def _check_band(
    gram: Gram, kernel: KernelSpec, rows: np.ndarray, begin: int, end: int, band: np.ndarray
) -> None:
    if not np.isfinite(band).all():
        i, j = (int(k) for k in np.argwhere(~np.isfinite(band))[0])
        raise DataError(
            "data",
            None,
            f"K of rows {rows[begin + i] + 1} and {rows[begin + j] + 1} is {band[i, j]}",
            "mend or scale the features",
        )
    if not kernel.is_precomputed:
        return
    mirrored = gram.block(rows[begin:], rows[begin:end]).T
    apart = np.abs(band - mirrored)
    if apart.max() > ASYMMETRY * np.abs(band).max():
        i, j = (int(k) for k in np.unravel_index(np.argmax(apart), apart.shape))
        first, second = rows[begin + i] + 1, rows[begin + j] + 1
        raise DataError(
            "data",
            None,
            f"the precomputed kernel is not symmetric: K({first}, {second}) = {band[i, j]:.6g}, "
            f"K({second}, {first}) = {mirrored[i, j]:.6g}",
            "give a symmetric matrix, for example (K + K.T) / 2",
        )


def gram_product(gram: Gram, rows: np.ndarray, C: np.ndarray) -> np.ndarray:
    """K(rows, rows) C in float64 from values evaluated once, band by band, and stored nowhere."""
    out = np.zeros(C.shape)
    for begin, end, band in _bands(gram, rows, band_rows(rows.size)):
        out[begin:end] += band @ C[begin:]
        out[end:] += band[:, end - begin :].T @ C[begin:end]
        del band
    return out


def outputs_at(gram: Gram, rows: np.ndarray, C: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Σ_i C_i K(rows[i], ·) at other rows of the same X, band by band; DataError unless finite."""
    out = np.empty((points.size, C.shape[1]))
    width = band_rows(rows.size)
    for begin in range(0, points.size, width):
        out[begin : begin + width] = gram.block(points[begin : begin + width], rows) @ C
    if not np.isfinite(out).all():
        row = int(points[np.argmin(np.isfinite(out).all(axis=1))]) + 1
        found = f"the output at row {row}, of weight 0, is not finite"
        raise DataError("data", None, found, "mend or drop the row")
    return out
