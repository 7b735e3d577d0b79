"""The hard margin (C = ∞): whether the data can be separated at all.

The dual is bounded by 1/(2M²), M the margin between the classes in feature space; when they cannot
be separated it grows without bound. So a dual value above that of a margin of LEAST_MARGIN of the
largest norm ‖φ(x)‖ proves that there is no separation with a larger one, and training is stopped.
"""

from __future__ import annotations

import numpy as np

from kfu.errors import DataError
from kfu.machines.task import TrainingTask
from kfu.solvers import DualProblem
from kfu.solvers.dual import Progress, ProgressCallback

LEAST_MARGIN = 1e-4


def watch_separation(
    task: TrainingTask, problem: DualProblem, progress: ProgressCallback | None
) -> ProgressCallback | None:
    """`progress`, and DataError between two rounds once the dual proves that nothing separates."""
    is_hard = problem.ridge is None and bool(np.any(np.isinf(problem.upper)))
    if not is_hard:
        return progress
    from kfu._gram import Gram

    X, kernel = task.solver_kernel()
    diagonal = Gram(X, kernel, "float64", 1).diagonal()
    radius = float(np.max(diagonal[problem.points]))
    largest = float(np.max(np.abs(problem.linear), initial=1.0)) ** 2
    # Where every φ(x) is 0 there is nothing to separate.
    limit = largest * 0.5 / (LEAST_MARGIN**2 * radius) if radius > 0.0 else 0.0

    def watch(seen: Progress) -> bool:
        if seen.objective() > limit:
            raise DataError(
                task.source,
                None,
                "the classes cannot be separated by this kernel with a margin above "
                f"{LEAST_MARGIN:g} of the largest norm in feature space",
                "give a finite --cost, or a kernel that separates them (a larger gamma or degree)",
            )
        return bool(progress(seen)) if progress is not None else False

    return watch
