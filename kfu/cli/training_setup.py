"""From the options of ``kfu train`` and its relatives to the arguments of kfu.machines.train."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kfu import _gram
from kfu.cli import inputs
from kfu.cli.row_weights import read_numbers, row_weights
from kfu.data import Dataset, check_width, format_label, require_classes
from kfu.diagnostics import looks_like_regression
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machine_kinds import CLASSIFIER, RANKER
from kfu.machines import MACHINES, OPTIONS, option_word
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.scale import Scaler
from kfu.solvers import SolverSettings

SOLVER_NAMES = (
    *("solver", "tolerance", "cache_mib", "chunk", "threads", "precision"),
    *("selection", "shrinking", "max_iterations", "max_seconds", "polish", "simd"),
)


def pick(opts: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: opts[name] for name in names}


def training_options(
    opts: dict[str, Any], is_given: Callable[[str], bool] = inputs.is_flag
) -> dict[str, Any]:
    """The keyword arguments of kfu.machines.train that do not depend on the data.

    `is_given` tells which options were asked for, so that one that its machine lacks is refused.
    """
    has = ["best", *_gram.available_simd()]
    if opts["simd"] not in has:
        raise SettingsError(
            f"--simd {opts['simd']}: this processor does not have it; choose from {', '.join(has)}"
        )
    if opts["regularised_bias"] and opts["bias"] is False:
        raise SettingsError("--no-bias and --regularised-bias contradict each other; give one")
    return {
        "machine": opts["machine"],
        "kernel": inputs.kernel_of(opts),
        "cost": opts["cost"],
        "bias": "regularised" if opts["regularised_bias"] else opts["bias"],
        "multiclass": opts["multiclass"],
        "decoding": opts["decoding"],
        "seed": opts["seed"],
        "settings": SolverSettings(**pick(opts, SOLVER_NAMES)),
        **machine_options(opts, is_given),
    }


def machine_options(opts: dict[str, Any], is_given: Callable[[str], bool]) -> dict[str, Any]:
    """The options that only some machines have, where they were given."""
    machine = MACHINES[opts["machine"]]
    given = {name: opts[name] for name in OPTIONS if opts[name] is not None}
    for name in given:
        if name not in machine.options:
            owners = ", ".join(m.name for m in MACHINES.values() if name in m.options)
            raise SettingsError(
                f"--{option_word(name)} is for the machines {owners}, not for "
                f"{machine.name}; leave it out"
            )
    if is_given("cost") and not machine.takes_cost:
        raise SettingsError(f"machine {machine.name} has no cost; leave -c out")
    if is_given("multiclass") and not machine.takes_codes:
        raise SettingsError(f"machine {machine.name} takes no multiclass code; leave it out")
    if opts["decoding"] is not None and not machine.takes_codes:
        raise SettingsError(f"machine {machine.name} has nothing to decode; leave --decoding out")
    if machine.takes_codes and opts["multiclass"] in SINGLE_MACHINES:
        check_single_machine(opts)
    if "margins" in given and given["margins"] != "auto":
        given["margins"] = read_numbers(given["margins"])
    return given


def check_single_machine(opts: dict[str, Any]) -> None:
    """SettingsError for what one machine over all classes does not do."""
    given = {
        f"--decoding {opts['decoding']}": opts["decoding"] not in (None, "argmax"),
        "--regularised-bias": opts["regularised_bias"],
        "--margins": opts["margins"] is not None,
    }
    for option, is_asked in given.items():
        if is_asked:
            raise SettingsError(
                f"--multiclass {opts['multiclass']} takes no {option}; leave it out"
            )


def data_options(dataset: Dataset, opts: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of kfu.machines.train that depend on the data."""
    weights = inputs.class_weights_from_options(opts["class_weight"])
    if weights is not None and not is_classifier(opts):
        raise SettingsError(f"machine {opts['machine']} has no classes; leave -w out")
    return {
        "class_weight": labelled_weights(weights, dataset),
        "sample_weight": row_weights(opts["weights_file"], dataset),
        "qid": dataset.qid,
    }


def is_classifier(opts: dict[str, Any]) -> bool:
    return MACHINES[opts["machine"]].kind == CLASSIFIER


def read_training_data(path: str, opts: dict[str, Any], kernel: KernelSpec) -> Dataset:
    """The data as the machine needs them; kernel values where the kernel is precomputed."""
    is_precomputed = kernel.is_precomputed
    if is_precomputed and opts["scale"] is not None:
        raise SettingsError("--scale does not apply to a precomputed kernel; leave it out")
    dataset = inputs.read_data(path, opts, precomputed=is_precomputed)
    check_width(dataset.X, dataset.source)
    if not is_classifier(opts):
        return check_targets(dataset, opts["machine"])
    classes = require_classes(dataset)
    assert dataset.y is not None
    if looks_like_regression(dataset.y):
        remedy = (
            "a classifier needs classes; choose -m svr for regression, or check the label column"
        )
        if dataset.format == "npy" and dataset.n == dataset.n_features + 1:
            remedy = (
                "the array is square, and column 1 of .npy is the label: put the labels in front "
                "of a kernel matrix, numpy.column_stack([y, K]), or use numpy.savez(FILE, X=K, y=y)"
            )
        raise DataError(
            dataset.source,
            None,
            f"{len(classes)} different labels in {dataset.n} rows, like a regression target",
            remedy,
        )
    return dataset


def check_targets(dataset: Dataset, machine: str) -> Dataset:
    """Numbers for a regression or ranking, queries for a ranking."""
    if not MACHINES[machine].needs_labels:
        return dataset
    if dataset.y is None or dataset.y.dtype.kind in "US":
        found = "no labels" if dataset.y is None else f"label '{dataset.y[0]}', not a number"
        raise DataError(dataset.source, None, found, f"machine {machine} needs a number a row")
    if MACHINES[machine].kind == RANKER and dataset.qid is None:
        raise DataError(
            dataset.source,
            None,
            "no qid: machine rank compares rows of one query",
            "write qid:NUMBER after the label of every row (libsvm text)",
        )
    return dataset


def scaled(dataset: Dataset, kind: str | None) -> tuple[Any, Scaler | None]:
    if kind is None:
        return dataset.X, None
    scaler = Scaler.fit(dataset.X, kind)
    return scaler.transform(dataset.X), scaler


def labelled_weights(
    weights: dict[str, float] | str | None, dataset: Dataset
) -> dict[Any, float] | str | None:
    """Class weights keyed by the labels of the data; a label that does not occur is an error."""
    if weights is None or isinstance(weights, str):
        return weights
    assert dataset.y is not None
    labels = {format_label(value): value for value in np.unique(dataset.y)}
    keyed: dict[Any, float] = {}
    for text, weight in weights.items():
        name = text
        with contextlib.suppress(ValueError):  # "1.0" and "+1" are the class 1
            name = format_label(float(text)) if text not in labels else text
        if name not in labels:
            shown = ", ".join(list(labels)[:10]) + (", ..." if len(labels) > 10 else "")
            raise SettingsError(
                f"-w {text}={weight:g}: no class '{text}' in {dataset.source}; its classes: {shown}"
            )
        value = labels[name]
        keyed[value.item() if isinstance(value, np.generic) else value] = weight
    return keyed
