"""kfu loo: the table, the report, rows, test data, sweeps, pictures, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from cli_toys import files_in, libsvm_text, two_classes

import kfu as library
from kfu.estimates import ESTIMATES
from kfu.io import read_dataset

DATA = os.environ.get("KFU_DATA", "")


def run(kfu, *args, code=0):
    result = kfu("loo", *args, "--report", "loo.json", "-q")
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    return json.loads(Path("loo.json").read_text())


def by_name(report):
    return {entry["name"]: entry for entry in report["estimates"]}


def test_report(kfu, toy):
    report = run(kfu, toy, "-g", 0.5)
    data = read_dataset(toy)
    model = library.train(data.X, data.y, kernel=library.KernelSpec.make("rbf", gamma=0.5))
    expected = library.loo(model, data.X, data.y)
    assert [entry["name"] for entry in report["estimates"]] == [e.name for e in expected]
    for entry, estimate in zip(report["estimates"], expected, strict=True):
        assert set(entry) == {"name", "value", "of", "kind", "valid", "seconds", "note"}
        assert entry["value"] == pytest.approx(estimate.value)
        assert entry["valid"] == estimate.valid
    assert report["status"] == "converged"
    assert (report["n"], report["n_features"], report["n_classes"]) == (80, 3, 2)
    assert report["n_sv"] == model.n_sv
    assert report["train_error"] == np.mean(model.predict(data.X) != data.y)
    assert report["test_error"] is None
    assert report["warnings"] == []


def test_table(kfu, toy):
    shown = kfu("loo", toy, "-g", 0.5, "--no-bias")
    assert shown.exit_code == 0
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert any(line.split()[:2] == ["estimate", "value"] for line in lines)
    for name in ("exact", "span", "sv-count", "jaakkola-haussler", "stability"):
        assert any(line.startswith(name + " ") for line in lines), name
    assert "bound on the leave-one-out error" in shown.stdout
    assert json.loads(kfu("loo", toy, "--estimate", "span", "--report", "-").stdout)["n"] == 80


@pytest.mark.parametrize("name", ESTIMATES)
def test_every_estimate_can_be_asked_for(name, kfu, toy):
    found = by_name(run(kfu, toy, "--estimate", name))
    assert name in found
    assert all(entry["valid"] or entry["note"] for entry in found.values())


def test_rows(kfu, toy):
    run(kfu, toy, "-g", 0.5, "--estimate", "exact,span,sv-count", "-o", "rows.tsv")
    lines = Path("rows.tsv").read_text().splitlines()
    assert lines[0] == "# row\tlabel\tpredicted\ttrained\texact\tspan\tsv-count?"
    assert len(lines) == 81
    table = np.array([line.split("\t") for line in lines[1:]], dtype=float)
    data = read_dataset(toy)
    model = library.train(data.X, data.y, kernel=library.KernelSpec.make("rbf", gamma=0.5))
    expected = library.loo(model, data.X, data.y, "exact,span,sv-count")
    np.testing.assert_array_equal(table[:, 0], np.arange(1, 81))
    np.testing.assert_array_equal(table[:, 1], data.y)
    np.testing.assert_array_equal(table[:, 2] != data.y, expected["exact"].flags)
    np.testing.assert_allclose(table[:, 3], model.decision_function(data.X)[:, 0])
    np.testing.assert_allclose(table[:, 4], expected["exact"].outputs[:, 0])
    np.testing.assert_allclose(table[:, 5], expected["span"].outputs[:, 0])
    np.testing.assert_array_equal(table[:, 6], expected["sv-count"].flags)


def test_against(kfu, toy, toy_test):
    report = run(kfu, toy, "-g", 0.5, "--scale", "standard", "--against", toy_test)
    assert kfu("train", toy, "-g", 0.5, "--scale", "standard", "-o", "m.kfu", "-q").exit_code == 0
    kfu("predict", "m.kfu", toy_test, "-o", "out", "--report", "p.json", "-q")
    assert report["test_error"] == json.loads(Path("p.json").read_text())["error"]
    found = by_name(report)["validation"]
    assert found["value"] == pytest.approx(
        report["test_error"] + np.sqrt(-np.log(0.025) / (2 * 40))
    )
    args = (toy, "-g", 0.5, "--scale", "standard", "--against", toy_test)
    looser = by_name(run(kfu, *args, "--delta", 0.5, "--estimate", "validation"))
    assert looser["validation"]["value"] < found["value"]


def test_sweep(kfu, toy, toy_test):
    pytest.importorskip("matplotlib")
    args = (toy, "-g", 0.5, "--estimate", "exact,span,radius-variance", "--against", toy_test)
    report = run(kfu, *args, "--sweep", "C=0.1:10:3", "--plot", "curves.png")
    sweep = report["sweep"]
    assert sweep["name"] == "C"
    assert sweep["values"] == [0.1, 1, 10]
    for point in sweep["points"]:
        alone = run(kfu, *args, "-c", point["C"])
        for entry, other in zip(point["estimates"], alone["estimates"], strict=True):
            assert entry["value"] == pytest.approx(other["value"], rel=1e-3), entry["name"]
        assert point["test_error"] == alone["test_error"]
    curve = [point["estimates"][0]["value"] for point in sweep["points"]]
    assert min(curve) == curve[sweep["values"].index(sweep["least"]["exact"])]
    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    shown = kfu("loo", toy, "--estimate", "exact,vc", "--sweep", "gamma=0.1,1")
    assert "least at" in shown.stdout
    assert "*" in shown.stdout  # vc by the margin


@pytest.mark.parametrize(
    "args",
    [
        ("-m", "rlsc", "--sweep", "ridge=0.1,1"),
        ("-m", "svc2", "--sweep", "sigma=1,2"),
        ("-m", "nu-svc", "--sweep", "nu=0.3,0.5"),
    ],
)
def test_other_sweeps(args, kfu, toy):
    sweep = run(kfu, toy, *args, "--estimate", "exact,span")["sweep"]
    assert len(sweep["points"]) == 2
    values = [point["estimates"][0]["value"] for point in sweep["points"]]
    assert all(value is not None for value in values)


def test_picture_of_one_machine(kfu, toy):
    pytest.importorskip("matplotlib")
    run(kfu, toy, "--plot", "one.svg")
    assert b"<svg" in Path("one.svg").read_bytes()


def test_three_classes(kfu, three_classes):
    report = run(kfu, three_classes, "-g", 0.3, "--multiclass", "ova", "-o", "rows.tsv")
    found = by_name(report)
    assert found["sv-count"]["value"] >= found["exact"]["value"]
    assert not found["gacv"]["valid"]
    header = Path("rows.tsv").read_text().splitlines()[0]
    assert "exact.3" in header


def test_a_class_of_two_rows_is_warned_of(kfu, tmp_path):
    X, y = two_classes(n=30)
    kept = np.append(np.flatnonzero(y < 0), np.flatnonzero(y > 0)[:2])
    path = tmp_path / "few.svm"
    path.write_text(libsvm_text(X[kept], y[kept]))
    result = kfu("loo", path)
    assert result.exit_code == 0
    assert "class 1 has 2 rows" in result.stderr


def test_unfinished_training(kfu, toy):
    report = run(kfu, toy, "--max-iterations", 2, "--no-polish", "--estimate", "span", code=3)
    assert report["status"] == "max_iterations"
    assert any("before convergence" in text for text in report["warnings"])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--estimate", "spam"), "did you mean 'span'?"),
        (("--estimate", ","), "names none"),
        (("--sweep", "C"), "NAME=VALUES"),
        (("--sweep", "X=1,2"), "known"),
        (("--sweep", "C=1:2"), "LOW:HIGH:STEPS"),
        (("--sweep", "C=2:1:4"), "LOW:HIGH:STEPS"),
        (("--sweep", "C=1,-1"), "above 0"),
        (("--sweep", "C=1:2:1"), "with 1 steps; give 2 to 1000"),
        (("--sweep", "C=1:2:5000"), "with 5000 steps; give 2 to 1000"),
        (("--sweep", "C=" + ",".join(map(str, range(1, 1002)))), "1001 values; give at most 1000"),
        (("--sweep", "C=0:2:5"), "above 0"),
        (("--plot", "p.xyz"), "not the name of a picture"),
        (("--sweep", "C=1,2", "-o", "rows.tsv"), "leave --sweep or -o out"),
        (("-m", "rlsc", "--sweep", "C=1,2"), "has none"),
        (("-k", "linear", "--sweep", "gamma=1,2"), "no gamma"),
        (("--delta", "1"), "probability"),
        (("--plot", "-"), "picture"),
        (("-o", "-", "--report", "-"), "both go to stdout"),
    ],
)
def test_refused(args, message, kfu, toy, tmp_path):
    before = files_in(tmp_path)
    result = kfu("loo", toy, *args)
    assert result.exit_code == 2, result.stderr
    assert message in result.stderr
    assert files_in(tmp_path) == before


def test_rows_on_stdout_stay_alone(kfu, toy):
    shown = kfu("loo", toy, "--estimate", "exact", "-o", "-")
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) == 81
    assert all(line.count("\t") == 4 for line in shown.stdout.splitlines())
    assert "estimate" in shown.stderr


@pytest.mark.parametrize("machine", ["svr", "rls", "one-class"])
def test_one_row_has_no_leave_one_out(kfu, machine):
    Path("one.svm").write_text("1 1:1\n")
    for entry in run(kfu, "one.svm", "-m", machine)["estimates"]:
        assert entry["value"] is None
        assert entry["note"]
    assert by_name(run(kfu, "one.svm", "-m", machine))["exact"]["note"].startswith("one row: ")


def test_notes_begin_with_words(kfu, toy):
    report = run(kfu, toy, "-m", "svr", "--max-iterations", 2, "--no-polish", code=3)
    assert by_name(report)["exact"]["note"].startswith("training stopped")


def test_against_other_labels(kfu, toy):
    Path("text.csv").write_text("yes,1,2,3\nno,2,1,3\n")
    Path("other.svm").write_text("1 1:1\n7 1:2\n")
    for words, said in [
        (("text.csv",), "text.csv: label yes in row 1 is no class of"),
        (("other.svm",), "other.svm: label 7 in row 2 is no class of"),
        (("text.csv", "-m", "svr"), "text.csv: labels that are not numbers"),
    ]:
        result = kfu("loo", toy, "--estimate", "validation", "--against", *words)
        assert result.exit_code == 1, (words, result.stderr)
        assert said in result.stderr
        assert result.stderr.count("\n") == 1


def test_bad_data(kfu, toy, tmp_path):
    unlabelled = tmp_path / "u.csv"
    unlabelled.write_text("a,b\n1,2\n")
    result = kfu("loo", toy, "--against", tmp_path / "none.svm")
    assert result.exit_code == 1
    mixed = tmp_path / "mixed.svm"
    mixed.write_text("1 1:1\n-1 1:1\n1 1:2\n-1 1:2\n")
    result = kfu("loo", mixed, "-k", "linear", "-c", "inf")
    assert result.exit_code == 1
    assert "cannot be separated" in result.stderr


@pytest.mark.skipif(not DATA, reason="KFU_DATA does not name a folder with the data sets")
@pytest.mark.parametrize(
    ("gamma", "errors"), [("0.1", 51), ("0.05", 48), ("0.02", 45), (str(1 / 13), 49)]
)
def test_heart(gamma, errors, kfu):
    """Brute force with LIBSVM at tolerance 1e-7 has these of 270."""
    path = Path(DATA) / "heart_scale.svm.gz"
    found = by_name(run(kfu, path, "-g", gamma, "-c", 1, "--estimate", "exact"))
    assert round(270 * found["exact"]["value"]) == errors
