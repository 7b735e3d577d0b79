"""``kfu path`` where the path is a table of solutions: ε-paths (--gap) and least squares.

An ε-path (kfu.paths.gap_path) has a handful of solutions, certified for every C between; the path
of rls and rlsc (kfu.paths.rls) is a closed form, tabulated on a grid of λ.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from kfu._version import __version__
from kfu.cli import console, inputs
from kfu.cli.main import EXIT_INTERRUPTED, EXIT_NOT_CONVERGED
from kfu.cli.path_options import RIDGE_MACHINES
from kfu.cli.path_output import STATUS_TEXT, data_text
from kfu.cli.path_setup import RawRows, epsilon_option, read_raw, span_of, validation_data
from kfu.cli.train import default_model_path, interrupt_on_terminate
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.paths.gap_path import COST_RANGE, GapPath, follow_gap
from kfu.paths.path_file import PathFile, path_lines, record_keys, write_path_file
from kfu.paths.registry import Span
from kfu.paths.rls import RidgePath, rls_path
from kfu.paths.table_file import best_of_table, model_of_table
from kfu.report import figure, peak_rss_mib, print_table, write_json
from kfu.solvers import SolverSettings

EXACT_ONLY = {
    "folds": "--folds",
    "bootstrap": "--bootstrap",
    "rescale": "--rescale",
    "plot": "--plot",
    "html": "--html",
    "resume": "--resume",
    "embed": "--embed",
    "upward": "--upward",
    "ridge": "--ridge",
}
ERROR_WORDS = {
    "loo": "left-out squared error",
    "loo_error": "left-out error",
    "valid_error": "validation error",
}
TablePath = GapPath | RidgePath


def is_table_wanted(opts: dict[str, Any]) -> bool:
    return opts["gap"] is not None or opts["machine"] in RIDGE_MACHINES


def write_table(
    data: str, output: str, report: str | None, opts: dict[str, Any], begin: float
) -> int:
    """Follow, write and report; returns the exit code."""
    check_options(opts)
    span = span_of("lambda", opts)
    more = epsilon_option(opts["machine"], "lambda", opts)
    raw = read_raw(data, opts)
    follow = follow_ridge if opts["machine"] in RIDGE_MACHINES else follow_certified
    arguments = shared_arguments(raw, opts)
    with interrupt_on_terminate():
        found = follow(raw, span, opts, {**arguments, **more})
    records = list(found.records())
    header = header_of(found, raw, span, records)
    if output == "-":
        sys.stdout.writelines(path_lines(header, records))
    else:
        write_path_file(output, header, records)
    content = report_of(found, records)
    value = chosen_value(found, opts)
    if value is not None:
        place = opts["model"] or default_model_path(data)
        model = found.at(value)
        model.save(place)
        content["model"] = {"file": place, "at": value, **model.info}
    content["seconds"]["total"] = time.perf_counter() - begin
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, output, to_stderr=output == "-")
    return exit_code(found)


def check_options(opts: dict[str, Any]) -> None:
    if opts["gap"] is not None and opts["machine"] in RIDGE_MACHINES:
        raise SettingsError(f"the path of {opts['machine']} is exact anywhere; leave --gap out")
    if opts["parameter"] not in (None, "lambda"):
        raise SettingsError(
            f"--in {opts['parameter']}: such a path goes along lambda; leave it out"
        )
    what = "least squares" if opts["gap"] is None else "--gap"
    for name, word in EXACT_ONLY.items():
        if inputs.is_flag(name):
            raise SettingsError(f"{word} is for exact paths of support vectors, not for {what}")
    if opts["select"] == "1se":
        raise SettingsError(f"--select 1se is for exact paths of support vectors, not for {what}")
    if opts["gap"] is None and inputs.is_flag("max_steps"):
        raise SettingsError("--max-steps: least squares take no steps; leave it out")
    if opts["gap"] is None and opts["cost"] is not None:
        raise SettingsError("least squares have no C; give the range as --min and --max of lambda")


def shared_arguments(raw: RawRows, opts: dict[str, Any]) -> dict[str, Any]:
    validation = None
    if opts["validate"]:
        validation = validation_data(opts, raw.kernel.is_precomputed)
    return {
        "machine": opts["machine"],
        "class_weight": raw.class_weight,
        "sample_weight": raw.sample_weight,
        "bias": opts["bias"],
        "settings": SolverSettings(threads=opts["threads"], cache_mib=opts["cache_mib"]),
        "X_valid": None if validation is None else validation.X,
        "y_valid": None if validation is None else validation.y,
        "scaler": raw.scaler,
        "source": raw.dataset.source,
    }


def follow_certified(
    raw: RawRows, span: Span, opts: dict[str, Any], arguments: dict[str, Any]
) -> TablePath:
    low, high = COST_RANGE
    low = low if span.high is None else 1.0 / span.high
    high = 1.0 / span.low if span.low else high
    return follow_gap(
        raw.X,
        raw.dataset.y,
        raw.kernel,
        cost_range=(low, high),
        gap=opts["gap"],
        max_steps=opts["max_steps"],
        progress=tell,
        **arguments,
    )


def tell(point: Any, kept: int) -> bool:
    console.note(f"breakpoint {kept + 1}: C {point.cost:.6g}, gap {point.gap:.3g}")
    return False


def follow_ridge(
    raw: RawRows, span: Span, opts: dict[str, Any], arguments: dict[str, Any]
) -> TablePath:
    ends = (span.low, span.high)
    if (ends[0] is None) != (ends[1] is None):
        raise SettingsError("give both --min and --max of lambda, or neither")
    if ends[0] == 0.0:
        raise SettingsError("--min 0: lambda has to be greater than 0")
    return rls_path(
        raw.X,
        raw.dataset.y,
        raw.kernel,
        lam_range=None if ends[0] is None or ends[1] is None else (ends[0], ends[1]),
        **arguments,
    )


def header_of(
    found: TablePath, raw: RawRows, span: Span, records: list[dict[str, Any]]
) -> dict[str, Any]:
    task = found.task
    more = [key for key in records[0] if key not in record_keys("lambda")]
    header = {
        "machine": found.machine,
        "parameter": "lambda",
        "kernel": task.kernel.to_dict(),
        "n": task.n,
        "n_features": int(task.X.shape[1]),
        "classes": task.classes.tolist(),
        "settings": {"bias": task.bias, **task.options},
        "span": {"low": span.low, "high": span.high, "upward": False},
        "start": {"how": "table"},
        "more_columns": more,
        "status": found.status,
    }
    if isinstance(found, GapPath):
        header |= {"gap": found.gap, "worst_gap": found.worst_gap}
    has_weights = bool(np.any(task.weights != 1.0))
    return header | {
        "weights": task.weights.tolist() if has_weights else None,
        "scaler": None if raw.scaler is None else raw.scaler.to_dict(),
        "data": raw.reference(task).to_dict(),
        "versions": {"kfu": __version__, "numpy": np.__version__},
    }


def report_of(found: TablePath, records: list[dict[str, Any]]) -> dict[str, Any]:
    task = found.task
    content: dict[str, Any] = {
        "status": found.status,
        "machine": found.machine,
        "kernel": task.kernel.describe(),
        "n": task.n,
        "n_features": int(task.X.shape[1]),
        "n_classes": len(task.classes),
        "seconds": {},
    }
    if isinstance(found, GapPath):
        content |= found.summary()
    ends = sorted(record["lambda"] for record in records)
    content |= {"lambda_least": ends[0], "lambda_most": ends[-1], "points": records}
    return {**content, "peak_rss_mib": peak_rss_mib(), "version": __version__}


def chosen_value(found: TablePath, opts: dict[str, Any]) -> float | None:
    """C (of least squares λ) of --at, or where the error is least."""
    if opts["at"] is not None:
        return float(opts["at"])
    if opts["select"] is None:
        return None
    if isinstance(found, RidgePath):
        return found.best("loo" if found.valid_error is None else "valid_error")
    assert found.valid_error is not None
    return float(found.costs[int(np.argmin(found.valid_error))])


# ---- from the file of a table ---------------------------------------------------------------


def from_table(
    file: PathFile, output: str | None, report: str | None, opts: dict[str, Any], begin: float
) -> int:
    """Convert a table, or train a model at one of its values; returns the exit code."""
    for name in ("plot", "html", "embed", "validate"):
        if inputs.is_flag(name):
            raise SettingsError(
                f"--{name}: {file.name} is a table of solutions (of --gap, or of least squares), "
                "not a whole path; leave it out"
            )
    if opts["select"] == "1se":
        raise SettingsError("--select 1se is for exact paths; choose min, or give --at")
    if output == "-":
        sys.stdout.writelines(path_lines(file.header, file.records))
    elif output is not None:
        write_path_file(output, file.header, file.records)
    content = report_of_file(file)
    value = opts["at"] if opts["select"] is None else best_of_table(file)
    if value is not None:
        stem = file.name.removesuffix(".jsonl").removesuffix(".csv")
        place = opts["model"] or default_model_path(stem)
        with console.library_warnings():
            model = model_of_table(file, value, train_file=opts["train"], threads=opts["threads"])
        model.save(place)
        content["model"] = {"file": place, "at": value, "trained": "afresh", **model.info}
    content["seconds"] = {"total": time.perf_counter() - begin}
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, output or file.name, to_stderr=output == "-")
    return 0


def report_of_file(file: PathFile) -> dict[str, Any]:
    header = file.header
    ends = sorted(record["lambda"] for record in file.records)
    content: dict[str, Any] = {
        "status": header.get("status", "done"),
        "machine": header["machine"],
        "kernel": KernelSpec.from_dict(header["kernel"]).describe(),
        "n": header["n"],
        "n_features": header["n_features"],
        "n_classes": len(header["classes"]),
        "lambda_least": ends[0],
        "lambda_most": ends[-1],
        "points": file.records,
        "version": __version__,
    }
    if "gap" in header:
        content |= {name: header[name] for name in ("gap", "worst_gap")}
        content["n_breakpoints"] = len(file.records)
    return content


# ---- what is said ---------------------------------------------------------------------------


def print_summary(content: dict[str, Any], output: str, to_stderr: bool) -> None:
    facts: list[tuple[str, Any]] = [] if output == "-" else [("path", output)]
    is_gap = "gap" in content
    facts += [
        ("status", STATUS_TEXT.get(content["status"], content["status"])),
        ("data", data_text(content)),
        ("machine", f"{content['machine']} in lambda"),
        ("kernel", content["kernel"]),
        ("lambda", f"{figure(content['lambda_most'])} to {figure(content['lambda_least'])}"),
    ]
    if is_gap:
        ends = 1.0 / content["lambda_most"], 1.0 / content["lambda_least"]
        facts.append(("C", f"{figure(ends[0])} to {figure(ends[1])}"))
        solves = f" ({content['n_solves']} solves)" if "n_solves" in content else ""
        facts += [
            ("breakpoints", f"{content['n_breakpoints']}{solves}"),
            ("largest relative gap", f"{figure(content['worst_gap'])} (asked {content['gap']:g})"),
        ]
    else:
        facts.append(("points", len(content["points"])))
    is_class = content["n_classes"] > 0
    for name, word in ERROR_WORDS.items():
        if name == "valid_error" and not is_class:
            word = "validation squared error"
        values = [point[name] for point in content["points"] if point.get(name) is not None]
        if values:
            facts.append((f"least {word}", min(values)))
    if "model" in content:
        model = content["model"]
        said = f"{'C' if is_gap else 'lambda'} {figure(model['at'])}"
        said += f", support vectors {model['n_sv']}" if "n_sv" in model else ""
        said += ", trained afresh" if "trained" in model else ""
        facts.append(("model", f"{model['file']} ({said})"))
    facts.append(("seconds", f"{content['seconds']['total']:.3f}"))
    rows = [[name, figure(value)] for name, value in facts]
    print_table(["", ""], rows, to_stderr=to_stderr)


def exit_code(found: TablePath) -> int:
    if found.status == "done":
        return 0
    console.warn(f"stopped early ({found.status}); the table holds what there is")
    return EXIT_INTERRUPTED if found.status == "interrupted" else EXIT_NOT_CONVERGED
