"""Regularised least squares with the whole kernel matrix: one Cholesky factorisation.

    (K + ridge W⁻¹) C = Y,   f(x) = Σ_i c_i K(x_i, x)                             (no bias)
    [[0, 1ᵀ], [1, K + ridge W⁻¹]] [b; C] = [0; Y],   f(x) = Σ_i c_i K(x_i, x) + b  (free bias)

All right-hand sides share the factor. With G = (K + ridge W⁻¹)⁻¹, u = G 1 and s = 1ᵀu,

    without bias   C = G Y
    with bias      b = uᵀY / s,   C = G Y − u b,   G replaced by G − u uᵀ / s below
    fitted         f(x_i) = y_i − (ridge / w_i) c_i,   tr H = Σ_i (1 − (ridge / w_i) G_ii)
    leave-one-out  f^{−i}(x_i) = y_i − c_i / G_ii           with the ridge λℓ, not λ, held fixed

The last line is exact: what training without row i (the whole row, however large its weight) would
give at x_i. A row of weight 0 is not trained on, so its leave-one-out output is its output.

Cost n³/3 for the factor and as much again for leave-one-out; memory n² numbers of the precision,
and less than a tenth more (kfu/least_squares/cholesky.py).

Precision float32 factors a float32 matrix, in half the memory and about half the time, and refines
the coefficients with float64 residuals, for which kernel values are evaluated again and stored
nowhere. Refinement multiplies the error by about ε₃₂·n·‖K‖/ridge, and ends at float64 accuracy or
tells that it does not converge. It cannot refine G_ii, for that would cost more than a float64
factor: leave-one-out outputs keep float32 accuracy, which `info["loo_error"]` measures. So "auto"
takes float32 without leave-one-out only, for many rows of few values, and falls back to float64.

Rifkin (2002), chapter 3; Suykens and Vandewalle, Neural Processing Letters 9 (1999); Higham,
Accuracy and Stability of Numerical Algorithms (2002), chapter 12. Results do not depend on the
number of threads beyond the last bits, which the BLAS library may sum in another order.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu._gram import Gram
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.cholesky import Cholesky, NotPositiveDefiniteError, indefinite
from kfu.least_squares.full_problem import FullProblem, check_ridge, full_problem
from kfu.least_squares.gram_matrix import (
    gram_bytes,
    gram_matrix,
    gram_product,
    outputs_at,
)
from kfu.least_squares.memory import require_memory
from kfu.solvers.blas_threads import blas_threads

__all__ = ["PRECISIONS", "FullSolution", "solve_full"]

PRECISIONS = ("auto", "float64", "float32")
FEWEST_FOR_SINGLE = 4000  # rows from which on a float32 factor gains more than refinement costs
ROWS_PER_VALUE = 24  # and rows per value of a row of X, for residuals evaluate K again
MOST_REFINEMENTS = 30
REFINED = 1e-12  # a correction relative to the solution that ends refinement
STAGNANT = 1e-9  # one that does when it no longer shrinks: rounding of the residuals
SMALL_RESIDUAL = 1e-16  # relative; a float64 solution above it is refined once
PROBES = 4  # columns of G refined to tell the error of a float32 diagonal
LESS_MEMORY = (
    "a low-rank method (--approximation rectangle) or conjugate gradients (--method cg) need none "
    "of the matrix"
)


@dataclass(frozen=True)
class FullSolution:
    """Coefficients (n, t), bias (t,) and outputs at the training rows.

    fitted: outputs (n, t). loo: exact leave-one-out outputs (n, t), None where not asked for; NaN
    where a free bias would have to come from no rows at all. diagonal: K(x_i, x_i). info: seconds
    by phase, residual, condition, memory and so on, as plain figures.
    """

    coef: np.ndarray
    bias: np.ndarray
    fitted: np.ndarray
    loo: np.ndarray | None
    diagonal: np.ndarray
    info: dict[str, Any] = field(default_factory=dict)


def solve_full(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    weight: Any = None,
    bias: bool = False,
    threads: int = 0,
    precision: str = "auto",
    loo: bool = True,
) -> FullSolution:
    """Solve for all columns of Y (n,) or (n, t) at once.

    SettingsError for a bad ridge or precision, too little memory, or refinement of a float32 factor
    that does not converge; DataError for bad data and for K + ridge that is not positive definite.
    """
    ridge = check_ridge(ridge)
    if precision not in PRECISIONS:
        raise SettingsError(f"precision is {precision!r}; choose {', '.join(PRECISIONS)}")
    problem = full_problem(X, Y, kernel, weight, ridge)
    if precision == "auto" and not _single_pays(problem, loo):
        precision = "float64"
    run = _Run(problem, ridge, bias, threads)
    with blas_threads(problem.size, threads):
        if precision != "float64":
            if run.single(loo):
                return run.solution("float32")
            if precision == "float32":
                raise SettingsError(
                    "a float32 factor is too coarse: refinement does not converge with ridge "
                    f"{ridge:g}; take precision float64 or a larger ridge"
                )
            run.info["fallback"] = "refinement of the float32 factor did not converge"
        run.double(loo)
        return run.solution("float64")


def _single_pays(problem: FullProblem, loo: bool) -> bool:
    X, m = problem.X, problem.size
    per_row = 8 * X.nnz / max(X.shape[0], 1) if sp.issparse(X) else X.shape[1]
    is_cheap = m >= max(FEWEST_FOR_SINGLE, ROWS_PER_VALUE * per_row)
    return is_cheap and not loo and not problem.kernel.is_precomputed


class _Run:
    """One solution in the making."""

    def __init__(self, problem: FullProblem, ridge: float, bias: bool, threads: int) -> None:
        self.problem, self.ridge, self.has_bias, self.threads = problem, ridge, bias, threads
        self.shift = ridge / problem.weight
        # Centred targets lose less to cancellation in b.
        share = problem.weight / problem.weight.sum()
        self.centre = share @ problem.targets if bias else np.zeros(problem.targets.shape[1])
        right = problem.targets - self.centre
        self.right = np.column_stack([right, np.ones(problem.size)]) if bias else right
        self.solved = np.empty(0)  # G times the right-hand sides
        self.inverse: np.ndarray | None = None  # diag G
        self.seconds = dict.fromkeys(("gram", "factor", "solve", "loo"), 0.0)
        self.info: dict[str, Any] = {"seconds": self.seconds}
        self.clock = time.perf_counter()

    def tick(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] += now - self.clock
        self.clock = now

    def factor(self, precision: str) -> Cholesky:
        """K + shift factored; NotPositiveDefiniteError from float32, DataError from float64."""
        problem = self.problem
        needed = gram_bytes(problem.size, np.dtype(precision).itemsize)
        self.info["memory_bytes"] = needed
        require_memory(needed, f"the kernel matrix of {problem.size} rows", LESS_MEMORY)
        gram = gram_matrix(
            problem.X, problem.kernel, problem.rows, precision=precision, threads=self.threads
        )
        self.tick("gram")
        try:
            found = Cholesky(gram, self.shift)
        except NotPositiveDefiniteError as refusal:
            if precision == "float32":
                raise
            row = int(problem.rows[refusal.pivot - 1])
            raise indefinite(gram, self.shift, self.ridge, refusal.pivot, row) from None
        self.tick("factor")
        self.diagonal = gram.diagonal
        self.norm = found.norm
        self.info["condition"] = found.condition()
        return found

    def double(self, loo: bool) -> None:
        factor = self.factor("float64")
        self.solved = factor.solve(self.right)
        remainder = self.right - factor.product(self.solved)
        self.note_residual(remainder)
        self.info["refinements"] = 0
        if self.info["residual"] > SMALL_RESIDUAL:
            self.solved += factor.solve(remainder)
            self.note_residual(self.right - factor.product(self.solved))
            self.info["refinements"] = 1
        self.tick("solve")
        if loo:
            self.inverse = factor.inverse_diagonal()
            self.tick("loo")

    def single(self, loo: bool) -> bool:
        """The solution by a float32 factor; False where that is too coarse."""
        try:
            factor = self.factor("float32")
        except NotPositiveDefiniteError:
            return False
        gram = Gram(self.problem.X, self.problem.kernel, "float64", self.threads)
        is_done = self.refine(factor, gram, self.right)
        self.tick("solve")
        if is_done and loo:
            probes = np.unique(np.linspace(0, self.problem.size - 1, PROBES).astype(int))
            units = np.zeros((self.problem.size, probes.size))
            units[probes, np.arange(probes.size)] = 1.0
            kept = self.solved, dict(self.info)
            self.refine(factor, gram, units)
            exact = self.solved[probes, np.arange(probes.size)]
            self.solved = kept[0]
            self.info.update(kept[1])
            self.inverse = factor.inverse_diagonal()
            self.info["loo_error"] = float(np.abs(self.inverse[probes] / exact - 1.0).max())
            self.tick("loo")
        return is_done

    def refine(self, factor: Cholesky, gram: Gram, right: np.ndarray) -> bool:
        """Iterative refinement; each step evaluates the kernel matrix in float64."""
        self.solved = factor.solve(right)
        size = before = np.inf
        for step in range(1, MOST_REFINEMENTS + 1):
            product = gram_product(gram, self.problem.rows, self.solved)
            remainder = right - product - self.shift[:, None] * self.solved
            self.note_residual(remainder, right)
            correction = factor.solve(remainder)
            self.solved += correction
            scale = np.linalg.norm(self.solved, axis=0)
            size = np.max(np.linalg.norm(correction, axis=0) / np.where(scale > 0, scale, 1.0))
            self.info["refinements"] = step
            if size <= REFINED:
                return True
            if not size < 0.5 * before:
                return bool(size <= STAGNANT)
            before = size
        return bool(size <= STAGNANT)

    def note_residual(self, remainder: np.ndarray, right: np.ndarray | None = None) -> None:
        """‖Y − A C‖ relative to ‖A‖‖C‖ + ‖Y‖, the largest of the columns."""
        right = self.right if right is None else right
        scale = self.norm * np.linalg.norm(self.solved, axis=0) + np.linalg.norm(right, axis=0)
        relative = np.linalg.norm(remainder, axis=0) / np.where(scale > 0, scale, 1.0)
        self.info["residual"] = float(relative.max())

    def solution(self, precision: str) -> FullSolution:
        problem, inverse = self.problem, self.inverse
        if self.has_bias:
            ones = self.solved[:, -1]
            total = ones.sum()
            offset = (ones @ self.right[:, :-1]) / total
            coef = self.solved[:, :-1] - ones[:, None] * offset
            b = offset + self.centre
            if inverse is not None:
                inverse = inverse - ones * ones / total
        else:
            coef, b = self.solved, self.centre
        fitted = problem.targets - self.shift[:, None] * coef
        if inverse is not None and self.has_bias and problem.size == 1:
            inverse = np.full(1, np.nan)
        loo = None
        if inverse is not None:
            loo = problem.targets - coef / inverse[:, None]
            self.info["degrees_of_freedom"] = float(np.sum(1.0 - self.shift * inverse))
        return self.spread(precision, coef, b, fitted, loo)

    def spread(
        self,
        precision: str,
        coef: np.ndarray,
        b: np.ndarray,
        fitted: np.ndarray,
        loo: np.ndarray | None,
    ) -> FullSolution:
        """The solution over all rows, those of weight 0 included, and its figures."""
        problem = self.problem
        others = problem.left_out
        fitted, diagonal = problem.spread(fitted), problem.spread(self.diagonal)
        if others.size:
            gram = Gram(problem.X, problem.kernel, "float64", self.threads)
            fitted[others] = outputs_at(gram, problem.rows, coef, others) + b
            diagonal[others] = gram.diagonal()[others]
        if loo is not None:
            loo = problem.spread(loo)
            loo[others] = fitted[others]
        self.tick("solve")
        self.info |= {
            "method": "cholesky",
            "precision": precision,
            "n": problem.size,
            "outputs": int(problem.targets.shape[1]),
            "ridge": self.ridge,
            "lambda": self.ridge / problem.size,
        }
        return FullSolution(problem.spread(coef), b, fitted, loo, diagonal, self.info)
