"""Records of runs: JSON lines in benchmarks/results/, each with its run, the machine and versions.

Where parts of a run (cases, sweeps) are complete a line says so, with the kind of the run: "full",
or "quick" and "small" for runs whose figures are not to be quoted.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("scikit-learn", "scikit-learn-intelex", "libsvm-official", "numpy", "scipy")


def processor_name() -> str:
    """The model name of the processor, as the kernel has it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> Record:
    """What the figures depend on besides the code: processor, cores, memory, versions, day."""
    from importlib.metadata import PackageNotFoundError, version

    import kfu

    versions = {"kfu": kfu.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        "python": platform.python_version(),
        "versions": versions,
        "date": time.strftime("%Y-%m-%d"),
    }


class Run:
    """Appends the records of one run to results/NAME.jsonl; `finish` marks parts as complete."""

    def __init__(self, name: str, kind: str = "full", folder: Path = RESULTS) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.jsonl"
        self.kind = kind
        self.id = f"{time.strftime('%Y-%m-%dT%H:%M:%S')}-{os.getpid()}"
        self.machine = machine()

    def add(self, record: Record) -> None:
        self._write({**record, "run": self.id, "machine": self.machine})

    def finish(self, parts: Iterable[str]) -> None:
        """Mark parts of the run (cases or sweeps) as complete; a run may do so more than once."""
        self._write({"run": self.id, "finished": list(parts), "kind": self.kind})

    def _write(self, line: Record) -> None:
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def read_lines(path: Path) -> list[Record]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def last_run(lines: list[Record], wanted: Iterable[str]) -> list[Record]:
    """The records of the last finished full run that has all `wanted` parts."""
    ends = [line for line in _full_ends(lines) if set(wanted) <= set(line["finished"])]
    return _records_of(lines, ends[-1]["run"]) if ends else []


def latest(lines: list[Record], part: str, wanted: Iterable[str]) -> list[Record]:
    """For each wanted part its records in the last finished full run that has it.

    `part` is the key that names the part in a record. Ratios are within one run all the same.
    """
    found: list[Record] = []
    for name in wanted:
        ends = [line for line in _full_ends(lines) if name in line["finished"]]
        if ends:
            records = _records_of(lines, ends[-1]["run"])
            found += [record for record in records if record[part] == name]
    return found


def _full_ends(lines: list[Record]) -> list[Record]:
    return [line for line in lines if "finished" in line and line["kind"] == "full"]


def _records_of(lines: list[Record], run: str) -> list[Record]:
    return [line for line in lines if line.get("run") == run and "finished" not in line]
