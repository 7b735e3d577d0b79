"""The baselines of kfu.baselines as machines: their functions, wrapped as a Model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kfu.baselines import (
    class_coefficients,
    kernel_centroid,
    kernel_projection_code,
    parzen,
    select_k,
)
from kfu.baselines.windows import check_window
from kfu.errors import SettingsError
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.multiclass import ova_code

BINARY = np.array([[-1], [1]], dtype=np.int8)
EACH_OF_TWO = np.array([[1, -1], [-1, 1]], dtype=np.int8)  # one function for each of two classes


def train_kpm(task: TrainingTask) -> Model:
    begin = _begin(task)
    assert task.code is not None
    dims = task.options["dims"]
    penalty = task.options["dim_penalty"]
    if dims is not None and penalty is None:
        penalty = 0.0  # nothing to choose: no cross-validation
    machines = kernel_projection_code(
        task.X,
        task.labels,
        task.code,
        task.kernel,
        weight=task.weights,
        dims=None if dims is None else [dims],
        dim_penalty=penalty,
        seed=task.seed,
        threads=task.settings.n_threads,
        source=task.source,
    )
    facts = {
        "objective": -float(sum(path.hinge[path.chosen] for path in machines.paths)),
        "dims": [path.dim for path in machines.paths],
        "path": [path.table() for path in machines.paths],
    }
    return _model(task, machines.coef, machines.bias, task.code, begin, facts, task.decoding)


def train_centroid(task: TrainingTask) -> Model:
    begin = _begin(task)
    found = kernel_centroid(task.X, task.labels, task.kernel, **_common(task))
    return _expansion(task, found, begin)


def train_parzen(task: TrainingTask) -> Model:
    begin = _begin(task)
    prior = task.options["prior"]
    found = parzen(task.X, task.labels, task.kernel, prior=prior, **_common(task))
    return _expansion(task, found, begin)


def train_nadaraya_watson(task: TrainingTask) -> Model:
    begin = _begin(task)
    check_window(task.kernel)
    return _memory(task, begin, {})


def train_knn(task: TrainingTask) -> Model:
    begin = _begin(task)
    if task.kernel.is_precomputed:
        raise SettingsError("machine knn needs rows; a precomputed kernel does not give them")
    facts: dict[str, Any] = {}
    if task.options["neighbours"] is None:
        chosen = select_k(
            task.X,
            task.labels,
            task.kernel,
            weight=task.weights,
            weighting=task.options["distance_weights"],
            n_classes=len(task.classes),
            threads=task.settings.n_threads,
            source=task.source,
        )
        task.options["neighbours"] = int(chosen.neighbours)
        facts = {"loo_error": float(chosen.loo_error[chosen.neighbours - 1])}
    return _memory(task, begin, facts)


def _begin(task: TrainingTask) -> float:
    if task.checkpoint is not None or task.start is not None:
        raise SettingsError(f"machine {task.machine.name} takes no checkpoint or start model")
    return time.perf_counter()


def _common(task: TrainingTask) -> dict[str, Any]:
    return {
        "weight": task.weights,
        "n_classes": len(task.classes),
        "threads": task.settings.n_threads,
        "source": task.source,
    }


def _expansion(task: TrainingTask, found: Any, begin: float) -> Model:
    """One function for each class; of two classes, their difference."""
    if len(task.classes) == 2:
        coef, bias = found.for_code(BINARY)
        return _model(task, coef, bias, BINARY, begin, found.info, "votes")
    code = ova_code(len(task.classes))
    return _model(task, found.coef, found.bias, code, begin, found.info, "argmax")


def _memory(task: TrainingTask, begin: float, facts: dict[str, Any]) -> Model:
    """The rows themselves, and the class weights of each."""
    k = len(task.classes)
    coef = class_coefficients(task.labels, task.weights, k)
    code = EACH_OF_TWO if k == 2 else ova_code(k)
    return _model(task, coef, np.zeros(k), code, begin, facts, "argmax")


def _model(
    task: TrainingTask,
    coef: np.ndarray,
    bias: np.ndarray,
    code: np.ndarray,
    begin: float,
    facts: dict[str, Any],
    decoding: str,
) -> Model:
    assert task.labels is not None
    support = np.flatnonzero(np.any(coef != 0.0, axis=0))
    support = support[np.argsort(task.labels[support], kind="stable")]
    info = {
        "status": "converged",
        "n_sv": int(support.size),
        "n_usv": int(support.size),
        "bias": bias.tolist() if bias.size > 1 else float(bias[0]),
        "kkt_gap": None,
        "seconds": {"other": time.perf_counter() - begin},
        "warnings": [],
        **facts,
    }
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=task.classes,
        n_features=task.X.shape[1],
        support=support,
        support_vectors=task.support_vectors(support),
        coef=coef[:, support],
        bias=bias,
        code=code,
        decoding=decoding,
        settings=task.described(),
        info=info,
        n_support=np.bincount(task.labels[support], minlength=len(task.classes)),
    )
