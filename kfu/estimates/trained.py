"""What estimates are made from: a trained machine with its data, seen as binary machines.

Each binary machine has, over the rows it was trained on, y = ±1, α in the box [0, U], the target g
of the margin, the slack ridge r and the plain outputs f. The kernel is the one the dual was solved
with: K, or K + 1 where the bias is regularised (the machine is then one without bias).

Squared slack is the hard margin of K̃ = K + diag(r), r = 1/C, U = ∞: everything that is said of hard
margins holds with K̃ and its outputs f̃ = f + yαr. A row that is left out meets no ridge, so that its
output by K̃ is the plain one. With hinge loss r = 0 and f̃ = f.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.calibration.span_outputs import Spans, categories, find_spans
from kfu.kernels import KERNELS
from kfu.machine_kinds import CLASSIFIER, REGRESSOR
from kfu.machines.coded import CodedTraining
from kfu.machines.reductions import box_of
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.pairwise import pairs_of

LARGEST_CHECKED = 1500  # rows of a given kernel matrix whose eigenvalues are looked at
BLOCK_ROWS = 512


class KernelValues:
    """Values of the kernel the dual was solved with, float64, by rows of the data."""

    def __init__(self, task: TrainingTask) -> None:
        self.task = task
        self.constant = 1.0 if task.bias == "regularised" else 0.0

    @cached_property
    def gram(self) -> Any:
        from kfu._gram import Gram

        return Gram(self.task.X, self.task.kernel, "float64", self.task.settings.n_threads)

    def block(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """K(rows, cols), an array of its own."""
        if self.task.kernel.is_precomputed:
            part = self.task.X[rows][:, cols]
            part = part.toarray() if sp.issparse(part) else part
            values = np.array(part, dtype=np.float64, order="C") * self.task.kernel.weight
        else:
            values = np.asarray(self.gram.block(rows, cols))
        if self.constant:
            values += self.constant
        return values

    def diagonal(self) -> np.ndarray:
        if self.task.kernel.is_precomputed:
            found = np.asarray(self.task.X.diagonal(), dtype=np.float64) * self.task.kernel.weight
        else:
            found = np.asarray(self.gram.diagonal())
        return found + self.constant

    def indefinite(self) -> str | None:
        """Why the kernel is not known to be positive semidefinite; None where it is."""
        for leaf in self.task.kernel.leaves():
            if leaf.is_precomputed:
                continue
            coef0 = leaf.params.get("coef0", 0.0)
            if not KERNELS[leaf.name].is_psd or (isinstance(coef0, float) and coef0 < 0):
                return f"the kernel {leaf.describe()} is not positive semidefinite for all data"
        if self.task.kernel.is_precomputed and self.task.n <= LARGEST_CHECKED:
            everything = np.arange(self.task.n)
            K = self.block(everything, everything)
            values = np.linalg.eigvalsh((K + K.T) / 2)
            if values[0] < -1e-8 * max(abs(values[-1]), abs(values[0])):
                return f"the kernel matrix has a negative eigenvalue ({values[0]:.3g})"
        return None


@dataclass
class BinaryMachine:
    """One binary machine (or regression, y the sign of its coefficient) over its rows."""

    rows: np.ndarray
    y: np.ndarray
    alpha: np.ndarray
    upper: np.ndarray
    target: np.ndarray
    ridge: np.ndarray
    plain: np.ndarray  # f
    bias: float
    has_bias: bool  # a free one
    kernel: KernelValues
    kept: dict[str, Any] = field(default_factory=dict)  # what estimates share

    def block(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Plain kernel values by places among the rows."""
        return self.kernel.block(self.rows[rows], self.rows[cols])

    @cached_property
    def diagonal(self) -> np.ndarray:
        """K̃(x, x)."""
        return self.kernel.diagonal()[self.rows] + self.ridge

    @property
    def outputs(self) -> np.ndarray:
        """f̃."""
        return self.plain + self.y * self.alpha * self.ridge

    @property
    def slack(self) -> np.ndarray:
        """ξ of the margins of K̃; 0 but for the accuracy of training where the slack is squared."""
        return np.maximum(0.0, self.target - self.y * self.outputs)

    @property
    def support(self) -> np.ndarray:
        return np.flatnonzero(self.alpha > 0)

    @cached_property
    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the unbounded and of the bounded support vectors."""
        free, bounded = categories(self.alpha[self.support], self.upper[self.support])
        return self.support[free], self.support[bounded]

    @cached_property
    def spans(self) -> Spans:
        return self.find_spans()

    def find_spans(self, eta: float = 0.0) -> Spans:
        ridge = self.ridge if np.any(self.ridge) else None
        return find_spans(self.alpha, self, self.upper, self.has_bias, ridge=ridge, eta=eta)

    @property
    def squared_norm(self) -> float:
        """‖w̃‖²."""
        return float((self.alpha * self.y) @ (self.outputs - self.bias))

    @cached_property
    def farthest(self) -> np.ndarray:
        """The largest squared distance, by K̃, of each support vector to another row."""
        found = np.zeros(self.support.size)
        everything = np.arange(self.rows.size)
        for start in range(0, self.support.size, BLOCK_ROWS):
            part = self.support[start : start + BLOCK_ROWS]
            squares = self.diagonal[part, None] + self.diagonal - 2.0 * self.block(part, everything)
            squares[np.arange(part.size), part] = 0.0
            found[start : start + BLOCK_ROWS] = squares.max(axis=1)
        return found


class Trained:
    """A machine, its task and its model, without its scaler: the rows of the task are scaled."""

    def __init__(self, task: TrainingTask, model: Model) -> None:
        self.task, self.model = task, model
        if model.scaler is not None:
            self.model = replace(model, scaler=None)
            self.model.loo = model.loo
        self.kernel = KernelValues(task)
        self.kept: dict[str, Any] = {}

    @property
    def machine(self) -> str:
        """The machine's name; a single machine over all classes by its own."""
        if self.task.code_name in SINGLE_MACHINES:
            return self.task.code_name
        return self.task.machine.name

    @property
    def kind(self) -> str:
        return self.task.machine.kind

    @property
    def is_binary(self) -> bool:
        return self.kind == CLASSIFIER and self.model.n_machines == 1

    @property
    def has_bias(self) -> bool:
        return self.task.has_free_bias

    @cached_property
    def indefinite(self) -> str | None:
        return self.kernel.indefinite()

    @cached_property
    def decision(self) -> np.ndarray:
        return self.model.decision_function(self.task.X, threads=self.task.settings.threads)

    @cached_property
    def counted(self) -> np.ndarray:
        """Rows that the figures are of: those of positive weight."""
        return np.flatnonzero(self.task.row_weights > 0)

    def share(self, flags: np.ndarray) -> float:
        """The share of the rows, by weight, for which `flags` holds."""
        return float(np.average(flags, weights=self.task.row_weights))

    # ---- outputs to figures --------------------------------------------------------------------

    def wrong(self, outputs: np.ndarray) -> np.ndarray:
        """Whether outputs (n, n_machines) decode to another class than the row's."""
        return np.asarray(self.model.decide(outputs) != self.task.labels)

    def score(self, outputs: np.ndarray) -> float:
        """The error of a classifier, the mean squared error of a regression, the share of outliers
        or of pairs in the wrong order, if these are the outputs."""
        task = self.task
        if self.kind == CLASSIFIER:
            return self.share(self.wrong(outputs))
        if self.kind == REGRESSOR:
            assert task.targets is not None
            return float(np.average((outputs[:, 0] - task.targets) ** 2, weights=task.row_weights))
        if task.machine.name == "rank":
            from kfu.validation.ranking_scores import pair_error

            return float(pair_error(outputs[:, 0], task.targets, task.qid))
        return self.share(outputs[:, 0] <= 0)

    @property
    def signs_decide(self) -> bool:
        """Whether a row whose machines all have the right sign is decoded to its class."""
        code, decoding = self.model.code, self.model.decoding
        if code.shape[1] == 1 or decoding == "argmax":
            return True
        if decoding in ("votes", "hamming") and bool(np.all(code != 0)):
            return True
        return decoding in ("votes", "hamming", "dag") and pairs_of(code) is not None

    # ---- binary machines -----------------------------------------------------------------------

    @cached_property
    def binary(self) -> list[BinaryMachine]:
        if self.kind == REGRESSOR:
            return [self._regression()]
        task, model = self.task, self.model
        columns = CodedTraining(task)
        found = []
        for number, rows in enumerate(columns.rows):
            problem = columns.reduction_of(number).problem
            beta = np.zeros(task.n)
            beta[model.support] = model.coef[number]
            y = problem.signs
            alpha = np.maximum(y * beta[rows], 0.0)
            found.append(
                BinaryMachine(
                    rows=rows,
                    y=y,
                    alpha=np.minimum(alpha, problem.upper),
                    upper=problem.upper,
                    target=-problem.linear,
                    ridge=np.zeros(rows.size) if problem.ridge is None else problem.ridge,
                    plain=self.decision[rows, number],
                    bias=float(model.bias[number]) if self.has_bias else 0.0,
                    has_bias=self.has_bias,
                    kernel=self.kernel,
                )
            )
        return found

    def _regression(self) -> BinaryMachine:
        task, model = self.task, self.model
        beta = np.zeros(task.n)
        beta[model.support] = model.coef[0]
        return BinaryMachine(
            rows=np.arange(task.n),
            y=np.where(beta < 0, -1.0, 1.0),
            alpha=np.abs(beta),
            upper=box_of(task.cost, task.weights),
            target=np.ones(task.n),
            ridge=np.zeros(task.n),
            plain=self.decision[:, 0],
            bias=float(model.bias[0]) if self.has_bias else 0.0,
            has_bias=self.has_bias,
            kernel=self.kernel,
        )

    def any_machine(self, flags: list[np.ndarray]) -> np.ndarray:
        """Rows that some of the binary machines flags (their own rows, one array each)."""
        found = np.zeros(self.task.n, dtype=bool)
        for machine, own in zip(self.binary, flags, strict=True):
            found[machine.rows] |= own
        return found

    def all_machines(self, outputs: list[np.ndarray]) -> np.ndarray:
        """Outputs (n, n_machines); a machine that does not see a row keeps its output."""
        found = self.decision.copy()
        for number, (machine, own) in enumerate(zip(self.binary, outputs, strict=True)):
            found[machine.rows, number] = own
        return found
