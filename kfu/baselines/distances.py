"""Distances in feature space, d²(x, z) = K(x,x) + K(z,z) − 2K(x,z), for nearest neighbours.

Ranks come from a key that orders the rows x as d² does and loses no digits: the squared input
distance where d² is a function of it, −K where all K(x,x) are equal, and K(x,x) − 2K(x,z) for any
other kernel. Taking 2 − 2K of an rbf kernel instead would make all rows beyond a few widths equally
far. `squared` turns keys into d².

A precomputed kernel does not tell K(z,z) of new points: ranks are known, distances are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.baselines.rows import dense
from kfu.data import Matrix
from kfu.errors import SettingsError
from kfu.kernels import KernelForm, KernelSpec, LeafPart

__all__ = ["FeatureDistance"]

# Kernels whose d² is an increasing function of the squared input distance t (in which rbf-ard
# scales the features): d²/weight as a function of t and γ.
OF_INPUT_DISTANCE: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "linear": lambda t, gamma: t,
    "rbf": lambda t, gamma: -2.0 * np.expm1(-gamma * t),
    "rbf-ard": lambda t, gamma: -2.0 * np.expm1(-t),
    "rational": lambda t, gamma: 2.0 * gamma * t / (1.0 + gamma * t),
}
CONSTANT_DIAGONAL = ("laplacian", "chi2")  # K(x, x) is the kernel's weight


class FeatureDistance:
    """Keys and distances from new points to the rows `vectors`.

    For a precomputed kernel `vectors` is the square training matrix, or None when `diagonal` gives
    its diagonal.
    """

    def __init__(
        self,
        vectors: Matrix | None,
        kernel: KernelSpec,
        *,
        diagonal: np.ndarray | None = None,
        threads: int = 0,
    ) -> None:
        self.kernel = kernel
        self.threads = threads
        self.kind = "general"
        if not kernel.parts and kernel.name in OF_INPUT_DISTANCE:
            self.kind = "input"
        elif not kernel.parts and kernel.name in CONSTANT_DIAGONAL:
            self.kind = "constant"
        elif kernel.is_precomputed:
            self.kind = "precomputed"
        self.diagonal: np.ndarray | None = None
        self.gram: Any = None
        if self.kind == "precomputed":
            self.diagonal = _training_diagonal(vectors, kernel, diagonal)
            return
        if vectors is None:
            raise SettingsError("nearest neighbours need the training rows")
        form = _input_distance(kernel) if self.kind == "input" else kernel
        self.gram = Gram(vectors, form, precision="float64", threads=threads)
        if self.kind == "general":
            self.diagonal = self.gram.diagonal()

    def keys(self, Z: Any) -> np.ndarray:
        """(rows of Z, vectors): ascending along a row with the distance to its point."""
        if self.kind == "precomputed":
            assert self.diagonal is not None
            values = self.kernel.weight * dense(Z)
        else:
            values = np.ascontiguousarray(self.gram.cross(Z).T)
        if self.kind == "input":
            return values
        if self.kind == "constant":
            return -values
        assert self.diagonal is not None
        values *= -2.0
        values += self.diagonal
        return values

    def squared(self, keys: np.ndarray, Z: Any, own: np.ndarray | None = None) -> np.ndarray:
        """d² of chosen keys (rows of Z, any number); `own` is K(z, z) where it is known already.

        Differences of rounding size are 0, so that equal points have distance 0.
        """
        kernel = self.kernel
        if self.kind == "input":
            gamma = kernel.params.get("gamma", 1.0)
            return kernel.weight * OF_INPUT_DISTANCE[kernel.name](keys, gamma)
        if self.kind == "constant":
            return np.maximum(2.0 * (kernel.weight + keys), 0.0)
        if own is None:
            own = self.own_values(Z)
        distances = keys + own[:, None]
        scale = np.abs(own)[:, None] + np.abs(keys)
        return np.where(distances > 8.0 * np.finfo(float).eps * scale, distances, 0.0)

    def own_values(self, Z: Any) -> np.ndarray:
        """K(z, z) of the rows of Z."""
        if self.kind == "precomputed":
            raise SettingsError(
                "a precomputed kernel does not tell the distance to new rows; "
                "use neighbours without distance weights"
            )
        gram = Gram(Z, self.kernel, precision="float64", threads=self.threads)
        return np.asarray(gram.diagonal())


def _input_distance(kernel: KernelSpec) -> KernelForm:
    gamma = kernel.params.get("gamma")
    scale = tuple(np.sqrt(gamma).tolist()) if isinstance(gamma, tuple) else None
    return KernelForm([(1.0, (LeafPart("squared-distance", "", scale=scale),))])


def _training_diagonal(
    vectors: Matrix | None, kernel: KernelSpec, diagonal: np.ndarray | None
) -> np.ndarray:
    if diagonal is not None:
        return np.asarray(diagonal, dtype=np.float64)
    if vectors is None or vectors.shape[0] != vectors.shape[1]:
        raise SettingsError(
            "nearest neighbours with a precomputed kernel need K(x, x) of the training rows: give "
            "the square training matrix"
        )
    return kernel.weight * np.asarray(vectors.diagonal(), dtype=np.float64)
