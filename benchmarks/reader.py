"""Reading libsvm text: kfu beside scikit-learn's load_svmlight_file, in one process.

    KFU_DATA=/path/to/data python benchmarks/reader.py [--threads 2] [--repeat 3]

Files: a9a (decompressed) and mnist as libsvm text (integers 0..255, zeros left out), both made in
a temporary directory from KFU_DATA. The two readers alternate; the medians are printed and
appended to benchmarks/results/reader.jsonl. The arrays they return are compared, too. The ratio of
processor times, over all threads, tells more than the clock on a machine that is busy otherwise.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from kfu.data import Dataset
from kfu.io import read_dataset, write_dataset

RESULTS = Path(__file__).parent / "results" / "reader.jsonl"


def make_files(data: Path, folder: Path) -> dict[str, Path]:
    """The benchmark files by name."""
    a9a = folder / "a9a.svm"
    a9a.write_bytes(gzip.decompress((data / "a9a.tr.gz").read_bytes()))
    mnist = folder / "mnist.svm"
    with np.load(data / "mnist.npz") as archive:
        images, labels = archive["X_tr"], archive["y_tr"]
        X = sp.csr_matrix(images.reshape(len(images), -1).astype(np.float64))
        write_dataset(mnist, Dataset(X, labels.astype(np.float64)))
    return {"a9a": a9a, "mnist": mnist}


class Clock:
    """Runs of one reader: seconds by the clock and of processor time over all threads."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.result = run()  # untimed: file cache, threads and memory are warm for both readers
        self.seconds: list[float] = []
        self.cpu_seconds: list[float] = []

    def tick(self) -> None:
        self.result = None  # its memory is free again before the next result is made
        start, cpu = time.perf_counter(), time.process_time()
        self.result = self.run()
        self.seconds.append(time.perf_counter() - start)
        self.cpu_seconds.append(time.process_time() - cpu)


def same(dataset: Dataset, X: Any, y: np.ndarray) -> bool:
    ours = sp.csr_matrix(dataset.X)
    return bool(ours.shape == X.shape and (ours != X).nnz == 0 and np.array_equal(dataset.y, y))


def measure(name: str, path: Path, threads: int, repeat: int) -> dict[str, Any]:
    """Median seconds of both readers on one file, taken in turn."""
    ours = Clock(lambda: read_dataset(path, dense=False, threads=threads))
    peers = Clock(lambda: load_svmlight_file(str(path)))
    for _ in range(repeat):
        ours.tick()
        peers.tick()
    if not same(ours.result, *peers.result):
        sys.exit(f"{name}: the readers disagree")
    mb = path.stat().st_size / 1e6
    kfu, peer = statistics.median(ours.seconds), statistics.median(peers.seconds)
    return {
        "benchmark": "reader",
        "file": name,
        "mb": round(mb, 2),
        "threads": threads,
        "kfu_seconds": round(kfu, 5),
        "sklearn_seconds": round(peer, 5),
        "kfu_mb_per_second": round(mb / kfu, 1),
        "sklearn_mb_per_second": round(mb / peer, 1),
        "ratio": round(peer / kfu, 1),
        "cpu_ratio": round(
            statistics.median(peers.cpu_seconds) / statistics.median(ours.cpu_seconds), 1
        ),
        "load": os.getloadavg()[0],
        "kfu_all_seconds": [round(s, 5) for s in ours.seconds],
        "sklearn_all_seconds": [round(s, 5) for s in peers.seconds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    if "KFU_DATA" not in os.environ:
        sys.exit("set KFU_DATA to the directory with a9a.tr.gz and mnist.npz")
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    print(f"{'file':8}{'MB':>8}{'kfu MB/s':>12}{'sklearn MB/s':>14}{'ratio':>8}{'CPU ratio':>11}")
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(os.environ["KFU_DATA"]), Path(folder))
        for name, path in files.items():
            record = measure(name, path, arguments.threads, arguments.repeat)
            print(
                f"{name:8}{record['mb']:8.1f}{record['kfu_mb_per_second']:12.1f}"
                f"{record['sklearn_mb_per_second']:14.1f}{record['ratio']:8.1f}"
                f"{record['cpu_ratio']:11.1f}"
            )
            with RESULTS.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
