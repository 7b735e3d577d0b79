"""What LIBSVM and SVMlight get silently wrong on the command line is right, or refused, here."""

from __future__ import annotations

import json

import pytest
from cli_toys import files_in, libsvm_text, two_classes


def result_of(path: str) -> dict:
    with open(path) as stream:
        content = json.load(stream)
    keys = ("objective", "n_sv", "n_usv", "bias", "n", "n_classes", "iterations")
    return {key: content[key] for key in keys}


def test_piped_stdin_equals_the_file(kfu, kfu_process, toy):
    """svm-train reads a pipe twice and writes an empty model; svm_learn finds 0 SVs."""
    assert kfu("train", toy, "-o", "f.kfu", "--report", "f.json", "-q").exit_code == 0
    piped = kfu_process(
        "train", "-", "-o", "p.kfu", "--report", "p.json", "-q", input=toy.read_text()
    )
    assert piped.returncode == 0, piped.stderr
    assert result_of("p.json") == result_of("f.json")
    one = kfu("predict", "f.kfu", toy, "--output", "decision").stdout
    two = kfu_process("predict", "p.kfu", "-", "--output", "decision", input=toy.read_text())
    assert two.stdout == one
    assert two.returncode == 0


def test_gamma_that_is_no_number(kfu, toy):
    """svm-train -g abc trains with the default gamma."""
    result = kfu("train", toy, "-g", "abc")
    assert result.exit_code == 2
    assert "'abc' is not a gamma" in result.stderr


def test_kernel_name_where_a_number_is_expected(kfu, toy):
    """svm-train -t rbf trains a linear kernel."""
    result = kfu("train", toy, "-t", "rbf")
    assert result.exit_code == 2
    assert "-t is --threads; kernels are chosen with -k" in result.stderr


def test_nan_feature(kfu, tmp_path):
    """svm-train and svm_learn write a model; ThunderSVM never ends."""
    (tmp_path / "nan.svm").write_text("1 1:1\n-1 1:nan\n")
    result = kfu("train", "nan.svm")
    assert result.exit_code == 1
    assert "nan.svm:2: " in result.stderr
    assert files_in(tmp_path) == {"nan.svm"}


def test_fractional_labels_stay_apart(kfu, tmp_path):
    """svm-train truncates the labels 0.5, 0.6 and 1.7 to 0 and 1."""
    X, _ = two_classes(n=90)
    labels = ["0.5", "0.6", "1.7"] * 30
    for row, label in zip(X, labels, strict=True):
        row[0] += 4 * float(label)
    (tmp_path / "f.svm").write_text(libsvm_text(X, labels))
    result = kfu("train", "f.svm", "--report", "f.json", "-q")
    assert result.exit_code == 0, result.stderr
    assert result_of("f.json")["n_classes"] == 3
    predicted = kfu("predict", "f.kfu", "f.svm", "-q").stdout.split()
    assert set(predicted) == {"0.5", "0.6", "1.7"}


def test_text_labels(kfu, three_classes):
    """svm-train: "Wrong input format at line 1"."""
    assert kfu("train", three_classes, "-q").exit_code == 0
    predicted = kfu("predict", "trees.kfu", three_classes, "-q").stdout.split()
    assert set(predicted) == {"ash", "birch", "cedar"}


def test_qid_is_accepted(kfu, toy, tmp_path):
    """svm-train refuses qid."""
    lines = toy.read_text().splitlines()
    text = "".join(
        "{} qid:{} {}\n".format(line.split(" ", 1)[0], k // 10, line.split(" ", 1)[1])
        for k, line in enumerate(lines)
    )
    (tmp_path / "q.svm").write_text(text)
    assert kfu("train", "q.svm", "--report", "q.json", "-q").exit_code == 0
    assert kfu("train", toy, "--report", "t.json", "-q").exit_code == 0
    assert result_of("q.json") == result_of("t.json")


def test_index_0_in_one_based_data(kfu, tmp_path):
    """svm-train takes feature 0 along without a word."""
    (tmp_path / "z.svm").write_text("1 0:1 1:2\n-1 0:2 1:1\n")
    result = kfu("train", "z.svm", "--one-based")
    assert result.exit_code == 1
    assert "z.svm:1: " in result.stderr
    assert kfu("train", "z.svm", "--zero-based", "-q").exit_code == 0


@pytest.mark.parametrize(
    "args",
    [[], ["train"], ["train", "x.svm", "-c", "-1"], ["train", "x.svm", "--bogus"], ["bogus"]],
    ids=lambda args: " ".join(["kfu", *args]),
)
def test_usage_errors_exit_2_and_wait_for_nothing(args, kfu_process):
    """svm_learn exits 0 on every usage error, and its help waits for a key."""
    result = kfu_process(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr


def test_precomputed_kernel_on_ordinary_data(kfu, toy):
    """ThunderSVM -t 4 trains on data that are no kernel matrix."""
    result = kfu("train", toy, "-k", "precomputed")
    assert result.exit_code in (1, 2)
    assert not toy.with_name("toy.kfu").exists()
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr


def test_results_on_stdout_and_progress_on_stderr(kfu, toy):
    """svm-train prints its progress to stdout, between the results."""
    result = kfu("train", toy, "--report", "-")
    assert json.loads(result.stdout)["status"] == "converged"
