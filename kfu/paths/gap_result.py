"""What an ε-path has found: its breakpoints, and the model with its certificate at any cost.

See kfu.paths.gap_path for what is proved and kfu.paths.gap_segment for how.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.errors import SettingsError
from kfu.machines.task import TrainingTask, rows_of
from kfu.model import Model
from kfu.paths.extraction import extracted_model, matched_validation
from kfu.paths.gap_breakpoint import Breakpoint, Tally
from kfu.paths.gap_follower import AT_BOUND
from kfu.paths.gap_segment import Segment
from kfu.paths.sloped_loss import SlopedLoss

if TYPE_CHECKING:
    from kfu.scale import Scaler

ROUNDING = 1e-12  # of a cost just outside the range, relative


@dataclass(eq=False)
class GapPath:
    """`points` and `segments` (one fewer) ascend in cost."""

    task: TrainingTask
    loss: SlopedLoss
    gap: float  #: the promised one
    points: list[Breakpoint]
    segments: list[Segment]
    status: str
    tally: Tally
    scaler: Scaler | None = None
    valid_error: np.ndarray | None = field(default=None)  #: of each breakpoint

    # ---- what it is ------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.points)

    @property
    def machine(self) -> str:
        return self.task.machine.name

    @property
    def is_finished(self) -> bool:
        return self.status == "done"

    @property
    def costs(self) -> np.ndarray:
        return np.array([point.cost for point in self.points])

    @property
    def covered(self) -> tuple[float, float]:
        return self.points[0].cost, self.points[-1].cost

    @property
    def worst_gap(self) -> float:
        """The largest relative gap over the whole of `covered`."""
        return max([point.gap for point in self.points] + [part.worst for part in self.segments])

    def summary(self) -> dict[str, Any]:
        """What the run was, in plain values."""
        low, high = self.covered
        return {
            "status": self.status,
            "machine": self.machine,
            "n": self.task.n,
            "gap": self.gap,
            "worst_gap": self.worst_gap,
            "cost_range": [low, high],
            "n_breakpoints": len(self),
            "n_solves": self.tally.n_solves,
            "iterations": self.tally.iterations,
            "kernel_evaluations": self.tally.kernel_evaluations,
            "verification_evaluations": self.tally.verification_evaluations,
            "seconds": dict(self.tally.seconds),
        }

    # ---- anywhere --------------------------------------------------------------------------

    def gap_at(
        self, value: float | None = None, *, C: float | None = None, lam: Any = None
    ) -> float:
        """The relative gap proved at a cost."""
        return self._facts(self._asked(value, C, lam))[2]["relative_gap"]

    def at(
        self,
        value: float | None = None,
        *,
        C: float | None = None,
        lam: float | None = None,
    ) -> Model:
        """The model at a cost C (or λ = 1/C) of `covered`, with its certificate in `info`."""
        cost = self._asked(value, C, lam)
        beta, bias, facts = self._facts(cost)
        return self._model(cost, beta, bias, facts)

    def _asked(self, value: float | None, C: float | None, lam: float | None) -> float:
        given = [number for number in (value, C, lam) if number is not None]
        if len(given) != 1:
            raise SettingsError("give one value to extract the model at")
        number = float(given[0])
        if not np.isfinite(number) or number <= 0.0:
            raise SettingsError(f"C or lambda is {number!r}; a number greater than 0 is needed")
        cost = number if lam is None else 1.0 / number
        low, high = self.covered
        inside = min(max(cost, low), high)
        if abs(inside - cost) > ROUNDING * cost:
            raise SettingsError(
                f"C = {cost:.6g} is not on the path, which has C from {low:.6g} to {high:.6g}"
                + ("" if self.is_finished else f"; it stopped early ({self.status})")
            )
        return inside

    def _facts(self, cost: float) -> tuple[np.ndarray, float, dict[str, Any]]:
        """β, bias and certificate at a cost that is covered."""
        place = int(np.searchsorted(self.costs, cost))
        if self.points[place].cost == cost:
            point = self.points[place]
            beta, outputs, bias = point.beta, point.outputs, point.bias
            primal, gap = point.primal, point.duality_gap
        else:
            segment = self.segments[place - 1]
            mu = segment.place(cost)
            beta, outputs = segment.beta(mu), segment.outputs(mu)
            judged = segment.judge(mu)
            bias, primal, gap = judged.bias, judged.primal, judged.gap
        sizes, violation, pair_gap = self._conditions(cost, beta, outputs, bias)
        facts = {
            "objective": primal - gap,
            "duality_gap": gap,
            "relative_gap": gap / primal if primal > 0.0 else 0.0,
            "kkt_gap": pair_gap,
            "kkt_violation": violation,
            "n_usv": sizes[0],
        }
        return beta, bias + self._regularised_bias(beta), facts

    def _regularised_bias(self, beta: np.ndarray) -> float:
        """The bias that is part of the kernel, K + 1."""
        return float(beta.sum()) if self.task.bias == "regularised" else 0.0

    def _conditions(
        self, cost: float, beta: np.ndarray, outputs: np.ndarray, bias: float
    ) -> tuple[tuple[int, int, int], float, float]:
        """The numbers of rows on the margin, at their bound and without a coefficient; the worst
        violation of the conditions with this bias, and of a pair."""
        lower, upper = self.loss.box(cost)
        near = AT_BOUND * (upper - lower)
        rises, falls = beta < upper - near, beta > lower + near
        slope = outputs - self.loss.y
        up = slope + np.where(beta >= 0.0, self.loss.epsilon, -self.loss.epsilon)
        down = slope + np.where(beta > 0.0, self.loss.epsilon, -self.loss.epsilon)
        least = float(up[rises].min(initial=np.inf))
        most = float(down[falls].max(initial=-np.inf))
        violation = max(-bias - least, most + bias, 0.0)
        pair_gap = max(most - least, 0.0) if self.task.has_free_bias else violation
        is_zero = beta == 0.0
        n_margin = int(np.count_nonzero(rises & falls & ~is_zero))
        n_correct = int(np.count_nonzero(is_zero))
        return (n_margin, len(beta) - n_margin - n_correct, n_correct), violation, pair_gap

    def _model(self, cost: float, beta: np.ndarray, bias: float, facts: dict[str, Any]) -> Model:
        return extracted_model(
            self.task,
            beta[:, None],
            np.array([bias]),
            scaler=self.scaler,
            settings={"cost": cost, "gap": self.gap},
            info=facts,
        )

    # ---- breakpoints -----------------------------------------------------------------------

    def records(self) -> Iterator[dict[str, Any]]:
        """The breakpoints as the path file has them, and the relative gap of each.

        Errors are fractions of rows (a decision value of 0 is the smaller class's), of svr the mean
        squared error.
        """
        for step, point in enumerate(self.points):
            sizes, violation, _ = self._conditions(
                point.cost, point.beta, point.outputs, point.bias
            )
            valid = None if self.valid_error is None else float(self.valid_error[step])
            yield {
                "step": step,
                "lambda": 1.0 / point.cost,
                "C": point.cost,
                "event": "solve",
                "items": [],
                "n_margin": sizes[0],
                "n_error": sizes[1],
                "n_correct": sizes[2],
                "bias": point.bias + self._regularised_bias(point.beta),
                "objective": point.objective,
                "train_error": _error_of(self.task, point.outputs + point.bias, self.loss.y),
                "valid_error": valid,
                "kkt": violation,
                "gap": point.gap,
            }

    def validate(self, X: Any, y: Any) -> np.ndarray:
        """Sets and returns `valid_error`: one pass over the kernel for all breakpoints."""
        X, labels = matched_validation(self.at(self.points[0].cost), X, y, self.scaler)
        targets = _encoded(labels, self.task)
        support = np.unique(np.concatenate([point.support for point in self.points]))
        coef = np.stack([point.beta[support] for point in self.points], axis=1)
        values = _outputs(self.task, support, coef, X)
        values += [p.bias + self._regularised_bias(p.beta) for p in self.points]
        errors = [_error_of(self.task, values[:, k], targets) for k in range(len(self))]
        self.valid_error = np.array(errors)
        return self.valid_error


def _outputs(task: TrainingTask, support: np.ndarray, coef: np.ndarray, X: Any) -> np.ndarray:
    """Σ coef K(x_i, x) for the rows of X, (rows, breakpoints)."""
    if support.size == 0:
        return np.zeros((X.shape[0], coef.shape[1]))
    if task.kernel.is_precomputed:
        return task.kernel.weight * np.asarray(X[:, support] @ coef, dtype=np.float64)
    from kfu._gram import Gram

    gram = Gram(rows_of(task.X, support), task.kernel, "float64", task.settings.n_threads)
    return np.asarray(gram.decision(None, coef, X))


def _error_of(task: TrainingTask, values: np.ndarray, targets: np.ndarray) -> float:
    if task.labels is None:
        return float(np.mean((values - targets) ** 2))
    return float(np.mean(np.where(values > 0.0, 1.0, -1.0) != targets))


def _encoded(y: np.ndarray, task: TrainingTask) -> np.ndarray:
    """Numbers, or ±1 of the two classes; 0, which nothing is, for labels that the path lacks."""
    if task.labels is None:
        return y.astype(np.float64)
    signs = signs_of(task, np.array([0, 1]))
    return np.where(y == task.classes[0], signs[0], np.where(y == task.classes[1], signs[1], 0.0))


def signs_of(task: TrainingTask, labels: np.ndarray) -> np.ndarray:
    assert task.code is not None
    return task.code[labels, 0].astype(np.float64)
