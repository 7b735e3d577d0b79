"""The step `scale`: fitted on the training rows, applied to training and test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kfu.experiment.document import Key, choice, number, positive
from kfu.experiment.state import Options, Problems, State, Step, StepPlan
from kfu.scale import SCALERS, Scaler

OWNERS = {"range": "minmax", "divisor": "divide"}


def interval(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("not [LOW, HIGH]; write for example [-1, 1]")
    low, high = number(value[0]), number(value[1])
    if low >= high:
        raise ValueError(f"[{low:g}, {high:g}] is empty; the first number is the smaller one")
    return low, high


def check_scale(options: Options, before: Sequence[StepPlan]) -> Problems:
    method = options.get("method", "standard")
    for option, owner in OWNERS.items():
        if option in options and method != owner:
            yield option, f"belongs to method {owner}, not {method}; leave it out"
    if method == "divide" and "divisor" not in options:
        yield "", "method divide needs its constant; give 'divisor'"


def run_scale(options: Options, state: State) -> dict[str, float]:
    method = options.pop("method", "standard")
    if "divisor" in options:
        options["constant"] = options.pop("divisor")
    scaler = Scaler.fit(state.train.X, method, **options)
    state.scaler = scaler
    state.train = replace(state.train, X=scaler.transform(state.train.X))
    if state.test is not None:
        state.test = replace(state.test, X=scaler.transform(state.test.X))
    return {}


SCALE = Step(
    run_scale,
    {
        "method": Key(choice("scaling", SCALERS), "the kind of scaling"),
        "range": Key(interval, "the interval of minmax"),
        "divisor": Key(positive, "what divide divides by"),
    },
    figures=(),
    check=check_scale,
)
