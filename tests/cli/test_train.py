"""kfu train: files, summary, report, exit codes, and the options that change the problem."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess

import numpy as np
import pytest
from cli_toys import COMMAND, ENVIRONMENT, files_in, libsvm_text, two_classes

from kfu.cli.console import gap_fraction
from kfu.cli.train import default_model_path
from kfu.model import Model
from kfu.report import TRAIN_KEYS

RESULT_KEYS = [
    *("status", "machine", "kernel", "n", "n_features", "n_classes", "n_sv", "n_usv"),
    *("objective", "duality_gap", "kkt_gap", "kkt_violation", "bias", "bias_std", "iterations"),
    *("kernel_evaluations", "cache_hit_rate", "seconds", "peak_rss_mib", "warnings"),
]


def trained(kfu, *args) -> dict:
    """The report of a training that must succeed."""
    result = kfu("train", *args, "--report", "-", "-o", "m.kfu")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("a1a.tr.gz", "a1a.kfu"),
        ("/data/heart.svm", "heart.kfu"),
        ("wine.csv", "wine.kfu"),
        ("splice", "splice.kfu"),
        ("splice.v2", "splice.v2.kfu"),
        (".svm", ".svm.kfu"),
    ],
)
def test_default_model_path(data, model):
    assert default_model_path(data) == model


def test_writes_the_model_and_a_summary(kfu, toy, tmp_path):
    result = kfu("train", toy)
    assert result.exit_code == 0, result.stderr
    assert files_in(tmp_path) == {"toy.svm", "toy.kfu"}
    assert "model            toy.kfu\n" in result.stdout
    assert "status           converged\n" in result.stdout
    assert "80 rows, 3 features, 2 classes" in result.stdout
    assert result.stderr == ""


def test_quiet_prints_nothing(kfu, toy):
    result = kfu("train", toy, "-q")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_verbose_speaks_on_stderr(kfu, toy):
    result = kfu("train", toy, "-v")
    assert "kfu: " in result.stderr
    assert "80 rows, 3 features" in result.stderr


def test_stdin_needs_a_name_for_the_model(kfu):
    result = kfu("train", "-")
    assert result.exit_code == 2
    assert "-o" in result.stderr


def test_report_has_exactly_the_documented_keys(kfu, toy):
    report = trained(kfu, toy, "-g", 0.5)
    assert list(report) == list(TRAIN_KEYS)
    assert list(report)[: len(RESULT_KEYS)] == RESULT_KEYS
    assert set(report["seconds"]) == {"read", "train", "check", "write", "total"}
    assert report["status"] == "converged"
    assert (report["n"], report["n_features"], report["n_classes"]) == (80, 3, 2)
    assert 0 < report["kkt_gap"] <= 1e-3
    assert 0 < report["duality_gap"] < 0.1
    assert 0 < report["n_usv"] <= report["n_sv"] <= 80
    assert report["peak_rss_mib"] > 10
    assert report["settings"]["cost"] == 1.0


def test_report_file_equals_stdout_report_and_model_info(kfu, toy):
    assert kfu("train", toy, "--report", "r.json", "-q").exit_code == 0
    with open("r.json") as stream:
        report = json.load(stream)
    again = trained(kfu, toy)
    for key in ("objective", "n_sv", "bias", "kernel", "settings"):
        assert report[key] == again[key]
    model = Model.load("toy.kfu")
    assert model.info["objective"] == report["objective"]
    assert model.info["status"] == "converged"
    assert model.settings["cost"] == 1.0


def test_agrees_with_libsvm(kfu, toy):
    svm = pytest.importorskip("sklearn.svm")
    X, y = two_classes()
    X = np.round(X, 15)
    peer = svm.SVC(C=2, gamma=0.5, tol=1e-6).fit(X, y)
    report = trained(kfu, toy, "-c", 2, "-g", 0.5, "-e", 1e-6)
    assert report["bias"] == pytest.approx(peer.intercept_[0], abs=1e-4)
    assert report["n_sv"] == pytest.approx(len(peer.support_), abs=1)


def test_stopped_early_writes_a_marked_model(kfu, toy):
    result = kfu("train", toy, "--max-iterations", 1, "-e", 1e-6, "--report", "r.json")
    assert result.exit_code == 3
    assert "stopped at --max-iterations before convergence" in result.stdout
    assert "the model was written and is marked so" in result.stderr
    assert Model.load("toy.kfu").info["status"] == "max_iterations"
    with open("r.json") as stream:
        assert json.load(stream)["status"] == "max_iterations"
    predicted = kfu("predict", "toy.kfu", toy)
    assert predicted.exit_code == 0
    assert "toy.kfu: its training stopped before convergence (max_iterations)" in predicted.stderr


def test_start_from_a_model_gives_the_same_solution(kfu, toy, toy_model):
    cold = trained(kfu, toy, "-g", 0.5, "-e", 1e-6)
    warm = trained(kfu, toy, "-g", 0.5, "-e", 1e-6, "--start", toy_model)
    assert warm["objective"] == pytest.approx(cold["objective"], rel=1e-6)
    assert warm["iterations"] < cold["iterations"]


def test_start_from_a_foreign_model_is_refused(kfu, toy, three_classes):
    assert kfu("train", three_classes, "-q", "-o", "t.kfu").exit_code == 0
    result = kfu("train", toy, "--start", "t.kfu")
    assert result.exit_code in (1, 2)
    assert "internal error" not in result.stderr
    assert not toy.with_name("toy.kfu").exists()


def test_class_weights(kfu, toy):
    plain = trained(kfu, toy)
    weighted = trained(kfu, toy, "-w", "1=5", "-w", "-1=1")
    assert weighted["objective"] > plain["objective"]
    assert trained(kfu, toy, "-w", "+1=5")["objective"] == weighted["objective"]
    balanced = trained(kfu, toy, "-w", "balanced")
    assert balanced["objective"] == pytest.approx(plain["objective"])


def test_row_weights_equal_repeated_rows(kfu, toy, tmp_path):
    lines = toy.read_text().splitlines(keepends=True)
    (tmp_path / "twice.svm").write_text("".join(lines) + "".join(lines[:40]))
    (tmp_path / "w.txt").write_text("# weights\n" + "2\n" * 40 + "1\n" * 40)
    args = ["-g", 0.5, "-e", 1e-6]
    weighted = trained(kfu, toy, "--weights", "w.txt", *args)
    repeated = trained(kfu, "twice.svm", *args)
    assert weighted["objective"] == pytest.approx(repeated["objective"], rel=1e-6)


def test_no_bias(kfu, toy):
    report = trained(kfu, toy, "--no-bias")
    assert report["bias"] == 0


def test_scale_is_stored_in_the_model(kfu, tmp_path):
    X, y = two_classes()
    X *= [1, 1000, 0.01]
    (tmp_path / "wild.svm").write_text(libsvm_text(X, y))
    plain = kfu("train", "wild.svm", "--report", "-")
    assert any("feature ranges differ" in text for text in json.loads(plain.stdout)["warnings"])
    scaled = trained(kfu, "wild.svm", "--scale", "standard")
    assert not any("feature ranges differ" in text for text in scaled["warnings"])
    assert Model.load("m.kfu").scaler is not None
    result = kfu("predict", "m.kfu", "wild.svm", "-o", "out", "--report", "-")
    assert json.loads(result.stdout)["accuracy"] > 0.8


def test_warnings_reach_stderr_and_report(kfu, tmp_path):
    X, y = two_classes(n=60)
    (tmp_path / "d.svm").write_text(libsvm_text(X, y) + libsvm_text(X[:2], -y[:2]))
    result = kfu("train", "d.svm", "-g", 1000, "--report", "r.json")
    with open("r.json") as stream:
        warnings = json.load(stream)["warnings"]
    for words in ("share their features with a row of another class", "is gamma too large"):
        assert any(words in text for text in warnings)
        assert words in result.stderr
    assert "kfu: warning: " in result.stderr


def test_multiclass(kfu, three_classes):
    report = trained(kfu, three_classes)
    assert report["n_classes"] == 3
    assert Model.load("m.kfu").n_machines == 3


@pytest.mark.parametrize("solver", ["svmfu", "svmlight", "osuna", "smo"])
@pytest.mark.parametrize("flags", [["--selection", "first"], ["--no-shrinking"], ["--chunk", 4]])
def test_every_solver_gives_the_same_objective(solver, flags, kfu, toy):
    expected = trained(kfu, toy, "-e", 1e-5, "--precision", "float64")["objective"]
    report = trained(kfu, toy, "-e", 1e-5, "--solver", solver, *flags)
    assert report["objective"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_tables_give_what_libsvm_text_gives(ending, kfu, toy, tmp_path):
    X, y = two_classes()
    separator = "," if ending == "csv" else "\t"
    names = [separator.join(["a", "b", "c", "kind"])]
    rows = [separator.join([*(f"{v:.6g}" for v in x), str(t)]) for x, t in zip(X, y, strict=True)]
    (tmp_path / f"toy.{ending}").write_text("\n".join(names + rows) + "\n")
    expected = trained(kfu, toy)["objective"]
    for column in ("kind", "-1", "4"):
        report = trained(kfu, f"toy.{ending}", "--label-column", column)
        assert report["objective"] == pytest.approx(expected, rel=1e-9)


class TestProgress:
    def test_share_of_the_way_is_on_a_log_scale(self):
        assert gap_fraction(1.0, 1.0, 1e-4) == 0.0
        assert gap_fraction(1.0, 1e-2, 1e-4) == pytest.approx(0.5)
        assert gap_fraction(1.0, 1e-5, 1e-4) == 1.0
        assert gap_fraction(1.0, 2.0, 1e-4) == 0.0
        assert gap_fraction(1e-5, 1e-5, 1e-4) == 1.0

    @pytest.mark.parametrize("quiet", [False, True])
    def test_only_on_a_terminal_and_not_when_quiet(self, quiet, tmp_path):
        (tmp_path / "hard.svm").write_text(libsvm_text(*two_classes(n=400, d=4, shift=0.6)))
        flags = ["--solver", "smo", "-c", "1000", "-g", "2", "-e", "1e-5"]
        terminal, end = os.openpty()
        process = subprocess.Popen(
            [*COMMAND, "train", "hard.svm", *flags, *(["-q"] if quiet else [])],
            stdout=subprocess.PIPE,
            stderr=end,
            env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(end)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal ends with the process
            while block := os.read(terminal, 4096):
                seen += block
        os.close(terminal)
        stdout, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert (b"training" in seen and b"gap" in seen and b"SVs" in seen) is not quiet
        assert b"training" not in stdout


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_model_file_is_the_same_for_any_number_of_threads(kfu, tmp_path, layout):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 24))
    if layout == "sparse":
        X[rng.random(X.shape) < 0.8] = 0.0
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=3000) > 1.0, 1, -1)
    (tmp_path / "made.svm").write_text(libsvm_text(X, y))
    files = []
    for threads in (1, 2, 3):
        result = kfu("train", "made.svm", "-c", "5", "--threads", str(threads), "-o", "m.kfu", "-q")
        assert result.exit_code == 0, result.stderr
        files.append((tmp_path / "m.kfu").read_bytes())
    assert files[0] == files[1] == files[2]
