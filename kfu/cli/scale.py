"""``kfu scale``: fit a scaling on one file, save it, apply it to another."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from kfu.cli import console, inputs, options
from kfu.cli.parameters import Interval, Name, Number
from kfu.data import check_width
from kfu.errors import SettingsError
from kfu.io import write_dataset
from kfu.scale import SCALERS, Scaler, load_scaler, save_scaler


@click.command(
    epilog="""\b
Examples:
  kfu scale train.svm --method minmax --save range.json -o train.scaled.svm
  kfu scale test.svm --apply range.json -o test.scaled.svm
  kfu scale digits.csv --method divide --divisor 255 > digits.scaled.csv
"""
)
@options.data
@click.option(
    "-o",
    "--output",
    default="-",
    metavar="OUT",
    help="File for the scaled data, in the format its name says; '-' is stdout.  [default: -]",
)
@click.option(
    "--method",
    type=Name("method", list(SCALERS)),
    default=None,
    help="standard: mean 0, variance 1 (sparse data keep their zeros: divided by the root mean "
    "square only); minmax: to --range; unit: each row has norm 1; divide: by --divisor.  "
    "[default: standard]",
)
@click.option(
    "--range",
    "interval",
    type=Interval(),
    default=None,
    metavar="LO,HI",
    help="Interval of method minmax.  [default: -1,1]",
)
@click.option(
    "--divisor", type=Number(), default=None, metavar="D", help="Constant of method divide."
)
@click.option("--save", metavar="PARAMS.json", help="Save the parameters that were fitted.")
@click.option("--apply", metavar="PARAMS.json", help="Apply saved parameters; nothing is fitted.")
@click.option(
    "--to",
    type=Name("format", options.DATA_FORMATS, options.FORMAT_ALIASES),
    default=None,
    help="Format to write.  [default: by the name of OUT, or that of DATA]",
)
@options.data_options
@options.threads
@options.config
@options.verbose
@options.quiet
def scale(
    data: str,
    output: str,
    method: str | None,
    interval: tuple[float, float] | None,
    divisor: float | None,
    save: str | None,
    apply: str | None,
    to: str | None,
    **opts: Any,
) -> None:
    """Scale the features of DATA.

    Labels, weights and query numbers are kept. A feature that is constant becomes 0 (standard) or
    the middle of the range (minmax), never NaN; in sparse data, where zeros of such a feature stay
    zeros, 1 or -1 (standard) or 0 (minmax).
    """
    if apply is not None:
        given = {"--method": method, "--range": interval, "--divisor": divisor, "--save": save}
        clash = [name for name, value in given.items() if value is not None]
        if clash:
            raise SettingsError(f"--apply takes everything from {apply}; leave {clash[0]} out")
        scaler = load_scaler(apply)
    else:
        scaler = None
    if save == "-" and output == "-":
        raise SettingsError("the data and the parameters cannot both go to stdout; give -o")
    inputs.check_distinct({"-o": output, "--save": save}, [data, apply])
    method = method or "standard"
    parameters = method_parameters(method, interval, divisor)
    inputs.check_output(output)
    inputs.check_output(save, "choose another with --save")
    dataset = inputs.read_data(data, opts)
    check_width(dataset.X, dataset.source)
    if scaler is None:
        scaler = Scaler.fit(dataset.X, method, **parameters)
    if dataset.n_features > scaler.n_features and scaler.factor is not None:
        console.warn(
            f"{dataset.source}: {dataset.n_features} features where the scaling was fitted on "
            f"{scaler.n_features}; the others are not scaled"
        )
    scaled = dataclasses.replace(dataset, X=scaler.transform(dataset.X))
    write_dataset(output, scaled, format=inputs.output_format(output, scaled, to))
    if save is not None:
        save_scaler(save, scaler)
    console.note(f"{dataset.source}: {dataset.n} rows scaled")


def method_parameters(
    method: str, interval: tuple[float, float] | None, divisor: float | None
) -> dict[str, Any]:
    """The keyword arguments of Scaler.fit; an option of another method is an error."""
    if interval is not None and method != "minmax":
        raise SettingsError(f"--range belongs to --method minmax, not {method}; leave it out")
    if divisor is not None and method != "divide":
        raise SettingsError(f"--divisor belongs to --method divide, not {method}; leave it out")
    if method == "divide":
        if divisor is None:
            raise SettingsError("--method divide needs its constant; give --divisor")
        if divisor == 0:
            raise SettingsError("--divisor 0 divides by zero; give another number")
        return {"constant": divisor}
    return {"range": interval} if interval is not None else {}
