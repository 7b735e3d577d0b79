"""The Makefile: the targets promised, and a `clean` that removes what was built alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("demo", "test", "lint", "asan", "bench", "docs", "wheel", "clean", "distclean")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_alone_lists_the_targets() -> None:
    listed = re.findall(r"^  make (\w+)", make(), re.MULTILINE)
    assert set(TARGETS) <= set(listed)


def test_clean_removes_what_was_built_and_no_source(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    built = ["build/core/a.o", "dist/kfu.whl", "kfu.egg-info/PKG-INFO", "kfu/_gram.so"]
    kept = ["csrc/kfu/a.cpp", "kfu/_gram.pyx", "kfu/a.cpp", "datasets/a.svm", ".venv/bin/python"]
    kept += ["tests/csrc/test_a.cpp", "docs/a.md", "benchmarks/a.py"]
    for name in built + kept:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    make("clean", folder=tmp_path)
    assert [name for name in built if (tmp_path / name).exists()] == []
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    make("distclean", folder=tmp_path)
    assert not (tmp_path / ".venv").exists()
    assert (tmp_path / "csrc/kfu/a.cpp").exists()


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(
        ["make", "venv", "PYTHON=python-that-is-not-there"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "no 'python-that-is-not-there' on the PATH" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_check_script_is_executable_and_runs_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^make test$", script.read_text(encoding="utf-8"), re.MULTILINE)
