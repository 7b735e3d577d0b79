"""Signals: kill -9 loses at most one checkpoint interval, Ctrl-C and SIGTERM leave a model."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from cli_toys import COMMAND, ENVIRONMENT, files_in, libsvm_text, two_classes

from kfu.model import Model

# Slow on purpose: two points a round, and a tolerance that takes many rounds.
SLOW = ["--solver", "smo", "-c", "200", "-g", "0.5", "-e", "1e-4", "-t", "1", "--cache-mib", "1"]


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """Overlapping classes: thousands of rounds."""
    path = tmp_path / "hard.svm"
    path.write_text(libsvm_text(*two_classes(n=900, d=4, shift=0.6)))
    return path


def started(*args: object) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, *(str(arg) for arg in args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def wait_for(condition, process: subprocess.Popen, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"ended too early: {process.communicate()}"
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def test_kill_and_resume(hard, kfu, tmp_path):
    flags = [*SLOW, "--report", "r.json", "--checkpoint", "c.npz", "--checkpoint-seconds", "0.2"]
    process = started("train", hard, *flags)
    saved = Path("c.npz")
    try:
        wait_for(saved.exists, process)
        first = saved.stat().st_mtime_ns
        wait_for(lambda: saved.stat().st_mtime_ns != first, process)
        time.sleep(1.0)
        age = time.time() - saved.stat().st_mtime
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert age < 0.8  # of one second: the state goes on being written, one interval old at most
    assert not Path("hard.kfu").exists()
    with np.load(saved) as archive:
        beta = archive["machine_0"]
    assert np.count_nonzero(beta) > 0
    assert abs(beta.sum()) < 1e-6  # a feasible point: work that is not lost

    resumed = kfu("train", hard, *flags)
    assert resumed.exit_code == 0, resumed.stderr
    with open("r.json") as stream:
        warm = json.load(stream)
    assert not saved.exists()  # removed when training has converged
    assert files_in(tmp_path) <= {"hard.svm", "hard.kfu", "r.json"} | leftovers(tmp_path)

    assert kfu("train", hard, *SLOW, "--report", "cold.json", "-q").exit_code == 0
    with open("cold.json") as stream:
        cold = json.load(stream)
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-6)
    assert warm["iterations"] < cold["iterations"]


def leftovers(folder: Path) -> set[str]:
    """A temporary file of the killed process itself may stay: nobody was left to remove it."""
    return {name for name in files_in(folder) if name.startswith(".c.npz.")}


def test_checkpoint_of_another_training_is_refused(hard, toy, kfu):
    result = kfu("train", hard, "--max-iterations", 50, "--checkpoint", "c.npz", "-q")
    assert result.exit_code == 3
    assert Path("c.npz").exists()
    result = kfu("train", toy, "--checkpoint", "c.npz")
    assert result.exit_code == 1
    assert "c.npz: a checkpoint of another training" in result.stderr
    assert not Path("toy.kfu").exists()


def test_damaged_checkpoint_is_refused(toy, kfu):
    Path("c.npz").write_bytes(b"garbage")
    result = kfu("train", toy, "--checkpoint", "c.npz")
    assert result.exit_code == 1
    assert "c.npz: not a kfu checkpoint; remove it" in result.stderr
    assert "pickle" not in result.stderr
    assert Path("c.npz").read_bytes() == b"garbage"


@pytest.mark.parametrize("name", ["array.npy", "other.npz", "empty.npz"])
def test_foreign_numpy_file_is_no_checkpoint(name, toy, kfu):
    if name == "array.npy":
        np.save(name, np.arange(3.0))
    elif name == "other.npz":
        np.savez(name, fingerprint=np.array("3"), machine_0=np.zeros(80))
    else:
        Path(name).touch()
    before = Path(name).read_bytes()
    result = kfu("train", toy, "--checkpoint", name)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"kfu: error: {name}: not a kfu checkpoint; ")
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_interrupt_writes_the_best_model(number, hard, kfu):
    process = started(
        "train", hard, *SLOW, "--report", "r.json", "--checkpoint", "c.npz",
        "--checkpoint-seconds", "0.05",
    )  # fmt: skip
    wait_for(Path("c.npz").exists, process)  # training has begun
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted before convergence; the model was written and is marked so" in stderr
    assert "Traceback" not in stderr
    model = Model.load("hard.kfu")
    assert model.info["status"] == "interrupted"
    assert model.n_sv > 0
    with open("r.json") as stream:
        assert json.load(stream)["status"] == "interrupted"
    assert kfu("predict", "hard.kfu", hard, "-q").exit_code == 0


def test_interrupt_while_reading_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "train", "-", "-o", "m.kfu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    process.stdin.write("1 1:1\n" * 200_000)
    process.stdin.flush()  # returns when more is read than a pipe holds: reading has begun
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    assert process.stderr is not None
    stderr = process.stderr.read()
    process.stdin.close()
    assert process.returncode == 130
    assert stderr.strip() == "kfu: error: interrupted"
    assert files_in(tmp_path) == set()
