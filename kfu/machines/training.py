"""Training: check what was asked, prepare a task, hand it to the machine, warn of an early stop."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.errors import ConvergenceWarning, DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machine_kinds import CLASSIFIER
from kfu.machines.checkpoint import Checkpoint
from kfu.machines.kernel_range import settings_in_range
from kfu.machines.probability import calibrate, check_probability
from kfu.machines.registry import Machine, machine_named
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.task import BIASES, TrainingTask, check_start
from kfu.model import Model
from kfu.multiclass import check_decoding, decoding_name, default_decoding, ova_code, resolve_code
from kfu.solvers import SolverSettings
from kfu.solvers.dual import ProgressCallback

LOSSES = {"svc2": "square", "rlsc": "square"}  # the others have the hinge loss


def train(
    X: Any,
    y: Any = None,
    *,
    machine: str = "svc",
    kernel: KernelSpec | None = None,
    cost: float = 1.0,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: np.ndarray | None = None,
    bias: bool | str | None = None,
    multiclass: Any = None,
    decoding: str | None = None,
    qid: np.ndarray | None = None,
    seed: int = 0,
    settings: SolverSettings | None = None,
    start: Model | None = None,
    progress: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    store: Any = None,
    engine: Any = None,
    source: str = "data",
    probability: str | None = None,
    probability_outputs: str = "cv",
    **options: Any,
) -> Model:
    """Train a machine on the rows of X (array or CSR); `source` names X in messages.

    y holds the labels of a classifier, the numbers of a regression, the relevance of a ranking;
    one-class takes none. A kernel that is None is rbf with γ = 1/n_features. cost may be infinite
    for svc and svc2 (hard margin). class_weight maps labels to factors of C, or is "balanced"
    (n / (n_classes · count), over rows of positive weight). bias: True or "free", False or "none",
    or "regularised" (½b² is added to the objective). multiclass: a name of kfu.multiclass.CODES,
    "crammer-singer", "weston-watkins", a code matrix or the path of one; decoding: a name of
    kfu.multiclass.DECODINGS. qid: queries of a ranking. `start` gives a model to start from; its
    `support` rows refer to the same X. `store` is a KernelStore over X under the same kernel.
    `engine` is an entered engine (kfu.engine) that trains the machines of a code as its tasks.
    probability: "sigmoid" or "isotonic" adds a calibration (kfu.calibration) fitted to outputs of
    rows left out (probability_outputs: "cv", "hold-out") or corrected by the span ("span").
    Further options are those of the machine (kfu.machines.OPTIONS): nu, epsilon, margins, ...

    Returns a Model; when the solver stopped early it warns with ConvergenceWarning and
    model.info["status"] says why.
    """
    task = prepare(
        X,
        y,
        machine=machine,
        kernel=kernel,
        cost=cost,
        class_weight=class_weight,
        sample_weight=sample_weight,
        bias=bias,
        multiclass=multiclass,
        decoding=decoding,
        qid=qid,
        seed=seed,
        settings=settings,
        start=start,
        progress=progress,
        checkpoint=checkpoint,
        store=store,
        engine=engine,
        source=source,
        **options,
    )
    if probability is not None:
        check_probability(probability, probability_outputs, task.machine)
        if probability_outputs == "span" and is_low_rank(task):
            raise SettingsError("the span is that of the full kernel; choose cv, or hold-out")
    if start is not None:
        check_start(start, task)
    if checkpoint is not None:
        task.resumed = checkpoint.open(task.fingerprint())
    model = task.machine.train(task)
    if probability is not None and model.info["status"] != "interrupted":
        calibrate(model, task, sample_weight, probability, probability_outputs)
    status = model.info["status"]
    if checkpoint is not None and status == "converged":
        checkpoint.remove()
    if status != "converged":
        gap, residual = model.info.get("kkt_gap"), model.info.get("residual", np.nan)
        if gap is not None:
            reached = f"gap {gap:.3g} with tolerance {task.settings.tolerance:g}"
        else:
            reached = f"relative residual {np.max(residual):.3g}"
        warnings.warn(
            f"training stopped before convergence ({status}): {reached}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return model


def is_low_rank(task: TrainingTask) -> bool:
    return bool(task.options.get("approximation", "none") != "none")


def prepare(
    X: Any,
    y: Any = None,
    *,
    machine: str = "svc",
    kernel: KernelSpec | None = None,
    cost: float = 1.0,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: np.ndarray | None = None,
    bias: bool | str | None = None,
    multiclass: Any = None,
    decoding: str | None = None,
    qid: np.ndarray | None = None,
    seed: int = 0,
    settings: SolverSettings | None = None,
    start: Model | None = None,
    progress: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    store: Any = None,
    engine: Any = None,
    source: str = "data",
    **options: Any,
) -> TrainingTask:
    """The checked task of these arguments, which are `train`'s."""
    chosen = machine_named(machine)
    X = _as_matrix(X, source)
    if X.shape[0] == 0:
        raise DataError(source, None, "no rows", "give data with at least one row")
    spec = (kernel or KernelSpec.make("rbf")).resolve(X)
    spec.check_data(X, source=source)
    is_classifier = chosen.kind == CLASSIFIER
    task = TrainingTask(
        machine=chosen,
        X=X,
        n=X.shape[0],
        labels=None,
        classes=np.zeros(0),
        targets=None,
        weights=np.ones(X.shape[0]),
        row_weights=_row_weights(sample_weight, X.shape[0], source),
        kernel=spec,
        bias=_checked_bias(bias, chosen),
        cost=_checked_cost(cost, chosen),
        options=chosen.check_options(options),
        settings=settings or SolverSettings(),
        qid=qid,
        seed=seed,
        source=source,
        start=start,
        progress=progress,
        checkpoint=checkpoint,
        class_weight=class_weight,
        store=None if bias == "regularised" else store,  # that one solves with K + 1
        engine=engine,
    )
    if is_classifier:
        task.classes, task.labels = _encoded(y, task.n, source)
        task.weights = _weights(task.labels, task.classes, class_weight, sample_weight, source)
        _choose_code(task, multiclass, decoding)
    else:
        if class_weight is not None:
            raise SettingsError(f"machine {machine} has no classes; leave the class weights out")
        if chosen.needs_labels:
            task.targets = _numbers(y, task.n, source)
        task.weights = task.row_weights
    task.settings = settings_in_range(X, spec, task.settings, source)
    return task


def _checked_cost(cost: float, machine: Machine) -> float:
    may_be_infinite = machine.name in ("svc", "svc2")
    try:
        cost = float(cost)
    except (TypeError, ValueError):
        raise SettingsError(f"cost is {cost!r}; a number is needed") from None
    if not cost > 0.0 or (np.isinf(cost) and not may_be_infinite):
        needed = "a number greater than 0" if may_be_infinite else "a finite number greater than 0"
        raise SettingsError(f"cost is {cost!r}; C has to be {needed}")
    return float(cost)


def _checked_bias(bias: bool | str | None, machine: Machine) -> str:
    if bias is None:
        return machine.default_bias
    name = {True: "free", False: "none"}.get(bias, bias) if isinstance(bias, bool) else bias
    if name not in BIASES:
        raise SettingsError(f"bias is {bias!r}; choose one of {', '.join(BIASES)}")
    if name != "free" and (not machine.takes_bias or machine.name == "nu-svc"):
        raise SettingsError(f"machine {machine.name} has no bias to choose; leave it out")
    return name


def _choose_code(task: TrainingTask, multiclass: Any, decoding: str | None) -> None:
    """Sets: code, code_name, decoding of the task."""
    if multiclass is None:
        multiclass = task.machine.default_code
    n_classes = len(task.classes)
    name = multiclass.strip().lower() if isinstance(multiclass, str) else None
    if name in SINGLE_MACHINES:
        task.code, task.code_name = ova_code(n_classes), name
        if n_classes == 2:
            task.code = np.array([[1, -1], [-1, 1]], dtype=np.int8)
        task.decoding = "argmax"
    elif task.machine.takes_codes:
        task.code, task.code_name = resolve_code(multiclass, n_classes, task.seed)
        loss = LOSSES.get(task.machine.name, "hinge")
        task.decoding = default_decoding(task.code_name, task.code, loss)
    else:
        task.decoding = "argmax"
        return
    if decoding is not None:
        task.decoding = decoding_name(decoding)
        check_decoding(task.decoding, task.code)


def _numbers(y: Any, n: int, source: str) -> np.ndarray:
    """The targets of a regression or ranking."""
    if y is None:
        raise DataError(source, None, "no targets", "give one number a row")
    values = np.asarray(y)
    if values.shape != (n,):
        raise DataError(source, None, f"{values.size} targets for {n} rows", "give one each")
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            source, None, "targets that are not numbers", "a regression needs numbers as labels"
        ) from None
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values))) + 1
        raise DataError(source, None, f"the target of row {row} is not finite", "mend the targets")
    return values


def _row_weights(sample_weight: Any, n: int, source: str) -> np.ndarray:
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(source, None, "weights that are not numbers", "mend the weights") from None
    if weights.shape != (n,):
        raise DataError(source, None, f"{weights.size} weights for {n} rows", "give one each")
    proper = np.isfinite(weights) & (weights >= 0)
    if not proper.all():
        row = int(np.argmin(proper)) + 1
        raise DataError(source, None, f"the weight of row {row} is not ≥ 0", "mend the weights")
    return weights


def _as_matrix(X: Any, source: str) -> Any:
    from kfu.data import check_X

    return check_X(X, source=source)


def _encoded(y: Any, n: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    if y is None:
        raise DataError(source, None, "no labels", "a classifier needs a label for each row")
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
    of_rows = _row_weights(sample_weight, len(labels), source)
    factors = np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise SettingsError(f"class_weight is {class_weight!r}; give 'balanced' or a mapping")
        present = of_rows > 0
        counts = np.bincount(labels, weights=present, minlength=len(classes))
        factors = present.sum() / (len(classes) * np.maximum(counts, 1.0))
    elif class_weight is not None:
        known = classes.tolist()
        for label, weight in class_weight.items():
            if label not in known:
                shown = ", ".join(str(c) for c in known[:10])
                raise SettingsError(f"class_weight names class {label!r}; the data have {shown}")
            if not np.isfinite(weight) or weight < 0:
                raise SettingsError(f"the weight of class {label!r} is {weight!r}; give it ≥ 0")
            factors[known.index(label)] = weight
    weights = factors[labels] * of_rows
    if len(np.unique(labels[weights > 0])) < 2:
        raise DataError(
            source,
            None,
            "fewer than two classes have rows of positive weight",
            "give rows of two classes or more a positive weight",
        )
    return weights
