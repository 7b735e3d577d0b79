"""Paths as objects: the oracle's breakpoints, the solver's models, files that give them back."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import kfu
from kfu.errors import ConvergenceWarning, DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.paths import load_path, svm_path
from kfu.paths.certificate import certify
from kfu.paths.following import FollowOptions, follow_path, path_task
from kfu.paths.path_file import read_path_file
from kfu.paths.recording import Recorder
from kfu.paths.registry import PATHS, Span, definition_of
from kfu.paths.resuming import resume_path
from kfu.solvers import SolverSettings
from tests.oracles import paths as oracle
from tests.oracles.kernels import rbf

EXACT = SolverSettings(tolerance=1e-10, max_seconds=30, polish=True)
GAMMA = 0.5
RBF = KernelSpec.make("rbf", gamma=GAMMA)


def two_classes(n: int = 40, seed: int = 0, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.6 * y[:, None], y


def targets(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)


def gram(X: np.ndarray) -> np.ndarray:
    return np.asarray(rbf(X, X, GAMMA))


# ---- against the oracle ---------------------------------------------------------------------


@pytest.mark.parametrize(("share", "weighted"), [(0.5, False), (0.3, False), (0.4, True)])
def test_breakpoints_are_the_oracles(share: float, weighted: bool) -> None:
    X, y = two_classes(share=share, seed=3)
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    stop = 0.01
    expected = oracle.follow(gram(X), y, w, stop=stop)
    path = svm_path(X, y, gamma=GAMMA, sample_weight=w, low=stop)
    np.testing.assert_allclose(path.columns["lambda"], expected.lambdas, rtol=1e-7)
    steps = path.steps
    moved = [(step["items"], step["event"]) for step in steps[1:-1]]
    assert moved == [([item], word) for item, word in expected.moved[:-1]]
    assert steps[-1]["event"] == "end"
    np.testing.assert_array_equal(
        path.columns["n_margin"], [len(margin) for margin in expected.margins]
    )
    for lam in np.geomspace(stop, expected.lambdas[0], 7):
        found = path.at(lam=lam).decision_function(X)[:, 0]
        np.testing.assert_allclose(found, expected.decision(gram(X), y, lam), atol=1e-7)


def test_reports_tell_how_good_the_directions_were() -> None:
    X, y = two_classes(seed=3)
    path = svm_path(X, y, gamma=GAMMA, low=1e-3)
    report = path.summary()
    assert report["corrections"] > 1
    assert report["refactorings"] == report["restarts"] == 0
    assert 0.0 < report["residual"] < 1e-14
    assert report["residual"] == path.track.counters["residual"]


# ---- against training -----------------------------------------------------------------------

CASES = {
    ("svc", "lambda"): {},
    ("svr", "lambda"): {"epsilon": 0.2},
    ("svr", "epsilon"): {"cost": 2.0},
    ("one-class", "nu"): {},
    ("nu-svc", "nu"): {},
}


def trained(machine: str, parameter: str, X, y, value: float, options: dict):
    given = dict(options)
    given["cost" if parameter == "lambda" else parameter] = (
        1.0 / value if parameter == "lambda" else value
    )
    return kfu.train(X, y, machine=machine, kernel=RBF, settings=EXACT, **given)


def agree(model, expected, X) -> None:
    """Equal outputs, where no row fixes the bias too: both take the middle of its interval."""
    outputs = model.decision_function(X)[:, 0]
    wanted = expected.decision_function(X)[:, 0]
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(outputs, wanted, atol=1e-6 * scale)


def test_every_path_has_a_case() -> None:
    assert set(CASES) == set(PATHS)


@pytest.mark.parametrize(("machine", "parameter"), CASES)
def test_models_are_those_of_training(machine: str, parameter: str, tmp_path: Path) -> None:
    X, y = targets() if machine == "svr" else two_classes()
    options = CASES[machine, parameter]
    path = svm_path(X, y, machine=machine, parameter=parameter, gamma=GAMMA, **options)
    assert path.is_finished
    assert path.columns["kkt"].max() < 1e-8
    path.save(tmp_path / "p.jsonl")
    again = load_path(tmp_path / "p.jsonl", X, y)
    assert again.steps == path.steps
    assert again.status == path.status
    low = max(path.low, 1e-2 * path.high)
    for value in np.random.default_rng(0).uniform(low, path.high, 5):
        name = {"lambda": "lam"}.get(parameter, parameter)
        model = path.at(**{name: value})
        expected = trained(machine, parameter, X, y, value, options)
        agree(model, expected, X)
        assert model.info["objective"] == pytest.approx(expected.info["objective"], rel=1e-6)
        assert model.info["kkt_violation"] < 1e-8
        np.testing.assert_array_equal(again.at(**{name: value}).coef, model.coef)


@pytest.mark.parametrize("bias", [True, False])
def test_weights_and_bias_are_those_of_training(bias: bool) -> None:
    X, y = two_classes(seed=5)
    weights = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    given = {"class_weight": {1.0: 2.0}, "sample_weight": weights, "bias": bias}
    path = svm_path(X, y, gamma=GAMMA, **given)
    for C in (0.3, 3.0, 30.0):
        expected = kfu.train(X, y, kernel=RBF, cost=C, settings=EXACT, **given)
        agree(path.at(C), expected, X)


def test_text_labels_sparse_rows_and_precomputed_kernels_give_the_same() -> None:
    X, y = two_classes()
    plain = svm_path(X, y, gamma=GAMMA)
    named = svm_path(sp.csr_matrix(X), np.where(y > 0, "birch", "ash"), gamma=GAMMA)
    given = svm_path(gram(X), y, kernel="precomputed")
    for other in (named, given):
        np.testing.assert_allclose(other.columns["lambda"], plain.columns["lambda"], rtol=1e-6)
    assert named.at(1.0).predict(X[:1]).tolist() == ["birch"]
    np.testing.assert_allclose(
        given.at(2.0).decision_function(gram(X)), plain.at(2.0).decision_function(X), atol=1e-8
    )


# ---- ends -----------------------------------------------------------------------------------


def test_beyond_its_ends_a_path_says_what_it_knows() -> None:
    X, y = two_classes(seed=1)
    X = X + 2.0 * y[:, None]  # separated
    path = svm_path(X, y, kernel="linear")
    assert path.status == "hard_margin"
    assert path.columns["n_error"][-1] == 0
    hard = path.at(float(1.0 / path.low))
    np.testing.assert_allclose(path.at(1e6).coef, hard.coef)
    few = float(0.5 / path.high)  # above the first breakpoint every row is at its cost
    expected = kfu.train(X, y, kernel=KernelSpec.make("linear"), cost=few, settings=EXACT)
    np.testing.assert_allclose(np.abs(path.at(few).coef), few, rtol=1e-9)
    assert path.at(few).bias[0] == pytest.approx(expected.bias[0], abs=1e-9)


def test_values_off_the_path_are_refused() -> None:
    X, y = two_classes()
    path = svm_path(X, y, gamma=GAMMA, low=0.1, high=1.0)
    with pytest.raises(SettingsError, match=r"C = 20 is not on the path, .* C = 1 to 10"):
        path.at(20.0)
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(SettingsError, match="greater than 0"):
            path.at(bad)
    with pytest.raises(SettingsError, match="no epsilon"):
        path.at(epsilon=0.1)
    with pytest.raises(SettingsError, match="one value"):
        path.at(1.0, lam=1.0)
    assert path.at(10.0).settings["cost"] == pytest.approx(10.0)  # an end, but for rounding


def test_upward_and_downward_meet_the_same_breakpoints() -> None:
    X, y = two_classes()
    down = svm_path(X, y, gamma=GAMMA, low=0.05, high=2.0)
    up = svm_path(X, y, gamma=GAMMA, low=0.05, high=2.0, upward=True)
    np.testing.assert_allclose(up.columns["lambda"][::-1], down.columns["lambda"], rtol=1e-8)
    assert up.columns["lambda"][0] == 0.05
    assert down.columns["lambda"][0] == 2.0


def test_a_limit_of_steps_warns_and_marks() -> None:
    X, y = two_classes()
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        path = svm_path(X, y, gamma=GAMMA, max_steps=5)
    assert path.n_steps == 5
    assert not path.is_finished
    assert "end" not in path.steps[-1]["event"]
    with pytest.raises(SettingsError, match="resume it"):
        path.at(1e4)


# ---- validation -----------------------------------------------------------------------------


def test_validation_curve_counts_what_predict_gets_wrong() -> None:
    X, y = two_classes(60)
    V, v = two_classes(50, seed=9)
    path = svm_path(X, y, gamma=GAMMA, validate=(V, v), low=0.05)
    curve, training = path.validation_curve(), path.training_curve()
    for lam in np.random.default_rng(0).uniform(path.low, path.high, 20):
        model = path.at(lam=lam)
        assert float(curve(lam)) == pytest.approx(np.mean(model.predict(V) != v))
        assert float(training(lam)) == pytest.approx(np.mean(model.predict(X) != y))
    middles = np.sqrt(path.columns["lambda"][1:] * path.columns["lambda"][:-1])
    assert path.columns["valid_error"][:-1].min() >= curve(middles).min()


def test_validation_rows_are_checked() -> None:
    X, y = two_classes()
    with pytest.raises(DataError, match="label 5 in row 1 is no class"):
        svm_path(X, y, validate=(X, np.full(len(y), 5.0)))
    with pytest.raises(DataError, match="1 features where the path has 2"):
        svm_path(X, y, validate=(X[:, :1], y))
    with pytest.raises(SettingsError, match="no classes whose errors"):
        svm_path(*targets(), machine="svr", validate=targets())
    with pytest.raises(SettingsError, match="without validation rows"):
        svm_path(X, y).validation_curve()


# ---- files ----------------------------------------------------------------------------------


def test_a_file_is_not_taken_for_other_rows(tmp_path: Path) -> None:
    X, y = two_classes()
    file = tmp_path / "p.jsonl"
    svm_path(X, y, gamma=GAMMA).save(file)
    changed = X.copy()
    changed[3, 1] += 1e-9
    for other_X, other_y in ((changed, y), (X, -y)):
        with pytest.raises(DataError, match="not the rows that"):
            load_path(file, other_X, other_y)
    with pytest.raises(DataError, match="40 rows and 1 features"):
        load_path(file, X[:, :1], y)
    with pytest.raises(SettingsError, match="does not say where its rows are"):
        load_path(file)


def test_a_line_whose_events_cannot_be_is_named(tmp_path: Path) -> None:
    X, y = two_classes()
    file = tmp_path / "p.jsonl"
    svm_path(X, y, gamma=GAMMA).save(file)
    lines = file.read_text().splitlines()
    for words, match in (("upper", "upper"), ("error+error", "2 words for 1 items")):
        record = {**json.loads(lines[3]), "event": words, "items": [0]}
        file.write_text("\n".join([*lines[:3], json.dumps(record), *lines[4:]]) + "\n")
        with pytest.raises(DataError, match=rf"p\.jsonl:4: events that cannot be .*{match}"):
            load_path(file, X, y)
    record = {**json.loads(lines[3]), "items": [99], "event": "margin"}
    file.write_text("\n".join([*lines[:3], json.dumps(record), *lines[4:]]) + "\n")
    with pytest.raises(DataError, match="no row 99"):
        load_path(file, X, y)
    record = {**json.loads(lines[3]), "lambda": 1e9}
    file.write_text("\n".join([*lines[:3], json.dumps(record), *lines[4:]]) + "\n")
    with pytest.raises(DataError, match=r"p\.jsonl:4: lambda goes back"):
        load_path(file, X, y)


def test_what_a_killed_run_leaves_is_resumed(tmp_path: Path) -> None:
    X, y = two_classes(60)
    definition = definition_of("svc")
    task = path_task(definition, X, y, kernel=RBF)
    span = Span(low=0.05)
    whole = follow_path(definition, task, span, FollowOptions(), to_file=str(tmp_path / "a"))
    assert read_path_file(tmp_path / "a").records == whole.steps
    recorder = Recorder(str(tmp_path / "b"), lambda track: track)  # type: ignore
    partial = follow_path(definition, task, span, FollowOptions(max_steps=30))
    recorder.append(partial, len(partial) - 1)  # and no more: the process is gone
    found = read_path_file(tmp_path / "b.part")
    assert found.records == whole.steps[:30]
    earlier = load_path(tmp_path / "b.part", X, y)
    done = resume_path(earlier, found, str(tmp_path / "b"), FollowOptions())
    assert (tmp_path / "b").exists()
    assert not (tmp_path / "b.part").exists()
    assert same_events(read_path_file(tmp_path / "b").records, whole.steps)
    np.testing.assert_allclose(done.at(3.0).coef, whole.at(3.0).coef, atol=1e-9)


def same_events(found: list[dict], expected: list[dict]) -> bool:
    def shown(records: list[dict]) -> list[tuple]:
        return [(r["step"], r["event"], tuple(r["items"]), r["n_margin"]) for r in records]

    values = [np.array([r["lambda"] for r in records]) for records in (found, expected)]
    return shown(found) == shown(expected) and bool(np.allclose(*values, rtol=1e-8))


@pytest.mark.parametrize("seed", range(3))
def test_resumed_again_and_again_on_tied_data(tmp_path: Path, seed: int) -> None:
    """Integers on a grid, duplicates and opposite duplicates: f is compared, which is unique."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    y = rng.choice([-1.0, 1.0], 40)
    whole = svm_path(X, y, gamma=GAMMA, low=1e-3)
    file = tmp_path / "p.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm_path(X, y, gamma=GAMMA, low=1e-3, max_steps=4).save(file)
    for _ in range(200):
        found = read_path_file(file)
        if found.is_finished:
            break
        resume_path(load_path(file, X, y), found, str(file), FollowOptions(max_steps=4))
    path = load_path(file, X, y)
    assert path.is_finished
    assert path.columns["kkt"].max() < 1e-8
    for lam in np.geomspace(2e-3, 0.9 * path.high, 12):
        beta, theta = path.solution(lam)
        sure = certify(path.track.problem, X, RBF, lam, beta, theta)
        assert max(sure.violation, sure.imbalance) < 1e-9
        outputs = [p.at(lam=lam).decision_function(X) for p in (path, whole)]
        np.testing.assert_allclose(*outputs, atol=1e-6)


# ---- bad input ------------------------------------------------------------------------------


def test_bad_input_is_refused_with_a_reason() -> None:
    X, y = two_classes()
    with pytest.raises(DataError, match="only one class"):
        svm_path(X, np.ones(len(y)))
    with pytest.raises(DataError, match="3 classes"):
        svm_path(X, np.arange(len(y)) % 3)
    with pytest.raises(SettingsError, match="no lambda lies between"):
        svm_path(X, y, low=2.0, high=1.0)
    with pytest.raises(SettingsError, match="no part of the path"):
        svm_path(X, y, low=1e9)
    with pytest.raises(SettingsError, match="no path in nu; it has one in lambda"):
        svm_path(X, y, parameter="nu")
    with pytest.raises(SettingsError, match="machine knn has no path"):
        svm_path(X, y, machine="knn")
    with pytest.raises(SettingsError, match="free bias or none"):
        svm_path(X, y, bias="regularised")
    with pytest.raises(SettingsError, match="its own gamma"):
        svm_path(X, y, kernel=RBF, gamma=1.0)


@pytest.mark.parametrize("low", [1e-9, 1e-16, 1e-20])
def test_a_path_that_begins_far_above_the_first_event_ends_with_the_same_models(low):
    random = np.random.default_rng(5)
    X = random.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=40) > 0, 1, -1)
    whole = kfu.svm_path(X, y, gamma=0.5)
    far = kfu.svm_path(X, y, gamma=0.5, high=1.0 / low)
    assert far.columns["kkt"].max() < 1e-8
    np.testing.assert_allclose(
        far.at(10.0).decision_function(X), whole.at(10.0).decision_function(X), atol=1e-9
    )


def test_rows_that_depend_on_each_other_are_rebuilt_inside_their_boxes():
    """A free block that is singular to all digits: points of a grid under a kernel of rank 6."""
    random = np.random.default_rng(95)
    n = int(random.integers(5, 80))
    X = random.normal(size=(n, 2))
    y = np.where(random.random(n) < random.choice([0.5, 0.2, 0.1]), 1.0, -1.0)
    y[:2] = 1, -1
    X[y > 0] += 1
    X = np.round(X)
    weights = random.integers(1, 4, size=n).astype(float)
    path = svm_path(
        X, y, machine="nu-svc", kernel="poly", gamma=1.0, degree=2, coef0=1.0, sample_weight=weights
    )
    K = (X @ X.T + 1.0) ** 2
    t = path.track.t
    for value in np.concatenate([t, 0.5 * (t[1:] + t[:-1])]):
        beta, theta = path.track.solution(float(value))
        F = K @ beta - np.where(y > 0, theta[0], theta[1])
        low, high = np.where(y > 0, 0.0, -weights), np.where(y > 0, weights, 0.0)
        assert np.max((-F)[beta < high - 1e-9], initial=0.0) < 1e-8
        assert np.max(F[beta > low + 1e-9], initial=0.0) < 1e-8
        for sign in (1.0, -1.0):
            assert beta[y == sign].sum() == pytest.approx(
                sign * value * weights.sum() / 2, abs=1e-9
            )
