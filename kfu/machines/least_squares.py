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
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KERNELS
from kfu.least_squares.bagging import bagged
from kfu.least_squares.bounds import (
    binary_loo_bound,
    code_loo_bound,
    ova_loo_bound,
    stability_bound,
)
from kfu.least_squares.centres import choose_centres
from kfu.least_squares.falkon import falkon
from kfu.least_squares.full import solve_full
from kfu.least_squares.leave_one_out import solve_code
from kfu.least_squares.linear_rls import LinearSolution, decompose_linear, solve_linear_rls
from kfu.least_squares.low_rank_fit import LowRankFit
from kfu.least_squares.rectangle import rectangle
from kfu.least_squares.spectrum import Spectrum
from kfu.least_squares.subset_methods import nystrom, subset
from kfu.machines.task import TrainingTask, rows_of
from kfu.model import Model
from kfu.multiclass.decoding import decode

BOUNDED_DECODINGS = ("argmax", "hinge", "square", "exponential", "hamming")
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

    # ---- linear kernel -------------------------------------------------------------------------

    def is_linear(self) -> bool:
        kernel = self.task.kernel
        takes_all = self.task.code is None or bool(np.all(self.task.code != 0))
        return kernel.name == "linear" and kernel.weight == 1.0 and takes_all

    def linear(self) -> LinearSolution:
        """f as a vector of weights: by the smaller side of X, or conjugate gradients."""
        ridge = self.asked_ridge()
        common: dict[str, Any] = {"weight": self.weight, "intercept": self.task.has_free_bias}
        smaller = min(self.n_rows, self.task.X.shape[1])
        if ridge is None and smaller <= LARGEST_SPECTRUM:
            spectrum = decompose_linear(self.task.X, self.targets, **common)
            table = spectrum.table(self.linear_grid())
            best = int(np.argmin(table.loo))
            ridge = float(table.ridge[best])
            self.facts |= {
                "gcv": float(table.gcv[best]),
                "degrees_of_freedom": float(table.df[best]),
            }
        elif ridge is None:
            ridge = self.usual_ridge("with so many rows and features the linear kernel")
        wants_loo = smaller <= LARGEST_SPECTRUM
        found = solve_linear_rls(
            self.task.X, self.targets, ridge, loo=wants_loo, threads=self.threads, **common
        )
        self.facts["ridge"] = ridge
        self.take_info(found.info)
        if found.loo_residuals is not None:
            self.loo = self.targets - found.loo_residuals
        return found

    def linear_grid(self) -> np.ndarray:
        """Ridges relative to the mean squared norm of the rows."""
        X = self.task.X
        squares = X.multiply(X) if sp.issparse(X) else np.square(X, dtype=np.float64)
        scale = float(squares.sum() / X.shape[0]) or 1.0
        return scale * 10.0 ** np.arange(-5.0, 5.01, 0.25)

    def linear_model(self) -> Model:
        """The model of weights: an expansion over the unit vectors, not over the rows."""
        found = self.linear()
        d = self.task.X.shape[1]
        self.judge_left_out()
        residual = self.targets - found.fitted
        weight = self.task.weights[:, None]
        value = float((weight * residual**2).sum())
        value += self.facts["ridge"] * float((found.weights**2).sum())
        unit = sp.identity(d, format="csr", dtype=np.float64)
        n_support = np.zeros(len(self.task.classes), dtype=np.int64)
        return self.assembled(
            support=np.full(d, -1),
            vectors=unit,
            coef=found.weights,
            bias=found.bias,
            value=value,
            n_support=n_support,
        )

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
        self.bound(found.coef, found.fitted, found.diagonal)
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
        self.facts["ridge"] = choice.ridge
        self.loo = found.loo
        self.take_info(found.info)
        self.bound(found.coef, found.fitted, found.diagonal)
        table = choice.table
        self.facts |= {
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

    def usual_ridge(self, method: str = "") -> float:
        method = method or self.task.options["approximation"]
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
        if method == "none" and self.is_linear():
            return self.linear_model()
        rows, coef, bias = self.full() if method == "none" else self.low_rank(method)
        self.judge_left_out()
        used = np.flatnonzero(np.any(coef != 0.0, axis=1))
        order = used
        if task.labels is not None:
            order = used[np.argsort(task.labels[rows[used]], kind="stable")]
        support = rows[order]
        value = None
        if method == "none":  # ridge Σ c (y − b) at the minimum, by the residuals
            value = self.facts["ridge"] * float(np.sum(coef * (self.targets[rows] - bias)))
        n_support = np.zeros(0, dtype=np.int64)
        if task.labels is not None:
            n_support = np.bincount(task.labels[support], minlength=len(task.classes))
        return self.assembled(
            support=support,
            vectors=None if task.kernel.is_precomputed else rows_of(task.X, support),
            coef=np.ascontiguousarray(coef[order].T),
            bias=bias,
            value=value,
            n_support=n_support,
        )

    def assembled(
        self,
        *,
        support: np.ndarray,
        vectors: Any,
        coef: np.ndarray,
        bias: np.ndarray,
        value: float | None,
        n_support: np.ndarray,
    ) -> Model:
        task = self.task
        info = {
            "status": "converged",
            "objective": value,
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
            classes=task.classes,
            n_features=task.X.shape[1],
            support=support,
            support_vectors=vectors,
            coef=coef,
            bias=bias,
            code=task.code if task.code is not None else np.zeros((0, 1)),
            decoding=task.decoding if task.labels is not None else "votes",
            settings=task.described(),
            info=info,
            n_support=n_support,
        )
        model.loo = self.loo
        return model

    def bound(self, coef: np.ndarray, fitted: np.ndarray, diagonal: np.ndarray) -> None:
        """Bounds on the leave-one-out errors (Rifkin 2002, 3.3.3 and 4.6) and, for one machine of
        ±1 or numbers, the stability bound on the squared risk; where their conditions hold."""
        task = self.task
        if task.has_free_bias or not all(
            KERNELS[leaf.name].is_psd for leaf in task.kernel.leaves()
        ):
            return
        rows = task.weights > 0
        is_bounded = coef.shape[1] == 1 or task.decoding in BOUNDED_DECODINGS
        if task.labels is not None and is_bounded:
            assert task.code is not None
            parts = (fitted[rows], coef[rows], diagonal[rows])
            if coef.shape[1] == 1:
                possible = binary_loo_bound(self.targets[rows], *parts)
            elif task.decoding == "argmax":
                possible = ova_loo_bound(task.labels[rows], *parts)
            else:
                possible = code_loo_bound(task.labels[rows], task.code, *parts, task.decoding)
            share = task.row_weights[rows]
            self.facts["loo_error_bound"] = float(np.average(possible, weights=share))
        if coef.shape[1] == 1 and self.weight is None:
            kappa = float(np.sqrt(np.max(diagonal, initial=0.0)))
            largest = float(np.max(np.abs(self.targets)))
            if kappa > 0 and largest > 0:
                risk = float(np.mean((self.targets - fitted) ** 2))
                found = stability_bound(
                    risk, self.facts["ridge"], self.n_rows, kappa, target_bound=largest
                )
                self.facts["stability_beta"] = found.beta
                self.facts["stability_bound"] = found.value

    def judge_left_out(self) -> None:
        """The figures of the leave-one-out outputs, where there are any."""
        if self.loo is None:
            return
        task, weight = self.task, self.task.row_weights
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
