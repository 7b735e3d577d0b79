"""Training time beside the peers: ``python -m benchmarks.train [--quick | --hard] [--case a9a]``.

Competitors take turns within one run (one process each), so that a machine that slows down slows
all of them. Figures are medians of three, ratios those of the turns' own ratios; LIBSVM, which is
slow, runs once. Claims are the ratios. The bound is the time to evaluate K(support vectors, all
rows) once. Every training is a JSON line in benchmarks/results/train.jsonl; the table at the end is
made from them, and ``--summary`` prints that of the last complete run again (``--latest``: of the
last run of each case). The hard cases are run beside oneDAL alone, once where it takes minutes.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.cases import CASES, FULL_CASES, HARD_CASES, QUICK_CASES
from benchmarks.competitors import COMPETITORS, SLOW, default_competitors
from benchmarks.processes import run_module
from benchmarks.records import RESULTS, Run, last_run, latest, read_lines
from benchmarks.tables import by_competitor, machine_line, ratio, training_table

MINUTES = 60.0  # seconds from which one training of a competitor has to do


def print_case(case: str, records: list[dict[str, Any]]) -> None:
    print(f"\n{case}: {CASES[case].title}")
    best = by_competitor(records)
    mine = best.get("kfu")
    for name, record in best.items():
        times = ratio(record, mine) if mine else float("nan")
        print(
            f"  {name:14s} {record['seconds']:8.3f} s  ×{times:6.2f}  "
            f"objective {record['objective']:.6f}  gap {record['gap64']:.1e}  "
            f"SVs {record['n_sv']} ({record['n_free']} free)  {record['mib_peak']:.0f} MiB"
        )
    if mine:
        bound, times = mine["bound_seconds"], mine["times_bound"]
        print(f"  {'bound':14s} {bound:8.3f} s  kfu takes {times:.1f} times the bound")
    for record in records:
        if "error" in record:
            print(f"  {record['competitor']:14s} failed: {record['error']}")


def run_case(run: Run, name: str, competitors: list[str], repeat: int) -> list[dict[str, Any]]:
    """The records of all competitors of one case, taking turns."""
    records = []
    slow = set(SLOW)  # run in the first turn only
    for turn in range(repeat):
        for competitor in competitors:
            if turn > 0 and competitor in slow:
                continue
            record = {
                "case": name,
                "competitor": competitor,
                "turn": turn,
                **run_module("benchmarks.worker", name, competitor),
            }
            if record.get("seconds", 0.0) > MINUTES:
                slow.add(competitor)
            records.append(record)
            run.add(record)
    return records


def run_all(options: argparse.Namespace) -> None:
    chosen = QUICK_CASES if options.quick else HARD_CASES if options.hard else FULL_CASES
    names = options.case or chosen
    repeat = 1 if options.quick else options.repeat
    is_full = repeat >= 3 and options.competitor is None
    run = Run("train", "full" if is_full else "quick")
    records = []
    for name in names:
        usual = default_competitors(CASES[name])
        if CASES[name].is_hard:
            usual = [competitor for competitor in usual if competitor not in SLOW]
        competitors = options.competitor or usual
        competitors = competitors + [c for c in options.add or [] if c not in competitors]
        of_case = run_case(run, name, competitors, repeat)
        print_case(name, of_case)
        records += of_case
    run.finish(names)
    print_summary([{**record, "machine": run.machine} for record in records])


def print_summary(records: list[dict[str, Any]]) -> None:
    print(f"\n{training_table(records)}\n\n{machine_line(records)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the quick cases, once")
    parser.add_argument("--hard", action="store_true", help="the hard cases, beside oneDAL")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--competitor", action="append", choices=list(COMPETITORS))
    parser.add_argument("--add", action="append", choices=list(COMPETITORS), help="one more")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--summary", action="store_true", help="the table of the last complete run")
    parser.add_argument("--latest", action="store_true", help="the table of each case's last run")
    options = parser.parse_args()
    if not options.summary and not options.latest:
        run_all(options)
        return
    lines = read_lines(RESULTS / "train.jsonl")
    wanted = options.case or FULL_CASES
    records = latest(lines, "case", wanted) if options.latest else last_run(lines, wanted)
    if not records:
        raise SystemExit("no complete run; python -m benchmarks.train makes one")
    print_summary([record for record in records if record["case"] in wanted])


if __name__ == "__main__":
    main()
