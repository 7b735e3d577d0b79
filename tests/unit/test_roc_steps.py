"""The steps roc and compare: areas against scikit-learn, kept curves, the averaged picture."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from kfu.errors import SettingsError
from kfu.experiment.plan import read_plan
from kfu.experiment.roc_picture import averaged_curves, save_roc
from kfu.experiment.roc_step import ROC_GRID
from kfu.experiment.runner import Runner
from kfu.kernels import KernelSpec
from kfu.machines import train

PLAN = """
    name: curves
    data: {toy: gaussians, n_train: 60, n_test: 200}
    repetitions: 3
    steps:
      - train: {gamma: 0.1, as: wide}
      - roc: {as: one, curve: svm}
      - train: {gamma: 10, as: narrow}
      - roc: {as: two, curve: svm, panel: narrow}
      - compare: {figure: auc, of: [one, two]}
    expect:
      - {figure: compare.one.two, at_least: 0.0}
"""


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(textwrap.dedent(text))
    return str(path)


@pytest.fixture
def found(tmp_path: Path):
    (plan,) = read_plan(write(tmp_path, PLAN))
    runner = Runner(tmp_path / "out", threads=1)
    return plan, runner, runner.run(plan)


def test_areas_and_curves_are_those_of_the_outputs(found):
    plan, runner, result = found
    for part, stored in result.parts.items():
        rows = runner.rows_of(plan, part, plan.data.fingerprint())
        for label, gamma in (("one", 0.1), ("two", 10.0)):
            model = train(rows.train.X, rows.train.y, kernel=KernelSpec.make("rbf", gamma=gamma))
            scores = model.decision_function(rows.test.X)[:, 0]
            truth = rows.test.y == model.classes[1]
            figures = stored.figures
            assert figures[f"{label}.auc"] == pytest.approx(roc_auc_score(truth, scores))
            assert figures[f"{label}.error"] == np.mean((scores > 0) != truth)
            fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
            best = [tpr[fpr <= rate + 1e-12].max() for rate in (0.05, 0.1)]
            assert figures[f"{label}.tpr.0.05"] >= best[0] - 1e-12
            # between two points the curve is linear, and so at most one row above the step
            assert figures[f"{label}.tpr.0.1"] <= np.interp(0.1 + 1 / 90, fpr, tpr) + 1e-12
            assert len(stored.curves[label]) == len(ROC_GRID)
            assert stored.curves[label][-1] == 1.0
        difference = stored.figures["one.auc"] - stored.figures["two.auc"]
        assert stored.figures["compare.one.two"] == difference
    assert result.holds


def test_curves_come_back_from_an_earlier_run(found, tmp_path):
    plan, _, result = found
    again = Runner(tmp_path / "out", threads=1).run(plan)
    assert again.n_stored == 3
    for part, stored in again.parts.items():
        assert stored.curves == result.parts[part].curves


def test_curves_are_averaged_and_drawn(found, tmp_path):
    _, _, result = found
    one, two = averaged_curves(result)
    assert (one.name, one.panel, one.n) == ("svm", None, 3)
    assert (two.name, two.panel) == ("svm", "narrow")
    values = np.array([part.curves["two"] for part in result.parts.values()])
    np.testing.assert_allclose(two.mean, values.mean(axis=0))
    np.testing.assert_allclose(two.sd, values.std(axis=0, ddof=1))
    areas = [part.figures["two.auc"] for part in result.parts.values()]
    assert two.area == pytest.approx(np.mean(areas))
    pytest.importorskip("matplotlib")
    file = save_roc(result, tmp_path / "pictures")
    assert file is not None
    assert file.read_bytes()[:4] == b"\x89PNG"


def test_no_roc_steps_no_picture(tmp_path):
    text = "data: {toy: xor, n_train: 20, n_test: 20}\nsteps: [train, predict]\n"
    (plan,) = read_plan(write(tmp_path, text))
    assert save_roc(Runner(tmp_path / "out").run(plan), tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("[roc]", "train"),
        ("[train: {machine: svr}, roc]", "machine svr has no classes to rank"),
        ("[train, roc, compare: {figure: auc, of: [roc, other]}]", "no step 'other' before"),
        (
            "[train, roc, predict, compare: {figure: auc, of: [roc, test]}]",
            "yields no figure 'auc'",
        ),
        ("[train, roc, compare: {figure: auc, of: [roc]}]", "two or more"),
        ("[train, roc, compare: {of: [roc, train]}]", "figure"),
    ],
)
def test_refused_before_anything_runs(steps, words, tmp_path):
    text = f"data: {{toy: xor}}\nsteps: {steps}\n"
    with pytest.raises(SettingsError, match=words):
        read_plan(write(tmp_path, text))


def test_more_than_two_classes_are_refused(tmp_path):
    text = "data: {toy: three-gaussians, n_train: 30, n_test: 30}\nsteps: [train, roc]\n"
    (plan,) = read_plan(write(tmp_path, text))
    with pytest.raises(SettingsError, match="more than two classes"):
        Runner(tmp_path / "out").run(plan)
