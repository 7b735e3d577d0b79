"""Probabilities: kfu train --probability, kfu predict --output probabilities, and their scores."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from cli_toys import libsvm_text, two_classes

from kfu import KernelSpec, train
from kfu.io import read_dataset
from kfu.machines import MACHINES
from kfu.machines.probability import METHODS, OUTPUTS
from kfu.model import Model

CLASSIFIERS = [m.name for m in MACHINES.values() if m.kind == "classifier" and m.name != "kpm"]


def trained(kfu, data, *args):
    result = kfu("train", data, *args, "-o", "p.kfu", "--report", "p.json", "-q", "-g", 0.5)
    assert result.exit_code == 0, result.stderr
    return json.loads(Path("p.json").read_text())


def read_table(kfu, data):
    """Column names, labels and probabilities of every row, and the report."""
    args = ["--output", "probabilities", "-o", "out", "--report", "-"]
    result = kfu("predict", "p.kfu", data, *args)
    assert result.exit_code == 0, result.stderr
    lines = Path("out").read_text().splitlines()
    names = lines[0].removeprefix("# ").split("\t")
    rows = [line.split("\t") for line in lines[1:]]
    labels = [row[0] for row in rows]
    return names, labels, np.array([row[1:] for row in rows], float), json.loads(result.stdout)


def check_table(names, labels, p):
    assert names[0] == "label"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.all(p >= 0)
    assert [names[1 + k] for k in np.argmax(p, axis=1)] == labels


@pytest.mark.parametrize("machine", CLASSIFIERS)
def test_every_classifier(machine, kfu, three_classes):
    report = trained(kfu, three_classes, "-m", machine, "--probability")
    assert report["probability"] == "sigmoid"
    names, labels, p, found = read_table(kfu, three_classes)
    assert names == ["label", "ash", "birch", "cedar"]
    check_table(names, labels, p)
    assert labels == kfu("predict", "p.kfu", three_classes, "-q").stdout.split()
    truth = read_dataset(three_classes).y
    by_hand = -np.mean([np.log(p[k, names.index(y) - 1]) for k, y in enumerate(truth)])
    assert found["log_loss"] == pytest.approx(by_hand, rel=1e-9)
    assert found["log_loss"] < np.log(3)
    assert 0 <= found["calibration_error"] <= 1
    assert 0 <= found["brier_score"] <= 2


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("method", METHODS)
def test_methods_and_outputs(method, outputs, kfu, toy, toy_test):
    args = ["--probability", method, "--probability-outputs", outputs]
    settings = trained(kfu, toy, *args)["settings"]
    assert settings["probability"] == method
    assert settings["probability_outputs"] == outputs
    names, labels, p, found = read_table(kfu, toy_test)
    assert names == ["label", "-1", "1"]
    check_table(names, labels, p)
    truth = read_dataset(toy_test).y == 1
    assert found["log_loss"] == pytest.approx(
        -np.mean(np.where(truth, np.log(p[:, 1]), np.log(p[:, 0]))), rel=1e-9
    )
    assert found["brier_score"] == pytest.approx(np.mean((p[:, 1] - truth) ** 2))
    assert found["log_loss"] < np.log(2)
    # The probability rises with the output.
    f = Model.load("p.kfu").decision_function(read_dataset(toy_test).X)[:, 0]
    assert np.all(np.diff(p[np.argsort(f), 1]) >= -1e-12)


@pytest.mark.parametrize("code", ["ova", "complete", "sparse", "crammer-singer", "weston-watkins"])
def test_every_kind_of_code(code, kfu, three_classes):
    trained(kfu, three_classes, "--multiclass", code, "--probability")
    names, labels, p, _ = read_table(kfu, three_classes)
    check_table(names, labels, p)


def test_the_machine_is_that_without_probabilities(kfu, three_classes):
    trained(kfu, three_classes)
    plain = Model.load("p.kfu")
    trained(kfu, three_classes, "--probability")
    model = Model.load("p.kfu")
    np.testing.assert_array_equal(plain.coef, model.coef)
    np.testing.assert_array_equal(plain.bias, model.bias)


def test_the_seed_chooses_the_folds(kfu, toy):
    found = []
    for seed in (0, 0, 1):
        trained(kfu, toy, "--probability", "--seed", seed)
        found.append(Model.load("p.kfu").calibration)
    assert found[0] == found[1] != found[2]


def test_rows_in_blocks_and_without_labels(kfu, three_classes, tmp_path):
    trained(kfu, three_classes, "--probability")
    _, _, whole, _ = read_table(kfu, three_classes)
    args = ["--output", "probabilities", "-q", "--block-rows", 7, "--no-labels"]
    lines = kfu("predict", "p.kfu", three_classes, *args).stdout.splitlines()[1:]
    np.testing.assert_array_equal(np.array([ln.split("\t")[1:] for ln in lines], float), whole)


class TestWithout:
    def test_a_model_without(self, kfu, toy_model, toy):
        result = kfu("predict", toy_model, toy, "--output", "probabilities")
        assert result.exit_code == 1
        assert "holds no probabilities; train it with --probability" in result.stderr
        assert result.stdout == ""

    def test_a_regression(self, kfu, toy):
        assert kfu("train", toy, "-m", "svr", "-o", "r.kfu", "-q").exit_code == 0
        result = kfu("predict", "r.kfu", toy, "--output", "probabilities")
        assert result.exit_code == 2
        assert "it has no classes to give probabilities of" in result.stderr


class TestFewRows:
    @pytest.fixture
    def lonely(self, tmp_path: Path) -> Path:
        """Twenty rows of one class and one row of another."""
        X, y = two_classes(n=40)
        kept = np.append(np.flatnonzero(y == 1), 1)
        path = tmp_path / "lonely.svm"
        path.write_text(libsvm_text(X[kept], np.where(y[kept] == 1, "many", "one")))
        return path

    def test_folds_name_the_class(self, kfu, lonely):
        result = kfu("train", lonely, "--probability")
        assert result.exit_code == 2
        assert "class 'one' has one example" in result.stderr
        assert not Path("lonely.kfu").exists()

    def test_hold_out_warns(self, kfu, lonely):
        args = ["--probability", "--probability-outputs", "hold-out"]
        result = kfu("train", lonely, *args, "-o", "p.kfu", "--report", "p.json")
        assert result.exit_code == 0, result.stderr
        warnings = json.loads(Path("p.json").read_text())["warnings"]
        assert any("class 'one' has a single row" in text for text in warnings)
        assert "UserWarning" not in result.stderr
        names, labels, p, _ = read_table(kfu, lonely)
        check_table(names, labels, p)

    def test_span_needs_no_folds(self, kfu, lonely):
        trained(kfu, lonely, "--probability", "--probability-outputs", "span")
        check_table(*read_table(kfu, lonely)[:3])


def test_row_weights_count_in_the_calibration(kfu, toy):
    """A row of weight 0 is not there: neither for the machine nor for its probabilities."""
    weights = np.where(np.arange(80) % 8 == 0, 0, 1)
    Path("w.txt").write_text("\n".join(map(str, weights)))
    trained(kfu, toy, "--probability", "--weights", "w.txt")
    weighed = Model.load("p.kfu").calibration
    trained(kfu, toy, "--probability")
    assert Model.load("p.kfu").calibration != weighed


def test_an_interrupt_in_the_folds_keeps_the_machine(monkeypatch):
    X, y = two_classes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("kfu.validation.cross_validation.cross_validate", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = train(X, y, kernel=KernelSpec.make("rbf", gamma=0.5), probability="sigmoid")
    assert model.info["status"] == "interrupted"
    assert model.calibration is None
    assert "the model has none" in model.info["warnings"][-1]
    assert model.n_sv > 0


@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets")
@pytest.mark.parametrize(
    ("name", "gamma", "cost", "n_train", "n_test"),
    [("a9a", 0.05, 1.0, 800, 3000), ("letter", 1.0, 10.0, 780, 800)],
)
def test_no_worse_than_a_peer(name, gamma, cost, n_train, n_test):
    """Log loss of Platt's method beside scikit-learn's, the same folds and machine.

    The two differ in what becomes of several classes (coupling here, a row's votes made one score
    for each class there), so kfu may be better and must not be worse than noise.
    """
    pytest.importorskip("sklearn")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.metrics import log_loss
    from sklearn.svm import SVC

    from kfu.validation.folds import make_folds

    folder = Path(os.environ["KFU_DATA"])
    part = read_dataset(str(folder / f"{name}.tr.gz")).take(np.arange(n_train))
    test = read_dataset(str(folder / f"{name}.t.gz")).take(np.arange(n_test))
    X, T = (data.X.toarray() if data.is_sparse else data.X for data in (part, test))
    T = np.pad(T, ((0, 0), (0, max(0, X.shape[1] - T.shape[1]))))[:, : X.shape[1]]
    model = train(
        X, part.y, kernel=KernelSpec.make("rbf", gamma=gamma), cost=cost, probability="sigmoid"
    )
    ours = log_loss(test.y, model.probabilities(T), labels=model.classes)
    folds = list(make_folds("stratified", part.n, k=5, labels=part.y, seed=0))
    peer = CalibratedClassifierCV(SVC(C=cost, gamma=gamma), cv=folds, ensemble=False)
    peer.fit(X, part.y)
    theirs = log_loss(test.y, peer.predict_proba(T), labels=model.classes)
    assert ours <= 1.02 * theirs, (ours, theirs)
