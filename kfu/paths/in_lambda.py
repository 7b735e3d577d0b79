"""What paths in λ = 1/C have in common.

Their parametric problem is that of λβ with boxes that stay (t = λ): multiplied by λ, the dual has a
linear term that moves with λ and bounds that do not. Coefficients, bias, objective and violations
are those of the solution divided by λ (the objective, quadratic in β, by λ²).
"""

from __future__ import annotations

import numpy as np

from kfu.machines.task import TrainingTask
from kfu.paths.registry import PathDefinition


class LambdaPath(PathDefinition):
    parameter = "lambda"

    def coefficients(
        self, task: TrainingTask, beta: np.ndarray, theta: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        return beta / t, (-float(theta[0]) / t if task.bias == "free" else 0.0)

    def objective(
        self, task: TrainingTask, minimised: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        with np.errstate(over="ignore"):  # at the ends of the range, where t² has none either
            return np.asarray(-minimised / t / t)

    def violation(
        self, task: TrainingTask, kkt: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(kkt / t)
