"""kfu predict: what it writes where, and how it counts."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import zlib

import numpy as np
import pytest
from cli_toys import COMMAND, ENVIRONMENT

from kfu.io import read_dataset
from kfu.model import Model


def test_labels_to_stdout_and_summary_to_stderr(kfu, toy_model, toy_test):
    result = kfu("predict", toy_model, toy_test)
    assert result.exit_code == 0, result.stderr
    data = read_dataset(toy_test)
    expected = Model.load(toy_model).predict(data.X)
    assert [float(text) for text in result.stdout.split()] == expected.tolist()
    assert "accuracy" in result.stderr
    assert "precision" in result.stderr


def test_labels_to_a_file_and_summary_to_stdout(kfu, toy_model, toy_test, tmp_path):
    result = kfu("predict", toy_model, toy_test, "-o", "out.txt")
    assert "accuracy" in result.stdout
    assert result.stderr == ""
    direct = kfu("predict", toy_model, toy_test, "-q")
    assert (tmp_path / "out.txt").read_text() == direct.stdout
    assert direct.stderr == ""


def test_decision_values_are_exact(kfu, toy_model, toy_test):
    data = read_dataset(toy_test)
    expected = Model.load(toy_model).decision_function(data.X)
    lines = kfu("predict", toy_model, toy_test, "--output", "decision", "-q").stdout.splitlines()
    assert lines[0] == "# 1:-1"
    np.testing.assert_array_equal(np.array(lines[1:], dtype=float), expected[:, 0])
    both = kfu("predict", toy_model, toy_test, "--output", "both", "-q").stdout.splitlines()
    assert both[0] == "# label\t1:-1"
    for line, value in zip(both[1:], expected[:, 0], strict=True):
        label, text = line.split("\t")
        assert float(text) == value
        assert label == ("1" if value > 0 else "-1")


def test_multiclass_columns(kfu, three_classes):
    assert kfu("train", three_classes, "-q").exit_code == 0
    result = kfu("predict", "trees.kfu", three_classes, "--output", "both", "-q")
    lines = result.stdout.splitlines()
    assert lines[0] == "# label\tbirch:ash\tcedar:ash\tcedar:birch"
    assert len(lines) == 91
    assert all(len(line.split("\t")) == 4 for line in lines[1:])


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_blocks_do_not_change_the_result(rows, kfu, toy_model, toy_test):
    whole = kfu("predict", toy_model, toy_test, "--output", "both", "-q")
    block = kfu("predict", toy_model, toy_test, "--output", "both", "-q", "--block-rows", rows)
    assert block.stdout == whole.stdout


def test_report(kfu, toy_model, toy_test):
    result = kfu("predict", toy_model, toy_test, "-o", "out", "--report", "-")
    report = json.loads(result.stdout)
    truth = read_dataset(toy_test).y
    with open("out") as stream:
        predicted = np.array(stream.read().split(), dtype=float)
    assert report["n"] == 40
    assert report["accuracy"] == np.mean(truth == predicted)
    assert report["error"] == pytest.approx(1 - report["accuracy"])
    assert report["seconds"] > 0
    assert report["rows_per_second"] > 0
    for entry in report["per_class"]:
        label = float(entry["label"])
        assert entry["n"] == np.sum(truth == label)
        assert entry["predicted"] == np.sum(predicted == label)
        correct = np.sum((truth == label) & (predicted == label))
        assert entry["correct"] == correct
        assert entry["recall"] == correct / entry["n"]
        assert entry["precision"] == correct / entry["predicted"]


def test_report_and_predictions_cannot_share_stdout(kfu, toy_model, toy_test):
    result = kfu("predict", toy_model, toy_test, "--report", "-")
    assert result.exit_code == 2
    assert "give -o" in result.stderr


def test_stdin_streams(kfu, kfu_process, toy_model, toy_test):
    direct = kfu("predict", toy_model, toy_test, "-q")
    piped = kfu_process("predict", toy_model, "-", "-q", input=toy_test.read_text())
    assert piped.stdout == direct.stdout
    assert piped.returncode == 0


def test_memory_does_not_grow_with_the_rows(kfu_process, toy, toy_model):
    """Half a million rows need 15 MiB as text and 20 MiB as arrays; blocks of them much less."""
    peaks = []
    for copies in (100, 6000):
        big = toy.with_name("big.t")
        big.write_text(toy.read_text() * copies)
        args = ["-o", "/dev/null", "--block-rows", 1000, "-t", 1, "--report", "-"]
        result = kfu_process("predict", toy_model, big, *args)
        report = json.loads(result.stdout)
        assert report["n"] == 80 * copies
        peaks.append(report["peak_rss_mib"])
    assert peaks[1] < peaks[0] + 12


class TestLabels:
    def relabelled(self, toy_test, labels):
        lines = toy_test.read_text().splitlines()
        text = [
            f"{label} {line.split(' ', 1)[1]}\n" for label, line in zip(labels, lines, strict=False)
        ]
        toy_test.write_text("".join(text))
        return len(text)

    def report(self, kfu, toy_model, toy_test, *flags):
        result = kfu("predict", toy_model, toy_test, "-o", "out", "--report", "r.json", *flags)
        assert result.exit_code == 0, result.stderr
        with open("r.json") as stream:
            return json.load(stream), result.stderr

    def test_zero_means_unlabelled(self, kfu, toy_model, toy_test):
        self.relabelled(toy_test, ["0"] * 10 + ["1"] * 5)
        report, stderr = self.report(kfu, toy_model, toy_test)
        assert (report["n"], report["n_labelled"]) == (15, 5)
        assert "10 rows have no label" in stderr

    def test_question_marks_mean_unlabelled(self, kfu, toy_model, toy_test):
        self.relabelled(toy_test, ["?"] * 40)
        report, _ = self.report(kfu, toy_model, toy_test)
        assert report["accuracy"] is None
        assert report["per_class"] is None
        assert report["n"] == 40

    def test_question_marks_beside_labels(self, kfu, toy_model, toy_test):
        self.relabelled(toy_test, ["?", "1", "-1", "+1"] * 5)
        report, _ = self.report(kfu, toy_model, toy_test, "--block-rows", 4)
        assert report["n_labelled"] == 15
        assert report["per_class"][1]["n"] == 10

    def test_unknown_labels_count_as_errors(self, kfu, toy_model, toy_test):
        self.relabelled(toy_test, ["1"] * 5 + ["7"] * 5)
        report, stderr = self.report(kfu, toy_model, toy_test)
        assert report["n_labelled"] == 10
        assert report["accuracy"] <= 0.5
        assert "5 rows have labels that the model does not know (7; its classes: -1, 1)" in stderr

    def test_only_unknown_labels(self, kfu, toy_model, toy_test):
        self.relabelled(toy_test, ["a"] * 10)
        report, stderr = self.report(kfu, toy_model, toy_test)
        assert report["accuracy"] is None
        assert "no row has a label of the model" in stderr

    def test_no_labels_ignores_them(self, kfu, toy_model, toy_test):
        report, _ = self.report(kfu, toy_model, toy_test, "--no-labels")
        assert report["accuracy"] is None
        assert report["n"] == 40

    def test_table_without_a_label_column(self, kfu, toy_model, toy_test, tmp_path):
        X = read_dataset(toy_test).X
        table = "\n".join(",".join(repr(float(v)) for v in row) for row in X) + "\n"
        (tmp_path / "t.csv").write_text(table)
        direct = kfu("predict", toy_model, toy_test, "-q")
        result = kfu("predict", toy_model, "t.csv", "--no-labels", "-q")
        assert result.stdout == direct.stdout


def test_fewer_features_are_zeros(kfu, toy_model, tmp_path):
    (tmp_path / "short.t").write_text("1 1:0.5\n-1 2:0.5\n")
    (tmp_path / "full.t").write_text("1 1:0.5 2:0 3:0\n-1 1:0 2:0.5 3:0\n")
    short = kfu("predict", toy_model, "short.t", "--output", "decision", "-q")
    full = kfu("predict", toy_model, "full.t", "--output", "decision", "-q")
    assert short.exit_code == 0, short.stderr
    assert short.stdout == full.stdout


def test_more_features_are_said(kfu, toy_model, tmp_path):
    (tmp_path / "wide.t").write_text("1 1:0.5 9:1\n-1 2:0.5 3:1\n")
    result = kfu("predict", toy_model, "wide.t")
    assert result.exit_code == 0, result.stderr
    assert "9 features where the model has 3" in result.stderr
    assert len(result.stdout.split()) == 2


def test_table_with_wrong_width_is_refused(kfu, toy_model, tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3,4,5\n-1,2,3,4,5\n")
    result = kfu("predict", toy_model, "t.csv")
    assert result.exit_code == 1
    assert "t.csv" in result.stderr
    assert "4 features" in result.stderr


def test_libsvm_model_predicts_directly(kfu, toy_model, toy_test):
    assert kfu("convert", toy_model, "m.model").exit_code == 0
    one = kfu("predict", toy_model, toy_test, "-q")
    two = kfu("predict", "m.model", toy_test, "-q")
    assert one.stdout == two.stdout


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_rows_are_answered_while_the_pipe_is_open(compressed, kfu, toy_model, toy_test):
    """Rows go in, their predictions come out, before more rows are sent."""
    expected = kfu("predict", toy_model, toy_test, "-q").stdout.splitlines()
    lines = toy_test.read_text().splitlines(keepends=True)
    process = subprocess.Popen(
        [*COMMAND, "predict", str(toy_model), "-", "-q"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    packer = zlib.compressobj(wbits=31)

    def send(text: str, last: bool = False) -> None:
        data = text.encode()
        if compressed:
            data = packer.compress(data) + packer.flush(
                zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
            )
        process.stdin.write(data)
        process.stdin.flush()

    received: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(
        target=lambda: [received.put(line.decode().strip()) for line in process.stdout], daemon=True
    )
    reader.start()
    try:
        send("".join(lines[:3]) + lines[3][:5])  # three rows and a part of the fourth
        assert [received.get(timeout=60) for _ in range(3)] == expected[:3]
        send(lines[3][5:])
        assert received.get(timeout=60) == expected[3]
        assert process.poll() is None
        send("".join(lines[4:]), last=True)
        process.stdin.close()
        assert [received.get(timeout=60) for _ in lines[4:]] == expected[4:]
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
        reader.join(timeout=60)
        process.stdout.close()


def test_other_index_base_is_hinted_at(kfu, toy, tmp_path):
    text = toy.read_text()
    shifted = text.replace(" 1:", " 0:").replace(" 2:", " 1:").replace(" 3:", " 2:")
    (tmp_path / "zero.svm").write_text(shifted)
    assert kfu("train", "zero.svm", "-q").exit_code == 0
    result = kfu("predict", "zero.kfu", toy)
    assert "4 features where the model has 3" in result.stderr
    assert "give --one-based if these start at 1" in result.stderr
    right = kfu("predict", "zero.kfu", toy, "--one-based")
    assert "one-based" not in right.stderr
    assert right.stdout == kfu("predict", "zero.kfu", "zero.svm").stdout

    assert kfu("train", toy, "-q").exit_code == 0
    result = kfu("predict", "toy.kfu", "zero.svm")
    assert result.exit_code == 1
    assert "(--zero-based)" in result.stderr


def test_unseen_features_of_a_one_based_model_bring_no_hint(kfu, toy_model, tmp_path):
    (tmp_path / "wide.t").write_text("1 1:0.5 9:1\n")
    assert "-based" not in kfu("predict", toy_model, "wide.t").stderr
