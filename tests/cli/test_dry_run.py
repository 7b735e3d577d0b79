"""``kfu train --dry-run``: a forecast, and no model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kfu.least_squares.memory as memory
from kfu.machines import MACHINES

QUICK = {"kpm": ["--dims", "3"], "rank": []}


@pytest.fixture
def numbers(tmp_path):
    """1200 rows of 6 features."""
    X = np.random.default_rng(0).normal(size=(1200, 6))
    np.savez(tmp_path / "numbers.npz", X=X, y=np.sin(X[:, 0]))
    return tmp_path / "numbers.npz"


def forecast_of(kfu, *args):
    result = kfu("train", *args, "--dry-run", "--report", "dry.json")
    assert result.exit_code == 0, result.stderr
    with open("dry.json") as stream:
        return json.load(stream), result


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "rank"])
def test_every_machine(machine, kfu, toy, tmp_path):
    found, result = forecast_of(kfu, toy, "-m", machine, *QUICK.get(machine, []))
    assert found["dry_run"] is True
    assert found["machine"] == machine
    assert found["predicted_peak_rss_mib"] > 10
    assert "no model is written" in result.stdout
    assert not list(tmp_path.glob("*.kfu"))
    if machine in ("rls", "rlsc"):
        assert found["predicted_seconds"] > 0
        assert set(found["predicted_phases"]) > {"read"}
        assert found["flops"]
    else:
        assert found["predicted_seconds"] is None
        assert found["comparable_seconds"]["all kernel values once"] > 0
        assert "not predicted" in result.stdout


def test_flops_and_method_of_the_full_kernel(kfu, numbers):
    found, _ = forecast_of(kfu, numbers, "-m", "rls", "--ridge", 1)
    assert found["method"] == "cholesky"
    assert found["flops"]["factor"] == pytest.approx(1200**3 / 3)
    assert found["flops"]["gram"] == pytest.approx(1200**2 * 6)
    assert found["rates_gflops"]["factor"] > 0
    assert found["is_certain"]


def test_peak_memory_within_30_percent(kfu_process, numbers):
    args = ["train", numbers, "-m", "rls", "--ridge", 1, "-q", "--report"]
    assert kfu_process(*args, "dry.json", "--dry-run").returncode == 0
    assert kfu_process(*args, "real.json", "-o", "m.kfu").returncode == 0
    with open("dry.json") as dry, open("real.json") as real:
        ratio = json.load(dry)["predicted_peak_rss_mib"] / json.load(real)["peak_rss_mib"]
    assert 0.7 < ratio < 1.3


def test_report_on_stdout_is_all_there_is(kfu, toy):
    result = kfu("train", toy, "-m", "rlsc", "--ridge", 1, "--dry-run", "--report", "-", "-q")
    assert json.loads(result.stdout)["method"] == "cholesky"


def test_data_from_stdin_need_no_name(kfu_process, toy):
    result = kfu_process("train", "-", "-m", "rlsc", "--dry-run", "-q", input=toy.read_text())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_memory_that_is_not_there(kfu, numbers, monkeypatch):
    monkeypatch.setattr(memory, "_meminfo", lambda: 2**20)
    found, result = forecast_of(kfu, numbers, "-m", "rls", "--ridge", 1, "--method", "cholesky")
    assert found["fits"] is False
    assert "--approximation rectangle" in result.stderr


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["-m", "rls", "--ridge", "1", "--lambda", "1"], 2, "both set the ridge"),
        (["-m", "rls", "--engine", "local"], 2, "leave --engine out"),
        (["-m", "rls", "--approximation", "rectangle", "--centres", "1201"], 2, "1201 centres"),
        (["-m", "rls", "--workers", "2"], 2, "--workers is for --engine"),
        (["-m", "svc"], 1, "like a regression target"),
    ],
)
def test_refused_as_training_is(args, code, words, kfu, numbers, in_empty_folder):
    before = sorted(in_empty_folder.iterdir())
    result = kfu("train", numbers, *args, "--dry-run", "--report", "dry.json")
    assert result.exit_code == code
    assert words in result.stderr
    assert sorted(in_empty_folder.iterdir()) == before
