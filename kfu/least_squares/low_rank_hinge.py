"""The support vector machine under K̃: hinge loss on the features of m centres.

    min_w,b  ½‖w‖² + Σ_i C_i (1 − y_i (w·φ(x_i) + b))₊,   φ(x) = L⁻¹k_m(x),  K̃ = ΦΦᵀ

is a linear machine over the rows of Φ (n × m numbers, in memory). The linear solver
(kfu.solvers.linear) gives α with a certified gap for the low-rank problem, w = Φᵀ(y∘α), and the
machine is Σ c_j K(z_j, x) + b with c = L⁻ᵀw, that is K_mm c = K_mℓ(y∘α) (Rifkin 2002, eq 3.121).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import LowRankFit, low_rank_problem
from kfu.least_squares.memory import require_memory
from kfu.least_squares.whitening import DTYPES, Whitening, centres_of, points_of, row_blocks
from kfu.solvers.dual import DualProblem, Solution
from kfu.solvers.linear import solve_linear
from kfu.solvers.settings import SolverSettings


@dataclass(frozen=True)
class HingeMachines:
    """The fit by the centres, and for each machine the rows it saw and its solution over them."""

    fit: LowRankFit
    seen: list[np.ndarray]
    solutions: list[Solution]

    def over_rows(self) -> np.ndarray:
        """y∘α of every row and machine (n, t): the expansion to be tested with K itself."""
        coef = np.zeros((self.fit.info["n"], len(self.solutions)))
        for k, (rows, solution) in enumerate(zip(self.seen, self.solutions, strict=True)):
            coef[rows, k] = solution.beta
        return coef


def low_rank_hinge(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    cost: float = 1.0,
    **options: Any,
) -> LowRankFit:
    """The fit of `hinge_machines`, whose arguments these are."""
    return hinge_machines(X, Y, kernel, rows, cost, **options).fit


def hinge_machines(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    cost: float = 1.0,
    *,
    weight: Any = None,
    bias: bool = True,
    settings: SolverSettings | None = None,
    precision: str = "float64",
    block: int = 0,
) -> HingeMachines:
    """One machine for each column of Y: +1, −1, or 0 for rows that it does not see.

    C_i = cost · weight_i. `info["machines"]` has the solver's figures for each: status, objective,
    duality_gap and kkt_gap of the low-rank problem, numbers of support vectors. `fit.ridge` is
    1/(2 cost), λℓ in the terms of the square loss.
    """
    if not (cost > 0.0 and np.isfinite(cost)):
        raise SettingsError(f"cost is {cost:g}; it has to be a positive number")
    settings = settings or SolverSettings()
    problem = low_rank_problem(X, Y, kernel, rows, weight)
    X, Y, kernel, rows = problem.X, problem.Y, problem.kernel, problem.rows
    n = problem.n
    if not np.isin(Y, (-1.0, 0.0, 1.0)).all():
        found = f"a target of {Y[~np.isin(Y, (-1.0, 0.0, 1.0))][0]:g}"
        raise DataError("data", None, found, "targets of the hinge loss are +1, −1 or 0")
    begin = time.perf_counter()
    whitening = Whitening(centres_of(X, rows, kernel), kernel, precision, settings.n_threads)
    size = float(n) * whitening.rank * np.dtype(DTYPES[precision]).itemsize
    require_memory(size, f"{whitening.rank} features of {n} rows", "take fewer centres")
    features = np.empty((n, whitening.rank), dtype=DTYPES[precision])
    for part in row_blocks(n, len(rows), block):
        features[part] = whitening.features(points_of(X, part, rows, kernel))
    seconds = {"features": time.perf_counter() - begin}
    costs = np.full(n, cost) if problem.weight is None else cost * problem.weight
    w = np.zeros((whitening.rank, Y.shape[1]))
    offset = np.zeros(Y.shape[1])
    seen = [np.flatnonzero((Y[:, k] != 0.0) & (costs > 0.0)) for k in range(Y.shape[1])]
    solutions = []
    for k, trained_on in enumerate(seen):
        w[:, k], solution = _machine(features, Y[:, k], trained_on, costs, bias, settings, k)
        offset[k] = solution.bias if bias else 0.0
        solutions.append(solution)
    seconds["solve"] = time.perf_counter() - begin - seconds["features"]
    info = {
        "method": "low-rank hinge",
        "n": n,
        "m": len(rows),
        "rank": whitening.rank,
        "cost": cost,
        "precision": precision,
        "bytes": size,
        "machines": [solution.info.to_dict() for solution in solutions],
        "seconds": seconds,
    }
    fit = LowRankFit(rows, whitening.coefficients(w), offset, 0.5 / cost, info, kernel)
    return HingeMachines(fit, seen, solutions)


def _machine(
    features: np.ndarray,
    y: np.ndarray,
    seen: np.ndarray,
    costs: np.ndarray,
    bias: bool,
    settings: SolverSettings,
    k: int,
) -> tuple[np.ndarray, Solution]:
    """w and the solution of one machine over the rows it sees."""
    if len(np.unique(y[seen])) < 2:
        found = f"machine {k + 1} sees rows of one sign only"
        raise DataError("data", None, found, "give it rows of both")
    part = features if len(seen) == len(y) else features[seen]
    count = len(seen)
    problem = DualProblem(
        signs=y[seen],
        linear=np.full(count, -1.0),
        lower=np.zeros(count),
        upper=costs[seen],
        points=np.arange(count),
        has_equality=bias,
    )
    solution = solve_linear(problem, part, settings)
    w = part.T.astype(np.float64, copy=False) @ solution.beta
    return w, solution
