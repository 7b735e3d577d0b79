"""``kfu loo``: leave-one-out, its estimates and its bounds, of one machine or along a parameter."""

from __future__ import annotations

import contextlib
import time
import warnings
from dataclasses import replace
from typing import Any

import click
import numpy as np

from kfu.cli import console, inputs, options
from kfu.cli.main import EXIT_NOT_CONVERGED
from kfu.cli.parameters import NON_NEGATIVE, Number
from kfu.cli.train import interrupt_on_terminate
from kfu.cli.training_setup import (
    data_options,
    read_training_data,
    scaled,
    training_options,
)
from kfu.data import Dataset, encode_labels, format_label
from kfu.errors import ConvergenceWarning, DataError, SettingsError
from kfu.estimates import ESTIMATES, LeaveOneOut, Options, Trained, find_estimates
from kfu.estimates.interface import check_eta_and_delta, test_error
from kfu.estimates.sweep import Sweep, SweepPlan, read_sweep, run_sweep
from kfu.io.atomic import atomic_output
from kfu.kernel_registry import nearest
from kfu.kernels import suggest_gamma
from kfu.machine_kinds import CLASSIFIER
from kfu.machines import MACHINES
from kfu.machines.training import prepare
from kfu.model import Model
from kfu.report import figure, peak_rss_mib, print_facts, print_table, write_json
from kfu.scale import Scaler

# Machines that a sweep starts from the solution before.
STARTED = frozenset({"svc", "svc2", "svr", "one-class"})


@click.command(
    epilog="""\b
Examples:
  kfu loo heart.svm -g 0.05                           # all that apply to the machine
  kfu loo heart.svm -g 0.05 --estimate exact,span -o rows.tsv
  kfu loo heart.svm --no-bias --against heart.t --report loo.json
  kfu loo heart.svm -g 0.05 --sweep C=0.01:100:9 --plot curves.png
"""
)
@options.data
@options.machine
@click.option(
    "--estimate",
    metavar="NAMES",
    help=f"Estimates, separated by commas: {', '.join(ESTIMATES)}.  [default: all that are for the "
    "machine and do not take long]",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="Write for each row: label, prediction, the outputs with and without itself, and which "
    "bounds allow it to be an error.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Data that are not trained on: adds the test error, and the bound it gives.",
)
@click.option(
    "--sweep",
    metavar="NAME=VALUES",
    help="Estimates along C, gamma, sigma, ridge, lambda, nu or epsilon: values separated by "
    "commas, or LOW:HIGH:STEPS, evenly spaced in logarithms.",
)
@click.option("--plot", metavar="FILE.png", help="Draw the estimates and the test error.")
@click.option(
    "--eta",
    type=NON_NEGATIVE,
    default=0.1,
    show_default=True,
    help="How much span-smooth is smoothed.",
)
@click.option(
    "--delta",
    type=Number(0, strict=True),
    default=0.05,
    show_default=True,
    help="Bounds on the error on new rows hold with probability 1 - delta.",
)
@options.kernel_options
@options.cost
@options.class_weight
@options.weights
@options.machine_options
@options.multiclass
@options.decoding
@options.bias
@options.regularised_bias
@options.scale
@options.solver_options
@options.data_options
@options.common_options
def loo(data: str, output: str | None, report: str | None, **opts: Any) -> int:
    """Leave-one-out error of a machine on DATA, its estimates and its bounds.

    The machine is trained on all rows, with the options of 'kfu train'; one table then tells what
    is known of rows that are left out. An estimate whose theorem does not hold for the machine says
    so instead of a number. Class weights, margins and gamma are those of all rows.
    """
    begin = time.perf_counter()
    check_places(data, output, report, opts)
    names = estimate_names(opts["estimate"])
    plan = None if opts["sweep"] is None else read_sweep(opts["sweep"])
    check_eta_and_delta(opts["eta"], opts["delta"])
    wanted = training_options(opts)
    dataset = read_training_data(data, opts, wanted["kernel"])
    wanted.update(data_options(dataset, opts), y=dataset.y, source=dataset.source)
    X, scaler = scaled(dataset, opts["scale"])
    if wanted["kernel"].params.get("gamma") == "median":
        gamma = suggest_gamma(X, seed=opts["seed"])
        wanted["kernel"] = wanted["kernel"].with_params(gamma=gamma)
    test = None if opts["against"] is None else read_test_data(opts, dataset, scaler)
    run = Run(X, wanted, names, opts, test)
    with interrupt_on_terminate():
        if plan is None:
            found, sweep = run.estimate(wanted), None
        else:
            sweep = run.sweep(plan)
            found = sweep.points[-1]
    seconds = time.perf_counter() - begin
    if output is not None:
        write_rows(output, dataset, run.trained, found)
    said = [*run.warnings]
    for message in said:
        console.warn(message)
    content = report_of(run, dataset, found, sweep, seconds, said)
    if opts["plot"] is not None:
        draw(opts["plot"], found, sweep)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, found, sweep, to_stderr=output == "-")
    return EXIT_NOT_CONVERGED if content["status"] != "converged" else 0


def check_places(data: str, output: str | None, report: str | None, opts: dict[str, Any]) -> None:
    outputs = {"-o": output, "--report": report, "--plot": opts["plot"]}
    inputs.check_distinct(outputs, [data, opts["against"], opts["weights_file"]])
    inputs.check_output(output)
    inputs.check_output(report, "choose another with --report")
    inputs.check_output(opts["plot"], "choose another with --plot")
    if output == "-" and report == "-":
        raise SettingsError("the rows and the report cannot both go to stdout; give -o a file")
    if opts["plot"] == "-":
        raise SettingsError("--plot - : a picture cannot go to stdout; give the name of a file")
    if opts["plot"] is not None:
        from kfu.paths.picture import check_picture_name

        check_picture_name(opts["plot"])
    if output is not None and opts["sweep"] is not None:
        raise SettingsError("-o writes the rows of one machine; leave --sweep or -o out")
    if data == "-" and opts["against"] == "-":
        raise SettingsError("DATA and --against cannot both be read from stdin; give one a file")


def estimate_names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ESTIMATES:
            raise SettingsError(f"--estimate: no estimate '{name}'; {nearest(name, ESTIMATES)}")
    if not names:
        raise SettingsError(f"--estimate names none; choose from {', '.join(ESTIMATES)}")
    return names


def read_test_data(opts: dict[str, Any], dataset: Dataset, scaler: Scaler | None) -> Dataset:
    is_precomputed = inputs.kernel_of(opts).is_precomputed
    more: dict[str, Any] = {"precomputed": is_precomputed}
    if opts["zero_based"] is None and not is_precomputed:
        more["zero_based"] = dataset.zero_based
    test = inputs.read_data(opts["against"], opts, **more)
    if test.y is None:
        raise DataError(test.source, None, "no labels", "--against needs a label for each row")
    if MACHINES[opts["machine"]].kind == "ranker":
        raise SettingsError("--against has no error of rankings; leave it out")
    if MACHINES[opts["machine"]].kind == CLASSIFIER:
        check_classes(test, dataset)
    return test if scaler is None else replace(test, X=fitting(test, dataset, scaler))


def check_classes(test: Dataset, dataset: Dataset) -> None:
    """DataError for a label that the training rows do not have."""
    assert test.y is not None
    assert dataset.y is not None
    codes = encode_labels(test.y, np.unique(dataset.y))
    if np.any(codes < 0):
        row = int(np.argmin(codes))
        raise DataError(
            test.source,
            None,
            f"label {format_label(test.y[row])} in row {row + 1} is no class of {dataset.source}",
            "give rows of its classes",
        )


def fitting(test: Dataset, dataset: Dataset, scaler: Scaler) -> Any:
    if test.X.shape[1] != dataset.n_features:
        raise DataError(
            test.source,
            None,
            f"{test.X.shape[1]} features where {dataset.source} has {dataset.n_features}",
            "scale the files beforehand (kfu scale), or give the same features",
        )
    return scaler.transform(test.X)


class Run:
    """One command: trains, estimates, and gathers what is to be said."""

    def __init__(
        self,
        X: Any,
        arguments: dict[str, Any],
        names: list[str] | None,
        opts: dict[str, Any],
        test: Dataset | None,
    ) -> None:
        self.X, self.names, self.opts, self.test = X, names, opts, test
        self.arguments = arguments
        self.warnings: list[str] = []
        self.status = "converged"
        self.trained: Trained
        self.n_models = 1
        self.last: Model | None = None

    def estimate(self, arguments: dict[str, Any]) -> LeaveOneOut:
        self.trained = self.train(arguments)
        test = None
        if self.test is not None:
            test = test_error(
                self.trained.model,
                self.test.X,
                self.test.y,
                threads=self.opts["threads"],
                from_sparse_text=self.test.from_sparse_text,
                source=self.test.source,
            )
        found = find_estimates(
            self.trained,
            self.names,
            Options(self.opts["eta"], self.opts["delta"], test, self.n_models),
            on_start=lambda name: console.note(f"estimate {name}"),
        )
        self.warnings += [text for text in found.warnings if text not in self.warnings]
        return found

    def train(self, arguments: dict[str, Any]) -> Trained:
        arguments = dict(arguments)
        y = arguments.pop("y")
        with contextlib.ExitStack() as stack:
            tolerance = arguments["settings"].tolerance
            shown = console.TrainingProgress(tolerance, enabled=not console.is_quiet())
            progress = stack.enter_context(shown)
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table and exit code say it
            task = prepare(self.X, y, progress=progress, **arguments)
            if self.last is not None and task.machine.name in STARTED and not self.is_single(task):
                task.start = self.last
            model = task.machine.train(task)
        task.start = task.progress = None
        if model.info.get("status") == "interrupted":
            raise KeyboardInterrupt
        if model.info.get("status") != "converged":
            self.status = str(model.info["status"])
        self.warnings += [t for t in model.info.get("warnings", []) if t not in self.warnings]
        self.last = model
        return Trained(task, model)

    @staticmethod
    def is_single(task: Any) -> bool:
        return task.code_name in ("crammer-singer", "weston-watkins")

    def sweep(self, plan: SweepPlan) -> Sweep:
        kernel = self.arguments["kernel"].resolve(self.X)
        plan.check(MACHINES[self.opts["machine"]], kernel)
        self.n_models = len(plan.values)

        def at(value: float) -> LeaveOneOut:
            console.note(f"{plan.label} = {value:g}")
            return self.estimate(plan.change({**self.arguments, "kernel": kernel}, value))

        return run_sweep(plan, at)


# ---- results ------------------------------------------------------------------------------------


def report_of(
    run: Run,
    dataset: Dataset,
    found: LeaveOneOut,
    sweep: Sweep | None,
    seconds: float,
    said: list[str],
) -> dict[str, Any]:
    model = run.trained.model
    content: dict[str, Any] = {
        "status": run.status,
        "machine": run.trained.machine,
        "kernel": model.kernel.describe(),
        "n": dataset.n,
        "n_features": dataset.n_features,
        "n_classes": len(model.classes),
        "n_sv": model.info.get("n_sv"),
        "n_usv": model.info.get("n_usv"),
    }
    if sweep is None:
        content |= found.to_dict()
    else:
        content["sweep"] = sweep.to_dict()
    return content | {"seconds": seconds, "peak_rss_mib": peak_rss_mib(), "warnings": list(said)}


def write_rows(path: str, dataset: Dataset, trained: Trained, found: LeaveOneOut) -> None:
    """One line a row: its number (from 1), label, prediction without itself, outputs, bounds."""
    model, columns = trained.model, {}
    width = trained.decision.shape[1]

    def add(name: str, outputs: np.ndarray) -> None:
        for k in range(width):
            label = name if width == 1 else f"{name}.{k + 1}"
            columns[label] = [repr(float(value)) for value in outputs[:, k]]

    add("trained", trained.decision)
    known = [e for e in found if e.outputs is not None]
    for estimate in known:
        assert estimate.outputs is not None
        add(estimate.name, estimate.outputs)
    for estimate in found:
        if estimate.flags is not None and estimate.kind == "bound":
            columns[f"{estimate.name}?"] = [str(int(flag)) for flag in estimate.flags]
    judged = next((e.outputs for e in known), None)
    judged = trained.decision if judged is None else judged
    if model.has_classes:
        predicted = [format_label(label) for label in model.classes[model.decide(judged)]]
    else:
        predicted = [repr(float(value)) for value in judged[:, 0]]
    with atomic_output(path) as stream:
        stream.write(("# " + "\t".join(["row", "label", "predicted", *columns]) + "\n").encode())
        for row in range(dataset.n):
            label = "?" if dataset.y is None else format_label(dataset.y[row])
            cells = [str(row + 1), label, predicted[row], *(c[row] for c in columns.values())]
            stream.write(("\t".join(cells) + "\n").encode())


def draw(path: str, found: LeaveOneOut, sweep: Sweep | None) -> None:
    from kfu.estimates.picture import draw_estimates, draw_sweep
    from kfu.paths.picture import check_picture_name

    picture = draw_estimates(found) if sweep is None else draw_sweep(sweep)
    with atomic_output(path) as stream:
        picture.savefig(stream, format=check_picture_name(path), dpi=130)


def print_summary(
    content: dict[str, Any], found: LeaveOneOut, sweep: Sweep | None, to_stderr: bool = False
) -> None:
    facts: list[tuple[str, Any]] = [
        ("machine", f"{content['machine']}, kernel {content['kernel']}"),
        ("data", f"{content['n']} rows, {content['n_features']} features"),
    ]
    if sweep is None:
        vectors = f"{figure(content['n_sv'])} ({figure(content['n_usv'])} unbounded)"
        facts.append(("support vectors", vectors))
        facts.append(("on the training rows", found.train_error))
        if found.test_error is not None:
            facts.append(("on the test rows", found.test_error))
        print_facts(facts, to_stderr=to_stderr)
        print_table(*found.table(), to_stderr=to_stderr)
        return
    print_facts([facts[1]])
    names = sweep.names
    has_test = any(error is not None for error in sweep.test_errors)
    header = [sweep.plan.label, *names, *(["test"] if has_test else [])]
    rows = []
    for k, (value, point) in enumerate(zip(sweep.plan.values, sweep.points, strict=True)):
        cells = [figure(sweep.curve(name)[k]) + mark(point, name) for name in names]
        rows.append([f"{value:g}", *cells, *([figure(point.test_error)] if has_test else [])])
    least = sweep.least()
    places = [f"{least[name]:g}" if name in least else "" for name in header[1:]]
    rows.append(["least at", *places])
    print_table(header, rows)
    if any("*" in cell for row in rows for cell in row):
        print_facts([("*", "its theorem does not hold there (see --report)")])


def mark(point: LeaveOneOut, name: str) -> str:
    """A star beside a value that does not hold."""
    if name not in point or point[name].value is None:
        return ""
    return "" if point[name].valid else "*"
