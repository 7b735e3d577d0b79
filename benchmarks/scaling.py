"""Time and memory against n, d, C, γ, cache, chunk and threads: ``python -m benchmarks.scaling``.

Every point (benchmarks/sweeps.py) is trained in a process of its own; competitors and values take
turns, and the table shows medians. Memory is the peak of resident memory minus that before
training. ``--only NAME`` runs one sweep, ``--small`` all of them on a few hundred rows to see that
they work. Writes benchmarks/results/scaling.jsonl; ``python -m benchmarks.plots`` draws it.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.processes import run_module
from benchmarks.records import Run
from benchmarks.sweeps import SWEEPS
from benchmarks.tables import growth_lines, sweep_table


def run_sweep(run: Run, name: str, repeat: int | None, is_small: bool) -> list[dict[str, Any]]:
    sweep = SWEEPS[name]
    values = sweep.small_values if is_small else sweep.values
    flags = ["--sweep", "--small"] if is_small else ["--sweep"]
    records = []
    for turn in range(repeat or (1 if is_small else sweep.repeat)):
        for value in values:
            for competitor in sweep.competitors:
                record = {
                    "sweep": name,
                    "value": value,
                    "competitor": competitor,
                    "turn": turn,
                    **run_module("benchmarks.worker", f"{name}:{value!r}", competitor, *flags),
                }
                records.append(record)
                run.add(record)
    return records


def print_sweep(name: str, records: list[dict[str, Any]]) -> None:
    print(f"\n{name}: {SWEEPS[name].title}\n\n{sweep_table(records, name)}")
    if SWEEPS[name].has_growth:
        print("\n" + "\n".join(growth_lines(records, name)))
    for record in records:
        if "error" in record:
            print(f"{record['competitor']} at {record['value']:g} failed: {record['error']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(SWEEPS))
    parser.add_argument("--small", action="store_true", help="a trial run of seconds")
    parser.add_argument("--repeat", type=int, help="runs of each point; by default the sweep's own")
    options = parser.parse_args()
    names = options.only or list(SWEEPS)
    run = Run("scaling", "small" if options.small else "full")
    for name in names:
        print_sweep(name, run_sweep(run, name, options.repeat, options.small))
        run.finish([name])  # a run that is cut keeps the sweeps it has done


if __name__ == "__main__":
    main()
