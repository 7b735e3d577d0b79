"""``kfu train --dry-run``: the same options and data, a forecast in place of a model."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from kfu.cli import console, inputs
from kfu.cli.training_setup import (
    data_options,
    read_training_data,
    scaled,
    training_options,
)
from kfu.errors import SettingsError
from kfu.forecast import Forecast, forecast
from kfu.kernels import suggest_gamma
from kfu.least_squares.memory import readable_bytes
from kfu.machines.task import TrainingTask
from kfu.machines.training import prepare
from kfu.report import print_facts, write_json

MIB = 2.0**20

option = click.option(
    "--dry-run",
    is_flag=True,
    help="Predict seconds and memory of the training from small parts of it, and write no model.",
)


def dry_run(data: str, report: str | None, opts: dict[str, Any]) -> int:
    """Read the data, forecast the training, print or report it."""
    if opts["engine"] is not None:
        raise SettingsError("--dry-run forecasts a training in this process; leave --engine out")
    inputs.check_output(report, "choose another with --report")
    inputs.check_distinct({"--report": report}, [data, opts["weights_file"], opts["kernel_file"]])
    begin = time.perf_counter()
    wanted = training_options(opts)
    dataset = read_training_data(data, opts, wanted["kernel"])
    wanted.update(data_options(dataset, opts))
    X, _ = scaled(dataset, opts["scale"])
    if wanted["kernel"].params.get("gamma") == "median":
        gamma = suggest_gamma(X, seed=opts["seed"])
        wanted["kernel"] = wanted["kernel"].with_params(gamma=gamma)
    task = prepare(X, dataset.y, source=dataset.source, **wanted)
    read_seconds = time.perf_counter() - begin
    found = forecast(task)
    found.notes += notes_of(opts, found)
    content = content_of(task, found, read_seconds)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_facts(facts_of(content, found))
    for message in content["warnings"]:
        console.warn(message)
    return 0


def notes_of(opts: dict[str, Any], found: Forecast) -> list[str]:
    notes = []
    if opts["probability"] is not None:
        notes.append("the trainings that --probability needs are not counted")
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores and found.seconds:
        notes.append(
            f"the machine is busy (load {load:.1f} on {cores} cores): the seconds are those of a "
            "machine as busy, and less certain"
        )
    if found.fits is False:
        needed = readable_bytes(sum(found.arrays.values()))
        notes.append(
            f"the training needs {needed} more memory, and "
            f"{readable_bytes(found.available or 0)} are available; it would be refused or end "
            "early: take --approximation rectangle, or fewer --centres"
        )
    return notes


def content_of(task: TrainingTask, found: Forecast, read_seconds: float) -> dict[str, Any]:
    total = None if found.total is None else read_seconds + found.total
    return {
        "dry_run": True,
        "machine": task.machine.name,
        "kernel": task.kernel.describe(),
        "n": task.n,
        "n_features": task.X.shape[1],
        "n_classes": len(task.classes),
        "method": found.method,
        "predicted_seconds": total,
        "predicted_phases": {"read": read_seconds, **found.seconds},
        "is_certain": found.is_certain,
        "comparable_seconds": found.hints,
        "predicted_peak_rss_mib": round(found.peak_bytes / MIB, 1),
        "arrays_mib": {name: round(size / MIB, 1) for name, size in found.arrays.items()},
        "available_mib": None if found.available is None else round(found.available / MIB, 1),
        "fits": found.fits,
        "flops": found.flops,
        "rates_gflops": {name: rate / 1e9 for name, rate in found.rates.items()},
        "pilot_seconds": found.pilot_seconds,
        "threads": task.settings.n_threads,
        "warnings": found.notes,
    }


def facts_of(content: dict[str, Any], found: Forecast) -> list[tuple[str, Any]]:
    k = content["n_classes"]
    classes = f", {k} classes" if k else ""
    phases = ", ".join(
        f"{name} {seconds:.2f}"
        for name, seconds in content["predicted_phases"].items()
        if seconds >= 0.005
    )
    total = content["predicted_seconds"]
    seconds = "not predicted: they depend on the data"
    if total is not None:
        about = "" if found.is_certain else "about "
        seconds = f"{about}{total:.2f}" + (f" ({phases})" if phases else "")
    arrays = ", ".join(f"{name} {readable_bytes(size)}" for name, size in found.arrays.items())
    available = content["available_mib"]
    known = f", {readable_bytes(available * MIB)} available" if available is not None else ""
    peak = readable_bytes(content["predicted_peak_rss_mib"] * MIB)
    operations = ", ".join(f"{name} {count:.3g}" for name, count in found.flops.items())
    return [
        ("dry run", "no model is written"),
        ("data", f"{content['n']} rows, {content['n_features']} features{classes}"),
        ("machine", content["machine"]),
        ("kernel", content["kernel"]),
        ("method", content["method"]),
        ("seconds", seconds),
        *((name, f"{value:.2f} seconds") for name, value in found.hints.items()),
        ("peak memory", f"{peak} ({arrays}){known}"),
        ("operations", operations),
    ]
