"""The ε-path beside single trainings: ``python -m benchmarks.gap_path [--quick] [--turns N]``.

The whole of a9a (32,561 rows, rbf, γ = 1/features), C from 0.01 to 100, for several gaps; the unit
is one training at C = 1 with the default tolerance, which takes turns with the paths so that both
see the same load. The gap of the path is checked at costs between its breakpoints against values
computed from scratch. ``--quick`` takes a small generated set. Each record is a JSON line in
benchmarks/results/gap_path.jsonl.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.cases import gaussian_mixtures
from benchmarks.linear import two_classes
from benchmarks.records import Record, Run

GAPS = (1e-1, 1e-2, 1e-3)
RANGE = (1e-2, 1e2)
TURNS = 3
CHECKED = (0.05, 2.5, 60.0)  # costs between breakpoints


def timed(function: Any, *arguments: Any, **options: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = function(*arguments, **options)
    return time.perf_counter() - began, found


def true_gap(X: Any, signs: np.ndarray, model: Any, cost: float) -> float:
    """(primal − dual) / primal of a model, by its decision values."""
    f = model.decision_function(X)[:, 0]
    beta = np.zeros(len(signs))
    beta[model.support] = model.coef[0]
    norm = float(beta @ (f - model.bias[0]))
    primal = 0.5 * norm + cost * float(np.maximum(0.0, 1.0 - signs * f).sum())
    return (primal - (float(np.abs(beta).sum()) - 0.5 * norm)) / primal


def run(turns: int, is_quick: bool) -> list[Record]:
    import kfu
    from kfu.paths.gap_path import follow_gap

    name = "mixtures" if is_quick else "a9a"
    X, y = gaussian_mixtures(600, 5) if is_quick else two_classes("a9a.tr.gz")
    signs = np.where(y == np.max(y), 1.0, -1.0)
    singles: list[float] = []
    seconds: dict[float, list[float]] = {gap: [] for gap in GAPS}
    paths: dict[float, Any] = {}
    for _ in range(turns):
        for gap in GAPS:
            took, single = timed(kfu.train, X, y)
            singles.append(took)
            took, paths[gap] = timed(follow_gap, X, y, gap=gap, cost_range=RANGE)
            seconds[gap].append(took)
    unit = float(np.median(singles))
    records = []
    for gap in GAPS:
        path, took = paths[gap], float(np.median(seconds[gap]))
        facts = path.summary()
        records.append(
            {
                "case": name,
                "gap": gap,
                "worst_gap": path.worst_gap,
                "proved": [path.gap_at(cost) for cost in CHECKED],
                "recomputed": [true_gap(X, signs, path.at(cost), cost) for cost in CHECKED],
                "n_breakpoints": len(path),
                "costs": path.costs.tolist(),
                "seconds": took,
                "single_seconds": unit,
                "ratio": took / unit,
                "kernel_evaluations": facts["kernel_evaluations"],
                "verification_evaluations": facts["verification_evaluations"],
                "single_kernel_evaluations": single.info["kernel_evaluations"],
                "turns": turns,
            }
        )
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a trial run of seconds")
    parser.add_argument("--turns", type=int, default=TURNS)
    options = parser.parse_args()
    out = Run("gap_path", "quick" if options.quick else "full")
    print(
        "gap      proved   breakpoints  seconds  single trainings  kernel values / of one training"
    )
    for record in run(options.turns, options.quick):
        out.add(record)
        values = record["kernel_evaluations"] / max(record["single_kernel_evaluations"], 1)
        print(
            f"{record['gap']:<8g} {record['worst_gap']:.2e} {record['n_breakpoints']:10d} "
            f"{record['seconds']:10.2f} {record['ratio']:14.2f} {values:18.2f}"
        )
    out.finish(["gap_path"])


if __name__ == "__main__":
    main()
