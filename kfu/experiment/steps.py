"""The steps an experiment can be made of: one entry of STEPS each.

A step has a table of keys (its options, spelled as on the command line), the figures it can
yield, what has to come before it, and a function `run(options, state) -> figures`. It works on
the State of one part of an experiment: it may replace the rows (scale), leave a model behind
(train) or only measure (predict). Figures are numbers; the runner puts the step's name before
each (`train.objective`, `test.accuracy`).

To add a step, write its function and its entry in STEPS: the checks of the YAML, the resuming,
the table and the pictures follow from it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from kfu.data import Dataset, format_label
from kfu.errors import SettingsError
from kfu.experiment.document import (
    Key,
    choice,
    count,
    flag,
    non_negative,
    number,
    positive,
    positive_count,
    text,
)
from kfu.kernels import KERNELS, KernelSpec
from kfu.machines import MACHINES
from kfu.machines import train as train_machine
from kfu.model import Model
from kfu.report import Confusion
from kfu.scale import SCALERS, Scaler
from kfu.solvers import SOLVERS, SolverSettings


@dataclass
class State:
    """What the steps of one part share. Rows may be replaced; the datasets are never changed."""

    train: Dataset
    test: Dataset | None
    seed: list[int]
    threads: int = 0
    scaler: Scaler | None = None
    model: Model | None = None
    status: str | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """See the head of this module. A figure name that ends in '.' stands for all it begins."""

    run: Callable[[dict[str, Any], State], dict[str, float]]
    keys: Mapping[str, Key]
    figures: tuple[str, ...]
    after: str | None = None


# ---- scale ----------------------------------------------------------------------------------


def interval(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("not [LOW, HIGH]; write for example [-1, 1]")
    low, high = number(value[0]), number(value[1])
    if low >= high:
        raise ValueError(f"[{low:g}, {high:g}] is empty; the first number is the smaller one")
    return low, high


def run_scale(options: dict[str, Any], state: State) -> dict[str, float]:
    method = options.pop("method", "standard")
    for option, owner in (("range", "minmax"), ("divisor", "divide")):
        if option in options and method != owner:
            raise SettingsError(f"{option}: belongs to method {owner}, not {method}; leave it out")
    if method == "divide" and "divisor" not in options:
        raise SettingsError("method divide needs its constant; give 'divisor'")
    if "divisor" in options:
        options["constant"] = options.pop("divisor")
    scaler = Scaler.fit(state.train.X, method, **options)
    state.scaler = scaler
    state.train = replace(state.train, X=scaler.transform(state.train.X))
    if state.test is not None:
        state.test = replace(state.test, X=scaler.transform(state.test.X))
    return {}


# ---- train ----------------------------------------------------------------------------------

KERNEL_PARAMETERS = ("gamma", "sigma", "degree", "coef0")
SOLVER_FIELDS = tuple(item.name for item in fields(SolverSettings) if item.name != "threads")
GAMMA_RULES = ("auto", "scale", "median")


def gamma(value: Any) -> float | str:
    return (
        choice("rule for gamma", GAMMA_RULES)(value) if isinstance(value, str) else positive(value)
    )


def kernel(value: Any) -> str | dict[str, Any]:
    """A name of the registry, or the mapping that describes a composed kernel."""
    return value if isinstance(value, dict) else text(value)


def class_weight(value: Any) -> str | dict[str, float]:
    if isinstance(value, dict):
        return {str(label): positive(weight) for label, weight in value.items()}
    return choice("class weight", ["balanced"])(value)


def kernel_of(options: dict[str, Any]) -> KernelSpec:
    """The kernel that `kernel`, `gamma`, `sigma`, `degree` and `coef0` describe."""
    name = options.get("kernel", "rbf")
    given = {key: options[key] for key in KERNEL_PARAMETERS if key in options}
    if isinstance(name, str):
        return KernelSpec.make(name, **given)
    if given:
        raise SettingsError(f"{', '.join(given)}: the kernel holds its parameters; set them there")
    return KernelSpec.from_dict(name)


def keyed_weights(
    weights: str | dict[str, float] | None, data: Dataset
) -> str | dict[Any, float] | None:
    """Class weights by the labels of the data instead of their text."""
    if weights is None or isinstance(weights, str):
        return weights
    assert data.y is not None
    labels = {format_label(value): value for value in np.unique(data.y)}
    for word in weights:
        if word not in labels:
            raise SettingsError(
                f"class_weight: {data.source} has no class '{word}'; its classes: "
                f"{', '.join(list(labels)[:10])}"
            )
    return {labels[word].item(): weight for word, weight in weights.items()}


def run_train(options: dict[str, Any], state: State) -> dict[str, float]:
    settings = SolverSettings(
        threads=state.threads, **{key: options[key] for key in SOLVER_FIELDS if key in options}
    )
    rows = state.train.X
    scaler = None
    if "scale" in options:
        scaler = Scaler.fit(rows, options["scale"])
        rows = scaler.transform(rows)
    begin = time.perf_counter()
    model = train_machine(
        rows,
        state.train.y,
        machine=options.get("machine", "svc"),
        kernel=kernel_of(options),
        cost=options.get("cost", 1.0),
        class_weight=keyed_weights(options.get("class_weight"), state.train),
        sample_weight=state.train.weights,
        bias=options.get("bias", True),
        settings=settings,
    )
    seconds = time.perf_counter() - begin
    model.scaler = scaler
    state.model = model
    state.status = str(model.info.get("status", "converged"))
    if state.status == "interrupted":  # a part counts only when it is whole
        raise KeyboardInterrupt
    figures = {**numbers_of(model.info), "n_sv": float(model.n_sv)}
    figures |= {"n": float(state.train.n), "n_features": float(model.n_features)}
    figures |= {"seconds": seconds, "converged": float(state.status == "converged")}
    return {name: value for name, value in figures.items() if name in TRAIN_FIGURES}


def numbers_of(info: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers among the values of `info`."""
    return {
        name: float(value)
        for name, value in info.items()
        if isinstance(value, (int, float, np.number))
        and not isinstance(value, bool)
        and math.isfinite(value)
    }


TRAIN_FIGURES = (
    *("objective", "duality_gap", "kkt_gap", "kkt_violation", "bias", "bias_std"),
    *("iterations", "rounds", "kernel_evaluations", "cache_hits", "cache_misses"),
    *("n_sv", "n_usv", "n", "n_features", "seconds", "converged"),
)


# ---- predict --------------------------------------------------------------------------------


def run_predict(options: dict[str, Any], state: State) -> dict[str, float]:
    assert state.model is not None  # the plan has checked that a step leaves one
    data = state.train if options.get("rows", "test") == "train" else state.test
    if data is None:
        raise SettingsError(
            "predict: there are no test rows; give 'data.test' or a 'split', or 'rows: train'"
        )
    begin = time.perf_counter()
    decision = state.model.decision_function(
        data.X,
        threads=state.threads,
        from_sparse_text=data.from_sparse_text,
        source=data.source,
    )
    winners = state.model.decide(decision)
    seconds = time.perf_counter() - begin
    confusion = Confusion(state.model.classes)
    confusion.add(data.y, winners)
    state.warnings += confusion.warnings()
    summary = confusion.summary()
    figures = {"n": float(summary["n"]), "seconds": seconds}
    if summary["accuracy"] is None:
        return figures
    figures |= {"accuracy": summary["accuracy"], "error": summary["error"]}
    figures["n_errors"] = float(confusion.n_labelled - confusion.n_correct)
    for row in summary["per_class"]:
        for rate in ("recall", "precision"):
            if row[rate] is not None:
                figures[f"{rate}.{row['label']}"] = row[rate]
    return figures


# ---- the table ------------------------------------------------------------------------------

SOLVER_KEYS: dict[str, Key] = {
    "solver": Key(choice("solver", SOLVERS), "the algorithm"),
    "tolerance": Key(positive, "the violation at which to stop"),
    "cache_mib": Key(positive, "the memory for kernel values"),
    "chunk": Key(count, "how many points are optimised together"),
    "precision": Key(
        choice("precision", ["auto", "float32", "float64"]), "that of stored kernel values"
    ),
    "selection": Key(choice("selection", ["second", "first"]), "how pairs are chosen"),
    "shrinking": Key(flag, "whether points at their bound are set aside"),
    "max_iterations": Key(count, "the largest number of pair steps"),
    "max_seconds": Key(non_negative, "the longest time"),
}

STEPS: dict[str, Step] = {
    "scale": Step(
        run_scale,
        {
            "method": Key(choice("scaling", SCALERS), "the kind of scaling"),
            "range": Key(interval, "the interval of minmax"),
            "divisor": Key(positive, "what divide divides by"),
        },
        figures=(),
    ),
    "train": Step(
        run_train,
        {
            "machine": Key(choice("machine", MACHINES), "the machine"),
            "kernel": Key(kernel, f"the kernel: {', '.join(KERNELS)}, or a mapping"),
            "gamma": Key(gamma, "the kernel's gamma"),
            "sigma": Key(positive, "the width of an rbf kernel"),
            "degree": Key(positive_count, "the degree of a polynomial kernel"),
            "coef0": Key(number, "the constant of polynomial and sigmoid kernels"),
            "cost": Key(positive, "C, the cost of one unit of slack"),
            "class_weight": Key(class_weight, "factors of the cost by class, or 'balanced'"),
            "bias": Key(flag, "whether the decision function has a constant term"),
            "scale": Key(
                choice("scaling", [name for name in SCALERS if name != "divide"]),
                "a scaling that the model keeps",
            ),
            **{name: key for name, key in SOLVER_KEYS.items() if name in SOLVER_FIELDS},
        },
        figures=TRAIN_FIGURES,
    ),
    "predict": Step(
        run_predict,
        {"rows": Key(choice("set of rows", ["test", "train"]), "which rows are predicted")},
        figures=("accuracy", "error", "n_errors", "n", "seconds", "recall.", "precision."),
        after="train",
    ),
}


def label_of(name: str, options: Mapping[str, Any]) -> str:
    """The name that stands before a step's figures: `as`, or the rows predicted, or the step."""
    if "as" in options:
        return str(options["as"])
    return str(options.get("rows", "test")) if name == "predict" else name
