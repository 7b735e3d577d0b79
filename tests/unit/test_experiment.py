"""Described experiments: the YAML and its errors, splits, figures and verdicts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.experiment import read_plan
from kfu.experiment.data import SPLITS, Rows, every, load_rows
from kfu.experiment.document import nearest, read_document
from kfu.experiment.expect import STATISTICS, Expectation, Summary, judge
from kfu.experiment.plan import Experiment
from kfu.experiment.runner import Part, key_of, parts_of
from kfu.experiment.steps import STEPS

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

MINIMAL = """\
data: {toy: xor}
steps:
  - train: {kernel: rbf, gamma: 1}
  - predict
"""


def plan_of(tmp_path: Path, text: str) -> Experiment:
    (plan,) = plans_of(tmp_path, text)
    return plan


def plans_of(tmp_path: Path, text: str) -> list[Experiment]:
    file = tmp_path / "experiment.yaml"
    file.write_text(text, encoding="utf-8")
    return read_plan(str(file))


# ---- the document ---------------------------------------------------------------------------


def test_scalars_are_those_of_yaml_1_2(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "a: 1e-3\nb: 1\nc: on\nd: no\ne: true\nf: 010\ng: ~\nh: '1'\n"
        "i: .5\nj: 1.\nk: -2E+3\nl: 1:30\n"
    )
    assert read_document(str(file)).root == {
        "a": 1e-3,
        "b": 1,
        "c": "on",
        "d": "no",
        "e": True,
        "f": 10,
        "g": None,
        "h": "1",
        "i": 0.5,
        "j": 1.0,
        "k": -2000.0,
        "l": "1:30",
    }


def test_values_know_their_lines_through_anchors_and_merges(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("base: &base\n  x: 1\n  y: 2\nmore:\n  <<: *base\n  y: 3\n")
    document = read_document(str(file))
    assert document.root["more"] == {"x": 1, "y": 3}
    assert document.lines[("base", "y")] == 3
    assert document.lines[("more", "y")] == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\n", "experiment.yaml:2: not valid YAML"),
        ("a: 1\na: 2\n", "experiment.yaml:2: a: given twice"),
        ("", "experiment.yaml: the file is empty"),
        ("- 1\n- 2\n", "experiment.yaml:1: a list is not a mapping"),
        ("a: !!python/object:os.system {}\n", "experiment.yaml:1: a: unknown key"),
        ("a: &x [*x]\n", "contains itself"),
        ("\x00", "not valid YAML"),
    ],
)
def test_bad_documents_are_one_message(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plans_of(tmp_path, text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_binary_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file"):
        read_plan(str(tmp_path / "none.yaml"))
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(SettingsError, match="not a text file"):
        read_plan(str(tmp_path / "b.yaml"))


def test_the_nearest_word() -> None:
    assert nearest("trian", ["train", "test", "toy"]) == "train"
    assert nearest("tolerence", ["tolerance", "relative", "note"]) == "tolerance"


# ---- the plan -------------------------------------------------------------------------------


def test_a_minimal_plan(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, MINIMAL)
    assert plan.name == "experiment"
    assert [(step.name, step.label) for step in plan.steps] == [
        ("train", "train"),
        ("predict", "test"),
    ]
    assert plan.repetitions == 1
    assert parts_of(plan) == [Part(0, 0, 0)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("data:", "dta:", "experiment.yaml:1: dta: unknown key; the nearest known one is 'data'"),
        ("toy: xor", "toy: xorr", "data.toy: no toy 'xorr'; the nearest is 'xor'"),
        ("toy: xor", "ty: xor", "data.ty: unknown key; the nearest known one is 'toy'"),
        ("toy: xor", "source: x", "give either 'train' (a file) or 'toy'"),
        ("toy: xor", "toy: xor, train: x", "give either 'train' (a file) or 'toy'"),
        ("toy: xor", "toy: xor, n_train: 0", "data.n_train: 0 is out of range"),
        ("gamma: 1", "gama: 1", ":3: steps[0].train.gama: unknown key; the nearest known one is"),
        ("gamma: 1", "gamma: -1", "steps[0].train.gamma: -1 is out of range"),
        ("gamma: 1", "gamma: big", "steps[0].train.gamma: no rule for gamma 'big'"),
        ("gamma: 1", "cost: abc", "steps[0].train.cost: 'abc' is not a number"),
        ("gamma: 1", "cost: .nan", "not finite"),
        ("gamma: 1", "solver: libsvm", "no solver 'libsvm'"),
        ("- predict", "- predct", ":4: steps[1].predct: unknown step; the nearest known one is"),
        ("- predict", "- train: {}", "a second 'train'; give it another name"),
        ("- predict", "- predict: {rows: rest}", "no set of rows 'rest'"),
        ("  - train: {kernel: rbf, gamma: 1}\n", "", "needs the step 'train' or"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in MINIMAL
    with pytest.raises(SettingsError) as caught:
        plans_of(tmp_path, MINIMAL.replace(old, new))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("repetitions: 0", "repetitions: 0 is out of range"),
        ("seed: 1.5", "seed: '1.5' is not a count"),
        ("name: a/b", "name: 'a/b' cannot name a folder"),
        ("split: {kind: folds}", "the data have test rows of their own"),
        ("vary: {train.costs: [1]}", "vary.train.costs: no such option; the nearest known one is"),
        ("vary: {train.cost: 1}", "vary.train.cost: not a list of values"),
        ("expect: [{figure: test.acuracy, at_least: 0}]", "the nearest figure is 'test.accuracy'"),
        ("expect: [{figure: test.accuracy}]", "give 'value' with 'tolerance'"),
        ("expect: [{figure: test.accuracy, value: 1}]", "needs 'tolerance' or 'relative'"),
        ("expect: [{figure: test.accuracy, at_most: 1, tolerance: 1}]", "belong to a 'value'"),
        ("expect: [{value: 1, tolerance: 0}]", "expect[0]: 'figure' is missing"),
        (
            "expect: [{figure: test.error, at_most: 1, where: {train.cost: 3}}]",
            "train.cost = '3' is not among the varied values",
        ),
    ],
)
def test_wrong_additions(tmp_path: Path, added: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plans_of(tmp_path, MINIMAL + added + "\n")
    assert message in str(caught.value)
    assert "experiment.yaml:5: " in str(caught.value)


def test_predicting_test_rows_needs_some(tmp_path: Path) -> None:
    text = MINIMAL.replace("toy: xor", "train: a.svm")
    with pytest.raises(SettingsError, match=r"steps\[1\]: no test rows to predict"):
        plans_of(tmp_path, text)
    plan_of(tmp_path, text.replace("- predict", "- predict: {rows: train}"))
    plan_of(tmp_path, text + "split: {kind: random, test_fraction: 0.25}\n")


def test_several_experiments_have_different_names(tmp_path: Path) -> None:
    one = "  - name: a\n    data: {toy: xor}\n    steps: [train]\n"
    with pytest.raises(SettingsError, match=r":5: .*the name of an earlier experiment"):
        plans_of(tmp_path, "experiments:\n" + one + one)
    plans = plans_of(tmp_path, "experiments:\n" + one + one.replace("name: a", "name: b"))
    assert [plan.name for plan in plans] == ["a", "b"]


def test_variants_are_all_combinations(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        MINIMAL + "vary: {train.cost: [1, 10], data.n_train: [20, 40, 80]}\nrepetitions: 2\n",
    )
    assert len(plan.variants()) == 6
    assert len(parts_of(plan)) == 12
    at = plan.at({"train.cost": 10.0, "data.n_train": 40})
    assert at.steps[0].options["cost"] == 10.0
    assert at.data.n_train == 40
    assert plan.steps[0].options.get("cost") is None


def test_every_shipped_file_is_a_plan() -> None:
    files = sorted(CONFIGS.glob("*.yaml"))
    assert {file.stem for file in files} >= {"demo", "svmguide1", "a1a", "toys"}
    readme = (CONFIGS / "README.md").read_text(encoding="utf-8")
    for file in files:
        for plan in read_plan(str(file)):
            assert plan.expect, file
            if "KFU_DATA" in (plan.data.train or ""):
                assert plan.data.source.startswith("http"), file
        assert f"`{file.name}`" in readme


# ---- data and splits ------------------------------------------------------------------------


def test_missing_data_say_where_they_can_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MINIMAL.replace("toy: xor", "train: $KFU_DATA/a.gz, source: 'http://a.b'")
    plan = plan_of(tmp_path, text.replace("- predict", "- predict: {rows: train}"))
    monkeypatch.delenv("KFU_DATA", raising=False)
    with pytest.raises(DataError) as caught:
        load_rows(plan.data, [0, 0])
    assert "experiment.yaml:1: data.train: $KFU_DATA is not set" in str(caught.value)
    assert "set KFU_DATA to the folder that holds a.gz" in str(caught.value)
    assert "http://a.b" in str(caught.value)
    monkeypatch.setenv("KFU_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no file .*a\.gz"):
        load_rows(plan.data, [0, 0])


def test_files_are_found_beside_the_yaml_and_known_by_content(tmp_path: Path) -> None:
    text = MINIMAL.replace("toy: xor", "train: a.svm").replace(
        "- predict", "- predict: {rows: train}"
    )
    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:2\n")
    plan = plan_of(tmp_path, text)
    assert load_rows(plan.data, [0, 0]).train.n == 2
    before = plan.data.fingerprint()
    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:3\n")
    assert plan.data.fingerprint() != before


def test_one_class_against_the_rest(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, MINIMAL.replace("toy: xor", "toy: three-gaussians, positive: 2"))
    rows = load_rows(plan.data, [0, 0])
    assert rows.train.y is not None
    assert rows.test is not None
    assert sorted(set(rows.train.y)) == [-1.0, 1.0]
    assert (rows.train.y > 0).sum() == rows.train.n // 3
    with pytest.raises(SettingsError, match="'7' is no row of"):
        load_rows(dataclasses.replace(plan.data, positive="7"), [0, 0])


def numbered(n: int, n_classes: int = 2) -> Rows:
    y = np.arange(n) % n_classes + 1.0
    return Rows(Dataset(X=np.arange(n, dtype=float)[:, None], y=y, source="numbered"))


def ids(data: Dataset | None) -> list[int]:
    assert data is not None
    return [int(value) for value in data.X[:, 0]]


def test_folds_part_the_rows_and_keep_the_classes() -> None:
    rows = numbered(103, 3)
    seen: list[int] = []
    for k in range(5):
        part = SPLITS["folds"].rows_of(rows, {"folds": 5}, k, [1, 2])
        assert sorted(ids(part.train) + ids(part.test)) == list(range(103))
        assert part.test is not None
        counts = np.bincount(part.test.y.astype(int), minlength=4)[1:]
        assert counts.max() - counts.min() <= 2
        seen += ids(part.test)
    assert sorted(seen) == list(range(103))


def test_random_splits_have_the_sizes_asked_for_and_depend_on_the_seed() -> None:
    rows = numbered(100)
    split = SPLITS["random"]
    cases: list[tuple[dict[str, Any], int, int]] = [
        ({"test_fraction": 0.3}, 70, 30),
        ({"n_test": 21}, 79, 21),
        ({"n_train": 40}, 40, 60),
        ({"n_train": 40, "n_test": 20}, 40, 20),
        ({"n_train": 40, "n_test": 20, "stratified": False}, 40, 20),
    ]
    for options, n_train, n_test in cases:
        part = split.rows_of(rows, options, 0, [7, 0])
        assert part.test is not None
        assert (part.train.n, part.test.n) == (n_train, n_test)
        assert not set(ids(part.train)) & set(ids(part.test))
    first = ids(split.rows_of(rows, {}, 0, [7, 0]).test)
    assert first == ids(split.rows_of(rows, {}, 0, [7, 0]).test)
    assert first != ids(split.rows_of(rows, {}, 0, [7, 1]).test)
    with pytest.raises(SettingsError, match="cannot be taken"):
        split.rows_of(rows, {"n_train": 90, "n_test": 20}, 0, [7, 0])


@pytest.mark.parametrize(("n", "m"), [(10, 3), (7, 7), (5, 0), (101, 50), (3, 1)])
def test_every_spreads_evenly(n: int, m: int) -> None:
    mask = every(n, m)
    assert mask.sum() == m
    gaps = np.diff(np.flatnonzero(mask))
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_the_key_of_a_part_follows_what_matters(tmp_path: Path) -> None:
    def key(text: str, repetition: int = 0) -> str:
        plan, part = plan_of(tmp_path, text), Part(0, repetition, 0)
        return key_of(plan, part, plan.at(plan.variants()[part.variant]).data.fingerprint())

    base = key(MINIMAL)
    assert base == key(MINIMAL + "about: something else\nname: other\n")
    assert base == key(MINIMAL + "expect: [{figure: test.error, at_most: 1}]\n")
    assert base == key(MINIMAL + "repetitions: 3\n")
    assert base == key(MINIMAL + "vary: {train.gamma: [1, 2]}\n")
    different = [
        key(MINIMAL.replace("gamma: 1", "gamma: 2")),
        key(MINIMAL.replace("xor", "moons")),
        key(MINIMAL + "seed: 1\n"),
        key(MINIMAL + "repetitions: 3\n", repetition=1),
    ]
    assert len({base, *different}) == 5


# ---- figures and verdicts -------------------------------------------------------------------


def test_statistics_and_spread() -> None:
    summary = Summary([1.0, 2.0, 6.0])
    assert summary.mean == 3.0
    assert summary.sd == pytest.approx(np.std([1, 2, 6], ddof=1))
    assert Summary([1.0]).sd is None
    values = {name: function([1.0, 2.0, 6.0]) for name, function in STATISTICS.items()}
    assert (values["median"], values["min"], values["max"]) == (2.0, 1.0, 6.0)


@pytest.mark.parametrize(
    ("keys", "obtained", "holds"),
    [
        ({"value": 0.5, "tolerance": 0.1}, 0.6, True),
        ({"value": 0.5, "tolerance": 0.1}, 0.601, False),
        ({"value": 0.5, "tolerance": 0.1}, 0.399, False),
        ({"value": 567.787, "relative": 1e-5}, 567.7926, True),
        ({"value": 567.787, "relative": 1e-5}, 567.794, False),
        ({"value": -2.0, "relative": 0.1}, -2.2, True),
        ({"at_most": 1e-3}, 1e-3, True),
        ({"at_most": 1e-3}, 1.01e-3, False),
        ({"at_least": 1, "at_most": 2}, 1.5, True),
        ({"at_least": 1, "at_most": 2}, 0.5, False),
        ({"value": 0.3, "tolerance": 0}, 0.1 + 0.2, True),
    ],
)
def test_verdicts(keys: dict[str, float], obtained: float, holds: bool) -> None:
    expectation = Expectation.make("test.x", **keys)
    verdict = judge(expectation, {}, {"test.x": Summary([obtained])})
    assert verdict is not None
    assert verdict.holds is holds


def test_a_figure_that_did_not_come_out_does_not_hold() -> None:
    verdict = judge(Expectation.make("test.x", at_most=1), {}, {})
    assert verdict is not None
    assert verdict.obtained is None
    assert not verdict.holds


def test_an_expectation_is_about_its_variant_and_statistic() -> None:
    expectation = Expectation.make("f", at_most=2, statistic="max", where={"train.cost": 1.0})
    figures = {"f": Summary([1.0, 3.0])}
    assert judge(expectation, {"train.cost": 10.0}, figures) is None
    verdict = judge(expectation, {"train.cost": 1.0}, figures)
    assert verdict is not None
    assert verdict.obtained == 3.0
    assert not verdict.holds


def test_steps_say_what_they_yield() -> None:
    for step in STEPS.values():
        assert set(step.after) <= set(STEPS)
        assert len(set(step.figures)) == len(step.figures)
