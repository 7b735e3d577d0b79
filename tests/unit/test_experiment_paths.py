"""The step `path_selection`: what it refuses, and its figures against those of its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kfu.errors import SettingsError
from kfu.experiment import Runner, read_plan
from kfu.experiment.data import load_rows
from kfu.kernels import KernelSpec
from kfu.machines import train
from kfu.paths.following import svm_path
from kfu.paths.selection import follow_splits, splits

TOY = "data: {toy: gaussians, n_train: 40, n_test: 100}\nseed: 3\nsteps:\n"


def plan_of(tmp_path: Path, text: str):
    file = tmp_path / "experiment.yaml"
    file.write_text(text, encoding="utf-8")
    (plan,) = read_plan(str(file))
    return plan


def run(tmp_path: Path, steps: str) -> dict[str, float]:
    plan = plan_of(tmp_path, TOY + "".join(f"  - {step}\n" for step in steps.split("; ")))
    result = Runner(tmp_path / "out", force=True, threads=2).run(plan)
    assert result.converged
    return {name: summary.mean for name, summary in result.figures[0].items()}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("path_selection: {cost: 1}", "cost"),
        ("path_selection: {machine: svr}", "machine"),
        ("path_selection: {splits: stratified, fraction: 0.3}", "belongs to splits hold-out"),
        ("path_selection: {rule: best}", "no rule 'best'"),
        ("path_selection: {bias: regularised}", "a free bias or none"),
        ("path_selection: {splits: jackknife}", "no kind of splits 'jackknife'"),
    ],
)
def test_what_is_refused(tmp_path, step, message):
    with pytest.raises(SettingsError, match=message):
        plan_of(tmp_path, TOY + f"  - {step}\n")


def test_figures_are_those_of_the_parts(tmp_path):
    found = run(tmp_path, "path_selection: {gamma: 0.5, folds: 3, exhaustive: 10000}; predict")
    plan = plan_of(tmp_path, TOY + "  - path_selection: {gamma: 0.5}\n")
    rows = load_rows(plan.data, [plan.seed, 0])
    X, y = rows.train.X, rows.train.y
    kernel = KernelSpec.make("rbf", gamma=0.5)
    parts = splits("hold-out", len(y), k=3, labels=y, seed=3)

    def follow(split):
        valid = (X[split.valid], y[split.valid])
        return svm_path(X[split.train], y[split.train], kernel=kernel, validate=valid).track

    curves = follow_splits(parts, follow, n=len(y))
    choice = curves.choose()
    assert found["path_selection.lambda"] == pytest.approx(choice.lam, rel=1e-9)
    assert found["path_selection.cost"] == pytest.approx(1 / choice.lam, rel=1e-9)
    assert found["path_selection.error"] == pytest.approx(choice.error)
    assert found["path_selection.crossings"] == pytest.approx(curves.crossings.mean)
    model = train(X, y, kernel=kernel, cost=choice.cost)
    error = np.mean(model.predict(rows.test.X) != rows.test.y)
    assert found["test.error"] == found["path_selection.test_error"] == pytest.approx(error)
    # Solves of their own, at every step of the mean.
    assert found["path_selection.exhaustive_agreement"] == 1.0
    assert found["path_selection.exhaustive_points"] == curves.mean.n_steps
    assert found["path_selection.selection_difference"] < 1e-12
    assert found["path_selection.test_difference"] == 0.0


@pytest.mark.parametrize("kind", ["bootstrap", "stratified"])
def test_other_splits_and_rules(tmp_path, kind):
    options = f"gamma: 0.5, splits: {kind}, folds: 4, rule: one-se, rescale: true, exhaustive: 20"
    found = run(tmp_path, f"path_selection: {{{options}}}; predict")
    least = run(
        tmp_path, f"path_selection: {{gamma: 0.5, splits: {kind}, folds: 4, rescale: true}}"
    )
    assert found["path_selection.n_splits"] == 4
    assert found["path_selection.lambda"] >= least["path_selection.lambda"]
    assert found["path_selection.error"] >= least["path_selection.error"]
    assert found["path_selection.exhaustive_points"] <= 21
    assert found["path_selection.exhaustive_agreement"] == 1.0
    assert found["test.error"] < 0.25


def test_agreement_of_a_chosen_and_a_trained_model(tmp_path):
    found = run(
        tmp_path,
        "path_selection: {gamma: 0.5}; predict: {as: chosen}; train: {gamma: 0.5, as: again}; "
        "predict: {as: usual}; agreement",
    )
    assert 0.7 < found["agreement.chosen.usual"] <= 1.0


def test_the_shipped_data_are_those_of_scikit_learn():
    datasets = pytest.importorskip("sklearn.datasets")
    from kfu.io import read_dataset

    file = Path(__file__).resolve().parents[2] / "datasets" / "wdbc.csv.gz"
    data = read_dataset(str(file), label_column=-1)
    known = datasets.load_breast_cancer()
    np.testing.assert_array_equal(data.X, known.data)
    np.testing.assert_array_equal(data.y.astype(str), known.target_names[known.target])
