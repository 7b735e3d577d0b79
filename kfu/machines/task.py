"""What a machine is trained from: the data, checked, and the helpers every machine shares."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import SettingsError
from kfu.kernels import KernelForm, KernelSpec, LeafPart
from kfu.machines.checkpoint import Checkpoint
from kfu.machines.registry import Machine, option_word
from kfu.model import Model
from kfu.solvers import DualProblem, Solution, SolverSettings
from kfu.solvers.dual import Progress, ProgressCallback, make_store, solve

BIASES = ("free", "none", "regularised")
WORTH_THREADS = 200_000  # values to copy


@dataclass
class TrainingTask:
    """Everything a machine needs, checked.

    labels: class indices of a classifier; targets: numbers of the other kinds (None without).
    weights: of class and row, ≥ 0. `resumed` and `start` give β to start from, by machine and row.
    """

    machine: Machine
    X: Any
    n: int
    labels: np.ndarray | None
    classes: np.ndarray
    targets: np.ndarray | None
    weights: np.ndarray
    row_weights: np.ndarray  # of the row alone
    kernel: KernelSpec
    bias: str
    cost: float
    options: dict[str, Any]
    settings: SolverSettings
    qid: np.ndarray | None = None
    code: np.ndarray | None = None
    code_name: str = ""
    decoding: str = "votes"
    seed: int = 0
    source: str = "data"
    start: Model | None = None
    progress: ProgressCallback | None = None
    checkpoint: Checkpoint | None = None
    class_weight: Any = None
    store: Any = None  # a KernelStore over X, when the caller trains several machines on it
    engine: Any = None  # an entered engine (kfu.engine) for the machines of a code
    resumed: dict[int, np.ndarray] = field(default_factory=dict)  # machine -> β by row

    # ---- the problem solved ------------------------------------------------------------------

    @property
    def has_free_bias(self) -> bool:
        return self.bias == "free"

    def solver_kernel(self) -> tuple[Any, Any]:
        """The data and kernel the dual is solved with: K + 1 where the bias is regularised."""
        if self.bias != "regularised":
            return self.X, self.kernel
        if self.kernel.is_precomputed:
            shifted = self.X.toarray() if sp.issparse(self.X) else self.X
            return np.ascontiguousarray(shifted + 1.0 / self.kernel.weight), self.kernel
        one = LeafPart("poly", "bias", gamma=0.0, coef0=1.0, degree=1)
        return self.X, KernelForm([*self.kernel.normal_form(), (1.0, (one,))])

    def shared_store(self, settings: SolverSettings) -> Any:
        """The KernelStore of this training: the caller's, or a new one."""
        if self.store is not None and self.bias != "regularised":
            return self.store
        return make_store(*self.solver_kernel(), settings)

    def solve(self, problem: DualProblem, machine: int = 0, **options: Any) -> Solution:
        """Solve one dual; β of a regularised bias gives its bias as their sum."""
        X, kernel = self.solver_kernel()
        settings = options.pop("settings", self.settings)
        solution = solve(problem, X, kernel, settings, **options)
        if self.bias != "regularised":
            return solution
        bias = float(solution.beta.sum())
        return replace(solution, bias=bias, info=replace(solution.info, bias=bias))

    # ---- starts, progress, checkpoints ---------------------------------------------------------

    def start_of(self, machine: int, rows: np.ndarray, problem: DualProblem) -> np.ndarray | None:
        """A feasible β for this machine from the checkpoint or the start model; None for zeros."""
        if machine in self.resumed:
            beta = self.resumed[machine][rows]
        elif self.start is not None:
            beta = _coefficients_of(self.start, machine, self.n)[rows]
        else:
            return None
        return feasible(beta, problem)

    def progress_of(
        self, machine: int, n_machines: int, rows: np.ndarray
    ) -> ProgressCallback | None:
        """The callback of one machine: saves checkpoints, tells which machine it is."""
        if self.progress is None and self.checkpoint is None:
            return None
        stage = f"{machine + 1}/{n_machines}" if n_machines > 1 else ""

        def report(seen: Progress) -> bool:
            if self.checkpoint is not None and self.checkpoint.is_due():
                self.checkpoint.save(machine, self._all_rows(rows, seen.beta()))
            if self.progress is None:
                return False
            return bool(self.progress(replace(seen, stage=stage)))

        return report

    def machine_done(self, machine: int, rows: np.ndarray, solution: Solution) -> None:
        if self.checkpoint is None:
            return
        beta = self._all_rows(rows, solution.beta)
        if solution.info.status == "converged":
            self.checkpoint.finish(machine, beta)
        else:
            self.checkpoint.save(machine, beta)  # the run is about to end

    def _all_rows(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        full = np.zeros(self.n)
        full[rows] = beta[: len(rows)]
        return full

    # ---- descriptions --------------------------------------------------------------------------

    def described(self) -> dict[str, Any]:
        weight = self.class_weight
        if isinstance(weight, Mapping):
            weight = {str(label): float(value) for label, value in weight.items()}
        facts: dict[str, Any] = {"bias": self.bias, "class_weight": weight}
        # By their words, as a config file would hold them; margins are an array.
        for name, value in self.options.items():
            if name != "margins":
                facts[option_word(name).replace("-", "_")] = value
        if self.machine.takes_cost:
            facts["cost"] = self.cost
        if self.code is not None and self.code.shape[1] > 1:
            facts.update(multiclass=self.code_name, decoding=self.decoding)
        return {**facts, **self.settings.to_dict()}

    def support_vectors(self, support: np.ndarray) -> Any:
        """What a model holds of these rows: nothing where the kernel is precomputed."""
        if self.kernel.is_precomputed:
            return None
        return rows_of(self.X, support, self.settings.n_threads)

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint has to share with the training it is resumed in."""
        digest = hashlib.sha256()
        parts: list[Any] = [self.X]
        if sp.issparse(self.X):
            parts = [self.X.data, self.X.indices, self.X.indptr]
        for part in (*parts, self.labels, self.targets, self.weights, self.code):
            if part is not None:
                digest.update(np.ascontiguousarray(part).data)
        return {
            "machine": self.machine.name,
            "kernel": self.kernel.to_dict(),
            "cost": self.cost,
            "bias": self.bias,
            "options": {k: v for k, v in self.options.items() if k != "margins"},
            "n": self.n,
            "data": digest.hexdigest(),
        }


def rows_of(X: Any, rows: np.ndarray, threads: int = 1) -> Any:
    """The rows of X as support vectors hold them; large ones are copied by several threads, which
    share the cost of fresh memory."""
    if sp.issparse(X):
        return sp.csr_matrix(X[rows])
    if threads == 1 or len(rows) * X.shape[1] < WORTH_THREADS:
        return np.take(X, rows, axis=0)
    out = np.empty((len(rows), *X.shape[1:]), dtype=X.dtype)
    cuts = np.linspace(0, len(rows), threads + 1).astype(np.int64)

    def copy(first: int, last: int) -> None:  # "clip": other modes copy twice; rows are all there
        np.take(X, rows[first:last], axis=0, out=out[first:last], mode="clip")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(copy, cuts[:-1], cuts[1:]))
    return out


def feasible(beta: np.ndarray, problem: DualProblem) -> np.ndarray:
    """β moved into the boxes and, where the equality binds, onto Σβ = 0: unbounded β take what is
    missing, as far as their boxes have room, then one side is scaled.

    A sum of rounding size is left alone: scaling would take β that are at a bound off it.
    """
    arrays = problem.signed(None)
    lower, upper = arrays["lower"], arrays["upper"]
    beta = np.clip(beta, lower, upper)
    if not problem.has_equality:
        return beta
    missing = -float(beta.sum())
    if abs(missing) > 1e-12 * np.abs(beta).sum():
        room = np.where((beta > lower) & (beta < upper) & (beta != 0.0), 1.0, 0.0)
        end = np.where(beta > 0, upper, 0.0) if missing > 0 else np.where(beta < 0, lower, 0.0)
        room *= np.minimum(np.abs(end - beta), np.abs(missing))  # an infinite box has enough
        space = float(room.sum())
        if space > 0.0:
            moved = beta + np.sign(missing) * room * min(1.0, abs(missing) / space)
            # What only rounding keeps from its end is there: as unbounded it would fix the bias.
            is_there = np.abs(end - moved) <= 16 * np.finfo(float).eps * (room + np.abs(moved))
            beta = np.where(is_there & (room > 0.0), end, np.clip(moved, lower, upper))
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if abs(positive - negative) <= 1e-12 * (positive + negative):
        return beta
    if positive > negative:
        beta[beta > 0] *= negative / positive
    else:
        beta[beta < 0] *= positive / negative
    return beta


def with_total(beta: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray | None:
    """0 ≤ β ≤ upper of the given sum, near β: scaled down, or filled up in proportion to the room.

    None when the box cannot hold the sum.
    """
    beta = np.clip(beta, 0.0, upper)
    found = float(beta.sum())
    if found > total:
        return beta * (total / found)
    room = upper - beta
    missing, space = total - found, float(room.sum())
    if missing > space * (1 + 1e-12):
        return None
    return beta + room * (missing / space if space > 0 else 0.0)


def _coefficients_of(model: Model, machine: int, n: int) -> np.ndarray:
    full = np.zeros(n)
    full[model.support] = model.coef[machine]
    return full


def check_start(start: Model, task: TrainingTask) -> None:
    known = start.support.size == 0 or (start.support.min() >= 0 and start.support.max() < task.n)
    if not known:
        raise SettingsError(
            "the start model does not tell the rows of its support vectors in these data; "
            "start from a model that kfu trained on the same file"
        )
    if task.labels is not None and start.classes.tolist() != task.classes.tolist():
        raise SettingsError("the start model has other classes than the data; train it on the same")
    wanted = 1 if task.code is None else task.code.shape[1]
    if start.n_machines != wanted or start.machine != task.machine.name:
        raise SettingsError(
            f"the start model is a {start.machine} of {start.n_machines} binary machines; this "
            f"training is a {task.machine.name} of {wanted}"
        )


Trainer = Callable[[TrainingTask], Model]
