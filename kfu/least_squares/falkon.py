"""`rectangle` by preconditioned conjugate gradients, for more centres than m² sums pay for.

The system of kfu.least_squares.normal_equations, (ΦᵀWΦ + ridge I) u = ΦᵀWY, is solved without
forming ΦᵀWΦ: an iteration costs a pass over K_ℓm, 4 ℓ m operations an output and, where K_ℓm does
not fit into the cache, its values anew. Preconditioned by

    P = (Σw / p) Φ_SᵀΦ_S + ridge I  ≈  ΦᵀWΦ + ridge I,   S a sample of p rows.

FALKON (Rudi, Carratino and Rosasco 2017) takes the centres themselves for S, whose features are L:
no cost beyond two factorisations of m³/3, but where the ridge is small the centres say little of
the other rows in the directions that they themselves define, and the iterations are many. A few m
rows drawn anew, as is the default, cost p m² operations; the condition is then that of a sample,
((1 + √(m/p)) / (1 − √(m/p)))² = 9 with p = 4m if the features of rows were independent and normal,
more where few rows stand far out, and hardly depends on the ridge. The iteration ends when
(rᵀP⁻¹r / gᵀP⁻¹g)^½, about the relative error of f in the norm of the problem, is below the
tolerance for every output; the residual reported is computed from scratch.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import blas

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import (
    LowRankFit,
    LowRankProblem,
    checked_ridge,
    low_rank_problem,
)
from kfu.least_squares.memory import require_memory
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.whitening import (
    DTYPES,
    Whitening,
    centres_of,
    points_of,
    row_blocks,
)
from kfu.solvers.blas_threads import blas_threads

SAMPLE = 4  # rows of the sample, for each centre
RESTART = 50  # iterations after which the residual is computed anew


def falkon(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    ridge: float,
    *,
    weight: Any = None,
    bias: bool = False,
    tolerance: float = 1e-7,
    max_iterations: int = 500,
    sample: int | None = None,
    seed: int = 0,
    precision: str = "float64",
    threads: int = 0,
    block: int = 0,
    cache_mib: float = 1024.0,
) -> LowRankFit:
    """The solution of `rectangle` to the tolerance.

    `info["status"]` is "converged" or "max_iterations"; `info["residual"]` the relative residual of
    each output. `sample` is the number of rows drawn for the preconditioner, in proportion to their
    weights (None: SAMPLE · m; 0: the centres take their place). `cache_mib` is what K_ℓm may take
    to be kept between passes.
    """
    if not 0.0 < tolerance < 1.0:
        raise SettingsError(f"tolerance is {tolerance:g}; it has to be between 0 and 1")
    if max_iterations < 1:
        raise SettingsError(f"max_iterations is {max_iterations}; at least 1 is needed")
    if sample is not None and sample < 0:
        raise SettingsError(f"sample is {sample}; it is a number of rows, or 0")
    ridge = checked_ridge(ridge)
    problem = low_rank_problem(X, Y, kernel, rows, weight)
    kernel, rows = problem.kernel, problem.rows
    n, m = problem.n, len(rows)
    what = f"the preconditioner of {m} centres"
    require_memory(5.0 * 8 * m * m, what, "take fewer centres")
    begin = time.perf_counter()
    whitening = Whitening(centres_of(problem.X, rows, kernel), kernel, precision, threads)
    operator = _Operator(problem, whitening, ridge, bias, block, cache_mib)
    with blas_threads(whitening.rank, threads):
        wanted = SAMPLE * m if sample is None else sample
        preconditioner = _preconditioner(operator, wanted, seed)
        prepared = time.perf_counter()
        g = operator.right_hand_sides(problem.Y)
        u, iterations, is_done = _conjugate_gradients(
            operator, preconditioner, g, tolerance, max_iterations
        )
        residual = np.linalg.norm(g - operator.apply(u), axis=0)
    scale = np.linalg.norm(g, axis=0)
    offset = operator.offset(u)
    info = {
        "method": "falkon",
        "status": "converged" if is_done else "max_iterations",
        "iterations": iterations,
        "residual": (residual / np.where(scale > 0.0, scale, 1.0)).tolist(),
        "tolerance": tolerance,
        "n": n,
        "m": m,
        "rank": whitening.rank,
        "ridge": ridge,
        "precision": precision,
        "is_cached": operator.cache is not None,
        "seconds": {"centres": prepared - begin, "iterations": time.perf_counter() - prepared},
    }
    return LowRankFit(rows, whitening.coefficients(u), offset, ridge, info, kernel)


class _Operator:
    """u → (ΦᵀWΦ + ridge I) u, about the means with a bias, by passes over blocks of K_ℓm."""

    def __init__(
        self,
        problem: LowRankProblem,
        whitening: Whitening,
        ridge: float,
        bias: bool,
        block: int,
        cache_mib: float,
    ) -> None:
        self.X, self.kernel, self.rows = problem.X, problem.kernel, problem.rows
        self.whitening = whitening
        n = problem.n
        self.weight = np.ones(n) if problem.weight is None else problem.weight
        self.total = float(self.weight.sum())
        self.ridge, self.bias = ridge, bias
        self.blocks = list(row_blocks(n, len(self.rows), block))
        size = n * whitening.rank * np.dtype(DTYPES[whitening.precision]).itemsize
        self.cache: dict[int, np.ndarray] | None = {} if size <= cache_mib * 2**20 else None
        self.mean = np.zeros(whitening.rank)

    def _values(self, part: slice) -> np.ndarray:
        if self.cache is not None and part.start in self.cache:
            return self.cache[part.start]
        values = self.whitening.values(points_of(self.X, part, self.rows, self.kernel))
        if self.cache is not None:
            self.cache[part.start] = values
        return values

    def _from_values(self, sums: np.ndarray) -> np.ndarray:
        return np.asarray(blas.dtrsm(1.0, self.whitening.factor, sums, lower=1))

    def right_hand_sides(self, Y: np.ndarray) -> np.ndarray:
        """G, and the means where there is a bias."""
        sums = np.zeros((self.whitening.rank, Y.shape[1] + 1), order="F")
        for part in self.blocks:
            w = self.weight[part][:, None]
            values = self._values(part).astype(np.float64, copy=False)
            sums += values.T @ np.hstack([w * Y[part], w])
        sums = self._from_values(sums)
        self.q = self.weight @ Y
        self.s = sums[:, -1]
        if not self.bias:
            return sums[:, :-1]
        self.mean = self.s / self.total
        return np.asarray(sums[:, :-1] - np.outer(self.mean, self.q))

    def apply(self, u: np.ndarray) -> np.ndarray:
        factor = self.whitening.factor
        v = blas.dtrsm(1.0, factor, np.asfortranarray(u), lower=1, trans_a=1)
        sums = np.zeros(u.shape, order="F")
        for part in self.blocks:
            values = self._values(part).astype(np.float64, copy=False)
            sums += values.T @ (self.weight[part][:, None] * (values @ v))
        out = self._from_values(sums) + self.ridge * u
        if self.bias:
            out -= self.total * np.outer(self.mean, self.mean @ u)
        return np.asarray(out)

    def offset(self, u: np.ndarray) -> np.ndarray:
        if not self.bias:
            return np.zeros(u.shape[1])
        return np.asarray((self.q - self.s @ u) / self.total)


def _preconditioner(operator: _Operator, sample: int, seed: int) -> Any:
    """The Cholesky factor of P."""
    whitening = operator.whitening
    weight = operator.weight
    count = min(sample, int(np.count_nonzero(weight)))
    if count == 0:
        P = blas.dsyrk(operator.total / whitening.m, np.tril(whitening.factor), trans=1, lower=1)
    else:
        keys = np.random.default_rng(seed).standard_exponential(len(weight))
        with np.errstate(divide="ignore"):
            drawn = np.argsort(np.where(weight > 0.0, keys / weight, np.inf))[:count]
        is_all = count == np.count_nonzero(weight)
        sums = NormalEquations(whitening, operator.kernel, 1, threads=whitening.threads)
        for part in row_blocks(count, whitening.rank):
            rows = np.sort(drawn[part])
            points = points_of(operator.X, rows, operator.rows, operator.kernel)
            sums.add(points, np.zeros(len(rows)), weight[rows] if is_all else None)
        P = sums.sums().B * (operator.total / sums.total)
    diagonal = np.diag_indices_from(P)
    P[diagonal] += operator.ridge
    try:
        return scipy.linalg.cho_factor(P, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:  # rounding of float32 values exceeds the ridge
        P[diagonal] += 1e-5 * float(P[diagonal].max())
        return scipy.linalg.cho_factor(P, lower=True, check_finite=False)


def _conjugate_gradients(
    operator: _Operator, P: Any, g: np.ndarray, tolerance: float, max_iterations: int
) -> tuple[np.ndarray, int, bool]:
    """All outputs at once; those that are done rest. (u, iterations, whether all are done)."""
    u = np.zeros_like(g)
    r = g.copy()
    z = scipy.linalg.cho_solve(P, r, check_finite=False)
    p = z.copy()
    rho = (r * z).sum(axis=0)
    goal = tolerance**2 * rho
    active = np.flatnonzero(rho > goal)  # an output whose targets are all 0 is done
    iteration = 0
    while len(active) and iteration < max_iterations:
        iteration += 1
        Ap = operator.apply(p[:, active])
        step = rho[active] / (p[:, active] * Ap).sum(axis=0)
        u[:, active] += step * p[:, active]
        if iteration % RESTART == 0:
            r[:, active] = g[:, active] - operator.apply(u[:, active])
        else:
            r[:, active] -= step * Ap
        z = scipy.linalg.cho_solve(P, r[:, active], check_finite=False)
        new = (r[:, active] * z).sum(axis=0)
        p[:, active] = z + (new / rho[active]) * p[:, active]
        rho[active] = new
        active = active[new > goal[active]]
    return u, iteration, not len(active)
