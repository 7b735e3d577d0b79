"""One training by one competitor in a process of its own: ``python -m benchmarks.worker a9a kfu``.

Prints a JSON object: seconds of the fit alone, and the objective, the gap of the maximal violating
pair and the support vectors of the result, judged from float64 kernel values whoever made it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case
from benchmarks.competitors import COMPETITORS


def judge(X: Any, y: np.ndarray, case: Case, fitted: dict[str, Any]) -> dict[str, Any]:
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
        "gap": float(max(0.0, F[low].max() - F[up].min())),
        "n_sv": int(np.count_nonzero(can_fall)),
        "n_free": int(np.count_nonzero(can_fall & can_grow)),
    }


def bound_seconds(X: Any, case: Case, fitted: dict[str, Any]) -> float:
    """The verification bound: K(support vectors, all rows) once, in float32, on all cores."""
    from kfu._gram import Gram

    from kfu import KernelSpec

    gram = Gram(X, KernelSpec.make("rbf", gamma=case.gamma), precision="float32")
    coef = np.ascontiguousarray(fitted["coef"][:, None])
    rows = fitted["rows"].astype(np.int64)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        gram.decision(rows, coef, X)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    name, competitor = sys.argv[1:3]
    case = CASES[name]
    X, y = case.load()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fitted = COMPETITORS[competitor](X, y, case)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    record = {
        "case": name,
        "competitor": competitor,
        "n": X.shape[0],
        "d": X.shape[1],
        **{k: v for k, v in fitted.items() if k not in ("rows", "coef")},
        **judge(X, y, case, fitted),
        "mib_before": round(before / 1024, 1),
        "mib_peak": round(peak / 1024, 1),
    }
    if competitor == "kfu":
        record["bound_seconds"] = bound_seconds(X, case, fitted)
        record["evaluations_per_bound"] = record["kernel_evaluations"] / (
            max(record["n_sv"], 1) * record["n"]
        )
    print(json.dumps(record))


if __name__ == "__main__":
    main()
