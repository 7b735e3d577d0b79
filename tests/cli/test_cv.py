"""kfu cv: splittings, figures, the file of rows, a second learner, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from cli_toys import files_in, libsvm_text

from kfu import KernelSpec, train
from kfu.io import read_dataset
from kfu.machines import MACHINES
from kfu.solvers import SolverSettings
from kfu.validation.compare import corrected_resampled_t_test
from kfu.validation.folds import SPLITTERS, make_folds


def run(kfu, *args):
    result = kfu("cv", *args, "--report", "cv.json", "-q")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    return json.loads(Path("cv.json").read_text())


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """60 rows of 12 queries, grades 0 to 2."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=60), [-0.5, 0.8])
    lines = libsvm_text(X, grades).splitlines()
    path = tmp_path / "queries.svm"
    text = [line.replace(" ", f" qid:{k // 5} ", 1) + "\n" for k, line in enumerate(lines)]
    path.write_text("".join(text))
    return path


def test_report(kfu, toy):
    report = run(kfu, toy, "-g", 0.5, "-f", 4, "--seed", 7)
    data = read_dataset(toy)
    errors = []
    for rows, test in make_folds("stratified", data.n, k=4, labels=data.y, seed=7):
        model = train(data.X[rows], data.y[rows], kernel=KernelSpec.make("rbf", gamma=0.5))
        errors.append(np.mean(model.predict(data.X[test]) != data.y[test]))
    assert [fold["error"] for fold in report["folds"]] == errors
    assert report["error"] == pytest.approx(np.mean(errors))
    assert report["error_std"] == pytest.approx(np.std(errors, ddof=1))
    assert report["accuracy"] == pytest.approx(1 - report["error"])
    assert report["n_errors"] == round(20 * sum(errors))
    assert report["pooled_error"] == report["n_errors"] / 80
    assert report["n_folds"] == 4
    assert report["n"] == 80
    assert np.sum(report["confusion"]["counts"]) == 80
    for fold in report["folds"]:
        assert (fold["n_train"], fold["n_test"]) == (60, 20)
        assert fold["status"] == "converged"
        assert fold["n_sv"] > 0
    assert report["iterations"] == sum(fold["iterations"] for fold in report["folds"])
    assert report["kernel_evaluations"] > 0
    assert report["warnings"] == []


def test_summary_and_stdout_report(kfu, toy):
    shown = kfu("cv", toy, "-f", 3)
    assert shown.exit_code == 0
    assert "error" in shown.stdout
    assert "±" in shown.stdout
    assert shown.stderr == ""
    assert json.loads(kfu("cv", toy, "-f", 3, "--report", "-").stdout)["n_folds"] == 3


@pytest.mark.parametrize("kind", SPLITTERS)
def test_splittings(kind, kfu, queries):
    args = [] if kind in ("loo", "hold-out") else ["-f", 4]
    report = run(kfu, queries, "--by", kind, *args, "-o", "rows.tsv")
    expected = make_folds(
        kind,
        60,
        k=4,
        labels=read_dataset(queries).y,
        groups=read_dataset(queries).qid,
        seed=0,
    )
    assert report["n_folds"] == len(expected)
    lines = [line.split("\t") for line in Path("rows.tsv").read_text().splitlines()[1:]]
    for number, test in enumerate(expected.tests, start=1):
        rows = [int(row) - 1 for fold, row, *_ in lines if int(fold) == number]
        assert rows == test.tolist()


def test_repeats_draw_again(kfu, toy):
    report = run(kfu, toy, "-f", 3, "--repeats", 4)
    assert report["n_folds"] == 12
    assert report["folds"][:3] == [
        {**a, "iterations": b["iterations"]}
        for a, b in zip(run(kfu, toy, "-f", 3)["folds"], report["folds"][:3], strict=True)
    ]
    assert len({json.dumps(fold["error"]) for fold in report["folds"]}) > 1
    assert np.sum(report["confusion"]["counts"]) == 4 * 80


def test_groups_from_a_file_stay_together(kfu, toy):
    names = [f"patient {k % 9}" for k in range(80)]
    Path("groups.txt").write_text("".join(f"{name}  # of 9\n" for name in names))
    run(kfu, toy, "--groups", "groups.txt", "-f", 3, "-o", "rows.tsv")
    fold_of: dict[str, set[str]] = {}
    for line in Path("rows.tsv").read_text().splitlines()[1:]:
        fold, row, *_ = line.split("\t")
        fold_of.setdefault(names[int(row) - 1], set()).add(fold)
    assert len(fold_of) == 9
    assert all(len(folds) == 1 for folds in fold_of.values())


def test_the_file_of_rows(kfu, three_classes):
    report = run(kfu, three_classes, "-f", 3, "-g", 0.5, "-o", "rows.tsv")
    header, *lines = Path("rows.tsv").read_text().splitlines()
    assert header == "# fold\trow\tlabel\tpredicted\toutput1\toutput2\toutput3"
    cells = [line.split("\t") for line in lines]
    assert sorted(int(cell[1]) for cell in cells) == list(range(1, 91))
    truth = read_dataset(three_classes).y
    assert all(cell[2] == truth[int(cell[1]) - 1] for cell in cells)
    assert sum(cell[2] != cell[3] for cell in cells) == report["n_errors"]


@pytest.mark.parametrize("machine", [name for name in MACHINES if name != "kpm"])
def test_every_machine(machine, kfu, queries):
    report = run(kfu, queries, "-m", machine, "-f", 3)
    assert report["machine"] == machine
    scores = {
        "regressor": ("mse", "mae", "r2"),
        "ranker": ("ndcg", "pair_error"),
        "novelty": ("outliers",),  # the labels are not 1 and -1
        "classifier": ("error", "accuracy"),
    }[MACHINES[machine].kind]
    for name in scores:
        assert np.isfinite(report[name])
        assert np.isfinite(report[f"{name}_std"])
    assert ("confusion" in report) == (MACHINES[machine].kind == "classifier")


# ---- leave-one-out --------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["svc", "svc2", "nu-svc", "svr", "centroid"])
def test_leave_one_out_is_training_without_the_row(machine, kfu, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 2)) + y[:, None]
    np.savez("d.npz", X=X, y=y)
    options = {"nu": 0.3} if machine == "nu-svc" else {}
    args = ["--nu", 0.3] if options else []
    report = run(
        kfu, "d.npz", "-m", machine, "-g", 0.5, "--by", "loo", "-e", 1e-8, "-o", "r", *args
    )
    found = [line.split("\t") for line in Path("r").read_text().splitlines()[1:]]
    for row in range(24):
        kept = np.arange(24) != row
        model = train(
            X[kept],
            y[kept],
            machine=machine,
            kernel=KernelSpec.make("rbf", gamma=0.5),
            settings=SolverSettings(tolerance=1e-8),
            **options,
        )
        f = model.decision_function(X[row : row + 1])[0, 0]
        assert float(found[row][4]) == pytest.approx(f, abs=1e-5)
    assert report["n_folds"] == 24


@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets")
@pytest.mark.parametrize(("gamma", "errors"), [(0.1, 51), (0.05, 48), (0.02, 45), (1 / 13, 49)])
def test_leave_one_out_of_heart(gamma, errors, kfu):
    data = Path(os.environ["KFU_DATA"]) / "heart_scale.svm.gz"
    assert run(kfu, data, "-g", gamma, "-c", 1, "--by", "loo")["n_errors"] == errors


# ---- a second learner -----------------------------------------------------------------------


class TestAgainst:
    def test_the_same_folds_and_the_corrected_test(self, kfu, toy):
        Path("rival.yaml").write_text("kernel: linear\ncost: 0.1\n")
        report = run(kfu, toy, "-g", 0.5, "-f", 4, "--against", "rival.yaml")
        alone = run(kfu, toy, "-k", "linear", "-c", 0.1, "-f", 4)
        rival = report["against"]
        assert rival["score"] == "error"
        assert rival["mean"] == pytest.approx(alone["error"])
        assert rival["std"] == pytest.approx(alone["error_std"])
        differences = [
            a["error"] - b["error"] for a, b in zip(report["folds"], alone["folds"], strict=True)
        ]
        test = corrected_resampled_t_test(differences, 60, 20)
        assert rival["difference"] == pytest.approx(np.mean(differences))
        assert rival["p_value"] == pytest.approx(test.p_value)
        assert (rival["low"], rival["high"]) == pytest.approx((test.low, test.high))

    @pytest.mark.parametrize(
        ("text", "args"),
        [
            ("machine: knn\n", ["-m", "knn"]),
            ("machine: nu-svc\nnu: 0.3\n", ["-m", "nu-svc", "--nu", 0.3]),
            ("class-weight: {1: 3}\n", ["-c", 5, "-g", 0.5, "-w", "1=3"]),
            ("class_weight: balanced\n", ["-c", 5, "-g", 0.5, "-w", "balanced"]),
            ("no-bias: true\n", ["-c", 5, "-g", 0.5, "--no-bias"]),
            ("scale: standard\n", ["-c", 5, "-g", 0.5, "--scale", "standard"]),
            ("sigma: 2\n", ["-c", 5, "--sigma", 2]),
            ("kernel-file: k.yaml\n", ["-c", 5, "--kernel-file", "k.yaml"]),
        ],
    )
    def test_what_the_file_changes(self, text, args, kfu, toy):
        """The rest is as in the command, unless the machine of the file has no use for it."""
        Path("rival.yaml").write_text(text)
        Path("k.yaml").write_text("name: rbf\ngamma: 0.01\n")
        if "machine" in text:
            args = [*args, "-g", 0.5]
        report = run(kfu, toy, "-c", 5, "-g", 0.5, "-f", 3, "--against", "rival.yaml")
        alone = run(kfu, toy, *args, "-f", 3)
        assert report["against"]["mean"] == pytest.approx(alone["error"])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("nonsense: 1\n", "rival.yaml: 'nonsense' is no option of a learner"),
            ("folds: 3\n", "rival.yaml: 'folds' is no option of a learner"),
            ("label-column: 2\n", "'label-column' is no option of a learner"),
            ("cost: -1\n", "rival.yaml: cost: -1 is out of range"),
            ("machine: svr\n", "svr is a regressor, and svc a classifier"),
            ("machine: knn\ncost: 2\n", "machine knn has no cost"),
            ("- a\n", "rival.yaml: holds a list"),
            ("kernel: precomputed\n", "cannot be read from the same data"),
        ],
    )
    def test_refused(self, text, words, kfu, toy, tmp_path):
        Path("rival.yaml").write_text(text)
        before = files_in(tmp_path)
        result = kfu("cv", toy, "-f", 3, "--against", "rival.yaml", "--report", "r.json")
        assert result.exit_code == 2, result.stdout
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
        assert files_in(tmp_path) == before

    def test_one_split_has_no_test(self, kfu, toy):
        Path("rival.yaml").write_text("cost: 10\n")
        report = run(kfu, toy, "--by", "hold-out", "--against", "rival.yaml")
        assert "p_value" not in report["against"]


# ---- errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["-f", 1], 2, "1 fold; give a whole number from 2 on"),
        (["-f", 81], 2, "81 folds of 80 rows; give at most as many folds as rows"),
        (["-f", 0], 2, "0 is out of range"),
        (["--by", "loo", "-f", 5], 2, "--by loo has as many folds as rows"),
        (["--by", "strat"], 2, "no splitting 'strat' (did you mean 'stratified'?)"),
        (["--by", "sequential", "--repeats", 2], 2, "are the same every time"),
        (["--by", "group"], 1, "no qid: --by group needs the group of each row"),
        (["--groups", "none.txt"], 1, "none.txt: no such file"),
        (["--groups", "short.txt"], 1, "short.txt: 2 groups for the 80 rows"),
        (["--groups", "same.txt"], 2, "10 folds of 1 groups"),
        (["-m", "svr", "--by", "stratified"], 2, "machine svr has no classes to stratify"),
        (["-m", "rank"], 1, "no qid"),
        (["-m", "knn", "-c", 1], 2, "machine knn has no cost"),
        (["-o", "toy.svm"], 2, "-o toy.svm would overwrite the input"),
        (["--probability"], 2, "No such option"),
    ],
    ids=str,
)
def test_refused(args, code, words, kfu, toy, tmp_path):
    Path("short.txt").write_text("a\nb\n")
    Path("same.txt").write_text("a\n" * 80)
    before = files_in(tmp_path)
    result = kfu("cv", toy, *args)
    assert result.exit_code == code, result.stdout + result.stderr
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == before


def test_one_row_has_no_order(kfu, queries):
    result = kfu("cv", queries, "-m", "rank", "--by", "loo")
    assert result.exit_code == 2
    assert "--by group" in result.stderr


class TestLonelyClass:
    @pytest.fixture
    def lonely(self, toy: Path) -> Path:
        with toy.open("a") as stream:
            stream.write("7 1:9 2:9 3:9\n")
        return toy

    @pytest.mark.parametrize(
        ("args", "code", "words"),
        [
            ([], 2, "class '7' has one example"),
            (["--by", "k-fold"], 1, "a fold leaves no training row of class 7;"),
            (["--by", "loo"], 1, "a fold leaves no training row of class 7;"),
        ],
    )
    def test_is_named(self, args, code, words, kfu, lonely):
        result = kfu("cv", lonely, *args)
        assert result.exit_code == code
        assert words in result.stderr

    def test_hold_out_trains_on_it(self, kfu, lonely):
        report = run(kfu, lonely, "--by", "hold-out")
        assert "class '7' has a single row, which is not tested" in report["warnings"]


def test_folds_that_stop_early_are_told(kfu, toy):
    result = kfu("cv", toy, "-f", 3, "-c", 1000, "--max-iterations", 5, "--report", "-")
    report = json.loads(result.stdout)
    assert report["warnings"] == ["3 of 3 folds stopped before convergence (max_iterations)"]
    assert "3 of 3 folds stopped before convergence" in result.stderr
