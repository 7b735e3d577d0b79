"""Regularised least squares as machines: rls (regression) and rlsc (classification).

    min Σ w_i (f(x_i) − y_i)² + ridge ‖f‖²,   ridge = λℓ

`lam` gives λ, `ridge` the product; "auto" (the default) chooses it by exact leave-one-out outputs,
by their squares or, of classes, by their errors (`lam_by`).
Classes are ±1 by any code, all columns from one factorisation (kfu.least_squares.leave_one_out).
Full kernel by default, `method` says how; `approximation` takes m centres instead
(kfu.machines.square_loss). Without a bias, as Rifkin has it, unless one is asked for: free (the
LS-SVM, which `prune` makes sparse) or regularised (the proximal machine).
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from kfu.errors import DataError
from kfu.machines.square_loss.full import full
from kfu.machines.square_loss.judged import judge_left_out
from kfu.machines.square_loss.linear import linear
from kfu.machines.square_loss.low_rank import low_rank
from kfu.machines.square_loss.run import Expansion, Run
from kfu.machines.task import TrainingTask, rows_of
from kfu.model import Model

NAMELESS = ("data", "<kernel>")  # what the library calls data whose file it does not know


def train_rls(task: TrainingTask) -> Model:
    assert task.targets is not None
    return trained(Run(task, task.targets[:, None]))


def train_rlsc(task: TrainingTask) -> Model:
    assert task.labels is not None
    assert task.code is not None
    return trained(Run(task, task.code[task.labels].astype(np.float64)))


def is_weights(run: Run) -> bool:
    """Whether the machine is trained as a vector of weights."""
    options = run.task.options
    is_full = options["approximation"] == "none" and options["prune"] is None
    return is_full and run.is_linear and run.method != "cholesky"


def trained(run: Run) -> Model:
    if run.ridge_by != "squares" and run.asked_ridge() is not None:
        run.warnings.append("--lambda-by is of no use with a ridge or lambda that is given")
    run.check_left_out()
    try:
        if is_weights(run):
            return weights_model(run)
        if run.task.options["approximation"] != "none":
            return expansion_model(run, low_rank(run))
        if run.task.options["centres"] is not None:
            run.warnings.append("--centres is of no use without --approximation")
        return expansion_model(run, full(run))
    except DataError as error:
        if error.source not in NAMELESS:
            raise
        raise DataError(run.task.source, error.line, error.found, error.remedy) from None


def weights_model(run: Run) -> Model:
    """The model of weights: an expansion over the unit vectors, not over the rows."""
    found = linear(run)
    task, d = run.task, run.task.X.shape[1]
    judge_left_out(run)
    weight = task.weights[:, None]
    value = float((weight * (run.targets - found.fitted) ** 2).sum())
    value += run.facts["ridge"] * float((found.weights**2).sum())
    if task.bias == "regularised":
        value += run.facts["ridge"] * float((found.bias**2).sum())
    return assembled(
        run,
        support=np.full(d, -1),
        vectors=sp.identity(d, format="csr", dtype=np.float64),
        coef=found.weights,
        bias=found.bias,
        value=value,
        n_support=np.zeros(len(task.classes), dtype=np.int64),
    )


def expansion_model(run: Run, found: Expansion) -> Model:
    task = run.task
    judge_left_out(run)
    used = np.flatnonzero(np.any(found.coef != 0.0, axis=1))
    order = used
    n_support = np.zeros(0, dtype=np.int64)
    if task.labels is not None:
        labels = task.labels[found.rows[used]]
        order = used[np.argsort(labels, kind="stable")]
        n_support = np.bincount(labels, minlength=len(task.classes))
    support = found.rows[order]
    vectors = task.support_vectors(support)
    if found.vectors is not None:
        support, vectors = np.full(len(order), -1), rows_of(found.vectors, order)
    return assembled(
        run,
        support=support,
        vectors=vectors,
        coef=np.ascontiguousarray(found.coef[order].T),
        bias=found.bias,
        value=found.value,
        n_support=n_support,
    )


def assembled(
    run: Run,
    *,
    support: np.ndarray,
    vectors: object,
    coef: np.ndarray,
    bias: np.ndarray,
    value: float | None,
    n_support: np.ndarray,
) -> Model:
    task = run.task
    phases = {k: v for k, v in run.facts.pop("seconds", {}).items() if k != "total"}
    if run.when_left_out == "always" and "loo_mse" not in run.facts:
        run.warnings.append(f"--loo always: {run.facts['method']} has no leave-one-out outputs")
    phases["other"] = max(time.perf_counter() - run.begin - sum(phases.values()), 0.0)
    info = {
        "status": "converged",
        "objective": value,
        "n_sv": int(support.size),
        "n_usv": int(support.size),
        "bias": bias.tolist() if bias.size > 1 else float(bias[0]),
        "kkt_gap": None,
        "iterations": 0,
        "seconds": phases,
        "warnings": run.warnings,
        **run.facts,
        "lambda": run.facts["ridge"] / run.n_rows,
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
    model.loo = run.loo
    return model
