"""Which machines have a path, in which parameter: one definition each, and the list of them.

A `PathDefinition` says how a checked training task becomes a parametric problem

    min over β  ½ βᵀ(K + ridge)β + (linear + t·linear_rate)ᵀβ + (kink + t·kink_rate)ᵀ|β|
    s.t. lower + t·lower_rate ≤ β ≤ upper + t·upper_rate,  Σ_group β = total + t·total_rate

(kfu.solvers.parametric follows its solutions in t), where the path starts, and what β and the
threshold θ mean for the machine. A path is added by one file with a definition and one line in
PATHS; the object, the file, the command and the pictures take it from there.
"""

from __future__ import annotations

import abc
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.errors import SettingsError
from kfu.kernel_registry import nearest
from kfu.paths.path_file import VALUE_COLUMNS
from kfu.paths.states import Vocabulary

if TYPE_CHECKING:
    from kfu.machines.task import TrainingTask
    from kfu.solvers.parametric import ParametricProblem

__all__ = ["PATHS", "VALUE_COLUMNS", "PathDefinition", "Span", "Start", "definition_of"]


@dataclass(frozen=True)
class Span:
    """The part of a path that is asked for, in values of its parameter; None: as far as it goes.

    A path runs from `high` down to `low`, or upward.
    """

    low: float | None = None
    high: float | None = None
    upward: bool = False


@dataclass
class Start:
    """Where a path begins and where it is to end, in t, and the solution at its beginning."""

    t: float
    stop: float
    beta: np.ndarray
    how: str = ""  # how the beginning was found, for the header: "balanced", "solved", ...


class PathDefinition(abc.ABC):
    """The path of one machine in one parameter.

    Definitions hold no data: what belongs to the rows is in the `TrainingTask` (kfu.machines.task),
    checked like that of a training: X, labels or targets, weights of class and row, kernel, bias,
    options and settings.
    """

    machine: str
    parameter: str  # a key of VALUE_COLUMNS
    summary: str

    @abc.abstractmethod
    def check(self, task: TrainingTask) -> None:
        """DataError or SettingsError for data or options that this path does not take."""

    @abc.abstractmethod
    def problem(self, task: TrainingTask) -> ParametricProblem:
        """The parametric problem; variable i belongs to row i. Cheap: nothing is solved."""

    @abc.abstractmethod
    def start(self, task: TrainingTask, problem: ParametricProblem, span: Span) -> Start:
        """Where to begin and end for `span`. May solve a problem for the first β.

        SettingsError when the span is empty or has no part of the path.
        """

    @abc.abstractmethod
    def coefficients(
        self, task: TrainingTask, beta: np.ndarray, theta: np.ndarray, t: float
    ) -> tuple[np.ndarray, float]:
        """The model at t: (coef, bias) of f(x) = Σ coef_i K(x_i, x) + bias.

        `theta` has one number for each group (0 without an equality). Where only the bias is
        wanted, `beta` is empty.
        """

    @abc.abstractmethod
    def objective(
        self, task: TrainingTask, minimised: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """The objective of the machine's training report at t, from that of the parametric
        problem. theta has one row for each t."""

    def violation(
        self, task: TrainingTask, kkt: np.ndarray, theta: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """The worst violation of the conditions in units of f, from that of the gradient."""
        return kkt

    @abc.abstractmethod
    def vocabulary(self, task: TrainingTask) -> Vocabulary:
        """The words for the states of the rows."""

    def signs(self, task: TrainingTask) -> np.ndarray | None:
        """±1 for each row where f has the right sign or the wrong one; None without such errors."""
        if task.labels is None:
            return None
        return np.where(task.labels == 1, 1.0, -1.0)

    def value_of(self, t: np.ndarray | float) -> Any:
        """The parameter (the first of its columns) at t."""
        return t

    def t_of(self, value: float) -> float:
        return value

    def second_value(self, value: Any) -> Any:
        """The second column of a λ-path, C."""
        return 1.0 / value

    def beyond(self, task: TrainingTask, path: Any, t: float) -> tuple[np.ndarray, float] | None:
        """(coef, bias) at a t that the path does not cover but determines, else None."""
        return None

    def remarks(self, path: Any) -> list[str]:
        """What a user ought to know of a path beside its figures; one sentence each."""
        return []


# (machine, parameter) -> "module:class". The first of a machine's parameters is its default.
PATHS: dict[tuple[str, str], str] = {
    ("svc", "lambda"): "kfu.paths.svc:SvcPath",
    ("svr", "lambda"): "kfu.paths.svr:SvrLambdaPath",
    ("svr", "epsilon"): "kfu.paths.svr:SvrEpsilonPath",
    ("one-class", "nu"): "kfu.paths.one_class:OneClassPath",
    ("nu-svc", "nu"): "kfu.paths.nu_svc:NuSvcPath",
}


def definition_of(machine: str, parameter: str | None = None) -> PathDefinition:
    """The definition of a machine's path, in its default parameter when none is named."""
    machines = list(dict.fromkeys(name for name, _ in PATHS))
    if machine not in machines:
        raise SettingsError(f"machine {machine} has no path; {nearest(machine, machines)}")
    own = [known for name, known in PATHS if name == machine]
    if parameter is None:
        parameter = own[0]
    if parameter not in own:
        raise SettingsError(
            f"machine {machine} has no path in {parameter}; it has one in {' and '.join(own)}"
        )
    module, _, name = PATHS[machine, parameter].partition(":")
    made: PathDefinition = getattr(importlib.import_module(module), name)()
    return made
