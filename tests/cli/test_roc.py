"""kfu roc: figures against scikit-learn, points, pictures, comparisons, and what is refused."""

from __future__ import annotations

import csv
import json
import math
import sys

import numpy as np
import pytest
from cli_toys import files_in, libsvm_text, two_classes
from sklearn import metrics

from kfu.cli.main import SUMMARIES
from kfu.io import read_dataset
from kfu.model import Model
from kfu.validation import auc_interval, delong_test, mcnemar


@pytest.fixture
def linear_model(toy, kfu):
    assert kfu("train", toy, "-o", "linear.kfu", "-q", "-k", "linear", "-c", 0.01).exit_code == 0
    return "linear.kfu"


@pytest.fixture
def trees_model(three_classes, kfu):
    assert kfu("train", three_classes, "-o", "trees.kfu", "-q", "-k", "linear").exit_code == 0
    return "trees.kfu"


def report_of(kfu, *args):
    result = kfu("roc", *args, "--report", "report.json", "-q")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    with open("report.json") as stream:
        return json.load(stream)


def rows_of(path, delimiter=","):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream, delimiter=delimiter))


def truth_and_values(model, data):
    dataset = read_dataset(data)
    return dataset.y == 1, Model.load(model).decision_function(dataset.X)[:, 0]


def test_figures_are_those_of_the_decision_values(toy_model, toy_test, kfu):
    y, f = truth_and_values(toy_model, toy_test)
    (found,) = report_of(kfu, toy_model, toy_test)["models"]
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, f))
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(y, f))
    interval = auc_interval(y, f)
    assert (found["auc_low"], found["auc_high"]) == (interval.low, interval.high)
    assert found["accuracy"] == np.mean((f > 0) == y)
    best = found["best_accuracy"]
    assert best["accuracy"] == np.mean((f >= best["threshold"]) == y)
    assert best["accuracy"] >= found["accuracy"]
    assert (found["positive"], found["n_positive"], found["n_negative"]) == ("1", 20, 20)


def test_summary_on_stdout(toy_model, toy_test, kfu):
    result = kfu("roc", toy_model, toy_test)
    y, f = truth_and_values(toy_model, toy_test)
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert lines["rows"].strip() == "40 (20 of class 1)"
    assert lines["auc"].strip().startswith(f"{metrics.roc_auc_score(y, f):.6g} (")
    assert set(lines) == {"rows", "auc", "average precision", "best accuracy", "best youden"}


def test_points_are_the_curve(toy_model, toy_test, kfu):
    assert kfu("roc", toy_model, toy_test, "-o", "p.csv", "-q").exit_code == 0
    y, f = truth_and_values(toy_model, toy_test)
    fpr, tpr, thresholds = metrics.roc_curve(y, f, drop_intermediate=False)
    rows = rows_of("p.csv")
    assert list(rows[0]) == ["threshold", "fpr", "tpr", "precision", "recall", "model", "class"]
    for key, expected in (("threshold", thresholds), ("fpr", fpr), ("tpr", tpr), ("recall", tpr)):
        np.testing.assert_array_equal([float(row[key]) for row in rows], expected)
    precision = metrics.precision_recall_curve(y, f)[0][::-1]
    np.testing.assert_allclose([float(row["precision"]) for row in rows], precision)
    assert {row["class"] for row in rows} == {"1"}
    piped = kfu("roc", toy_model, toy_test, "-o", "-")
    assert piped.stdout.splitlines()[0].split("\t")[:2] == ["threshold", "fpr"]
    assert "average precision" in piped.stderr
    assert len(piped.stdout.splitlines()) == len(rows) + 1


def test_the_other_class_as_positive(toy_model, toy_test, kfu):
    plain = report_of(kfu, toy_model, toy_test)["models"][0]
    other = report_of(kfu, toy_model, toy_test, "--positive", "-1")["models"][0]
    assert other["positive"] == "-1"
    assert other["auc"] == pytest.approx(plain["auc"])
    assert other["average_precision"] != plain["average_precision"]
    assert report_of(kfu, toy_model, toy_test, "--positive", "+1")["models"][0] == plain


def test_two_models_are_compared(toy_model, linear_model, toy_test, kfu):
    found = report_of(kfu, toy_model, toy_test, "--with", linear_model)
    y, first = truth_and_values(toy_model, toy_test)
    second = truth_and_values(linear_model, toy_test)[1]
    (comparison,) = found["comparisons"]
    expected = delong_test(y, first, second)
    assert comparison["delong_p"] == expected.p_value
    assert comparison["auc_difference"] == pytest.approx(expected.mean_difference)
    right = [(f > 0) == y for f in (first, second)]
    assert comparison["mcnemar_p"] == mcnemar(*right).p_value
    assert comparison["correlation"] == pytest.approx(np.corrcoef(first, second)[0, 1])
    assert [model["model"] for model in found["models"]] == [str(toy_model), linear_model]
    shown = kfu("roc", toy_model, toy_test, "--with", linear_model).stdout
    assert "DeLong p" in shown
    assert "McNemar p" in shown


def test_every_class_against_the_rest(trees_model, three_classes, kfu):
    from kfu.pairwise import ovr_scores

    dataset, model = read_dataset(three_classes), Model.load(trees_model)
    scores = ovr_scores(model.decision_function(dataset.X), model.code)
    (found,) = report_of(kfu, trees_model, three_classes, "-o", "t.tsv")["models"]
    names = [entry["positive"] for entry in found["classes"]]
    assert names == ["ash", "birch", "cedar"]
    for k, entry in enumerate(found["classes"]):
        expected = metrics.roc_auc_score(dataset.y == names[k], scores[:, k])
        assert entry["auc"] == pytest.approx(expected)
    assert found["auc"] == pytest.approx(np.mean([entry["auc"] for entry in found["classes"]]))
    assert {row["class"] for row in rows_of("t.tsv", "\t")} == set(names)
    one = report_of(kfu, trees_model, three_classes, "--positive", "birch")["models"][0]
    assert one["auc"] == found["classes"][1]["auc"]
    assert "macro" in kfu("roc", trees_model, three_classes).stdout


def test_classes_without_rows_and_strange_labels(trees_model, kfu, tmp_path):
    (tmp_path / "two.svm").write_text("ash 1:0.1 2:0.1\nbirch 1:3\nash 1:1\nelm 2:2\nbirch 1:2\n")
    result = kfu("roc", trees_model, "two.svm", "--report", "-")
    found = json.loads(result.stdout)
    assert [entry["positive"] for entry in found["models"][0]["classes"]] == ["ash", "birch"]
    assert "no rows of class cedar; no curve of it" in result.stderr
    assert "1 rows have labels that the model does not know (elm)" in result.stderr
    assert found["models"][0]["classes"][0]["n_negative"] == 3
    assert found["models"][0]["accuracy"] == 0.8
    assert len(found["warnings"]) == 2


def test_rows_without_labels_do_not_count(toy_model, toy_test, kfu, tmp_path):
    expected = report_of(kfu, toy_model, toy_test)["models"]
    (tmp_path / "more.svm").write_text(toy_test.read_text() + "0 1:1 2:1\n0 1:-1\n")
    found = report_of(kfu, toy_model, "more.svm")
    assert found["models"] == expected
    assert found["warnings"] == ["2 rows have no label; they are not counted"]


def test_weights_are_repeated_rows(toy_model, toy_test, kfu, tmp_path):
    lines = toy_test.read_text().splitlines(keepends=True)
    counts = np.arange(len(lines)) % 3
    (tmp_path / "w.txt").write_text("".join(f"{count}\n" for count in counts))
    (tmp_path / "r.svm").write_text("".join(np.repeat(lines, counts)))
    (weighted,) = report_of(kfu, toy_model, toy_test, "--weights", "w.txt")["models"]
    (repeated,) = report_of(kfu, toy_model, "r.svm")["models"]
    for key in ("auc", "average_precision", "accuracy"):
        assert weighted[key] == pytest.approx(repeated[key])
    assert weighted["auc_low"] is None
    assert repeated["auc_low"] is not None


# ---- files of scores ------------------------------------------------------------------------


def write_run(path, seed, separator="\t", names=("0", "1")):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3 == 0
    f = rng.normal(size=60) + y
    rows = zip(y, f.tolist(), strict=True)
    path.write_text("".join(f"{names[int(a)]}{separator}{b!r}\n" for a, b in rows))
    return metrics.roc_auc_score(y, f)


def test_runs_are_averaged(kfu, tmp_path):
    separators = ["\t", " ", ",", " ; "]
    areas = [write_run(tmp_path / f"{k}.txt", k, text) for k, text in enumerate(separators)]
    files = [word for k in range(4) for word in ("--scores", f"{k}.txt")]
    found = report_of(kfu, *files, "-o", "p.csv")
    assert [run["auc"] for run in found["runs"]] == pytest.approx(areas)
    assert found["average"]["auc"] == pytest.approx(np.mean(areas))
    assert found["average"]["auc_std"] == pytest.approx(np.std(areas, ddof=1))
    average = [row for row in rows_of("p.csv") if row["model"] == "average of 4 runs"]
    assert len(average) == 101
    assert average[50]["threshold"] == ""
    assert float(average[50]["fpr"]) == 0.5
    assert 0.5 < float(average[50]["tpr"]) <= 1
    assert float(average[50]["tpr_std"]) > 0
    ends = [
        max(
            float(row["precision"])
            for row in rows_of("p.csv")
            if row["model"] == f"{k}.txt" and float(row["recall"]) == 1
        )
        for k in range(4)
    ]
    assert float(average[-1]["precision"]) == pytest.approx(np.mean(ends))
    assert float(average[-1]["precision_std"]) == pytest.approx(np.std(ends, ddof=1))
    assert f"average of 4 runs\nauc                {np.mean(areas):.6g} (std" in (
        kfu("roc", *files).stdout
    )


def test_one_file_with_header_and_text_labels(kfu, tmp_path):
    area = write_run(tmp_path / "a.csv", 1, ",", ("no", "yes"))
    (tmp_path / "a.csv").write_text("# of run 1\nlabel,score\n" + (tmp_path / "a.csv").read_text())
    found = report_of(kfu, "--scores", "a.csv")
    assert found["runs"][0]["auc"] == pytest.approx(area)
    assert found["runs"][0]["positive"] == "yes"
    assert found["average"] is None
    assert report_of(kfu, "--scores", "a.csv", "--positive", "no")["runs"][0]["auc"] == (
        pytest.approx(1 - area)
    )


def test_runs_beside_a_model(toy_model, toy_test, kfu, tmp_path):
    area = write_run(tmp_path / "a.txt", 2, names=("-1", "+1"))
    found = report_of(kfu, toy_model, toy_test, "--scores", "a.txt")
    assert found["runs"][0]["auc"] == pytest.approx(area)
    assert len(found["models"]) == 1


# ---- pictures, config -----------------------------------------------------------------------


def test_pictures(toy_model, linear_model, toy_test, trees_model, three_classes, kfu, tmp_path):
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    args = ["roc", toy_model, toy_test, "--with", linear_model, "--dpi", 40, "-q"]
    assert kfu(*args, "--plot", "a.png", "--crossplot", "c.svg").exit_code == 0
    assert imread("a.png").shape[:2] == (216, 440)
    drawn = (tmp_path / "c.svg").read_text()
    assert drawn.count("<use ") >= 40  # a mark for each row
    before = (tmp_path / "a.png").read_bytes()
    assert kfu(*args, "--plot", "a.png").exit_code == 0
    assert (tmp_path / "a.png").read_bytes() == before
    files = []
    for k in range(2):
        write_run(tmp_path / f"{k}.txt", k)
        files += ["--scores", f"{k}.txt"]
    assert kfu("roc", *files, "--plot", "s.pdf", "-q").exit_code == 0
    assert (tmp_path / "s.pdf").read_bytes().startswith(b"%PDF")
    assert kfu("roc", trees_model, three_classes, "--plot", "t.svg", "-q").exit_code == 0
    assert "macro average" in (tmp_path / "t.svg").read_text()


def test_without_matplotlib(toy_model, toy_test, kfu, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = kfu("roc", toy_model, toy_test, "--plot", "p.png")
    assert result.exit_code == 1
    assert "pip install 'kfu[plot]'" in result.stderr
    assert kfu("roc", toy_model, toy_test).exit_code == 0


def test_config_file(toy_model, linear_model, toy_test, kfu, tmp_path):
    (tmp_path / "c.yaml").write_text(
        f"model_path: {toy_model}\ndata: {toy_test}\nwith: [{linear_model}]\npositive: -1\n"
    )
    found = report_of(kfu, "--config", "c.yaml")
    assert len(found["models"]) == 2
    assert found["models"][0]["positive"] == "-1"
    assert report_of(kfu, "--config", "c.yaml", "--positive", "1")["models"][1]["positive"] == "1"


def test_model_of_another_program_and_stdin(toy_model, toy_test, kfu, kfu_process):
    assert kfu("convert", toy_model, "toy.libsvm-model", "--to", "libsvm").exit_code == 0
    expected = report_of(kfu, toy_model, toy_test)["models"][0]["auc"]
    assert report_of(kfu, "toy.libsvm-model", toy_test)["models"][0]["auc"] == pytest.approx(
        expected
    )
    piped = kfu_process("roc", toy_model, "-", "--report", "-", input=toy_test.read_text())
    assert json.loads(piped.stdout)["models"][0]["auc"] == expected


# ---- refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([], 2, "nothing to draw; give MODEL and DATA, or --scores FILE"),
        (["M"], 2, "without data"),
        (["M", "T", "--positive", "2"], 2, "--positive 2: the classes of"),
        (["M", "one.svm"], 1, "one.svm: every label is 1; a curve needs rows of two classes"),
        (["M", "strange.svm"], 1, "every label is unknown to the model"),
        (["M", "T", "--with", "trees.kfu"], 1, "trees.kfu: its classes are not those of"),
        (["M", "T", "--crossplot", "c.png"], 2, "give one --with, not 0"),
        (["M", "T", "--plot", "p.txt"], 2, "end it in .png, .pdf or .svg"),
        (["M", "T", "-o", "absent/p.csv"], 1, "no directory 'absent'"),
        (["M", "T", "-o", "M"], 2, "would overwrite the input"),
        (["M", "T", "-o", "-", "--report", "-"], 2, "cannot both go to stdout"),
        (["M", "T", "--plot", "p.png", "--crossplot", "p.png", "--with", "M"], 2, "both write"),
        (["M", "T", "--confidence", "95"], 2, "give a number below 1, like 0.95"),
        (["M", "absent.svm"], 1, "absent.svm: no such file"),
        (["--scores", "absent.txt"], 1, "absent.txt: no such file"),
        (["--scores", "nan.txt"], 1, "nan.txt:2: score 'nan'; scores have to be finite"),
        (["--scores", "word.txt"], 1, "word.txt:2: score 'x'"),
        (["--scores", "wide.txt"], 1, "wide.txt:1: 3 columns; write the label and the score"),
        (["--scores", "empty.txt"], 1, "empty.txt: no rows"),
        (["--scores", "same.txt"], 1, "same.txt: every label is 1"),
        (["--scores", "many.txt"], 2, "many.txt has 3 labels (1, 2, 3); choose one with --pos"),
        (["--scores", "many.txt", "--positive", "4"], 2, "the labels of many.txt are 1, 2, 3"),
        (["--scores", "good.txt", "--scores", "same.txt"], 1, "same.txt: label 1 is the only"),
        (["--scores", "good.txt", "--with", "M"], 2, "--with compares with MODEL"),
        (["--scores", "good.txt", "--weights", "w"], 2, "--weights are those of DATA's rows"),
        (["trees.kfu", "trees.svm", "--scores", "good.txt"], 2, "--scores hold one class"),
        (
            ["trees.kfu", "trees.svm", "--with", "trees.kfu", "--crossplot", "c.png"],
            2,
            "--crossplot shows one class; choose it with --positive",
        ),
    ],
)
def test_refused(args, code, words, kfu, toy_model, toy_test, trees_model, tmp_path):
    texts = {
        "one.svm": "1 1:1\n1 1:2\n",
        "strange.svm": "7 1:1\n8 1:2\n",
        "good.txt": "0 1\n1 2\n",
        "nan.txt": "1 0.5\n0 nan\n",
        "word.txt": "1 0.5\n0 x\n",
        "wide.txt": "1 0.5 2\n",
        "empty.txt": "# nothing\n",
        "same.txt": "1 0.5\n1 0.2\n",
        "many.txt": "1 0.5\n2 0.2\n3 0.1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    before = files_in(tmp_path)
    known = {"M": toy_model, "T": toy_test}
    result = kfu("roc", *(known.get(arg, arg) for arg in args))
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert files_in(tmp_path) == before


def test_data_without_labels(toy_model, kfu, tmp_path):
    np.savez(tmp_path / "x.npz", X=two_classes()[0])
    result = kfu("roc", toy_model, "x.npz")
    assert result.exit_code == 1
    assert "the data have no labels; a curve needs labelled rows" in result.stderr


def test_values_that_are_not_finite(kfu, toy_test, toy, tmp_path):
    (tmp_path / "far.svm").write_text("1 1:1e200 2:1e200\n-1 1:-1e200 2:1\n")
    assert kfu("train", toy, "-k", "poly", "-d", 3, "-o", "cubic.kfu", "-q").exit_code == 0
    result = kfu("roc", "cubic.kfu", "far.svm")
    assert result.exit_code == 1
    assert "(counted from 0) is" in result.stderr or "not finite" in result.stderr


def test_tiny_data_have_no_interval(toy_model, kfu, tmp_path):
    (tmp_path / "two.svm").write_text(libsvm_text(*two_classes(n=2)))
    (found,) = report_of(kfu, toy_model, "two.svm")["models"]
    assert found["auc"] in (0.0, 1.0)
    assert found["auc_low"] is None
    shown = kfu("roc", toy_model, "two.svm").stdout
    assert "nan" not in shown
    assert math.isfinite(found["best_accuracy"]["threshold"])


def test_summary_of_the_command_is_its_help(kfu):
    assert SUMMARIES["roc"] in kfu("roc", "--help").stdout
