"""kfu scale: fit, save, apply."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_toys import files_in

from kfu.io import read_dataset


def test_standard_is_the_default(kfu, toy):
    assert kfu("scale", toy, "-o", "s.svm").exit_code == 0
    X = read_dataset("s.svm", dense=True).X
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)


@pytest.mark.parametrize(("flags", "low", "high"), [([], -1, 1), (["--range", "0,2"], 0, 2)])
def test_minmax(flags, low, high, kfu, toy):
    assert kfu("scale", toy, "--method", "minmax", *flags, "-o", "s.svm").exit_code == 0
    X = read_dataset("s.svm", dense=True, n_features=3).X
    np.testing.assert_allclose(X.min(axis=0), low, atol=1e-12)
    np.testing.assert_allclose(X.max(axis=0), high)


def test_unit_and_divide(kfu, toy):
    assert kfu("scale", toy, "--method", "unit", "-o", "u.svm").exit_code == 0
    np.testing.assert_allclose(np.linalg.norm(read_dataset("u.svm", dense=True).X, axis=1), 1)
    result = kfu("scale", toy, "--method", "divide", "--divisor", 4, "-o", "d.svm")
    assert result.exit_code == 0
    np.testing.assert_allclose(
        read_dataset("d.svm", dense=True).X, read_dataset(toy, dense=True).X / 4
    )


def test_saved_parameters_apply_to_another_file(kfu, toy, toy_test):
    result = kfu("scale", toy, "--method", "minmax", "--save", "p.json", "-o", "a.svm")
    assert result.exit_code == 0
    with open("p.json") as stream:
        json.load(stream)
    assert kfu("scale", toy_test, "--apply", "p.json", "-o", "b.svm").exit_code == 0
    train, test = read_dataset(toy, dense=True).X, read_dataset(toy_test, dense=True).X
    low, high = train.min(axis=0), train.max(axis=0)
    expected = 2 * (test - low) / (high - low) - 1
    np.testing.assert_allclose(read_dataset("b.svm", dense=True).X, expected, atol=1e-12)


def test_labels_are_kept_and_stdout_is_the_default(kfu, three_classes):
    result = kfu("scale", three_classes)
    assert result.exit_code == 0, result.stderr
    labels = [line.split()[0] for line in result.stdout.splitlines()]
    assert labels == [line.split()[0] for line in three_classes.read_text().splitlines()]


def test_scaled_training_equals_training_on_scaled_data(kfu, toy):
    assert kfu("scale", toy, "-o", "s.svm").exit_code == 0
    one = kfu("train", "s.svm", "-g", 0.3, "--report", "-", "-o", "a.kfu")
    two = kfu("train", toy, "--scale", "standard", "-g", 0.3, "--report", "-", "-o", "b.kfu")
    objectives = [json.loads(result.stdout)["objective"] for result in (one, two)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-6)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--range", "0,1"], 2, "--range belongs to --method minmax, not standard"),
        (["--divisor", "2"], 2, "--divisor belongs to --method divide"),
        (["--method", "divide"], 2, "give --divisor"),
        (["--method", "divide", "--divisor", "0"], 2, "divides by zero"),
        (["--method", "minmax", "--range", "1,0"], 2, "is not LO,HI with LO < HI"),
        (["--method", "minmax", "--range", "a"], 2, "is not LO,HI"),
        (["--method", "std"], 2, "no method 'std'"),
        (["--apply", "no.json"], 1, "no.json: cannot be read (No such file"),
        (["--apply", "toy.svm"], 1, "toy.svm: not a scaler file"),
        (["--apply", "x.json", "--method", "unit"], 2, "leave --method out"),
    ],
)
def test_refused(args, code, words, kfu, toy, tmp_path):
    before = files_in(tmp_path)
    result = kfu("scale", "toy.svm", *args, "-o", "out.svm")
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == before


def test_apply_to_more_features_is_said(kfu, toy, tmp_path):
    assert kfu("scale", toy, "--save", "p.json", "-o", "s.svm").exit_code == 0
    (tmp_path / "wide.csv").write_text("1,2,3,4,5\n-1,3,4,5,6\n")
    result = kfu("scale", "wide.csv", "--apply", "p.json", "-o", "out.csv")
    assert "4 features where the scaling was fitted on 3" in result.stderr


def test_constant_feature(kfu, tmp_path):
    (tmp_path / "c.svm").write_text("1 1:3 2:1\n-1 1:3 2:2\n")
    cases = (["standard"], 0), (["minmax"], 0), (["minmax", "--range", "1,2"], 1.5)
    for method, value in cases:
        assert kfu("scale", "c.svm", "--method", *method, "-o", "s.svm").exit_code == 0
        X = read_dataset("s.svm", dense=True, n_features=2).X
        np.testing.assert_array_equal(X[:, 0], value)


def test_data_and_parameters_cannot_share_stdout(kfu, toy):
    result = kfu("scale", toy, "--save", "-")
    assert result.exit_code == 2
    assert "cannot both go to stdout" in result.stderr
    assert result.stdout == ""
