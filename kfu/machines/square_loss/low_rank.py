"""Low rank: m centres in place of the full kernel matrix, by any of kfu.least_squares' methods.

`rectangle` has exact leave-one-out outputs (the centres kept), seen block by block: of every ridge
tried the 0/1 error, its bound under K̃ and the degrees of freedom are added up, and those of the one
chosen are told. They take longer than the training; with a ridge that is given they come when asked
for or cheap (kfu.least_squares.rectangle_cost), and the report says so where they did not. K̃ is
made from the rows, so that the stability bound does not hold for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.least_squares.bagging import bagged
from kfu.least_squares.centres import Centres, choose_centres
from kfu.least_squares.falkon import falkon
from kfu.least_squares.low_rank_fit import LowRankFit
from kfu.least_squares.rectangle import rectangle
from kfu.least_squares.rectangle_cost import RectangleSizes, is_left_out_cheap
from kfu.least_squares.ridge_system import LeftOut
from kfu.least_squares.subset_methods import nystrom, subset
from kfu.machines.square_loss.judged import has_bound, possible_errors
from kfu.machines.square_loss.run import (
    NOT_LEFT_OUT,
    USUAL_CENTRES,
    USUAL_RIDGE,
    Expansion,
    Run,
)
from kfu.multiclass.decoding import decode

RIDGE_STEPS = 10.0 ** np.arange(-6.0, 4.0)  # of the mean of K(x, x)


def checked_centres(run: Run) -> int:
    """The number of centres; SettingsError for what cannot be had with low rank."""
    task = run.task
    method = task.options["approximation"]
    run.refuse_zeros(f"--approximation {method}")
    if task.bias == "regularised" or (task.has_free_bias and method not in BIASED):
        raise SettingsError(f"--approximation {method} has no such bias; leave it out")
    for name in ("prune", "method"):
        if task.options[name] not in (None, "auto"):
            raise SettingsError(f"--{name} is for the full kernel; leave --approximation out")
    m = task.options["centres"] or min(USUAL_CENTRES, run.n_rows)
    if m > run.n_rows:
        raise SettingsError(f"{m} centres of {run.n_rows} rows; give at most that many")
    return int(m)


def low_rank(run: Run) -> Expansion:
    task = run.task
    method = task.options["approximation"]
    m = checked_centres(run)
    if method == "bagging":
        fit = by_bagging(run, m)
    else:
        centres = centres_of(run, method, m)
        run.facts["centres"] = len(centres.rows)
        fit = LOW_RANK[method](run, centres)
    run.facts["ridge"] = fit.ridge
    info = dict(fit.info)
    if method != "falkon":  # whose residual is that of the equations, not of the fit
        info["residual"] = info.get("equations_residual")
    run.take_info(info)
    if fit.rows is None:
        return Expansion(centres.rows, fit.coef, fit.bias, vectors=centres.means)
    return Expansion(fit.rows, fit.coef, fit.bias)


def centres_of(run: Run, method: str, m: int) -> Centres:
    task, by = run.task, run.task.options["centres_by"]
    if by == "kmeans" and method not in TAKES_MEANS:
        raise SettingsError(
            f"--centres-by kmeans gives means of rows, --approximation {method} needs rows; take "
            f"kmeans++, or --approximation {' or '.join(sorted(TAKES_MEANS))}"
        )
    return choose_centres(
        by,
        task.X,
        task.kernel,
        m,
        seed=task.seed,
        ridge=run.asked_ridge() or USUAL_RIDGE,
        labels=task.labels if by == "kmeans" else None,
        **run.common(),
    )


def by_bagging(run: Run, m: int) -> LowRankFit:
    task = run.task
    ridge = run.ridge_or_usual("bagging")
    return bagged(task.X, run.targets, task.kernel, m, ridge, seed=task.seed, **run.common())


def problem(run: Run, rows: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    return run.task.X, run.targets, run.task.kernel, rows


def tried_ridges(run: Run) -> list[float]:
    """The ridge asked for, or those to choose from."""
    asked = run.asked_ridge()
    if asked is not None:
        return [asked]
    from kfu._gram import Gram

    part = run.task.X[: min(run.task.n, 1000)]
    scale = 1.0
    if not run.task.kernel.is_precomputed:
        scale = float(np.mean(Gram(part, run.task.kernel, "float64", 1).diagonal()))
    return [float(ridge) for ridge in RIDGE_STEPS * (scale or 1.0)]


class LeftOutTally:
    """Sums over the blocks of a leave-one-out pass, for each ridge."""

    def __init__(self, run: Run, ridges: list[float]) -> None:
        self.run, self.ridges = run, ridges
        self.has_bound = has_bound(run)
        self.errors, self.possible, self.degrees = (np.zeros(len(ridges)) for _ in range(3))

    def __call__(self, part: slice, left: LeftOut) -> None:
        self.degrees += left.leverages.sum(axis=1)
        task = self.run.task
        if task.labels is None:
            return
        assert task.code is not None
        share, labels = task.row_weights[part], task.labels[part]
        trained = share * (task.weights[part] > 0)
        weight, Y = task.weights[part, None], self.run.targets[part]
        for k, ridge in enumerate(self.ridges):
            wrong = decode(left.outputs[k], task.code, task.decoding) != labels
            self.errors[k] += float(share @ wrong)
            if self.has_bound:
                coef = weight * (Y - left.fitted[k]) / ridge
                rows = possible_errors(self.run, part, left.fitted[k], coef, left.squares)
                self.possible[k] += float(trained @ rows)

    def tell(self, fit: LowRankFit) -> None:
        """Sets the figures of the ridge of the fit."""
        run, k = self.run, self.ridges.index(fit.ridge)
        n, degrees = run.n_rows, float(self.degrees[k])
        run.facts["degrees_of_freedom"] = degrees
        if degrees < n:
            squares = float(np.sum(fit.info["residual"]))
            run.facts["gcv"] = squares / n / (1.0 - degrees / n) ** 2
        run.facts["loo_mse"] = float(fit.info["loo_square"][k])
        if run.task.labels is None:
            return
        total = run.task.row_weights.sum()
        run.facts["loo_error"] = float(self.errors[k] / total)
        if self.has_bound:
            counted = run.task.row_weights[run.task.weights > 0].sum()
            run.facts["loo_error_bound"] = float(self.possible[k] / counted)


def is_left_out(run: Run, m: int) -> bool:
    """Whether `rectangle` with m centres computes leave-one-out outputs."""
    if run.asked_ridge() is None:
        return True
    if run.when_left_out != "auto":
        return run.when_left_out == "always"
    n, d, t = run.n_rows, run.task.X.shape[1], run.targets.shape[1]
    return is_left_out_cheap(RectangleSizes(n, d, m, m, t))


def _rectangle(run: Run, centres: Centres) -> LowRankFit:
    ridges = tried_ridges(run)
    has_left_out = is_left_out(run, len(centres.rows))
    tally = LeftOutTally(run, ridges)
    task = run.task
    fit = rectangle(
        task.X,
        run.targets,
        task.kernel,
        centres.rows,
        ridges,
        bias=task.has_free_bias,
        loo=has_left_out,
        watch=tally,
        means=centres.means,
        **run.criterion(),
        **run.common(),
    )
    if has_left_out:
        tally.tell(fit)
    else:
        run.facts["loo"] = NOT_LEFT_OUT
    if run.asked_ridge() is None:
        sums = run.targets.shape[1] * np.asarray(fit.info["loo_square"])
        run.tell_choice(ridges, loo=sums, error=fit.info.get("loo_error"))
    if len(ridges) > 1 and fit.ridge in (ridges[0], ridges[-1]):
        run.warnings.append(f"the ridge chosen ({fit.ridge:g}) is at the end of those tried")
    return fit


Fitter = Callable[[Run, Centres], LowRankFit]


def _with_one_ridge(name: str, solve: Callable[..., LowRankFit]) -> Fitter:
    """`solve` at the ridge asked for, or at the usual one: it has no leave-one-out to choose by."""

    def fit(run: Run, centres: Centres) -> LowRankFit:
        return solve(*problem(run, centres.rows), run.ridge_or_usual(name), **run.common())

    return fit


LOW_RANK: dict[str, Fitter] = {
    "rectangle": _rectangle,
    "subset": _with_one_ridge("subset", subset),
    "nystrom": _with_one_ridge("nystrom", nystrom),
    "falkon": _with_one_ridge("falkon", falkon),
}
BIASED = frozenset({"rectangle"})  # those that take a free bias here
TAKES_MEANS = frozenset({"rectangle"})  # those whose centres need not be rows
APPROXIMATIONS = ("none", *LOW_RANK, "bagging")
