"""Ten digits by 5000 centres, beside NumPy: ``python -m benchmarks.digits [--turns 2]``.

mnist divided by 255, 60,000 rows, `rectangle` with 5000 random rows as centres, gamma 0.02, ridge
0.1; seconds of the fit and of the outputs of the 10,000 test rows together, by the wall clock and
of the processor. The reference is what one writes down in NumPy, all in float64: kernel values of
4000 rows at a time, K_mℓ K_ℓm + ridge K_mm (NumPy multiplies KᵀK as a symmetric product), Cholesky.
Competitors take turns, each in a process of its own, after a small fit that loads libraries.
`--threads 1` is for busy machines, where threads wait for each other: look at processor time then.
`difference` is the largest between outputs. Appends JSON lines to benchmarks/results/digits.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.cases import data_folder
from benchmarks.processes import run_module
from benchmarks.records import Record, Run

CENTRES, GAMMA, RIDGE, BLOCK = 5000, 0.02, 0.1, 4000
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")  # of the environment
Outputs = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.load(data_folder("mnist.npz") / "mnist.npz") as archive:
        X, Z = (archive[name].reshape(-1, 784) / 255.0 for name in ("X_tr", "X_t"))
        return X, archive["y_tr"].astype(np.int64), Z, archive["y_t"].astype(np.int64)


def by_kfu(X: np.ndarray, Y: np.ndarray, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
    from kfu.kernels import KernelSpec
    from kfu.least_squares import rectangle

    fit = rectangle(X, Y, KernelSpec.make("rbf", gamma=GAMMA), rows, RIDGE)
    return fit.decision(X, Z)


def by_numpy(X: np.ndarray, Y: np.ndarray, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
    import scipy.linalg

    centres = X[rows]
    squares = np.square(centres).sum(axis=1)

    def values(part: np.ndarray) -> np.ndarray:
        K = part @ centres.T
        K *= -2.0
        K += np.square(part).sum(axis=1)[:, None]
        K += squares
        K *= -GAMMA
        return np.exp(K, out=K)

    matrix, right = RIDGE * values(centres), np.zeros((len(rows), Y.shape[1]))
    for start in range(0, len(X), BLOCK):
        K = values(X[start : start + BLOCK])
        matrix += K.T @ K
        right += K.T @ Y[start : start + BLOCK]
    coef = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, overwrite_a=True), right)
    return np.vstack([values(Z[start : start + BLOCK]) @ coef for start in range(0, len(Z), BLOCK)])


COMPETITORS: dict[str, Outputs] = {"kfu": by_kfu, "numpy": by_numpy}


def measured(competitor: str, keep: str) -> Record:
    X, labels, Z, truth = digits()
    Y = np.where(labels[:, None] == np.arange(10), 1.0, -1.0)
    rows = np.random.default_rng(0).choice(len(X), CENTRES, replace=False)
    COMPETITORS[competitor](X[:600].copy(), Y[:600].copy(), np.arange(300), Z[:300])
    began, processor = time.perf_counter(), time.process_time()
    outputs = COMPETITORS[competitor](X, Y, rows, Z)
    seconds, processor = time.perf_counter() - began, time.process_time() - processor
    np.save(keep, outputs)
    accuracy = float(np.mean(outputs.argmax(axis=1) == truth))
    return {"seconds": seconds, "processor_seconds": processor, "accuracy": accuracy}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", type=int, help="of linear algebra and of kfu")
    parser.add_argument("--one", choices=list(COMPETITORS), help=argparse.SUPPRESS)
    parser.add_argument("--keep", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one, options.keep)))
        return
    if options.threads:
        os.environ |= dict.fromkeys(THREADS, str(options.threads))
    run = Run("digits")
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            places = {name: str(Path(folder) / f"{name}.npy") for name in COMPETITORS}
            for name, place in places.items():
                found = run_module("benchmarks.digits", "--one", name, "--keep", place)
                record: Record = {"competitor": name, "threads": options.threads or 0}
                record |= {"load": os.getloadavg()[0], **found}
                run.add(record)
                print(record, flush=True)
            kfu, numpy = (np.load(place) for place in places.values())
            print(f"difference {np.abs(kfu - numpy).max():.1e}", flush=True)
    run.finish(list(COMPETITORS))


if __name__ == "__main__":
    main()
