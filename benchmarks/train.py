"""Training time beside the peers: ``python -m benchmarks.train [--quick] [--case a9a]``.

Competitors take turns within one run (one process each), so that a machine that slows down slows
all of them; figures are medians (LIBSVM runs once), and claims are the ratios. The bound is
the time to evaluate K(support vectors, all rows) once. Writes one JSON line per run
to benchmarks/results/train.jsonl and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES
from benchmarks.competitors import COMPETITORS

SLOW = ("sklearn", "sklearn-dense", "libsvm")  # a minute or more a case: run in the first turn only
RESULTS = Path(__file__).parent / "results"


def run_one(case: str, competitor: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.worker", case, competitor]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {"case": case, "competitor": competitor, "error": reason[0]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def machine() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    import kfu

    versions = {"kfu": kfu.__version__}
    for package in ("scikit-learn", "scikit-learn-intelex", "libsvm-official", "numpy"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": versions,
        "date": time.strftime("%Y-%m-%d"),
    }


def medians(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The record of median time of each competitor of one case."""
    found: dict[str, dict[str, Any]] = {}
    for name in COMPETITORS:
        of_one = [r for r in records if r["competitor"] == name and "error" not in r]
        if of_one:
            middle = statistics.median_low(sorted(r["seconds"] for r in of_one))
            found[name] = next(r for r in of_one if r["seconds"] == middle)
    return found


def print_case(case: str, records: list[dict[str, Any]]) -> None:
    print(f"\n{CASES[case].title}")
    best = medians(records)
    mine = best.get("kfu")
    for name, record in best.items():
        ratio = record["seconds"] / mine["seconds"] if mine else float("nan")
        print(
            f"  {name:14s} {record['seconds']:8.3f} s  ×{ratio:6.2f}  "
            f"objective {record['objective']:.6f}  gap {record['gap']:.1e}  "
            f"SVs {record['n_sv']} ({record['n_free']} free)  {record['mib_peak']:.0f} MiB"
        )
    if mine:
        times = mine["seconds"] / mine["bound_seconds"]
        print(
            f"  {'bound':14s} {mine['bound_seconds']:8.3f} s  kfu takes {times:.1f} times the bound"
        )
    for record in records:
        if "error" in record:
            print(f"  {record['competitor']:14s} failed: {record['error']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the quick cases, once")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--competitor", action="append", choices=list(COMPETITORS))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    repeat = 1 if options.quick else options.repeat
    names = options.case or [n for n, c in CASES.items() if c.is_quick or not options.quick]
    competitors = options.competitor or ["kfu", "onedal", "sklearn"]
    RESULTS.mkdir(exist_ok=True)
    here = machine()
    with (RESULTS / "train.jsonl").open("a") as out:
        for name in names:
            records = []
            for turn in range(repeat):
                for competitor in competitors:
                    if turn > 0 and competitor in SLOW:
                        continue
                    record = run_one(name, competitor)
                    records.append(record)
                    out.write(json.dumps({**record, "machine": here}) + "\n")
                    out.flush()
            print_case(name, records)


if __name__ == "__main__":
    main()
