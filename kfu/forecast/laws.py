"""Seconds as sums of terms such as n³ and n m², fitted to pilots.

The coefficients are not negative, and what else the machine does can only lengthen a pilot: the law
is the highest one that lies below every pilot (a linear program; errors count relative to the
seconds, so that small pilots say as much as large ones). One pilot that was disturbed then changes
little. A coefficient is the inverse of a rate: seconds for one n³, at the speed of this machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

Sizes = Mapping[str, float]


@dataclass(frozen=True)
class Term:
    """A product of powers of sizes: Term(n=1, m=2) is n m²."""

    powers: tuple[tuple[str, float], ...]

    def at(self, sizes: Sizes) -> float:
        return math.prod(float(sizes[name]) ** power for name, power in self.powers)


def term(**powers: float) -> Term:
    return Term(tuple(powers.items()))


@dataclass(frozen=True)
class Pilot:
    """A small training: its sizes and the seconds of each phase."""

    sizes: dict[str, float]
    seconds: dict[str, float]


def extrapolated(
    pilots: Sequence[Pilot],
    terms: Mapping[str, Sequence[Term]],
    usual: Sequence[Term],
    sizes: Sizes,
) -> dict[str, float]:
    """Seconds of every phase at `sizes`; phases that `terms` does not name follow `usual`."""
    phases = list(dict.fromkeys(name for pilot in pilots for name in pilot.seconds))
    found = {}
    for phase in phases:
        law = terms.get(phase, usual)
        seconds = np.array([pilot.seconds.get(phase, 0.0) for pilot in pilots])
        found[phase] = _at(law, pilots, seconds, sizes)
    return found


def _at(law: Sequence[Term], pilots: Sequence[Pilot], seconds: np.ndarray, sizes: Sizes) -> float:
    """The envelope: max Σ (A c)_i / s_i with A c ≤ s and c ≥ 0, of terms A and seconds s."""
    largest = float(seconds.max())
    if largest <= 0.0:
        return 0.0
    floored = np.maximum(seconds, 1e-6 * largest)
    table = np.array([[term.at(pilot.sizes) for term in law] for pilot in pilots])
    scale = table.max(axis=0)
    relative = table / scale / floored[:, None]
    found = linprog(-relative.sum(axis=0), A_ub=relative, b_ub=np.ones(len(pilots)), method="highs")
    whole = np.array([term.at(sizes) for term in law]) / scale
    return float(found.x @ whole)


def grown_rank(pilots: Sequence[Pilot], m: float) -> float:
    """The rank of m centres: that of the pilots, grown by the power that it grew by in them."""
    known = sorted({(p.sizes["m"], p.sizes["r"]) for p in pilots})
    (m1, r1), (m2, r2) = known[0], known[-1]
    if m2 <= m1 or r2 >= m2:
        return m * r2 / m2
    power = math.log(max(r2 / r1, 1.0)) / math.log(m2 / m1)
    return min(m, r2 * (m / m2) ** min(power, 1.0))
