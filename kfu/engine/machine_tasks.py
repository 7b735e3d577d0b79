"""The binary machines of a code as tasks of an engine: one against one, one against all, ...

Machines are independent problems over the same rows. The training travels once to every worker;
the machines it works on there share one KernelStore, as they do in one process
(kfu.machines.coded). Each has one thread, and starts from zero or from the start model, so that the
answer is that of training here, whoever computes which machine, and however often.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.engine.local import Engine
from kfu.errors import SettingsError
from kfu.solvers import Solution

if TYPE_CHECKING:
    from kfu.machines.coded import CodedTraining
    from kfu.machines.task import TrainingTask

MOST_TASKS = 512  # machines beyond are dealt to tasks of several


class SharedTraining:
    """A training on its way to workers; what its machines share is made once where it arrives."""

    def __init__(self, task: TrainingTask) -> None:
        self.task = task
        self._made: tuple[CodedTraining, Any, Any] | None = None
        self._making = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"task": self.task}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def solution(self, machine: int) -> Solution:
        with self._making:
            if self._made is None:
                self._made = self._shared()
        columns, store, settings = self._made
        return columns.train_machine(machine, store, settings)

    def _shared(self) -> tuple[CodedTraining, Any, Any]:
        from kfu.machines.coded import CodedTraining

        columns = CodedTraining(self.task)
        if not columns.takes_all:
            return columns, self.task.shared_store(self.task.settings), self.task.settings
        if self.task.kernel.name == "linear":
            return columns, None, self.task.settings
        store = columns.with_shared_rows(self.task.shared_store(self.task.settings))
        return columns, store, columns.settings_beside_shared_rows()


def trained_group(machines: Sequence[int], shared: SharedTraining) -> list[Solution]:
    return [shared.solution(machine) for machine in machines]


def groups_of(sizes: Sequence[int]) -> list[list[int]]:
    """Machines by task, those of many rows first, so that none is left to run alone at the end."""
    order = np.argsort([-size for size in sizes], kind="stable")
    return [part.tolist() for part in np.array_split(order, min(len(order), MOST_TASKS))]


def check_task(task: TrainingTask) -> None:
    """SettingsError for what only holds for the machines of one process."""
    limits = task.settings.max_iterations or task.settings.max_seconds
    if task.checkpoint is not None or limits:
        raise SettingsError("an engine trains without checkpoints and limits; leave them out")


def solve_machines(columns: CodedTraining, engine: Engine) -> list[Solution]:
    """The solutions of all machines, in their order. `engine` has been entered."""
    task = columns.task
    check_task(task)
    settings = replace(task.settings, threads=1)
    if engine.name == "local":  # its workers are threads of one process, with one memory
        settings = replace(settings, cache_mib=settings.cache_mib / engine.workers)
    travels = replace(task, settings=settings, store=None, progress=None, engine=None)
    groups = groups_of([rows.size for rows in columns.rows])
    shared = engine.share(SharedTraining, travels)
    solutions: list[Any] = [None] * columns.n_machines
    results = engine.map("machines", trained_group, groups, shared)
    for group, found in zip(groups, results, strict=True):
        for machine, solution in zip(group, found, strict=True):
            solutions[machine] = solution
    return solutions
