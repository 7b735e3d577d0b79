"""The smallest sphere around rows in feature space, by the dual solver; and the variance.

    R² = max Σ β_i K_ii − βᵀKβ,   Σβ = 1, β ≥ 0        (centre Σ β_i Φ(x_i))

is, halved, the one dual problem with p = −½ diag K. The variance, β = 1/n, is at most R² and smooth
in the parameters of the kernel; for tuning Chapelle (2002, 4.4.2) prefers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kfu.estimates.trained import BinaryMachine, Trained
from kfu.solvers import DualProblem

ACCURACY = 1e-4  # of R², relative to the mean of K(x, x)
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Sphere:
    """squared_radius: an upper bound of R², beyond it by at most the accuracy of the solver."""

    squared_radius: float
    beta: np.ndarray


def enclosing_sphere(trained: Trained, machine: BinaryMachine) -> Sphere:
    """The sphere around the rows of the machine by K̃ (rows of cost 0 left out)."""
    places = np.flatnonzero(machine.upper > 0)
    diagonal = machine.diagonal[places]
    unit = float(np.abs(diagonal).mean()) or 1.0
    ridge = machine.ridge[places]
    problem = DualProblem(
        signs=np.ones(places.size),
        linear=-0.5 * diagonal,
        lower=np.zeros(places.size),
        upper=np.ones(places.size),
        points=machine.rows[places],
        ridge=ridge if np.any(ridge) else None,
    )
    start = np.zeros(places.size)
    start[int(np.argmax(diagonal))] = 1.0
    settings = replace(trained.task.settings, tolerance=ACCURACY * unit, polish=False)
    solution = trained.task.solve(problem, settings=settings, start=start)
    beta = np.zeros(machine.rows.size)
    beta[places] = solution.beta
    return Sphere(2.0 * (solution.info.objective + max(0.0, solution.info.kkt_gap)), beta)


def variance(machine: BinaryMachine) -> float:
    """The mean squared distance to the mean, by K̃."""
    places = np.flatnonzero(machine.upper > 0)
    n = places.size
    total = float(machine.ridge[places].sum())
    for start in range(0, n, BLOCK_ROWS):
        total += float(machine.block(places[start : start + BLOCK_ROWS], places).sum())
    return float(machine.diagonal[places].mean()) - total / n**2
