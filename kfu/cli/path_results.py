"""What ``kfu path`` makes of a path: the choice, the model, pictures, the report, the exit code."""

from __future__ import annotations

import time
from typing import Any

import click

from kfu.cli import console
from kfu.cli.main import EXIT_INTERRUPTED, EXIT_NOT_CONVERGED
from kfu.cli.path_options import RULE_WORDS
from kfu.cli.path_output import path_report, print_summary
from kfu.cli.train import default_model_path
from kfu.errors import SettingsError
from kfu.paths.path import RegularisationPath
from kfu.paths.path_file import path_lines
from kfu.paths.selection import Choice, ValidationCurves, choose
from kfu.report import write_json

PATH_SUFFIX = ".jsonl"


def conclude(
    found: RegularisationPath,
    curves: ValidationCurves | None,
    data: str,
    output: str | None,
    report: str | None,
    opts: dict[str, Any],
    begin: float,
    seconds: dict[str, float],
) -> int:
    """Choose, extract, draw, report; returns the exit code. `seconds` has "path" when a path was
    followed."""
    choice = choice_of(found, curves, opts)
    content = path_report(found, curves, choice)
    model = write_model(found, choice, data, opts)
    if model is not None:
        content["model"] = model
    for remark in found.definition.remarks(found):
        console.warn(remark)
    for name in ("plot", "html"):
        if opts[name] is not None:
            draw(name, found, opts[name], curves, choice)
    content["seconds"] = {**seconds, "total": time.perf_counter() - begin}
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content, output, to_stderr=output == "-")
    return exit_code(found, output or data) if "path" in seconds else 0


def choice_of(
    found: RegularisationPath, curves: ValidationCurves | None, opts: dict[str, Any]
) -> Choice | None:
    """λ by --select; without it what would be chosen by the least error, for the summary."""
    rule = RULE_WORDS[opts["select"] or "min"]
    if curves is not None:
        return curves.choose(rule)
    if found.n_valid and len(found) > 1 and (opts["select"] or not found.is_from_file):
        return choose(found.validation_curve(), rule, n_valid=found.n_valid)
    if opts["select"] is not None:
        raise SettingsError("--select needs validation errors along the path: --validate FILE")
    return None


def write_model(
    found: RegularisationPath, choice: Choice | None, data: str, opts: dict[str, Any]
) -> dict[str, Any] | None:
    """Extract the model of --at or --select; what the report says of it."""
    if opts["at"] is None and opts["select"] is None:
        return None
    if opts["at"] is not None:
        model = found.at(opts["at"])
    else:
        assert choice is not None
        value = choice.lam
        if not found.low <= value <= found.high:  # the folds know of more than the path
            value = min(max(value, found.low), found.high)
        model = found.at(**{{"lambda": "lam"}.get(found.parameter, found.parameter): value})
    place = opts["model"] or default_model_path(data.removesuffix(PATH_SUFFIX))
    model.save(place)
    kept = ("cost", "lambda", "epsilon", "nu")
    facts = {name: model.settings[name] for name in kept if name in model.settings}
    return {"file": place, **facts, "n_sv": model.n_sv, **model.info}


def draw(
    kind: str,
    found: RegularisationPath,
    file: str,
    curves: ValidationCurves | None,
    choice: Choice | None,
) -> None:
    if kind == "plot":
        from kfu.paths import picture

        picture.draw(found, file, folds=curves, choice=choice)
    else:
        from kfu.paths import page

        page.write(found, file, folds=curves, choice=choice)


def write_stdout(found: RegularisationPath) -> None:
    for line in path_lines(found.header(), found.records()):
        click.echo(line, nl=False)


def exit_code(found: RegularisationPath, place: str) -> int:
    if found.is_finished:
        return 0
    last = float(found.definition.value_of(float(found.track.t[-1])))
    where = f"at {found.parameter} = {last:.6g}, after {found.n_steps} steps"
    again = "" if place == "-" else f"; 'kfu path {place} --resume' goes on"
    if found.status == "interrupted":
        console.warn(f"interrupted {where}{again}")
        return EXIT_INTERRUPTED
    limit = "stopped at --max-steps" if found.status == "max_steps" else f"stopped ({found.status})"
    console.warn(f"{limit} {where}{again}")
    return EXIT_NOT_CONVERGED
