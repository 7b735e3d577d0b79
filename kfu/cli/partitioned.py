"""``kfu train --engine``: least squares over files that are never read into memory as a whole.

The rows pass in partitions, on the threads of this process (local) or on the workers of a dask
cluster (kfu.engine); the answer is the same.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kfu.cli import console, inputs
from kfu.cli.engines import engine_option, n_workers
from kfu.cli.training_setup import machine_options
from kfu.data import format_label
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.machine_kinds import CLASSIFIER
from kfu.machines import MACHINES, OPTIONS, option_word
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.square_loss.run import NOT_LEFT_OUT
from kfu.model import Model
from kfu.multiclass import ova_code
from kfu.report import train_report
from kfu.solvers import SolverSettings

USUAL_CENTRES = 1000
RIDGE_STEPS = 10.0 ** np.arange(-5.0, 4.0)  # tried when the ridge is to be chosen
UNIT_KERNELS = ("rbf", "rbf-ard", "laplacian")  # K(x, x) = 1, which the steps are meant for
# What cannot be given together with --engine: it needs all rows, or has another meaning there.
NOT_WITH_ENGINE = (
    *("scale", "weights_file", "start", "checkpoint", "probability", "decoding", "lam"),
    *("regularised_bias", "max_seconds", "max_iterations", "precision", "solver"),
    *("method", "prune", "lam_by"),
)

engine = engine_option(
    "Machines rls and rlsc, approximation rectangle: read DATA (a file or a quoted pattern) in "
    "partitions and never as a whole; classifiers under a multiclass code: each binary machine is "
    "a task. On the threads of this process (local) or the workers of a dask cluster (dask)."
)
PARTITIONED = ("rls", "rlsc")
WORDS = {"weights_file": "weights"}  # on the command line, where they are not the names


def is_partitioned(opts: dict[str, Any]) -> bool:
    """Whether --engine reads the rows in partitions; else it trains the machines of a code."""
    return opts["engine"] is not None and opts["machine"] in PARTITIONED


def train_partitioned(data: str, opts: dict[str, Any]) -> tuple[Model, dict[str, Any]]:
    """The model of all rows of the files, and its report without seconds."""
    from kfu.engine import train_rectangle_partitioned

    machine = MACHINES[opts["machine"]]
    check_options(opts)
    machine_options(opts, inputs.is_flag)
    begin = time.perf_counter()
    kernel = inputs.kernel_of(opts)
    ridge = opts["ridge"]
    grid = RIDGE_STEPS.tolist()
    if ridge in (None, "auto") and opts["loo"] == "never":
        raise SettingsError("--loo never leaves nothing to choose the ridge by; give --ridge")
    if ridge in (None, "auto") and kernel.name not in UNIT_KERNELS:
        raise SettingsError(
            f"--engine chooses the ridge for kernels with K(x, x) = 1 ({', '.join(UNIT_KERNELS)}); "
            f"give --ridge for {kernel.name}"
        )
    with console.StageProgress(enabled=not console.is_quiet()) as shown:
        fit = train_rectangle_partitioned(
            data,
            kernel=kernel,
            ridge=grid if ridge in (None, "auto") else float(ridge),
            n_centres=opts["centres"] or USUAL_CENTRES,
            selection=opts["centres_by"] or "random",
            seed=opts["seed"],
            targets="classes" if machine.kind == CLASSIFIER else "numbers",
            class_weight=class_weights(opts),
            bias=bool(opts["bias"]),
            engine=opts["engine"],
            scheduler=opts["scheduler"],
            workers=n_workers(opts),
            progress=shown,
            loo=LEFT_OUT[opts["loo"] or "auto"],
            **reading(opts),
        )
    model = model_of(fit, machine.name, opts)
    warnings = []
    if ridge in (None, "auto") and model.info["ridge"] in (grid[0], grid[-1]):
        warnings.append(f"the ridge chosen ({model.info['ridge']:g}) is at the end of those tried")
    model.info["seconds"] = {"other": time.perf_counter() - begin}
    content = train_report(
        model.info,
        seconds={},
        warnings=warnings,
        settings=model.settings,
        threads=SolverSettings(threads=opts["threads"]).n_threads,
        machine=machine.name,
        kernel=model.kernel.describe(),
        n=int(fit.info["n"]),
        n_features=model.n_features,
        n_classes=len(model.classes),
        **{name: model.info[name] for name in REPORTED if model.info.get(name) is not None},
    )
    return model, content


REPORTED = ("ridge", "lambda", "centres", "trace_portion", "loo", "loo_mse")
LEFT_OUT: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


def check_options(opts: dict[str, Any]) -> None:
    if opts["approximation"] not in (None, "rectangle"):
        raise SettingsError(
            f"--engine trains --approximation rectangle, not {opts['approximation']}"
        )
    for name in NOT_WITH_ENGINE:
        if opts[name] is not None and inputs.is_flag(name):
            word = option_word(name) if name in OPTIONS else WORDS.get(name, name)
            word = word.replace("_", "-")
            raise SettingsError(f"--{word} does not go with --engine; leave it out")
    if opts["multiclass"] not in (None, "ova"):
        raise SettingsError("--engine trains one machine for each class (ova); leave the code out")


def check_machines(opts: dict[str, Any]) -> None:
    """SettingsError where --engine has no machines of a code to deal to workers."""
    machine = MACHINES[opts["machine"]]
    if opts["engine"] is None:
        return
    if not machine.takes_codes:
        raise SettingsError(
            f"--engine is for rls, rlsc and machines of a multiclass code, not for {machine.name}"
        )
    if opts["multiclass"] in SINGLE_MACHINES:
        raise SettingsError(f"--multiclass {opts['multiclass']} is one problem; leave --engine out")
    for name in ("checkpoint", "max_seconds", "max_iterations", "approximation"):
        if opts[name] not in (None, 0, 0.0, "none"):
            word = name.replace("_", "-")
            raise SettingsError(f"--{word} does not go with --engine; leave it out")


def class_weights(opts: dict[str, Any]) -> dict[Any, float] | None:
    weights = inputs.class_weights_from_options(opts["class_weight"])
    if isinstance(weights, str):
        raise SettingsError("-w balanced needs all rows; give the weights with --engine")
    return weights


def reading(opts: dict[str, Any]) -> dict[str, Any]:
    found = inputs.reader_options(opts)
    found.pop("threads")
    return found


def model_of(fit: Any, machine: str, opts: dict[str, Any]) -> Model:
    m, n = fit.coef.shape[0], int(fit.info["n"])
    ridge = float(fit.info["ridge"])
    classes = np.zeros(0) if fit.classes is None else fit.classes
    code: Any = np.zeros((0, 1))
    if fit.classes is not None:
        code = np.array([[-1], [1]]) if len(classes) == 2 else ova_code(len(classes))
    squares = fit.info.get("loo_square")
    info = {
        "status": "converged",
        "n_sv": m,
        "n_usv": m,
        "bias": fit.bias.tolist() if fit.bias.size > 1 else float(fit.bias[0]),
        "iterations": 0,
        "ridge": ridge,
        "lambda": ridge / n,
        "centres": m,
        "trace_portion": fit.info.get("trace_portion"),
        "loo": NOT_LEFT_OUT if squares is None else None,
        "loo_mse": None if squares is None else float(np.min(squares)),
        "engine": fit.info.get("engine"),
        "partitions": fit.info.get("partitions"),
    }
    settings = {
        "machine": machine,
        "engine": opts["engine"],
        "approximation": "rectangle",
        "ridge": opts["ridge"],
        "centres": opts["centres"],
        "centres_by": opts["centres_by"],
        "seed": opts["seed"],
        "bias": bool(opts["bias"]),
        "zero_based": fit.info.get("zero_based"),
        "classes": [format_label(value) for value in classes],
    }
    return Model(
        machine=machine,
        kernel=KernelSpec.from_dict(fit.info["kernel"]),
        classes=classes,
        n_features=int(fit.info["n_features"]),
        support=np.full(m, -1),
        support_vectors=fit.centres,
        coef=np.ascontiguousarray(fit.coef.T),
        bias=fit.bias,
        code=code,
        decoding="argmax" if len(classes) > 2 else "votes",
        settings=settings,
        info=info,
        n_support=np.zeros(len(classes), dtype=np.int64),
    )
