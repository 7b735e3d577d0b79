"""Leave-one-out of the machines that solve a dual, exactly, without training again.

A row that is no support vector of a binary machine does not shape it: its output when left out is
its output (kfu.validation.left_out says where that does not hold). For the others the box of the
row closes, from its coefficient to zero, and the solution follows it along its exact path, at the
price of the few changes of state it meets on the way (Cauwenberghs and Poggio, Incremental and
decremental support vector machine learning, NIPS 2000). All ways start from one solution, which is
made exact first, and share the rows of K and one table of how the solution answers to each variable
(csrc/kfu/parametric_tableau.h): between two changes of state a row combines as many columns of it
as it has met changes (csrc/kfu/parametric_closing.h). Outputs are exact up to rounding, whatever
the tolerance of the training was.

Rows whose way is degenerate take a path of their own from a copy of the solution
(csrc/kfu/parametric_run.h). Where that is not found either (which no data are known for) the dual
is solved again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.machines.task import TrainingTask, feasible, with_total
from kfu.model import Model
from kfu.solvers.blas_threads import one_blas_thread
from kfu.solvers.dual import solve
from kfu.solvers.parametric import ParametricProblem, PathSettings, make_run
from kfu.validation.left_out import LEFT_OUT, LeftOutProblem

MACHINES = tuple(LEFT_OUT)
AT_ONCE = 8  # rows a thread takes at a time
PANEL = 64  # columns of the tableau a thread makes at a time
NOT_FOUND = -2


def leave_one_out_outputs(
    task: TrainingTask, model: Model, on_done: Callable[[float], Any] | None = None
) -> np.ndarray:
    """Outputs (n, n_machines) of each row by the machines trained without it.

    `model` is the solution of all rows of `task`, with a free bias or none. `on_done(fraction)` is
    called now and then. DataError where the problem without a row has no solution (ν too large for
    the rows that are left).
    """
    if task.machine.name not in LEFT_OUT or task.bias == "regularised":
        raise SettingsError(
            f"exact leave-one-out is for {', '.join(LEFT_OUT)} with a free bias or none"
        )
    outputs = np.empty((task.n, model.n_machines))
    closing = _Closing(task, model.n_machines, on_done)
    with one_blas_thread():
        for machine, problem in enumerate(LEFT_OUT[task.machine.name](task, model)):
            outputs[:, machine] = closing.outputs(problem, machine)
    return outputs


def parts(count: int, size: int) -> tuple[list[int], list[int]]:
    """The beginnings and ends of the parts of range(count)."""
    firsts = list(range(0, count, size))
    return firsts, [min(first + size, count) for first in firsts]


class _Closing:
    """Closes boxes, machine by machine, with the rows of K that machines share."""

    def __init__(self, task: TrainingTask, n_machines: int, on_done: Any) -> None:
        self.task, self.n_machines, self.on_done = task, n_machines, on_done
        self.X, self.kernel = task.solver_kernel()
        self.settings = PathSettings(threads=1, memory_mib=task.settings.cache_mib)
        self.kernel_rows: Any = None
        self.points: np.ndarray | None = None
        self.lock, self.done = threading.Lock(), 0

    def outputs(self, found: LeftOutProblem, machine: int) -> np.ndarray:
        """f of all rows, those of the machine each left out."""
        run = self.run_of(found)
        if run.status == "indefinite":
            raise SettingsError(
                f"kernel {self.task.kernel.describe()} is not positive semidefinite on these rows: "
                "its solutions have no paths, so there is no exact leave-one-out; use `kfu cv`"
            )
        found.beta = run.beta()
        n, theta = found.rows.size, run.theta()[0]
        exact = found.decision(run.outputs()[:n], np.tile(theta, (n, 1)))
        places = found.rows_that_matter()
        exact[places] = self.closed(found, run, places, machine)
        every = np.empty(self.task.n)
        every[found.rows] = exact
        others = np.setdiff1d(np.arange(self.task.n), found.rows)
        if others.size:  # classes the machine does not see
            every[others] = found.decision(
                self.plain_outputs(found, others), np.tile(theta, (others.size, 1))
            )
        return every

    def plain_outputs(self, found: LeftOutProblem, rows: np.ndarray) -> np.ndarray:
        """Kβ of rows of the data."""
        from kfu._gram import Gram

        used = np.flatnonzero(found.beta)
        gram = Gram(self.X, self.kernel, "float64", self.task.settings.n_threads)
        values = np.asarray(gram.block(rows, found.problem.points[used]))
        return np.asarray(values @ found.beta[used])

    def closed(
        self, found: LeftOutProblem, run: Any, places: np.ndarray, machine: int
    ) -> np.ndarray:
        from kfu._path import Tableau

        items, changes = found.closing(places, self.task.weights)
        values, thetas = np.empty(places.size), np.empty((places.size, 2))
        steps = np.zeros(places.size, dtype=np.int64)
        self.done = 0
        tableau = Tableau(run, self.bytes_left())
        variables = items.ravel()

        def close(first: int) -> None:
            part = slice(first, first + AT_ONCE)
            tableau.outputs_without(
                items[part], changes[part], values[part], thetas[part], steps[part]
            )
            self.tell(min(AT_ONCE, places.size - first), places.size, machine)

        with ThreadPoolExecutor(self.task.settings.n_threads) as pool:
            try:
                if tableau.is_there:
                    list(pool.map(tableau.project, *parts(tableau.n_bounded, PANEL)))
                    tableau.make_totals()
                    firsts, lasts = parts(variables.size, PANEL)
                    list(pool.map(tableau.make_columns, repeat(variables), firsts, lasts))
                list(pool.map(close, range(0, places.size, AT_ONCE)))
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        decision = found.decision(values, thetas)
        for k in np.flatnonzero(steps == NOT_FOUND):
            decision[k] = self.solved_without(found, items[k], changes[k], int(places[k]))
        return decision

    def bytes_left(self) -> float:
        """Of the budget of the user, what the rows of K leave for the tableau."""
        n = self.points.size if self.points is not None else 0
        return max(0.0, self.task.settings.cache_mib * 2.0**20 - 8.0 * n * n)

    def run_of(self, found: LeftOutProblem) -> Any:
        """The exact solution of all rows, to start from."""
        from kfu._path import KernelRows

        problem = found.problem
        arrays = problem.signed(None)
        if self.points is None or not np.array_equal(self.points, problem.points):
            self.points = np.asarray(problem.points)
            n_bytes = self.task.settings.cache_mib * 2.0**20
            threads = self.task.settings.n_threads
            self.kernel_rows = KernelRows(
                self.X, self.kernel, self.points, None, n_bytes, threads, self.task.settings.simd
            )
        parametric = ParametricProblem(
            linear=arrays["linear"],
            lower=arrays["lower"],
            upper=arrays["upper"],
            kink=problem.kink,
            ridge=problem.ridge,
            group=problem.group,
            has_equality=problem.has_equality,
            total=found.totals,
            points=self.points,
        )
        return make_run(
            parametric,
            self.X,
            self.kernel,
            0.0,
            found.beta,
            settings=self.settings,
            records=False,
            rows=self.kernel_rows,
        )

    def solved_without(
        self, found: LeftOutProblem, items: np.ndarray, change: np.ndarray, place: int
    ) -> float:
        """f of the row at `place` by solving the dual with its boxes closed."""
        from kfu._gram import Gram

        problem = found.problem
        upper, lower = problem.upper.copy(), problem.lower.copy()
        upper[items] = lower[items] = 0.0
        closed = replace(problem, upper=upper, lower=lower)
        start: np.ndarray | None = found.beta.copy()
        if any(found.total_share):
            assert start is not None
            start[items] = 0.0
            for g in range(1 if problem.group is None else 2):
                mine = np.ones(start.size, bool) if problem.group is None else problem.group == g
                wanted = abs(found.totals[g] + change[g])
                moved = with_total(np.abs(start[mine]), upper[mine], wanted)
                if moved is None:
                    row = int(found.rows[place])
                    raise DataError(
                        self.task.source,
                        None,
                        f"nu is not feasible without row {row + 1}",
                        "give a smaller nu",
                    )
                start[mine] = np.sign(found.totals[g]) * moved
        else:
            start = feasible(found.beta, closed)
        settings = replace(self.task.settings, polish=True)
        solution = solve(closed, self.X, self.kernel, settings, start=start)
        used = np.flatnonzero(solution.beta)
        row = int(problem.points[items[0]])
        gram = Gram(self.X, self.kernel, "float64", 1)
        value = float(
            np.asarray(gram.block(np.array([row]), problem.points[used]))[0] @ solution.beta[used]
        )
        if not found.is_divided:
            return value + solution.bias
        margin = solution.info.margin
        return (value + solution.bias) / (margin if margin > 0 else 1.0)

    def tell(self, count: int, total: int, machine: int) -> None:
        if self.on_done is None:
            return
        with self.lock:
            self.done += count
            self.on_done((machine + self.done / total) / self.n_machines)
