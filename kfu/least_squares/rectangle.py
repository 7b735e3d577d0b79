"""`rectangle`: all rows, m centres (Rifkin 2002, section 3.7.2; "subset of regressors" elsewhere).

    (K_mℓ W K_ℓm + ridge K_mm) c = K_mℓ W Y

fits every row with the m functions K(z_j, ·), against the norm of the full space. It is full
regularised least squares under K̃ = K_ℓm K_mm⁻¹ K_mℓ; with all rows as centres it is that under K.
The rows pass in blocks (kfu.least_squares.normal_equations), once to fit and once more if the ridge
is to be chosen by exact leave-one-out outputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import (
    LowRankFit,
    LowRankProblem,
    checked_data,
    checked_ridges,
    checked_rows,
    checked_weight,
    low_rank_problem,
)
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.ridge_choice import (
    CodedClasses,
    best_ridge,
    check_criterion,
    coded_classes,
)
from kfu.least_squares.ridge_system import LeftOut
from kfu.least_squares.whitening import (
    Whitening,
    centres_of,
    diagonal_of,
    points_of,
    row_blocks,
)

Watch = Callable[[slice, LeftOut], None]


def rectangle(
    X: Any,
    Y: Any,
    kernel: KernelSpec,
    rows: Any,
    ridge: float | Sequence[float],
    *,
    weight: Any = None,
    bias: bool = False,
    precision: str = "float64",
    form: str = "auto",
    threads: int = 0,
    block: int = 0,
    loo: bool = False,
    watch: Watch | None = None,
    means: np.ndarray | None = None,
    criterion: str = "loo",
    labels: Any = None,
    code: Any = None,
    decoding: str = "square",
) -> LowRankFit:
    """Fit the rows of X to Y (n, t) with the centres `rows`, or `means`: vectors that are none of
    the rows, one in place of each of `rows`; the fit then has no rows.

    Of several ridges the one with the least mean square of leave-one-out residuals is taken; `info`
    then has `loo_square`, the mean for each ridge, as it has with `loo` for a single one. With
    `labels` (class indices) and `code`, whose columns Y holds, it also has `loo_error`, the share
    of wrong classes, by which the ridge is chosen if the criterion is "error". `block` is the
    number of rows at a time (0: by itself); `watch(rows, left_out)` is shown each block of them
    when leave-one-out outputs are computed. `trace_portion` is Σ w K̃_ii / Σ w K_ii.
    """
    check_criterion(criterion, labels, ("loo", "error"))
    ridges = checked_ridges(ridge)
    problem = low_rank_problem(X, Y, kernel, rows, weight)
    classes = coded_classes(labels, code, decoding, problem.Y.shape)
    sums = summed(problem, precision, form, threads, block, means=means)
    chosen, figures = 0, {}
    if loo or len(ridges) > 1:
        begin = time.perf_counter()
        squares, errors = loo_figures(
            sums, problem, ridges, classes, bias=bias, block=block, watch=watch
        )
        chosen = best_ridge(ridges, criterion, loo=squares, error=errors)
        figures = {"ridges": ridges, "loo_square": squares.tolist()}
        if errors is not None:
            figures["loo_error"] = errors.tolist()
        sums.seconds["leave_one_out"] = time.perf_counter() - begin
    fit = sums.solve(ridges, bias=bias)[chosen]
    fit.rows = problem.rows if means is None else None
    fit.info |= figures
    fit.info["trace_portion"] = portion(sums, problem, threads, block)
    return fit


def summed(
    problem: LowRankProblem,
    precision: str,
    form: str = "auto",
    threads: int = 0,
    block: int = 0,
    means: np.ndarray | None = None,
) -> NormalEquations:
    """The normal equations of all rows of X, in blocks."""
    X, kernel, rows = problem.X, problem.kernel, problem.rows
    centres = centres_of(X, rows, kernel) if means is None else checked_means(means, problem)
    sums = NormalEquations(centres, kernel, problem.Y.shape[1], precision, threads, form=form)
    for part in row_blocks(problem.n, len(rows), block):
        weight = None if problem.weight is None else problem.weight[part]
        sums.add(points_of(X, part, rows, kernel), problem.Y[part], weight)
    return sums


def checked_means(means: Any, problem: LowRankProblem) -> np.ndarray:
    means = np.asarray(means, dtype=np.float64)
    wanted = (len(problem.rows), problem.X.shape[1])
    if problem.kernel.is_precomputed or means.shape != wanted or not np.isfinite(means).all():
        raise SettingsError(f"centres of shape {means.shape}; finite vectors are needed, {wanted}")
    return means


def loo_figures(
    sums: NormalEquations,
    problem: LowRankProblem,
    ridges: list[float],
    classes: CodedClasses | None = None,
    *,
    bias: bool = False,
    block: int = 0,
    watch: Watch | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """For each ridge the weighted mean over rows and outputs of (y − f^(−i))², and with classes the
    weighted share of rows whose f^(−i) decides for a wrong one."""
    squares, errors = np.zeros(len(ridges)), np.zeros(len(ridges))
    for part in row_blocks(problem.n, len(problem.rows), block):
        w = None if problem.weight is None else problem.weight[part]
        points = points_of(problem.X, part, problem.rows, problem.kernel)
        Y = problem.Y[part]
        left = sums.left_out(points, Y, ridges, w, bias=bias)
        if watch is not None:
            watch(part, left)
        share = np.ones(len(Y)) if w is None else w
        squares += np.square(Y - left.outputs).mean(axis=2) @ share
        if classes is not None:
            mine = classes.of(part)
            errors += [float(share @ mine.is_wrong(outputs)) for outputs in left.outputs]
    return squares / sums.total, None if classes is None else errors / sums.total


def portion(
    sums: NormalEquations, problem: LowRankProblem, threads: int = 0, block: int = 0
) -> float:
    """tr(WK̃)/tr(WK): how much of the points' squared norm the centres span."""
    total = 0.0
    for part in row_blocks(problem.n, sums.whitening.m, block):
        diagonal = diagonal_of(problem.X, part, problem.kernel, threads)
        weight = problem.weight
        total += float(diagonal.sum() if weight is None else diagonal @ weight[part])
    if total <= 0.0:
        raise DataError("data", None, "K(x, x) is 0 for every row", "choose another kernel")
    return sums.trace() / total


def trace_portion(
    X: Any,
    kernel: KernelSpec,
    rows: Any,
    *,
    weight: Any = None,
    precision: str = "float64",
    threads: int = 0,
    block: int = 0,
) -> float:
    """tr(WK̃)/tr(WK) of the centres `rows`, without a fit: Σ w ‖φ(x)‖² over Σ w K(x, x)."""
    X, kernel = checked_data(X, kernel)
    rows = checked_rows(rows, X.shape[0])
    weight = checked_weight(weight, X.shape[0])
    whitening = Whitening(centres_of(X, rows, kernel), kernel, precision, threads)
    spanned = total = 0.0
    for part in row_blocks(X.shape[0], len(rows), block):
        features = whitening.features(points_of(X, part, rows, kernel))
        squares = np.einsum("ij,ij->i", features, features, dtype=np.float64)
        diagonal = diagonal_of(X, part, kernel, threads)
        w = np.ones(len(squares)) if weight is None else weight[part]
        spanned += float(squares @ w)
        total += float(diagonal @ w)
    if total <= 0.0:
        raise DataError("data", None, "K(x, x) is 0 for every row", "choose another kernel")
    return spanned / total
