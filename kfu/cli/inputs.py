"""From option values to the objects of the library: kernels, weights, data, output files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.cli import console
from kfu.cli.config_file import load_yaml_mapping
from kfu.data import Dataset
from kfu.errors import KfuError, SettingsError
from kfu.io import FORMATS, read_dataset
from kfu.kernels import KERNELS, SHORTHANDS, KernelSpec

# The parameters of options.kernel_options, and how the values of a kernel are given.
KERNEL_NAMES = ("kernel", "kernel_file", "gamma", "sigma", "degree", "coef0")
PARAMETERS_OF_OPTIONS = {"gamma": "-g", "sigma": "--sigma", "degree": "-d", "coef0": "-r"}


def kernel_from_options(
    kernel: str,
    kernel_file: str | None = None,
    **values: Any,
) -> KernelSpec:
    """The kernel the options describe; an option its kernel has no parameter for is an error.

    ``values``: gamma, sigma, degree, coef0, each None when not given.
    """
    given = {name: value for name, value in values.items() if value is not None}
    if "gamma" in given and "sigma" in given:
        raise SettingsError("-g and --sigma both set gamma; give one of them")
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
    known = KERNELS[kernel].parameters
    for name in given:
        if name not in known and name not in SHORTHANDS.get(kernel, {}):
            raise SettingsError(
                f"{PARAMETERS_OF_OPTIONS[name]} does not apply to kernel {kernel} "
                f"(its parameters: {', '.join(known) or 'none'}); leave it out"
            )
    return KernelSpec.make(kernel, **given)


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
    if dataset.serial is not None and dataset.n == dataset.n_features:
        dataset = dataset.take(np.argsort(dataset.serial))  # columns count by serial number
    console.note(
        f"{dataset.source}: {dataset.n} rows, {dataset.n_features} features, "
        f"{'sparse' if dataset.is_sparse else 'dense'}"
    )
    return dataset


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
