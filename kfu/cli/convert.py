"""``kfu convert``: models between kfu and LIBSVM, data between its formats."""

from __future__ import annotations

from typing import Any

import click

from kfu.cli import console, inputs, options
from kfu.cli.file_kind import kind_of, load_any_model
from kfu.cli.parameters import Name
from kfu.errors import SettingsError
from kfu.io import write_dataset
from kfu.io.libsvm_model import write_libsvm_model

MODEL_FORMATS = ("kfu", "libsvm")


@click.command(
    epilog="""\b
Examples:
  kfu convert heart.kfu heart.model         # for svm-predict
  kfu convert heart.model heart.kfu
  kfu convert wine.csv wine.svm --label-column -1
"""
)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--to",
    type=Name(
        "format",
        list(dict.fromkeys([*MODEL_FORMATS, *options.DATA_FORMATS])),
        options.FORMAT_ALIASES,
    ),
    default=None,
    help="Format to write. Models: kfu, libsvm  [default: the other one]. "
    f"Data: {', '.join(options.DATA_FORMATS)}  [default: by the name of OUT].",
)
@options.data_options
@options.threads
@options.verbose
@options.quiet
def convert(source: str, target: str, to: str | None, **opts: Any) -> None:
    """Convert a model or a data file to another format.

    IN is recognised by its content. LIBSVM models have no place for a scaling: a model that
    scales its data is refused, unless the data were scaled before (kfu scale).
    """
    inputs.check_distinct({"OUT": target}, [source])
    inputs.check_output(target, "choose another OUT")
    kind = kind_of(source)
    if kind == "data":
        convert_data(source, target, to, opts)
        return
    wanted = to or ("libsvm" if kind == "model" else "kfu")
    if wanted not in MODEL_FORMATS:
        raise SettingsError(
            f"{source} is a model; --to {wanted} is a data format, choose kfu or libsvm"
        )
    model = load_any_model(source)
    if wanted == "kfu":
        model.save(target)
    else:
        with console.library_warnings():
            write_libsvm_model(target, model)
    console.note(f"{target}: {wanted} model, {model.n_sv} support vectors")


def convert_data(source: str, target: str, to: str | None, opts: dict[str, Any]) -> None:
    if to == "kfu":
        raise SettingsError(f"{source} holds data; --to kfu is for models")
    dataset = inputs.read_data(source, opts)
    write_dataset(target, dataset, format=to or "auto")
    console.note(f"{target}: {dataset.n} rows, {dataset.n_features} features")
