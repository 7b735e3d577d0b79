"""C-SVC: hinge loss, box [0, C_i], one binary machine for each pair of classes.

    min ½‖w‖² + Σ C_i ξ_i,  y_i f(x_i) ≥ 1 − ξ_i     dual: linear −1, box [0, C_i], signs y

C_i = C · (weight of the class) · (weight of the example). Without bias the equality is dropped. An
example of weight 0 has the box [0, 0]: it is there, and never a support vector.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from kfu.model import Model
from kfu.pairwise import ovo_code
from kfu.solvers import DualProblem, Solution, SolverSettings, solve

if TYPE_CHECKING:
    from kfu.machines.training import TrainingTask


def svc_problem(y: np.ndarray, costs: np.ndarray, rows: np.ndarray, bias: bool) -> DualProblem:
    """The dual of a binary C-SVC; y is ±1, `rows` the rows of the data, costs the C_i."""
    n = len(y)
    return DualProblem(
        signs=y.astype(np.float64),
        linear=np.full(n, -1.0),
        lower=np.zeros(n),
        upper=costs,
        points=rows,
        has_equality=bias,
    )


def train_svc(task: TrainingTask) -> Model:
    """One binary machine per pair of classes (one, when there are two), as kfu.pairwise has it."""
    code = ovo_code(len(task.classes))
    solutions: list[Solution] = []
    coef = np.zeros((code.shape[1], task.n))
    settings = task.settings
    for machine in range(code.shape[1]):
        signs = code[task.labels, machine]
        rows = np.flatnonzero(signs)
        problem = svc_problem(signs[rows], task.costs[rows], rows, task.bias)
        start = task.start_of(machine, rows, problem)
        progress = task.progress_of(machine, code.shape[1], rows)
        settings = _remaining(task.settings, solutions)
        solution = solve(problem, task.X, task.kernel, settings, start=start, progress=progress)
        coef[machine, rows] = solution.beta
        solutions.append(solution)
        task.machine_done(machine, rows, solution)
        if solution.info.status == "interrupted":
            solutions += _untrained(solution, task, code[:, machine + 1 :])
            break
    support = np.flatnonzero(np.any(coef != 0.0, axis=0))
    # Grouped by class, as every peer's model files have it; by row within a class.
    support = support[np.argsort(task.labels[support], kind="stable")]
    precomputed = task.kernel.name == "precomputed"
    return Model(
        machine="svc",
        kernel=task.kernel,
        classes=task.classes,
        n_features=task.X.shape[1],
        support=support,
        support_vectors=None if precomputed else _rows_of(task.X, support),
        coef=coef[:, support],
        bias=np.array([s.bias for s in solutions]),
        code=code,
        settings=task.described(),
        info=combined_info(solutions, coef, task.costs),
        n_support=np.bincount(task.labels[support], minlength=len(task.classes)),
    )


def _rows_of(X: Any, rows: np.ndarray) -> Any:
    return sp.csr_matrix(X[rows]) if sp.issparse(X) else np.ascontiguousarray(X[rows])


def _remaining(settings: SolverSettings, solutions: list[Solution]) -> SolverSettings:
    """The limits of the whole training that are left for the next machine."""
    spent = sum(sum(s.info.seconds.values()) for s in solutions)
    done = sum(s.info.iterations for s in solutions)
    return replace(
        settings,
        max_seconds=max(settings.max_seconds - spent, 1e-9) if settings.max_seconds else 0.0,
        max_iterations=max(settings.max_iterations - done, 1) if settings.max_iterations else 0,
    )


def _untrained(last: Solution, task: TrainingTask, code: np.ndarray) -> list[Solution]:
    """Stand for the machines that an interrupt kept from being trained: f = 0, and its certificate.

    At α = 0 every margin condition is violated by 1, the pair of any two classes by 2, and the
    primal is Σ C_i.
    """
    nothing: dict[str, Any] = {
        **dict.fromkeys(("objective", "bias", "bias_std"), 0.0),
        **dict.fromkeys(("n_sv", "n_usv", *_COUNTERS), 0),
    }
    missing = []
    for signs in code.T[:, task.labels]:
        info = replace(
            last.info,
            **nothing,
            duality_gap=float(task.costs[signs != 0].sum()),
            kkt_gap=2.0,
            kkt_violation=1.0,
            bias_interval=(-1.0, 1.0),
            seconds=dict.fromkeys(last.info.seconds, 0.0),
            warnings=[f"interrupted: {code.shape[1]} of the binary machines were not trained"],
        )
        missing.append(Solution(alpha=np.zeros(0), beta=np.zeros(0), bias=0.0, info=info))
    return missing


# How the Info of several machines becomes one: the worst certificate, the sum of the work.
_WORST = ("kkt_gap", "kkt_violation", "bias_std")
_COUNTERS = (
    *("iterations", "rounds", "kernel_evaluations", "verification_evaluations"),
    *("cache_hits", "cache_misses", "reductions", "shrinks", "refinements"),
)
_SUMMED = ("objective", "duality_gap", *_COUNTERS)


def combined_info(solutions: list[Solution], coef: np.ndarray, costs: np.ndarray) -> dict[str, Any]:
    """The report of the binary machines; n_sv counts rows, n_usv those unbounded in any machine."""
    infos = [s.info.to_dict() for s in solutions]
    merged = dict(infos[0])
    if len(infos) > 1:
        for name in _WORST:
            merged[name] = max(i[name] for i in infos)
        for name in _SUMMED:
            merged[name] = sum(i[name] for i in infos)
        merged["bias"] = [i["bias"] for i in infos]
        merged["iterations_by_machine"] = [i["iterations"] for i in infos]
        merged["bias_interval"] = [list(i["bias_interval"]) for i in infos]
        unfinished = [i["status"] for i in infos if i["status"] != "converged"]
        merged["status"] = unfinished[0] if unfinished else "converged"
        merged["precision"] = (
            "float64" if any(i["precision"] == "float64" for i in infos) else "float32"
        )
        merged["changed_precision"] = any(i["changed_precision"] for i in infos)
        merged["chunk"] = max(i["chunk"] for i in infos)
        merged["seconds"] = {
            name: sum(i["seconds"][name] for i in infos) for name in infos[0]["seconds"]
        }
        merged["warnings"] = list(dict.fromkeys(w for i in infos for w in i["warnings"]))
        looked = merged["cache_hits"] + merged["cache_misses"]
        merged["cache_hit_rate"] = merged["cache_hits"] / looked if looked else 0.0
        used = np.abs(coef)
        merged["n_sv"] = int(np.count_nonzero(np.any(used > 0, axis=0)))
        merged["n_usv"] = int(np.count_nonzero(np.any((used > 0) & (used < costs), axis=0)))
    else:
        merged["bias_interval"] = list(merged["bias_interval"])
    return merged
