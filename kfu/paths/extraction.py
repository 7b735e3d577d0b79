"""The model of coefficients on the rows of a path, whatever path they are from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machine_kinds import NOVELTY
from kfu.machines.task import TrainingTask
from kfu.model import Model

if TYPE_CHECKING:
    from kfu.scale import Scaler

__all__ = ["extracted_model", "matched_validation"]


def extracted_model(
    task: TrainingTask,
    coef: np.ndarray,
    bias: np.ndarray,
    *,
    scaler: Scaler | None,
    settings: dict[str, Any],
    info: dict[str, Any],
) -> Model:
    """f = Σ_i coef_i K(x_i, ·) + bias, one column of coef (n, machines) for each bias.

    Support vectors are sorted by class; `settings` and `info` come on top of those of the task.
    """
    support = np.flatnonzero(np.any(coef != 0.0, axis=1))
    code, classes, counts = np.zeros((0, 1)), np.zeros(0), np.zeros(0, dtype=np.int64)
    if task.labels is not None:
        assert task.code is not None
        code, classes = task.code, task.classes
        support = support[np.argsort(task.labels[support], kind="stable")]
        counts = np.bincount(task.labels[support], minlength=len(classes))
    elif task.machine.kind == NOVELTY:
        code, classes = np.array([[-1], [1]]), np.array([-1.0, 1.0])
        counts = np.array([0, support.size])
    plain_bias = float(bias[0]) if bias.size == 1 else bias.tolist()
    n_sv = int(support.size)
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=classes,
        n_features=int(task.X.shape[1]),
        support=support,
        support_vectors=task.support_vectors(support),
        coef=np.ascontiguousarray(coef[support].T),
        bias=bias,
        code=code,
        decoding=task.decoding,
        scaler=scaler,
        settings={**task.described(), **settings},
        info={"status": "converged", **info, "bias": plain_bias, "n_sv": n_sv},
        n_support=counts,
    )


def matched_validation(
    model: Model, X: Any, y: Any, scaler: Scaler | None
) -> tuple[Any, np.ndarray]:
    """Validation rows as the kernel of `model` sees them, and their labels; DataError unless there
    is one each."""
    if y is None:
        raise SettingsError("validation rows need their labels")
    X = model.match_features(X, source="validation data")
    labels = np.asarray(y)
    if X.shape[0] == 0 or labels.shape != (X.shape[0],):
        raise DataError(
            "validation data",
            None,
            f"{labels.size} labels for {X.shape[0]} rows",
            "give one row at least, and one label each",
        )
    return (X if scaler is None else scaler.transform(X)), labels
