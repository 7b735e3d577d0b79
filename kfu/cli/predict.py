"""``kfu predict``: blocks of rows in, one line per row out.

Memory does not grow with the number of rows: the data are read block by block (stdin too), and
each block is predicted and written before the next one is read.

Output, one line per row in the order of DATA:

    labels         the label (of a regression or ranking: the number)
    decision       the decision values, separated by tabs
    both           the label, then the decision values, separated by tabs
    scores         the label, then one score for each class, the largest of which is the label's
    probabilities  the label, then the probability of each class (kfu train --probability)

All but ``labels`` begin with one line that starts with ``#`` and names the columns: a column
``1:-1`` is positive where class 1 wins against class -1. Numbers are printed so that reading them
gives the same float64.
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
from kfu.cli.outputs_kept import Keeper, has_binary_machines
from kfu.cli.parameters import PATH_VALUE, POSITIVE_COUNT, Name
from kfu.data import Dataset, format_label
from kfu.errors import ModelError, SettingsError
from kfu.io import iter_blocks
from kfu.io.atomic import atomic_output
from kfu.machine_kinds import CLASSIFIER
from kfu.model import Model
from kfu.report import figure, peak_rss_mib, print_table, write_json
from kfu.tallies import Tally, tally_of

LARGEST_TABLE = 15  # classes of a confusion matrix that is printed
OUTPUTS = ("labels", "decision", "both", "scores", "probabilities")


class OutputName(Name):
    """One of OUTPUTS, or a hint for who means the file."""

    def hint(self, word: str) -> str:
        return ": --output says what a line holds, the file is named with -o"


@click.command(
    epilog="""\b
Examples:
  kfu predict heart.kfu heart.t                       # labels to stdout, accuracy to stderr
  kfu predict heart.kfu heart.t -o heart.out --report heart.json
  kfu predict heart.jsonl heart.t --at 10             # the model at C = 10 of a path
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
    help="What a line holds: the label (labels), tab-separated decision values (decision), the "
    "label and then the decision values (both), one score for each class (scores) or its "
    "probability (probabilities). All but labels begin with a '#' line that names the columns.",
)
@click.option(
    "--at",
    type=PATH_VALUE,
    default=None,
    metavar="C",
    help="MODEL is a path file: predict with its exact model at this C (of a path in epsilon or "
    "nu: at this value).",
)
@click.option(
    "--train",
    metavar="FILE",
    help="The rows that the path was followed on, where the path file does not hold them and the "
    "file it names is elsewhere now.",
)
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="MODEL",
    help="Another model of the same classes; a table tells on how many rows the models agree. "
    "Repeatable.",
)
@click.option(
    "--plot",
    metavar="FILE",
    help="Draw how well the probabilities are calibrated (a model with --probability), or the "
    "shares of wrong binary machines behind the errors (several machines).",
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
    others: tuple[str, ...],
    plot: str | None,
    at: float | None,
    train: str | None,
    **opts: Any,
) -> None:
    """Predict the rows of DATA with MODEL.

    Predictions go to OUT. When the rows have labels, the accuracy and a table of the classes
    follow (mean squared error of a regression, NDCG of a ranking): on stdout if the predictions go
    to a file, else on stderr.
    """
    if out == "-" and report == "-":
        raise SettingsError("the predictions and the report cannot both go to stdout; give -o")
    read = [model_path, data, train]
    inputs.check_distinct({"-o": out, "--report": report, "--plot": plot}, read)
    inputs.check_output(out)
    inputs.check_output(report, "choose another with --report")
    inputs.check_output(plot, "choose another with --plot")
    begin = time.perf_counter()
    model = load_any_model(model_path, at, train)
    check_wanted(model, model_path, output, plot)
    blocks = blocks_of(data, model, block_rows, no_labels, opts)
    keeper = Keeper(model, keeps_outputs=report is not None or plot is not None)
    keeper.add_rivals([(path, load_any_model(path)) for path in others], model_path)
    with atomic_output(out) as stream:
        tally, said = write_predictions(stream, model, blocks, output, opts["threads"], keeper)
    if opts["zero_based"] is None:
        said = [text + base_hint(text, model) for text in said]
    seconds = time.perf_counter() - begin

    found = [*unfinished(model, model_path), *said, *tally.warnings()]
    for message in found:
        console.warn(message)
    content = {
        **tally.summary(),
        **keeper.figures(),
        "status": "done",
        "machine": model.machine,
        "kernel": model.kernel.describe(),
        "n_sv": model.n_sv,
        "model_status": model.info.get("status"),
        "seconds": seconds,
        "rows_per_second": tally.n_rows / seconds if seconds > 0 else None,
        "peak_rss_mib": peak_rss_mib(),
        "warnings": found,
    }
    if plot is not None:
        keeper.draw(plot)
    if report is not None:
        write_json(report, content)
    if not console.is_quiet() and report != "-":
        print_summary(content, to_stderr=out == "-")


def check_wanted(model: Model, path: str, output: str, plot: str | None) -> None:
    """An error before the work when the model cannot give what is asked of it."""
    if output == "probabilities" and model.kind != CLASSIFIER:
        raise SettingsError(f"{path} is a {model.kind}: it has no classes to give probabilities of")
    if output == "probabilities" and model.calibration is None:
        raise ModelError(path, "holds no probabilities", "train it with --probability")
    if output == "scores" and not model.has_classes:
        raise SettingsError(f"{path} is a {model.kind}: it has no classes to give scores of")
    if plot is not None and model.calibration is None and not has_binary_machines(model):
        raise SettingsError(
            f"--plot draws probabilities or several binary machines, and {path} has neither; train "
            "it with --probability"
        )


def write_predictions(
    stream: IO[bytes],
    model: Model,
    blocks: Iterator[Dataset],
    output: str,
    threads: int,
    keeper: Keeper,
) -> tuple[Tally, list[str]]:
    """Write a line per row; return the counts and what the model warned of, each kind once."""
    tally = tally_of(model)
    said: dict[str, str] = {}  # a warning without its numbers -> the last of its kind
    header = header_of(model, output).encode() if output != "labels" else b""
    for block in blocks:
        stream.write(header)
        header = b""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            predicted = predicted_block(model, block, output, threads, keeper)
        texts = [str(warning.message) for warning in caught]
        said.update({re.sub(r"\d+", "#", text): text for text in texts})
        stream.write(lines_of(model, predicted, output).encode())
        stream.flush()  # who sends rows through a pipe gets their answers before sending more
        tally.add(block, predicted.winners if model.has_classes else predicted.values)
    return tally, list(said.values())


@dataclasses.dataclass
class Predicted:
    """The predictions of a block: class indices or numbers, and what stands beside them."""

    winners: np.ndarray  # class indices; empty without classes
    values: np.ndarray  # numbers of a regression or ranking; empty with classes
    columns: np.ndarray  # (n, k) what follows the label; empty for labels alone


def predicted_block(
    model: Model, block: Dataset, output: str, threads: int, keeper: Keeper
) -> Predicted:
    options: dict[str, Any] = {
        "threads": threads,
        "from_sparse_text": block.from_sparse_text,
        "source": block.source,
    }
    nothing = np.empty((0, 0))
    if output == "labels" and model.has_classes and not keeper.needs_outputs:
        winners = model.classify(block.X, **options)
        keeper.add(block, None, None, winners, options)
        return Predicted(winners, np.empty(0), nothing)
    probabilities = None
    if model.calibration is not None and (output == "probabilities" or keeper.needs_outputs):
        decision, probabilities = model.decision_and_probabilities(block.X, **options)
    else:
        decision = model.decision_function(block.X, **options)
    winners = model.decide(decision) if model.has_classes else np.empty(0, dtype=np.int64)
    values = np.empty(0) if model.has_classes else decision[:, 0]
    keeper.add(block, decision, probabilities, winners, options)
    columns = {"labels": nothing, "decision": decision, "both": decision}.get(output)
    if output == "scores":
        columns = model.class_scores(decision)
    elif output == "probabilities":
        columns = probabilities
    assert columns is not None
    return Predicted(winners, values, columns)


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


def header_of(model: Model, output: str) -> str:
    labels = [format_label(value) for value in model.classes]
    columns = [] if output == "decision" else ["label"]
    if output in ("scores", "probabilities"):
        columns += labels
    elif not model.has_classes:
        columns.append("value")
    else:
        for machine in range(model.n_machines):
            column = model.code[:, machine]
            positive = [labels[k] for k in np.flatnonzero(column > 0)]
            negative = [labels[k] for k in np.flatnonzero(column < 0)]
            columns.append(f"{','.join(positive)}:{','.join(negative)}")
    return "# " + "\t".join(columns) + "\n"


def lines_of(model: Model, predicted: Predicted, output: str) -> str:
    if model.has_classes:
        labels = [format_label(value) for value in model.classes]
        first = [labels[k] for k in predicted.winners]
    else:
        first = list(map(repr, predicted.values.tolist()))
    if output == "labels":
        rows = first
    else:
        rows = ["\t".join(map(repr, values)) for values in predicted.columns.tolist()]
        if output != "decision":
            rows = [f"{label}\t{row}" for label, row in zip(first, rows, strict=True)]
    return "".join(row + "\n" for row in rows)


# What a summary prints of a report, in this order, where it is there.
SHOWN = (
    *("mse", "mae", "r2", "correlation", "ndcg", "pair_error", "n_queries"),
    *("log_loss", "brier_score", "calibration_error"),
    *("code_distance", "mean_loss", "error_bound"),
)


def print_summary(content: dict[str, Any], to_stderr: bool) -> None:
    speed = content["rows_per_second"]
    facts: list[list[str]] = [["rows", str(content["n"])]]
    if content.get("accuracy") is not None:
        n = content["n_labelled"]
        correct = sum(entry["correct"] for entry in content["per_class"])
        facts.append(["accuracy", f"{100 * content['accuracy']:.4f}% ({correct}/{n})"])
    for name in SHOWN:
        if content.get(name) is not None:
            facts.append([name.replace("_", " "), figure(content[name])])
    facts.append(["seconds", f"{content['seconds']:.3f} ({figure(round(speed or 0))} rows/s)"])
    print_table(["", ""], facts, to_stderr=to_stderr)
    if content.get("per_class") is not None:
        keys = ("label", "n", "predicted", "correct", "recall", "precision")
        rows = [[entry[key] for key in keys] for entry in content["per_class"]]
        print_table([key.replace("label", "class") for key in keys], rows, to_stderr=to_stderr)
    table = content.get("confusion")
    if table is not None and 2 < len(table["labels"]) <= LARGEST_TABLE:
        header = ["true \\ predicted", *table["labels"]]
        lines = [
            [label, *map(str, counts)]
            for label, counts in zip(table["labels"], table["counts"], strict=True)
        ]
        print_table(header, lines, to_stderr=to_stderr)
    agreement = content.get("agreement")
    if agreement is not None:
        lines = [
            [name, *(f"{value:.4f}" for value in row)]
            for name, row in zip(agreement["models"], agreement["shares"], strict=True)
        ]
        print_table(["agreement", *agreement["models"]], lines, to_stderr=to_stderr)
