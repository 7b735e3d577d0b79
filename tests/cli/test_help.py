"""Every command and option explains itself, and the reference page is what the help says."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from kfu.cli.main import COMMANDS, main
from kfu.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
# One spelling everywhere: short and long form belong together in every command that has them.
SPELLINGS = {
    "-c": "--cost",
    "-g": "--gamma",
    "-d": "--degree",
    "-r": "--coef0",
    "-e": "--tolerance",
    "-w": "--class-weight",
    "-t": "--threads",
    "-q": "--quiet",
    "-v": "--verbose",
    "-m": "--machine",
}


def command_of(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_usage_examples_and_options(name, kfu):
    result = kfu(name, "--help")
    assert result.exit_code == 0, result.stderr
    assert f"Usage: kfu {name}" in result.stdout
    assert "Examples:" in result.stdout or "Example:" in result.stdout
    assert f"kfu {name} " in result.stdout.split("Example")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_one_spelling(name):
    for parameter in command_of(name).params:
        if not isinstance(parameter, click.Option):
            continue
        assert parameter.help, f"{name} {parameter.opts}"
        assert parameter.help.rstrip()[-1] in ".])", f"{name} {parameter.opts}: {parameter.help}"
        for short, long in SPELLINGS.items():
            if short in parameter.opts or long in parameter.opts:
                assert {short, long} <= set(parameter.opts), f"{name} {parameter.opts}"


def test_train_offers_what_the_registries_hold(kfu):
    from kfu.kernels import KERNELS
    from kfu.machines import MACHINES
    from kfu.solvers import SOLVERS

    text = "".join(kfu("train", "--help").stdout.split())
    for registry in (KERNELS, MACHINES, SOLVERS):
        for name in registry:
            assert name in text


def test_reference_page_is_up_to_date():
    assert PAGE.exists(), "write it with: python -m kfu.cli.reference"
    message = "docs/commands.md is stale; write it with: python -m kfu.cli.reference"
    assert PAGE.read_text(encoding="utf-8") == reference(), message
