"""Estimates along one parameter: C, gamma, the ridge and others, each value trained anew.

"C=0.1,1,10" lists values; "C=0.01:100:9" is a grid of nine from 0.01 to 100, evenly spaced in
logarithms. Machines of the dual start from the solution before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.estimates.table import LeaveOneOut
from kfu.kernel_registry import nearest
from kfu.machines.registry import Machine

# As it may be written -> the argument of kfu.machines.train, or of the kernel.
SWEPT = {
    "C": "cost",
    "c": "cost",
    "cost": "cost",
    "gamma": "gamma",
    "g": "gamma",
    "sigma": "sigma",
    "ridge": "ridge",
    "lambda": "lam",
    "nu": "nu",
    "epsilon": "epsilon",
}
SHOWN = {"cost": "C", "lam": "lambda"}
OF_KERNEL = ("gamma", "sigma")
MOST_VALUES = 1000


@dataclass(frozen=True)
class SweepPlan:
    """name: of the argument; `label`: for people."""

    name: str
    values: tuple[float, ...]

    @property
    def label(self) -> str:
        return SHOWN.get(self.name, self.name)

    def check(self, machine: Machine, kernel: Any) -> None:
        """SettingsError where machine or kernel have no such parameter."""
        if self.name in OF_KERNEL:
            if "gamma" not in kernel.params:
                raise SettingsError(f"--sweep {self.label}: kernel {kernel.name} has no gamma")
            return
        has_it = machine.takes_cost if self.name == "cost" else self.name in machine.options
        if not has_it:
            raise SettingsError(f"--sweep {self.label}: machine {machine.name} has none")

    def change(self, arguments: dict[str, Any], value: float) -> dict[str, Any]:
        """The arguments of training at a value."""
        if self.name not in OF_KERNEL:
            changed = {**arguments, self.name: value}
            if self.name in ("ridge", "lam"):
                changed.pop("lam" if self.name == "ridge" else "ridge", None)
            return changed
        gamma = value if self.name == "gamma" else 1.0 / (2.0 * value * value)
        return {**arguments, "kernel": arguments["kernel"].with_params(gamma=gamma)}


def read_sweep(text: str) -> SweepPlan:
    """SettingsError for what is not NAME=VALUES."""
    name, equals, listed = text.partition("=")
    if not equals or name.strip() not in SWEPT:
        hint = nearest(name.strip(), SWEPT) if equals else "write NAME=VALUES"
        raise SettingsError(f"--sweep {text}: {hint}; for instance C=0.1,1,10 or C=0.01:100:9")
    parts = listed.split(":")
    steps = 0
    try:
        if len(parts) == 3:
            values, steps = [float(parts[0]), float(parts[1])], int(parts[2])
        elif len(parts) == 1:
            values = [float(part) for part in listed.split(",")]
        else:
            raise ValueError
    except ValueError:
        raise SettingsError(
            f"--sweep {text}: '{listed}' is neither a list of numbers nor LOW:HIGH:STEPS"
        ) from None
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise SettingsError(f"--sweep {text}: values have to be finite numbers above 0")
    if len(parts) == 3:
        values = _grid(text, values[0], values[1], steps)
    if len(values) > MOST_VALUES:
        raise SettingsError(f"--sweep: {len(values)} values; give at most {MOST_VALUES}")
    return SweepPlan(SWEPT[name.strip()], tuple(dict.fromkeys(values)))


def _grid(text: str, low: float, high: float, steps: int) -> list[float]:
    if not low < high:
        raise SettingsError(f"--sweep {text}: LOW:HIGH:STEPS needs a LOW below HIGH")
    if not 2 <= steps <= MOST_VALUES:
        raise SettingsError(
            f"--sweep {text}: LOW:HIGH:STEPS with {steps} steps; give 2 to {MOST_VALUES}"
        )
    return [float(f"{value:.6g}") for value in np.geomspace(low, high, steps)]


@dataclass
class Sweep:
    """The estimates at each value."""

    plan: SweepPlan
    points: list[LeaveOneOut]

    @property
    def names(self) -> list[str]:
        """Estimates that have a value somewhere."""
        names = dict.fromkeys(e.name for point in self.points for e in point)
        return [name for name in names if any(v is not None for v in self.curve(name))]

    def is_from_below(self, name: str) -> bool:
        return any(name in p and p[name].of.endswith("from below") for p in self.points)

    def curve(self, name: str, only_valid: bool = False) -> list[float | None]:
        found: list[float | None] = []
        for point in self.points:
            usable = name in point and (point[name].valid or not only_valid)
            found.append(point[name].value if usable else None)
        return found

    @property
    def test_errors(self) -> list[float | None]:
        return [point.test_error for point in self.points]

    def least(self) -> dict[str, float]:
        """Where each estimate (and the test error) is least; of equals the middle one. Bounds from
        below, of precision and recall, are left out."""
        curves = {name: self.curve(name) for name in self.names if not self.is_from_below(name)}
        if any(error is not None for error in self.test_errors):
            curves["test"] = self.test_errors
        found = {}
        for name, curve in curves.items():
            known = [(value, k) for k, value in enumerate(curve) if value is not None]
            lowest = min(known)[0]
            places = [k for value, k in known if value <= lowest * (1 + 1e-12)]
            found[name] = self.plan.values[places[(len(places) - 1) // 2]]
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.plan.label,
            "values": list(self.plan.values),
            "points": [
                {self.plan.label: value, **point.to_dict()}
                for value, point in zip(self.plan.values, self.points, strict=True)
            ],
            "least": self.least(),
        }


def run_sweep(plan: SweepPlan, estimate: Callable[[float], LeaveOneOut]) -> Sweep:
    return Sweep(plan, [estimate(value) for value in plan.values])
