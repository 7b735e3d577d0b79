"""What ``kfu path`` says: progress while it goes, a summary and a report at the end."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import Any

from kfu._version import __version__
from kfu.cli import console
from kfu.paths.path import RegularisationPath
from kfu.paths.registry import VALUE_COLUMNS, PathDefinition
from kfu.paths.selection import Choice, ValidationCurves
from kfu.report import figure, peak_rss_mib, print_table
from kfu.solvers.parametric import PathProgress

STATUS_TEXT = {
    "done": "complete",
    "hard_margin": "complete: nothing changes beyond (hard margin)",
    "max_steps": "stopped at --max-steps",
    "interrupted": "interrupted",
    "unfinished": "unfinished (--resume goes on)",
}
MODEL_WORDS = {"cost": "C", "epsilon": "epsilon", "nu": "nu", "n_sv": "support vectors"}


class PathDisplay:
    """The progress callback of a path: a line on a terminal, nothing elsewhere."""

    INTERVAL_SECONDS = 0.1

    def __init__(self, name: str, definition: PathDefinition) -> None:
        self.name = name
        self.definition = definition
        self.last_shown = 0.0
        self.display: Any = None
        self.task: Any = None
        is_shown = not console.is_quiet() and sys.stderr.isatty()
        if is_shown and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self.display = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[detail]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> PathDisplay:
        if self.display is not None:
            self.display.start()
            self.task = self.display.add_task(self.name, total=None, detail="")
        return self

    def __exit__(self, *exception: object) -> None:
        if self.display is not None:
            self.display.stop()

    def __call__(self, state: PathProgress) -> bool:
        now = time.monotonic()
        if self.display is None or now - self.last_shown < self.INTERVAL_SECONDS:
            return False
        self.last_shown = now
        value = float(self.definition.value_of(state.t))
        name = self.definition.parameter
        detail = f"step {state.steps}  {name} {value:.4g}  {state.n_free} on the margin"
        self.display.update(self.task, detail=detail)
        return False


def path_report(
    found: RegularisationPath, curves: ValidationCurves | None, choice: Choice | None
) -> dict[str, Any]:
    """The report: the summary of the path, validation and choice; seconds are added later."""
    content = found.summary()
    if found.n_valid and len(found) > 1:
        curve = found.validation_curve()
        content["validation"] = {
            "n": found.n_valid,
            "least_error": curve.minimum,
            "edges": curve.edges.tolist(),
            "errors": curve.values.tolist(),
        }
    if curves is not None:
        content["splits"] = {
            "count": len(curves.curves),
            "least_error": curves.mean.minimum,
            "crossings_per_interval": curves.crossings.mean,
            "edges": curves.mean.edges.tolist(),
            "errors": curves.mean.values.tolist(),
            "standard_errors": curves.standard_error.values.tolist(),
            "breakpoints": [curve.n_breakpoints for curve in curves.curves],
        }
    if choice is not None:
        content["choice"] = chosen = choice.to_dict()
        if found.parameter != "lambda":
            chosen[found.parameter] = chosen.pop("lambda")
            chosen.pop("C")
    content |= {"peak_rss_mib": peak_rss_mib(), "version": __version__}
    return content


def data_text(content: dict[str, Any]) -> str:
    """Rows, features and classes, as the summaries say them."""
    classes = f", {content['n_classes']} classes" if content["n_classes"] else ""
    return f"{content['n']} rows, {content['n_features']} features{classes}"


def print_summary(content: dict[str, Any], output: str | None, to_stderr: bool) -> None:
    names = VALUE_COLUMNS[content["parameter"]]
    facts: list[tuple[str, Any]] = []
    if output is not None and output != "-":
        facts.append(("path", output))
    facts += [
        ("status", STATUS_TEXT.get(content["status"], content["status"])),
        ("data", data_text(content)),
        ("machine", f"{content['machine']} in {content['parameter']}"),
        ("kernel", content["kernel"]),
        ("steps", f"{content['steps']} ({content['events']} events)"),
    ]
    for name in names:
        first, last = content[f"{name}_first"], content[f"{name}_last"]
        facts.append((name, f"{figure(first)} to {figure(last)}"))
    facts += [("largest margin", content["largest_margin"]), ("kkt violation", content["kkt"])]
    if "train_error_least" in content:
        facts.append(("least training error", content["train_error_least"]))
    if "validation" in content:
        facts.append(("least validation error", content["validation"]["least_error"]))
    if "splits" in content:
        splits = content["splits"]
        facts.append(("least error of splits", f"{figure(splits['least_error'])}"))
    if "choice" in content:
        choice = content["choice"]
        name = content["parameter"]
        said = figure(choice[name]) + (f" (C {figure(choice['C'])})" if "C" in choice else "")
        said += f", error {figure(choice['error'])}"
        if math.isfinite(choice["standard_error"]):
            said += f" ± {choice['standard_error']:.2g}"
        facts.append((f"{name} by {choice['rule']}", said))
    if "model" in content:
        model = content["model"]
        said = ", ".join(
            f"{word} {figure(model[name])}" for name, word in MODEL_WORDS.items() if name in model
        )
        facts.append(("model", f"{model['file']} ({said})"))
    facts.append(("seconds", f"{content['seconds']['total']:.3f}"))
    rows = [[name, figure(value)] for name, value in facts]
    print_table(["", ""], rows, to_stderr=to_stderr)
