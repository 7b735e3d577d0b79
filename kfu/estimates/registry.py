"""What an estimate is, and what it found.

An entry of ESTIMATES (kfu.estimates) knows the machines it is for, when its theorem does not hold
for one of these (`refuses` says why), what it costs, and how it is computed. `refuses` is asked
before anything is computed; an estimate that does not hold has no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.estimates.trained import Trained

LOO_ERROR = "leave-one-out error"

SVC = ("svc", "svc2")


@dataclass(frozen=True)
class Options:
    """eta: of the smoothed span. delta: 1 − the confidence of bounds on the risk. test: error and
    number of test rows, where there are some; n_models: among how many the machine was chosen.
    on_done(fraction): told now and then by what takes long."""

    eta: float = 0.1
    delta: float = 0.05
    test: tuple[float, int] | None = None
    n_models: int = 1
    on_done: Callable[[float], Any] | None = None


@dataclass(frozen=True)
class Found:
    """One figure. `suffix` tells several of one estimate apart; `of` replaces the entry's.

    outputs (n, n_machines) and flags (n,), where the estimate has them: the output of each row by
    the machine without it, and the rows that may be (or are) errors.
    """

    value: float | None
    note: str = ""
    valid: bool = True
    suffix: str = ""
    of: str | None = None
    outputs: np.ndarray | None = None
    flags: np.ndarray | None = None


def holds(trained: Trained) -> str | None:
    return None


@dataclass(frozen=True)
class Entry:
    """kind: "exact", "estimate" or "bound"; `of`: of what. size(trained) is the rough number of
    operations in units of 1e9, above which (MOST_WORK) it has to be asked for."""

    name: str
    summary: str
    kind: str
    of: str
    reference: str
    machines: tuple[str, ...]
    compute: Callable[[Trained, Options], Found | list[Found]]
    refuses: Callable[[Trained], str | None] = holds
    needs_psd: bool = True
    needs_full_kernel: bool = True
    size: Callable[[Trained], float] = lambda trained: 0.0
    needs_test: bool = False


MOST_WORK = 150.0


@dataclass(frozen=True)
class Estimate:
    """One line of the table."""

    name: str
    value: float | None
    of: str
    kind: str
    valid: bool
    seconds: float
    note: str
    outputs: np.ndarray | None = None
    flags: np.ndarray | None = None

    @property
    def what(self) -> str:
        """ "bound on the leave-one-out error", for people."""
        words = {"exact": "the", "estimate": "estimate of the", "bound": "bound on the"}
        return f"{words[self.kind]} {self.of}"

    def to_dict(self) -> dict[str, Any]:
        names = ("name", "value", "of", "kind", "valid", "seconds", "note")
        return {name: getattr(self, name) for name in names}
