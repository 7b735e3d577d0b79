"""What leave-one-out outputs and bounds say of a machine of the square loss.

Exact leave-one-out error, its bound (Rifkin 2002, 3.3.3 and 4.6), generalised cross-validation and
the stability bound on the squared risk, each where its conditions hold:

loo_error_bound   no bias, a positive semidefinite kernel, a decoding with a bound
gcv               degrees of freedom known
stability_bound   one machine, no bias, no weights, a kernel that was not made from the rows
"""

from __future__ import annotations

import numpy as np

from kfu.kernels import KERNELS
from kfu.least_squares.bounds import (
    binary_loo_bound,
    code_loo_bound,
    generalised_cross_validation,
    ova_loo_bound,
    stability_bound,
)
from kfu.machines.square_loss.run import Run
from kfu.multiclass.decoding import decode

BOUNDED_DECODINGS = ("argmax", "hinge", "square", "exponential", "hamming")


def has_bound(run: Run) -> bool:
    """Whether the leave-one-out bound holds for the classes of this run."""
    task = run.task
    is_psd = all(KERNELS[leaf.name].is_psd for leaf in task.kernel.leaves())
    is_bounded = run.targets.shape[1] == 1 or task.decoding in BOUNDED_DECODINGS
    return task.bias == "none" and is_psd and is_bounded and task.labels is not None


def possible_errors(
    run: Run, rows: np.ndarray | slice, fitted: np.ndarray, coef: np.ndarray, diagonal: np.ndarray
) -> np.ndarray:
    """Which of the rows (their outputs, coefficients and K(x, x) given) may be errors."""
    task = run.task
    assert task.labels is not None
    assert task.code is not None
    if coef.shape[1] == 1:
        return binary_loo_bound(run.targets[rows], fitted, coef, diagonal)
    labels = task.labels[rows]
    if task.decoding == "argmax":
        return ova_loo_bound(labels, fitted, coef, diagonal)
    return code_loo_bound(labels, task.code, fitted, coef, diagonal, task.decoding)


def bound(run: Run, coef: np.ndarray, fitted: np.ndarray, diagonal: np.ndarray) -> None:
    """Sets loo_error_bound and the stability figures of coefficients over all rows (n, t)."""
    task = run.task
    if task.bias != "none" or not all(KERNELS[leaf.name].is_psd for leaf in task.kernel.leaves()):
        return
    if has_bound(run):
        rows = np.flatnonzero(task.weights > 0)
        possible = possible_errors(run, rows, fitted[rows], coef[rows], diagonal[rows])
        share = task.row_weights[rows]
        run.facts["loo_error_bound"] = float(np.average(possible, weights=share))
    if coef.shape[1] == 1 and run.weight is None:
        kappa = float(np.sqrt(np.max(diagonal, initial=0.0)))
        largest = float(np.max(np.abs(run.targets)))
        if kappa > 0 and largest > 0:
            risk = float(np.mean((run.targets - fitted) ** 2))
            found = stability_bound(
                risk, run.facts["ridge"], run.n_rows, kappa, target_bound=largest
            )
            run.facts["stability_beta"] = found.beta
            run.facts["stability_bound"] = found.value
            run.facts["stability_constants"] = {
                "kappa": kappa,
                "target_bound": largest,
                "output_bound": found.output_bound,
                "lipschitz": found.lipschitz,
                "loss_bound": found.loss_bound,
                "empirical": found.empirical,
                "delta": 0.05,
                "is_vacuous": found.is_vacuous,
                "conditions": list(found.conditions),
            }


def cross_validated(run: Run, fitted: np.ndarray, degrees: float) -> None:
    """Sets gcv and degrees_of_freedom, from outputs (n, t) at the training rows."""
    residual = run.targets - fitted
    run.facts["degrees_of_freedom"] = float(degrees)
    run.facts["gcv"] = generalised_cross_validation(residual, degrees, run.weight)


def judge_left_out(run: Run) -> None:
    """Sets loo_mse and loo_error from the leave-one-out outputs, where there are any."""
    if run.loo is None:
        return
    task, weight = run.task, run.task.row_weights
    residual = (run.loo - run.targets) ** 2
    seen = np.ones_like(residual) if task.code is None else (run.targets != 0.0)
    share = weight[:, None] * seen
    if np.isfinite(residual).all():
        run.facts["loo_mse"] = float((residual * share).sum() / share.sum())
    if task.labels is not None and np.isfinite(run.loo).all():
        assert task.code is not None
        wrong = decode(run.loo, task.code, task.decoding) != task.labels
        run.facts["loo_error"] = float(np.average(wrong, weights=weight))
