"""``kfu cv``: cross-validation of any machine, and of two learners against each other."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import IO, Any

import click
import numpy as np

from kfu.cli import console, inputs, options
from kfu.cli.config_file import as_typed, load_yaml_mapping, spellings
from kfu.cli.parameters import POSITIVE_COUNT, Name
from kfu.cli.row_weights import read_labels
from kfu.cli.train import interrupt_on_terminate
from kfu.cli.training_setup import (
    data_options,
    is_classifier,
    read_training_data,
    scaled,
    training_options,
)
from kfu.data import Dataset, format_label
from kfu.errors import DataError, SettingsError
from kfu.io.atomic import atomic_output
from kfu.machine_kinds import CLASSIFIER, RANKER, REGRESSOR
from kfu.machines import MACHINES, OPTIONS
from kfu.report import Confusion, figure, peak_rss_mib, print_facts, print_table, write_json
from kfu.validation import corrected_resampled_t_test
from kfu.validation.cross_validation import CrossValidation, cross_validate
from kfu.validation.folds import SPLITTERS, Folds, make_folds

MAIN_SCORE = {CLASSIFIER: "error", REGRESSOR: "mse", RANKER: "pair_error"}
SHOWN_FOLDS = 20
COUNTERS = ("iterations", "kernel_evaluations", "rounds")
# Options of the command that the file of --against cannot change: the data and the folds.
NOT_OF_A_LEARNER = frozenset(
    {"data", "data_format", "zero_based", "label_column", "header", "folds", "by", "groups"}
    | {"repeats", "against", "output", "report", "config", "quiet", "verbose"}
)


@click.command(
    epilog="""\b
Examples:
  kfu cv heart.svm -c 1 -g 0.05                      # ten stratified folds
  kfu cv heart.svm --by loo --report loo.json
  kfu cv heart.svm -k rbf -c 1 --repeats 10 --against linear.yaml
  kfu cv ranking.svm -m rank --by group              # whole queries together
"""
)
@options.data
@options.machine
@click.option(
    "-f",
    "--folds",
    type=POSITIVE_COUNT,
    default=None,
    help="Number of folds.  [default: 10]",
)
@click.option(
    "--by",
    type=Name("splitting", list(SPLITTERS), {"kfold": "k-fold", "qid": "group"}),
    default=None,
    help=f"How rows are dealt to folds: {', '.join(SPLITTERS)}.  [default: stratified for classes, "
    "group for queries, else k-fold]",
)
@click.option(
    "--groups",
    metavar="FILE",
    help="The group of each row, one a line, for --by group.  [default: the qid of the data]",
)
@click.option(
    "--repeats",
    type=POSITIVE_COUNT,
    default=1,
    show_default=True,
    help="Draw the folds so many times.",
)
@click.option(
    "--against",
    metavar="FILE.yaml",
    help="Options of a second learner (keys are option names), run on the same folds; the "
    "corrected resampled t-test (Nadeau, Bengio) tells whether the first is better.",
)
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    help="Write for each row: fold, label, prediction and the outputs when it was left out.",
)
@options.kernel_options
@options.cost
@options.class_weight
@options.weights
@options.machine_options
@options.multiclass
@options.decoding
@options.bias
@options.regularised_bias
@options.scale
@options.solver_options
@options.data_options
@options.common_options
def cv(data: str, output: str | None, report: str | None, against: str | None, **opts: Any) -> None:
    """Cross-validate a machine on DATA.

    Each fold is tested by a machine trained on the other folds. The options of training are those
    of 'kfu train'. Folds share kernel values and start from each other's solutions, so k folds cost
    far less than k trainings; --by loo leaves out one row at a time and trains only where the row
    matters. With --scale, the features are scaled once, by all rows.
    """
    begin = time.perf_counter()
    inputs.check_distinct({"-o": output, "--report": report}, [data, against, opts["weights_file"]])
    inputs.check_output(output)
    inputs.check_output(report, "choose another with --report")
    wanted = training_options(opts)
    dataset = read_training_data(data, opts, wanted["kernel"])
    wanted.update(data_options(dataset, opts))
    X, _ = scaled(dataset, opts["scale"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folds = folds_of(dataset, opts)
    if against is not None:
        rival_X, rival_options = rival_of(against, opts, dataset)
    with interrupt_on_terminate():
        found = run_folds(X, dataset, folds, wanted)
        rival = None
        if against is not None:
            rival = run_folds(rival_X, dataset, folds, rival_options)
    seconds = time.perf_counter() - begin
    if output is not None:
        write_rows(output, dataset, found)
    said = [*(str(warning.message) for warning in caught), *unfinished_folds(found)]
    for message in said:
        console.warn(message)
    content = report_of(found, dataset, opts, seconds, said)
    if rival is not None and against is not None:
        content["against"] = comparison(found, rival, folds, opts, against)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        print_summary(content)


def folds_of(dataset: Dataset, opts: dict[str, Any]) -> Folds:
    groups = dataset.qid
    if opts["groups"] is not None:
        groups = np.unique(read_labels(opts["groups"], dataset), return_inverse=True)[1]
    kind = opts["by"]
    if kind is None:
        is_ranking = MACHINES[opts["machine"]].kind == RANKER
        if is_ranking or opts["groups"] is not None:
            kind = "group"
        else:
            kind = "stratified" if is_classifier(opts) else "k-fold"
    if kind == "loo" and opts["folds"] is not None:
        raise SettingsError("--by loo has as many folds as rows; leave --folds out")
    if kind == "loo" and MACHINES[opts["machine"]].kind == RANKER:
        raise SettingsError("one row left out has no order to judge; leave out queries: --by group")
    if kind == "group" and groups is None:
        raise DataError(
            dataset.source,
            None,
            "no qid: --by group needs the group of each row",
            "write qid:NUMBER after the labels, or give --groups FILE",
        )
    k = opts["folds"] or 10
    labels = dataset.y if is_classifier(opts) else None
    if kind == "stratified" and labels is None:
        raise SettingsError(f"machine {opts['machine']} has no classes to stratify: --by k-fold")
    return make_folds(
        kind,
        dataset.n,
        k=k,
        labels=labels,
        groups=groups,
        seed=opts["seed"],
        repeats=opts["repeats"],
    )


def run_folds(X: Any, dataset: Dataset, folds: Folds, wanted: dict[str, Any]) -> CrossValidation:
    """The folds with a line of progress on a terminal."""
    total = len(folds)
    with contextlib.ExitStack() as stack:
        shown = stack.enter_context(
            console.TrainingProgress(wanted["settings"].tolerance, enabled=not console.is_quiet())
        )

        def on_fold(number: int, fold: Any) -> bool:
            console.note(f"fold {number + 1}/{total}: {fold.scores}")
            return False

        arguments = {**wanted, "y": dataset.y, "source": dataset.source, "progress": shown}
        return cross_validate(X, folds, options=arguments, on_fold=on_fold)


def rival_of(path: str, opts: dict[str, Any], dataset: Dataset) -> tuple[Any, dict[str, Any]]:
    """X and the arguments of the second learner: the options of this run, changed as the file says.

    What another kernel or machine has no use for is not taken over from this run.
    """
    changes = changes_of(path)
    merged = dict(opts)
    if changes.keys() & {"kernel", "kernel_file"}:
        merged.update(dict.fromkeys(inputs.KERNEL_NAMES))
    elif changes.keys() & {"gamma", "sigma"}:
        merged.update(gamma=None, sigma=None)
    if "machine" in changes:
        machine = MACHINES[changes["machine"]]
        merged.update(dict.fromkeys(OPTIONS), decoding=None)
        if machine.kind != MACHINES[opts["machine"]].kind:
            raise SettingsError(
                f"{path}: {machine.name} is a {machine.kind}, and {opts['machine']} a "
                f"{MACHINES[opts['machine']].kind}: they have no score in common"
            )
        if not machine.takes_bias or machine.name == "nu-svc":
            merged.update(bias=True, regularised_bias=False)
    merged.update(changes)
    arguments = training_options(merged, changes.__contains__)
    arguments["kernel"] = inputs.kernel_from_options(**{n: merged[n] for n in inputs.KERNEL_NAMES})
    if arguments["kernel"].is_precomputed != inputs.kernel_of(opts).is_precomputed:
        raise SettingsError(f"{path}: kernel values and rows cannot be read from the same data")
    arguments.update(data_options(dataset, merged))
    return scaled(dataset, merged["scale"])[0], arguments


def changes_of(path: str) -> dict[str, Any]:
    """The options of a learner in the file, by parameter, as the command line would give them."""
    ctx = click.get_current_context()
    known = spellings(ctx.command)
    changes: dict[str, Any] = {}
    for key, value in load_yaml_mapping(path).items():
        parameter, negated = known.get(key.replace("_", "-"), (None, False))
        if parameter is None or parameter.name is None or parameter.name in NOT_OF_A_LEARNER:
            raise SettingsError(f"{path}: '{key}' is no option of a learner")
        try:
            typed = as_typed(parameter, value, negated)
            changes[parameter.name] = parameter.type_cast_value(ctx, typed)
        except click.BadParameter as error:
            raise SettingsError(f"{path}: {key}: {error.message}") from None
    return changes


def report_of(
    found: CrossValidation, dataset: Dataset, opts: dict[str, Any], seconds: float, said: list[str]
) -> dict[str, Any]:
    kind = MACHINES[opts["machine"]].kind
    content: dict[str, Any] = {
        "status": "done",
        "machine": opts["machine"],
        "n": dataset.n,
        "n_features": dataset.n_features,
        "n_folds": len(found.folds),
        "repeats": opts["repeats"],
    }
    for name in found.score_names:
        content[name] = found.mean(name)
        content[f"{name}_std"] = found.std(name)
    if kind == CLASSIFIER:
        content |= pooled(found, dataset)
    content["folds"] = [
        {
            **fold.scores,
            "n_train": fold.info["n_train"],
            "n_test": fold.info["n_test"],
            "status": fold.info.get("status"),
            **{name: fold.info.get(name) for name in ("n_sv", "iterations")},
        }
        for fold in found.folds
    ]
    counted = [name for name in COUNTERS if found.folds[0].info.get(name) is not None]
    content |= {name: int(found.total(name)) if name in counted else None for name in COUNTERS}
    content |= {"seconds": seconds, "peak_rss_mib": peak_rss_mib(), "warnings": list(said)}
    return content


def pooled(found: CrossValidation, dataset: Dataset) -> dict[str, Any]:
    """All test predictions counted together."""
    confusion = Confusion(found.classes)
    position = {value: k for k, value in enumerate(found.classes.tolist())}
    for fold in found.folds:
        assert dataset.y is not None
        winners = np.array([position[value] for value in fold.predicted.tolist()], dtype=np.int64)
        confusion.add(dataset.y[fold.test], winners)
    summary = confusion.summary()
    return {
        "pooled_error": summary["error"],
        "n_errors": confusion.n_labelled - confusion.n_correct,
        "per_class": summary["per_class"],
        "confusion": confusion.table(),
    }


def comparison(
    found: CrossValidation, rival: CrossValidation, folds: Folds, opts: dict[str, Any], path: str
) -> dict[str, Any]:
    score = MAIN_SCORE.get(MACHINES[opts["machine"]].kind, found.score_names[0])
    differences = np.array(
        [a.scores[score] - b.scores[score] for a, b in zip(found.folds, rival.folds, strict=True)]
    )
    differences = differences[np.isfinite(differences)]  # folds with nothing to judge
    content: dict[str, Any] = {
        "file": path,
        "score": score,
        "mean": rival.mean(score),
        "std": rival.std(score),
        "difference": float(differences.mean()) if differences.size else None,
    }
    if len(differences) > 1:
        n_test = float(np.mean([fold.info["n_test"] for fold in found.folds]))
        test = corrected_resampled_t_test(differences, folds.n - n_test, n_test)
        content |= {
            "t": test.statistic,
            "p_value": test.p_value,
            "low": test.low,
            "high": test.high,
        }
    return content


def write_rows(path: str, dataset: Dataset, found: CrossValidation) -> None:
    """One line for each tested row: fold, row (from 1), label, prediction, outputs."""
    with atomic_output(path) as stream:
        width = found.folds[0].decision.shape[1]
        names = ["fold", "row", "label", "predicted", *(f"output{k + 1}" for k in range(width))]
        stream.write(("# " + "\t".join(names) + "\n").encode())
        for number, fold in enumerate(found.folds, start=1):
            write_fold(stream, number, fold, dataset)


def write_fold(stream: IO[bytes], number: int, fold: Any, dataset: Dataset) -> None:
    for k, row in enumerate(fold.test.tolist()):
        label = "?" if dataset.y is None else format_label(dataset.y[row])
        said = format_label(fold.predicted[k])
        outputs = "\t".join(map(repr, fold.decision[k].tolist()))
        stream.write(f"{number}\t{row + 1}\t{label}\t{said}\t{outputs}\n".encode())


def unfinished_folds(found: CrossValidation) -> list[str]:
    states = [f.info.get("status") for f in found.folds if f.info.get("status") != "converged"]
    if not states:
        return []
    return [f"{len(states)} of {len(found.folds)} folds stopped before convergence ({states[0]})"]


def print_summary(content: dict[str, Any]) -> None:
    facts: list[tuple[str, Any]] = [
        ("folds", f"{content['n_folds']} of {content['n']} rows"),
    ]
    for name in ("error", "accuracy", "mse", "mae", "r2", "ndcg", "pair_error", "outliers"):
        if name in content:
            spread = content[f"{name}_std"]
            shown = figure(content[name])
            few = content["n_folds"] == content["n"] or not np.isfinite(spread)
            facts.append((name.replace("_", " "), shown if few else f"{shown} ± {figure(spread)}"))
    if "n_errors" in content:
        facts.append(("errors", content["n_errors"]))
    if content["iterations"] is not None:
        facts.append(("iterations", content["iterations"]))
    facts.append(("seconds", f"{content['seconds']:.3f}"))
    print_facts(facts)
    if content["n_folds"] <= SHOWN_FOLDS:
        names = [name for name in content["folds"][0] if name != "status"]
        rows = [
            [str(k), *(figure(fold[name]) for name in names)]
            for k, fold in enumerate(content["folds"], start=1)
        ]
        print_table(["fold", *names], rows)
    rival = content.get("against")
    if rival is not None:
        lines = [
            ("against", rival["file"]),
            (f"its {rival['score']}", f"{figure(rival['mean'])} ± {figure(rival['std'])}"),
            ("difference", rival["difference"]),
        ]
        if "p_value" in rival:
            lines.append(("p-value (corrected t)", rival["p_value"]))
        print_facts(lines)
