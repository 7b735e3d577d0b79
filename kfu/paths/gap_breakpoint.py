"""A breakpoint of an ε-path, what it cost, and the sums of kernel values behind its certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.kernels import KernelSpec
from kfu.solvers.dual import Solution


@dataclass(eq=False)
class Breakpoint:
    """A solution at one cost with its certificate; dense arrays of one entry a row."""

    cost: float
    beta: np.ndarray
    outputs: np.ndarray  # Kβ
    bias: float
    norm: float  # ‖w‖² = βᵀKβ
    loss: float
    gain: float

    @property
    def primal(self) -> float:
        return 0.5 * self.norm + self.cost * self.loss

    @property
    def objective(self) -> float:
        """The maximised dual."""
        return self.gain - 0.5 * self.norm

    @property
    def duality_gap(self) -> float:
        return max(self.norm + self.cost * self.loss - self.gain, 0.0)

    @property
    def gap(self) -> float:
        """(primal − dual) / primal."""
        return self.duality_gap / self.primal if self.primal > 0.0 else 0.0

    @property
    def support(self) -> np.ndarray:
        return np.flatnonzero(self.beta)


@dataclass
class Tally:
    """What the solves of a path cost."""

    n_solves: int = 0
    iterations: int = 0
    kernel_evaluations: int = 0  # of the solver's rows
    verification_evaluations: int = 0  # in float64
    moved_rows: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, solution: Solution, moved: int, n: int) -> None:
        self.n_solves += 1
        self.iterations += solution.info.iterations
        self.kernel_evaluations += solution.info.kernel_evaluations
        self.verification_evaluations += solution.info.verification_evaluations + moved * n
        self.moved_rows += moved


class KernelSums:
    """Σ_i c_i K(x_i, ·) over all rows of X, in float64."""

    def __init__(self, X: Any, kernel: Any, threads: int) -> None:
        self.X, self.kernel, self.threads = X, kernel, threads
        self.gram: Any = None

    def __call__(self, rows: np.ndarray, coef: np.ndarray) -> np.ndarray:
        if rows.size == 0:
            return np.zeros(self.X.shape[0])
        if isinstance(self.kernel, KernelSpec):
            if self.kernel.is_precomputed:
                return self.kernel.weight * _flat(self.X[:, rows] @ coef)
            if self.kernel.name == "linear":
                X = self.X if sp.issparse(self.X) else np.asarray(self.X, dtype=np.float64)
                return self.kernel.weight * _flat(X @ (X[rows].T @ coef))
        if self.gram is None:
            from kfu._gram import Gram

            self.gram = Gram(self.X, self.kernel, "float64", self.threads)
        return np.ascontiguousarray(self.gram.decision(rows, coef, self.X)[:, 0])


def _flat(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1)
