"""Write docs/commands.md from the commands' own help: ``python -m kfu.cli.reference``.

The text is that of ``kfu COMMAND --help`` at a fixed width, so that it does not depend on the
terminal; a test compares the file with what this module would write.
"""

from __future__ import annotations

from pathlib import Path

import click

from kfu.cli.main import COMMANDS, SUMMARIES, main

WIDTH = 96
HEAD = """# Commands

The help of each command, as `kfu COMMAND --help` prints it. This page is written by
`python -m kfu.cli.reference`.
"""


def help_of(command: click.Command, path: str) -> str:
    """The --help text of ``command`` called as ``path``, at WIDTH columns."""
    context = click.Context(
        command,
        info_name=path,
        max_content_width=WIDTH,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    text = command.get_help(context)
    return "\n".join(line.rstrip() for line in text.splitlines())


def reference() -> str:
    """The whole page."""
    context = click.Context(main, info_name="kfu")
    parts = [HEAD, f"```text\n{help_of(main, 'kfu')}\n```\n"]
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        parts.append(f"## kfu {name}\n\n{SUMMARIES[name]}\n")
        parts.append(f"```text\n{help_of(command, f'kfu {name}')}\n```\n")
    return "\n".join(parts)


def write(path: Path) -> None:
    path.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "docs" / "commands.md"
    write(target)
    click.echo(str(target))
