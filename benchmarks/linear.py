"""Linear machines beside LIBLINEAR: ``python -m benchmarks.linear [--quick] [--case a9a]``.

The problem is the one both solve: no bias, ½‖w‖² + C Σ loss. LIBLINEAR (scikit-learn's LinearSVC)
runs with its defaults, and again with the loosest tolerance of a list at which its objective is
within MATCHED of the optimum, which is what kfu's certificate proves of its own. kfu runs also with
a free bias, which LIBLINEAR does not have, and through the kernel solver. Every training has a
process of its own and LIMIT seconds; only the fit is timed, in seconds and in seconds of processor
time. Each is a JSON line in benchmarks/results/linear.jsonl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import Data, real
from benchmarks.records import Run

MATCHED = 1e-4  # of the optimum
LIMIT = 60.0  # seconds
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


def two_classes(name: str) -> Data:
    X, y = real(name)
    return X, np.where(y == np.unique(y)[-1], 1.0, -1.0)


def text_like(n: int, d: int, words: int = 50) -> Data:
    """Rows of `words` words of Zipf frequencies, weighted by rarity, of length 1; noisy labels."""
    rng = np.random.default_rng(0)
    frequency = np.cumsum(1.0 / np.arange(1, d + 1))
    columns = np.searchsorted(frequency / frequency[-1], rng.random(n * words)).clip(0, d - 1)
    X = sp.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), columns)), (n, d))
    X.sum_duplicates()
    seen = np.bincount(X.indices, minlength=d)
    X.data = (1.0 + np.log(X.data)) * np.log(n / np.maximum(seen, 1))[X.indices]
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(lengths, 1e-12), np.diff(X.indptr))
    score = X @ (rng.standard_normal(d) * (rng.random(d) < 0.2))
    noise = 0.5 * rng.standard_normal(n) + 0.3
    return X, np.where(score / score.std() + noise > 0, 1.0, -1.0)


def many_short_rows(n: int, d: int) -> Data:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    direction = rng.standard_normal(d)
    return rng.standard_normal((n, d)) + np.outer(y, direction / np.linalg.norm(direction)), y


@dataclass(frozen=True)
class LinearCase:
    load: Callable[[], Data]
    cost: float
    squared: bool = False  # slack


CASES: dict[str, LinearCase] = {
    "a1a": LinearCase(lambda: two_classes("a1a.tr.gz"), 1.0),
    "a9a": LinearCase(lambda: two_classes("a9a.tr.gz"), 1.0),
    "a9a, C = 100": LinearCase(lambda: two_classes("a9a.tr.gz"), 100.0),
    "a9a, squared slack": LinearCase(lambda: two_classes("a9a.tr.gz"), 1.0, squared=True),
    "spam, unscaled": LinearCase(lambda: two_classes("spam.svm.gz"), 1.0),
    "20news": LinearCase(lambda: two_classes("20news_w100.svm.gz"), 1.0),
    "reuters": LinearCase(lambda: two_classes("reuters-grain.tr.gz"), 1.0),
    "text": LinearCase(lambda: text_like(100000, 100000), 1.0),
    "short rows": LinearCase(lambda: many_short_rows(500000, 20), 1.0),
    "small text": LinearCase(lambda: text_like(5000, 5000), 1.0),
    "few short rows": LinearCase(lambda: many_short_rows(10000, 20), 1.0),
}
QUICK_CASES = ("small text", "few short rows")
FULL_CASES = tuple(name for name in CASES if name not in QUICK_CASES)


def dual_problem(y: np.ndarray, case: LinearCase, bias: bool) -> Any:
    from kfu.solvers import DualProblem

    n = len(y)
    upper = np.full(n, np.inf if case.squared else case.cost)
    ridge = np.full(n, 0.5 / case.cost) if case.squared else None
    return DualProblem(y, np.full(n, -1.0), np.zeros(n), upper, np.arange(n), ridge, bias)


def primal(X: Any, y: np.ndarray, w: np.ndarray, case: LinearCase) -> float:
    """½‖w‖² + C Σ loss, without bias."""
    slack = np.maximum(0.0, 1.0 - y * (X @ w))
    loss = slack @ slack if case.squared else slack.sum()
    return float(0.5 * w @ w + case.cost * loss)


def timed(fit: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, processor = time.perf_counter(), time.process_time()
    result = fit()
    spent = {"seconds": time.perf_counter() - wall}
    return result, {**spent, "processor_seconds": time.process_time() - processor}


def fit_kfu(X: Any, y: np.ndarray, case: LinearCase, *, bias: bool, kernel: bool) -> dict[str, Any]:
    from kfu.kernels import KernelSpec
    from kfu.solvers import SolverSettings, solve
    from kfu.solvers.linear import solve_linear

    problem, settings = (
        dual_problem(y, case, bias),
        SolverSettings(solver="svmfu", max_seconds=LIMIT),
    )
    if kernel:
        solution, spent = timed(lambda: solve(problem, X, KernelSpec.make("linear"), settings))
    else:
        solution, spent = timed(lambda: solve_linear(problem, X, settings))
    info = solution.info
    w = np.asarray(X.T @ solution.beta).ravel()
    found = {"status": info.status, "gap": info.kkt_gap, "dual": info.objective}
    return {**spent, **found, "objective": None if bias else primal(X, y, w, case)}


def fit_liblinear(
    X: Any, y: np.ndarray, case: LinearCase, *, dual: bool = True, matched: bool = True
) -> dict[str, Any]:
    import warnings

    from sklearn.svm import LinearSVC

    warnings.simplefilter("ignore")  # of runs that reach max_iter
    loss = "squared_hinge" if case.squared else "hinge"
    best = fit_kfu(X, y, case, bias=False, kernel=False)["dual"] if matched else -np.inf
    for tolerance in TOLERANCES if matched else (1e-4,):
        machine = LinearSVC(
            C=case.cost,
            loss=loss,
            dual=dual,
            tol=tolerance,
            fit_intercept=False,
            random_state=0,
            max_iter=10**7 if matched else 1000,
        )
        _, spent = timed(lambda machine=machine: machine.fit(X, y))
        objective = primal(X, y, machine.coef_.ravel(), case)
        if objective <= best * (1.0 + MATCHED) or not matched:
            break
    return {**spent, "tolerance": tolerance, "objective": objective}


COMPETITORS: dict[str, Callable[..., dict[str, Any]]] = {
    "kfu": lambda *case: fit_kfu(*case, bias=False, kernel=False),
    "kfu, free bias": lambda *case: fit_kfu(*case, bias=True, kernel=False),
    "kfu, kernel solver": lambda *case: fit_kfu(*case, bias=False, kernel=True),
    "LIBLINEAR": lambda *case: fit_liblinear(*case, matched=False),
    "LIBLINEAR, matched": lambda *case: fit_liblinear(*case),
    "LIBLINEAR, primal": lambda *case: fit_liblinear(*case, dual=False),
}


def competitors_of(case: LinearCase) -> list[str]:
    return [name for name in COMPETITORS if case.squared or name != "LIBLINEAR, primal"]


def run_alone(case: str, competitor: str) -> dict[str, Any]:
    """The record of one training in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.linear", "--worker", case, competitor]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=1.5 * LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {LIMIT:.0f} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1]}
    record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return record


def print_case(name: str, records: dict[str, dict[str, Any]]) -> None:
    print(f"\n{name}")
    mine, best = records["kfu"], records["kfu"].get("dual", np.nan)
    for competitor, record in records.items():
        if "error" in record:
            print(f"  {competitor:20s} {record['error']}")
            continue
        above = "" if record["objective"] is None else f"{record['objective'] / best - 1.0:9.1e}"
        print(
            f"  {competitor:20s} {record['seconds']:8.3f} s  "
            f"{record['processor_seconds']:8.3f} s of processor  "
            f"×{record['processor_seconds'] / mine.get('processor_seconds', np.nan):7.2f}  "
            f"above the optimum by {above:>9s}  {record.get('status', '')}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small made-up cases")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--without", action="append", default=[], choices=list(COMPETITORS))
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        case = CASES[options.worker[0]]
        print(json.dumps(COMPETITORS[options.worker[1]](*case.load(), case)))
        return
    names = options.case or (QUICK_CASES if options.quick else FULL_CASES)
    run = Run("linear", "quick" if options.quick else "full")
    for name in names:
        chosen = [c for c in competitors_of(CASES[name]) if c not in options.without]
        records = {competitor: run_alone(name, competitor) for competitor in chosen}
        for competitor, record in records.items():
            run.add({"case": name, "competitor": competitor, **record})
        print_case(name, records)
    run.finish(names)


if __name__ == "__main__":
    main()
