"""Figures over repetitions, and what was expected of them.

An expectation names a figure and either a `value` with a `tolerance` (absolute) or a `relative`
one, or a bound (`at_least`, `at_most`, or both). What is compared is a `statistic` of the figure
over all parts (repetitions and folds): the mean unless it says otherwise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kfu.errors import SettingsError
from kfu.experiment.document import Key, choice, non_negative, number, text

STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "sd": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
}


def where(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("not a mapping; write for example {train.cost: 1}")
    return {key.replace("-", "_"): item for key, item in value.items()}


EXPECT_KEYS: dict[str, Key] = {
    "figure": Key(text, "which figure, for example test.accuracy", required=True),
    "value": Key(number, "the value expected"),
    "tolerance": Key(non_negative, "how far from it is still right"),
    "relative": Key(non_negative, "the same, as a fraction of the value"),
    "at_least": Key(number, "the smallest right value"),
    "at_most": Key(number, "the largest right value"),
    "statistic": Key(choice("statistic", STATISTICS), "what is compared"),
    "where": Key(where, "the varied values it is about"),
    "note": Key(text, "where the value comes from"),
}


@dataclass(frozen=True)
class Expectation:
    """A figure should lie in [low, high]; `text` says it the way it was written."""

    figure: str
    low: float
    high: float
    text: str
    statistic: str = "mean"
    where: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @staticmethod
    def make(
        figure: str,
        value: float | None = None,
        tolerance: float | None = None,
        relative: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        **more: Any,
    ) -> Expectation:
        """From the keys of the YAML; SettingsError when they do not go together."""
        if value is None:
            if at_least is None and at_most is None:
                raise SettingsError("give 'value' with 'tolerance', or 'at_least', or 'at_most'")
            if tolerance is not None or relative is not None:
                raise SettingsError("'tolerance' and 'relative' belong to a 'value'")
            low = -math.inf if at_least is None else at_least
            high = math.inf if at_most is None else at_most
            if low > high:
                raise SettingsError(f"nothing lies between {low:g} and {high:g}")
            bounds = [f">= {low:g}"] * (at_least is not None) + [f"<= {high:g}"] * (
                at_most is not None
            )
            return Expectation(figure, low, high, ", ".join(bounds), **more)
        if at_least is not None or at_most is not None:
            raise SettingsError("give either 'value' or bounds, not both")
        if (tolerance is None) == (relative is None):
            raise SettingsError("a 'value' needs 'tolerance' or 'relative' (one of them)")
        reach = tolerance if tolerance is not None else abs(value) * (relative or 0.0)
        shown = f"{tolerance:g}" if tolerance is not None else f"{relative:g} rel."
        return Expectation(figure, value - reach, value + reach, f"{value:.7g} ± {shown}", **more)


@dataclass(frozen=True)
class Summary:
    """A figure over the parts that yielded it."""

    values: list[float]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def sd(self) -> float | None:
        """The sample standard deviation; None for a single value, which has no spread."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "sd": self.sd,
            "min": min(self.values),
            "max": max(self.values),
            "n": len(self.values),
            "values": self.values,
        }


@dataclass(frozen=True)
class Verdict:
    """An expectation beside what was obtained (None: the figure did not come out)."""

    expectation: Expectation
    variant: dict[str, Any]
    obtained: float | None
    sd: float | None
    n: int

    @property
    def holds(self) -> bool:
        # The slack of a few ulp lets "0.1 ± 0.2" accept 0.3 however it was computed.
        if self.obtained is None:
            return False
        slack = 1e-12 * abs(self.obtained)
        return self.expectation.low - slack <= self.obtained <= self.expectation.high + slack

    def to_dict(self) -> dict[str, Any]:
        shown = {k: v for k, v in asdict(self.expectation).items() if k != "where"}
        return {
            **shown,
            "variant": self.variant,
            "obtained": self.obtained,
            "sd": self.sd,
            "n": self.n,
            "holds": self.holds,
        }


def judge(
    expectation: Expectation, variant: dict[str, Any], figures: dict[str, Summary]
) -> Verdict | None:
    """The verdict for one variant, or None when the expectation is about another."""
    if any(variant.get(key) != value for key, value in expectation.where.items()):
        return None
    summary = figures.get(expectation.figure)
    if summary is None:
        return Verdict(expectation, variant, None, None, 0)
    obtained = STATISTICS[expectation.statistic](summary.values)
    return Verdict(expectation, variant, obtained, summary.sd, len(summary.values))
