"""Rows per second and worker of `rectangle` over partitions, and what more rows would cost.

``python -m benchmarks.distributed [--rows 40000] [--features 50] [--centres 250,1000]
[--workers 2] [--precision float32]`` writes libsvm files of `rows` and of a quarter as many rows,
fits both on dask workers and takes the processor seconds the workers spent. The difference of the
two, by row, is what a further row costs, whatever else the machine is doing: three times read and
parsed, its kernel values, its part of the products, pickling and merging of the sums. What 10⁸ and
10⁹ such rows cost is a multiplication. Appends JSON lines to benchmarks/results/distributed.jsonl.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import Record, Run
from kfu.data import Dataset
from kfu.engine import train_rectangle_partitioned
from kfu.engine.dask_engine import DaskEngine
from kfu.io import write_dataset
from kfu.kernels import KernelSpec

GOALS = (10**8, 10**9)


def make_file(path: Path, rows: int, features: int, seed: int = 0) -> Path:
    """Two classes of Gaussian points, four decimals a number."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows) * 2.0 - 1.0
    X = np.round(rng.normal(size=(rows, features)) + 0.2 * y[:, None], 4)
    write_dataset(path, Dataset(X, y))
    return path


def worker_seconds(engine: DaskEngine, path: Path, m: int, arguments: Any) -> tuple[float, Any]:
    """Processor seconds of all workers for one fit, and its figures."""

    def spent() -> float:
        return float(sum(engine.client.run(time.process_time).values()))

    before = spent()
    fit = train_rectangle_partitioned(
        path,
        kernel=KernelSpec.make("rbf", gamma=1.0 / arguments.features),
        ridge=1.0,
        n_centres=m,
        engine=engine,
        precision=arguments.precision,
        partition_bytes=arguments.partition_bytes,
    )
    return spent() - before, fit.info


def measure(engine: DaskEngine, small: Path, large: Path, m: int, arguments: Any) -> Record:
    few, _ = worker_seconds(engine, small, m, arguments)
    many, info = worker_seconds(engine, large, m, arguments)
    rate = (arguments.rows - arguments.rows // 4) / (many - few)
    return {
        "benchmark": "distributed",
        "precision": arguments.precision,
        "rows": arguments.rows,
        "features": arguments.features,
        "centres": m,
        "workers": arguments.workers,
        "partitions": info["partitions"],
        "mb": round(info["bytes_read"] / 1e6, 1),
        "cpu_seconds": [round(few, 3), round(many, 3)],
        "seconds": {name: round(value, 3) for name, value in info["seconds"].items()},
        "rows_per_second_and_worker": round(rate),
        "worker_hours": {str(n): round(n / rate / 3600, 1) for n in GOALS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--centres", default="250,1000")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--partition-bytes", type=int, default=1 << 22)
    arguments = parser.parse_args()
    run = Run("distributed")
    sizes = [int(m) for m in arguments.centres.split(",")]
    print(f"{'centres':>8}{'MB':>7}{'rows/s/worker':>15}{'worker hours: 1e8':>19}{'1e9':>8}")
    with (
        tempfile.TemporaryDirectory() as folder,
        DaskEngine(arguments.workers) as engine,
    ):
        small = make_file(Path(folder) / "small.svm", arguments.rows // 4, arguments.features)
        large = make_file(Path(folder) / "large.svm", arguments.rows, arguments.features)
        worker_seconds(engine, small, 10, arguments)  # imports are not counted
        for m in sizes:
            record = measure(engine, small, large, m, arguments)
            run.add(record)
            hours = record["worker_hours"]
            print(
                f"{m:8}{record['mb']:7.1f}{record['rows_per_second_and_worker']:15}"
                f"{hours[str(GOALS[0])]:19}{hours[str(GOALS[1])]:8}"
            )
    run.finish(str(m) for m in sizes)


if __name__ == "__main__":
    main()
