"""Leave-one-out of the machines of a code, exactly, without training where nothing can change.

A row that is no support vector of a binary machine does not shape it: its output when left out is
its output (unless no support vector is unbounded, for it may bound the interval of the bias then).
For the others the dual is solved again with the row's box closed, starting from the solution of all
rows. A machine that does not see a row's class at all (code 0) keeps its output too. Outputs are
certified to the tolerance of the training, as every solution is.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.machines.coded import CodedTraining
from kfu.machines.task import TrainingTask, feasible
from kfu.model import Model
from kfu.solvers import DualProblem
from kfu.solvers.dual import make_store, solve

LARGEST_MATRIX = 6000  # rows up to which all kernel values are computed once and kept
MACHINES = ("svc", "svc2")
DUST = 1e-12  # relative


def leave_one_out_outputs(task: TrainingTask, model: Model, on_done: Any = None) -> np.ndarray:
    """Outputs (n, n_machines) of each row by the machines trained without it.

    `model` is the solution of all rows of `task`, a svc or svc2 with a free bias or none.
    `on_done(fraction)` is called now and then.
    """
    if task.machine.name not in MACHINES or task.bias == "regularised":
        raise SettingsError("exact leave-one-out is for svc and svc2 with a free bias or none")
    if task.options.get("approximation", "none") != "none":
        raise SettingsError("exact leave-one-out is for the full kernel; leave --approximation out")
    run = _Retraining(task, model, on_done)
    return run.outputs()


def without_dust(beta: np.ndarray, width: np.ndarray) -> np.ndarray | None:
    """β with what rounding left beside 0 or a bound put there; None if there is none.

    A variable just off its bound passes for an unbounded one, and fixes a bias that is an interval.
    """
    size = np.abs(beta)
    small = (size > 0) & (size < DUST * np.minimum(width, size.max(initial=0.0)))
    short = (size < width) & (size > width * (1 - DUST))
    if not (small.any() or short.any()):
        return None
    return np.where(small, 0.0, np.where(short, np.sign(beta) * width, beta))


class _Retraining:
    def __init__(self, task: TrainingTask, model: Model, on_done: Any) -> None:
        self.task, self.model, self.on_done = task, model, on_done
        self.columns = CodedTraining(task)
        self.settings = replace(task.settings, threads=1, polish=False)
        self.X, self.kernel = task.X, task.kernel
        if not task.kernel.is_precomputed and task.n <= LARGEST_MATRIX:
            self.X, self.kernel = self._matrix(), KernelSpec.make("precomputed")
        self.store = make_store(self.X, self.kernel, self.settings)
        self.decision = model.decision_function(task.X, threads=task.settings.threads)
        self.done, self.lock = 0, threading.Lock()

    def _matrix(self) -> np.ndarray:
        from kfu._gram import Gram

        threads = self.task.settings.n_threads
        return np.asarray(Gram(self.task.X, self.task.kernel, "float64", threads).block())

    def outputs(self) -> np.ndarray:
        problems = [self.columns.reduction_of(m).problem for m in range(self.model.n_machines)]
        jobs = [
            (machine, int(row))
            for machine, problem in enumerate(problems)
            for row in self.rows_that_matter(machine, problem)
        ]
        places = [np.full(self.task.n, -1) for _ in problems]
        betas = []
        for machine, rows in enumerate(self.columns.rows):
            places[machine][rows] = np.arange(rows.size)
            beta = np.zeros(self.task.n)
            beta[self.model.support] = self.model.coef[machine]
            betas.append(beta[rows])

        def retrain(job: tuple[int, int]) -> tuple[int, int, float]:
            machine, row = job
            place = int(places[machine][row])
            value = self.without(problems[machine], betas[machine], place, row)
            self.tell(len(jobs))
            return machine, row, value

        with ThreadPoolExecutor(self.task.settings.n_threads) as pool:
            for machine, row, value in pool.map(retrain, jobs):
                self.decision[row, machine] = value
        return self.decision

    def rows_that_matter(self, machine: int, problem: DualProblem) -> np.ndarray:
        """The support vectors; where none is unbounded, all rows: the bias is the middle of an
        interval, whose ends may be others."""
        used = np.abs(self.model.coef[machine])
        support = self.model.support[used > 0]
        if not problem.has_equality or support.size == 0:
            return support
        upper = np.zeros(self.task.n)
        upper[problem.points] = problem.upper
        is_free = used[used > 0] < upper[support] * (1 - DUST)
        return support if is_free.any() else self.columns.rows[machine]

    def without(self, problem: DualProblem, beta: np.ndarray, place: int, row: int) -> float:
        """f(x_row) of the problem with the box of `place` closed."""
        upper, lower = problem.upper.copy(), problem.lower.copy()
        upper[place] = lower[place] = 0.0
        closed = replace(problem, upper=upper, lower=lower)
        start = feasible(beta, closed)
        solution = solve(closed, self.X, self.kernel, self.settings, start=start, store=self.store)
        clean = without_dust(solution.beta, upper - lower)
        if clean is not None:
            solution = solve(
                closed, self.X, self.kernel, self.settings, start=clean, store=self.store
            )
        used = np.flatnonzero(solution.beta)
        return float(self.kernel_row(row, problem.points[used]) @ solution.beta[used]) + (
            solution.bias
        )

    def kernel_row(self, row: int, columns: np.ndarray) -> np.ndarray:
        if self.kernel.is_precomputed:
            values = self.X[row, columns]
            values = values.toarray().reshape(-1) if sp.issparse(values) else values
            return np.asarray(values, dtype=np.float64) * self.kernel.weight
        from kfu._gram import Gram

        gram = Gram(self.task.X[columns], self.task.kernel, "float64", 1)
        return np.asarray(gram.cross(self.task.X[row : row + 1])).reshape(-1)

    def tell(self, total: int) -> None:
        if self.on_done is None:
            return
        with self.lock:
            self.done += 1
            if self.done % 64 == 0:
                self.on_done(self.done / total)
