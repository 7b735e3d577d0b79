"""kfu cv with several values of an option, and --engine of cv and train."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_toys import libsvm_text

from kfu.model import Model


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster with one worker."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """90 rows of four classes."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 90)
    path = tmp_path / "four.svm"
    path.write_text(libsvm_text(rng.normal(size=(90, 3)) + 1.5 * rng.normal(size=(4, 3))[y], y))
    return path


def cv(kfu, *args):
    result = kfu("cv", *args, "--report", "cv.json")
    assert result.exit_code == 0, result.stderr
    return json.loads(Path("cv.json").read_text()), result


def test_every_combination_is_what_it_is_alone(kfu, toy):
    report, result = cv(kfu, toy, "-c", "0.1,5", "-g", "0.5,auto", "-f", 4)
    assert report["score"] == "error"
    tried = [(entry["cost"], entry["gamma"]) for entry in report["grid"]]
    assert tried == [(0.1, 0.5), (0.1, "auto"), (5.0, 0.5), (5.0, "auto")]
    for (cost, gamma), entry in zip(tried, report["grid"], strict=True):
        alone, _ = cv(kfu, toy, "-c", cost, "-g", gamma, "-f", 4)
        assert "grid" not in alone
        assert entry["error"] == alone["error"]
        assert entry["error_std"] == alone["error_std"]
        assert entry["folds"] == [fold["error"] for fold in alone["folds"]]
    errors = [entry["error"] for entry in report["grid"]]
    best = int(np.argmin(errors))
    assert report["best"] == {"cost": tried[best][0], "gamma": tried[best][1]}
    assert [entry["is_best"] for entry in report["grid"]] == [k == best for k in range(4)]
    assert report["error"] == min(errors)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["cost", "gamma", "error", "std"]
    assert [line.endswith("best") for line in lines[1:5]] == [k == best for k in range(4)]


def test_the_rows_written_are_of_the_best(kfu, toy):
    report, _ = cv(kfu, toy, "-c", "0.001,5", "-f", 4, "-o", "best.txt")
    best = report["best"]["cost"]
    cv(kfu, toy, "-c", best, "-f", 4, "-o", "alone.txt")
    assert Path("best.txt").read_text() == Path("alone.txt").read_text()


def test_regressions_and_options_of_a_machine(kfu, toy):
    report, result = cv(kfu, toy, "-m", "rls", "--ridge", "0.1,10", "--by", "k-fold", "-f", 3)
    assert [entry["ridge"] for entry in report["grid"]] == [0.1, 10.0]
    assert report["score"] == "mse"
    assert report["mse"] == min(entry["mse"] for entry in report["grid"])
    assert "best" in result.stdout


def test_lists_in_a_config_file(kfu, toy):
    Path("tried.yaml").write_text("cost: [0.1, 5]\ngamma: 0.5\nfolds: 4\n")
    report, _ = cv(kfu, toy, "--config", "tried.yaml")
    assert [entry["cost"] for entry in report["grid"]] == [0.1, 5.0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-c", "1,,2"], "empty place"),
        (["-c", "1,x"], "'x' is not a number"),
        (["-c", "1,-1"], "-1 is out of range"),
        (["-c", "1,1.0"], "names a value twice"),
        (["-c", "1,2", "--against", "other.yaml"], "--against compares single learners"),
        (["-m", "one-class", "--nu", "0.1,0.2"], "no score to choose by"),
        (["-m", "rlsc", "-c", "1,2"], "has no cost"),
        (["--scheduler", "tcp://x:1"], "--scheduler is for --engine dask"),
        (["--workers", "2"], "--workers is for --engine"),
        (["--engine", "local", "--max-seconds", "5"], "does not go with --engine"),
    ],
)
def test_refused(args, words, kfu, toy):
    Path("other.yaml").write_text("cost: 2\n")
    result = kfu("cv", toy, *args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_engines_give_the_same_table(kfu, toy, scheduler):
    args = [toy, "-c", "0.1,5", "-f", 3, "-o", "rows.txt"]
    local, _ = cv(kfu, *args, "--engine", "local", "--workers", 2)
    rows = Path("rows.txt").read_text()
    there, result = cv(kfu, *args, "-v", "--engine", "dask", "--scheduler", scheduler)
    assert there["grid"] == local["grid"]
    assert Path("rows.txt").read_text() == rows
    assert "folds: 6 of 6" in result.stderr


def test_machines_of_a_code_on_workers(kfu, four, scheduler):
    args = ["train", four, "-g", 0.3, "--multiclass", "ava"]
    assert kfu(*args, "-o", "here.kfu").exit_code == 0
    result = kfu(*args, "-v", "-o", "there.kfu", "--engine", "dask", "--scheduler", scheduler)
    assert result.exit_code == 0, result.stderr
    assert "machines: 6 of 6" in result.stderr
    here, there = Model.load("here.kfu"), Model.load("there.kfu")
    np.testing.assert_allclose(there.coef, here.coef, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(there.bias, here.bias, rtol=1e-8)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-m", "svr"], "machines of a multiclass code, not for svr"),
        (["--multiclass", "crammer-singer"], "one problem; leave --engine out"),
        (["--checkpoint", "c"], "--checkpoint does not go with --engine"),
        (["--max-iterations", 9], "--max-iterations does not go with --engine"),
    ],
)
def test_training_refused(args, words, kfu, four):
    result = kfu("train", four, "--engine", "local", *args)
    assert result.exit_code == 2
    assert words in result.stderr
