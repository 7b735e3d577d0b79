"""Bad input: one message ``file:line: what was found; what to do``, exit 1, nothing left behind."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from cli_toys import files_in

GOOD = "1 1:0.5 2:1\n-1 1:-0.5 3:2\n"

# name -> (text, place in the message, words of the message)
TEXTS = {
    "non-numeric value": (GOOD + "1 1:abc\n", ":3: ", ["abc"]),
    "no colon": (GOOD + "1 15\n", ":3: ", ["15"]),
    "index 0 in one-based data": (GOOD + "1 0:1 1:2\n", ":3: ", ["0"]),
    "negative index": (GOOD + "1 -2:1\n", ":3: ", ["-2"]),
    "decreasing index": (GOOD + "1 3:1 2:1\n", ":3: ", ["2", "3"]),
    "repeated index": (GOOD + "1 2:1 2:5\n", ":3: ", ["2"]),
    "index that is no number": (GOOD + "1 x:1\n", ":3: ", ["x"]),
    "nan": (GOOD + "1 1:nan\n", ":3: ", ["nan"]),
    "inf": (GOOD + "1 1:inf\n", ":3: ", ["inf"]),
    "minus inf": (GOOD + "1 1:-inf\n", ":3: ", ["inf"]),
    "overflow": (GOOD + "1 1:1e999\n", ":3: ", ["1e999"]),
    "empty file": ("", ": ", ["no examples"]),
    "only comments": ("# nothing\n\n", ": ", ["no examples"]),
    "no features": ("1\n-1\n", ": ", ["feature"]),
    "one class only": ("1 1:2\n1 1:3\n", ": ", ["labels are 1", "two classes"]),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True], ids=["text", "gzip"])
def test_bad_text(name, packed, kfu, tmp_path):
    text, place, words = TEXTS[name]
    path = tmp_path / ("bad.svm.gz" if packed else "bad.svm")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    flags = ["--one-based"] if "one-based" in name else []
    refused(kfu, tmp_path, path, ["train", path, *flags], place, words)


def refused(kfu, folder: Path, path: Path, args: list, place: str, words: list[str]) -> None:
    """The command fails with exit 1 and one message about ``path``, and leaves no new file."""
    before = files_in(folder)
    result = kfu(*args, "-o", "out.kfu", "--report", "out.json")
    assert result.exit_code == 1, (result.stdout, result.stderr)
    assert result.stderr.startswith(f"kfu: error: {path}{place}"), result.stderr
    for word in words:
        assert word in result.stderr
    assert "; " in result.stderr  # what was found; what to do
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert files_in(folder) == before


@pytest.mark.parametrize("name", TEXTS)
def test_bad_text_on_stdin(name, kfu_process, tmp_path):
    text, place, words = TEXTS[name]
    flags = ["--one-based"] if "one-based" in name else []
    result = kfu_process("train", "-", "-o", "out.kfu", *flags, input=text)
    assert result.returncode == 1
    line = "<stdin>" + place
    assert result.stderr.startswith(f"kfu: error: {line}"), result.stderr
    assert all(word in result.stderr for word in words)
    assert files_in(tmp_path) == set()


def test_binary_garbage(kfu, tmp_path):
    path = tmp_path / "bad.svm"
    path.write_bytes(bytes(range(256)) * 20)
    refused(kfu, tmp_path, path, ["train", path], ":", [])


def test_truncated_gzip(kfu, tmp_path):
    path = tmp_path / "bad.svm.gz"
    whole = gzip.compress((GOOD * 500).encode(), mtime=0)
    path.write_bytes(whole[: len(whole) // 2])
    refused(kfu, tmp_path, path, ["train", path], ": ", ["gzip"])


def test_damaged_gzip(kfu, tmp_path):
    path = tmp_path / "bad.svm.gz"
    whole = bytearray(gzip.compress((GOOD * 500).encode(), mtime=0))
    whole[len(whole) - 6] ^= 0xFF  # the checksum
    path.write_bytes(bytes(whole))
    refused(kfu, tmp_path, path, ["train", path], ": ", ["gzip"])


def test_missing_file(kfu, tmp_path):
    refused(kfu, tmp_path, Path("no.svm"), ["train", "no.svm"], ": ", ["no such file"])


def test_directory_as_data(kfu, tmp_path):
    (tmp_path / "folder").mkdir()
    refused(kfu, tmp_path, Path("folder"), ["train", "folder"], ": ", ["directory"])


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("1,2,3\n-1,x,4\n", ":2", ["x"]),
        ("1,2,3\n-1,2\n", ":2", ["2"]),
        ("1,2,nan\n-1,2,3\n", ":1", ["nan"]),
        ("y,a,b\n1,2,3\n-1,2,inf\n", ":3", ["inf"]),
    ],
)
def test_bad_table(text, place, words, kfu, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(kfu, tmp_path, path, ["train", path], place, words)


def test_regression_target(kfu, tmp_path):
    path = tmp_path / "r.svm"
    path.write_text("".join(f"{k / 7:.3f} 1:{k}\n" for k in range(60)))
    words = ["60 different labels in 60 rows"]
    refused(kfu, tmp_path, path, ["train", path], ": ", words)


def test_header_and_column_names(kfu, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,2,yes\n2,3,no\n3,5,yes\n")
    refused(kfu, tmp_path, path, ["train", path, "--label-column", "z"], ": ", ["'z'", "a, b, y"])
    refused(kfu, tmp_path, path, ["train", path, "--label-column", "9"], ": ", ["columns"])
    flags = ["--no-header", "--label-column", "-1"]
    refused(kfu, tmp_path, path, ["train", path, *flags], ":1: ", ["'a'"])


@pytest.mark.parametrize("option", ["-o", "--report", "--checkpoint"])
@pytest.mark.parametrize(
    ("target", "words"),
    [("absent/out.kfu", "no directory 'absent'"), ("folder", "is a directory")],
)
def test_unwritable_output(option, target, words, kfu, toy, tmp_path):
    (tmp_path / "folder").mkdir()
    before = files_in(tmp_path)
    result = kfu("train", toy, option, target)
    assert result.exit_code == 1
    assert f"{target}: cannot be written, {words}" in result.stderr
    assert files_in(tmp_path) == before


class TestWeights:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("1\nx\n", "w.txt:2: 'x' is not a weight; give a number >= 0"),
            ("1\n-1\n", "w.txt:2: '-1' is not a weight"),
            ("nan\n", "w.txt:1: 'nan' is not a weight"),
            ("1\n2\n", "w.txt: 2 weights for the 80 rows of"),
            ("0\n" * 80, "w.txt: every weight is 0"),
        ],
    )
    def test_bad_weights(self, text, words, kfu, toy, tmp_path):
        (tmp_path / "w.txt").write_text(text)
        before = files_in(tmp_path)
        result = kfu("train", toy, "--weights", "w.txt")
        assert result.exit_code == 1
        assert words in result.stderr
        assert files_in(tmp_path) == before

    def test_missing_weights(self, kfu, toy):
        result = kfu("train", toy, "--weights", "w.txt")
        assert result.exit_code == 1
        assert "w.txt: no such file" in result.stderr


class TestPredict:
    @pytest.mark.parametrize("name", ["non-numeric value", "nan", "decreasing index"])
    def test_bad_rows_leave_no_output(self, name, kfu, toy_model, tmp_path):
        text, place, words = TEXTS[name]
        path = tmp_path / "bad.t"
        path.write_text(text)
        refused(kfu, tmp_path, path, ["predict", toy_model, path], place, words)

    def test_error_in_a_later_block(self, kfu, toy, toy_model, tmp_path):
        path = tmp_path / "bad.t"
        path.write_text(toy.read_text() + "1 1:oops\n")
        args = ["predict", toy_model, path, "--block-rows", 16]
        refused(kfu, tmp_path, path, args, ":81: ", ["oops"])

    @pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04" + b"x" * 50])
    def test_bad_model(self, content, kfu, toy, tmp_path):
        (tmp_path / "bad.kfu").write_bytes(content)
        before = files_in(tmp_path)
        result = kfu("predict", "bad.kfu", toy, "-o", "out")
        assert result.exit_code == 1
        assert result.stderr.startswith("kfu: error: bad.kfu: ")
        assert result.stderr.count("\n") == 1
        assert files_in(tmp_path) == before

    def test_truncated_model(self, kfu, toy, toy_model, tmp_path):
        whole = toy_model.read_bytes()
        (tmp_path / "bad.kfu").write_bytes(whole[: len(whole) // 2])
        result = kfu("predict", "bad.kfu", toy)
        assert result.exit_code == 1
        assert "bad.kfu: " in result.stderr
        assert result.stdout == ""

    def test_missing_model(self, kfu, toy):
        result = kfu("predict", "no.kfu", toy)
        assert result.exit_code == 1
        assert "no.kfu: no such file" in result.stderr

    def test_model_and_data_swapped(self, kfu, toy, toy_model):
        result = kfu("predict", toy, toy_model)
        assert result.exit_code == 1
        assert "toy.svm: " in result.stderr


@pytest.mark.parametrize("command", ["train", "train --scale standard", "info", "scale", "predict"])
def test_feature_number_beyond_what_kernels_count(command, kfu, toy_model, tmp_path):
    (tmp_path / "far.svm").write_text("1 1:1\n-1 99999999999:1\n1 2:1\n")
    name, *flags = command.split()
    model = [toy_model] if name == "predict" else []
    result = kfu(name, *model, "far.svm", *flags)
    assert result.exit_code == 1
    assert result.stderr.startswith("kfu: error: far.svm: 99999999999 features (the largest ")
    assert "in row 2); at most 2147483647 are supported; number the features" in result.stderr
    assert result.stderr.count("\n") == 1


def test_square_npy_without_labels(kfu, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    np.save(tmp_path / "K.npy", X @ X.T)
    result = kfu("train", "K.npy", "-k", "precomputed")
    assert result.exit_code == 1
    assert "numpy.column_stack([y, K])" in result.stderr
    np.save(tmp_path / "yK.npy", np.column_stack([y, X @ X.T]))
    np.savez(tmp_path / "yK.npz", X=X @ X.T, y=y)
    for name in ("yK.npy", "yK.npz"):
        result = kfu("train", name, "-k", "precomputed", "-q", "-o", f"{name}.kfu")
        assert result.exit_code == 0, result.stderr
