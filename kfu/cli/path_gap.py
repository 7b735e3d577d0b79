"""``kfu path --gap``: a handful of solutions that are certified for every C between (ε-path)."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from kfu._version import __version__
from kfu.cli import console, inputs
from kfu.cli.main import EXIT_INTERRUPTED, EXIT_NOT_CONVERGED
from kfu.cli.path_setup import PathRows, validation_data
from kfu.cli.train import default_model_path, interrupt_on_terminate
from kfu.errors import SettingsError
from kfu.paths.gap_path import COST_RANGE, GapPath, follow_gap
from kfu.paths.path_file import path_lines, write_path_file
from kfu.paths.registry import Span
from kfu.report import figure, peak_rss_mib, print_table, write_json
from kfu.solvers import SolverSettings

NOT_WITH_GAP = {
    "folds": "--folds",
    "bootstrap": "--bootstrap",
    "plot": "--plot",
    "html": "--html",
    "resume": "--resume",
    "embed": "--embed",
    "upward": "--upward",
    "ridge": "--ridge",
}


def follow_by_gap(
    rows: PathRows,
    span: Span,
    data: str,
    output: str,
    report: str | None,
    opts: dict[str, Any],
    begin: float,
) -> int:
    """Follow, write and report; returns the exit code."""
    check_gap_options(opts)
    validation = (
        validation_data(opts, rows.task.kernel.is_precomputed) if opts["validate"] else None
    )
    found = run(rows, span, validation, opts)
    header, records = gap_header(found, rows), list(found.records())
    if output == "-":
        sys.stdout.writelines(path_lines(header, records))
    else:
        write_path_file(output, header, records)
    content = {
        **found.summary(),
        "kernel": rows.task.kernel.describe(),
        "n_features": int(rows.task.X.shape[1]),
        "breakpoints": records,
        "peak_rss_mib": peak_rss_mib(),
        "version": __version__,
    }
    cost = chosen_cost(found, opts)
    if cost is not None:
        place = opts["model"] or default_model_path(data)
        model = found.at(cost)
        model.save(place)
        content["model"] = {"file": place, "cost": cost, **model.info}
    content["seconds"] = {**content["seconds"], "total": time.perf_counter() - begin}
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_gap_summary(content, output)
    return gap_exit_code(found)


def check_gap_options(opts: dict[str, Any]) -> None:
    if opts["gap"] >= 1.0:
        raise SettingsError(f"--gap {opts['gap']:g}: give a number between 0 and 1, as 0.01")
    for name, word in NOT_WITH_GAP.items():
        if inputs.is_flag(name):
            raise SettingsError(f"{word} is for exact paths; leave it or --gap out")
    if opts["select"] == "1se":
        raise SettingsError("--select 1se is for exact paths; --gap takes --select min")


def run(rows: PathRows, span: Span, validation: Any, opts: dict[str, Any]) -> GapPath:
    task = rows.task
    low, high = COST_RANGE
    if span.high is not None:
        low = 1.0 / span.high
    if span.low:
        high = 1.0 / span.low
    with interrupt_on_terminate():
        return follow_gap(
            task.X,
            rows.labels,
            task.kernel,
            machine=task.machine.name,
            cost_range=(low, high),
            gap=opts["gap"],
            sample_weight=task.weights if np.any(task.weights != 1.0) else None,
            bias=task.bias,
            settings=SolverSettings(threads=opts["threads"], cache_mib=opts["cache_mib"]),
            X_valid=None if validation is None else validation.X,
            y_valid=None if validation is None else validation.y,
            scaler=rows.scaler,
            max_steps=opts["max_steps"],
            progress=tell,
            source=task.source,
            **task.options,
        )


def tell(point: Any, kept: int) -> bool:
    console.note(f"breakpoint {kept + 1}: C {point.cost:.6g}, gap {point.gap:.3g}")
    return False


def gap_header(found: GapPath, rows: PathRows) -> dict[str, Any]:
    task = rows.task
    low, high = found.covered
    assert rows.reference is not None
    return {
        "machine": found.machine,
        "parameter": "lambda",
        "kernel": task.kernel.to_dict(),
        "n": task.n,
        "n_features": int(task.X.shape[1]),
        "classes": task.classes.tolist(),
        "settings": {"bias": task.bias, **task.options},
        "span": {"low": 1.0 / high, "high": 1.0 / low, "upward": True},
        "start": {"how": "solved"},
        "gap": found.gap,
        "worst_gap": found.worst_gap,
        "status": found.status,
        "data": rows.reference.to_dict(),
        "versions": {"kfu": __version__},
    }


def chosen_cost(found: GapPath, opts: dict[str, Any]) -> float | None:
    """The C of --at, or the breakpoint of the least validation error."""
    if opts["at"] is not None:
        return float(opts["at"])
    if opts["select"] is None:
        return None
    assert found.valid_error is not None
    return float(found.costs[int(np.argmin(found.valid_error))])


def print_gap_summary(content: dict[str, Any], output: str) -> None:
    low, high = content["cost_range"]
    facts: list[tuple[str, Any]] = [
        ("path", output),
        ("status", content["status"]),
        ("data", f"{content['n']} rows, {content['n_features']} features"),
        ("machine", content["machine"]),
        ("kernel", content["kernel"]),
        ("C", f"{figure(low)} to {figure(high)}"),
        ("breakpoints", f"{content['n_breakpoints']} ({content['n_solves']} solves)"),
        ("largest relative gap", f"{figure(content['worst_gap'])} (asked {content['gap']:g})"),
    ]
    if "model" in content:
        model = content["model"]
        facts.append(("model", f"{model['file']} (cost {figure(model['cost'])})"))
    facts.append(("seconds", f"{content['seconds']['total']:.3f}"))
    rows = [[name, figure(value)] for name, value in facts if value != "-"]
    print_table(["", ""], rows, to_stderr=output == "-")


def gap_exit_code(found: GapPath) -> int:
    if found.is_finished:
        return 0
    low, high = found.covered
    console.warn(f"stopped ({found.status}); the path covers C from {low:.6g} to {high:.6g}")
    return EXIT_INTERRUPTED if found.status == "interrupted" else EXIT_NOT_CONVERGED
