"""``kfu path``: all solutions of a machine along its parameter, kept as one file.

DATA are rows, whose path is followed and written, or a path file, from which models are extracted,
that is resumed, drawn or converted.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import click

from kfu.cli import console, inputs, options, path_options
from kfu.cli.file_kind import kind_of
from kfu.cli.path_options import RIDGE_MACHINES
from kfu.cli.path_output import PathDisplay
from kfu.cli.path_results import PATH_SUFFIX, conclude, write_stdout
from kfu.cli.path_same_run import check_same_run
from kfu.cli.path_setup import (
    follow_options,
    read_rows,
    read_validation,
    rows_of_loaded,
    span_of,
    split_curves,
    split_parts,
    splits_wanted,
)
from kfu.cli.path_tables import from_table, is_table_wanted, write_table
from kfu.cli.train import MODEL_SUFFIX, default_model_path, interrupt_on_terminate
from kfu.errors import SettingsError
from kfu.paths.following import follow_path
from kfu.paths.loading import path_of
from kfu.paths.path import RegularisationPath
from kfu.paths.path_file import PART_SUFFIX, PathFile, is_table, part_name, read_path_file
from kfu.paths.registry import definition_of
from kfu.paths.resuming import resume_path

# Options that a path file answers itself.
OF_A_RUN = {
    "machine": "-m",
    "parameter": "--in",
    "cost": "-c",
    "low": "--min",
    "high": "--max",
    "upward": "--upward",
    "ridge": "--ridge",
    "gap": "--gap",
    "epsilon": "--epsilon",
    "scale": "--scale",
    "class_weight": "-w",
    "weights_file": "--weights",
    "bias": "--bias/--no-bias",
    "kernel": "-k",
    "gamma": "-g",
    "folds": "--folds",
    "bootstrap": "--bootstrap",
}


@click.command(
    epilog="""\b
Examples:
  kfu path heart.svm -g 0.05                         # writes heart.jsonl
  kfu path heart.svm -g 0.05 --validate heart.t --select min --model heart.kfu
  kfu path heart.svm -g 0.05 --folds 10 --select 1se --plot heart.png
  kfu path heart.jsonl --at 10 --model heart.kfu     # the exact model at C = 10
  kfu path heart.jsonl --resume                      # go on after Ctrl-C
"""
)
@options.data
@path_options.machine
@path_options.parameter
@path_options.output
@options.kernel_options
@path_options.cost
@path_options.span_options
@path_options.machine_options
@options.class_weight
@options.weights
@options.bias
@options.scale
@path_options.validation_options
@path_options.model_options
@path_options.picture_options
@options.cache_mib
@options.data_options
@options.common_options
def path(data: str, output: str | None, report: str | None, **opts: Any) -> int:
    """Follow the whole path of a machine on DATA and write it.

    A path holds the solutions for every lambda = 1/C (or epsilon, or nu), exactly: one line for
    each breakpoint, with what changed there. DATA may be a path file too: --at extracts the model
    at any C, --resume goes on, -o converts (.jsonl, .csv), --plot and --html draw.

    Exit codes: 0 done, 1 bad data, 2 usage, 3 stopped at --max-steps, 130 interrupted (by Ctrl-C or
    SIGTERM; the file is whole and can be resumed).
    """
    begin = time.perf_counter()
    check_wanted(opts)
    is_path = kind_of(data) == "path"
    if output is not None and output.lower().endswith(MODEL_SUFFIX):
        opts["model"] = model_named_by(output, is_path, opts)
        output = None
    places = {"-o": output, "--report": report, "--model": opts["model"]}
    places |= {"--plot": opts["plot"], "--html": opts["html"]}
    inputs.check_distinct(places, [data, opts["validate"], opts["train"], opts["weights_file"]])
    for option, place in places.items():
        inputs.check_output(place, f"choose another with {option}")
    if opts["model"] == "-":
        raise SettingsError("--model - : a model cannot go to stdout; give the name of a file")
    if output == "-" and report == "-":
        raise SettingsError("the path and the report cannot both go to stdout; give -o")
    if is_path:
        return from_file(data, output, report, opts, begin)
    if opts["train"] is not None:
        raise SettingsError(
            "--train names the rows of a path file, and DATA are rows; leave it out"
        )
    output = output or default_path_name(data)
    inputs.check_distinct({"-o": output}, [data])
    inputs.check_output(output)
    return from_rows(data, output, report, opts, begin)


def check_wanted(opts: dict[str, Any]) -> None:
    """SettingsError for options that do not go together."""
    if opts["at"] is not None and opts["select"] is not None:
        raise SettingsError("--at and --select both say where the model is; give one of them")
    if opts["model"] is not None and opts["at"] is None and opts["select"] is None:
        raise SettingsError("--model: say where on the path, with --at C or --select min")
    if opts["folds"] is not None and opts["bootstrap"] is not None:
        raise SettingsError("--folds and --bootstrap: give one of them")
    if opts["rescale"] and not splits_wanted(opts):
        raise SettingsError("--rescale is for --folds and --bootstrap; give one of them")
    for name in ("plot", "html"):
        if opts[name] == "-":
            raise SettingsError(f"--{name} - : it cannot go to stdout; give the name of a file")
    if opts["plot"] is not None:
        from kfu.paths.picture import check_picture_name

        check_picture_name(opts["plot"])


def model_named_by(output: str, is_path: bool, opts: dict[str, Any]) -> str:
    """The model file where -o has the name of one: from a path file, the model is the output."""
    if is_path and opts["model"] is None and (opts["at"] is not None or opts["select"] is not None):
        return output
    raise SettingsError(f"-o {output}: -o names the path file; name the model with --model")


def default_path_name(data: str) -> str:
    if data == "-":
        raise SettingsError("data from stdin have no name; give the path a file with -o")
    return os.path.splitext(default_model_path(data))[0] + PATH_SUFFIX


# ---- from rows ------------------------------------------------------------------------------


def from_rows(
    data: str, output: str, report: str | None, opts: dict[str, Any], begin: float
) -> int:
    has_errors = opts["validate"] or splits_wanted(opts) or opts["machine"] in RIDGE_MACHINES
    if opts["select"] is not None and not has_errors:
        raise SettingsError("--select needs errors: give --validate FILE, --folds or --bootstrap")
    if opts["resume"]:
        left = left_over(output)
        if left is not None:
            return resumed(left, output, data, report, opts, begin)
    if output.lower().endswith(".gz"):
        raise SettingsError(f"-o {output}: path files are written plain; leave .gz out")
    if is_table_wanted(opts):
        return write_table(data, output, report, opts, begin)
    definition = definition_of(opts["machine"], opts["parameter"])
    if opts["at"] == 0 and definition.parameter != "epsilon":
        raise SettingsError("--at 0: give a number greater than 0")
    span = span_of(definition.parameter, opts)
    rows = read_rows(definition, data, opts)
    limits = follow_options(opts)
    parts = split_parts(definition, rows.task, opts)
    watched = read_validation(definition, rows, opts) if opts["validate"] else None
    read_at = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(interrupt_on_terminate())
        progress = stack.enter_context(PathDisplay("path", definition))
        found = follow_path(
            definition,
            rows.task,
            span,
            limits,
            watched=watched,
            progress=progress,
            data=rows.reference,
            scaler=rows.scaler,
            valid_file=opts["validate"],
            embedded=rows.embedded() if opts["embed"] else None,
            to_file=None if output == "-" else output,
        )
    followed_at = time.perf_counter()
    if output == "-":
        write_stdout(found)
    curves = split_curves(definition, rows.task, parts, span, limits, opts)
    seconds = {"read": read_at - begin, "path": followed_at - read_at}
    return conclude(found, curves, data, output, report, opts, begin, seconds)


def left_over(output: str) -> str | None:
    """The file of an earlier run: under its name, or under that of a run that was killed."""
    for name in (part_name(output), output):
        if output != "-" and os.path.isfile(name):
            return name
    return None


# ---- from a path file -----------------------------------------------------------------------


def from_file(
    data: str, output: str | None, report: str | None, opts: dict[str, Any], begin: float
) -> int:
    given = [word for name, word in OF_A_RUN.items() if inputs.is_flag(name)]
    if given:
        raise SettingsError(
            f"{given[0]}: {data} is a path file, which says so itself; leave it out"
        )
    if opts["resume"]:
        if output is not None:
            raise SettingsError("--resume goes on in the path file itself; leave -o out")
        place = data.removesuffix(PART_SUFFIX)
        return resumed(data, place, None, report, opts, begin)
    with console.library_warnings():
        file = read_path_file(data)
    if is_table(file.header):
        return from_table(file, output, report, opts, begin)
    with console.library_warnings():
        found = path_of(file, train=opts["train"], threads=opts["threads"])
    if output == "-":
        write_stdout(found)
    elif output is not None:
        found.save(output)
    return conclude(found, None, data, output, report, opts, begin, {})


def resumed(
    left: str, output: str, data: str | None, report: str | None, opts: dict[str, Any], begin: float
) -> int:
    """Go on with the file `left`, which becomes `output`; `data` are the rows where given."""
    with console.library_warnings():
        file = read_path_file(left)
        earlier = path_of(file, train=data or opts["train"], threads=opts["threads"])
    if data is not None:
        check_same_run(file, earlier, data, opts)
    read_at = time.perf_counter()
    if earlier.is_finished:
        if left != output:
            os.replace(os.path.realpath(left), os.path.realpath(output))
        console.warn(f"{output}: the path is complete; there is nothing to resume")
        found = earlier
    else:
        found = taken_up(earlier, file, output, opts)
    seconds = {"read": read_at - begin, "path": time.perf_counter() - read_at}
    parts = split_parts(found.definition, found.task, opts)
    limits = follow_options(opts)
    curves = split_curves(found.definition, found.task, parts, found.span, limits, opts)
    return conclude(found, curves, output, output, report, opts, begin, seconds)


def taken_up(
    earlier: RegularisationPath, file: PathFile, output: str, opts: dict[str, Any]
) -> RegularisationPath:
    """Follow the rest of a path, with the same validation rows."""
    watched = None
    if earlier.n_valid or opts["validate"]:
        given = {**opts, "validate": opts["validate"] or earlier.valid_file}
        watched = read_validation(earlier.definition, rows_of_loaded(earlier), given)
    with interrupt_on_terminate(), PathDisplay("path", earlier.definition) as progress:
        return resume_path(
            earlier, file, output, follow_options(opts), watched=watched, progress=progress
        )
