"""What SVC and NuSVC share: binary machines under a code, found by the dual solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.estimators.base import SolvedEstimator
from kfu.estimators.classification import KernelClassifier, ProbabilityMixin, code_key
from kfu.estimators.rows import seed_of
from kfu.model import Model

__all__ = ["MachineClassifier"]

SHAPES = ("ovr", "ovo")


class MachineClassifier(ProbabilityMixin, KernelClassifier, SolvedEstimator):
    """A binary machine for each column of a multiclass code, or one machine over all classes."""

    def __init__(
        self,
        *,
        class_weight: Any,
        multiclass: Any,
        decoding: str | None,
        probability: bool | str,
        decision_function_shape: str,
        random_state: Any,
        warm_start: bool,
        **of_solver: Any,
    ) -> None:
        super().__init__(**of_solver)
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.decoding = decoding
        self.probability = probability
        self.decision_function_shape = decision_function_shape
        self.random_state = random_state
        self.warm_start = warm_start

    def _check_parameters(self) -> None:
        if self.decision_function_shape not in SHAPES:
            raise ValueError(
                f"decision_function_shape must be one of {SHAPES}, "
                f"got {self.decision_function_shape!r}"
            )
        super()._check_parameters()

    def _machine_options(self, n: int, rows: np.ndarray | None) -> dict[str, Any]:
        """Keywords of `train` that belong to the machine, for these of n rows (None: all)."""
        raise NotImplementedError

    def _fit_classes(
        self,
        X: Any,
        y: np.ndarray,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        class_weight: dict[Any, float],
    ) -> None:
        seed = seed_of(self.random_state)
        self._fit_machine(
            X,
            y,
            rows,
            weights,
            kept=(sorted(class_weight), code_key(self.multiclass), seed),
            class_weight=class_weight,
            multiclass=self.multiclass,
            decoding=self.decoding,
            seed=seed,
            **self._machine_options(X.shape[0], rows),
            **self._calibration(),
        )

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every classifier has: n_iter_, one number for each machine."""
        super()._take(model, rows)
        iterations = model.info.get("iterations_by_machine", model.info["iterations"])
        self.n_iter_: Any = np.atleast_1d(iterations)
