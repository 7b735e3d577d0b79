"""What the steps of an experiment share: the state of one part, and what a step is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu.data import Dataset
from kfu.experiment.document import Key
from kfu.model import Model
from kfu.scale import Scaler


@dataclass
class State:
    """What the steps of one part share. Rows may be replaced; the datasets are never changed."""

    train: Dataset
    test: Dataset | None
    seed: list[int]
    threads: int = 0
    label: str = ""  # of the step that runs
    scaler: Scaler | None = None
    model: Model | None = None
    status: str | None = None
    warnings: list[str] = field(default_factory=list)
    predictions: dict[str, np.ndarray] = field(default_factory=dict)  # labels, by step
    curves: dict[str, list[float]] = field(default_factory=dict)  # of roc steps
    figures: dict[str, float] = field(default_factory=dict)  # of the steps before, by full name

    def add_status(self, status: str) -> None:
        """A part has converged when all its trainings have."""
        if self.status in (None, "converged"):
            self.status = status

    def seed_of(self, options: Mapping[str, Any]) -> int:
        """The seed of a step: its own, else that of the experiment plus the repetition."""
        return int(options.get("seed", sum(self.seed)))


@dataclass(frozen=True)
class StepPlan:
    """One step with its options; `label` stands before the names of its figures. A figure name
    that ends in '.' stands for all it begins."""

    name: str
    label: str
    options: dict[str, Any]
    figures: tuple[str, ...] = ()

    def yields(self, figure: str) -> bool:
        label, _, rest = figure.partition(".")
        return label == self.label and any(
            rest == known or (known.endswith(".") and rest.startswith(known))
            for known in self.figures
        )


Options = dict[str, Any]
Problems = Iterator[tuple[str, str]]  # a key ("" for the step) and what is wrong


def no_problems(options: Options, before: Sequence[StepPlan]) -> Problems:
    return iter(())


@dataclass(frozen=True)
class Step:
    """A kind of step; see the head of kfu/experiment/steps.py.

    `after`: one of these steps has to come before it. `check(options, before)` tells what is wrong
    with options that are right one by one; `names(options, before)` are figures that depend on the
    steps before. `together` are figures that are drawn in one panel.
    """

    run: Callable[[Options, State], dict[str, float]]
    keys: Mapping[str, Key]
    figures: tuple[str, ...]
    after: tuple[str, ...] = ()
    check: Callable[[Options, Sequence[StepPlan]], Problems] = no_problems
    names: Callable[[Options, Sequence[StepPlan]], Sequence[str]] = lambda options, before: ()
    together: tuple[str, ...] = ()
