"""``kfu predict``: blocks of rows in, one line per row out.

Memory does not grow with the number of rows: the data are read block by block (stdin too), and
each block is predicted and written before the next one is read.

Output, one line per row in the order of DATA:

    labels     the label
    decision   the decision values, separated by tabs
    both       the label, then the decision values, separated by tabs

``decision`` and ``both`` begin with one line that starts with ``#`` and names the columns: a
column ``1:-1`` is positive where class 1 wins against class -1. Decision values are printed so
that reading them gives the same float64.
"""

from __future__ import annotations

import dataclasses
import re
import time
import warnings
from collections.abc import Iterator
from typing import IO, Any

import click
import numpy as np

from kfu.cli import console, inputs, options
from kfu.cli.file_kind import load_any_model
from kfu.cli.parameters import POSITIVE_COUNT, Name
from kfu.data import Dataset, format_label
from kfu.errors import SettingsError
from kfu.io import iter_blocks
from kfu.io.atomic import atomic_output
from kfu.model import Model
from kfu.report import Confusion, figure, peak_rss_mib, print_table, write_json

OUTPUTS = ("labels", "decision", "both")


class OutputName(Name):
    """One of OUTPUTS, or a hint for who means the file."""

    def hint(self, word: str) -> str:
        return ": --output says what a line holds, the file is named with -o"


@click.command(
    epilog="""\b
Examples:
  kfu predict heart.kfu heart.t                       # labels to stdout, accuracy to stderr
  kfu predict heart.kfu heart.t -o heart.out --report heart.json
  zcat big.svm.gz | kfu predict big.kfu - --output both > big.out
"""
)
@click.argument("model_path", metavar="MODEL")
@options.data
@click.option(
    "-o",
    "--out",
    "out",
    default="-",
    metavar="OUT",
    help="File for the predictions, one line per row; '-' is stdout.  [default: -]",
)
@click.option(
    "--output",
    type=OutputName("output", list(OUTPUTS)),
    default="labels",
    show_default=True,
    help="What a line holds: the label (labels), tab-separated decision values (decision), or "
    "the label and then the decision values (both). The last two begin with a '#' line that "
    "names the columns.",
)
@click.option(
    "--no-labels",
    is_flag=True,
    help="DATA has no labels: a table has no label column, and the labels of libsvm text are "
    "ignored. (A single row without a label says ?, or 0 where 0 is no class.)",
)
@click.option(
    "--block-rows",
    type=POSITIVE_COUNT,
    default=8192,
    show_default=True,
    help="Rows read and predicted at a time.",
)
@options.data_options
@options.threads
@options.report
@options.config
@options.verbose
@options.quiet
def predict(
    model_path: str,
    data: str,
    out: str,
    output: str,
    no_labels: bool,
    block_rows: int,
    report: str | None,
    **opts: Any,
) -> None:
    """Predict the rows of DATA with MODEL.

    Predictions go to OUT. When the rows have labels, the accuracy and a table of the classes
    follow: on stdout if the predictions go to a file, else on stderr.
    """
    if out == "-" and report == "-":
        raise SettingsError("the predictions and the report cannot both go to stdout; give -o")
    inputs.check_distinct({"-o": out, "--report": report}, [model_path, data])
    inputs.check_output(out)
    inputs.check_output(report, "choose another with --report")
    begin = time.perf_counter()
    model = load_any_model(model_path)
    blocks = blocks_of(data, model, block_rows, no_labels, opts)
    with atomic_output(out) as stream:
        confusion, said = write_predictions(stream, model, blocks, output, opts["threads"])
    if opts["zero_based"] is None:
        said = [text + base_hint(text, model) for text in said]
    seconds = time.perf_counter() - begin

    found = [*unfinished(model, model_path), *said, *confusion.warnings()]
    for message in found:
        console.warn(message)
    content = {
        **confusion.summary(),
        "status": "done",
        "machine": model.machine,
        "kernel": model.kernel.describe(),
        "n_sv": model.n_sv,
        "model_status": model.info.get("status"),
        "seconds": seconds,
        "rows_per_second": confusion.n_rows / seconds if seconds > 0 else None,
        "peak_rss_mib": peak_rss_mib(),
        "warnings": found,
    }
    if report is not None:
        write_json(report, content)
    if not console.is_quiet() and report != "-":
        print_summary(content, to_stderr=out == "-")


def write_predictions(
    stream: IO[bytes], model: Model, blocks: Iterator[Dataset], output: str, threads: int
) -> tuple[Confusion, list[str]]:
    """Write a line per row; return the counts and what the model warned of, each kind once."""
    confusion = Confusion(model.classes)
    labels = [format_label(value) for value in model.classes]
    said: dict[str, str] = {}  # a warning without its numbers -> the last of its kind
    header = header_of(model, labels, output).encode() if output != "labels" else b""
    for block in blocks:
        stream.write(header)
        header = b""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            options: dict[str, Any] = {
                "threads": threads,
                "from_sparse_text": block.from_sparse_text,
                "source": block.source,
            }
            decision = np.empty((0, 0))
            if output == "labels":
                winners = model.classify(block.X, **options)
            else:
                decision = model.decision_function(block.X, **options)
                winners = model.decide(decision)
        texts = [str(warning.message) for warning in caught]
        said.update({re.sub(r"\d+", "#", text): text for text in texts})
        stream.write(lines_of(winners, decision, labels, output).encode())
        stream.flush()  # who sends rows through a pipe gets their answers before sending more
        confusion.add(block.y, winners)
    return confusion, list(said.values())


def blocks_of(
    data: str, model: Model, rows: int, no_labels: bool, opts: dict[str, Any]
) -> Iterator[Dataset]:
    reader = inputs.reader_options(opts)
    reader["zero_based"] = zero_based_of(model, opts["zero_based"])
    if no_labels:
        reader["label_column"] = None
    for block in iter_blocks(data, rows, precomputed=model.is_precomputed, **reader):
        inputs.check_table_options(block, opts)
        yield dataclasses.replace(block, y=None) if no_labels else block


def unfinished(model: Model, path: str) -> list[str]:
    status = model.info.get("status", "converged")
    if status == "converged":
        return []
    return [f"{path}: its training stopped before convergence ({status})"]


def base_hint(message: str, model: Model) -> str:
    """What to add to the warning of unknown features when DATA may count from 1, not 0."""
    if "features where the model has" not in message or not model.settings.get("zero_based"):
        return ""
    return (
        " (feature numbers were read as starting at 0, as in the training data; give --one-based "
        "if these start at 1)"
    )


def zero_based_of(model: Model, asked: bool | None) -> bool | str:
    """How feature numbers start: as asked, else as in the training data, else by content."""
    if asked is not None:
        return asked
    trained = model.settings.get("zero_based")
    return trained if isinstance(trained, bool) else "auto"


def header_of(model: Model, labels: list[str], output: str) -> str:
    columns = ["label"] if output == "both" else []
    for machine in range(model.n_machines):
        column = model.code[:, machine]
        positive = [labels[k] for k in np.flatnonzero(column > 0)]
        negative = [labels[k] for k in np.flatnonzero(column < 0)]
        columns.append(f"{','.join(positive)}:{','.join(negative)}")
    return "# " + "\t".join(columns) + "\n"


def lines_of(winners: np.ndarray, decision: np.ndarray, labels: list[str], output: str) -> str:
    if output == "labels":
        rows = [labels[k] for k in winners]
    else:
        rows = ["\t".join(map(repr, values)) for values in decision.tolist()]
        if output == "both":
            rows = [f"{labels[k]}\t{row}" for k, row in zip(winners, rows, strict=True)]
    return "".join(row + "\n" for row in rows)


def print_summary(content: dict[str, Any], to_stderr: bool) -> None:
    speed = content["rows_per_second"]
    facts: list[list[str]] = [["rows", str(content["n"])]]
    if content["accuracy"] is not None:
        n = content["n_labelled"]
        correct = sum(entry["correct"] for entry in content["per_class"])
        facts.append(["accuracy", f"{100 * content['accuracy']:.4f}% ({correct}/{n})"])
    facts.append(["seconds", f"{content['seconds']:.3f} ({figure(round(speed or 0))} rows/s)"])
    print_table(["", ""], facts, to_stderr=to_stderr)
    if content["per_class"] is not None:
        keys = ("label", "n", "predicted", "correct", "recall", "precision")
        rows = [[entry[key] for key in keys] for entry in content["per_class"]]
        print_table([key.replace("label", "class") for key in keys], rows, to_stderr=to_stderr)
