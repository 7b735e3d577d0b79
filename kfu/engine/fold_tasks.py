"""Cross-validation as tasks of an engine: every fold of every learner is one.

The rows travel once to each worker. There a learner's folds share kernel values, as they do in one
process (kfu.validation.cross_validation); but each fold starts from zero instead of from the fold
before, as nobody knows which worker had that. So the answer does not depend on the engine, its
workers or their deaths, and differs from that of a run without engine by what the tolerance of the
solver leaves open. Exact leave-one-out of a learner is one task.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kfu.data import Matrix
from kfu.engine.local import Engine
from kfu.solvers import SolverSettings
from kfu.validation.cross_validation import (
    CrossValidation,
    FoldRunner,
    leaves_one_out,
)
from kfu.validation.folds import Folds

MOST_TASKS = 512  # of a learner; more folds are dealt to tasks of several


@dataclass(frozen=True)
class FoldTask:
    """Folds of one learner by number; none stands for exact leave-one-out of all of them."""

    learner: int
    numbers: tuple[int, ...]


class SharedFolds:
    """Rows, folds and learners on their way to workers; what folds share is made on arrival."""

    def __init__(self, X: Matrix, folds: Folds, learners: Sequence[Mapping[str, Any]]) -> None:
        self.X, self.folds, self.learners = X, folds, learners
        self._own = threading.local()  # of a thread: the learner it is at, and its FoldRunner

    def __getstate__(self) -> dict[str, Any]:
        return {"X": self.X, "folds": self.folds, "learners": self.learners}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def runner(self, learner: int) -> FoldRunner:
        if getattr(self._own, "learner", None) != learner:
            self._own.runner = None  # its kernel values go before the next ones come
            self._own.runner = FoldRunner(self.X, dict(self.learners[learner]), None)
            self._own.learner = learner
        made: FoldRunner = self._own.runner
        return made

    def results(self, part: FoldTask) -> CrossValidation:
        runner = self.runner(part.learner)
        if not part.numbers:
            return runner.leave_one_out(self.folds)
        found: CrossValidation | None = None
        for number in part.numbers:
            train, test = self.folds[number]
            runner.last = None
            model = runner.train(train)
            if found is None:
                found = CrossValidation(runner.n, model.classes, model.code, model.decoding)
            found.folds.append(runner.tested(model, train, test))
        assert found is not None
        return found


def tested_folds(part: FoldTask, shared: SharedFolds) -> CrossValidation:
    return shared.results(part)


def cross_validate_by_engine(
    X: Matrix, folds: Folds, learners: Sequence[Mapping[str, Any]], engine: Engine
) -> list[CrossValidation]:
    """One CrossValidation for each learner, all on the same folds.

    `learners` are arguments of kfu.machines.train, as for cross_validate; `engine` is entered.
    """
    travelling = [alone(learner, engine) for learner in learners]
    shared = engine.share(SharedFolds, X, folds, travelling)
    tasks = [
        task for k, learner in enumerate(travelling) for task in tasks_of(k, X, folds, learner)
    ]
    results = engine.map("folds", tested_folds, tasks, shared)
    found: list[CrossValidation | None] = [None] * len(learners)
    for task, part in zip(tasks, results, strict=True):
        whole = found[task.learner]
        if whole is None:
            found[task.learner] = part
        else:
            whole.folds += part.folds
    return [whole for whole in found if whole is not None]


def alone(learner: Mapping[str, Any], engine: Engine) -> dict[str, Any]:
    """The arguments of a learner as a task has them: one thread, nobody to tell."""
    settings = replace(learner.get("settings") or SolverSettings(), threads=1)
    if engine.name == "local":  # its workers are threads of one process, with one memory
        settings = replace(settings, cache_mib=settings.cache_mib / engine.workers)
    return {**learner, "settings": settings, "progress": None}


def tasks_of(number: int, X: Matrix, folds: Folds, learner: Mapping[str, Any]) -> list[FoldTask]:
    if leaves_one_out(folds) and FoldRunner(X, dict(learner), None).has_exact_leave_one_out():
        return [FoldTask(number, ())]
    parts = np.array_split(np.arange(len(folds)), min(len(folds), MOST_TASKS))
    return [FoldTask(number, tuple(part.tolist())) for part in parts]
