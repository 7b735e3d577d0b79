"""The full kernel: Cholesky's factor, conjugate gradients, pruning, and the proximal rival.

`cholesky`   the matrix in memory, exact leave-one-out; without a ridge its spectrum chooses one
`cg`         products alone, for matrices larger than the memory (kfu.least_squares.iterative)
pruned       the free-bias machine on ever fewer rows (kfu.least_squares.ls_svm)
proximal     --regularised-bias: ‖c‖² + b² penalised in place of cᵀKc (the same)

`auto` takes the matrix where it fits and conjugate gradients where it does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.least_squares.full import solve_full
from kfu.least_squares.gram_matrix import gram_bytes
from kfu.least_squares.iterative import solve_iterative, solve_iterative_with_bias
from kfu.least_squares.leave_one_out import solve_code
from kfu.least_squares.ls_svm import prune_ls_svm, solve_psvm
from kfu.least_squares.memory import available_bytes, readable_bytes
from kfu.least_squares.preconditioners import chosen_rank
from kfu.least_squares.spectrum import Spectrum
from kfu.machines.square_loss.judged import bound, cross_validated
from kfu.machines.square_loss.linear import cg_limits
from kfu.machines.square_loss.run import NOT_LEFT_OUT, Expansion, Run
from kfu.solvers.blas_threads import blas_threads

LARGEST_SPECTRUM = 5000  # rows up to which the ridge is chosen by an eigendecomposition
METHODS = ("auto", "cholesky", "cg")
REGRESSION_ALLOWANCE = 0.05  # by which the squared error of a regression may grow in pruning


def full(run: Run) -> Expansion:
    if run.method not in METHODS:
        raise SettingsError(
            f"--method {run.method} is for the linear kernel; choose {', '.join(METHODS)}"
        )
    if run.task.options["prune"] is not None:
        return pruned(run)
    if run.task.bias == "regularised":
        return proximal(run)
    if chosen_method(run) == "cg":
        return by_conjugate_gradients(run)
    ridge = run.asked_ridge()
    if ridge is None and run.takes_all and run.n_rows <= LARGEST_SPECTRUM:
        return by_spectrum(run)
    return by_factor(run, ridge if ridge is not None else unchosen_ridge(run))


def chosen_method(run: Run) -> str:
    """cholesky or cg: as asked, or by whether the matrix fits into memory."""
    if run.method != "auto":
        return run.method
    needed = matrix_bytes(run.n_rows)
    available = available_bytes()
    if available is None or needed <= available:
        return "cholesky"
    run.warnings.append(
        f"the kernel matrix of {run.n_rows} rows needs {readable_bytes(needed)} of memory and "
        f"{readable_bytes(available)} are available: solved by conjugate gradients, which compute "
        "it anew in every step and give no leave-one-out outputs (--approximation rectangle is "
        "faster)"
    )
    return "cg"


def matrix_bytes(n: int) -> int:
    return gram_bytes(n, 8)


def unchosen_ridge(run: Run) -> float:
    return run.usual_ridge(
        "choosing it by leave-one-out takes an eigendecomposition and codes without zeros, up to "
        f"{LARGEST_SPECTRUM} rows"
    )


def expansion(run: Run, coef: np.ndarray, bias: np.ndarray) -> Expansion:
    """Over all rows; the objective at the minimum is ridge Σ c (y − b), by the residuals."""
    value = run.facts["ridge"] * float(np.sum(coef * (run.targets - bias)))
    return Expansion(np.arange(run.task.n), coef, bias, value)


# ---- the matrix in memory ------------------------------------------------------------------------


def by_factor(run: Run, ridge: float) -> Expansion:
    task = run.task
    run.facts["ridge"] = ridge
    common = {**run.common(), "bias": task.has_free_bias}
    if run.when_left_out == "never":
        common |= {"loo": False, "precision": "float64"}  # as with them: what a forecast expects
        run.facts["loo"] = NOT_LEFT_OUT
    if run.takes_all:
        found: Any = solve_full(task.X, run.targets, task.kernel, ridge, **common)
        degrees = found.info.get("degrees_of_freedom")
        if degrees is not None:
            cross_validated(run, found.fitted, degrees)
    else:
        found = solve_code(
            task.X, task.labels, task.code, task.kernel, ridge, decoding=task.decoding, **common
        )
    run.loo = found.loo
    run.take_info({"method": "cholesky", **found.info})
    bound(run, found.coef, found.fitted, found.diagonal)
    return expansion(run, found.coef, found.bias)


def spectrum_of(run: Run) -> Spectrum:
    task = run.task
    return Spectrum(task.X, task.kernel, bias=task.has_free_bias, **run.common())


def by_spectrum(run: Run) -> Expansion:
    spectrum = spectrum_of(run)
    choice = spectrum.choose_ridge(run.targets, **run.criterion())
    found = spectrum.solve(run.targets, choice.ridge)
    run.facts["ridge"] = choice.ridge
    run.loo = found.loo
    run.take_info(found.info)
    bound(run, found.coef, found.fitted, found.diagonal)
    table = choice.table
    run.facts |= {
        "gcv": float(table.gcv[choice.index]),
        "degrees_of_freedom": float(table.df[choice.index]),
    }
    run.tell_choice(table.ridge, loo=table.loo, gcv=table.gcv, error=table.error)
    if choice.at_edge:
        run.warnings.append(
            f"the ridge chosen ({choice.ridge:.3g}) is at the end of the range that was tried"
        )
    return expansion(run, found.coef, found.bias)


# ---- products alone ------------------------------------------------------------------------------


def by_conjugate_gradients(run: Run) -> Expansion:
    """All columns of one pattern of zeros share their kernel values."""
    task = run.task
    ridge = run.ridge_or_usual("conjugate gradients")
    run.facts["ridge"] = ridge
    coef, bias = np.zeros(run.targets.shape), np.zeros(run.targets.shape[1])
    infos = []
    for columns, weight in column_groups(run):
        options: dict[str, Any] = {
            "weight": weight,
            "threads": run.threads,
            "seed": task.seed,
            **cg_limits(run),
        }
        problem = (task.X, run.targets[:, columns], task.kernel, ridge)
        with blas_threads(chosen_rank(run.n_rows), run.threads):
            if task.has_free_bias:
                coef[:, columns], bias[columns], info = solve_iterative_with_bias(
                    *problem, **options
                )
            else:
                coef[:, columns], info = solve_iterative(*problem, **options)
        infos.append(info)
        if info["status"] not in ("converged", "stalled"):
            break
    run.take_info(infos[-1])
    run.facts |= {
        "method": "cg",
        "iterations": sum(info["iterations"] for info in infos),
        "residual": max(info["residual"] for info in infos),
        "kernel_evaluations": sum(info["kernel_evaluations"] for info in infos),
        "status": cg_status([info["status"] for info in infos]),
    }
    if run.takes_all:
        weights = task.weights[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            fitted = np.where(weights > 0, run.targets - ridge * coef / weights, np.nan)
        bound(run, coef, fitted, kernel_diagonal(run))
    return expansion(run, coef, bias)


def cg_status(found: list[str]) -> str:
    """The first that is not converged, in the words of the other solvers."""
    status = next((word for word in found if word != "converged"), "converged")
    return "max_seconds" if status == "stopped" else status


def column_groups(run: Run) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Columns that are trained on the same rows, and the weights of these."""
    task = run.task
    if run.takes_all:
        return [(np.arange(run.targets.shape[1]), run.weight)]
    assert task.code is not None
    patterns, which = np.unique(task.code != 0, axis=1, return_inverse=True)
    groups: list[tuple[np.ndarray, np.ndarray | None]] = []
    for number, seen in enumerate(patterns.T):
        weight = np.where(seen[task.labels], task.weights, 0.0)
        groups.append((np.flatnonzero(which.ravel() == number), weight))
    return groups


def kernel_diagonal(run: Run) -> np.ndarray:
    from kfu._gram import Gram

    return np.asarray(Gram(run.task.X, run.task.kernel, "float64", run.threads).diagonal())


# ---- rivals --------------------------------------------------------------------------------------


def check_rival(run: Run, what: str) -> None:
    if run.method == "cg":
        raise SettingsError(f"{what} needs the kernel matrix; leave --method cg out")
    run.refuse_zeros(what)


def pruned(run: Run) -> Expansion:
    """The LS-SVM on the rows that pruning leaves. Of classes the share of wrong signs may not grow,
    of numbers the squared error by REGRESSION_ALLOWANCE at most, both by leave-one-out."""
    task = run.task
    if not task.has_free_bias:
        raise SettingsError("--prune is for the machine with a free bias (LS-SVM); give --bias too")
    check_rival(run, "--prune")
    ridge = run.asked_ridge()
    if ridge is None and run.n_rows <= LARGEST_SPECTRUM:
        choice = spectrum_of(run).choose_ridge(run.targets, **run.criterion())
        table, ridge = choice.table, choice.ridge
        run.tell_choice(table.ridge, loo=table.loo, gcv=table.gcv, error=table.error)
    elif ridge is None:
        ridge = unchosen_ridge(run)
    run.facts["ridge"] = ridge
    is_regression = task.labels is None
    found = prune_ls_svm(
        task.X,
        run.targets,
        task.kernel,
        ridge,
        share=float(task.options["prune"]),
        measure="squared" if is_regression else "error",
        allowance=REGRESSION_ALLOWANCE if is_regression else 0.0,
        **run.common(),
    )
    run.take_info(found.info)
    run.loo = found.loo
    run.facts["pruning"] = [{"rows": seen.kept, "error": seen.error} for seen in found.rounds]
    return expansion(run, found.coef, found.bias)


def proximal(run: Run) -> Expansion:
    task = run.task
    check_rival(run, "--regularised-bias")
    ridge = run.asked_ridge()
    if ridge is None:
        ridge = run.usual_ridge("it is not chosen for the proximal machine")
    run.facts["ridge"] = ridge
    found = solve_psvm(task.X, run.targets, task.kernel, ridge, **run.common())
    run.take_info(found.info)
    run.loo = found.loo
    weight = task.weights[:, None]
    value = float((weight * (run.targets - found.fitted) ** 2).sum())
    value += ridge * float((found.coef**2).sum() + (found.bias**2).sum())
    return Expansion(np.arange(task.n), found.coef, found.bias, value)
