"""kfu train --multiclass: every code, codes from files, decodings, and one machine for all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_toys import files_in, libsvm_text

from kfu.io import read_dataset
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.model import Model
from kfu.multiclass import CODES, DECODINGS, resolve_code

NEEDS = {"dag": "ava", "argmax": "ova"}  # decodings of one code only


@pytest.fixture
def four_classes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(6)
    y = np.arange(80) % 4
    X = 3.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y] + 0.7 * rng.normal(size=(80, 2))
    path = tmp_path / "four.svm"
    path.write_text(libsvm_text(X, np.array(["a", "b", "c", "10"])[y]))
    return path


def trained(kfu, data, *args):
    result = kfu("train", data, *args, "-o", "m.kfu", "--report", "m.json", "-q", "-g", 0.5)
    assert result.exit_code == 0, result.stderr
    return json.loads(Path("m.json").read_text())


def accuracy(kfu, data) -> float:
    result = kfu("predict", "m.kfu", data, "-o", "out", "--report", "-")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["accuracy"]


@pytest.mark.parametrize("code", CODES)
def test_codes(code, kfu, four_classes):
    report = trained(kfu, four_classes, "--multiclass", code)
    expected, name = resolve_code(code, 4, seed=0)
    model = Model.load("m.kfu")
    np.testing.assert_array_equal(model.code, expected)
    assert model.classes.tolist() == ["10", "a", "b", "c"]
    assert report["n_machines"] == expected.shape[1]
    assert report["multiclass"] == name
    assert report["code_distance"] > 0
    assert accuracy(kfu, four_classes) > 0.9


@pytest.mark.parametrize("name", ["OVR", "one-vs-one", "all-pairs", "comp"])
def test_other_names(name, kfu, four_classes):
    found = trained(kfu, four_classes, "--multiclass", name)["multiclass"]
    assert found == resolve_code(name, 4)[1]


@pytest.mark.parametrize("code", SINGLE_MACHINES)
def test_one_machine_for_all_classes(code, kfu, four_classes):
    report = trained(kfu, four_classes, "--multiclass", code)
    assert report["multiclass"] == code
    assert report["kkt_gap"] <= 1e-3
    model = Model.load("m.kfu")
    assert model.n_machines == 4
    np.testing.assert_allclose(model.coef.sum(axis=0), 0.0, atol=1e-9)
    assert accuracy(kfu, four_classes) > 0.9


@pytest.mark.parametrize("code", ["ova", "ava", "complete", "bch15"])
@pytest.mark.parametrize("decoding", DECODINGS)
def test_decodings(decoding, code, kfu, four_classes, tmp_path):
    before = files_in(tmp_path)
    if NEEDS.get(decoding, code) != code:
        result = kfu("train", four_classes, "--multiclass", code, "--decoding", decoding)
        assert result.exit_code == 2
        assert f"decoding {decoding} needs" in result.stderr
        assert files_in(tmp_path) == before
        return
    report = trained(kfu, four_classes, "--multiclass", code, "--decoding", decoding)
    assert report["decoding"] == decoding
    scores = kfu("predict", "m.kfu", four_classes, "--output", "scores", "-q").stdout.splitlines()
    assert scores[0] == "# label\t10\ta\tb\tc"
    names = scores[0][2:].split("\t")[1:]
    for line in scores[1:]:
        label, *values = line.split("\t")
        assert names[int(np.argmax(np.array(values, float)))] == label


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--multiclass", "nosuch"], "no multiclass code 'nosuch'"),
        (["--multiclass", "avaa"], "did you mean 'ava'?"),
        (["--decoding", "vote"], "did you mean 'votes'?"),
        (["-m", "svc2", "--multiclass", "crammer-singer"], "is for the machine svc"),
        (["-c", "inf", "--multiclass", "weston-watkins"], "needs a finite cost"),
        (["--multiclass", "crammer-singer", "--decoding", "votes"], "takes no --decoding votes"),
        (["--multiclass", "crammer-singer", "--regularised-bias"], "takes no --regularised-bias"),
        (["--multiclass", "crammer-singer", "--margins", "auto"], "takes no --margins"),
        (["--multiclass", "crammer-singer", "--checkpoint", "c"], "writes no checkpoints"),
    ],
    ids=str,
)
def test_refused(args, words, kfu, four_classes, tmp_path):
    before = files_in(tmp_path)
    result = kfu("train", four_classes, *args)
    assert result.exit_code == 2, result.stdout + result.stderr
    assert words in result.stderr
    assert files_in(tmp_path) == before


class TestCodeFile:
    GOOD = "# fur, eggs\n1 1 0\n-1, 0, 1   # commas do too\n\n0 -1 -1\n"

    def test_is_the_code_of_the_model(self, kfu, three_classes):
        Path("mine.code").write_text(self.GOOD)
        report = trained(kfu, three_classes, "--multiclass", "mine.code")
        assert Model.load("m.kfu").code.tolist() == [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
        assert report["multiclass"] == "mine.code"
        assert accuracy(kfu, three_classes) > 0.85
        Path("mine.code").unlink()  # the model holds the code
        assert accuracy(kfu, three_classes) > 0.85

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("1 1 0\n-1 0 1\n0 -1 2\n", "bad.code:3: "),
            ("1 1 0\n-1 0 1\n0 -1\n", "bad.code:3: "),
            ("1 1 0\n-1 0 1\n", "bad.code"),
            ("1 -1\n-1 1\n-1 1\n", "bad.code:3: rows 2 and 3 of the code are the same"),
            ("1 1\n1 -1\n1 0\n", "bad.code"),  # the first machine has one side
            ("1 0\n-1 0\n0 1\n", "bad.code"),
            ("", "bad.code"),
            ("1 x\n", "bad.code:1: "),
        ],
    )
    def test_errors_say_where(self, text, words, kfu, three_classes, tmp_path):
        Path("bad.code").write_text(text)
        before = files_in(tmp_path)
        result = kfu("train", three_classes, "--multiclass", "bad.code")
        assert result.exit_code == 1, result.stderr
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
        assert files_in(tmp_path) == before

    def test_missing(self, kfu, three_classes):
        result = kfu("train", three_classes, "--multiclass", "folder/none.code")
        assert result.exit_code == 1
        assert "folder/none.code: no such file" in result.stderr


@pytest.mark.parametrize("code", ["ova", "ava", "complete", "dense", "sparse", "bch"])
def test_two_classes_are_one_machine(code, kfu, toy):
    report = trained(kfu, toy, "--multiclass", code)
    assert Model.load("m.kfu").code.tolist() == [[-1], [1]]
    assert "n_machines" not in report
    assert report["objective"] == trained(kfu, toy)["objective"]


@pytest.mark.parametrize(("code", "factor"), [("crammer-singer", 2.0), ("weston-watkins", 1.0)])
def test_one_machine_of_two_classes_is_the_binary_machine(code, factor, kfu, toy):
    """f1 - f0 of Crammer-Singer at C is f of svc at 2C, f1 of Weston-Watkins is that at C."""
    X = read_dataset(toy).X
    trained(kfu, toy, "-c", 0.5, "--multiclass", code, "--no-bias", "-e", 1e-7)
    f = Model.load("m.kfu").decision_function(X)
    trained(kfu, toy, "-c", 0.5 * factor, "--no-bias", "-e", 1e-7)
    binary = Model.load("m.kfu").decision_function(X)[:, 0]
    single = f[:, 1] - f[:, 0] if factor == 2.0 else f[:, 1]
    np.testing.assert_allclose(single, binary, atol=1e-5)


@pytest.mark.parametrize("code", ["ova", "ava", "sparse", *SINGLE_MACHINES])
def test_a_class_of_one_row(code, kfu, four_classes):
    with four_classes.open("a") as stream:
        stream.write("lonely 1:9 2:9\n")
    trained(kfu, four_classes, "--multiclass", code, "-c", 100)
    said = kfu("predict", "m.kfu", four_classes, "-q").stdout.split()
    assert said[-1] == "lonely"


def test_report_of_several_machines(kfu, four_classes):
    trained(kfu, four_classes, "--multiclass", "complete")
    result = kfu("predict", "m.kfu", four_classes, "-o", "out", "--report", "-")
    report = json.loads(result.stdout)
    model, rows = Model.load("m.kfu"), read_dataset(four_classes)
    truth = np.searchsorted(model.classes, rows.y)
    # The loss-based bound of Allwein, Schapire and Singer holds for loss-based decoding.
    assert model.decoding == "hinge"
    assert report["error"] <= report["error_bound"]
    by_hand = np.maximum(0.0, 1.0 - model.code[truth] * model.decision_function(rows.X))
    np.testing.assert_allclose(report["machine_losses"], by_hand.mean(axis=0), rtol=1e-9)
    assert report["mean_loss"] == pytest.approx(by_hand.mean())
    counts = np.array(report["confusion"]["counts"])
    assert counts.sum() == 80
    assert np.trace(counts) / 80 == report["accuracy"]


@pytest.mark.parametrize("machine", ["centroid", "knn", "parzen", "nadaraya-watson"])
def test_machines_without_codes_report_no_code(machine, kfu, four_classes):
    report = trained(kfu, four_classes, "-m", machine)
    assert "n_machines" not in report
    assert "code_distance" not in report
    result = kfu("predict", "m.kfu", four_classes, "-o", "out", "--report", "-")
    assert "error_bound" not in json.loads(result.stdout)
    refused = kfu("predict", "m.kfu", four_classes, "-o", "out", "--plot", "p.png")
    assert refused.exit_code == 2
