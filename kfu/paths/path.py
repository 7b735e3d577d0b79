"""The path of a machine: what happened at every breakpoint, and the model at any value between.

Only events are kept (which rows changed their state, and when); β at a value is rebuilt from the
states there by solving for the free variables, so memory grows with the number of events and the
answer is as exact as one that was solved for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from kfu._version import __version__
from kfu.errors import SettingsError
from kfu.machines.task import TrainingTask
from kfu.model import Model
from kfu.paths.certificate import certify
from kfu.paths.columns import find_columns, records_of
from kfu.paths.extraction import extracted_model
from kfu.paths.path_file import write_path_file
from kfu.paths.ranges import ranges_of
from kfu.paths.registry import VALUE_COLUMNS, PathDefinition, Span
from kfu.paths.step_function import StepFunction
from kfu.paths.validation import error_curve
from kfu.solvers.parametric import FINISHED, FREE, FREE_BELOW, Track

if TYPE_CHECKING:
    from kfu.scale import Scaler


@dataclass
class DataReference:
    """Where the rows of a path are: a file and how it was read, and what they were."""

    fingerprint: str
    file: str | None = None
    reader: dict[str, Any] = field(default_factory=dict)  # arguments of kfu.read_dataset

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file, "fingerprint": self.fingerprint, "reader": self.reader}


@dataclass(eq=False)
class RegularisationPath:
    """All solutions of a machine between two values of its parameter; see the head of the file.

    `track` is what the engine found (kfu.solvers.parametric), `task` the checked training task
    without its cost, `definition` what the two mean.
    """

    definition: PathDefinition
    task: TrainingTask
    track: Track
    stop: float  # where it is to end, in t
    span: Span = field(default_factory=Span)
    how: str = ""  # how the beginning was found
    data: DataReference | None = None
    scaler: Scaler | None = None
    n_valid: int = 0
    valid_file: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of the engine, for the header
    embedded: str | None = None  # the rows, for the file (kfu.paths.loading)
    is_from_file: bool = False  # then changes of sign between breakpoints are not known
    _columns: dict[str, np.ndarray] | None = field(default=None, init=False, repr=False)

    # ---- what it is ------------------------------------------------------------------------

    @property
    def machine(self) -> str:
        return self.definition.machine

    @property
    def parameter(self) -> str:
        return self.definition.parameter

    @property
    def kernel(self) -> Any:
        return self.task.kernel

    @property
    def classes(self) -> np.ndarray:
        return self.task.classes

    @property
    def n(self) -> int:
        return self.task.n

    @property
    def n_features(self) -> int:
        return int(self.task.X.shape[1])

    @property
    def status(self) -> str:
        return str(self.track.status)

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    def __len__(self) -> int:
        """The number of breakpoints."""
        return len(self.track.t)

    @property
    def n_steps(self) -> int:
        """The number of stretches between breakpoints."""
        return len(self) - 1

    @property
    def low(self) -> float:
        return float(np.min(self._values))

    @property
    def high(self) -> float:
        return float(np.max(self._values))

    @property
    def _values(self) -> np.ndarray:
        return np.asarray(self.definition.value_of(self.track.t), dtype=np.float64)

    # ---- columns ---------------------------------------------------------------------------

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """One array for each column of the file, but for event and items; NaN is not known."""
        if self._columns is None:
            self._columns = find_columns(self.definition, self.task, self.track, self.n_valid)
        return self._columns

    def records(self, first: int = 0, end: int | None = None) -> Iterator[dict[str, Any]]:
        """The breakpoints from `first` up to `end`, as the file has them."""
        words = self.definition.vocabulary(self.task)
        yield from records_of(self.track, words, self.parameter, self.columns, first, end)

    @property
    def steps(self) -> Sequence[dict[str, Any]]:
        """The breakpoints as a list of records."""
        return list(self.records())

    # ---- models ----------------------------------------------------------------------------

    def at(
        self,
        value: float | None = None,
        *,
        C: float | None = None,
        lam: float | None = None,
        epsilon: float | None = None,
        nu: float | None = None,
    ) -> Model:
        """The model at a value: C of a λ-path when it is not named, else the parameter.

        Exact: it is the solution there, not one between two others. SettingsError for a value that
        the path does not reach.
        """
        t = self.definition.t_of(self._asked(value, C=C, lam=lam, epsilon=epsilon, nu=nu))
        coef, bias, facts = self._solution(t)
        return self._model(coef, bias, facts, float(self.definition.value_of(t)))

    def solution(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """(β, θ) of the parametric problem at t."""
        beta, theta = self.track.solution(t)
        return np.asarray(beta), np.atleast_1d(theta)

    def _asked(self, value: float | None, **named: float | None) -> float:
        given = {name: number for name, number in named.items() if number is not None}
        if value is not None:
            given["C" if self.parameter == "lambda" and self._has_cost else self.parameter] = value
        if len(given) != 1:
            raise SettingsError("give one value to extract the model at")
        name, number = next(iter(given.items()))
        name = {"lam": "lambda"}.get(name, name)
        if name not in VALUE_COLUMNS[self.parameter]:
            raise SettingsError(f"this is a path in {self.parameter}; it has no {name}")
        number = float(number)
        if name == "C" and number > 0:
            return 1.0 / number if np.isfinite(number) else 0.0
        if not np.isfinite(number) or number < 0 or (name == "C" and number <= 0):
            raise SettingsError(f"{name} is {number!r}; a number greater than 0 is needed")
        return number

    @property
    def _has_cost(self) -> bool:
        return len(VALUE_COLUMNS[self.parameter]) > 1

    def _solution(self, t: float) -> tuple[np.ndarray, float, dict[str, Any]]:
        """coef, bias and what is known of them at t."""
        ends = sorted((float(self.track.t[0]), float(self.track.t[-1])))
        # 1/C and back may miss an end by a rounding error.
        inside = min(max(t, ends[0]), ends[1])
        if abs(inside - t) > 4 * np.finfo(float).eps * abs(t):
            # C = ∞ is as far below as a number can be.
            found = self.definition.beyond(self.task, self, max(t, np.finfo(float).tiny))
            if found is None:
                raise SettingsError(self._range_message(t))
            return *found, {}
        beta, theta = self.solution(inside)
        X, kernel = self.task.solver_kernel()
        threads = self.task.settings.n_threads
        sure = certify(self.track.problem, X, kernel, inside, beta, theta, threads)
        coef, bias = self.definition.coefficients(self.task, beta, theta, inside)
        where, level = np.array([inside]), theta[None, :]
        objective = self.definition.objective(self.task, np.array([sure.objective]), level, where)
        violation = self.definition.violation(self.task, np.array([sure.violation]), level, where)
        n_free = int(np.count_nonzero(self._is_free(inside)))
        facts = {
            "objective": float(objective[0]),
            "kkt_violation": float(violation[0]),
            "n_usv": n_free,
        }
        return coef, bias, facts

    def _is_free(self, t: float) -> np.ndarray:
        states = self.track.states_at(self.track.stretch_of(t))
        return (states == FREE) | (states == FREE_BELOW)

    def _range_message(self, t: float) -> str:
        value = float(self.definition.value_of(t))
        name, ends = self.parameter, (self.low, self.high)
        if self._has_cost and ends[0] > 0:  # people think of C
            value = 1.0 / value if value > 0 else np.inf
            name, ends = "C", (1.0 / ends[1], 1.0 / ends[0])
        text = f"{name} = {value:.6g} is not on the path"
        text += f", which goes from {name} = {ends[0]:.6g} to {ends[1]:.6g}"
        if not self.is_finished:
            text += f" so far: it stopped early ({self.status}); resume it"
        return text

    def _model(self, coef: np.ndarray, bias: float, facts: dict[str, Any], value: float) -> Model:
        return extracted_model(
            self.task,
            coef[:, None],
            np.array([bias]),
            scaler=self.scaler,
            settings=self._setting_at(value),
            info=facts,
        )

    def _setting_at(self, value: float) -> dict[str, Any]:
        """The option of training that the parameter is."""
        if self.parameter != "lambda":
            return {self.parameter: value}
        if not self._has_cost:
            return {"lambda": value}
        return {"cost": 1.0 / value if value > 0 else "inf", "lambda": value}

    # ---- errors ----------------------------------------------------------------------------

    def validation_curve(self) -> StepFunction:
        """The error of the validation rows for every value on the path, exactly.

        A path from a file has the errors just after its breakpoints, and the curve is that of them.
        """
        if not self.n_valid:
            raise SettingsError("the path was followed without validation rows; give them")
        return error_curve(self.track, self.n_valid, "valid")

    def training_curve(self) -> StepFunction:
        return error_curve(self.track, self.n, "train")

    def summary(self) -> dict[str, Any]:
        """What `kfu path` reports: plain values only."""
        columns = self.columns
        names = VALUE_COLUMNS[self.parameter]
        found: dict[str, Any] = {
            "status": self.status,
            "machine": self.machine,
            "parameter": self.parameter,
            "kernel": self.kernel.describe(),
            "n": self.n,
            "n_features": self.n_features,
            "n_classes": len(self.classes),
            "steps": self.n_steps,
            "events": int(self.track.event_start[-1] - self.track.event_start[1]),
        }
        for name in names:
            ends = columns[name][[0, -1]]
            found[f"{name}_first"], found[f"{name}_last"] = ends[0].item(), ends[1].item()
        found["largest_margin"] = int(columns["n_margin"].max())
        found["kkt"] = float(columns["kkt"].max())
        for name in ("train_error", "valid_error"):
            column = columns[name]
            if np.isfinite(column).all():
                found[f"{name}_least"] = float(column.min())
        counters = self.track.counters  # of a path that was followed, not read from a file
        return found | {name: counters[name] for name in COUNTERS if name in counters}

    # ---- files -----------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What the first line of the file holds: with the rows, all that rebuilds the path."""
        task = self.task
        sets = self.definition.vocabulary(task).sets_of(self.track.first_state)
        has_weights = bool(np.any(task.weights != 1.0))
        settings = {name: v for name, v in task.described().items() if name in HEADER_SETTINGS}
        settings.pop(self.parameter, None)
        if self.parameter == "lambda":
            settings.pop("cost", None)
        return {
            "machine": self.machine,
            "parameter": self.parameter,
            "kernel": task.kernel.to_dict(),
            "n": self.n,
            "n_features": self.n_features,
            "classes": task.classes.tolist(),
            "settings": {**settings, **self.options},
            "span": {
                "low": self.span.low,
                "high": self.span.high,
                "upward": self.span.upward,
                "stop": self.stop,
            },
            "start": {"how": self.how, "sets": {w: ranges_of(i) for w, i in sets.items()}},
            "weights": task.weights.tolist() if has_weights else None,
            "scaler": None if self.scaler is None else self.scaler.to_dict(),
            "data": (self.data or DataReference(task.fingerprint()["data"])).to_dict(),
            "validation": {"file": self.valid_file, "n": self.n_valid} if self.n_valid else None,
            "versions": {
                "kfu": __version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            **({"embedded": self.embedded} if self.embedded else {}),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the path file: JSON lines, or CSV when the name ends so."""
        write_path_file(os.fspath(path), self.header(), self.records())


# What reports tell of how a path was followed: gradients computed afresh, slacks of ties spread,
# factors computed afresh, and the largest relative residual of a direction.
COUNTERS = ("corrections", "restarts", "refactorings", "residual")

# The settings of a task that the rebuilt problem needs, and who reads the file.
HEADER_SETTINGS = frozenset({"bias", "class_weight", "cost", "epsilon", "nu", "lambda", "ridge"})
