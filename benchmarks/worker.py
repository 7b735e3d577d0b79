"""One training by one competitor in a process of its own.

    python -m benchmarks.worker a9a kfu                    a case
    python -m benchmarks.worker n:8000 onedal --sweep      a point of a sweep (benchmarks/sweeps.py)

Prints a JSON object: seconds of the fit alone, peak memory, and the objective, the gap of the
maximal violating pair and the support vectors of the result, judged from float64 kernel values
whoever made it. A fit of a few rows comes before, so that loading libraries and starting threads
count for nobody, and then a pause: threads of BLAS that have made the data spin for a while on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case
from benchmarks.competitors import COMPETITORS

WARM_UP_ROWS = 50  # of each class
PAUSE = 0.3  # seconds before the fit that is timed


def judge(X: Any, y: np.ndarray, case: Case, fitted: dict[str, Any]) -> dict[str, Any]:
    """Objective and gap from float64 kernel values, and the counts of support vectors."""
    from kfu._gram import Gram

    from kfu import KernelSpec

    rows, coef = fitted["rows"].astype(np.int64), fitted["coef"]
    gram = Gram(X, KernelSpec.make("rbf", gamma=case.gamma), precision="float64")
    values = np.ascontiguousarray(gram.decision(rows, np.ascontiguousarray(coef[:, None]), X)[:, 0])
    F = values - y
    alpha = np.zeros(len(y))
    alpha[rows] = np.abs(coef)
    near = 1e-8 * case.cost  # peers leave bounded coefficients a rounding error away from C
    can_grow, can_fall = alpha < case.cost - near, alpha > near
    up = np.where(y > 0, can_grow, can_fall)
    low = np.where(y > 0, can_fall, can_grow)
    return {
        "objective": float(alpha.sum() - 0.5 * coef @ values[rows]),
        "gap64": float(max(0.0, F[low].max() - F[up].min())),
        "n_sv": int(np.count_nonzero(can_fall)),
        "n_free": int(np.count_nonzero(can_fall & can_grow)),
    }


def bound_seconds(X: Any, case: Case, fitted: dict[str, Any]) -> float:
    """The verification bound: K(support vectors, all rows) once, in float32, on all cores.

    The best of three, or of those that fit into five seconds.
    """
    from kfu._gram import Gram

    from kfu import KernelSpec

    gram = Gram(X, KernelSpec.make("rbf", gamma=case.gamma), precision="float32")
    coef = np.ascontiguousarray(fitted["coef"][:, None])
    rows = fitted["rows"].astype(np.int64)
    times: list[float] = []
    while len(times) < 3 and sum(times) < 5:
        begin = time.perf_counter()
        gram.decision(rows, coef, X)
        times.append(time.perf_counter() - begin)
    return min(times)


def reset_peak() -> None:
    """Let the peak of resident memory start anew, so that loading the data is not part of it."""
    try:
        with open("/proc/self/clear_refs", "w") as switch:
            switch.write("5")
    except OSError:  # not Linux, or not allowed: the peak then is that of the whole process
        pass


def measure(
    case: Case, competitor: str, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The record of one training; `settings` are kfu's (see SolverSettings)."""
    from kfu.report import peak_rss_mib

    X, y = case.load()
    options = {"settings": settings} if competitor == "kfu" else {}
    fit = COMPETITORS[competitor]
    few = np.concatenate([np.flatnonzero(y == label)[:WARM_UP_ROWS] for label in np.unique(y)])
    fit(X[few], y[few], case, **options)
    time.sleep(PAUSE)
    reset_peak()
    before = peak_rss_mib()
    fitted = fit(X, y, case, **options)
    peak = peak_rss_mib()
    record = {
        "competitor": competitor,
        "n": X.shape[0],
        "d": X.shape[1],
        "cost": case.cost,
        "gamma": case.gamma,
        **{k: v for k, v in fitted.items() if k not in ("rows", "coef")},
        **judge(X, y, case, fitted),
        "evaluations_per_bound": None,  # peers do not count their kernel evaluations
        "mib_before": before,
        "mib_peak": peak,
    }
    if competitor == "kfu":
        record["bound_seconds"] = bound_seconds(X, case, fitted)
        values = max(record["n_sv"], 1) * record["n"]
        record["evaluations_per_bound"] = record["kernel_evaluations"] / values
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", help="a case, or NAME:VALUE of a sweep")
    parser.add_argument("competitor", choices=list(COMPETITORS))
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    if not options.sweep:
        record = measure(CASES[options.problem], options.competitor)
        print(json.dumps({"case": options.problem, **record}))
        return
    from benchmarks.sweeps import SWEEPS

    name, _, text = options.problem.partition(":")
    value = float(text)
    point = SWEEPS[name].point(value, options.small)
    record = measure(point.case, options.competitor, point.settings)
    print(json.dumps({"sweep": name, "value": value, **record}))


if __name__ == "__main__":
    main()
