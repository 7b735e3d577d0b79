"""The hard margin (C = ∞): whether the data can be separated at all.

The dual is bounded by 1/(2M²), M the margin between the classes in feature space; when they cannot
be separated it grows without bound. So a dual value above that of a margin of LEAST_MARGIN of the
largest norm ‖φ(x)‖ proves that there is no separation with a larger one, and training is stopped.

Every α ≥ 0 (with yᵀα = 0 where there is a bias) proves as much as the best point of its ray,
max over t of the dual of tα = (gᵀα)² / (2‖w(α)‖²). Two are tried each time the number of rounds has
doubled: the α reached and, without a bias, what α gained since the last time. The dual climbs along
a direction with w = 0, so that the gain tends to that direction long before the dual itself is
large.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from kfu.errors import DataError
from kfu.machines.task import TrainingTask
from kfu.solvers import DualProblem
from kfu.solvers.dual import Progress, ProgressCallback

LEAST_MARGIN = 1e-4
MOST_RAY_ROWS = 20_000  # whose mutual kernel values are computed for a proof
ROUNDING = 1e-12  # of ‖w‖², relative to what it is without cancellation


def watch_separation(
    task: TrainingTask, problem: DualProblem, progress: ProgressCallback | None
) -> ProgressCallback | None:
    """`progress`, and DataError between two rounds once the dual proves that nothing separates."""
    is_hard = problem.ridge is None and bool(np.any(np.isinf(problem.upper)))
    if not is_hard:
        return progress
    growth = DualGrowth(task, problem)

    def watch(seen: Progress) -> bool:
        if growth.proves_inseparable(seen):
            raise DataError(
                task.source,
                None,
                "the classes cannot be separated by this kernel with a margin above "
                f"{LEAST_MARGIN:g} of the largest norm in feature space",
                "give a finite --cost, or a kernel that separates them (a larger gamma or degree)",
            )
        return bool(progress(seen)) if progress is not None else False

    return watch


class DualGrowth:
    """Watches the dual of one hard-margin problem; see the head of the file."""

    def __init__(self, task: TrainingTask, problem: DualProblem) -> None:
        from kfu._gram import Gram

        self.task, self.problem = task, problem
        X, kernel = task.solver_kernel()
        diagonal = Gram(X, kernel, "float64", 1).diagonal()
        self.radius = float(np.max(diagonal[problem.points]))
        largest = float(np.max(np.abs(problem.linear), initial=1.0)) ** 2
        norms = LEAST_MARGIN**2 * self.radius
        self.limit = largest * 0.5 / norms if norms > 0 else 0.0
        self.next_round = 1
        self.last = np.zeros(len(problem.signs))

    def proves_inseparable(self, seen: Progress) -> bool:
        if self.limit == 0.0 or seen.objective() > self.limit:  # every φ(x) is 0, or the dual tells
            return True
        if seen.round < self.next_round:
            return False
        self.next_round = 2 * max(seen.round, 1)
        alpha = np.maximum(self.problem.signs * seen.beta(), 0.0)
        gain, self.last = np.maximum(alpha - self.last, 0.0), alpha
        if self.ray_value(alpha) > self.limit:
            return True
        return not self.problem.has_equality and self.ray_value(gain) > self.limit

    def ray_value(self, alpha: np.ndarray) -> float:
        """The largest dual value of a multiple of α; 0 where it is too dear to tell."""
        used = np.flatnonzero(alpha)
        is_linear = self.task.kernel.name == "linear"
        if used.size == 0 or (used.size > MOST_RAY_ROWS and not is_linear):
            return 0.0
        beta = alpha[used] * self.problem.signs[used]
        square = self.square(beta, self.problem.points[used])
        least = ROUNDING * self.radius * float(alpha.sum()) ** 2
        height = float(-self.problem.linear @ alpha)
        return height**2 / (2.0 * max(square, least))

    def square(self, beta: np.ndarray, rows: np.ndarray) -> float:
        """‖w‖² of the coefficients β of the rows."""
        from kfu._gram import Gram

        task, X = self.task, self.task.X
        constant = float(beta.sum()) ** 2 if task.bias == "regularised" else 0.0
        if task.kernel.is_precomputed:
            K = X[rows][:, rows]
            return task.kernel.weight * float(beta @ (K @ beta)) + constant
        used = sp.csr_matrix(X[rows]) if sp.issparse(X) else np.ascontiguousarray(X[rows])
        if task.kernel.name == "linear":
            w = np.asarray(used.T @ beta, dtype=np.float64)
            return task.kernel.weight * float(w @ w) + constant
        gram = Gram(used, task.kernel, "float64", task.settings.n_threads)
        values = gram.decision(None, np.ascontiguousarray(beta[:, None]), used)
        return float(beta @ np.asarray(values)[:, 0]) + constant
