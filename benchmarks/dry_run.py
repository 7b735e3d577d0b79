"""What ``kfu train --dry-run`` predicts, beside what the same training then takes.

``python -m benchmarks.dry_run [--cases full-2000,linear] [--processor]`` makes data, runs the
forecast and the training of each case in processes of their own and prints the ratios of seconds
and of peak memory. On a machine that does other work as well, the pilots and the training are
disturbed; `--processor` then takes one thread and counts its processor time in both. Appends JSON
lines to benchmarks/results/dry_run.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import Record, Run

BY_PROCESSOR = "import time; time.perf_counter = time.process_time; "
COMMAND = "from kfu.cli.main import main; main()"
GOAL = 0.3  # relative error of seconds and of memory


@dataclass(frozen=True)
class Case:
    rows: int
    features: int
    classes: int  # 1: numbers
    options: str


LOW = "--approximation rectangle --centres"
CASES: dict[str, Case] = {
    "full-2000": Case(2000, 20, 1, "-m rls --ridge 1"),
    "full-4000": Case(4000, 50, 10, "-m rlsc --ridge 1"),
    "full-8000": Case(8000, 50, 10, "-m rlsc --ridge 1"),
    "auto-2500": Case(2500, 20, 1, "-m rls"),
    "rectangle-small": Case(20000, 784, 10, f"-m rlsc -g 0.02 --ridge 0.1 {LOW} 1500"),
    "rectangle-auto": Case(20000, 50, 1, f"-m rls -g 0.02 {LOW} 1500"),
    "rectangle-large": Case(60000, 784, 10, f"-m rlsc -g 0.02 --ridge 0.1 {LOW} 5000"),
    "linear": Case(60000, 784, 10, "-m rlsc -k linear --ridge 1"),
    "linear-auto": Case(20000, 784, 10, "-m rlsc -k linear"),
}
QUICK = ("full-2000", "full-4000", "auto-2500", "rectangle-small", "linear", "linear-auto")


def make_data(case: Case, path: Path) -> None:
    """Rows of numbers in [0, 1], four of five of them 0 where there are many features."""
    rng = np.random.default_rng(0)
    X = rng.random((case.rows, case.features), dtype=np.float32)
    if case.features > 100:
        X *= rng.random((case.rows, case.features), dtype=np.float32) < 0.2
    y = rng.integers(0, case.classes, case.rows) if case.classes > 1 else X[:, 0].astype(float)
    np.savez(path, X=X, y=y)


def run_kfu(words: list[str], by_processor: bool) -> dict[str, Any]:
    code = (BY_PROCESSOR if by_processor else "") + COMMAND
    threads = ["-t", "1"] if by_processor else []
    command = [sys.executable, "-c", code, "train", *words, *threads, "-q", "--report", "-"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    report: dict[str, Any] = json.loads(found.stdout)
    return report


def measure(name: str, folder: Path, by_processor: bool) -> Record:
    case, data = CASES[name], folder / f"{name}.npz"
    make_data(case, data)
    words = [str(data), *case.options.split()]
    dry = run_kfu([*words, "--dry-run"], by_processor)
    real = run_kfu([*words, "-o", str(folder / "m.kfu")], by_processor)
    data.unlink()
    return {
        "case": name,
        "n": case.rows,
        "d": case.features,
        "method": dry["method"],
        "clock": "processor, one thread" if by_processor else "wall",
        "load": os.getloadavg()[0],
        "predicted_seconds": dry["predicted_seconds"],
        "seconds": real["seconds"]["total"],
        "predicted_mib": dry["predicted_peak_rss_mib"],
        "mib": real["peak_rss_mib"],
        "pilot_seconds": dry["pilot_seconds"],
        "predicted_phases": dry["predicted_phases"],
        "phases": real["phases"],
    }


def shown(record: Record) -> str:
    time_ratio = record["predicted_seconds"] / record["seconds"]
    memory_ratio = record["predicted_mib"] / record["mib"]
    missed = max(abs(time_ratio - 1), abs(memory_ratio - 1)) > GOAL
    return (
        f"{record['case']:<16} {record['method']:<10} {record['predicted_seconds']:8.2f} "
        f"{record['seconds']:8.2f} {time_ratio:6.2f} {record['predicted_mib']:8.0f} "
        f"{record['mib']:8.0f} {memory_ratio:6.2f} {record['pilot_seconds']:7.2f}"
        + ("  missed" if missed else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", default=",".join(QUICK), help=f"of {', '.join(CASES)}; or all")
    parser.add_argument("--processor", action="store_true", help="one thread, processor time")
    arguments = parser.parse_args()
    names = list(CASES) if arguments.cases == "all" else arguments.cases.split(",")
    run = Run("dry_run")
    print("case             method     predicted seconds  ratio  predicted MiB  ratio  pilots")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            record = measure(name, Path(folder), arguments.processor)
            run.add(record)
            print(shown(record), flush=True)
    run.finish(names)


if __name__ == "__main__":
    main()
