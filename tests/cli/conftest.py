"""A ``kfu`` runner, in process for speed and as a process for pipes, signals and exit codes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_toys import COMMAND, ENVIRONMENT, libsvm_text, two_classes
from click.testing import CliRunner, Result

from kfu.cli.main import main

Runner = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test runs in its own folder, so that what is left behind can be seen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KFU_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def kfu() -> Callable[..., Result]:
    """``kfu("train", path, ...)`` in this process; the Result has exit_code, stdout, stderr."""

    def run(*args: object) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], prog_name="kfu")

    return run


@pytest.fixture
def kfu_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same as a process of its own: ``kfu_process("train", "-", input=text)``."""

    def run(
        *args: object, input: str | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *(str(arg) for arg in args)],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=120,
            env={**ENVIRONMENT, **(env or {})},
        )

    return run


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """80 rows, 3 features, labels -1 and 1, as libsvm text."""
    path = tmp_path / "toy.svm"
    path.write_text(libsvm_text(*two_classes()))
    return path


@pytest.fixture
def toy_test(tmp_path: Path) -> Path:
    path = tmp_path / "toy.t"
    path.write_text(libsvm_text(*two_classes(n=40, seed=2)))
    return path


@pytest.fixture
def toy_model(toy: Path, kfu: Runner) -> Path:
    path = toy.with_name("toy-fixture.kfu")
    result = kfu("train", toy, "-o", path, "-q", "-g", 0.5)
    assert result.exit_code == 0, result.stderr
    return path


@pytest.fixture
def three_classes(tmp_path: Path) -> Path:
    """Three classes with text labels."""
    rng = np.random.default_rng(3)
    names = np.array(["ash", "birch", "cedar"])[np.arange(90) % 3]
    centres = {"ash": (0, 0), "birch": (3, 0), "cedar": (0, 3)}
    X = np.array([centres[name] for name in names]) + rng.normal(size=(90, 2))
    path = tmp_path / "trees.svm"
    path.write_text(libsvm_text(X, names))
    return path
