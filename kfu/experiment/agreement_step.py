"""The step `agreement`: on which share of the rows do earlier predictions name the same class?

For each pair of the steps compared a figure A.B (in the order of the steps), and `all` for the
share on which every one agrees (Rifkin 2002, section 4.3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from kfu.experiment.document import Key, text
from kfu.experiment.learner import machine_of
from kfu.experiment.state import Options, Problems, State, Step, StepPlan
from kfu.machine_kinds import CLASSIFIER, NOVELTY
from kfu.multiclass import agreement_table, unanimous_fraction

PREDICTING = ("predict", "cross_validate")
TRAINING = ("train", "path_selection")  # leave a model behind


def names_of_steps(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) < 2:
        raise ValueError("not a list of steps; write the names of two or more, [A, B]")
    names = [text(item) for item in value]
    if len(set(names)) < len(names):
        raise ValueError("names a step twice; keep one of them")
    return names


def compared(options: Mapping[str, Any], before: Sequence[StepPlan]) -> list[StepPlan]:
    """The steps whose predictions are compared, in their order."""
    wanted = options.get("of")
    return [
        step for step in before if step.name in PREDICTING and (not wanted or step.label in wanted)
    ]


def rows_of(step: StepPlan) -> str:
    return "train" if step.name == "cross_validate" else str(step.options.get("rows", "test"))


def kind_behind(step: StepPlan, before: Sequence[StepPlan]) -> str:
    """The kind of the machine whose predictions a step gives."""
    if step.name == "cross_validate":
        return machine_of(step.options).kind
    earlier = before[: list(before).index(step)]
    return machine_of(next(s for s in reversed(earlier) if s.name in TRAINING).options).kind


def check_agreement(options: Options, before: Sequence[StepPlan]) -> Problems:
    steps = compared(options, before)
    labels = [step.label for step in steps]
    known = ", ".join(dict.fromkeys(s.label for s in before if s.name in PREDICTING))
    for name in options.get("of", []):
        if name not in labels:
            yield "of", f"no predictions '{name}' before this step (there are: {known or 'none'})"
    if len(labels) < 2:
        yield "", "needs the predictions of two steps before it (predict, cross_validate)"
    for label in labels:
        if labels.count(label) > 1:
            yield "", f"two steps are called '{label}'; name one of them with 'as: NAME'"
    if len({rows_of(step) for step in steps}) > 1:
        yield "", "the predictions are of different rows; choose those to compare with 'of'"
    for step in steps:
        kind = kind_behind(step, before)
        if kind not in (CLASSIFIER, NOVELTY):
            yield "", f"'{step.label}' predicts numbers ({kind}), not classes"


def agreement_names(options: Options, before: Sequence[StepPlan]) -> list[str]:
    labels = [step.label for step in compared(options, before)]
    return [f"{a}.{b}" for a, b in combinations(labels, 2)]


def run_agreement(options: Options, state: State) -> dict[str, float]:
    wanted = options.get("of")
    chosen = {
        name: labels for name, labels in state.predictions.items() if not wanted or name in wanted
    }
    names, table = agreement_table(chosen)
    figures = {
        f"{names[i]}.{names[j]}": float(table[i, j]) for i, j in combinations(range(len(names)), 2)
    }
    return {**figures, "all": unanimous_fraction(chosen)}


AGREEMENT = Step(
    run_agreement,
    {"of": Key(names_of_steps, "which predictions are compared (default: all before)")},
    figures=("all",),
    after=PREDICTING,
    check=check_agreement,
    names=agreement_names,
)
