"""Probabilities: a calibration fitted to outputs that the rows themselves did not shape.

Outputs of a row by a machine that was trained on it are too good to be calibrated with. So:

  cv        five stratified folds: each row's outputs by the machine trained without its fold
  hold-out  a quarter of the rows, by the machine trained on the others
  span      the outputs of the machine itself, less the estimate yαS² of what the row gave to its
            own (Chapelle 2004); no training, but rough where SVs change category

The model itself is trained on all rows. The folds are drawn with the seed of the training.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kfu.calibration import fit_calibrator, span_corrected_outputs
from kfu.errors import SettingsError
from kfu.machine_kinds import CLASSIFIER
from kfu.machines.margins import row_margins
from kfu.machines.reductions import box_of
from kfu.machines.registry import Machine
from kfu.machines.task import TrainingTask
from kfu.model import Model

METHODS = ("sigmoid", "isotonic")
OUTPUTS = ("cv", "hold-out", "span")
FOLDS = 5


def check_probability(method: str, outputs: str, machine: Machine) -> None:
    if method not in METHODS:
        raise SettingsError(f"probability is {method!r}; choose one of {', '.join(METHODS)}")
    if outputs not in OUTPUTS:
        raise SettingsError(f"probability outputs {outputs!r}; choose one of {', '.join(OUTPUTS)}")
    if machine.kind != CLASSIFIER:
        raise SettingsError(f"machine {machine.name} has no classes to give probabilities of")
    if outputs == "span" and machine.name != "svc":
        raise SettingsError("span-corrected outputs are known for the machine svc; choose cv")


def calibrate(
    model: Model, task: TrainingTask, sample_weight: Any, method: str, outputs: str
) -> None:
    """Sets: model.calibration."""
    found = model.info.setdefault("warnings", [])
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if outputs == "span":
                decision = _span_outputs(model, task)
            else:
                decision = _left_out_outputs(task, sample_weight, outputs)
    except KeyboardInterrupt:  # the machine itself is trained, and worth keeping
        model.info["status"] = "interrupted"
        found.append("interrupted before the probabilities were fitted: the model has none")
        return
    found += [f"probabilities: {warning.message}" for warning in caught]
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    calibrator = fit_calibrator(decision, task.labels, model.code, method, weight)
    model.calibration = calibrator.to_dict()
    model.settings["probability"] = method
    model.settings["probability_outputs"] = outputs


def _left_out_outputs(task: TrainingTask, sample_weight: Any, outputs: str) -> np.ndarray:
    from kfu.validation.cross_validation import cross_validate
    from kfu.validation.folds import make_folds

    kind = "stratified" if outputs == "cv" else "hold-out"
    assert task.labels is not None
    named = task.classes[task.labels]  # a message about a class says its label
    folds = make_folds(kind, task.n, k=FOLDS, labels=named, seed=task.seed)
    found = cross_validate(task.X, folds, options=again(task, sample_weight), labels=task.classes)
    return found.decision


def again(task: TrainingTask, sample_weight: Any) -> dict[str, Any]:
    """The keyword arguments of kfu.machines.train that repeat this training."""
    assert task.labels is not None
    multiclass: Any = task.code_name
    if task.code is not None and task.machine.takes_codes:
        is_single = multiclass in ("crammer-singer", "weston-watkins")
        multiclass = multiclass if is_single else task.code
    return {
        "y": task.classes[task.labels],
        "machine": task.machine.name,
        "kernel": task.kernel,
        "cost": task.cost,
        "class_weight": task.class_weight,
        "sample_weight": sample_weight,
        "bias": task.bias,
        "multiclass": "ava" if task.code is None else multiclass,
        "seed": task.seed,
        "settings": task.settings,
        "source": task.source,
        "progress": task.progress,
        **{name: value for name, value in task.options.items() if value is not None},
    }


def _span_outputs(model: Model, task: TrainingTask) -> np.ndarray:
    """Decision values of the training rows, corrected by the span, machine by machine."""
    from kfu._gram import Gram

    assert task.labels is not None
    if model.is_precomputed or task.bias == "regularised" or np.isinf(task.cost):
        raise SettingsError(
            "span-corrected outputs need a kernel of rows, a finite cost and a free bias or none; "
            "choose cv"
        )
    decision = model.decision_function(task.X, threads=task.settings.threads)
    box = box_of(task.cost, task.weights) / row_margins(task)
    gram = Gram(model.support_vectors, model.kernel, "float64", task.settings.n_threads)
    for machine in range(model.n_machines):
        signs = model.code[task.labels, machine].astype(np.float64)
        alpha = np.abs(model.coef[machine])
        used = np.flatnonzero(alpha)
        rows = model.support[used]
        full = np.zeros(task.n)
        full[rows] = alpha[used]
        mine = np.flatnonzero(signs)
        decision[signs == 0, machine] = np.nan
        if used.size == 0:
            continue
        # K over the support of this machine, in the order of the rows.
        order = used[np.argsort(rows)]
        K = gram.block(order, order)
        decision[mine, machine] = span_corrected_outputs(
            decision[mine, machine], signs[mine], full[mine], K, box[mine], task.has_free_bias
        )
    return decision
