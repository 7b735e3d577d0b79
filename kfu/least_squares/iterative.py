"""The square loss where the kernel matrix does not fit: (K + ridge·W⁻¹) C = Y by products alone.

Preconditioned conjugate gradients (kfu.least_squares.conjugate_gradient) on products that compute
kernel values and forget them (kernel_products), with an approximate inverse of low rank
(preconditioners). Memory is O(n (d + r + t)); time O(n²) kernel values per iteration. All targets
share them. To the tolerance given the solution is that of the factorised matrix.

A free bias, 1ᵀC = 0 with K C + ridge·W⁻¹C + 1bᵀ = Y, costs one more right-hand side: with N the
solution for the column of ones and H that for Y,   b = (1ᵀH)/(1ᵀN),   C = H − N b.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kfu.data import check_weights, check_X
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.conjugate_gradient import CGResult, conjugate_gradient
from kfu.least_squares.kernel_products import KernelOperator
from kfu.least_squares.low_rank_fit import checked_ridge, checked_targets
from kfu.least_squares.preconditioners import make_preconditioner

__all__ = ["solve_iterative", "solve_iterative_with_bias"]

Progress = Callable[[int, float], bool | None]


def solve_iterative(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    weight: Any = None,
    preconditioner: str = "random-pivots",
    rank: int | None = None,
    tolerance: float = 1e-8,
    max_iterations: int | None = None,
    precision: str = "float64",
    threads: int = 0,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> tuple[np.ndarray, dict[str, Any]]:
    """C (n, t) with (K + ridge·W⁻¹) C = Y, and figures of the run.

    `Y` is (n, t) or (n,), one target. Rows of weight 0 are left out: their coefficients are 0.
    Every column ends with ‖Y − (K + ridge·W⁻¹)C‖ ≤ tolerance·‖Y‖, or info["status"] says why not.
    `start` (n, t) is a first guess, as from a neighbouring ridge.
    """
    return _solve(
        X, Y, kernel, ridge, weight, False, preconditioner, rank, tolerance, max_iterations,
        precision, threads, seed, start, progress,
    )[::2]  # fmt: skip


def solve_iterative_with_bias(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    weight: Any = None,
    preconditioner: str = "random-pivots",
    rank: int | None = None,
    tolerance: float = 1e-8,
    max_iterations: int | None = None,
    precision: str = "float64",
    threads: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """C (n, t) and the free bias b (t,) of the LS-SVM, and figures; else as `solve_iterative`."""
    return _solve(
        X, Y, kernel, ridge, weight, True, preconditioner, rank, tolerance, max_iterations,
        precision, threads, seed, None, progress,
    )  # fmt: skip


def _solve(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    weight: Any,
    has_bias: bool,
    preconditioner: str,
    rank: int | None,
    tolerance: float,
    max_iterations: int | None,
    precision: str,
    threads: int,
    seed: int,
    start: np.ndarray | None,
    progress: Progress | None,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    began = time.perf_counter()
    X, kept, weight, targets = _checked(X, Y, ridge, weight)
    n, t = targets.shape
    if start is not None and np.shape(start) != (n, t):
        raise SettingsError(f"a start of shape {np.shape(start)} for coefficients {(n, t)}")
    kernel = kernel.resolve(X)
    kernel.check_data(X)
    part, weight = (
        _rows_of(X, kept, kernel.is_precomputed),
        None if weight is None else weight[kept],
    )
    if rank is not None:
        if not 1 <= rank <= n:
            raise SettingsError(f"rank is {rank!r}; a number from 1 to the number of rows, {n}")
        rank = min(rank, len(kept))
    operator = KernelOperator(part, kernel, ridge, weight, precision, threads)
    approximate_inverse = make_preconditioner(preconditioner, operator, rank=rank, seed=seed)
    B = targets[kept]
    if has_bias:
        B = np.column_stack([B, np.ones(len(kept))])
    result = conjugate_gradient(
        operator,
        B,
        precondition=approximate_inverse.apply,
        start=None if start is None else np.asarray(start, dtype=np.float64)[kept],
        tolerance=tolerance,
        max_iterations=max_iterations,
        progress=progress,
    )
    _require_definite(result, ridge)
    found, bias = result.solution, np.zeros(t)
    if has_bias:
        ones = found[:, -1]
        bias = found[:, :-1].sum(axis=0) / ones.sum()
        found = found[:, :-1] - np.outer(ones, bias)
    coef = np.zeros((n, t))
    coef[kept] = found
    setup = approximate_inverse.info.pop("seconds")
    seconds = {"precondition": setup, "kernel": operator.seconds}
    info = {
        "method": "iterative",
        "precision": precision,
        "n": len(kept),
        "ridge": float(ridge),
        "tolerance": tolerance,
        **result.info(),
        **approximate_inverse.info,
        "kernel_evaluations": operator.kernel_evaluations,
        "seconds": {**seconds, "total": time.perf_counter() - began},
    }
    return coef, bias, info


def _checked(
    X: Any, Y: Any, ridge: float, weight: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
    """X, the rows of positive weight, the weights and the targets (n, t)."""
    checked_ridge(ridge)
    X = check_X(X)
    if X.shape[0] == 0:
        raise DataError("data", None, "no rows", "give at least one example")
    targets = checked_targets(Y, X.shape[0])
    if weight is None:
        return X, np.arange(X.shape[0]), None, targets
    weight = check_weights(weight, X.shape[0], "data")
    return X, np.flatnonzero(weight > 0.0), weight, targets


def _rows_of(X: Any, kept: np.ndarray, is_precomputed: bool) -> Any:
    if len(kept) == X.shape[0]:
        return X
    return X[kept][:, kept] if is_precomputed else X[kept]


def _require_definite(result: CGResult, ridge: float) -> None:
    if "overflow" in result.status:
        raise DataError(
            "<kernel>",
            None,
            "kernel values overflow",
            "scale the data or lower the kernel's degree",
        )
    if "indefinite" in result.status:
        least = min(result.least_curvature, 0.0)
        raise DataError(
            "<kernel>",
            None,
            f"K + ridge·W⁻¹ is not positive definite: an eigenvalue is {least:.3g} or less",
            f"raise the ridge above {ridge - 2.0 * least:.3g}, or take a semidefinite kernel",
        )
