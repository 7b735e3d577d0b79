"""All ridges from one eigendecomposition of the kernel matrix.

With row weights W = D², D K D = V Σ Vᵀ and g_k = 1 / (σ_k + ridge),

    G = (K + ridge W⁻¹)⁻¹ = D V diag(g) Vᵀ D,   C = G Y,   G_ii = w_i Σ_k V_ik² g_k

so that one ridge costs a matrix product with V for the coefficients and one with V∘V for the exact
leave-one-out outputs (kfu/least_squares/full.py), instead of a factorisation. With a free bias
u = G 1, s = 1ᵀu and G − u uᵀ / s takes the place of G. The smoother H (fitted = H Y) has

    tr(I − H) = ridge (Σ_k g_k − [bias] Σ_k (Vᵀd)_k² g_k² / s),   d = D 1,

the effective degrees of freedom are df = tr H, and generalised cross-validation (Craven and Wahba
1979) replaces each 1 − H_ii of leave-one-out by the mean:

    GCV = (1/n) Σ_i w_i (y_i − f_i)² / (1 − df/n)²

Errors are means over the rows that count, weighted by w. Memory: 2n² float64 numbers for driver
"evr", 3n² for "evd", which is mostly faster; n² stay. The decomposition takes about 10n³, thirty
times a Cholesky factorisation: it pays for a scan of ridges, not for one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.linalg

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.full import FullSolution
from kfu.least_squares.full_problem import check_ridge, full_problem
from kfu.least_squares.gram_matrix import gram_matrix, outputs_at
from kfu.least_squares.memory import require_memory
from kfu.least_squares.ridge_choice import (
    CRITERIA,
    RidgeChoice,
    RidgeTable,
    check_criterion,
    coded_classes,
)
from kfu.solvers.blas_threads import blas_threads

__all__ = ["CRITERIA", "RidgeChoice", "RidgeTable", "Spectrum"]

DRIVERS = {"evr": 2, "evd": 3}  # LAPACK's, and the n² numbers each needs
PER_DECADE = 4  # points of the default grid
REFINED_ROUNDS, REFINED_POINTS = 2, 7  # between the neighbours of the best
SAME_RIDGE = 1e-6  # relative distance up to which two ridges are one
SMALLEST_SHARE = 1e-10  # of the largest eigenvalue: the default grid goes no lower
STRIPE = 2**22  # float64 numbers of a stripe of V ∘ V, or of outputs


class Spectrum:
    """The eigendecomposition of the weighted kernel matrix of X; reusable for any Y and ridge."""

    def __init__(
        self,
        X: Any,
        kernel: KernelSpec,
        *,
        weight: Any = None,
        bias: bool = False,
        threads: int = 0,
        driver: str = "evd",
    ) -> None:
        if driver not in DRIVERS:
            raise SettingsError(f"driver is {driver!r}; choose {', '.join(DRIVERS)}")
        begin = time.perf_counter()
        # weights are checked with a dummy target; those below the reach of float64 are left out
        self.problem = full_problem(X, np.zeros(np.shape(X)[0]), kernel, weight)
        self.has_bias, self.threads = bool(bias), threads
        m = self.problem.size
        needed = 8 * m * m * DRIVERS[driver]
        what = f"the spectrum of {m} rows (driver {driver})"
        require_memory(needed, what, "a low-rank method (--approximation rectangle) needs less")
        self.root = np.sqrt(self.problem.weight)
        with blas_threads(m, threads):
            gram = gram_matrix(
                self.problem.X,
                self.problem.kernel,
                self.problem.rows,
                precision="float64",
                threads=threads,
            )
            self.diagonal = gram.diagonal
            matrix = gram.values
            matrix *= self.root[:, None]
            matrix *= self.root
            sigma, self.vectors = scipy.linalg.eigh(
                matrix, driver=driver, overwrite_a=True, check_finite=False
            )
        rounding = m * np.finfo(np.float64).eps * np.abs(sigma).max()
        sigma[np.abs(sigma) <= rounding] = 0.0
        self.eigenvalues = sigma
        self.along_root = self.vectors.T @ self.root  # Vᵀ d
        self.info = {"memory_bytes": needed, "seconds": time.perf_counter() - begin, "n": m}

    # -- one ridge ----------------------------------------------------------------------------

    def solve(self, Y: Any, ridge: float) -> FullSolution:
        """What `solve_full` gives, leave-one-out outputs included."""
        ridge = check_ridge(ridge)
        begin = time.perf_counter()
        problem = full_problem(
            self.problem.X, Y, self.problem.kernel, self.problem.spread(self.problem.weight)
        )
        grid = np.array([ridge])
        parts = [part[0] for part in self._scan(problem.targets, grid)]
        coef, fitted, loo, bias = parts
        others = problem.left_out
        all_fitted, all_loo = problem.spread(fitted), problem.spread(loo)
        diagonal = problem.spread(self.diagonal)
        if others.size:
            gram = Gram(problem.X, problem.kernel, "float64", self.threads)
            all_fitted[others] = outputs_at(gram, problem.rows, coef, others) + bias
            all_loo[others] = all_fitted[others]
            diagonal[others] = gram.diagonal()[others]
        info = {
            "method": "spectrum",
            "precision": "float64",
            "n": problem.size,
            "outputs": int(coef.shape[1]),
            "ridge": ridge,
            "lambda": ridge / problem.size,
            "condition": float((self.eigenvalues[-1] + ridge) / (self.eigenvalues[0] + ridge)),
            "df": float(self.degrees_of_freedom(grid)[0]),
            "seconds": {"solve": time.perf_counter() - begin},
        }
        return FullSolution(problem.spread(coef), bias, all_fitted, all_loo, diagonal, info)

    def _inverses(self, grid: np.ndarray) -> np.ndarray:
        """g (m, ridges), or DataError where some σ_k + ridge is not positive."""
        lowest = float(self.eigenvalues[0])
        if lowest + grid.min() <= 0.0:
            raise DataError(
                "data",
                None,
                f"the smallest eigenvalue of the kernel matrix is {lowest:.3g}, the ridge "
                f"{grid.min():.3g}: K + ridge is not positive definite",
                f"take a ridge above {-1.1 * lowest:.2g}, or a positive semidefinite kernel",
            )
        return 1.0 / (self.eigenvalues[:, None] + grid)

    def _scan(
        self, targets: np.ndarray, grid: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients, fitted, leave-one-out outputs (ridges, m, t) and biases (ridges, t)."""
        g = self._inverses(grid)
        m, t = targets.shape
        n_grid = grid.size
        share = self.problem.weight / self.problem.weight.sum()
        centre = share @ targets if self.has_bias else np.zeros(t)
        along = self.vectors.T @ (self.root[:, None] * (targets - centre))
        bias = np.tile(centre, (n_grid, 1))
        right = g.T[:, :, None] * along  # (ridges, m, t)
        totals = np.ones(n_grid)
        if self.has_bias:
            totals = self.along_root**2 @ g
            offset = (self.along_root[:, None] * g).T @ along / totals[:, None]
            right -= (g.T * self.along_root)[:, :, None] * offset[:, None, :]
            bias += offset
        coef = np.empty((n_grid, m, t))
        inverse = np.empty((m, n_grid))
        flat = right.transpose(1, 0, 2).reshape(m, n_grid * t)
        with blas_threads(m, self.threads):
            for begin in range(0, m, stripe := max(STRIPE // max(m, n_grid * t), 1)):
                rows = slice(begin, begin + stripe)
                part = self.vectors[rows]
                found = (part @ flat).reshape(-1, n_grid, t).transpose(1, 0, 2)
                coef[:, rows] = self.root[rows, None] * found
                inverse[rows] = (part * part) @ g
                if self.has_bias:
                    inverse[rows] -= (part @ (self.along_root[:, None] * g)) ** 2 / totals
        inverse *= self.problem.weight[:, None]
        if self.has_bias and m == 1:
            inverse[:] = np.nan
        fitted = targets - (grid[:, None] / self.problem.weight)[:, :, None] * coef
        loo = targets - coef / inverse.T[:, :, None]
        return coef, fitted, loo, bias

    # -- many ridges --------------------------------------------------------------------------

    def degrees_of_freedom(self, grid: Any) -> np.ndarray:
        """tr H for each ridge; a free bias counts as one at least."""
        ridges = np.atleast_1d(np.asarray(grid, dtype=np.float64))
        g = self._inverses(ridges)
        free = g.sum(axis=0)
        if self.has_bias:
            squares = self.along_root[:, None] ** 2
            free = free - (squares * g**2).sum(axis=0) / (squares * g).sum(axis=0)
        return self.problem.size - ridges * free

    def default_grid(self) -> np.ndarray:
        """From ten times the largest eigenvalue down to the smallest that is not negligible.

        Anchored at the largest, which rounding does not move: which is the smallest depends on it.
        """
        largest = float(np.abs(self.eigenvalues).max())
        if largest == 0.0:
            return np.array([1.0])
        positive = self.eigenvalues[self.eigenvalues > SMALLEST_SHARE * largest]
        low = float(positive.min()) if positive.size else SMALLEST_SHARE * largest
        low = max(low, SMALLEST_SHARE * largest, -1.5 * float(self.eigenvalues[0]))
        high = 10.0 * max(largest, low)
        steps = max(int(np.ceil(PER_DECADE * np.log10(high / low))), 1)
        return high * 10.0 ** (np.arange(-steps, 1) / PER_DECADE)

    def table(
        self, Y: Any, grid: Any, *, labels: Any = None, code: Any = None, decoding: str = "square"
    ) -> RidgeTable:
        """Every figure for every ridge of the grid, in ascending order.

        `labels` (class indices) and `code`, whose columns Y holds, give the 0/1 error.
        """
        ridges = np.unique([check_ridge(ridge) for ridge in np.atleast_1d(grid)])
        problem = full_problem(
            self.problem.X, Y, self.problem.kernel, self.problem.spread(self.problem.weight)
        )
        targets, weight = problem.targets, problem.weight
        classes = coded_classes(labels, code, decoding, problem.Y.shape)
        classes = None if classes is None else classes.of(problem.rows)
        df = self.degrees_of_freedom(ridges)
        free = 1.0 - df / problem.size
        share = weight / weight.sum()
        loo, train, gcv, error = (np.empty(ridges.size) for _ in range(4))
        at_once = max(STRIPE // targets.size, 1)
        for begin in range(0, ridges.size, at_once):
            part = slice(begin, begin + at_once)
            _, fitted, left, _ = self._scan(targets, ridges[part])
            squares = ((fitted - targets) ** 2).sum(axis=2)
            train[part] = squares @ share
            with np.errstate(divide="ignore", invalid="ignore"):
                gcv[part] = squares @ weight / problem.size / free[part] ** 2
            loo[part] = ((left - targets) ** 2).sum(axis=2) @ share
            if classes is not None:
                error[part] = [share @ classes.is_wrong(f) for f in left]
        return RidgeTable(ridges, loo, gcv, df, train, None if classes is None else error)

    def choose_ridge(
        self,
        Y: Any = None,
        grid: Any = None,
        criterion: str = "loo",
        *,
        labels: Any = None,
        code: Any = None,
        decoding: str = "square",
    ) -> RidgeChoice:
        """The ridge of least "loo" (squared leave-one-out error), "gcv" or "error" (0/1).

        Without a grid, the default one is refined twice between the neighbours of its minimum. Ties
        in "error" go to the smaller "loo"; other ties to the larger ridge. Y may be left out where
        `labels` and `code` (without zeros) are given.
        """
        check_criterion(criterion, labels)
        if Y is None:
            if labels is None or code is None or not np.all(code):
                raise SettingsError("give targets, or labels and a code without zeros")
            Y = np.asarray(code, dtype=np.float64)[np.asarray(labels)]
        options = {"labels": labels, "code": code, "decoding": decoding}
        table = self.table(Y, self.default_grid() if grid is None else grid, **options)
        best = table.best(criterion)
        for _ in range(REFINED_ROUNDS if grid is None else 0):
            low = table.ridge[max(best - 1, 0)]
            high = table.ridge[min(best + 1, table.ridge.size - 1)]
            if low < high:
                between = np.geomspace(low, high, REFINED_POINTS)[1:-1]
                # The middle is the best again, up to rounding: as its own neighbour it would halve
                # the range of the next round, on the side that the last bit says.
                between = between[np.abs(between / table.ridge[best] - 1.0) > SAME_RIDGE]
                table = table.merged(self.table(Y, between, **options))
                best = table.best(criterion)
        at_edge = best in (0, table.ridge.size - 1)
        return RidgeChoice(float(table.ridge[best]), table, best, criterion, at_edge)
