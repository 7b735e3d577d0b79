"""``-m rls`` and ``-m rlsc`` on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kfu.model import Model


@pytest.fixture
def numbers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=80)
    path = tmp_path / "numbers.svm"
    lines = [f"{t} 1:{a} 2:{b}" for t, (a, b) in zip(y, X, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def report_of(kfu, *args):
    result = kfu("train", *args, "-o", "m.kfu", "--report", "r.json")
    assert result.exit_code == 0, result.stderr
    with open("r.json") as stream:
        return json.load(stream)


def test_regression_reports_ridge_lambda_and_leave_one_out(kfu, numbers):
    report = report_of(kfu, numbers, "-m", "rls", "--ridge", "0.4", "-g", "0.5")
    assert report["ridge"] == pytest.approx(0.4)
    assert report["lambda"] == pytest.approx(0.4 / 80)
    assert 0 < report["loo_mse"] < 1
    again = report_of(kfu, numbers, "-m", "rls", "--lambda", 0.4 / 80, "-g", "0.5")
    assert again["loo_mse"] == pytest.approx(report["loo_mse"], rel=1e-10)


def test_auto_is_the_default_and_no_worse(kfu, numbers):
    chosen = report_of(kfu, numbers, "-m", "rls", "-g", "0.5")
    assert (
        chosen["loo_mse"]
        <= report_of(kfu, numbers, "-m", "rls", "-g", "0.5", "--ridge", 1)["loo_mse"]
    )


def test_classification_without_bias_and_with(kfu, toy):
    report = report_of(kfu, toy, "-m", "rlsc", "--ridge", 1)
    assert report["bias"] == 0
    assert 0 <= report["loo_error"] <= 1
    with_bias = report_of(kfu, toy, "-m", "rlsc", "--ridge", 1, "--bias")
    assert with_bias["bias"] != 0


def test_low_rank_keeps_the_centres_only(kfu, numbers):
    report = report_of(
        kfu, numbers, "-m", "rls", "--approximation", "rectangle", "--centres", 20, "-g", "0.5"
    )
    assert Model.load("m.kfu").n_sv == report["centres"] == 20
    result = kfu("predict", "m.kfu", numbers, "-o", "out", "--report", "p.json")
    assert result.exit_code == 0
    with open("p.json") as stream:
        assert json.load(stream)["r2"] > 0.8


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-m", "rls", "--ridge", "1", "--lambda", "1"], "both set the ridge"),
        (["-m", "rls", "--ridge", "0"], "give a number > 0"),
        (["-m", "rls", "-c", "1"], "has no cost"),
        (["-m", "rls", "--approximation", "rectangle", "--centres", "81"], "81 centres of 80 rows"),
        (["-m", "svr", "--ridge", "1"], "--ridge is for the machines"),
    ],
)
def test_refused(args, words, kfu, numbers):
    result = kfu("train", numbers, *args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_cross_validation(kfu, numbers):
    result = kfu("cv", numbers, "-m", "rls", "-g", "0.5", "-f", 4, "--report", "cv.json")
    assert result.exit_code == 0, result.stderr
    with open("cv.json") as stream:
        assert json.load(stream)["r2"] > 0.5


class TestEngine:
    def test_partitions_give_the_model_of_the_whole(self, kfu, numbers):
        args = ["-m", "rls", "--ridge", 0.5, "--centres", 15, "-g", 0.5]
        in_memory = report_of(kfu, numbers, *args, "--approximation", "rectangle")
        expected = Model.load("m.kfu").decision_function(np.eye(2))
        report = report_of(kfu, numbers, *args, "--engine", "local", "--workers", 2)
        np.testing.assert_allclose(
            Model.load("m.kfu").decision_function(np.eye(2)), expected, rtol=1e-7
        )
        assert report["lambda"] == pytest.approx(in_memory["lambda"])
        assert report["loo_mse"] == pytest.approx(in_memory["loo_mse"], rel=1e-6)

    @pytest.mark.parametrize(
        ("args", "words"),
        [
            (["-m", "svr"], "for rls, rlsc and machines of a multiclass code"),
            (["-m", "rls", "--approximation", "nystrom"], "rectangle, not nystrom"),
            (["-m", "rls", "--lambda", "1"], "--lambda does not go with --engine"),
            (["-m", "rls", "--scheduler", "tcp://x:1"], "--scheduler is for --engine dask"),
        ],
    )
    def test_refused(self, args, words, kfu, numbers):
        result = kfu("train", numbers, "--engine", "local", *args)
        assert result.exit_code == 2
        assert words in result.stderr


@pytest.mark.parametrize("low_rank", [[], ["--approximation", "rectangle", "--centres", 15]])
def test_the_ridge_by_errors(kfu, toy, low_rank):
    args = [toy, "-m", "rlsc", "-g", "0.5", *low_rank]
    squares = report_of(kfu, *args, "--lambda", "auto")
    errors = report_of(kfu, *args, "--lambda", "auto", "--lambda-by", "errors")
    assert (squares["lambda_by"], errors["lambda_by"]) == ("squares", "errors")
    assert errors["loo_error"] == pytest.approx(min(errors["path"]["error"]))
    assert errors["loo_error"] <= squares["loo_error"]
    assert errors["loo_mse"] >= squares["loo_mse"]
    assert "lambda by" in kfu("train", *args, "-o", "m.kfu").stdout


def test_errors_are_refused_where_they_are_not_counted(kfu, toy, numbers):
    result = kfu("train", numbers, "-m", "rls", "--lambda-by", "errors")
    assert result.exit_code == 2
    assert "--lambda-by is for the machines rlsc" in result.stderr
    args = ["-m", "rlsc", "-g", 1, "--engine", "local", "--lambda-by", "errors"]
    result = kfu("train", toy, *args)
    assert result.exit_code == 2
    assert "--lambda-by does not go with --engine" in result.stderr
