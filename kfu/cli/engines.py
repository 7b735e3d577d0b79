"""``--engine``: the work of a command as tasks, on threads of this process or a dask cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import click

from kfu.cli import console
from kfu.cli.parameters import COUNT, Name
from kfu.errors import SettingsError

ENGINE_NAMES = ("local", "dask")


def engine_option(help: str) -> Callable[[Any], Any]:
    return click.option(
        "--engine", type=Name("engine", list(ENGINE_NAMES)), default=None, help=help
    )


scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Address of a dask scheduler.  [default: a cluster of processes on this machine]",
)
workers = click.option(
    "--workers", type=COUNT, default=0, show_default=True, help="Workers of --engine; 0: all cores."
)


def check_engine(opts: dict[str, Any]) -> None:
    """SettingsError for a scheduler or workers that no engine asks for."""
    if opts["scheduler"] is not None and opts["engine"] != "dask":
        raise SettingsError("--scheduler is for --engine dask")
    if opts["workers"] and opts["engine"] is None:
        raise SettingsError("--workers is for --engine; give --engine local or dask")


def n_workers(opts: dict[str, Any]) -> int:
    """The workers asked for; the threads of this process are those of --threads."""
    return int(opts["workers"] or (opts["threads"] if opts["engine"] == "local" else 0))


@contextlib.contextmanager
def opened(opts: dict[str, Any]) -> Iterator[Any]:
    """The engine of these options, with its progress on stderr; None without --engine."""
    if opts["engine"] is None:
        yield None
        return
    from kfu.engine import ENGINES

    with console.StageProgress(enabled=not console.is_quiet()) as shown:
        make = ENGINES[opts["engine"]]
        with make(n_workers(opts), shown, opts["scheduler"]) as engine:
            yield engine
