"""From option values to the objects of the library: kernels, weights, data, output files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from kfu.cli import console
from kfu.cli.config_file import CONFIG_PATH, load_yaml_mapping
from kfu.data import Dataset
from kfu.errors import KfuError, SettingsError
from kfu.io import FORMATS, read_dataset
from kfu.kernels import KERNELS, SHORTHANDS, KernelSpec

# The parameters of options.kernel_options, and how the values of a kernel are given.
KERNEL_NAMES = ("kernel", "kernel_file", "gamma", "sigma", "degree", "coef0")
PARAMETERS_OF_OPTIONS = {"gamma": "-g", "sigma": "--sigma", "degree": "-d", "coef0": "-r"}


def kernel_of(opts: Mapping[str, Any]) -> KernelSpec:
    """The kernel of options.kernel_options; a flag wins over what the config file says."""
    values = {name: opts[name] for name in KERNEL_NAMES}
    if is_flag("kernel_file") and not is_flag("kernel"):
        values["kernel"] = None
    elif is_flag("kernel") and not is_flag("kernel_file"):
        values["kernel_file"] = None
    return kernel_from_options(**values)


def is_flag(name: str) -> bool:
    """Whether the parameter was given on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def kernel_from_options(
    kernel: str | KernelSpec | None,
    kernel_file: str | None = None,
    **values: Any,
) -> KernelSpec:
    """The kernel the options describe; an option its kernel has no parameter for is an error.

    ``kernel``: a name, a YAML file, the specification a config file holds, or None (rbf).
    ``values``: gamma, sigma, degree, coef0, each None when not given.
    """
    given = {name: value for name, value in values.items() if value is not None}
    if "gamma" in given and "sigma" in given:
        raise SettingsError("-g and --sigma both set gamma; give one of them")
    if kernel_file is not None and kernel is not None:
        shown = kernel if isinstance(kernel, str) else kernel.describe()
        raise SettingsError(f"-k {shown} and --kernel-file {kernel_file}: give one of them")
    kernel = "rbf" if kernel is None else kernel
    if isinstance(kernel, KernelSpec):
        return changed_kernel(kernel, given)
    path = kernel_file or (kernel if kernel.endswith((".yaml", ".yml")) else None)
    if path is not None:
        if given:
            flags = ", ".join(PARAMETERS_OF_OPTIONS[name] for name in given)
            raise SettingsError(f"{flags}: {path} holds the parameters; set them there")
        try:
            return KernelSpec.from_dict(load_yaml_mapping(path))
        except SettingsError as error:
            text = str(error)
            raise SettingsError(text if text.startswith(path) else f"{path}: {text}") from None
    check_parameters(kernel, given)
    return KernelSpec.make(kernel, **given)


def check_parameters(kernel: str, given: Mapping[str, Any]) -> None:
    known = KERNELS[kernel].parameters
    for name in given:
        if name not in known and name not in SHORTHANDS.get(kernel, {}):
            raise SettingsError(
                f"{PARAMETERS_OF_OPTIONS[name]} does not apply to kernel {kernel} "
                f"(its parameters: {', '.join(known) or 'none'}); leave it out"
            )


def changed_kernel(kernel: KernelSpec, given: dict[str, Any]) -> KernelSpec:
    """The kernel of a config file with the parameters that flags give instead of its own."""
    if not given:
        return kernel
    if kernel.parts:
        flags = ", ".join(PARAMETERS_OF_OPTIONS[name] for name in given)
        raise SettingsError(f"{flags}: kernel {kernel.describe()} has its own; set them there")
    check_parameters(kernel.name, given)
    own = {name: value for name, value in kernel.params.items() if name not in given}
    if "sigma" in given:
        own.pop("gamma", None)
    return KernelSpec.make(kernel.name, weight=kernel.weight, **own, **given)


def reader_options(opts: Mapping[str, Any]) -> dict[str, Any]:
    """What data_options and --threads in ``opts`` mean to kfu.io."""
    return {
        "format": opts["data_format"],
        "zero_based": "auto" if opts["zero_based"] is None else opts["zero_based"],
        "label_column": 0 if opts["label_column"] is None else opts["label_column"],
        "header": "auto" if opts["header"] is None else opts["header"],
        "threads": opts["threads"] or None,
    }


def read_data(path: str, opts: Mapping[str, Any], **more: Any) -> Dataset:
    """``path`` read as data_options and --threads in ``opts`` say; ``more`` goes to the reader."""
    dataset = read_dataset(path, **{**reader_options(opts), **more})
    check_table_options(dataset, opts)
    if dataset.serial is not None and dataset.n == dataset.n_features:
        dataset = dataset.take(np.argsort(dataset.serial))  # columns count by serial number
    console.note(
        f"{dataset.source}: {dataset.n} rows, {dataset.n_features} features, "
        f"{'sparse' if dataset.is_sparse else 'dense'}"
    )
    return dataset


def check_table_options(dataset: Dataset, opts: Mapping[str, Any]) -> None:
    """SettingsError for an option of tables that was given for data of another format."""
    given = {"--label-column": opts["label_column"], "--header/--no-header": opts["header"]}
    has_no = {
        "svmlight": ("libsvm text", ("--label-column", "--header/--no-header")),
        "npz": (".npz", ("--label-column", "--header/--no-header")),
        "npy": (".npy", ("--header/--no-header",)),
    }
    kind, unfit = has_no.get(dataset.format or "", ("", ()))
    for name in unfit:
        if given[name] is not None:
            raise SettingsError(
                f"{name} is for tables, and {dataset.source} is {kind}; leave it out "
                "(or say --format csv)"
            )


def class_weights_from_options(
    pairs: tuple[str | tuple[str, float], ...],
) -> dict[str, float] | str | None:
    """``-w`` values -> {label text: weight}, "balanced" or None."""
    if not pairs:
        return None
    if "balanced" in pairs:
        if len(pairs) > 1:
            raise SettingsError("-w balanced sets every class; leave the other -w out")
        return "balanced"
    weights: dict[str, float] = {}
    for label, weight in (pair for pair in pairs if isinstance(pair, tuple)):
        if label in weights:
            raise SettingsError(f"-w gives class '{label}' twice; give it once")
        weights[label] = weight
    return weights


def output_format(path: str, dataset: Dataset, asked: str | None) -> str:
    """The format to write ``path`` in: as asked, as its name says, or as ``dataset`` was read."""
    if asked is not None:
        return asked
    name = path.lower().removesuffix(".gz")
    if any(name.endswith(suffix) for kind in FORMATS.values() for suffix in kind.suffixes):
        return "auto"
    return "libsvm" if dataset.from_sparse_text or dataset.is_sparse else "csv"


def check_distinct(
    outputs: Mapping[str, str | None], read: Iterable[str | None], config: bool = True
) -> None:
    """SettingsError when an output is a file that is read, or two outputs are one file.

    ``outputs``: option -> path. '-' and None pass, and so do devices and pipes. With ``config``
    the file of --config counts as read.
    """
    inputs = [path for path in read if path]
    if config:
        inputs.append(click.get_current_context().meta.get(CONFIG_PATH) or "-")
    written: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None or path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            continue
        if any(is_same_file(path, other) for other in inputs):
            raise SettingsError(f"{option} {path} would overwrite the input; give another name")
        for other_option, other in written.items():
            if is_same_file(path, other):
                raise SettingsError(
                    f"{other_option} and {option} both write {path}; give two names"
                )
        written[option] = path


def is_same_file(one: str, two: str) -> bool:
    if "-" in (one, two):
        return False
    if os.path.realpath(one) == os.path.realpath(two):
        return True
    return os.path.exists(one) and os.path.exists(two) and os.path.samefile(one, two)


def check_output(path: str | None, remedy: str = "choose another with -o") -> None:
    """Fail before the work when ``path`` could not be written after it ('-' and None pass)."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        found = "is a directory"
    elif not os.path.isdir(folder):
        found = f"no directory '{folder}'"
    elif not os.access(folder, os.W_OK):
        found = f"directory '{folder}' is not writable"
    else:
        return
    raise KfuError(f"{path}: cannot be written, {found}; {remedy}")
