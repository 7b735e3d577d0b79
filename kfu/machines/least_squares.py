"""Regularised least squares as machines: rls (regression) and rlsc (classification).

    min Σ w_i (f(x_i) − y_i)² + ridge ‖f‖²,   ridge = λℓ

`lam` gives λ, `ridge` the product; "auto" (the default) chooses it by exact leave-one-out outputs.
Classes are ±1 by any code, all columns from one factorisation (kfu.least_squares.leave_one_out).
Full kernel by default; `approximation` takes m centres instead (kfu.least_squares.rectangle and
its relatives). Without a bias, as Rifkin has it, unless one is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.least_squares.bagging import bagged
from kfu.least_squares.centres import choose_centres
from kfu.least_squares.falkon import falkon
from kfu.least_squares.full import solve_full
from kfu.least_squares.leave_one_out import solve_code
from kfu.least_squares.low_rank_fit import LowRankFit
from kfu.least_squares.rectangle import rectangle
from kfu.least_squares.spectrum import Spectrum
from kfu.least_squares.subset_methods import nystrom, subset
from kfu.machines.task import TrainingTask, rows_of
from kfu.model import Model
from kfu.multiclass.decoding import decode

LARGEST_SPECTRUM = 5000  # rows up to which the ridge is chosen by an eigendecomposition
USUAL_RIDGE = 1.0  # where it is not chosen
USUAL_CENTRES = 1000
RIDGE_STEPS = 10.0 ** np.arange(-6.0, 4.0)  # of the mean of K(x, x), for low rank


def train_rls(task: TrainingTask) -> Model:
    assert task.targets is not None
    return LeastSquares(task, task.targets[:, None]).model()


def train_rlsc(task: TrainingTask) -> Model:
    assert task.labels is not None
    assert task.code is not None
    return LeastSquares(task, task.code[task.labels].astype(np.float64)).model()


class LeastSquares:
    """One training: the ridge, the coefficients, and what leave-one-out says of them."""

    def __init__(self, task: TrainingTask, targets: np.ndarray) -> None:
        if task.checkpoint is not None or task.start is not None:
            raise SettingsError(f"machine {task.machine.name} takes no checkpoint or start model")
        if task.bias == "regularised":
            raise SettingsError("least squares has a free bias or none; leave the other out")
        if not np.any(task.weights > 0):
            raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
        self.task, self.targets = task, targets
        self.n_rows = int(np.count_nonzero(task.weights > 0))
        self.weight = None if np.all(task.weights == 1.0) else task.weights
        self.threads = task.settings.n_threads
        self.begin = time.perf_counter()
        self.warnings: list[str] = []
        self.facts: dict[str, Any] = {}
        self.loo: np.ndarray | None = None

    # ---- the ridge -----------------------------------------------------------------------------

    def asked_ridge(self) -> float | None:
        """λℓ as it was asked for, None for "auto"."""
        ridge, lam = self.task.options["ridge"], self.task.options["lam"]
        if ridge is not None and lam is not None:
            raise SettingsError("ridge and lambda both set the ridge; give one of them")
        if lam is not None and lam != "auto":
            return float(lam) * self.n_rows
        if ridge is not None and ridge != "auto":
            return float(ridge)
        return None

    # ---- full kernel ---------------------------------------------------------------------------

    def full(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, coefficients (n, t) and biases."""
        ridge = self.asked_ridge()
        takes_all = self.task.code is None or bool(np.all(self.task.code != 0))
        if ridge is None and takes_all and self.n_rows <= LARGEST_SPECTRUM:
            return self.by_spectrum()
        if ridge is None:
            ridge = USUAL_RIDGE
            self.warnings.append(
                f"the ridge is {ridge:g}: choosing it by leave-one-out takes an eigendecomposition "
                f"and codes without zeros, up to {LARGEST_SPECTRUM} rows; give --ridge or --lambda"
            )
        self.facts["ridge"] = ridge
        common = {**self.common(), "bias": self.task.has_free_bias}
        if self.task.code is None or takes_all:
            found: Any = solve_full(self.task.X, self.targets, self.task.kernel, ridge, **common)
        else:
            found = solve_code(
                self.task.X,
                self.task.labels,
                self.task.code,
                self.task.kernel,
                ridge,
                decoding=self.task.decoding,
                **common,
            )
        self.loo = found.loo
        self.take_info(found.info)
        return np.arange(self.task.n), found.coef, found.bias

    def by_spectrum(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        spectrum = Spectrum(
            self.task.X,
            self.task.kernel,
            weight=self.weight,
            bias=self.task.has_free_bias,
            threads=self.threads,
        )
        choice = spectrum.choose_ridge(self.targets)
        found = spectrum.solve(self.targets, choice.ridge)
        self.loo = found.loo
        self.take_info(found.info)
        table = choice.table
        self.facts |= {
            "ridge": choice.ridge,
            "gcv": float(table.gcv[choice.index]),
            "degrees_of_freedom": float(table.df[choice.index]),
            "path": {
                "ridge": table.ridge.tolist(),
                "loo": table.loo.tolist(),
                "gcv": table.gcv.tolist(),
            },
        }
        if choice.at_edge:
            self.warnings.append(
                f"the ridge chosen ({choice.ridge:.3g}) is at the end of the range that was tried"
            )
        return np.arange(self.task.n), found.coef, found.bias

    # ---- low rank ------------------------------------------------------------------------------

    def low_rank(self, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        task = self.task
        if task.code is not None and not np.all(task.code != 0):
            raise SettingsError(
                f"--approximation {method} trains every machine on the same rows; choose a code "
                "without zeros (ova, complete, dense)"
            )
        if task.has_free_bias and method not in BIASED:
            raise SettingsError(f"--approximation {method} has no free bias here; leave --bias out")
        m = task.options["centres"] or min(USUAL_CENTRES, self.n_rows)
        ridge = self.asked_ridge()
        if method == "bagging":
            fit = self.by_bagging(m, ridge)
        else:
            if m > self.n_rows:
                raise SettingsError(f"{m} centres of {self.n_rows} rows; give at most that many")
            centres = choose_centres(
                task.options["centres_by"],
                task.X,
                task.kernel,
                m,
                seed=task.seed,
                ridge=ridge or USUAL_RIDGE,
                **self.common(),
            )
            self.facts["centres"] = len(centres.rows)
            fit = LOW_RANK[method](self, centres.rows, ridge)
        self.facts["ridge"] = fit.ridge
        self.take_info(fit.info)
        assert fit.rows is not None
        return fit.rows, fit.coef, fit.bias

    def by_bagging(self, m: int, ridge: float | None) -> LowRankFit:
        return bagged(
            self.task.X,
            self.targets,
            self.task.kernel,
            m,
            ridge or self.usual_ridge(),
            seed=self.task.seed,
            **self.common(),
        )

    def common(self) -> dict[str, Any]:
        return {"weight": self.weight, "threads": self.threads}

    def problem(self, rows: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        return self.task.X, self.targets, self.task.kernel, rows

    def usual_ridge(self) -> float:
        method = self.task.options["approximation"]
        self.warnings.append(
            f"the ridge is {USUAL_RIDGE:g}: {method} has no leave-one-out outputs to choose it by; "
            "give --ridge or --lambda"
        )
        return USUAL_RIDGE

    def ridges(self, ridge: float | None) -> Any:
        if ridge is not None:
            return ridge
        from kfu._gram import Gram

        size = min(self.task.n, 1000)
        part = self.task.X[:size]
        scale = 1.0
        if not self.task.kernel.is_precomputed:
            scale = float(np.mean(Gram(part, self.task.kernel, "float64", 1).diagonal()))
        return (RIDGE_STEPS * (scale or 1.0)).tolist()

    # ---- the model -----------------------------------------------------------------------------

    def take_info(self, info: dict[str, Any]) -> None:
        plain = ("method", "precision", "residual", "condition", "trace_portion", "iterations")
        self.facts |= {name: info[name] for name in plain if name in info}
        if "loo_square" in info:
            self.facts["loo_mse"] = float(np.min(info["loo_square"]))

    def model(self) -> Model:
        task = self.task
        method = task.options["approximation"]
        rows, coef, bias = self.full() if method == "none" else self.low_rank(method)
        is_classifier = task.labels is not None
        self.judge_left_out()
        used = np.flatnonzero(np.any(coef != 0.0, axis=1))
        order = used
        if task.labels is not None:
            order = used[np.argsort(task.labels[rows[used]], kind="stable")]
        support = rows[order]
        y = self.targets[rows] - bias
        info = {
            "status": "converged",
            "objective": self.facts["ridge"] * float(np.sum(coef * y))
            if method == "none"
            else None,
            "n_sv": int(support.size),
            "n_usv": int(support.size),
            "bias": bias.tolist() if bias.size > 1 else float(bias[0]),
            "kkt_gap": None,
            "iterations": 0,
            "seconds": {"other": time.perf_counter() - self.begin},
            "warnings": self.warnings,
            **self.facts,
            "lambda": self.facts["ridge"] / self.n_rows,
        }
        model = Model(
            machine=task.machine.name,
            kernel=task.kernel,
            classes=task.classes if is_classifier else np.zeros(0),
            n_features=task.X.shape[1],
            support=support,
            support_vectors=None if task.kernel.is_precomputed else rows_of(task.X, support),
            coef=np.ascontiguousarray(coef[order].T),
            bias=bias,
            code=task.code if task.code is not None else np.zeros((0, 1)),
            decoding=task.decoding if is_classifier else "votes",
            settings=task.described(),
            info=info,
            n_support=np.bincount(task.labels[support], minlength=len(task.classes))
            if task.labels is not None
            else np.zeros(0),
        )
        model.loo = self.loo
        return model

    def judge_left_out(self) -> None:
        """The figures of the leave-one-out outputs, where there are any."""
        if self.loo is None:
            return
        task, weight = self.task, self.task.weights
        residual = (self.loo - self.targets) ** 2
        seen = np.ones_like(residual) if task.code is None else (self.targets != 0.0)
        share = weight[:, None] * seen
        if np.isfinite(residual).all():
            self.facts["loo_mse"] = float((residual * share).sum() / share.sum())
        if task.labels is not None and np.isfinite(self.loo).all():
            assert task.code is not None
            wrong = decode(self.loo, task.code, task.decoding) != task.labels
            self.facts["loo_error"] = float(np.average(wrong, weights=weight))


Fitter = Callable[[LeastSquares, np.ndarray, float | None], LowRankFit]


def _with_one_ridge(solve: Callable[..., LowRankFit], **facts: Any) -> Fitter:
    """`solve` at the ridge asked for, or at the usual one: it has no leave-one-out to choose by."""

    def fit(run: LeastSquares, rows: np.ndarray, ridge: float | None) -> LowRankFit:
        return solve(*run.problem(rows), ridge or run.usual_ridge(), **run.common(), **facts)

    return fit


def _rectangle(run: LeastSquares, rows: np.ndarray, ridge: float | None) -> LowRankFit:
    bias = run.task.has_free_bias
    return rectangle(*run.problem(rows), run.ridges(ridge), bias=bias, loo=True, **run.common())


LOW_RANK: dict[str, Fitter] = {
    "rectangle": _rectangle,
    "subset": _with_one_ridge(subset),
    "nystrom": _with_one_ridge(nystrom),
    "falkon": _with_one_ridge(falkon),
}
BIASED = frozenset({"rectangle"})  # those that take a free bias here
APPROXIMATIONS = ("none", *LOW_RANK, "bagging")
