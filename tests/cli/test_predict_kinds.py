"""kfu predict by kind of machine: its figures, labels it does not know, agreement, pictures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_toys import libsvm_text, two_classes

from kfu.io import read_dataset
from kfu.model import Model

PNG = b"\x89PNG"


def run(kfu, *args):
    result = kfu(*args)
    assert result.exit_code == 0, result.stderr
    return result


def report_of(kfu, model, data, *args):
    return json.loads(run(kfu, "predict", model, data, "-o", "out", "--report", "-", *args).stdout)


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    X = rng.uniform(-3, 3, size=(60, 1))
    path = tmp_path / "curve.svm"
    path.write_text(libsvm_text(X, np.round(np.sin(X[:, 0]) + 0.1 * rng.normal(size=60), 4)))
    return path


class TestRegression:
    @pytest.mark.parametrize("machine", ["svr", "nu-svr"])
    def test_figures(self, machine, kfu, curve):
        metrics = pytest.importorskip("sklearn.metrics")
        run(kfu, "train", curve, "-m", machine, "-c", 10, "-o", "m.kfu", "-q")
        report = report_of(kfu, "m.kfu", curve)
        y = read_dataset(curve).y
        f = np.array(Path("out").read_text().split(), float)
        assert report["mse"] == pytest.approx(metrics.mean_squared_error(y, f), rel=1e-12)
        assert report["mae"] == pytest.approx(metrics.mean_absolute_error(y, f), rel=1e-12)
        assert report["r2"] == pytest.approx(metrics.r2_score(y, f), rel=1e-12)
        assert report["correlation"] == pytest.approx(np.corrcoef(y, f)[0, 1], rel=1e-9)
        assert report["n"] == report["n_labelled"] == 60
        assert "accuracy" not in report
        shown = run(kfu, "predict", "m.kfu", curve, "-o", "out").stdout
        assert "mse" in shown
        assert "accuracy" not in shown

    def test_numbers_are_exact(self, kfu, curve):
        run(kfu, "train", curve, "-m", "svr", "-o", "m.kfu", "-q")
        expected = Model.load("m.kfu").decision_function(read_dataset(curve).X)[:, 0]
        said = run(kfu, "predict", "m.kfu", curve, "-q").stdout
        np.testing.assert_array_equal(np.array(said.split(), float), expected)
        both = run(kfu, "predict", "m.kfu", curve, "-q", "--output", "both").stdout.splitlines()
        assert both[0] == "# label\tvalue"
        assert all(len(set(line.split("\t"))) == 1 for line in both[1:])

    def test_labels_that_are_missing(self, kfu, curve):
        run(kfu, "train", curve, "-m", "svr", "-o", "m.kfu", "-q")
        whole = report_of(kfu, "m.kfu", curve)
        lines = curve.read_text().splitlines()
        Path("gaps.svm").write_text("\n".join(["? 1:0.5", *lines, "? 1:1"]) + "\n")
        gaps = report_of(kfu, "m.kfu", "gaps.svm")
        assert gaps["n"] == 62
        assert gaps["n_labelled"] == 60
        assert gaps["mse"] == pytest.approx(whole["mse"])
        assert gaps["warnings"] == ["2 rows have no number as label; they are not counted"]
        none = report_of(kfu, "m.kfu", curve, "--no-labels")
        assert none["mse"] is None
        assert none["n_labelled"] == 0

    def test_one_row_and_constant_targets(self, kfu, curve):
        run(kfu, "train", curve, "-m", "svr", "-o", "m.kfu", "-q")
        for text in ("1 1:0.5\n", "1 1:0.5\n1 1:0.7\n"):
            Path("few.svm").write_text(text)
            report = report_of(kfu, "m.kfu", "few.svm")
            assert report["mse"] > 0
            assert report["r2"] is None  # no spread to explain


class TestRanking:
    @pytest.fixture
    def graded(self, tmp_path: Path) -> Path:
        rng = np.random.default_rng(2)
        X = rng.normal(size=(48, 3))
        grades = np.digitize(X[:, 0] + 0.4 * rng.normal(size=48), [-0.8, 0.3, 1.2])
        lines = libsvm_text(X, grades).splitlines()
        lines = [line.replace(" ", f" qid:{k // 8} ", 1) for k, line in enumerate(lines)]
        path = tmp_path / "graded.svm"
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_figures(self, kfu, graded):
        metrics = pytest.importorskip("sklearn.metrics")
        run(kfu, "train", graded, "-m", "rank", "-o", "m.kfu", "-q")
        report = report_of(kfu, "m.kfu", graded, "--block-rows", 5)  # queries across blocks
        data = read_dataset(graded)
        f = np.array(Path("out").read_text().split(), float)
        queries = [np.flatnonzero(data.qid == q) for q in np.unique(data.qid)]
        by_query = [
            metrics.ndcg_score([2.0 ** data.y[rows] - 1], [f[rows]], k=10) for rows in queries
        ]
        assert report["ndcg"] == pytest.approx(np.mean(by_query))
        pairs = [(i, j) for rows in queries for i in rows for j in rows if data.y[i] > data.y[j]]
        wrong = np.mean([f[i] <= f[j] for i, j in pairs])
        assert report["pair_error"] == pytest.approx(wrong)
        assert report["n_queries"] == 6

    def test_data_without_queries(self, kfu, graded):
        run(kfu, "train", graded, "-m", "rank", "-o", "m.kfu", "-q")
        text = "".join(
            line.split(" ")[0] + " " + " ".join(line.split(" ")[2:]) + "\n"
            for line in graded.read_text().splitlines()
        )
        Path("plain.svm").write_text(text)
        report = report_of(kfu, "m.kfu", "plain.svm")
        assert report["n_queries"] == 1
        assert report["warnings"] == ["rows without qid: all rows count as one query"]


class TestNovelty:
    def test_labels(self, kfu, toy):
        args = ["--nu", 0.2, "-g", 0.5, "-e", 1e-7, "-o", "m.kfu", "-q"]
        run(kfu, "train", toy, "-m", "one-class", *args)
        said = np.array(run(kfu, "predict", "m.kfu", toy, "-q").stdout.split())
        decision = Model.load("m.kfu").decision_function(read_dataset(toy).X)[:, 0]
        np.testing.assert_array_equal(said == "1", decision > 0)
        # nu bounds the share of outliers from above (rows on the boundary are f = 0).
        assert 0.0 < np.mean(decision < -1e-6) <= 0.2 <= np.mean(decision < 1e-6)
        Path("far.svm").write_text("1 1:100 2:100 3:100\n")
        assert run(kfu, "predict", "m.kfu", "far.svm", "-q").stdout == "-1\n"

    def test_other_labels_are_not_errors_to_count(self, kfu, three_classes):
        run(kfu, "train", three_classes, "-m", "one-class", "-o", "m.kfu", "-q")
        result = run(kfu, "predict", "m.kfu", three_classes, "-o", "out")
        assert set(Path("out").read_text().split()) == {"1", "-1"}
        assert "no row has a label of the model" in result.stderr
        assert "accuracy" not in result.stdout


class TestClasses:
    def test_labels_never_seen(self, kfu, three_classes):
        run(kfu, "train", three_classes, "-o", "m.kfu", "-q", "--probability")
        lines = three_classes.read_text().splitlines()
        Path("new.svm").write_text("\n".join(["oak 1:1 2:1", "? 1:0 2:0", *lines]) + "\n")
        whole = report_of(kfu, "m.kfu", three_classes)
        report = report_of(kfu, "m.kfu", "new.svm")
        assert report["n"] == 92
        assert report["n_labelled"] == 91  # oak counts, and is wrong
        assert report["accuracy"] == pytest.approx(whole["accuracy"] * 90 / 91)
        assert report["log_loss"] == pytest.approx(whole["log_loss"])  # of rows it knows
        assert any("oak" in text for text in report["warnings"])

    def test_none_at_all(self, kfu, three_classes):
        run(kfu, "train", three_classes, "-o", "m.kfu", "-q", "--probability")
        report = report_of(kfu, "m.kfu", three_classes, "--no-labels")
        assert report["accuracy"] is None
        assert "log_loss" not in report
        assert "error_bound" not in report


class TestAgreement:
    def test_shares(self, kfu, three_classes):
        for name, args in {"a": [], "b": ["--multiclass", "ova"], "c": ["-m", "knn"]}.items():
            run(kfu, "train", three_classes, *args, "-o", f"{name}.kfu", "-q", "-g", 0.5)
        report = report_of(kfu, "a.kfu", three_classes, "--with", "b.kfu", "--with", "c.kfu")
        said = [
            np.array(run(kfu, "predict", f"{name}.kfu", three_classes, "-q").stdout.split())
            for name in "abc"
        ]
        assert report["agreement"]["models"] == ["a.kfu", "b.kfu", "c.kfu"]
        expected = [[np.mean(one == two) for two in said] for one in said]
        np.testing.assert_allclose(report["agreement"]["shares"], expected)
        together = np.mean((said[0] == said[1]) & (said[1] == said[2]))
        assert report["agreement"]["unanimous"] == pytest.approx(together)
        shown = run(kfu, "predict", "a.kfu", three_classes, "-o", "out", "--with", "b.kfu").stdout
        assert "agreement" in shown

    def test_other_classes_are_refused(self, kfu, toy_model, toy, three_classes):
        run(kfu, "train", three_classes, "-o", "m.kfu", "-q")
        result = kfu("predict", toy_model, toy, "--with", "m.kfu")
        assert result.exit_code == 2
        assert "--with m.kfu: its classes are others" in result.stderr


class TestPlot:
    @pytest.fixture(autouse=True)
    def needs_matplotlib(self):
        pytest.importorskip("matplotlib")

    @pytest.mark.parametrize("args", [["--probability"], ["--multiclass", "ova"]], ids=str)
    def test_draws(self, args, kfu, three_classes):
        run(kfu, "train", three_classes, *args, "-o", "m.kfu", "-q")
        run(kfu, "predict", "m.kfu", three_classes, "-o", "out", "--plot", "p.png", "-q")
        assert Path("p.png").read_bytes().startswith(PNG)

    def test_nothing_to_draw(self, kfu, toy_model, toy):
        result = kfu("predict", toy_model, toy, "-o", "out", "--plot", "p.png")
        assert result.exit_code == 2
        assert "train it with --probability" in result.stderr
        assert not Path("out").exists()

    def test_no_labels_to_draw_with(self, kfu, three_classes):
        run(kfu, "train", three_classes, "--probability", "-o", "m.kfu", "-q")
        args = ["-o", "out", "--plot", "p.png", "--no-labels"]
        result = kfu("predict", "m.kfu", three_classes, *args)
        assert result.exit_code == 1
        assert "no labels to draw with" in result.stderr
        assert not Path("p.png").exists()


@pytest.mark.parametrize(
    ("machine", "args"),
    [
        ("svc", []),
        ("svc", ["--probability"]),
        ("svc", ["--regularised-bias"]),
        ("svc2", ["--no-bias"]),
        ("svc", ["--margins", "auto"]),
        ("nu-svc", []),
        ("one-class", []),
        ("svr", []),
        ("nu-svr", []),
        ("centroid", []),
    ],
)
def test_precomputed_kernels(machine, args, kfu, tmp_path):
    """Kernel values in, the answers of the kernel out."""
    X, y = two_classes(n=50)
    T, _ = two_classes(n=20, seed=2)
    gamma = 0.5

    def kernel(A):
        return np.exp(-gamma * ((A[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))

    for name, rows in (("train", X), ("test", T)):
        label = y if name == "train" else np.ones(len(rows))
        np.savez(f"{name}-rows.npz", X=rows, y=label)
        np.savez(f"{name}-kernel.npz", X=kernel(rows), y=label)
    rest = ["-m", machine, *args, "-q", "-e", 1e-7]
    run(kfu, "train", "train-rows.npz", "-g", gamma, *rest, "-o", "rows.kfu")
    run(kfu, "train", "train-kernel.npz", "-k", "precomputed", *rest, "-o", "kernel.kfu")
    output = "probabilities" if "--probability" in args else "both"
    found = [
        run(kfu, "predict", f"{name}.kfu", f"test-{name}.npz", "--output", output, "-q").stdout
        for name in ("rows", "kernel")
    ]
    tables = [
        np.array([line.split("\t") for line in text.splitlines()[1:]], float) for text in found
    ]
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-5)


def test_a_rival_given_twice_counts_once(kfu, toy):
    assert kfu("train", toy, "-o", "a.kfu", "-q").exit_code == 0
    assert kfu("train", toy, "-c", 5, "-o", "b.kfu", "-q").exit_code == 0
    result = kfu("predict", "a.kfu", toy, "-o", "out", "--with", "b.kfu", "--with", "b.kfu")
    assert result.exit_code == 0, result.stderr
