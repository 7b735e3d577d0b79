"""Machines of a code and folds as tasks: the same answer in threads, in processes, and when a
worker is killed."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kfu.engine.dask_engine import DaskEngine
from kfu.engine.fold_tasks import cross_validate_by_engine
from kfu.engine.local import LocalEngine
from kfu.engine.machine_tasks import SharedTraining, groups_of
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.machines import train
from kfu.machines.training import prepare
from kfu.solvers import SolverSettings
from kfu.validation.cross_validation import cross_validate
from kfu.validation.folds import make_folds

pytest.importorskip("distributed")
RBF = KernelSpec.make("rbf", gamma=0.02)


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    with DaskEngine(workers=2, memory_limit="0") as made:
        yield made


@pytest.fixture
def quiet(engine: DaskEngine) -> DaskEngine:
    engine.progress = None
    return engine


def classes(n: int = 300, k: int = 4, d: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + 0.6 * rng.normal(size=(k, d))[y], y


def assert_same_model(found: Any, expected: Any) -> None:
    assert np.array_equal(found.support, expected.support)
    scale = np.abs(expected.coef).max()
    assert np.abs(found.coef - expected.coef).max() <= 1e-8 * scale
    assert np.abs(found.bias - expected.bias).max() <= 1e-8 * max(1.0, np.abs(expected.bias).max())
    assert found.info["objective"] == pytest.approx(expected.info["objective"], rel=1e-8)
    assert found.info["iterations"] == expected.info["iterations"]


@pytest.mark.parametrize(
    "options",
    [
        {"multiclass": "ava"},
        {"multiclass": "ova", "machine": "svc2"},
        {"multiclass": "dense", "bias": "regularised"},
        {"multiclass": "ava", "machine": "nu-svc", "nu": 0.2},
        {"multiclass": "ova", "kernel": KernelSpec.make("linear")},
        {"multiclass": "ava", "class_weight": {0: 3.0}, "margins": "auto"},
    ],
)
def test_machines_of_a_code(options: dict[str, Any], quiet: DaskEngine) -> None:
    X, y = classes()
    arguments = {"kernel": RBF, **options}
    expected = train(X, y, **arguments)
    assert_same_model(train(X, y, engine=quiet, **arguments), expected)
    with LocalEngine(2) as threads:
        assert_same_model(train(X, y, engine=threads, **arguments), expected)


def test_rows_of_their_own_start_where_the_start_model_is(quiet: DaskEngine) -> None:
    X, y = classes()
    first = train(X, y, kernel=RBF, multiclass="ava")
    again = train(X, y, kernel=RBF, multiclass="ava", start=first, engine=quiet)
    assert again.info["iterations"] < first.info["iterations"] / 4


def test_machines_beyond_the_most_tasks_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfu.engine.machine_tasks.MOST_TASKS", 3)
    groups = groups_of([5, 9, 1, 9, 7])
    assert groups == [[1, 3], [4, 0], [2]]  # the largest first, each machine once
    X, y = classes()
    with LocalEngine(2) as threads:
        found = train(X, y, kernel=RBF, multiclass="ava", engine=threads)
    assert_same_model(found, train(X, y, kernel=RBF, multiclass="ava"))


def test_what_is_made_on_a_worker_does_not_travel() -> None:
    X, y = classes(60)
    shared = SharedTraining(prepare(X, y, kernel=RBF, multiclass="ava"))
    first = shared.solution(0)
    back = pickle.loads(pickle.dumps(shared))
    assert np.array_equal(back.solution(0).beta, first.beta)


def test_limits_of_one_process_are_refused(quiet: DaskEngine) -> None:
    X, y = classes(60)
    with pytest.raises(SettingsError, match="without checkpoints and limits"):
        train(X, y, engine=quiet, settings=SolverSettings(max_seconds=5.0))


def killing(engine: DaskEngine, stage: str, after: int) -> list[int]:
    """Kill a worker once so many tasks of the stage are done; tells whether it happened."""
    victim = sorted(engine.client.run(os.getpid).values())[0]
    killed: list[int] = []

    def progress(at: str, done: int, total: int) -> None:
        if at == stage and done == after and not killed:
            assert done < total
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    engine.progress = progress
    return killed


def test_a_worker_killed_among_the_machines(engine: DaskEngine) -> None:
    X, y = classes(400, 6)
    expected = train(X, y, kernel=RBF, multiclass="ava", cost=10.0)
    killed = killing(engine, "machines", 2)
    found = train(X, y, kernel=RBF, multiclass="ava", cost=10.0, engine=engine)
    assert len(killed) == 1
    assert_same_model(found, expected)


LEARNERS = [
    {"kernel": RBF, "cost": 1.0},
    {"kernel": RBF, "cost": 10.0, "multiclass": "ova"},
    {"kernel": KernelSpec.make("rbf", gamma=0.1), "machine": "rlsc", "ridge": 1.0},
]


def assert_same_folds(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    assert len(found.folds) == len(expected.folds)
    for a, b in zip(found.folds, expected.folds, strict=True):
        assert np.array_equal(a.test, b.test)
        assert np.abs(a.decision - b.decision).max() <= rtol * np.abs(b.decision).max()
        assert np.array_equal(a.predicted, b.predicted)
        assert a.scores == b.scores


def test_folds_of_learners(quiet: DaskEngine) -> None:
    X, y = classes(240)
    folds = make_folds("stratified", len(y), k=4, labels=y, seed=1)
    learners = [{"y": y, **learner} for learner in LEARNERS]
    found = cross_validate_by_engine(X, folds, learners, quiet)
    with LocalEngine(2) as threads:
        here = cross_validate_by_engine(X, folds, learners, threads)
    for learner, a, b in zip(learners, found, here, strict=True):
        assert_same_folds(a, b)
        in_turn = cross_validate(X, folds, options=learner)
        # A fold that starts from the one before ends within the tolerance of the same solution.
        tight = 1e-8 if learner.get("machine") == "rlsc" else 2e-2
        for one, other in zip(a.folds, in_turn.folds, strict=True):
            assert np.abs(one.decision - other.decision).max() <= tight * 2
        assert a.classes.tolist() == in_turn.classes.tolist()


def test_folds_give_what_training_on_their_rows_gives(quiet: DaskEngine) -> None:
    X, y = classes(120, 2)
    folds = make_folds("k-fold", len(y), k=3, seed=0)
    (found,) = cross_validate_by_engine(X, folds, [{"y": y, "kernel": RBF}], quiet)
    for (rows, test), fold in zip(folds, found.folds, strict=True):
        model = train(X[rows], y[rows], kernel=RBF)
        assert np.allclose(fold.decision, model.decision_function(X[test]), atol=5e-3)


def test_exact_leave_one_out_is_one_task(engine: DaskEngine) -> None:
    X, y = classes(60, 2)
    folds = make_folds("loo", len(y))
    told: list[tuple[str, int, int]] = []
    engine.progress = lambda *what: told.append(what)
    learners = [{"y": y, "kernel": RBF, "cost": cost} for cost in (0.1, 1.0)]
    found = cross_validate_by_engine(X, folds, learners, engine)
    assert sorted(told) == [("folds", 1, 2), ("folds", 2, 2)]
    for learner, one in zip(learners, found, strict=True):
        assert_same_folds(one, cross_validate(X, folds, options=learner))


def test_a_worker_killed_among_the_folds(engine: DaskEngine) -> None:
    X, y = classes(500, 3)
    folds = make_folds("stratified", len(y), k=10, labels=y, seed=2)
    learners = [{"y": y, **learner} for learner in LEARNERS]
    killed = killing(engine, "folds", 4)
    found = cross_validate_by_engine(X, folds, learners, engine)
    assert len(killed) == 1
    with LocalEngine(1) as threads:
        for a, b in zip(found, cross_validate_by_engine(X, folds, learners, threads), strict=True):
            assert_same_folds(a, b)


def test_errors_of_a_fold_are_those_of_the_local_run(quiet: DaskEngine) -> None:
    X, y = classes(40, 2)
    y[:] = 0
    y[3] = 1
    folds = make_folds("k-fold", len(y), k=4, seed=0)
    learner = {"y": y, "kernel": RBF, "source": "rows.svm"}
    with pytest.raises(DataError) as expected:
        cross_validate(X, folds, options=learner)
    with pytest.raises(DataError) as found:
        cross_validate_by_engine(X, folds, [learner], quiet)
    assert str(found.value) == str(expected.value)
