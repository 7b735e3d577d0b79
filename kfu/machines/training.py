"""Training: check what was asked, prepare a task, hand it to the machine, warn of an early stop."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import ConvergenceWarning, DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machines.checkpoint import Checkpoint
from kfu.machines.svc import train_svc
from kfu.model import Model
from kfu.solvers import DualProblem, Solution, SolverSettings
from kfu.solvers.dual import Progress, ProgressCallback


@dataclass(frozen=True)
class Machine:
    """A kind of machine: what it is, and the function that trains it."""

    summary: str
    train: Callable[[TrainingTask], Model]


MACHINES: dict[str, Machine] = {
    "svc": Machine("support vector classifier, hinge loss (C-SVC)", train_svc),
}


@dataclass
class TrainingTask:
    """Everything a machine needs, checked: labels are class indices, costs the C_i of the rows."""

    X: Any
    labels: np.ndarray
    classes: np.ndarray
    costs: np.ndarray
    kernel: KernelSpec
    bias: bool
    cost: float
    settings: SolverSettings
    start: Model | None = None
    progress: ProgressCallback | None = None
    checkpoint: Checkpoint | None = None
    class_weight: Any = None
    resumed: dict[int, np.ndarray] = field(default_factory=dict)  # machine -> β by row

    @property
    def n(self) -> int:
        return len(self.labels)

    def described(self) -> dict[str, Any]:
        weight = self.class_weight
        if isinstance(weight, Mapping):
            weight = {str(label): float(value) for label, value in weight.items()}
        return {
            "cost": self.cost,
            "bias": self.bias,
            "class_weight": weight,
            **self.settings.to_dict(),
        }

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
        full[rows] = beta
        return full


def train(
    X: Any,
    y: Any,
    *,
    machine: str = "svc",
    kernel: KernelSpec | None = None,
    cost: float = 1.0,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: np.ndarray | None = None,
    bias: bool = True,
    settings: SolverSettings | None = None,
    start: Model | None = None,
    progress: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    source: str = "data",
) -> Model:
    """Train a machine on the rows of X (array or CSR) with labels y; `source` names X in messages.

    A kernel that is None is rbf with γ = 1/n_features. class_weight maps labels to factors of C, or
    is "balanced" (n / (n_classes · count)). `start` gives a model to start from; its `support` rows
    refer to the same X. Returns a Model; when the solver stopped early it warns with
    ConvergenceWarning and model.info["status"] says why.
    """
    if machine not in MACHINES:
        raise SettingsError(f"no machine {machine!r}; choose one of {', '.join(MACHINES)}")
    if not np.isfinite(cost) or cost <= 0.0:
        raise SettingsError(f"cost is {cost!r}; C has to be a finite number greater than 0")
    X = _as_matrix(X, source)
    classes, labels = _encoded(y, X.shape[0], source)
    spec = (kernel or KernelSpec.make("rbf")).resolve(X)
    spec.check_data(X, source=source)
    task = TrainingTask(
        X=X,
        labels=labels,
        classes=classes,
        costs=cost * _weights(labels, classes, class_weight, sample_weight, source),
        kernel=spec,
        bias=bias,
        cost=float(cost),
        settings=settings or SolverSettings(),
        start=start,
        progress=progress,
        checkpoint=checkpoint,
        class_weight=class_weight,
    )
    if start is not None:
        _check_start(start, task)
    if checkpoint is not None:
        task.resumed = checkpoint.open(_fingerprint(task, machine))
    model = MACHINES[machine].train(task)
    status = model.info["status"]
    if checkpoint is not None and status == "converged":
        checkpoint.remove()
    if status != "converged":
        warnings.warn(
            f"training stopped before convergence ({status}): gap {model.info['kkt_gap']:.3g} "
            f"with tolerance {task.settings.tolerance:g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return model


def feasible(beta: np.ndarray, problem: DualProblem) -> np.ndarray:
    """β moved into the boxes and, where the equality binds, onto Σβ = 0 by scaling one side.

    A sum of rounding size is left alone: scaling would take β that are at a bound off it.
    """
    arrays = problem.signed(None)
    beta = np.clip(beta, arrays["lower"], arrays["upper"])
    if not problem.has_equality:
        return beta
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if abs(positive - negative) <= 1e-12 * (positive + negative):
        return beta
    if positive > negative:
        beta[beta > 0] *= negative / positive
    else:
        beta[beta < 0] *= positive / negative
    return beta


def _coefficients_of(model: Model, machine: int, n: int) -> np.ndarray:
    full = np.zeros(n)
    full[model.support] = model.coef[machine]
    return full


def _check_start(start: Model, task: TrainingTask) -> None:
    known = start.support.size == 0 or (start.support.min() >= 0 and start.support.max() < task.n)
    if not known:
        raise SettingsError(
            "the start model does not tell the rows of its support vectors in these data; "
            "start from a model that kfu trained on the same file"
        )
    if start.classes.tolist() != task.classes.tolist():
        raise SettingsError("the start model has other classes than the data; train it on the same")


def _fingerprint(task: TrainingTask, machine: str) -> dict[str, Any]:
    """What a checkpoint has to share with the training it is resumed in."""
    digest = hashlib.sha256()
    if sp.issparse(task.X):
        for part in (task.X.data, task.X.indices, task.X.indptr):
            digest.update(np.ascontiguousarray(part).data)
    else:
        digest.update(np.ascontiguousarray(task.X).data)
    digest.update(np.ascontiguousarray(task.labels).data)
    digest.update(np.ascontiguousarray(task.costs).data)
    return {
        "machine": machine,
        "kernel": task.kernel.to_dict(),
        "cost": task.cost,
        "bias": task.bias,
        "n": task.n,
        "data": digest.hexdigest(),
    }


def _as_matrix(X: Any, source: str) -> Any:
    from kfu.data import check_X

    return check_X(X, source=source)


def _encoded(y: Any, n: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    y = np.asarray(y)
    if y.shape != (n,):
        raise DataError(source, None, f"{y.size} labels for {n} rows", "give one label a row")
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            source,
            None,
            f"only one class ({classes[0] if len(classes) else 'none'})",
            "a classifier needs rows of two classes or more",
        )
    return classes, labels.reshape(-1)


def _weights(
    labels: np.ndarray,
    classes: np.ndarray,
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: np.ndarray | None,
    source: str,
) -> np.ndarray:
    counts = np.bincount(labels, minlength=len(classes))
    factors = np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise SettingsError(f"class_weight is {class_weight!r}; give 'balanced' or a mapping")
        factors = len(labels) / (len(classes) * counts)
    elif class_weight is not None:
        known = classes.tolist()
        for label, weight in class_weight.items():
            if label not in known:
                shown = ", ".join(str(c) for c in known[:10])
                raise SettingsError(f"class_weight names class {label!r}; the data have {shown}")
            if not np.isfinite(weight) or weight < 0:
                raise SettingsError(f"the weight of class {label!r} is {weight!r}; give it ≥ 0")
            factors[known.index(label)] = weight
    weights = factors[labels]
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, dtype=np.float64)
        if sample_weight.shape != labels.shape:
            raise DataError(
                source,
                None,
                f"{sample_weight.size} weights for {len(labels)} rows",
                "give one each",
            )
        if not np.all(np.isfinite(sample_weight)) or np.any(sample_weight < 0):
            row = int(np.argmax(~(np.isfinite(sample_weight) & (sample_weight >= 0)))) + 1
            raise DataError(source, None, f"the weight of row {row} is not ≥ 0", "mend the weights")
        weights = weights * sample_weight
    if len(np.unique(labels[weights > 0])) < 2:
        raise DataError(
            source,
            None,
            "fewer than two classes have rows of positive weight",
            "give rows of two classes or more a positive weight",
        )
    return weights
