"""What a command says beside its results: log lines, warnings and progress, all on stderr."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kfu.solvers import Progress

LOGGER = logging.getLogger("kfu")
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
QUIET = "kfu.quiet"


class StderrHandler(logging.Handler):
    """Writes ``kfu: [warning: ]message`` to whatever sys.stderr is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "kfu: warning: " if record.levelno >= logging.WARNING else "kfu: "
        click.echo(prefix + record.getMessage(), err=True)


def configure(level: int) -> None:
    LOGGER.handlers = [StderrHandler()]
    LOGGER.propagate = False
    LOGGER.setLevel(level)


def set_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[QUIET] = value
    if value:
        configure(logging.ERROR)


def set_verbose(ctx: click.Context, param: click.Parameter, value: int) -> None:
    if not ctx.meta.get(QUIET):
        configure(LEVELS[min(value, len(LEVELS) - 1)])


def is_quiet() -> bool:
    return bool(click.get_current_context().meta.get(QUIET))


def warn(message: str) -> None:
    LOGGER.warning("%s", message)


@contextmanager
def library_warnings() -> Iterator[None]:
    """Within it, what the library warns of is said as the command's own warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        warn(str(warning.message))


def note(message: str) -> None:
    """Shown with -v."""
    LOGGER.info("%s", message)


class TrainingProgress:
    """The progress callback of training: a line on a terminal, nothing elsewhere.

    The bar measures how far the gap has fallen between its first value and the tolerance, on a
    log scale. Use as a context manager; calling it never asks the solver to stop.
    """

    INTERVAL_SECONDS = 0.1

    def __init__(self, tolerance: float, enabled: bool) -> None:
        self.tolerance = tolerance
        self.first_gap: float | None = None
        self.last_shown = 0.0
        self.progress: Any = None
        self.task: Any = None
        self.stage = ""
        if enabled and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Display

            self.progress = Display(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[detail]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> TrainingProgress:
        if self.progress is not None:
            self.progress.start()
            self.task = self.progress.add_task("training", total=1.0, detail="")
        return self

    def __exit__(self, *exception: object) -> None:
        if self.progress is not None:
            self.progress.stop()

    def __call__(self, state: Progress) -> bool:
        now = time.monotonic()
        if self.progress is None or now - self.last_shown < self.INTERVAL_SECONDS:
            return False
        self.last_shown = now
        if state.stage != self.stage:
            self.stage, self.first_gap = state.stage, None
        if self.first_gap is None:
            self.first_gap = max(state.gap, self.tolerance)
        self.progress.update(
            self.task,
            description=f"training {state.stage}".strip(),
            completed=gap_fraction(self.first_gap, state.gap, self.tolerance),
            detail=f"round {state.round}  gap {state.gap:.3g}  {state.n_sv} SVs",
        )
        return False


class StageProgress:
    """The progress of an engine's tasks: a bar on a terminal, a line for each with -v.

    Called with the stage (folds, machines, sums ...), how many of its tasks are done, and of how
    many.
    """

    def __init__(self, enabled: bool) -> None:
        self.display: Any = None
        self.bars: dict[str, Any] = {}
        if enabled and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self.display = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                console=Console(stderr=True),
                transient=True,
            )

    def __enter__(self) -> StageProgress:
        if self.display is not None:
            self.display.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.display is not None:
            self.display.stop()

    def __call__(self, stage: str, done: int, total: int) -> None:
        note(f"{stage}: {done} of {total}")
        if self.display is None:
            return
        if stage not in self.bars:
            self.bars[stage] = self.display.add_task(stage, total=total)
        self.display.update(self.bars[stage], completed=done)


def gap_fraction(first: float, gap: float, tolerance: float) -> float:
    """Share of the way from ``first`` to ``tolerance`` on a log scale, in [0, 1]."""
    if gap <= tolerance or first <= tolerance:
        return 1.0
    return min(1.0, max(0.0, math.log(first / gap) / math.log(first / tolerance)))
