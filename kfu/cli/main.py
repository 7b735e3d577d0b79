"""``kfu``: the command group, and the one place where an exception becomes a message.

Commands are imported when they are asked for, so that ``kfu --help`` and ``kfu --version`` load
neither NumPy nor the compiled modules. A command returns its exit code (``None`` means 0):

    0    done
    1    bad data or model; the message says ``file:line: what was found; what to do``
    2    usage: an option, a value or a combination that cannot be used
    3    training stopped before convergence; the model was written and is marked so
    130  interrupted; ``train`` still writes the best model so far
    141  the reader of stdout went away (nothing is said)

With ``KFU_DEBUG=1`` in the environment every error also prints its traceback.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import click

from kfu._version import __version__
from kfu.cli.entry import expect_interrupt
from kfu.errors import KfuError

# Command -> "module:function". Explicit, so that a search finds it.
COMMANDS: dict[str, str] = {
    "train": "kfu.cli.train:train",
    "predict": "kfu.cli.predict:predict",
    "path": "kfu.cli.path:path",
    "scale": "kfu.cli.scale:scale",
    "info": "kfu.cli.info:info",
    "convert": "kfu.cli.convert:convert",
    "plot": "kfu.cli.plot:plot",
    "roc": "kfu.cli.roc:roc",
    "cv": "kfu.cli.cv:cv",
    "loo": "kfu.cli.loo:loo",
    "run": "kfu.cli.run:run",
}

# What `kfu --help` says of each, without importing it; tests hold the two together.
SUMMARIES: dict[str, str] = {
    "train": "Train a machine on DATA and write its model.",
    "predict": "Predict the rows of DATA with MODEL.",
    "path": "Follow the whole path of a machine on DATA and write it.",
    "scale": "Scale the features of DATA.",
    "info": "Describe a data file, a model or a path.",
    "convert": "Convert a model or a data file to another format.",
    "plot": "Draw the decision function of MODEL over two features.",
    "cv": "Cross-validate a machine on DATA.",
    "loo": "Leave-one-out error of a machine on DATA, its estimates and its bounds.",
    "roc": "Draw and judge ROC curves of models on DATA.",
    "run": "Execute the experiment that CONFIG describes.",
}

EXIT_USAGE = 2
EXIT_NOT_CONVERGED = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known word closest to ``word``, or an empty string."""
    match = get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return f" (did you mean '{match[0]}'?)" if match else ""


class KfuGroup(click.Group):
    """A group that imports its commands lazily and ends the process with kfu's exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        target = COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, function = target.split(":")
        command: click.Command = getattr(importlib.import_module(module), function)
        expect_interrupt()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise click.UsageError(
                f"no command '{name}'{nearest(name, COMMANDS)}; commands: {', '.join(COMMANDS)}",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in COMMANDS])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OSError as error:  # click would turn a broken pipe into exit code 1
            if error.errno == errno.EPIPE:
                raise click.exceptions.Exit(leave_pipe()) from None
            raise

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> NoReturn:
        """Run and exit; see the head of this file for the codes."""
        extra["standalone_mode"] = False
        extra.setdefault("prog_name", "kfu")
        code = 0
        try:
            code = super().main(args, *more, **extra) or 0
            sys.stdout.flush()
        except BaseException as error:  # every exception ends here, as a code and a message
            code = conclude(error)
        sys.exit(code)


def conclude(error: BaseException) -> int:
    """Print the one message that ``error`` deserves, and return the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if os.environ.get("KFU_DEBUG", "0") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        return leave_pipe()
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return complain("interrupted", EXIT_INTERRUPTED)
    if isinstance(error, KfuError):
        return complain(str(error), error.exit_code)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    if isinstance(error, click.ClickException):
        hint = usage_hint(error)
        return complain(without_full_stop(error.format_message()) + hint, error.exit_code)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return complain(
            f"out of memory{detail}; lower --cache-mib, use --precision float32, "
            "or train on fewer rows",
            1,
        )
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fspath(error.filename)}: " if error.filename else ""
        return complain(f"{where}{error.strerror}; check the path and its permissions", 1)
    return complain(
        f"internal error: {type(error).__name__}: {error}; KFU_DEBUG=1 prints the traceback", 1
    )


def leave_pipe() -> int:
    """The reader went away (``kfu ... | head``): say nothing, as a process that SIGPIPE ends.

    What is still buffered goes nowhere, so that the interpreter does not complain at exit.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_BROKEN_PIPE


def usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"; see '{context.command_path} --help'" if context is not None else ""


def without_full_stop(message: str) -> str:
    """Click writes sentences; kfu writes clauses that the remedy follows."""
    return message.strip().rstrip(".?")


def complain(message: str, code: int) -> int:
    click.echo(f"kfu: error: {message}", err=True)
    return code


@click.command(
    cls=KfuGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Results go to stdout, progress and messages to stderr. Exit codes: 0 done, "
    "1 bad data or model, 2 usage, 3 stopped before convergence (the model is still written), "
    "130 interrupted.",
)
@click.version_option(__version__, "--version", prog_name="kfu", message="%(prog)s %(version)s")
def main() -> None:
    """Kernel machines from the shell: exact, certified and fast.

    DATA is a path or - (stdin): libsvm/SVMlight text, CSV/TSV, .npy or .npz, each possibly .gz.
    """


if __name__ == "__main__":
    main()
