"""Exact leave-one-out beside LIBSVM's n trainings: ``python -m benchmarks.leave_one_out``.

For each case, in turn: one training of kfu, the exact leave-one-out from its solution, and LIBSVM
(through scikit-learn) trained without one row, for a sample of rows; its n trainings, which are
what ``svm-train -v n`` does, are taken as n times the mean of the sample. kfu's times are medians
of three. Outputs of the sampled rows are compared. Each record is a JSON line in
benchmarks/results/leave_one_out.jsonl. ``--quick`` is a trial run of seconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.linear import two_classes
from benchmarks.records import Record, Run

SAMPLE = 12
TURNS = 3


def made() -> Any:
    from sklearn.datasets import make_classification

    return make_classification(1000, 50, random_state=0)


def pima() -> Any:
    X, y = two_classes("pima.svm.gz")
    X = X.toarray() if hasattr(X, "toarray") else X
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def part_of_a9a() -> Any:
    X, y = two_classes("a9a.tr.gz")
    return X[:10000], y[:10000]


# name -> (data, gamma, whether --quick has it)
CASES: dict[str, tuple[Callable[[], Any], float, bool]] = {
    "made 1000×50": (made, 1 / 50, True),
    "pima": (pima, 0.05, False),
    "a1a": (lambda: two_classes("a1a.tr.gz"), 1 / 123, False),
    "a9a, 10000 rows": (part_of_a9a, 1 / 123, False),
}


def run_case(name: str, turns: int) -> Record:
    from kfu.kernels import KernelSpec
    from kfu.machines.training import prepare
    from kfu.validation.leave_one_out import leave_one_out_outputs

    load, gamma, _ = CASES[name]
    X, y = load()
    n = X.shape[0]
    trainings, exact = [], []
    for _ in range(turns if n < 5000 else 1):
        began = time.perf_counter()
        task = prepare(X, y, kernel=KernelSpec.make("rbf", gamma=gamma), cost=1.0)
        model = task.machine.train(task)
        trainings.append(time.perf_counter() - began)
        began = time.perf_counter()
        outputs = leave_one_out_outputs(task, model)[:, 0]
        exact.append(time.perf_counter() - began)
    peer, difference = by_libsvm(X, y, gamma, outputs)
    labels = np.where(task.labels == 1, 1, -1)
    training, took = statistics.median(trainings), statistics.median(exact)
    return {
        "case": name,
        "n": n,
        "d": X.shape[1],
        "n_sv": model.info["n_sv"],
        "n_usv": model.info["n_usv"],
        "errors": int(np.sum(np.where(outputs > 0, 1, -1) != labels)),
        "seconds": took,
        "training_seconds": training,
        "trainings": took / training,
        "libsvm_seconds": peer * n,
        "ratio": peer * n / took,
        "difference": difference,
        "turns": len(exact),
    }


def by_libsvm(X: Any, y: np.ndarray, gamma: float, outputs: np.ndarray) -> tuple[float, float]:
    """Seconds of one of LIBSVM's n trainings, and how far its outputs are from ours."""
    from sklearn.svm import SVC

    n = X.shape[0]
    rows = np.random.default_rng(0).choice(n, SAMPLE, replace=False)
    took, worst = 0.0, 0.0
    for row in rows:
        kept = np.delete(np.arange(n), row)
        part, labels = X[kept], y[kept]
        began = time.perf_counter()
        peer = SVC(C=1.0, gamma=gamma, cache_size=1000).fit(part, labels)
        took += time.perf_counter() - began
        worst = max(worst, float(abs(peer.decision_function(X[row : row + 1])[0] - outputs[row])))
    return took / SAMPLE, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a trial run of seconds")
    options = parser.parse_args()
    names = [name for name, case in CASES.items() if case[2] or not options.quick]
    out = Run("leave_one_out", "quick" if options.quick else "full")
    print("case                 n_sv  free  errors  seconds  trainings  LIBSVM (n ×)   ratio")
    for name in names:
        record = run_case(name, TURNS)
        out.add(record)
        print(
            f"{name:18s} {record['n_sv']:6d} {record['n_usv']:5d} {record['errors']:7d} "
            f"{record['seconds']:8.3f} {record['trainings']:10.1f} "
            f"{record['libsvm_seconds']:13.1f} {record['ratio']:7.0f}",
            flush=True,
        )
    out.finish(names)


if __name__ == "__main__":
    main()
