"""Classifiers made of binary machines: one for each column of a code matrix (kfu.multiclass).

The machines share one KernelStore. Where every machine is trained on all rows (one against all,
and the codes without zeros) they run one after the other, each with all threads; if values of K
are dear, full rows are shared too, so that a row of K is computed once however many machines need
it. Where machines have rows of their own (one against one, sparse codes) they are smaller and share
few values: they run side by side, one thread each. Neither changes the answer, as long as the cache
is large enough for the usual chunk in each of them (some 16 MiB).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np

from kfu.data import format_label
from kfu.errors import DataError
from kfu.machines.combined import combined_info, untrained
from kfu.machines.margins import row_margins
from kfu.machines.reductions import (
    BinaryTask,
    Reduction,
    box_of,
    has_margin,
    nu_svc_reduction,
    svc2_reduction,
    svc_reduction,
)
from kfu.machines.separation import watch_separation
from kfu.machines.single_machine import SINGLE_MACHINES, train_single_machine
from kfu.machines.task import TrainingTask, with_total
from kfu.model import Model
from kfu.solvers import Solution, SolverSettings
from kfu.solvers.dual import Progress, ProgressCallback

REDUCTIONS: dict[str, Callable[[BinaryTask], Reduction]] = {
    "svc": svc_reduction,
    "svc2": svc2_reduction,
    "nu-svc": nu_svc_reduction,
}

# Multiply-adds behind a value of K from which on rows are worth sharing: reading one back costs
# about as much as computing a value of sixty.
SHARED_VALUE_COST = 100.0
SHARED_ROWS_PART = 0.8  # of the cache; the rest is for the chunk


def train_coded(task: TrainingTask) -> Model:
    """One binary machine for each column of task.code, or a single machine over all classes."""
    if task.code_name in SINGLE_MACHINES:
        return train_single_machine(task)
    columns = CodedTraining(task)
    solutions = columns.run()
    assert task.labels is not None
    assert task.code is not None
    coef = np.zeros((len(solutions), task.n))
    for machine, solution in enumerate(solutions):
        if solution.beta.size:
            coef[machine, columns.rows[machine]] = solution.beta
    support = np.flatnonzero(np.any(coef != 0.0, axis=0))
    # Grouped by class, as every peer's model files have it; by row within a class.
    support = support[np.argsort(task.labels[support], kind="stable")]
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=task.classes,
        n_features=task.X.shape[1],
        support=support,
        support_vectors=task.support_vectors(support),
        coef=coef[:, support],
        bias=np.array([s.bias for s in solutions]),
        code=task.code,
        decoding=task.decoding,
        settings=task.described(),
        info=combined_info(solutions, coef, columns.upper_bounds(solutions)),
        n_support=np.bincount(task.labels[support], minlength=len(task.classes)),
    )


class CodedTraining:
    """The run of all machines of one code."""

    def __init__(self, task: TrainingTask) -> None:
        assert task.code is not None
        assert task.labels is not None
        self.task = task
        self.code = task.code
        self.n_machines = task.code.shape[1]
        self.signs = [task.code[task.labels, m] for m in range(self.n_machines)]
        self.rows = [np.flatnonzero(signs) for signs in self.signs]
        self.margins = row_margins(task)
        self.begin = time.perf_counter()
        self.stop = threading.Event()
        self.talking = threading.Lock()  # progress and checkpoints are told by one at a time
        self.iterations_done = 0
        self.shares_rows = False

    # ---- order of the machines ---------------------------------------------------------------

    @property
    def takes_all(self) -> bool:
        """Whether every machine is trained on all rows."""
        return all(rows.size == self.task.n for rows in self.rows)

    def run(self) -> list[Solution]:
        settings, takes_all = self.task.settings, self.takes_all
        if self.task.engine is not None:
            from kfu.engine.machine_tasks import solve_machines

            return solve_machines(self, self.task.engine)
        side_by_side = (
            not takes_all
            and self.n_machines > 1
            and settings.n_threads > 1
            and not settings.max_iterations  # what is left for a machine depends on the others
        )
        if side_by_side:
            return self.run_side_by_side()
        store = self.task.store
        if store is None and self.n_machines > 1 and self.task.kernel.name != "linear":
            store = self.task.shared_store(settings)
        if self.n_machines > 2 and takes_all and self.task.store is None and store is not None:
            store = self.with_shared_rows(store)
            settings = self.settings_beside_shared_rows()
        return self.run_in_turn(store, settings)

    def with_shared_rows(self, store: Any) -> Any:
        if store.value_cost() >= SHARED_VALUE_COST:
            store.share_rows(SHARED_ROWS_PART * self.task.settings.cache_mib * 2.0**20)
            self.shares_rows = True
        return store

    def settings_beside_shared_rows(self) -> SolverSettings:
        settings = self.task.settings
        if not self.shares_rows:
            return settings
        return replace(settings, cache_mib=settings.cache_mib * (1.0 - SHARED_ROWS_PART))

    def run_in_turn(self, store: Any, settings: SolverSettings) -> list[Solution]:
        solutions: list[Solution] = []
        for machine in range(self.n_machines):
            try:
                solutions.append(self.train_machine(machine, store, settings))
            except KeyboardInterrupt:  # heard between two machines: what is trained is kept
                if not solutions:
                    raise
                self.stop.set()
            if self.stop.is_set() or solutions[-1].info.status == "interrupted":
                first = len(solutions)
                missing = self.n_machines - first
                last = solutions[-1]
                solutions += [self.missing(last, m, missing) for m in range(first, self.n_machines)]
                break
        return solutions

    def run_side_by_side(self) -> list[Solution]:
        settings = self.task.settings
        workers = min(settings.n_threads, self.n_machines)
        own = replace(settings, threads=1, cache_mib=settings.cache_mib / workers)
        store = self.task.shared_store(own)
        # The largest first, so that none is left to run alone at the end.
        order = sorted(range(self.n_machines), key=lambda m: -self.rows[m].size)
        futures: dict[int, Future[Solution | None]] = {}
        with ThreadPoolExecutor(workers) as pool:
            try:
                for m in order:
                    futures[m] = pool.submit(self.train_unless_stopped, m, store, own)
                self.wait_for(list(futures.values()))
            except KeyboardInterrupt:
                self.stop.set()
                wait(futures.values())
            except BaseException:
                self.stop.set()
                raise
        found = [futures[m].result() if m in futures else None for m in range(self.n_machines)]
        some = next((solution for solution in found if solution is not None), None)
        if some is None:
            raise KeyboardInterrupt
        missing = sum(solution is None for solution in found)
        return [
            self.missing(some, m, missing) if solution is None else solution
            for m, solution in enumerate(found)
        ]

    def train_unless_stopped(
        self, machine: int, store: Any, settings: SolverSettings
    ) -> Solution | None:
        if self.stop.is_set():
            return None
        return self.train_machine(machine, store, settings)

    def wait_for(self, futures: list[Future[Solution | None]]) -> None:
        """Wait for all; the first failure is raised here. A signal is heard between two waits."""
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.5)
            for future in done:
                future.result()

    def missing(self, last: Solution, machine: int, n_missing: int) -> Solution:
        box = box_of(self.task.cost, self.task.weights[self.rows[machine]])
        return untrained(last, float(box[np.isfinite(box)].sum()), n_missing)

    # ---- one machine -------------------------------------------------------------------------

    def train_machine(self, machine: int, store: Any, settings: SolverSettings) -> Solution:
        task, rows = self.task, self.rows[machine]
        reduction = self.reduction_of(machine)
        start = self.start_of(machine, reduction)
        progress = self.progress_of(machine, rows)
        solution = task.solve(
            reduction.problem,
            settings=self.remaining(settings),
            start=start,
            progress=watch_separation(task, reduction.problem, progress),
            store=store,
        )
        solution = reduction.finish(solution)
        with self.talking:
            self.iterations_done += solution.info.iterations
            task.machine_done(machine, rows, solution)
        return solution

    def reduction_of(self, machine: int) -> Reduction:
        task, rows = self.task, self.rows[machine]
        y = self.signs[machine][rows]
        weights = task.weights[rows]
        for sign in (1, -1):
            if not np.any(weights[y == sign] > 0):
                raise DataError(
                    task.source,
                    None,
                    f"machine {machine + 1} ({self.name_of(machine)}) has rows of one side only",
                    "give both sides rows of positive weight",
                )
        return REDUCTIONS[task.machine.name](
            BinaryTask(
                y=y,
                rows=rows,
                weights=weights,
                cost=task.cost,
                margins=self.margins[rows],
                bias=task.has_free_bias,
                nu=task.options.get("nu", 0.0),
                source=task.source,
                name=self.name_of(machine),
            )
        )

    def name_of(self, machine: int) -> str:
        labels = [format_label(value) for value in self.task.classes]
        column = self.code[:, machine]
        sides = [[labels[k] for k in np.flatnonzero(column == s)] for s in (1, -1)]
        return " against ".join(",".join(side[:5]) for side in sides)

    def start_of(self, machine: int, reduction: Reduction) -> np.ndarray | None:
        problem = reduction.problem
        if problem.group is None:
            start = self.task.start_of(machine, self.rows[machine], problem)
            return reduction.start if start is None else start
        return self.grouped_start(machine, reduction)

    def grouped_start(self, machine: int, reduction: Reduction) -> np.ndarray | None:
        """β of an earlier solution, which may have been divided by its margin, brought to the sums
        of the groups: scaled, then into the box."""
        problem, fresh = reduction.problem, reduction.start
        assert problem.group is not None
        assert fresh is not None
        boundless = np.full(problem.upper.shape, np.inf)
        raw = replace(problem, has_equality=False, upper=boundless)  # only its signs
        earlier = self.task.start_of(machine, self.rows[machine], raw)
        if earlier is None:
            return fresh
        found = np.abs(fresh)
        for group in (0, 1):
            side = problem.group == group
            total, given = float(found[side].sum()), np.abs(earlier[side])
            scaled = given * (total / given.sum()) if given.any() else given
            moved = with_total(scaled, problem.upper[side], total)
            if moved is None:
                return fresh
            found[side] = moved
        return problem.signs * found

    def progress_of(self, machine: int, rows: np.ndarray) -> ProgressCallback:
        inner = self.task.progress_of(machine, self.n_machines, rows)

        def report(seen: Progress) -> bool:
            if self.stop.is_set():
                return True
            if inner is None:
                return False
            with self.talking:
                if inner(seen):
                    self.stop.set()
            return self.stop.is_set()

        return report

    def remaining(self, settings: SolverSettings) -> SolverSettings:
        """The limits of the whole training that are left for the next machine."""
        spent = time.perf_counter() - self.begin
        left, done = settings.max_seconds - spent, self.iterations_done
        return replace(
            settings,
            max_seconds=max(left, 1e-9) if settings.max_seconds else 0.0,
            max_iterations=max(settings.max_iterations - done, 1) if settings.max_iterations else 0,
        )

    def upper_bounds(self, solutions: list[Solution]) -> np.ndarray:
        """The bounds of |coef|, (n_machines, n) or broadcast to it."""
        if self.task.machine.name == "nu-svc":
            scales = [1.0 / s.info.margin if has_margin(s) else 1.0 for s in solutions]
            return np.outer(scales, self.task.weights)
        if self.task.machine.name == "svc2":
            return np.array(np.inf)
        return box_of(self.task.cost, self.task.weights) / self.margins
