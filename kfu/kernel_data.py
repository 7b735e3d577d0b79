"""What data say about a kernel: values of gamma derived from them, and the spectrum of K."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse

from kfu import _gram

if TYPE_CHECKING:
    from kfu.kernels import KernelSpec


def _sample(X: Any, size: int, seed: int) -> Any:
    if X.shape[0] <= size:
        return X
    rows = np.random.default_rng(seed).choice(X.shape[0], size, replace=False)
    return X[np.sort(rows)]


def suggest_gamma(X: Any, sample: int = 500, seed: int = 0) -> float:
    """1 / median squared distance of the points of a sample (the median heuristic).

    Pairs of equal points are left out; without any two different points, 1 / n_features.
    """
    points = _sample(X, sample, seed)
    points = points.toarray() if scipy.sparse.issparse(points) else np.asarray(points, float)
    points = np.asarray(points, dtype=np.float64) - points.mean(axis=0)
    norms = np.einsum("ij,ij->i", points, points)
    distances = norms[:, None] + norms[None, :] - 2.0 * (points @ points.T)
    pairs = distances[np.triu_indices(len(points), 1)]
    pairs = pairs[pairs > 1e-12 * max(float(norms.max(initial=0.0)), 1e-300)]
    return 1.0 / float(np.median(pairs)) if pairs.size else _gamma_auto(X)


def _gamma_auto(X: Any) -> float:
    return 1.0 / max(X.shape[1], 1)


def _gamma_scale(X: Any) -> float:
    if scipy.sparse.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.var(X))
    return _gamma_auto(X) / variance if variance > 0.0 else 1.0


GAMMA_RULES = {"auto": _gamma_auto, "scale": _gamma_scale, "median": suggest_gamma}


def psd_report(
    X: Any, spec: KernelSpec, sample: int = 500, seed: int = 0
) -> dict[str, float | int | bool | str]:
    """Eigenvalues of the kernel matrix on a sample: is it positive semidefinite, how rich is it?

    `effective_rank` is (Σλ)² / Σλ² over the positive eigenvalues; `is_psd` allows negative
    eigenvalues of rounding size (n · ε · largest magnitude).
    """
    if spec.is_precomputed:
        n = min(X.shape)
        rows = np.sort(np.random.default_rng(seed).permutation(n)[:sample])
        matrix = X[rows][:, rows]
        K = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
        K = K.astype(np.float64)
    else:
        points = _sample(X, sample, seed)
        K = _gram.Gram(points, spec.resolve(X), "float64").block()
    asymmetry = float(np.abs(K - K.T).max(initial=0.0))
    values = scipy.linalg.eigvalsh((K + K.T) / 2.0) if K.size else np.zeros(1)
    largest = float(np.abs(values).max())
    tolerance = len(values) * np.finfo(np.float64).eps * largest
    positive = values[values > tolerance]
    diagonal = np.diag(K)
    return {
        "kernel": spec.describe(),
        "sample": len(K),
        "min_eigenvalue": float(values.min()),
        "max_eigenvalue": float(values.max()),
        "condition": float(values.max() / values.min()) if values.min() > tolerance else math.inf,
        "effective_rank": float(positive.sum() ** 2 / (positive**2).sum())
        if positive.size
        else 0.0,
        "rank": int(positive.size),
        "is_psd": bool(values.min() >= -tolerance),
        "is_symmetric": bool(asymmetry <= 1e-12 * max(largest, 1e-300)),
        "has_constant_diagonal": bool(np.ptp(diagonal) <= 1e-12 * max(largest, 1e-300)),
    }
