"""Nanoseconds per kernel value of the panel code, beside NumPy's sgemm + exp.

    python benchmarks/panels.py [--rows 600] [--columns 8192] [--repeat 3] [--threads 1 2]

One JSON line per case, also appended to benchmarks/results/panels.jsonl. "sum" folds the values
into float64 sums (prediction, gradient updates), "store" writes them out. The a9a case needs
KFU_DATA.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from kfu._gram import Gram

from kfu.kernels import KernelSpec

RESULTS = Path(__file__).parent / "results" / "panels.jsonl"


def emit(record: dict[str, Any]) -> None:
    line = json.dumps(record)
    print(line, flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as out:
        out.write(line + "\n")


def best_seconds(run: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def read_a9a() -> scipy.sparse.csr_matrix | None:
    path = Path(os.environ.get("KFU_DATA", "")) / "a9a.tr.gz"
    if not path.is_file():
        return None
    indices: list[int] = []
    values: list[float] = []
    indptr = [0]
    with gzip.open(path, "rt") as lines:
        for line in lines:
            for token in line.split()[1:]:
                index, value = token.split(":")
                indices.append(int(index) - 1)
                values.append(float(value))
            indptr.append(len(indices))
    return scipy.sparse.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, 123))


def numpy_seconds(X: np.ndarray, Z: np.ndarray, gamma: float, repeat: int) -> float:
    X, Z = X.astype(np.float32), Z.astype(np.float32)

    def run() -> np.ndarray:
        xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
        K = X @ Z.T
        K *= 2.0 * gamma
        K -= gamma * xx[:, None]
        K -= gamma * zz[None, :]
        return np.exp(K, out=K)

    return best_seconds(run, repeat)


def measure(name: str, X: Any, kernel: str, precision: str, args: argparse.Namespace) -> None:
    columns = X[: args.columns]
    points, everything = np.arange(args.rows), np.arange(columns.shape[0])
    coef = np.ones((args.rows, 1))
    spec = KernelSpec.make(kernel).resolve(X)
    n_values = args.rows * columns.shape[0]
    for threads in args.threads:
        gram = Gram(columns, spec, precision, threads, args.simd)
        # Packing the columns is part of every call; it is measured with no rows and taken off.
        packing = best_seconds(partial(gram.decision, points[:0], coef[:0], columns), args.repeat)
        summed = best_seconds(partial(gram.decision, points, coef, columns), args.repeat)
        stored = best_seconds(partial(gram.block, points, everything), args.repeat)
        emit(
            {
                "case": name,
                "kernel": kernel,
                "precision": precision,
                "threads": threads,
                "simd": gram.simd,
                "ns_sum": round((summed - packing) / n_values * 1e9, 3),
                "ns_store": round((stored - packing) / n_values * 1e9, 3),
                "ns_pack_point": round(packing / columns.shape[0] * 1e9, 1),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--columns", type=int, default=8192)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--kernels", nargs="+", default=["rbf"])
    parser.add_argument("--precision", nargs="+", default=["float32"])
    parser.add_argument("--simd", default="best")
    parser.add_argument("--cases", nargs="+", default=["d20", "d60", "d784", "a9a"])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    for case in args.cases:
        if case == "a9a":
            X = read_a9a()
            if X is None:
                emit({"case": case, "skipped": "KFU_DATA is not set"})
                continue
        else:
            X = rng.standard_normal((args.columns, int(case[1:])))
        for kernel in args.kernels:
            for precision in args.precision:
                measure(case, X, kernel, precision, args)
        if not scipy.sparse.issparse(X) and "rbf" in args.kernels:
            rows, columns = X[: args.rows], X[: args.columns]
            seconds = numpy_seconds(rows, columns, 1.0 / X.shape[1], args.repeat)
            per_value = seconds / (args.rows * columns.shape[0]) * 1e9
            emit({"case": case, "peer": "numpy sgemm + exp", "ns_store": round(per_value, 3)})


if __name__ == "__main__":
    main()
