"""The command group: start-up, unknown commands, exit codes, and errors as messages."""

from __future__ import annotations

import resource
import subprocess
import sys

import click
import pytest
from cli_toys import ENVIRONMENT

from kfu._version import __version__
from kfu.cli import main as main_module
from kfu.cli.main import COMMANDS, conclude
from kfu.errors import DataError, SettingsError


def test_version(kfu):
    result = kfu("--version")
    assert (result.exit_code, result.stdout) == (0, f"kfu {__version__}\n")


def test_help_lists_every_command(kfu):
    result = kfu("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_start_up_is_quick_and_loads_no_numpy(flag):
    code = (
        "import sys; sys.argv = ['kfu', sys.argv[1]]\n"
        "from kfu.cli.main import main\n"
        "try:\n    main()\n"
        "finally:\n    assert 'numpy' not in sys.modules and 'yaml' not in sys.modules\n"
    )
    seconds = []  # of the processor, so that a busy machine does not count
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, flag], check=True, capture_output=True, env=ENVIRONMENT
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 0.3


def test_unknown_command_names_the_nearest(kfu):
    result = kfu("trian", "x")
    assert result.exit_code == 2
    assert "no command 'trian' (did you mean 'train'?)" in result.stderr
    assert result.stdout == ""


def test_unknown_option_is_usage(kfu, toy):
    result = kfu("train", toy, "--gama", "1")
    assert result.exit_code == 2
    assert "--gama" in result.stderr
    assert "--gamma" in result.stderr


def test_no_arguments_is_usage(kfu_process):
    result = kfu_process()
    assert result.returncode == 2
    assert "Usage: kfu" in result.stderr
    result = kfu_process("train")
    assert result.returncode == 2
    assert "Missing argument 'DATA'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (DataError("a.svm", 3, "found this", "do that"), 1, "a.svm:3: found this; do that"),
        (SettingsError("no"), 2, "no"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
        (PermissionError(13, "Permission denied", "x.kfu"), 1, "x.kfu: Permission denied"),
        (click.UsageError("bad"), 2, "bad"),
        (ZeroDivisionError("oops"), 1, "internal error: ZeroDivisionError: oops"),
    ],
)
def test_each_error_is_one_message_and_a_code(error, code, text, capsys):
    assert conclude(error) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("kfu: error: ")
    assert text in printed.err
    assert printed.err.count("\n") == 1


def test_debug_prints_the_traceback(kfu_process):
    quiet = kfu_process("info", "missing.svm")
    assert "Traceback" not in quiet.stderr
    loud = kfu_process("info", "missing.svm", env={"KFU_DEBUG": "1"})
    assert "Traceback" in loud.stderr
    assert loud.returncode == quiet.returncode == 1


@pytest.mark.parametrize("flags", ["--output labels", "--output both -q"])
def test_broken_pipe_is_quiet(flags, toy, toy_model):
    big = toy.with_name("big.svm")
    big.write_text(toy.read_text() * 500)
    command = f"{sys.executable} -m kfu.cli.main predict {toy_model} {big} {flags}"
    line = f"{command} | head -n 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
    )
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    assert result.returncode == 141


def test_summaries_match_the_commands(kfu):
    context = click.Context(main_module.main)
    for name, summary in main_module.SUMMARIES.items():
        command = main_module.main.get_command(context, name)
        assert command is not None
        assert command.help is not None
        assert command.help.splitlines()[0] == summary
    assert set(main_module.SUMMARIES) == set(COMMANDS)


@pytest.mark.parametrize("module", ["click", "numpy"])
def test_interrupt_during_imports_is_quiet(module, toy):
    """Ctrl-C that arrives while a module is being found."""
    script = f"""
import os, signal, sys
from kfu.cli.entry import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["kfu", "train", {str(toy)!r}]
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT, timeout=60
    )
    assert result.returncode == 130
    assert result.stderr == "kfu: error: interrupted\n"


def test_interrupts_are_exceptions_again_when_a_command_runs(toy, tmp_path):
    script = f"""
import signal, sys
from kfu.cli.entry import main

sys.argv = ["kfu", "train", {str(toy)!r}, "-q"]
try:
    main()
finally:
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")
