"""``kfu run``: execute described experiments; expected figures beside those obtained."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from kfu.cli import console, options
from kfu.cli.main import EXIT_NOT_CONVERGED, nearest
from kfu.errors import SettingsError
from kfu.experiment import (
    Experiment,
    ExperimentResult,
    Runner,
    check_output,
    read_plan,
    write_results,
)
from kfu.experiment.expect import Summary, Verdict
from kfu.model import Model
from kfu.report import print_table

EXIT_OUTSIDE = 1


@click.command(
    epilog="""\b
Examples:
  kfu run configs/demo.yaml                 # results in runs/demo/
  kfu run configs/toys.yaml --only spiral -o /tmp/spiral
  KFU_DATA=~/data kfu run configs/svmguide1.yaml
"""
)
@click.argument("config", metavar="CONFIG")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    help="Folder for results.json, models and pictures.  [default: runs/ and the name of CONFIG]",
)
@click.option("--only", metavar="NAME", multiple=True, help="Run only this experiment; repeatable.")
@click.option("--force", is_flag=True, help="Compute again what an earlier run has stored.")
@click.option("--list", "list_only", is_flag=True, help="List the experiments and stop.")
@options.threads
@options.verbose
@options.quiet
def run(
    config: str,
    output: str | None,
    only: tuple[str, ...],
    force: bool,
    list_only: bool,
    threads: int,
) -> int:
    """Execute the experiment that CONFIG describes.

    Prints every expected figure beside the one obtained and its spread over repetitions, writes
    results.json and pictures, and goes on from what an earlier run has done. Exit codes: 0 every
    figure is as expected, 1 one is not (or the data are missing), 2 CONFIG is wrong, 3 a training
    stopped before convergence.
    """
    plans = chosen(read_plan(config), only, config)
    if list_only:
        print_table(["experiment", "about"], [[plan.name, plan.about] for plan in plans])
        return 0
    folder = Path(output) if output is not None else Path("runs") / Path(config).stem
    check_output(folder)
    progress = RunProgress(enabled=not console.is_quiet())
    runner = Runner(folder, threads=threads, force=force, progress=progress)
    results = []
    with progress:
        for plan in plans:
            result = runner.run(plan)
            results.append(result)
            progress.pause()
            for message in result.warnings():
                console.warn(f"{plan.name}: {message}")
            if not console.is_quiet():
                print_result(result)
            draw_pictures(runner, result)
    file = write_results(folder, config, results)
    if not console.is_quiet():
        click.echo(f"{file}: {len(results)} experiment{'s' if len(results) != 1 else ''}")
    return conclude(results)


def chosen(plans: list[Experiment], only: tuple[str, ...], config: str) -> list[Experiment]:
    names = [plan.name for plan in plans]
    for name in only:
        if name not in names:
            raise SettingsError(
                f"--only {name}: {config} has no such experiment{nearest(name, names)}; "
                f"it has {', '.join(names)}"
            )
    return [plan for plan in plans if not only or plan.name in only]


def conclude(results: list[ExperimentResult]) -> int:
    """Name every figure that is outside on stderr, and return the exit code."""
    outside = [(r.plan.name, v) for r in results for v in r.verdicts if not v.holds]
    for name, verdict in outside:
        obtained = "nothing" if verdict.obtained is None else precise(verdict.obtained)
        click.echo(
            f"kfu: error: {name}: {figure_name(verdict)} is {obtained}, "
            f"expected {verdict.expectation.text}",
            err=True,
        )
    if outside:
        return EXIT_OUTSIDE
    unfinished = [result.plan.name for result in results if not result.converged]
    if unfinished:
        console.warn(f"training stopped before convergence in {', '.join(unfinished)}")
        return EXIT_NOT_CONVERGED
    return 0


# ---- tables ---------------------------------------------------------------------------------


def print_result(result: ExperimentResult) -> None:
    plan = result.plan
    n = len(result.parts)
    stored = f", {result.n_stored} of them from an earlier run" if result.n_stored else ""
    about = f": {plan.about}" if plan.about else ""
    click.echo(f"{plan.name}{about}  [{n} part{'s' if n != 1 else ''}{stored}]")
    if result.verdicts:
        print_table(
            ["figure", "expected", "obtained", "spread", "verdict", "note"],
            [verdict_row(verdict) for verdict in result.verdicts],
        )
    others = other_figures(result)
    if others and len(result.figures) == 1:
        (group,) = result.figures
        rows = [[name, precise(group[name].mean), spread_of(group[name])] for name in others]
        click.echo("")
        print_table(["also obtained", "mean", "spread"], rows)
    elif others:
        click.echo("")
        print_table([*plan.vary, *others], variant_rows(result, others))
    click.echo("")


def figure_name(verdict: Verdict) -> str:
    statistic = verdict.expectation.statistic
    shown = "" if statistic == "mean" else f" ({statistic})"
    return f"{verdict.expectation.figure}{shown}{variant_text(verdict.variant)}"


def variant_text(variant: dict[str, Any]) -> str:
    return f" [{', '.join(f'{k}={short(v)}' for k, v in variant.items())}]" if variant else ""


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def verdict_row(verdict: Verdict) -> list[str]:
    return [
        figure_name(verdict),
        verdict.expectation.text,
        precise(verdict.obtained),
        spread(verdict.sd, verdict.n),
        "ok" if verdict.holds else "OUTSIDE",
        verdict.expectation.note,
    ]


# Figures shown though nothing was expected of them; all of them are in results.json.
SHOWN = (
    *("accuracy", "mse", "pair_error", "outliers", "objective", "duality_gap", "n_sv"),
    *("iterations", "all", "auc"),
)


def other_figures(result: ExperimentResult) -> list[str]:
    """The figures of SHOWN that the table of expectations does not show for every variant."""
    expected = {verdict.expectation.figure for verdict in result.verdicts}
    if len(result.figures) > 1:
        expected = set()
    names = dict.fromkeys(name for group in result.figures for name in group)
    return [
        name
        for name in names
        if name.partition(".")[2] in SHOWN
        and name not in expected
        and name.replace(".accuracy", ".error") not in expected
    ]


def variant_rows(result: ExperimentResult, names: list[str]) -> list[list[str]]:
    """A row for each combination of varied values: the values, then mean and spread."""
    rows = []
    for variant, group in zip(result.plan.variants(), result.figures, strict=True):
        cells = [short(value) for value in variant.values()]
        for name in names:
            item = group.get(name)
            sd = f" ± {item.sd:.2g}" if item is not None and item.sd is not None else ""
            cells.append("-" if item is None else f"{item.mean:.5g}{sd}")
        rows.append(cells)
    return rows


def precise(value: float | None) -> str:
    return "-" if value is None else f"{value:.7g}"


def spread_of(summary: Summary) -> str:
    return spread(summary.sd, len(summary.values))


def spread(sd: float | None, n: int) -> str:
    return "-" if sd is None else f"± {sd:.2g} ({n})"


# ---- pictures and progress ------------------------------------------------------------------


def draw_pictures(runner: Runner, result: ExperimentResult) -> None:
    """Curves or bars, ROC curves, and the decision function of a first model of two features."""
    from kfu.cli import plot
    from kfu.experiment import pictures, roc_picture

    figure_class = pictures.figure_class()
    if not result.plan.pictures or figure_class is None:
        return
    folder = runner.output / result.plan.name
    drawn = [pictures.draw_figures(result, folder), roc_picture.save_roc(result, folder)]
    if result.model_file is not None:
        model = Model.load(str(result.model_file))
        if model.n_features == 2 and not model.is_precomputed:
            rows = runner.first_rows(result.plan).train
            picture = plot.draw(figure_class, model, rows, (0, 1), runner.threads, 0)
            folder.mkdir(parents=True, exist_ok=True)
            drawn.append(pictures.save(picture, folder / "decision.png"))
    for file in drawn:
        if file is not None:
            console.note(f"{file}: written")


class RunProgress:
    """A line on a terminal that says which part is being computed; nothing elsewhere."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.status: Any = None

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.pause()

    def pause(self) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None

    def __call__(self, plan: Experiment, done: int, total: int) -> None:
        if not self.enabled:
            return
        if self.status is None:
            from rich.console import Console

            self.status = Console(stderr=True).status("")
            self.status.start()
        self.status.update(f"{plan.name}: part {min(done + 1, total)} of {total}")
