"""Nanoseconds per kernel value of the panel code, beside NumPy's sgemm + exp.

    python benchmarks/panels.py [--rows 600] [--columns 8192] [--repeat 3] [--threads 1 2]

One JSON line per case. "sum" folds the values into float64 sums (prediction, gradient updates),
"store" writes them out. The a9a case needs KFU_DATA.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kfu._gram import Gram
from kfu.kernels import KernelSpec


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


def measure(name: str, X: Any, args: argparse.Namespace) -> None:
    rows, columns = X[: args.rows], X[: args.columns]
    n_values = rows.shape[0] * columns.shape[0]
    coef = np.ones((rows.shape[0], 1))
    points = np.arange(rows.shape[0])
    everything = np.arange(columns.shape[0])
    for kernel in args.kernels:
        spec = KernelSpec.make(kernel).resolve(X)
        for precision in args.precision:
            for threads in args.threads:
                gram = Gram(columns, spec, precision, threads, args.simd)
                stored = best_seconds(lambda: gram.block(points, everything), args.repeat)  # noqa: B023
                summed = best_seconds(lambda: gram.decision(points, coef, columns), args.repeat)  # noqa: B023
                one = best_seconds(
                    lambda: gram.decision(points[:1], coef[:1], columns), args.repeat
                )  # noqa: B023
                record = {
                    "case": name,
                    "kernel": kernel,
                    "precision": precision,
                    "threads": threads,
                    "simd": gram.simd,
                    "ns_sum": round((summed - one) / n_values * 1e9, 3),
                    "ns_store": round((stored - one) / n_values * 1e9, 3),
                    "ns_pack_point": round(one / columns.shape[0] * 1e9, 1),
                }
                print(json.dumps(record), flush=True)
    if not scipy.sparse.issparse(X) and "rbf" in args.kernels:
        seconds = numpy_seconds(rows, columns, 1.0 / X.shape[1], args.repeat)
        print(
            json.dumps(
                {"case": name, "peer": "numpy", "ns_store": round(seconds / n_values * 1e9, 3)}
            )
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
                print(json.dumps({"case": case, "skipped": "KFU_DATA is not set"}))
                continue
        else:
            X = rng.standard_normal((args.columns, int(case[1:])))
        measure(case, X, args)


if __name__ == "__main__":
    main()
