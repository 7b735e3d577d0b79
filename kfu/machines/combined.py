"""The Info of several binary machines as one: the worst certificate, the sum of the work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kfu.solvers import Solution

_WORST = ("kkt_gap", "kkt_violation", "bias_std")
COUNTERS = (
    *("iterations", "rounds", "kernel_evaluations", "verification_evaluations"),
    *("cache_hits", "cache_misses", "reductions", "shrinks", "refinements", "renewals"),
    "extrapolations",
)
_SUMMED = ("objective", "duality_gap", *COUNTERS)


def combined_info(solutions: list[Solution], coef: np.ndarray, upper: np.ndarray) -> dict[str, Any]:
    """The report of the binary machines; n_sv counts rows, n_usv those unbounded in any machine.

    `coef` (n_machines, n) and `upper` (its bounds, of a shape that fits) are by row of the data.
    """
    infos = [s.info.to_dict() for s in solutions]
    merged = dict(infos[0])
    if len(infos) == 1:
        merged["bias_interval"] = list(merged["bias_interval"])
        return merged
    for name in _WORST:
        merged[name] = max(i[name] for i in infos)
    for name in _SUMMED:
        merged[name] = sum(i[name] for i in infos)
    merged["bias"] = [i["bias"] for i in infos]
    merged["iterations_by_machine"] = [i["iterations"] for i in infos]
    merged["bias_interval"] = [list(i["bias_interval"]) for i in infos]
    merged["margin"] = [i["margin"] for i in infos]
    unfinished = [i["status"] for i in infos if i["status"] != "converged"]
    merged["status"] = unfinished[0] if unfinished else "converged"
    doubles = any(i["precision"] == "float64" for i in infos)
    merged["precision"] = "float64" if doubles else "float32"
    merged["changed_precision"] = any(i["changed_precision"] for i in infos)
    merged["chunk"] = max(i["chunk"] for i in infos)
    phases = list(dict.fromkeys(name for i in infos for name in i["seconds"]))
    merged["seconds"] = {name: sum(i["seconds"].get(name, 0.0) for i in infos) for name in phases}
    merged["warnings"] = list(dict.fromkeys(w for i in infos for w in i["warnings"]))
    looked = merged["cache_hits"] + merged["cache_misses"]
    merged["cache_hit_rate"] = merged["cache_hits"] / looked if looked else 0.0
    used = np.abs(coef)
    merged["n_sv"] = int(np.count_nonzero(np.any(used > 0, axis=0)))
    merged["n_usv"] = int(np.count_nonzero(np.any((used > 0) & (used < upper), axis=0)))
    return merged


def untrained(last: Solution, violated: float, n_missing: int) -> Solution:
    """Stands for a machine that an interrupt kept from being trained: f = 0, and its certificate.

    At α = 0 every margin condition is violated by 1, the pair of any two classes by 2, and the
    primal is `violated`, the sum of the costs.
    """
    nothing: dict[str, Any] = {
        **dict.fromkeys(("objective", "bias", "bias_std", "margin"), 0.0),
        **dict.fromkeys(("n_sv", "n_usv", *COUNTERS), 0),
    }
    info = replace(
        last.info,
        **nothing,
        status="interrupted",
        duality_gap=violated,
        kkt_gap=2.0,
        kkt_violation=1.0,
        bias_interval=(-1.0, 1.0),
        seconds=dict.fromkeys(last.info.seconds, 0.0),
        warnings=[f"interrupted: {n_missing} of the binary machines were not trained"],
    )
    return Solution(alpha=np.zeros(0), beta=np.zeros(0), bias=0.0, info=info)
