"""``kfu train``: options -> settings, one library call, one report."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from kfu.cli import console, dry_run, engines, inputs, options, partitioned
from kfu.cli.file_kind import load_any_model
from kfu.cli.main import EXIT_INTERRUPTED, EXIT_NOT_CONVERGED
from kfu.cli.parameters import POSITIVE
from kfu.cli.training_setup import (
    SOLVER_NAMES,
    data_options,
    is_classifier,
    pick,
    read_training_data,
    scaled,
    training_options,
)
from kfu.data import Dataset
from kfu.diagnostics import (
    Training,
    data_warnings,
    indefinite_kernel,
    training_warnings,
)
from kfu.errors import ConvergenceWarning, SettingsError
from kfu.kernels import suggest_gamma
from kfu.machine_kinds import CLASSIFIER
from kfu.machines import MACHINES, Checkpoint, option_word
from kfu.machines import train as train_machine
from kfu.model import Model
from kfu.multiclass import code_distance
from kfu.report import figure, print_facts, train_report, write_json
from kfu.solvers import SolverSettings

MODEL_SUFFIX = ".kfu"
# Endings that say "data", dropped from DATA's name to form the name of the model.
DATA_SUFFIXES = frozenset(
    {".gz", ".svm", ".libsvm", ".svmlight", ".dat", ".data", ".txt", ".csv", ".tsv", ".npy"}
    | {".npz", ".tr", ".train", ".t", ".test"}
)
# What only some machines find, in the order of the summary.
FOUND_FIGURES = (
    *("margin", "epsilon", "n_pairs", "dims", "method", "ridge", "lambda"),
    *("lambda_by", "centres"),
    *("trace_portion", "preconditioner", "rank", "residual"),
    *("loo", "loo_error", "loo_error_bound", "loo_mse", "gcv", "degrees_of_freedom"),
    *("stability_beta", "stability_bound"),
)
# The same, for the report alone.
FOUND_DETAILS = ("condition", "trace_left", "stability_constants", "pruning", "path")
STATUS_TEXT = {
    "converged": "converged",
    "max_iterations": "stopped at --max-iterations before convergence",
    "max_seconds": "stopped at --max-seconds before convergence",
    "stalled": "stalled before convergence",
    "interrupted": "interrupted before convergence",
}


def default_model_path(data: str) -> str:
    """The name of the model of ``data``: in the current directory, data endings dropped."""
    if data == "-":
        raise SettingsError("data from stdin have no name; give the model a path with -o")
    name = os.path.basename(data)
    while True:
        stem, ending = os.path.splitext(name)
        if ending.lower() not in DATA_SUFFIXES or not stem:
            return name + MODEL_SUFFIX
        name = stem


@click.command(
    epilog="""\b
Examples:
  kfu train heart.svm                          # rbf kernel, C = 1; writes heart.kfu
  kfu train a1a.tr.gz -c 1 -g 0.05 -o a1a.kfu --report a1a.json
  kfu train wine.csv --label-column -1 --scale standard -w balanced
  zcat big.svm.gz | kfu train - -k linear -o big.kfu --checkpoint big.check
"""
)
@options.data
@options.machine
@click.option(
    "-o",
    "--output",
    metavar="MODEL",
    help="Model file to write.  [default: the name of DATA without .gz, .svm, .tr, .csv ..., "
    "plus .kfu, in the current directory]",
)
@options.kernel_options
@options.cost
@options.class_weight
@options.weights
@options.machine_options
@options.multiclass
@options.decoding
@options.probability
@options.probability_outputs
@options.bias
@options.regularised_bias
@options.scale
@options.solver_options
@click.option("--start", metavar="MODEL", help="Start from the solution of this model.")
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Save the state of training here; when FILE exists, go on from it. It is removed when "
    "training has converged.",
)
@click.option(
    "--checkpoint-seconds",
    type=POSITIVE,
    default=60.0,
    show_default=True,
    help="Seconds between two checkpoints.",
)
@dry_run.option
@partitioned.engine
@engines.scheduler
@engines.workers
@options.data_options
@options.common_options
def train(data: str, output: str | None, report: str | None, **opts: Any) -> int:
    """Train a machine on DATA and write its model.

    More than two classes are trained one against one, or as --multiclass says. Ctrl-C (or SIGTERM)
    stops, writes the best model so far and marks it. Exit codes: 0 converged, 1 bad data, 2 usage,
    3 stopped before convergence, 130 interrupted.
    """
    engines.check_engine(opts)
    if opts.pop("dry_run"):
        return dry_run.dry_run(data, report, opts)
    begin = time.perf_counter()
    output = output or default_model_path(data)
    check_places(data, output, report, opts)
    inputs.check_output(output)
    inputs.check_output(report, "choose another with --report")
    inputs.check_output(opts["checkpoint"], "choose another with --checkpoint")
    if partitioned.is_partitioned(opts):
        return train_by_engine(data, output, report, opts)
    partitioned.check_machines(opts)
    wanted = {**training_options(opts), **run_options(opts)}

    dataset = read_training_data(data, opts, wanted["kernel"])
    wanted.update(data_options(dataset, opts))
    read_at = time.perf_counter()

    X, scaler = scaled(dataset, opts["scale"])
    if wanted["kernel"].params.get("gamma") == "median":
        gamma = suggest_gamma(X, seed=opts["seed"])
        wanted["kernel"] = wanted["kernel"].with_params(gamma=gamma)
    with engines.opened(opts) as engine:
        model = run_training(X, dataset, {**wanted, "engine": engine})
    model.scaler = scaler
    trained_at = time.perf_counter()

    content = report_of(model, X, dataset, opts)
    checked_at = time.perf_counter()
    seconds = {
        "read": read_at - begin,
        "train": trained_at - read_at,
        "check": checked_at - trained_at,
    }
    content["seconds"] = seconds
    model.settings, model.info = content["settings"], content
    model.save(output)
    done = time.perf_counter()
    content["seconds"] = {**seconds, "write": done - checked_at, "total": done - begin}

    for message in content["warnings"]:
        console.warn(message)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, output)
    return exit_code(content["status"])


def train_by_engine(data: str, output: str, report: str | None, opts: dict[str, Any]) -> int:
    begin = time.perf_counter()
    model, content = partitioned.train_partitioned(data, opts)
    trained_at = time.perf_counter()
    content["seconds"] = {"train": trained_at - begin}
    model.save(output)
    done = time.perf_counter()
    content["seconds"] |= {"write": done - trained_at, "total": done - begin}
    for message in content["warnings"]:
        console.warn(message)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, output)
    return exit_code(content["status"])


def check_places(data: str, output: str, report: str | None, opts: dict[str, Any]) -> None:
    """SettingsError for an output that is an input, or that stdout cannot be."""
    for option, path in (("-o", output), ("--checkpoint", opts["checkpoint"])):
        if path == "-":
            raise SettingsError(f"{option} - : it cannot go to stdout; give the name of a file")
    others = [data, opts["weights_file"], opts["kernel_file"]]
    if isinstance(opts["kernel"], str):
        others.append(opts["kernel"])
    outputs = {"-o": output, "--report": report, "--checkpoint": opts["checkpoint"]}
    inputs.check_distinct(outputs, others)
    # The model to start from may be replaced by the better one, but by nothing else.
    inputs.check_distinct({**outputs, "-o": None}, [opts["start"]])


# ---- before training ------------------------------------------------------------------------


def run_options(opts: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of kfu.machines.train that a single training has."""
    chosen: dict[str, Any] = {
        "start": load_any_model(opts["start"]) if opts["start"] else None,
        "checkpoint": checkpoint_of(opts),
    }
    if opts["probability"] is None and inputs.is_flag("probability_outputs"):
        raise SettingsError("--probability-outputs is of no use without --probability; give both")
    if opts["probability"] is not None:
        chosen["probability"] = opts["probability"]
        chosen["probability_outputs"] = opts["probability_outputs"]
    return chosen


def checkpoint_of(opts: dict[str, Any]) -> Checkpoint | None:
    if opts["checkpoint"] is None:
        return None
    return Checkpoint(opts["checkpoint"], opts["checkpoint_seconds"])


# ---- training -------------------------------------------------------------------------------


def run_training(X: Any, dataset: Dataset, wanted: dict[str, Any]) -> Model:
    """Train with progress shown; Ctrl-C and SIGTERM stop it between two rounds."""
    tolerance = wanted["settings"].tolerance
    with contextlib.ExitStack() as stack:
        stack.enter_context(interrupt_on_terminate())
        shown = console.TrainingProgress(tolerance, enabled=not console.is_quiet())
        progress = stack.enter_context(shown)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report and exit code say it
        return train_machine(X, dataset.y, progress=progress, source=dataset.source, **wanted)


@contextlib.contextmanager
def interrupt_on_terminate() -> Iterator[None]:
    """While training, SIGTERM (a batch system's first call) stops as Ctrl-C does."""
    try:
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not in the main thread: leave signals alone
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


# ---- after training -------------------------------------------------------------------------


def report_of(model: Model, X: Any, dataset: Dataset, opts: dict[str, Any]) -> dict[str, Any]:
    checked = Training(
        info=model.info,
        n=dataset.n,
        kernel_name=model.kernel.name,
        cost=opts["cost"],
        largest_diagonal=largest_diagonal(model),
        kernel=model.kernel,
    )
    labels = dataset.y if is_classifier(opts) else None
    is_dual = model.info.get("objective") is not None and model.info.get("kkt_gap") is not None
    found = list(model.info.get("warnings", []))
    if is_dual and is_classifier(opts) and MACHINES[model.machine].takes_cost:
        found = training_warnings(checked)
    elif is_dual:
        found += indefinite_kernel(checked)
    return train_report(
        model.info,
        seconds={},
        warnings=data_warnings(X, labels, model.kernel.name) + found,
        settings=described_settings(model, dataset, opts),
        threads=SolverSettings(threads=opts["threads"]).n_threads,
        machine=model.machine,
        kernel=model.kernel.describe(),
        n=dataset.n,
        n_features=dataset.n_features,
        n_classes=len(model.classes),
        **found_facts(model),
    )


def found_facts(model: Model) -> dict[str, Any]:
    """What only some machines report."""
    has_margin = model.machine == "nu-svc"
    facts = {
        name: model.info[name]
        for name in (*FOUND_FIGURES, *FOUND_DETAILS)
        if model.info.get(name) is not None and (name != "margin" or has_margin)
    }
    if model.kind == CLASSIFIER and model.n_machines > 1 and MACHINES[model.machine].takes_codes:
        facts |= {
            "n_machines": model.n_machines,
            "multiclass": model.settings.get("multiclass"),
            "decoding": model.decoding,
            "code_distance": code_distance(model.code),
        }
    if model.calibration is not None:
        facts["probability"] = model.settings.get("probability")
    return facts


def largest_diagonal(model: Model) -> float:
    """Largest K(x, x) over the support vectors."""
    if model.support_vectors is None or model.n_sv == 0:
        return 1.0
    from kfu._gram import Gram

    return float(np.max(Gram(model.support_vectors, model.kernel, "float64", 1).diagonal()))


def described_settings(model: Model, dataset: Dataset, opts: dict[str, Any]) -> dict[str, Any]:
    """The options of this run under their names, as a config file would hold them."""
    names = ("scale", "seed", *SOLVER_NAMES)
    return {
        **model.settings,
        **pick(opts, names),
        **machine_settings(opts),
        "bias": model.settings.get("bias") != "none",
        "kernel": model.kernel.to_dict(),
        "class_weight": inputs.class_weights_from_options(opts["class_weight"]),
        "weights": opts["weights_file"],
        "start": opts["start"],
        "zero_based": dataset.zero_based,
    }


def machine_settings(opts: dict[str, Any]) -> dict[str, Any]:
    """The options of the machine, as a config file would hold them."""
    machine = MACHINES[opts["machine"]]
    found: dict[str, Any] = {"machine": machine.name}
    if machine.takes_cost:
        # JSON has no infinity, and a null would come back as the default.
        found["cost"] = "inf" if np.isinf(opts["cost"]) else opts["cost"]
    if opts["regularised_bias"]:
        found["regularised_bias"] = True
    words = {name: option_word(name).replace("-", "_") for name in machine.options}
    found.update({words[name]: opts[name] for name in words if opts[name] is not None})
    return found


def print_summary(content: dict[str, Any], output: str) -> None:
    n, d, k = content["n"], content["n_features"], content["n_classes"]
    classes = f", {k} classes" if k else ""
    machines = ""
    if content.get("n_machines", 1) > 1:
        machines = f" ({content['n_machines']} machines, {content.get('multiclass')})"
    facts = [
        ("model", output),
        ("status", STATUS_TEXT.get(content["status"], content["status"])),
        ("data", f"{n} rows, {d} features{classes}"),
        ("machine", content["machine"] + machines),
        ("kernel", content["kernel"]),
        ("support vectors", f"{content['n_sv']} ({figure(content['n_usv'])} unbounded)"),
        ("objective", content["objective"]),
        ("duality gap", content["duality_gap"]),
        ("kkt gap", content["kkt_gap"]),
        ("kkt violation", content["kkt_violation"]),
        ("bias", content["bias"]),
        *((name.replace("_", " "), content[name]) for name in FOUND_FIGURES if name in content),
        ("iterations", content["iterations"]),
        ("seconds", f"{content['seconds']['total']:.3f}"),
    ]
    print_facts([fact for fact in facts if fact[1] is not None])


def exit_code(status: str) -> int:
    if status == "converged":
        return 0
    console.warn(f"{STATUS_TEXT.get(status, status)}; the model was written and is marked so")
    return EXIT_INTERRUPTED if status == "interrupted" else EXIT_NOT_CONVERGED
