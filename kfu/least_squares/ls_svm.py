"""Least-squares machines with a free bias: the LS-SVM, its pruning, and the proximal rival.

LS-SVM (Suykens and Vandewalle 1999): (K + ridge W⁻¹) c + b 1 = y, 1ᵀc = 0. Every row gets a
coefficient. Pruning (Suykens, Lukas and Vandewalle 2000) makes it sparse: the rows of smallest |c|,
those that the machine fits best, are dropped by shares and the rest trained again, as long as the
error does not decline. The error is that of exact leave-one-out *over all rows*: a dropped row is
not trained on, so its plain output is its leave-one-out output. (Over the kept rows alone it would
be biased, for those are the hard ones.) Or it is that of validation rows. As |c_i| is the residual
over ridge/w_i, pruning keeps the rows that fit worst: outliers gain influence.

PSVM (Fung and Mangasarian 2001), a documented rival: the nonlinear proximal machine penalises cᵀc
and b² instead of cᵀKc,

    min_{c,b} Σ_i w_i (Σ_j c_j K_ij + b − y_i)² + ridge (‖c‖² + b²),

which is ridge regression on the basis functions K(x_j, ·) and 1. It is no regularisation in the
space of the kernel: c changes when a row is doubled. By the usual identity it equals the machine of
the matrix K² + 1, with c = K a and b = Σ a of its coefficients a; leave-one-out outputs by the same
identity are exact for *basis functions held fixed*, which still include that of the row left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.full import FullSolution, solve_full
from kfu.least_squares.full_problem import check_ridge, full_problem
from kfu.least_squares.gram_matrix import gram_matrix, outputs_at
from kfu.least_squares.memory import require_memory
from kfu.solvers.blas_threads import blas_threads

__all__ = ["PrunedSolution", "PruningRound", "prune_ls_svm", "solve_ls_svm", "solve_psvm"]

FEWEST_KEPT = 2
MEASURES = ("squared", "error")


@dataclass(frozen=True)
class PruningRound:
    """One machine on the way: how many rows it keeps and its error."""

    kept: int
    error: float


@dataclass(frozen=True)
class PrunedSolution:
    """The last machine whose error did not decline. coef is 0 at dropped rows; `kept` are the
    others; `rounds` has every machine trained, the refused last one included."""

    coef: np.ndarray
    bias: np.ndarray
    fitted: np.ndarray
    loo: np.ndarray | None
    kept: np.ndarray
    rounds: list[PruningRound]
    info: dict[str, Any] = field(default_factory=dict)


def solve_ls_svm(X: Any, Y: Any, kernel: KernelSpec, ridge: float, **options: Any) -> FullSolution:
    """`solve_full` with a free bias."""
    return solve_full(X, Y, kernel, ridge, bias=True, **options)


def prune_ls_svm(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    share: float = 0.05,
    fewest: int = FEWEST_KEPT,
    allowance: float = 0.0,
    measure: str = "squared",
    validation: tuple[Any, Any] | None = None,
    weight: Any = None,
    threads: int = 0,
) -> PrunedSolution:
    """Drop `share` of the rows left (one at least), train again, until the error declines.

    A round is accepted while its error is at most (1 + allowance) times the least so far. measure:
    "squared", or "error" for targets ±1 (wrong sign; 0 counts as negative). validation: rows and
    targets to judge by, instead of leave-one-out. Each round costs a factorisation of the rows
    left, so all of them at most 1 / (1 − (1 − share)³) times the first. The error is weighted by
    `weight`; rows of weight 0 are neither trained on nor judged.
    """
    if not 0.0 < share < 1.0:
        raise SettingsError(f"share is {share!r}; give a number between 0 and 1")
    if fewest < 1:
        raise SettingsError(f"fewest is {fewest!r}; at least one row has to stay")
    if not (np.isfinite(allowance) and allowance >= 0.0):
        raise SettingsError(f"allowance is {allowance!r}; give a finite number from 0")
    if measure not in MEASURES:
        raise SettingsError(f"measure is {measure!r}; choose {', '.join(MEASURES)}")
    problem = full_problem(X, Y, kernel, weight, check_ridge(ridge))
    judge = _judge(problem.X, problem.Y, problem.kernel, validation, measure, threads)
    weights = problem.spread(problem.weight)
    current, judged = weights.copy(), weights / weights.sum()
    accepted: FullSolution | None = None
    kept = problem.rows
    rounds: list[PruningRound] = []
    least = np.inf
    while True:
        solution = solve_full(
            problem.X,
            problem.Y,
            problem.kernel,
            ridge,
            weight=current,
            bias=True,
            threads=threads,
            precision="float64",
            loo=validation is None,
        )
        rows = np.flatnonzero(current)
        error = judge(solution, judged)
        rounds.append(PruningRound(int(rows.size), error))
        if accepted is not None and not error <= (1.0 + allowance) * least:
            break
        accepted, kept = solution, rows
        least = min(least, error)
        dropped = min(max(int(share * rows.size), 1), rows.size - fewest)
        if dropped < 1:
            break
        size = np.linalg.norm(solution.coef[rows], axis=1)
        current[rows[np.argsort(size, kind="stable")[:dropped]]] = 0.0
    info = {**accepted.info, "method": "pruned ls-svm", "rounds": len(rounds), "kept": kept.size}
    return PrunedSolution(
        accepted.coef, accepted.bias, accepted.fitted, accepted.loo, kept, rounds, info
    )


def _judge(
    X: Any,
    Y: np.ndarray,
    kernel: KernelSpec,
    validation: tuple[Any, Any] | None,
    measure: str,
    threads: int,
) -> Any:
    """A function (solution, weights of the rows) → error."""

    def mean(outputs: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> float:
        if measure == "error":
            wrong = (outputs > 0) != (targets > 0)
            return float(weight @ wrong.mean(axis=1))
        return float(weight @ ((outputs - targets) ** 2).sum(axis=1))

    if measure == "error" and not np.isin(Y, (-1.0, 1.0)).all():
        raise SettingsError("measure error needs targets -1 and 1; take squared")
    if validation is None:
        return lambda solution, weight: mean(solution.loo, Y, weight)
    Z, targets = validation
    targets = np.asarray(targets, dtype=np.float64).reshape(-1, Y.shape[1])
    if Z.shape[0] != targets.shape[0] or Z.shape[0] == 0:
        found = f"{Z.shape[0]} validation rows and {targets.shape[0]} targets"
        raise DataError("validation", None, found, "give a target for each of at least one row")
    gram = Gram(X, kernel, "float64", threads)
    even = np.full(len(targets), 1.0 / len(targets))
    return lambda solution, _: mean(
        gram.decision(None, solution.coef, Z) + solution.bias, targets, even
    )


def solve_psvm(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    weight: Any = None,
    bias: bool = True,
    threads: int = 0,
    loo: bool = True,
) -> FullSolution:
    """The nonlinear proximal machine. Rows of weight 0 bring no basis function either.

    Memory 2n² float64 numbers. The diagonal of the result is that of K² (+ 1).
    """
    ridge = check_ridge(ridge)
    problem = full_problem(X, Y, kernel, weight, ridge)
    m = problem.size
    require_memory(
        16.5 * m * m,
        f"a proximal machine of {m} rows",
        "a low-rank method (--approximation rectangle) needs less",
    )
    with blas_threads(m, threads):
        gram = gram_matrix(
            problem.X, problem.kernel, problem.rows, precision="float64", threads=threads
        )
        K = gram.values
        square = scipy.linalg.blas.dsyrk(1.0, K, lower=0)
        for begin in range(0, m, 256):  # the other half, band by band
            end = min(begin + 256, m)
            square[end:, begin:end] = square[begin:end, end:].T
            corner = square[begin:end, begin:end]
            corner[:] = np.triu(corner) + np.triu(corner, 1).T
        if bias:
            square += 1.0
        inner = solve_full(
            square,
            problem.targets,
            KernelSpec.make("precomputed"),
            ridge,
            weight=problem.weight,
            threads=threads,
            precision="float64",
            loo=loo,
        )
        coef = K @ inner.coef
    b = inner.coef.sum(axis=0) if bias else np.zeros(coef.shape[1])
    fitted, diagonal = problem.spread(inner.fitted), problem.spread(inner.diagonal)
    outputs = None if inner.loo is None else problem.spread(inner.loo)
    others = problem.left_out
    if others.size:
        again = Gram(problem.X, problem.kernel, "float64", threads)
        fitted[others] = outputs_at(again, problem.rows, coef, others) + b
        if outputs is not None:
            outputs[others] = fitted[others]
    info = {**inner.info, "method": "psvm"}
    return FullSolution(problem.spread(coef), b, fitted, outputs, diagonal, info)
