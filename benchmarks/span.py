"""The span rule beside LAPACK: ``python -m benchmarks.span [--rows 8000]``.

A machine with thousands of unbounded support vectors is trained, then the seconds of ``kfu loo
--estimate span`` stand beside those of factor and inverse (``dpotrf``, ``dpotri``) of the kernel
matrix of these vectors, which the closed form cannot do without. Medians of three, in turns.
Writes benchmarks/results/span.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from scipy.linalg import lapack

from benchmarks.cases import many_clusters
from benchmarks.records import Run

COST, FEATURES = 10.0, 60


def lapack_seconds(K: np.ndarray) -> float:
    matrix = np.asfortranarray(K)
    begin = time.perf_counter()
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
    if failed:
        raise SystemExit("the kernel matrix is not positive definite")
    lapack.dpotri(factor, lower=1, overwrite_c=1)
    return time.perf_counter() - begin


def main() -> None:
    from kfu._gram import Gram

    import kfu

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    X, y = many_clusters(options.rows, FEATURES)
    kernel = kfu.KernelSpec.make("rbf", gamma=1 / FEATURES)
    model = kfu.train(X, y, kernel=kernel, cost=COST)
    alpha = np.abs(model.coef[0])
    rows = np.asarray(model.support)[alpha < COST * (1 - 1e-9)].astype(np.int64)
    K = np.asarray(Gram(X, kernel, "float64", 0).block(rows, rows))
    spans, inverses = [], []
    for _ in range(options.repeat):
        begin = time.perf_counter()
        kfu.loo(model, X, y, estimates="span")
        spans.append(time.perf_counter() - begin)
        inverses.append(lapack_seconds(K))
    span, inverse = statistics.median(spans), statistics.median(inverses)
    run = Run("span")
    run.add({"rows": options.rows, "unbounded": len(rows), "span": span, "lapack": inverse})
    run.finish(["span"])
    print(
        f"{len(rows)} unbounded of {len(alpha)} support vectors, {options.rows} rows: span "
        f"{span:.2f} s, factor and inverse {inverse:.2f} s, ratio {span / inverse:.2f}"
    )


if __name__ == "__main__":
    main()
