"""Products with the matrix of the square loss, without the matrix.

    V ↦ (K + ridge·W⁻¹) V,   K(i, j) the kernel of rows i and j, W the diagonal of row weights.

The kernel values are computed in tiles and summed at once (Gram.decision): memory is that of the
data, whatever n, and time that of n² kernel values for every product, shared by all columns of V.
Sums are float64. With float32 values the operator is that of a matrix that differs from K by 1e-7
or so, relative to its entries: the solution moves by that times ‖K‖/ridge, which is why float64 is
the default here.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.data import check_weights
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec

__all__ = ["KernelOperator"]

BLOCK_ROWS = 8192  # of the result computed by one call


class KernelOperator:
    """K + ridge·W⁻¹ over the rows of X, as a linear operator that counts what it computes.

    `kernel` is resolved; `weight` is one positive number per row, None for ones. `threads=0` uses
    all processors; the result does not depend on their number.
    """

    def __init__(
        self,
        X: Any,
        kernel: KernelSpec,
        ridge: float,
        weight: np.ndarray | None = None,
        precision: str = "float64",
        threads: int = 0,
    ) -> None:
        if not (np.isfinite(ridge) and ridge >= 0.0):
            raise SettingsError(f"ridge is {ridge!r}; a finite number that is not negative")
        self.X = X
        self.n = int(X.shape[0])
        self.ridge = float(ridge)
        self.weight = None if weight is None else check_weights(weight, self.n)
        if self.weight is not None and not self.weight.all():
            raise SettingsError("a row of weight 0 has no place in the operator; leave it out")
        self.gram = Gram(X, kernel, precision, threads)
        self.kernel_evaluations = 0
        self.seconds = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.n

    @property
    def shift(self) -> np.ndarray:
        """ridge/w, the part of the diagonal that is not the kernel's."""
        return self.ridge / (np.ones(self.n) if self.weight is None else self.weight)

    def kernel_product(self, V: np.ndarray) -> np.ndarray:
        """K V, for V (n, t)."""
        began = time.perf_counter()
        out = np.empty((self.n, V.shape[1]))
        for first in range(0, self.n, BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, self.n))
            self.gram.decision(None, V, self.X[rows], out=out[rows])
        self.kernel_evaluations += self.n * self.n
        self.seconds += time.perf_counter() - began
        return out

    def __call__(self, V: np.ndarray) -> np.ndarray:
        """(K + ridge·W⁻¹) V, for V (n, t)."""
        out = self.kernel_product(V)
        out += self.shift[:, None] * V
        return out

    def columns(self, points: np.ndarray) -> np.ndarray:
        """K(:, points) as float64, n × len(points)."""
        began = time.perf_counter()
        block = self.gram.block(None, points).astype(np.float64, copy=False)
        self.kernel_evaluations += block.size
        self.seconds += time.perf_counter() - began
        return block

    def kernel_diagonal(self) -> np.ndarray:
        """K(i, i)."""
        self.kernel_evaluations += self.n
        return self.gram.diagonal()
