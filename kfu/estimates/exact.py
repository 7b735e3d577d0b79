"""Exact leave-one-out: each row's output by the machine trained without it.

`left_out_outputs` is the one place that decides how: in closed form for least squares, by solving
the dual from the solution of all rows where a row matters (kfu.validation.leave_one_out), by
training again otherwise. Rankings leave out whole queries. Kernel parameters, class weights and
margins are those of all rows.

A row that is the last of its class leaves a machine that knows one class, with a bias: f is then
that class, and the row an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.data import format_label
from kfu.errors import DataError
from kfu.estimates.registry import SVC, Entry, Found, Options
from kfu.estimates.trained import Trained
from kfu.machine_kinds import CLASSIFIER, NOVELTY, RANKER, REGRESSOR
from kfu.machines.registry import MACHINES
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.training import train
from kfu.validation.cross_validation import cross_validate
from kfu.validation.folds import make_folds
from kfu.validation.leave_one_out import MACHINES as DUALS
from kfu.validation.leave_one_out import leave_one_out_outputs

MEASURED = {
    CLASSIFIER: "leave-one-out error",
    REGRESSOR: "leave-one-out mean squared error",
    NOVELTY: "share of left-out rows outside",
    RANKER: "share of pairs in the wrong order, queries left out",
}


def left_out_outputs(trained: Trained, on_done: Any = None) -> np.ndarray:
    """Outputs (n, n_machines) of each row by the machine trained without it."""
    task = trained.task
    closed = _closed_form(trained)
    if closed is not None:
        return closed
    if _follows_the_dual(trained):
        outputs = leave_one_out_outputs(task, trained.model, on_done)
        return _with_last_rows(trained, outputs)
    return _retrained(trained, on_done)


def _follows_the_dual(trained: Trained) -> bool:
    is_full = trained.task.options.get("approximation", "none") == "none"
    return trained.machine in DUALS and is_full and trained.task.bias != "regularised"


def _closed_form(trained: Trained) -> np.ndarray | None:
    """The outputs that least squares gives with its training, or again where they were not kept."""
    found = trained.model.loo
    is_full = trained.task.options.get("approximation") == "none"
    if found is None and trained.machine in ("rls", "rlsc") and is_full:
        arguments = arguments_of(trained)
        found = train(trained.task.X, arguments.pop("y"), **arguments).loo
    return found if found is not None and np.isfinite(found).all() else None


def _with_last_rows(trained: Trained, outputs: np.ndarray) -> np.ndarray:
    """Rows without which a machine has one side only are put on the other side."""
    if not trained.has_bias or trained.machine not in SVC:
        return outputs
    for number, machine in enumerate(trained.binary):
        for sign in (1.0, -1.0):
            side = np.flatnonzero((machine.y == sign) & (machine.upper > 0))
            if side.size == 1:
                outputs[machine.rows[side[0]], number] = -sign
    return outputs


def _retrained(trained: Trained, on_done: Any) -> np.ndarray:
    task = trained.task
    if task.machine.kind == RANKER:
        assert task.qid is not None
        folds = make_folds("group", task.n, k=len(np.unique(task.qid)), groups=task.qid)
    else:
        folds = make_folds("loo", task.n)
    total = len(folds)

    def tell(number: int, fold: Any) -> bool:
        if on_done is not None:
            on_done((number + 1) / total)
        return False

    found = cross_validate(task.X, folds, options=arguments_of(trained), on_fold=tell)
    return found.decision


def arguments_of(trained: Trained) -> dict[str, Any]:
    """The arguments of kfu.machines.train that repeat this training; class weights and a ridge that
    was chosen as numbers."""
    task = trained.task
    y: Any = task.targets
    weight = None
    if task.labels is not None:
        y = task.classes[task.labels]
        if task.class_weight is not None:
            weight = {}
            for k, label in enumerate(task.classes.tolist()):
                mine = (task.labels == k) & (task.row_weights > 0)
                of_rows = task.weights[mine] / task.row_weights[mine]
                weight[label] = float(of_rows[0]) if of_rows.size else 1.0
    arguments: dict[str, Any] = {
        "y": y,
        "machine": task.machine.name,
        "kernel": task.kernel,
        "cost": task.cost,
        "class_weight": weight,
        "sample_weight": task.row_weights,
        "qid": task.qid,
        "seed": task.seed,
        "settings": task.settings,
        "source": task.source,
        **{name: value for name, value in task.options.items() if value is not None},
    }
    if task.machine.takes_bias and task.machine.name != "nu-svc":
        arguments["bias"] = task.bias
    if "ridge" in task.machine.options:
        arguments["ridge"] = float(trained.model.info["ridge"])
        arguments.pop("lam", None)
        arguments.pop("lam_by", None)
        arguments["loo"] = "never"
    if task.machine.takes_codes and task.code is not None:
        is_single = task.code_name in SINGLE_MACHINES
        arguments["multiclass"] = task.code_name if is_single else task.code
        arguments["decoding"] = task.decoding
    return arguments


def exact(trained: Trained, options: Options) -> Found:
    try:
        outputs = left_out_outputs(trained, options.on_done)
    except DataError as error:  # a class of one row
        return Found(None, str(error), valid=False)
    flags = trained.wrong(outputs) if trained.kind == CLASSIFIER else None
    notes = []
    if flags is not None:
        notes.append(f"{int(flags[trained.counted].sum())} of {trained.counted.size}")
    for k, label in enumerate(trained.task.classes if trained.kind == CLASSIFIER else []):
        if np.count_nonzero(trained.task.labels == k) == 1:
            notes.append(f"class {format_label(label)} has one row, which counts as an error")
    if trained.model.info.get("status") != "converged":
        notes.append(f"training stopped before convergence ({trained.model.info.get('status')})")
    measured, note = MEASURED[trained.kind], "; ".join(notes)
    return Found(trained.score(outputs), note, of=measured, outputs=outputs, flags=flags)


def work(trained: Trained) -> float:
    """A way through the dual for each support vector; else a whole training for each row."""
    if trained.model.loo is not None:
        return 0.0
    n, vectors = trained.task.n, int(np.count_nonzero(trained.model.coef))
    if _follows_the_dual(trained):
        return 1e-7 * vectors * n * max(int(trained.model.info.get("n_usv") or 1), 1)
    return 300.0 * n * n * 1e-6


EXACT = Entry(
    "exact",
    "each row by the machine trained without it",
    "exact",
    "leave-one-out error",
    "",
    (*MACHINES, *SINGLE_MACHINES),
    exact,
    needs_psd=False,
    needs_full_kernel=False,
    size=work,
)
