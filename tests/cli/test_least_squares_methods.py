"""How ``-m rls`` and ``-m rlsc`` solve their equations, their rivals, and what is reported."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import kfu.least_squares.memory as memory
from kfu.io import read_dataset
from kfu.least_squares import rectangle_cost
from kfu.model import Model

RBF = ["-g", "0.5"]


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=80)
    path = tmp_path / "numbers.npz"
    np.savez(path, X=X, y=y)
    return path


def trained(kfu, *args, code=0):
    result = kfu("train", *args, "-o", "m.kfu", "--report", "r.json")
    assert result.exit_code == code, result.stderr
    with open("r.json") as stream:
        return json.load(stream), Model.load("m.kfu")


def kernel_matrix(path, gamma=0.5):
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays["y"]
    return np.exp(-gamma * np.square(X[:, None] - X[None]).sum(-1)), X, y


class TestConjugateGradients:
    @pytest.mark.parametrize("bias", [[], ["--bias"]])
    def test_same_machine_as_the_factor(self, kfu, numbers, bias):
        _, factor = trained(kfu, numbers, "-m", "rls", "--ridge", 0.3, *RBF, *bias)
        report, found = trained(
            kfu, numbers, "-m", "rls", "--ridge", 0.3, "--method", "cg", *RBF, *bias
        )
        assert report["method"] == "cg"
        assert report["iterations"] >= 1
        assert 0 <= report["residual"] <= 1e-8
        assert report["preconditioner"] == "random-pivots"
        assert report["rank"] >= 1
        assert "loo_mse" not in report
        points = np.random.default_rng(1).normal(size=(20, 2))
        np.testing.assert_allclose(
            found.decision_function(points), factor.decision_function(points), atol=1e-6
        )

    @pytest.mark.parametrize("code", ["ova", "ava"])
    def test_classes(self, kfu, three_classes, code):
        args = [three_classes, "-m", "rlsc", "--ridge", 0.5, "--multiclass", code, *RBF]
        exact, factor = trained(kfu, *args)
        report, found = trained(kfu, *args, "--method", "cg")
        X = read_dataset(str(three_classes)).X
        np.testing.assert_allclose(
            found.decision_function(X), factor.decision_function(X), atol=1e-6
        )
        if code == "ova":  # the bound needs coefficients only
            assert report["loo_error_bound"] == pytest.approx(exact["loo_error_bound"])

    def test_taken_where_the_matrix_does_not_fit(self, kfu, numbers, monkeypatch):
        monkeypatch.setattr("kfu.machines.square_loss.full.matrix_bytes", lambda n: 2**60)
        report, _ = trained(kfu, numbers, "-m", "rls", "--ridge", 0.3, *RBF)
        assert report["method"] == "cg"
        assert any("1.0 EiB" in text or "TiB" in text for text in report["warnings"])
        assert any("--approximation rectangle" in text for text in report["warnings"])

    def test_stopped_early(self, kfu, numbers):
        report, _ = trained(
            kfu, numbers, "-m", "rls", "--ridge", 1e-6, "-g", 3, "--method", "cg",
            "--max-iterations", 1, code=3,
        )  # fmt: skip
        assert report["status"] == "max_iterations"
        assert report["iterations"] == 1

    def test_linear_kernel(self, kfu, numbers):
        report, found = trained(
            kfu, numbers, "-m", "rls", "-k", "linear", "--ridge", 2, "--method", "cg"
        )
        assert report["method"] == "cg"
        _, X, y = kernel_matrix(numbers)
        v = np.linalg.solve(X.T @ X + 2 * np.eye(2), X.T @ y)
        np.testing.assert_allclose(found.decision_function(X)[:, 0], X @ v, atol=1e-7)

    def test_linear_kernel_by_its_matrix(self, kfu, numbers):
        report, found = trained(
            kfu, numbers, "-m", "rls", "-k", "linear", "--ridge", 2, "--method", "cholesky"
        )
        assert (report["method"], found.n_sv) == ("cholesky", 80)


class TestFreeBias:
    def test_ls_svm(self, kfu, numbers):
        report, found = trained(kfu, numbers, "-m", "rls", "--ridge", 0.3, "--bias", *RBF)
        K, _, y = kernel_matrix(numbers)
        n = len(y)
        system = np.block(
            [[np.zeros((1, 1)), np.ones((1, n))], [np.ones((n, 1)), K + 0.3 * np.eye(n)]]
        )
        expected = np.linalg.solve(system, np.concatenate([[0.0], y]))
        assert report["bias"] == pytest.approx(expected[0], abs=1e-9)
        np.testing.assert_allclose(found.coef[0], expected[1:], atol=1e-9)

    def test_pruning_drops_rows_and_keeps_the_error(self, kfu, three_classes):
        args = [three_classes, "-m", "rlsc", "--ridge", 1, "--bias", *RBF]
        whole, _ = trained(kfu, *args)
        report, model = trained(kfu, *args, "--prune", 0.1)
        assert report["method"] == "pruned ls-svm"
        assert model.n_sv < 90
        rounds = report["pruning"]
        assert rounds[0]["rows"] == 90
        assert all(a["rows"] > b["rows"] for a, b in itertools.pairwise(rounds))
        assert model.n_sv in {entry["rows"] for entry in rounds}
        assert report["loo_error"] <= whole["loo_error"] + 0.05

    def test_pruning_numbers_chooses_its_ridge(self, kfu, numbers):
        report, model = trained(kfu, numbers, "-m", "rls", "--bias", "--prune", 0.1, *RBF)
        rounds = report["pruning"]
        accepted = [entry for entry in rounds if entry["rows"] == model.n_sv]
        assert len(rounds) >= 2
        assert accepted[0]["error"] == pytest.approx(report["loo_mse"])
        assert accepted[0]["error"] <= 1.05 * min(entry["error"] for entry in rounds[:-1])
        assert rounds[-1]["rows"] < model.n_sv


class TestProximal:
    def test_nonlinear(self, kfu, numbers):
        report, found = trained(
            kfu, numbers, "-m", "rls", "--ridge", 0.3, "--regularised-bias", *RBF
        )
        K, _, y = kernel_matrix(numbers)
        basis = np.column_stack([K, np.ones(80)])
        expected = np.linalg.solve(basis.T @ basis + 0.3 * np.eye(81), basis.T @ y)
        np.testing.assert_allclose(found.coef[0], expected[:80], atol=1e-8)
        assert report["bias"] == pytest.approx(expected[80], abs=1e-8)
        value = np.square(basis @ expected - y).sum() + 0.3 * expected @ expected
        assert report["objective"] == pytest.approx(value)
        assert report["method"] == "psvm"
        assert "loo_error_bound" not in report
        assert "stability_bound" not in report

    def test_linear(self, kfu, numbers):
        report, found = trained(
            kfu, numbers, "-m", "rls", "-k", "linear", "--ridge", 2, "--regularised-bias"
        )
        _, X, y = kernel_matrix(numbers)
        A = np.column_stack([X, np.ones(80)])
        expected = np.linalg.solve(A.T @ A + 2 * np.eye(3), A.T @ y)
        assert report["bias"] == pytest.approx(expected[2])
        np.testing.assert_allclose(found.coef[0], expected[:2])
        assert report["objective"] == pytest.approx(
            np.square(A @ expected - y).sum() + 2 * expected @ expected
        )


class TestLowRankHinge:
    def test_all_rows_as_centres_give_the_machine_itself(self, kfu, toy):
        args = [toy, "-m", "svc", "-c", 2, *RBF, "-e", "1e-6"]
        exact, whole = trained(kfu, *args)
        X = read_dataset(str(toy)).X
        expected = whole.decision_function(X)
        for form in ("rectangle", "nystrom"):
            report, found = trained(kfu, *args, "--approximation", form, "--centres", 80)
            np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-4)
            assert report["objective"] == pytest.approx(exact["objective"], rel=1e-5)

    def test_the_model_holds_the_centres(self, kfu, three_classes):
        report, model = trained(
            kfu, three_classes, *RBF, "--approximation", "rectangle", "--centres", 12
        )
        assert model.n_sv == report["centres"] == 12
        assert report["duality_gap"] < 0.1
        assert (
            kfu("predict", "m.kfu", three_classes, "-o", "out", "--report", "p.json").exit_code == 0
        )
        with open("p.json") as stream:
            assert json.load(stream)["accuracy"] > 0.8

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["--approximation", "falkon"], "svc takes rectangle or nystrom"),
            (["--approximation", "rectangle", "--margins", "auto"], "takes no --margins"),
            (["--approximation", "rectangle", "-c", "inf"], "takes no -c inf"),
            (["--approximation", "rectangle", "--centres", 91], "91 centres of 90 rows"),
            (["--approximation", "rectangle", "--regularised-bias"], "no --regularised-bias"),
            (["--approximation", "rectangle", "--multiclass", "crammer-singer"], "crammer-singer"),
            (
                ["--approximation", "rectangle", "--probability", "--probability-outputs", "span"],
                "the span is that of the full kernel",
            ),
        ],
    )
    def test_refused(self, args, words, kfu, three_classes, in_empty_folder):
        before = sorted(in_empty_folder.iterdir())
        result = kfu("train", three_classes, *args)
        assert result.exit_code == 2
        assert words in result.stderr
        assert sorted(in_empty_folder.iterdir()) == before

    def test_cross_validation_and_probabilities(self, kfu, three_classes):
        args = [three_classes, *RBF, "--approximation", "rectangle", "--centres", 12]
        assert kfu("cv", *args, "-f", 3, "--report", "cv.json").exit_code == 0
        with open("cv.json") as stream:
            assert json.load(stream)["error"] < 0.2
        _, model = trained(kfu, *args, "--probability")
        assert model.calibration is not None

    @pytest.mark.parametrize(
        "args",
        [["--approximation", "rectangle"], ["-m", "rlsc", "--method", "cg"],
         ["-m", "rlsc", "--bias", "--prune", "0.1"]],
    )  # fmt: skip
    def test_not_with_an_engine(self, kfu, three_classes, args):
        result = kfu("train", three_classes, *args, "--engine", "local")
        assert result.exit_code == 2
        assert "does not go with --engine" in result.stderr

    def test_leave_one_out_trains_without_each_row(self, kfu, toy):
        args = [toy, "--approximation", "rectangle", "--centres", 10, "--by", "loo"]
        assert kfu("cv", *args, "--report", "cv.json").exit_code == 0
        with open("cv.json") as stream:
            assert json.load(stream)["error"] < 0.4


class TestReport:
    """Leave-one-out, its bound, GCV and stability, from scratch, where they hold."""

    def test_full(self, kfu, toy):
        report, _ = trained(kfu, toy, "-m", "rlsc", "--ridge", 0.7, *RBF)
        data = read_dataset(str(toy))
        X, y = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X), data.y
        K = np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(-1))
        G = np.linalg.inv(K + 0.7 * np.eye(80))
        c = G @ y
        left = y - c / np.diag(G)
        H = K @ G
        assert report["loo_error"] == pytest.approx(np.mean(left * y <= 0))
        assert report["loo_mse"] == pytest.approx(np.mean((left - y) ** 2))
        assert report["loo_error_bound"] == pytest.approx(np.mean(y * (K @ c - c) <= 0))
        assert report["degrees_of_freedom"] == pytest.approx(np.trace(H))
        gcv = np.mean((H @ y - y) ** 2) / (1 - np.trace(H) / 80) ** 2
        assert report["gcv"] == pytest.approx(gcv)
        constants = report["stability_constants"]
        F = np.sqrt(80 / 0.7)
        assert constants["output_bound"] == pytest.approx(F)
        beta = (2 * (F + 1)) ** 2 / (2 * 0.7)
        assert report["stability_beta"] == pytest.approx(beta)
        rest = (4 * 80 * beta + (F + 1) ** 2) * np.sqrt(np.log(20) / 160)
        risk = np.mean((K @ c - y) ** 2)
        assert report["stability_bound"] == pytest.approx(risk + 2 * beta + rest)
        assert constants["is_vacuous"]
        assert len(constants["conditions"]) == 4

    def test_linear(self, kfu, toy):
        report, _ = trained(kfu, toy, "-m", "rlsc", "--ridge", 0.7, "-k", "linear")
        whole, _ = trained(
            kfu, toy, "-m", "rlsc", "--ridge", 0.7, "-k", "linear", "--method", "cholesky"
        )
        names = ("loo_error", "loo_error_bound", "loo_mse", "gcv", "degrees_of_freedom")
        for name in (*names, "stability_beta", "stability_bound", "objective"):
            assert report[name] == pytest.approx(whole[name], rel=1e-8), name

    @pytest.mark.parametrize("machine", ["rls", "rlsc"])
    @pytest.mark.parametrize("ridge", [["--ridge", "0.7"], []])
    def test_rectangle_with_all_rows_is_the_full_machine(self, kfu, toy, machine, ridge):
        low, _ = trained(
            kfu, toy, "-m", machine, *RBF, *ridge, "--approximation", "rectangle", "--centres", 80
        )
        whole, _ = trained(kfu, toy, "-m", machine, *RBF, "--ridge", low["ridge"])
        names = ["loo_mse", "gcv", "degrees_of_freedom"]
        if machine == "rlsc":
            names += ["loo_error", "loo_error_bound"]
        for name in names:
            assert low[name] == pytest.approx(whole[name], rel=1e-6), name
        assert "stability_bound" not in low


LEFT_OUT_FIGURES = {"loo_error", "loo_error_bound", "loo_mse", "gcv", "degrees_of_freedom"}


class TestLeaveOneOutWhenAskedFor:
    LOW = ("-m", "rlsc", *RBF, "--approximation", "rectangle", "--centres", 30)

    def test_rectangle(self, kfu, toy, monkeypatch):
        asked, model = trained(kfu, toy, *self.LOW, "--ridge", 0.7, "--loo", "always")
        small, _ = trained(kfu, toy, *self.LOW, "--ridge", 0.7)
        assert {k: small[k] for k in LEFT_OUT_FIGURES} == {k: asked[k] for k in LEFT_OUT_FIGURES}
        assert "loo" not in small
        never, other = trained(kfu, toy, *self.LOW, "--ridge", 0.7, "--loo", "never")
        assert not LEFT_OUT_FIGURES & set(never)
        assert never["loo"] == "not computed (--loo always computes it)"
        assert 0 <= never["residual"] < 1e-12
        X = read_dataset(str(toy)).X
        np.testing.assert_allclose(
            other.decision_function(X), model.decision_function(X), rtol=0, atol=1e-9
        )
        monkeypatch.setattr(rectangle_cost, "LITTLE", 0.0)
        large, _ = trained(kfu, toy, *self.LOW, "--ridge", 0.7)
        assert large["loo"] == never["loo"]
        chosen, _ = trained(kfu, toy, *self.LOW, "--lambda", "auto", "--lambda-by", "errors")
        assert set(chosen) >= LEFT_OUT_FIGURES

    def test_the_summary_says_so(self, kfu, toy):
        result = kfu("train", toy, *self.LOW, "--ridge", 1, "--loo", "never", "-o", "m.kfu")
        assert "loo" in result.stdout
        assert "not computed (--loo always computes it)" in result.stdout

    @pytest.mark.parametrize("kernel", [RBF, ["-k", "linear"]], ids=["full", "linear"])
    @pytest.mark.parametrize("code", ["ova", "ava"])
    def test_full_and_linear(self, kfu, three_classes, kernel, code):
        args = (three_classes, "-m", "rlsc", *kernel, "--ridge", 0.7, "--multiclass", code)
        asked, model = trained(kfu, *args)
        never, other = trained(kfu, *args, "--loo", "never")
        assert "loo_error" in asked
        assert not {"loo_error", "loo_mse"} & set(never)
        assert never["loo"] == "not computed (--loo always computes it)"
        X = read_dataset(str(three_classes)).X
        np.testing.assert_allclose(
            other.decision_function(X), model.decision_function(X), rtol=0, atol=1e-10
        )

    def test_methods_without(self, kfu, numbers):
        args = (numbers, "-m", "rls", "--ridge", 1, "--method", "cg", *RBF)
        report, _ = trained(kfu, *args, "--loo", "always")
        assert "--loo always: cg has no leave-one-out outputs" in report["warnings"]
        report, _ = trained(kfu, *args)
        assert not any("--loo" in text for text in report["warnings"])

    def test_by_an_engine(self, kfu, toy):
        args = (toy, "-m", "rlsc", *RBF, "--centres", 30, "--ridge", 0.7, "--engine", "local")
        asked, _ = trained(kfu, *args)
        assert asked["loo_mse"] > 0
        never, _ = trained(kfu, *args, "--loo", "never")
        assert "loo_mse" not in never
        assert never["loo"] == "not computed (--loo always computes it)"
        result = kfu("train", *args[:-4], "--loo", "never", "--engine", "local")
        assert result.exit_code == 2
        assert "leaves nothing to choose the ridge by" in result.stderr


BAD = [
    (["-m", "rls", "--loo", "never"], "nothing to choose the ridge by"),
    (["-m", "rls", "--loo", "never", "--approximation", "rectangle"], "nothing to choose"),
    (["-m", "rls", "--prune", "0.1"], "give --bias too"),
    (["-m", "rls", "--prune", "1"], "less than 1"),
    (["-m", "rls", "--prune", "0.1", "--bias", "--method", "cg"], "needs the kernel matrix"),
    (["-m", "rls", "--method", "primal"], "for the linear kernel"),
    (["-m", "rls", "--method", "cg", "--approximation", "subset"], "--method is for the full"),
    (["-m", "rls", "--regularised-bias", "--approximation", "rectangle"], "no such bias"),
    (["-m", "rls", "--regularised-bias", "--no-bias"], "contradict"),
    (["-m", "rls", "--lambda", "0"], "give a number > 0"),
    (["-m", "rls", "--ridge", "0"], "give a number > 0"),
    (["-m", "rls", "--ridge", "nan"], "not finite"),
    (["-m", "rls", "--ridge", "-1"], "give a number > 0"),
    (["-m", "rls", "--approximation", "bagging", "--centres", "81"], "81 centres of 80 rows"),
    (["-m", "rls", "--approximation", "falkon", "--centres", "81"], "81 centres of 80 rows"),
]


class TestBadInput:
    @pytest.mark.parametrize(("args", "words"), BAD, ids=lambda part: " ".join(part[2:4]))
    def test_settings(self, args, words, kfu, numbers, in_empty_folder):
        before = sorted(in_empty_folder.iterdir())
        result = kfu("train", numbers, *args, "-o", "m.kfu", "--report", "r.json")
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
        assert sorted(in_empty_folder.iterdir()) == before

    @pytest.mark.parametrize(
        "more", [[], ["--method", "cg"], ["--approximation", "rectangle"], ["--bias"]], ids=str
    )
    @pytest.mark.parametrize("ridge", [["--ridge", "0.01"], []], ids=["ridge", "auto"])
    def test_indefinite_kernel(self, more, ridge, kfu, numbers, in_empty_folder):
        before = sorted(in_empty_folder.iterdir())
        result = kfu(
            "train", numbers, "-m", "rls", "-k", "sigmoid", "-g", 1, "-r", -1, *ridge, *more
        )
        if result.exit_code == 0:  # a ridge above the negative eigenvalues was chosen
            assert not ridge
            return
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert "numbers.npz: " in result.stderr
        assert any(word in result.stderr for word in ("eigenvalue", "pivot", "K(i, i) = -"))
        assert sorted(in_empty_folder.iterdir()) == before

    def test_the_jitter_offered_is_enough(self, kfu, numbers):
        args = [numbers, "-m", "rls", "-k", "sigmoid", "-g", 1, "-r", -1, "--ridge"]
        refused = kfu("train", *args, 0.01).stderr
        assert "pivot" in refused
        assert "smallest eigenvalue" in refused
        offered = refused.split("take a ridge of ")[1].split()[0]
        trained(kfu, *args, offered)

    def test_singular_kernel_is_no_fault(self, kfu, tmp_path):
        """Every row twice: K is singular, K + ridge is not."""
        X = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0)
        np.savez(tmp_path / "twice.npz", X=X, y=X[:, 0])
        report, _ = trained(kfu, "twice.npz", "-m", "rls", "--ridge", 1e-3)
        assert report["residual"] < 1e-12
        trained(kfu, "twice.npz", "-m", "rls", "--approximation", "rectangle", "--centres", 40)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    @pytest.mark.parametrize("more", [[], ["--approximation", "rectangle"], ["-k", "linear"]])
    def test_targets_that_are_not_finite(self, value, more, kfu, tmp_path):
        y = np.arange(10.0)
        y[6] = value
        np.savez(tmp_path / "bad.npz", X=np.random.default_rng(0).normal(size=(10, 2)), y=y)
        result = kfu("train", "bad.npz", "-m", "rls", *more)
        assert result.exit_code == 1
        assert "finite" in result.stderr
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "bad.kfu").exists()

    @pytest.mark.parametrize(
        ("more", "alternative"),
        [
            (["--method", "cholesky"], "--approximation"),
            (["--bias", "--prune", "0.1"], "--approximation"),
            (["--regularised-bias"], "--approximation"),
            ([], None),
        ],
        ids=str,
    )
    def test_memory(self, more, alternative, kfu, numbers, monkeypatch, in_empty_folder):
        monkeypatch.setattr(memory, "LEAST_CHECKED", 0)
        monkeypatch.setattr(memory, "_meminfo", lambda: 1000)
        before = sorted(in_empty_folder.iterdir())
        result = kfu("train", numbers, "-m", "rls", "--ridge", 1, *more)
        assert result.exit_code == 2
        assert "of memory and" in result.stderr
        assert "are available" in result.stderr
        if alternative is not None:
            assert alternative in result.stderr
        assert sorted(in_empty_folder.iterdir()) == before
