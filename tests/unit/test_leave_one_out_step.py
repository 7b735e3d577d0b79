"""The step leave_one_out of kfu run: its figures, its panel, what it refuses; labels as a list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kfu
from kfu.errors import SettingsError
from kfu.experiment import ExperimentResult, Runner, read_plan

TEXT = """
name: span
data: {{toy: gaussians, n_train: 60, n_test: 200}}
steps:
  - leave_one_out: {{gamma: 0.1, cost: 1, estimates: {estimates}, as: loo}}
{more}
"""


def run(tmp_path: Path, estimates: str, more: str = "") -> ExperimentResult:
    return run_text(tmp_path, TEXT.format(estimates=estimates, more=more))


def run_text(tmp_path: Path, text: str) -> ExperimentResult:
    path = tmp_path / "e.yaml"
    path.write_text(text)
    (plan,) = read_plan(str(path))
    return Runner(tmp_path / "out", force=True).run(plan)


def test_figures(tmp_path):
    result = run(tmp_path, "[exact, span, xi-alpha]")
    figures = {name: summary.mean for name, summary in result.figures[0].items()}
    assert figures["loo.difference.span"] == abs(figures["loo.span"] - figures["loo.exact"])
    assert figures["loo.xi-alpha"] >= figures["loo.exact"]
    assert 0 < figures["loo.test_error"] < 0.5
    assert figures["loo.n_sv"] > 0


def test_curves_in_one_panel(tmp_path):
    pytest.importorskip("matplotlib")
    from kfu.experiment.pictures import chosen_figures, draw_figures, panel_of

    more = "vary: {loo.cost: [0.1, 1]}\nexpect: [{figure: loo.difference.span, at_most: 0.5}]"
    result = run(tmp_path, "[exact, span]", more)
    names = chosen_figures(result)
    assert {"loo.exact", "loo.span", "loo.test_error", "loo.difference.span"} == set(names)
    assert {panel_of(result, name) for name in names} == {"loo", "loo.difference.span"}
    drawn = draw_figures(result, tmp_path)
    assert drawn is not None
    assert drawn.read_bytes().startswith(b"\x89PNG")


def test_refused(tmp_path):
    with pytest.raises(SettingsError, match="no estimate 'spam'"):
        run(tmp_path, "[spam]")


def test_several_classes_against_the_rest(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    facts = {"weights": None, "qid": None, "source": "rows", "zero_based": False}
    kfu.write_dataset(tmp_path / "rows.svm", kfu.Dataset(X=X, y=y.astype(float), **facts))
    text = "data: {train: rows.svm, positive: [0, 2]}\nsteps:\n"
    result = run_text(tmp_path, f"name: e\n{text}  - leave_one_out: {{estimates: exact}}\n")
    found = result.figures[0]["leave_one_out.exact"].mean
    labels = np.where(y == 1, -1.0, 1.0)
    model = kfu.train(kfu.read_dataset(tmp_path / "rows.svm").X, labels)
    expected = kfu.loo(model, kfu.read_dataset(tmp_path / "rows.svm").X, labels, "exact")
    assert found == pytest.approx(expected["exact"].value)
