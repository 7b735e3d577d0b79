"""Exact leave-one-out of every machine of a dual against training again without each row."""

from __future__ import annotations

import itertools

import kfu._path
import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machines.training import prepare, train
from kfu.solvers import SolverSettings
from kfu.validation.leave_one_out import MACHINES, leave_one_out_outputs

TIGHT = SolverSettings(tolerance=1e-9, threads=1, polish=True)
LOOSE = SolverSettings(tolerance=1e-2, threads=1)
# Outputs of nu-svc are divided by ρ, which may be 1e-5, and the tolerance acts before that.
TIGHTEST = SolverSettings(tolerance=1e-13, threads=1, precision="float64")

CASES = {
    "svc": [{"cost": 1.0}, {"cost": 100.0}, {"cost": 1.0, "bias": "none"}],
    "svc2": [{"cost": 1.0}, {"cost": 3.0, "bias": "none"}],
    "nu-svc": [{"nu": 0.3}],
    "one-class": [{"nu": 0.3}],
    "svr": [{"cost": 2.0, "epsilon": 0.1}, {"cost": 0.5, "epsilon": 0.3, "bias": "none"}],
    "nu-svr": [{"cost": 2.0, "nu": 0.4}],
}
ALL = [(machine, options) for machine, cases in CASES.items() for options in cases]


KINDS = {
    "general": "rows in general position, with weights",
    "grid": "rows on a grid: ties",
    "twice": "each row given twice",
    "opposite": "some rows given twice, with opposite labels or targets",
    "two": "a class of two rows",
    "line": "one feature",
    "many": "more features than rows",
    "constant": "a feature that is constant, and one that is zero",
    "separated": "classes far apart",
    "noise": "labels that have nothing to do with the rows",
}


def data(machine: str, kind: str, n: int = 40) -> tuple[np.ndarray, np.ndarray | None]:
    """A small set of a kind of KINDS."""
    random = np.random.default_rng(7)
    X = random.normal(size=(n, 2))
    noisy = X[:, 0] + 0.5 * random.normal(size=n)
    if kind == "grid":
        X = np.round(X)
    elif kind == "twice":
        X, noisy = np.tile(X[: n // 2], (2, 1)), np.tile(noisy[: n // 2], 2)
    elif kind == "opposite":
        X, noisy = np.vstack([X[:-6], X[:6]]), np.concatenate([noisy[:-6], -noisy[:6]])
    elif kind == "line":
        X = X[:, :1]
    elif kind == "many":
        X = np.hstack([X, random.normal(size=(n, n))]) / np.sqrt(n)
    elif kind == "constant":
        X = np.hstack([X, np.full((n, 1), 3.0), np.zeros((n, 1))])
    elif kind == "separated":
        X = X + 3.0 * np.sign(noisy - np.median(noisy))[:, None]
    elif kind == "noise":
        noisy = random.normal(size=n)
    if machine == "one-class":
        return X, None
    if machine in ("svr", "nu-svr"):
        return X, np.round(noisy, 1) if kind == "grid" else noisy
    rest = 2 if kind == "two" else n // 2
    return X, np.where(noisy > np.sort(noisy)[rest - 1], 1, -1)


def by_training(X, y, weights, **arguments) -> np.ndarray:
    outputs = []
    for row in range(len(X)):
        kept = np.arange(len(X)) != row
        model = train(
            X[kept],
            None if y is None else y[kept],
            sample_weight=None if weights is None else weights[kept],
            settings=TIGHTEST if arguments.get("machine") == "nu-svc" else TIGHT,
            **arguments,
        )
        outputs.append(model.decision_function(X[row : row + 1])[0])
    return np.array(outputs)


def test_every_machine_has_a_case():
    assert set(CASES) == set(MACHINES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("machine", "options"), ALL)
def test_outputs_are_those_of_training_without_the_row(machine, options, kind):
    X, y = data(machine, kind)
    if machine == "nu-svc" and kind == "two":
        options = {"nu": 0.04}  # more than two rows of 39 could not have
    kernel = KernelSpec.make("rbf", gamma=0.7)
    weights = np.random.default_rng(3).integers(1, 4, size=len(X)).astype(float)
    weights = weights if kind == "general" else None
    arguments = {"machine": machine, "kernel": kernel, **options}
    task = prepare(X, y, sample_weight=weights, settings=LOOSE, **arguments)
    found = leave_one_out_outputs(task, task.machine.train(task))
    wanted = by_training(X, y, weights, **arguments)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("code", ["ova", "ava"])
def test_the_machines_of_a_code(code):
    random = np.random.default_rng(1)
    X = random.normal(size=(36, 2))
    y = np.array(["a", "b", "c"])[random.integers(0, 3, size=36)]
    arguments = {"kernel": KernelSpec.make("rbf", gamma=1.0), "cost": 2.0, "multiclass": code}
    task = prepare(X, y, settings=LOOSE, **arguments)
    found = leave_one_out_outputs(task, task.machine.train(task))
    np.testing.assert_allclose(found, by_training(X, y, None, **arguments), atol=1e-6)


def test_threads_and_a_small_cache_do_not_matter():
    X, y = data("svc", "general", 200)
    kernel = KernelSpec.make("rbf", gamma=0.7)
    first = prepare(X, y, kernel=kernel, cost=5.0, settings=SolverSettings(threads=1))
    model = first.machine.train(first)
    wanted = leave_one_out_outputs(first, model)
    for threads in (2, 3):
        task = prepare(X, y, kernel=kernel, cost=5.0, settings=SolverSettings(threads=threads))
        np.testing.assert_array_equal(leave_one_out_outputs(task, model), wanted)
    # Rows of K and columns of the tableau in part, and none of them.
    for mib in (0.5, 0.02):
        settings = SolverSettings(threads=2, cache_mib=mib)
        task = prepare(X, y, kernel=kernel, cost=5.0, settings=settings)
        np.testing.assert_allclose(leave_one_out_outputs(task, model), wanted, atol=1e-9)


@pytest.fixture
def ways(monkeypatch) -> list[int]:
    """The number of stretches of each row that is left out by the tableau, -1 of a path of its
    own."""
    seen: list[int] = []
    real = kfu._path.Tableau

    class Seen:
        def __init__(self, *arguments):
            self.real = real(*arguments)

        def __getattr__(self, name):
            return getattr(self.real, name)

        def outputs_without(self, items, changes, outputs, thetas, steps):
            self.real.outputs_without(items, changes, outputs, thetas, steps)
            seen.extend(steps.tolist())

    monkeypatch.setattr(kfu._path, "Tableau", Seen)
    return seen


@pytest.mark.parametrize(("machine", "options"), ALL)
def test_rows_in_general_position_are_left_out_by_the_tableau(machine, options, ways):
    X, y = data(machine, "general", 60)
    task = prepare(
        X, y, machine=machine, kernel=KernelSpec.make("rbf", gamma=0.7), settings=LOOSE, **options
    )
    leave_one_out_outputs(task, task.machine.train(task))
    assert sum(way < 0 for way in ways) <= 0.05 * len(ways)
    assert max(ways) > 2


def test_what_the_tableau_does_not_decide_takes_a_path_of_its_own(ways):
    X, y = data("svc", "grid", 60)  # a fourth free row of the plane depends on three
    arguments = {"kernel": KernelSpec.make("linear"), "cost": 1.0}
    task = prepare(X, y, settings=LOOSE, **arguments)
    found = leave_one_out_outputs(task, task.machine.train(task))
    assert ways.count(-1) > 0
    np.testing.assert_allclose(found, by_training(X, y, None, **arguments), atol=1e-6)


def test_the_only_row_of_a_class_is_given_to_the_other():
    X, y = data("svc", "general", 20)
    y[:] = -1
    y[4] = 1
    task = prepare(X, y, kernel=KernelSpec.make("rbf", gamma=1.0), settings=LOOSE)
    found = leave_one_out_outputs(task, task.machine.train(task))
    assert found[4, 0] == pytest.approx(-1.0)


def test_progress_goes_to_one():
    X, y = data("svc", "general", 40)
    task = prepare(X, y, kernel=KernelSpec.make("rbf", gamma=1.0), settings=LOOSE)
    seen: list[float] = []
    leave_one_out_outputs(task, task.machine.train(task), seen.append)
    assert seen[-1] == pytest.approx(1.0)
    assert all(a <= b for a, b in itertools.pairwise(seen))


def test_nu_that_the_other_rows_cannot_have_is_told():
    X, y = data("nu-svc", "general", 20)
    y[:] = -1
    y[:4] = 1
    task = prepare(X, y, machine="nu-svc", nu=0.4, kernel=KernelSpec.make("linear"), settings=LOOSE)
    with pytest.raises(DataError, match="nu is not feasible without row 1"):
        leave_one_out_outputs(task, task.machine.train(task))


def test_a_regularised_bias_is_refused():
    X, y = data("svc", "general", 20)
    task = prepare(X, y, bias="regularised", settings=LOOSE)
    with pytest.raises(SettingsError, match="free bias or none"):
        leave_one_out_outputs(task, task.machine.train(task))
