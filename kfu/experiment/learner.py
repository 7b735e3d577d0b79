"""The keys that describe a machine to train, shared by the steps `train` and `cross_validate`.

They are the arguments of kfu.machines.train under the same names; options that only some machines
have come from kfu.machines.OPTIONS. What a machine does not take is refused when the file is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from kfu.data import Dataset, format_label
from kfu.diagnostics import looks_like_regression
from kfu.errors import DataError, SettingsError
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
from kfu.experiment.state import Options, Problems, State, StepPlan
from kfu.kernels import KERNELS, KernelSpec
from kfu.machine_kinds import CLASSIFIER, RANKER
from kfu.machines import MACHINES, OPTIONS, Machine
from kfu.machines.probability import METHODS, OUTPUTS
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.multiclass import CODES, DECODINGS, code_name, decoding_name
from kfu.scale import SCALERS, Scaler
from kfu.solvers import SOLVERS, SolverSettings

KERNEL_PARAMETERS = ("gamma", "sigma", "degree", "coef0")
SOLVER_FIELDS = tuple(item.name for item in fields(SolverSettings) if item.name != "threads")
GAMMA_RULES = ("auto", "scale", "median")


# ---- readers --------------------------------------------------------------------------------


def gamma(value: Any) -> float | str:
    return (
        choice("rule for gamma", GAMMA_RULES)(value) if isinstance(value, str) else positive(value)
    )


def kernel(value: Any) -> str | dict[str, Any]:
    """A name of the registry, or the mapping that describes a composed kernel."""
    return value if isinstance(value, dict) else text(value)


def cost(value: Any) -> float:
    """A positive number; .inf asks for a hard margin."""
    return math.inf if value == math.inf else positive(value)


def class_weight(value: Any) -> str | dict[str, float]:
    if isinstance(value, dict):
        return {str(label): positive(weight) for label, weight in value.items()}
    return choice("class weight", ["balanced"])(value)


def bias(value: Any) -> bool | str:
    return value if isinstance(value, bool) else choice("bias", ["regularised"])(value)


def multiclass(value: Any) -> str | list[list[int]]:
    """The name of a code or of a machine for all classes at once, or the rows of a code matrix."""
    if isinstance(value, list):
        rows = value if all(isinstance(row, list) for row in value) else [[None]]
        if not all(type(entry) is int and abs(entry) <= 1 for row in rows for entry in row):
            raise ValueError("not a code matrix; write a list of -1, 0, 1 for each class")
        return value
    word = text(value)
    return code_name(word) or choice("code", [*CODES, *SINGLE_MACHINES])(word.strip().lower())


def decoding(value: Any) -> str:
    try:
        return decoding_name(text(value))
    except SettingsError:
        return choice("decoding", DECODINGS)(value)


def machine_option(name: str) -> Callable[[Any], Any]:
    """The check of OPTIONS as a reader of YAML."""

    def read(value: Any) -> Any:
        if isinstance(value, (bool, dict, list)):
            raise ValueError(f"not a number or a word; it says: {OPTIONS[name].help}")
        try:
            return OPTIONS[name].check(name, value)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{value!r} is not a number; give a number") from None

    return read


# ---- tables of keys -------------------------------------------------------------------------

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
    "polish": Key(flag, "whether small problems are solved to rounding accuracy"),
}

LEARNER_KEYS: dict[str, Key] = {
    "machine": Key(choice("machine", MACHINES), "the machine"),
    "kernel": Key(kernel, f"the kernel: {', '.join(KERNELS)}, or a mapping"),
    "gamma": Key(gamma, "the kernel's gamma"),
    "sigma": Key(positive, "the width of an rbf kernel"),
    "degree": Key(positive_count, "the degree of a polynomial kernel"),
    "coef0": Key(number, "the constant of polynomial and sigmoid kernels"),
    "cost": Key(cost, "C, the cost of one unit of slack"),
    "class_weight": Key(class_weight, "factors of the cost by class, or 'balanced'"),
    "bias": Key(bias, "whether the decision function has a constant term, or 'regularised'"),
    "multiclass": Key(multiclass, "the code of many classes, or a machine for all at once"),
    "decoding": Key(decoding, "how outputs become a class"),
    "seed": Key(count, "the seed of random codes and folds"),
    "scale": Key(
        choice("scaling", [name for name in SCALERS if name != "divide"]),
        "a scaling that the model keeps",
    ),
    **{
        name: Key(
            choice("margins", ["auto"]) if name == "margins" else machine_option(name), option.help
        )
        for name, option in OPTIONS.items()
    },
    **{name: key for name, key in SOLVER_KEYS.items() if name in SOLVER_FIELDS},
}

PROBABILITY_KEYS: dict[str, Key] = {
    "probability": Key(choice("calibration", METHODS), "how outputs become probabilities"),
    "probability_outputs": Key(choice("outputs", OUTPUTS), "the outputs it is fitted to"),
}


# ---- what goes together ---------------------------------------------------------------------


def machine_of(options: Mapping[str, Any]) -> Machine:
    return MACHINES[options.get("machine", "svc")]


def check_learner(options: Options, before: Sequence[StepPlan]) -> Problems:
    """What is wrong with options that are right one by one."""
    machine = machine_of(options)
    for name in OPTIONS:
        if name in options and name not in machine.options:
            owners = ", ".join(m.name for m in MACHINES.values() if name in m.options)
            yield name, f"is for the machines {owners}, not for {machine.name}; leave it out"
    refused = {
        "cost": (machine.takes_cost, "has no cost"),
        "bias": (machine.takes_bias or options.get("bias") is True, "has no bias to choose"),
        "multiclass": (machine.takes_codes, "takes no multiclass code"),
        "decoding": (machine.takes_codes, "takes no multiclass code"),
        "class_weight": (machine.kind == CLASSIFIER, "has no classes"),
        "probability": (machine.kind == CLASSIFIER, "has no classes"),
    }
    for name, (is_taken, reason) in refused.items():
        if name in options and not is_taken:
            yield name, f"machine {machine.name} {reason}; leave it out"
    if "probability_outputs" in options and "probability" not in options:
        yield "probability_outputs", "belongs to 'probability'; give that too"
    try:
        kernel_of(options)
    except SettingsError as error:
        yield "", str(error)


def kernel_of(options: Mapping[str, Any]) -> KernelSpec:
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


def check_labels(machine: Machine, data: Dataset) -> None:
    """DataError when the labels are not what this kind of machine learns."""
    if machine.kind == RANKER and data.qid is None:
        raise DataError(
            data.source,
            None,
            f"no qid: machine {machine.name} compares rows of one query",
            "write qid:NUMBER after the label of every row (libsvm text)",
        )
    if machine.kind == CLASSIFIER and data.y is not None and looks_like_regression(data.y):
        raise DataError(
            data.source,
            None,
            f"{len(np.unique(data.y))} different labels in {data.n} rows, like a regression target",
            "a classifier needs classes; choose 'machine: svr' for regression",
        )


# Keys whose values go to kfu.machines.train as they are.
PASSED = ("cost", "bias", "multiclass", "decoding", *OPTIONS, *PROBABILITY_KEYS)


def learner_arguments(options: Mapping[str, Any], state: State) -> dict[str, Any]:
    """The arguments of kfu.machines.train but the rows; y among them."""
    machine, data = machine_of(options), state.train
    check_labels(machine, data)
    return {
        "y": data.y,
        "machine": machine.name,
        "kernel": kernel_of(options),
        "class_weight": keyed_weights(options.get("class_weight"), data),
        "sample_weight": data.weights,
        "qid": data.qid,
        "seed": state.seed_of(options),
        "source": data.source,
        "settings": SolverSettings(
            threads=state.threads, **{key: options[key] for key in SOLVER_FIELDS if key in options}
        ),
        **{name: options[name] for name in PASSED if options.get(name) is not None},
    }


def scaled_rows(options: Mapping[str, Any], state: State) -> tuple[Any, Scaler | None]:
    if "scale" not in options:
        return state.train.X, None
    scaler = Scaler.fit(state.train.X, options["scale"])
    return scaler.transform(state.train.X), scaler
