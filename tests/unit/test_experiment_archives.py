"""Rows of an experiment from arrays of an archive under their own names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.experiment.data import load_rows
from kfu.experiment.plan import read_plan
from kfu.experiment.runner import Runner

PLAN = """
data:
  train: digits.npz
  test: digits.npz
  train_arrays: [x_train, y_train]
  test_arrays: {test}
steps:
  - train: {{machine: rlsc, ridge: 0.5}}
  - predict
"""


def plan_of(folder: Path, test: str = "[x_test, y_test]"):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60).astype(np.uint8)
    X = (rng.integers(0, 50, (60, 4, 5)) + 60 * y[:, None, None]).astype(np.uint8)
    np.savez(
        folder / "digits.npz", x_train=X[:40], y_train=y[:40], x_test=X[40:], y_test=y[40:], one=1
    )
    (folder / "plan.yaml").write_text(PLAN.format(test=test))
    (plan,) = read_plan(str(folder / "plan.yaml"))
    return plan, X, y


def test_both_parts_of_one_file(tmp_path):
    plan, X, y = plan_of(tmp_path)
    rows = load_rows(plan.data, [0])
    assert np.array_equal(rows.train.X, X[:40].reshape(40, 20))
    assert np.array_equal(rows.test.X, X[40:].reshape(20, 20))
    assert np.array_equal(rows.test.y, y[40:])
    figures = next(iter(Runner(tmp_path / "out").run(plan).parts.values())).figures
    assert figures["test.n"] == 20
    assert figures["train.ridge"] == 0.5
    assert figures["train.lambda"] == 0.5 / 40


def test_other_arrays_are_other_data(tmp_path):
    first, _, _ = plan_of(tmp_path)
    second, _, _ = plan_of(tmp_path, "[x_train, y_train]")
    assert first.data.fingerprint() != second.data.fingerprint()


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("[x, y_test]", "no array 'x'; there are x_train, y_train"),
        ("[y_test, x_test]", r"'y_test' of shape \(20,\)"),
        ("[x_test, y_train]", "20"),
    ],
)
def test_arrays_that_are_no_rows(test, words, tmp_path):
    plan, _, _ = plan_of(tmp_path, test)
    with pytest.raises(DataError, match=words):
        load_rows(plan.data, [0])


def test_a_file_that_is_no_archive(tmp_path):
    plan, _, _ = plan_of(tmp_path)
    (tmp_path / "digits.npz").write_text("1 1:2\n")
    with pytest.raises(DataError, match="not an archive"):
        load_rows(plan.data, [0])
    np.save(tmp_path / "digits.npz", np.eye(3))
    (tmp_path / "digits.npz.npy").rename(tmp_path / "digits.npz")
    with pytest.raises(DataError, match="not an archive"):
        load_rows(plan.data, [0])


@pytest.mark.parametrize("names", ["x_test", "[x_test]", "[x_test, 1]"])
def test_names_are_two_words(names, tmp_path):
    with pytest.raises(SettingsError, match="not two names"):
        plan_of(tmp_path, names)
