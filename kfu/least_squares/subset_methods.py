"""`subset` and `nystrom`: the other two ways to use m of ℓ rows (Rifkin 2002, section 3.7).

subset     regularised least squares on the m rows alone: (K_mm + ridge W⁻¹) c = Y_m.
nystrom    K̃ = K_ℓm K_mm⁻¹ K_mℓ in place of K when training: (K̃ + ridge W⁻¹) v = Y, by the
           Woodbury identity v = W (Y − Φu) / ridge with u the solution of `rectangle`. At test
           time f(x) = Σ_i v_i K(x_i, x) over all ℓ rows, with the true kernel, as the method is
           used in the literature (Williams and Seeger 2001); or with K̃, where f is exactly that of
           `rectangle`, c = K_mm⁻¹ K_mℓ v.

Mixing K̃ in training with K in testing is what makes `nystrom` the poorest of the three.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.linalg

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import (
    LowRankFit,
    checked_ridge,
    low_rank_problem,
)
from kfu.least_squares.memory import require_memory
from kfu.least_squares.rectangle import portion, summed
from kfu.least_squares.whitening import centres_of, points_of, row_blocks
from kfu.solvers.blas_threads import blas_threads

TEST_KERNELS = ("true", "approximate")


def subset(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    ridge: float,
    *,
    weight: Any = None,
    bias: bool = False,
    threads: int = 0,
) -> LowRankFit:
    """Fit the given rows of X alone. Rows of weight 0 among them get the coefficient 0.

    `ridge` is the product of λ and the number of rows that are fitted.
    """
    ridge = checked_ridge(ridge)
    begin = time.perf_counter()
    problem = low_rank_problem(X, Y, kernel, rows, weight)
    X, kernel, rows, Y = problem.X, problem.kernel, problem.rows, problem.Y[problem.rows]
    w = np.ones(len(rows)) if problem.weight is None else problem.weight[rows]
    used = np.flatnonzero(w > 0.0)
    if not len(used):
        found = "none of the rows of the subset has a positive weight"
        raise DataError("data", None, found, "choose other rows")
    m = len(used)
    require_memory(8.0 * m * m, f"the kernel matrix of {m} rows", "take fewer rows")
    K = np.asarray(
        Gram(centres_of(X, rows[used], kernel), kernel, "float64", threads).block(None, None)
    )
    K[np.diag_indices(m)] += ridge / w[used]
    ones = np.ones((m, 1))
    with blas_threads(m, threads):
        try:
            factor = scipy.linalg.cho_factor(K.T, lower=True, overwrite_a=True)
        except (scipy.linalg.LinAlgError, ValueError) as error:
            raise DataError(
                "data", None, f"K + ridge I is not positive definite ({error})", "raise the ridge"
            ) from None
        solved = scipy.linalg.cho_solve(factor, np.hstack([Y[used], ones]))
    coef, of_one = solved[:, :-1], solved[:, -1]
    offset = np.zeros(Y.shape[1])
    if bias:
        offset = (of_one @ Y[used]) / of_one.sum()
        coef = coef - np.outer(of_one, offset)
    full = np.zeros(Y.shape)
    full[used] = coef
    info = {
        "method": "subset",
        "n": m,
        "m": len(rows),
        "ridge": ridge,
        "precision": "float64",
        "bytes": 8 * m * m,
        "seconds": {"solve": time.perf_counter() - begin},
    }
    return LowRankFit(rows, full, offset, ridge, info, kernel)


def nystrom(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    ridge: float,
    *,
    test_kernel: str = "true",
    weight: Any = None,
    precision: str = "float64",
    form: str = "auto",
    threads: int = 0,
    block: int = 0,
) -> LowRankFit:
    """Fit all rows under K̃. The expansion is over all rows of X ("true" kernel at test time) or
    over the centres ("approximate", identical to `rectangle`)."""
    if test_kernel not in TEST_KERNELS:
        raise SettingsError(f"test_kernel is {test_kernel!r}; known: {', '.join(TEST_KERNELS)}")
    ridge = checked_ridge(ridge)
    problem = low_rank_problem(X, Y, kernel, rows, weight)
    sums = summed(problem, precision, form, threads, block)
    if test_kernel == "true":
        sums.system([ridge])  # whose u is needed below
    fit = sums.solve(ridge)
    fit.info["trace_portion"] = portion(sums, problem, threads, block)
    fit.info |= {"method": "nystrom", "test_kernel": test_kernel}
    if test_kernel == "approximate":
        fit.rows = problem.rows
        return fit
    X, kernel, Y = problem.X, problem.kernel, problem.Y
    u = sums.system([ridge]).u[0]
    v = np.empty_like(Y)
    for part in row_blocks(problem.n, len(problem.rows), block):
        features = sums.whitening.features(points_of(X, part, problem.rows, kernel))
        v[part] = (Y[part] - features.astype(np.float64, copy=False) @ u) / ridge
    if problem.weight is not None:
        v *= problem.weight[:, None]
    return LowRankFit(np.arange(problem.n), v, np.zeros(Y.shape[1]), ridge, fit.info, kernel)
