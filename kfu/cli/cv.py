"""``kfu cv``: cross-validation of any machine, and of two learners against each other."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import click
import numpy as np

from kfu.cli import console, engines, grid, inputs, options
from kfu.cli.config_file import as_typed, load_yaml_mapping, spellings
from kfu.cli.cv_report import (
    comparison,
    main_score,
    print_summary,
    report_of,
    unfinished_folds,
    write_rows,
)
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
from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.machine_kinds import NOVELTY, RANKER
from kfu.machines import MACHINES, OPTIONS
from kfu.report import write_json
from kfu.validation.cross_validation import CrossValidation, cross_validate
from kfu.validation.folds import SPLITTERS, Folds, make_folds

# Options of the command that the file of --against cannot change: the data and the folds.
NOT_OF_A_LEARNER = frozenset(
    {"data", "data_format", "zero_based", "label_column", "header", "folds", "by", "groups"}
    | {"repeats", "against", "output", "report", "config", "quiet", "verbose"}
    | {"engine", "scheduler", "workers"}
)

engine = engines.engine_option(
    "Every fold of every learner is a task: on the threads of this process (local) or the workers "
    "of a dask cluster (dask). Folds then do not start from each other's solutions."
)


@grid.takes_several
@click.command(
    epilog="""\b
Examples:
  kfu cv heart.svm -c 1 -g 0.05                      # ten stratified folds
  kfu cv heart.svm -c 0.1,1,10 -g 0.01,0.1           # a table of six, the best marked
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
@engine
@engines.scheduler
@engines.workers
@options.data_options
@options.common_options
def cv(data: str, output: str | None, report: str | None, against: str | None, **opts: Any) -> None:
    """Cross-validate a machine on DATA.

    Each fold is tested by a machine trained on the other folds. The options of training are those
    of 'kfu train'. Folds share kernel values and start from each other's solutions, so k folds cost
    far less than k trainings; --by loo leaves out one row at a time and trains only where the row
    matters. With --scale, the features are scaled once, by all rows.

    Several values with commas between them (-c, -g, --sigma, -d, -r, --nu, --epsilon, --ridge,
    --lambda, --centres ...) are tried in every combination on the same folds; -o and --report are
    of the best.
    """
    begin = time.perf_counter()
    inputs.check_distinct({"-o": output, "--report": report}, [data, against, opts["weights_file"]])
    inputs.check_output(output)
    inputs.check_output(report, "choose another with --report")
    check_combination(against, opts)
    tried = grid.learners(opts)
    wanted = [training_options(one) for one in tried]
    dataset = read_training_data(data, opts, wanted[0]["kernel"])
    of_data = data_options(dataset, opts)
    wanted = [{**one, **of_data} for one in wanted]
    X, _ = scaled(dataset, opts["scale"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folds = folds_of(dataset, opts)
    if against is not None:
        rival_X, rival_options = rival_of(against, opts, dataset)
    rival = None
    with interrupt_on_terminate(), engines.opened(opts) as chosen:
        every = run_learners(X, dataset, folds, wanted, chosen)
        if against is not None:
            rival = run_learners(rival_X, dataset, folds, [rival_options], chosen)[0]
    seconds = time.perf_counter() - begin
    score = main_score(opts["machine"], every[0])
    best = grid.best_of(every, score)
    found = every[best]
    if output is not None:
        write_rows(output, dataset, found)
    said = [*(str(warning.message) for warning in caught), *unfinished_folds(every)]
    for message in said:
        console.warn(message)
    content = report_of(found, dataset, opts, seconds, said)
    names = grid.varied(opts)
    if names:
        content |= grid.grid_report(tried, names, every, score, best)
    if rival is not None and against is not None:
        content["against"] = comparison(found, rival, folds, opts, against)
    if report is not None:
        write_json(report, content)
    if report != "-" and not console.is_quiet():
        if names:
            grid.print_grid(content)
        print_summary(content)


def check_combination(against: str | None, opts: dict[str, Any]) -> None:
    """SettingsError for options that are right one by one."""
    engines.check_engine(opts)
    names = grid.varied(opts)
    if names and against is not None:
        raise SettingsError("--against compares single learners; give one value of each option")
    if names and MACHINES[opts["machine"]].kind == NOVELTY:
        raise SettingsError(
            f"machine {opts['machine']} has no score to choose by; give one value of each option"
        )
    if opts["engine"] is not None and opts["max_seconds"]:
        raise SettingsError("--max-seconds does not go with --engine; leave it out")


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


def run_learners(
    X: Any, dataset: Dataset, folds: Folds, learners: list[dict[str, Any]], chosen: Any
) -> list[CrossValidation]:
    """Every learner on the same folds: one after the other, or as tasks of an engine."""
    if chosen is None:
        return [run_folds(X, dataset, folds, learner) for learner in learners]
    from kfu.engine.fold_tasks import cross_validate_by_engine

    complete = [{**one, "y": dataset.y, "source": dataset.source} for one in learners]
    return cross_validate_by_engine(X, folds, complete, chosen)


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
