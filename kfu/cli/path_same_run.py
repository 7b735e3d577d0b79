"""Whether a path file is that of this command, which is then resumed.

What rows and options make of each other (gamma, class weights, scaling) is compared as the path has
it, so the rows are read as the command says; rows from stdin, which are read once, are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.cli import inputs
from kfu.cli.path_setup import read_rows, span_of
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.paths.path import HEADER_SETTINGS, RegularisationPath
from kfu.paths.path_file import PathFile
from kfu.paths.registry import definition_of
from kfu.scale import Scaler

OPTION_NAMES = {"class_weight": "class weights"}


def check_same_run(
    file: PathFile, earlier: RegularisationPath, data: str, opts: dict[str, Any]
) -> None:
    """SettingsError when the file is that of another command than this one, resumed."""
    header = file.header
    definition = definition_of(opts["machine"], opts["parameter"])
    kernel = inputs.kernel_of(opts)
    compare(
        file,
        {
            "machine": (definition.machine, header["machine"]),
            "parameter": (definition.parameter, header["parameter"]),
            "kernel": (kernel.name, earlier.kernel.name),
            "ridge": (opts["ridge"], header["settings"].get("ridge", 0.0)),
            "upward": (opts["upward"], earlier.span.upward),
            **kernel_values(kernel, earlier.kernel),
        },
    )
    span = span_of(definition.parameter, opts)
    compare(
        file,
        {
            f"smallest {definition.parameter}": (span.low, earlier.span.low),
            f"largest {definition.parameter}": (span.high, earlier.span.high),
            "embedded rows": (bool(opts["embed"]), earlier.embedded is not None),
            "scale": (opts["scale"], None if earlier.scaler is None else earlier.scaler.kind),
        },
    )
    if data == "-":
        return
    rows = read_rows(definition, data, opts)
    mine, theirs = rows.task.described(), earlier.task.described()
    asked = {
        OPTION_NAMES.get(name, name): (mine.get(name), theirs.get(name))
        for name in sorted(HEADER_SETTINGS - {definition.parameter, "ridge"})
    }
    if definition.parameter == "lambda":
        asked.pop("cost", None)
    compare(file, asked | kernel_values(rows.task.kernel, earlier.kernel))
    same_weights = np.array_equal(rows.task.weights, earlier.task.weights)
    if not same_weights or described(rows.scaler) != described(earlier.scaler):
        what = "scaling" if same_weights else "weights of the rows"
        raise SettingsError(
            f"--resume: {file.name} is a path of other {what} than this command says; give the "
            "command that wrote it, or remove the file"
        )


def kernel_values(kernel: KernelSpec, found: KernelSpec) -> dict[str, tuple[Any, Any]]:
    """The parameters of the kernel that have a value already; sums and products as a whole."""
    if kernel.name != found.name or kernel.parts or found.parts:
        return {"kernel": (kernel.describe(), found.describe())} if kernel.is_resolved else {}
    return {
        name: (value, found.params.get(name))
        for name, value in kernel.params.items()
        if not isinstance(value, str | None)
    }


def described(scaler: Scaler | None) -> dict[str, Any] | None:
    return None if scaler is None else scaler.to_dict()


def compare(file: PathFile, asked: dict[str, tuple[Any, Any]]) -> None:
    for name, (wanted, found) in asked.items():
        if wanted != found:
            raise SettingsError(
                f"--resume: {file.name} is a path of {name} {shown(found)}, and this command says "
                f"{shown(wanted)}; give the command that wrote it, or remove the file"
            )


def shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{label}={weight:g}" for label, weight in value.items())
    return str(value)
