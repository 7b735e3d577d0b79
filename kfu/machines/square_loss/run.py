"""One training of the square loss: what was asked for, and what has been found so far."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.task import TrainingTask

USUAL_RIDGE = 1.0  # where it is not chosen
USUAL_CENTRES = 1000
NOT_LEFT_OUT = "not computed (--loo always computes it)"
CRITERIA = {"squares": "loo", "errors": "error"}  # of kfu.least_squares.ridge_choice
PLAIN_FIGURES = (
    *("method", "precision", "residual", "condition", "trace_portion", "iterations"),
    *("status", "preconditioner", "rank", "trace_left", "kernel_evaluations"),
)


@dataclass
class Expansion:
    """f_k = Σ coef[j, k] K(x_rows[j], ·) + bias[k], and the value of the objective where known.

    `vectors` stand in place of the rows where they are given; `rows` then tells their classes.
    """

    rows: np.ndarray
    coef: np.ndarray  # (rows, t)
    bias: np.ndarray
    value: float | None = None
    vectors: np.ndarray | None = None


class Run:
    """The task, its targets (n, t), and the figures, warnings and leave-one-out outputs found."""

    def __init__(self, task: TrainingTask, targets: np.ndarray) -> None:
        if task.checkpoint is not None or task.start is not None:
            raise SettingsError(f"machine {task.machine.name} takes no checkpoint or start model")
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

    @property
    def takes_all(self) -> bool:
        """Whether every machine is trained on all rows: no zeros in the code."""
        return self.task.code is None or bool(np.all(self.task.code != 0))

    @property
    def is_linear(self) -> bool:
        """Whether f can be a vector of weights."""
        kernel = self.task.kernel
        return kernel.name == "linear" and kernel.weight == 1.0 and self.takes_all

    @property
    def method(self) -> str:
        return str(self.task.options["method"])

    def common(self) -> dict[str, Any]:
        return {"weight": self.weight, "threads": self.threads}

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

    def usual_ridge(self, reason: str) -> float:
        """Where it is neither given nor chosen; `reason` says why not."""
        self.warnings.append(f"the ridge is {USUAL_RIDGE:g}: {reason}; give --ridge or --lambda")
        return USUAL_RIDGE

    def ridge_or_usual(self, what: str) -> float:
        ridge = self.asked_ridge()
        if ridge is not None:
            return ridge
        return self.usual_ridge(f"{what} has no leave-one-out outputs to choose it by")

    @property
    def ridge_by(self) -> str:
        """What a ridge is chosen by: squares or errors."""
        return str(self.task.options.get("lam_by", "squares"))

    def criterion(self) -> dict[str, Any]:
        """The same as arguments of the functions that choose, with the classes where there are."""
        task = self.task
        known: dict[str, Any] = {"criterion": CRITERIA[self.ridge_by]}
        if task.labels is not None:
            known |= {"labels": task.labels, "code": task.code, "decoding": task.decoding}
        return known

    def tell_choice(self, ridges: Any, **figures: Any) -> None:
        """What the ridge was chosen by, and the figures of all that were tried."""
        self.facts["lambda_by"] = self.ridge_by
        path = {"ridge": ridges, **figures}
        self.facts["path"] = {
            name: np.asarray(values).tolist() for name, values in path.items() if values is not None
        }

    # ---- leave-one-out -------------------------------------------------------------------------

    @property
    def when_left_out(self) -> str:
        """Whether leave-one-out figures are wanted: auto, always or never."""
        return str(self.task.options.get("loo", "auto"))

    def check_left_out(self) -> None:
        """SettingsError where the ridge is to be chosen by figures that are not wanted."""
        if self.when_left_out == "never" and self.asked_ridge() is None:
            raise SettingsError(
                "--loo never leaves nothing to choose the ridge by; give --ridge or --lambda"
            )

    # ---- figures -------------------------------------------------------------------------------

    def take_info(self, info: dict[str, Any]) -> None:
        known = {name: info.get(name) for name in PLAIN_FIGURES}
        self.facts |= {name: value for name, value in known.items() if value is not None}
        if "seconds" in info and isinstance(info["seconds"], dict):
            self.facts["seconds"] = dict(info["seconds"])

    def refuse_zeros(self, what: str) -> None:
        if not self.takes_all:
            raise SettingsError(
                f"{what} trains every machine on the same rows; choose a code without zeros (ova, "
                "complete, dense)"
            )
