"""Kernels with parameters, and data sets, that the kernel tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from kfu.kernels import KERNELS, KernelSpec
from tests.oracles.kernels import ORACLES

EVALUATED = [name for name, entry in KERNELS.items() if not entry.is_precomputed]
LAYOUTS = ("dense", "csr")
PRECISIONS = ("float32", "float64")
# Rounding allowed per unit of the largest kernel value (dot products of d ~ 60 terms).
TOLERANCE = {"float32": 4e-6, "float64": 1e-14}


def parameters_of(name: str, n_features: int) -> dict[str, Any]:
    """Unremarkable values for every parameter of a kernel."""
    rng = np.random.default_rng(len(name))
    given: dict[str, Any] = {"gamma": 1.7 / n_features, "coef0": 0.6, "degree": 3}
    if KERNELS[name].is_per_feature:
        given["gamma"] = (0.5 + rng.random(n_features)) * 1.7 / n_features
    return {key: given[key] for key in KERNELS[name].parameters}


def spec_of(name: str, n_features: int) -> KernelSpec:
    return KernelSpec.make(name, **parameters_of(name, n_features))


def oracle_of(name: str, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return ORACLES[name](X, Z, **parameters_of(name, X.shape[1]))


def points(n: int, d: int, seed: int = 0, density: float = 0.5) -> np.ndarray:
    """Non-negative data (every kernel accepts them) with zeros, equal rows and a zero row."""
    rng = np.random.default_rng(seed)
    X = np.abs(rng.standard_normal((n, d))) * (rng.random((n, d)) < density)
    if n > 4:
        X[2] = 0.0
        X[4] = X[1]
    return X


def laid_out(X: np.ndarray, layout: str) -> Any:
    return scipy.sparse.csr_matrix(X) if layout == "csr" else X
