"""Tables of the records, in Markdown: what the programs print and docs/performance.md shows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.cases import CASES, GOALS, MARGIN_MIB, PREDICTIONS, Goals
from benchmarks.competitors import COMPETITORS, FORMS
from benchmarks.sweeps import SWEEPS

Record = dict[str, Any]
NOTHING = "–"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def machine_line(records: Sequence[Record]) -> str:
    """The machine, versions and days behind the records."""
    if not records:
        return ""
    machine = records[-1]["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    days = sorted({record["machine"]["date"] for record in records})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return (
        f"{machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_mib'] / 1024:.0f} GiB; "
        f"Python {machine['python']}, {versions}; {span}."
    )


# ---------------------------------------------------------------- choosing among records


def middle(records: Sequence[Record]) -> Record:
    """The record of median time, with the seconds of all turns and the median multiple of the
    bound.

    What slows the machine for a while slows all of a turn: ratios are taken turn by turn.
    """
    seconds = statistics.median_low(record["seconds"] for record in records)
    found = dict(next(record for record in records if record["seconds"] == seconds))
    found["by_turn"] = {record.get("turn", 0): record["seconds"] for record in records}
    multiples = [r["seconds"] / r["bound_seconds"] for r in records if r.get("bound_seconds")]
    if multiples:
        found["times_bound"] = statistics.median(multiples)
    return found


def by_competitor(records: Sequence[Record]) -> dict[str, Record]:
    """The record of median time of each competitor; those that failed are left out."""
    found = {}
    for name in COMPETITORS:
        of_one = [r for r in records if r["competitor"] == name and "error" not in r]
        if of_one:
            found[name] = middle(of_one)
    return found


def by_family(records: Sequence[Record]) -> dict[str, Record]:
    """kfu, oneDAL and LIBSVM: the fastest form of each."""
    best = by_competitor(records)
    found = {}
    for family, forms in FORMS.items():
        of_family = [best[form] for form in forms if form in best]
        if of_family:
            found[family] = min(of_family, key=lambda record: record["seconds"])
    return found


# ---------------------------------------------------------------- cells


def at_least(value: float | None, goal: float | None) -> str:
    """A ratio beside its goal; ✗ where it is missed."""
    if value is None:
        return NOTHING if goal is None else f"{NOTHING} (≥{goal:g})"
    missed = goal is not None and value < goal
    return _with_goal(value, "" if goal is None else f"≥{goal:g}", missed)


def at_most(value: float | None, goal: float | None) -> str:
    if value is None:
        return NOTHING if goal is None else f"{NOTHING} (≤{goal:g})"
    missed = goal is not None and value > goal
    return _with_goal(value, "" if goal is None else f"≤{goal:g}", missed)


def _with_goal(value: float, goal: str, missed: bool) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}".replace("-", "−")
    return f"{text} ({goal}{' ✗' if missed else ''})" if goal else text


def ratio(peer: Record | None, mine: Record) -> float | None:
    """The median of the turns' ratios; of median seconds, where they share one turn only."""
    if peer is None:
        return None
    of_peer, of_mine = peer.get("by_turn", {}), mine.get("by_turn", {})
    shared = [turn for turn in of_peer if turn in of_mine]
    if len(shared) < 2:
        return peer["seconds"] / mine["seconds"]
    return statistics.median(of_peer[turn] / of_mine[turn] for turn in shared)


def seconds_text(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


# ---------------------------------------------------------------- training

TRAINING_HEAD = (
    "case",
    "kfu s",
    "oneDAL÷kfu",
    "LIBSVM÷kfu",
    "kfu÷bound",
    "SVs (free)",
    "evals/(nSV·n)",
    "objective vs LIBSVM",
    "gap64 kfu / oneDAL / LIBSVM",
    "peak−before−cache MiB",
)


def training_table(records: Sequence[Record]) -> str:
    """One row for each case that kfu has run, with its goals in brackets."""
    rows = []
    for name in CASES:
        of_case = by_family([record for record in records if record["case"] == name])
        if "kfu" in of_case:
            rows.append(training_row(name, of_case))
    return markdown(TRAINING_HEAD, rows)


def training_row(name: str, families: dict[str, Record]) -> list[str]:
    goals = GOALS.get(name, Goals())
    mine, onedal, libsvm = (families.get(family) for family in FORMS)
    assert mine is not None
    difference = NOTHING
    if libsvm:
        relative = (mine["objective"] - libsvm["objective"]) / abs(libsvm["objective"])
        difference = f"{relative:+.1e}".replace("-", "−")
    gaps = [f"{record['gap64']:.1e}" if record else NOTHING for record in (mine, onedal, libsvm)]
    margin = mine["mib_peak"] - mine["mib_before"] - mine["cache_mib"]
    return [
        f"{name}: {CASES[name].title}",
        seconds_text(mine["seconds"]),
        at_least(ratio(onedal, mine), goals.onedal),
        at_least(ratio(libsvm, mine), goals.libsvm),
        at_most(mine["times_bound"], goals.bound),
        f"{mine['n_sv']} ({mine['n_free']})",
        f"{mine['evaluations_per_bound']:.2f}",
        difference,
        " / ".join(gaps),
        at_most(margin, MARGIN_MIB),
    ]


HARD_HEAD = (
    *("case", "kfu s", "oneDAL s", "oneDAL÷kfu", "kfu÷bound", "SVs (free)", "rounds", "chunk"),
    *("evals/(nSV·n)", "gap64 kfu / oneDAL"),
)


def hard_table(records: Sequence[Record]) -> str:
    """The hard cases beside oneDAL: what the solver did, too."""
    rows = []
    for name in CASES:
        families = by_family([record for record in records if record["case"] == name])
        mine, onedal = families.get("kfu"), families.get("oneDAL")
        if not mine:
            continue
        gaps = [f"{record['gap64']:.1e}" if record else NOTHING for record in (mine, onedal)]
        rows.append(
            [
                f"{name}: {CASES[name].title}",
                seconds_text(mine["seconds"]),
                seconds_text(onedal["seconds"]) if onedal else NOTHING,
                at_least(ratio(onedal, mine), None),
                at_most(mine["times_bound"], None),
                f"{mine['n_sv']} ({mine['n_free']})",
                str(mine["rounds"]),
                str(mine["chunk"]),
                f"{mine['evaluations_per_bound']:.2f}",
                " / ".join(gaps),
            ]
        )
    return markdown(HARD_HEAD, rows)


def phases_table(records: Sequence[Record]) -> str:
    """Where kfu's seconds go: a row for each case, a column for each phase."""
    best = {}
    for name in CASES:
        mine = by_competitor([r for r in records if r["case"] == name]).get("kfu")
        if mine:
            best[name] = mine
    phases = list(dict.fromkeys(phase for mine in best.values() for phase in mine["phases"]))
    rows = [
        [name, *(seconds_text(mine["phases"].get(phase, 0.0)) for phase in phases)]
        for name, mine in best.items()
    ]
    return markdown(("case", *phases), rows)


# ---------------------------------------------------------------- prediction

PREDICTION_HEAD = (
    "model",
    "kernel values",
    "kfu s",
    "oneDAL÷kfu",
    "LIBSVM÷kfu",
    "kfu÷panels",
    "SVs",
    "accuracy kfu / oneDAL / LIBSVM",
)


def prediction_table(records: Sequence[Record]) -> str:
    """One row for each model and precision of kfu's kernel values."""
    rows = []
    for name, problem in PREDICTIONS.items():
        found = {r["competitor"]: r for r in records if r["problem"] == name and "error" not in r}
        onedal, libsvm = found.get("onedal"), found.get("sklearn")
        for form, precision in (("kfu", "as needed"), ("kfu-float64", "float64")):
            mine = found.get(form)
            if not mine:
                continue
            scores = [f"{r['accuracy']:.4f}" if r else NOTHING for r in (mine, onedal, libsvm)]
            rows.append(
                [
                    f"{name}: {problem.title}",
                    precision,
                    seconds_text(mine["seconds"]),
                    at_least(ratio(onedal, mine), problem.goals.onedal),
                    at_least(ratio(libsvm, mine), problem.goals.libsvm),
                    at_most(mine["seconds"] / mine["panel_seconds"], problem.goals.bound),
                    str(mine["n_sv"]),
                    " / ".join(scores),
                ]
            )
    return markdown(PREDICTION_HEAD, rows)


# ---------------------------------------------------------------- scaling


def growth_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The p of y ≈ c·xᵖ: least squares in logarithms. Needs two points."""
    slope, _ = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope)


def sweep_points(records: Sequence[Record], sweep: str, competitor: str) -> list[Record]:
    """The median record at each value, in the order of the values."""
    mine = [
        r
        for r in records
        if r["sweep"] == sweep and r["competitor"] == competitor and "error" not in r
    ]
    values = sorted({r["value"] for r in mine})
    return [middle([r for r in mine if r["value"] == value]) for value in values]


def sweep_table(records: Sequence[Record], sweep: str) -> str:
    """The points of one sweep: seconds, SVs, times the bound and memory, with oneDAL beside."""
    has_peer = "onedal" in SWEEPS[sweep].competitors
    peers = {r["value"]: r for r in sweep_points(records, sweep, "onedal")}
    head = [SWEEPS[sweep].axis, "kfu s", "SVs (free)", "kfu÷bound", "peak−before MiB"]
    rows = []
    for point in sweep_points(records, sweep, "kfu"):
        row = [
            f"{point['value']:g}",
            seconds_text(point["seconds"]),
            f"{point['n_sv']} ({point['n_free']})",
            f"{point['times_bound']:.1f}",
            f"{point['mib_peak'] - point['mib_before']:.0f}",
        ]
        if has_peer:
            row += peer_cells(peers.get(point["value"]))
        rows.append(row)
    return markdown(head + (["oneDAL s", "oneDAL MiB"] if has_peer else []), rows)


def peer_cells(peer: Record | None) -> list[str]:
    if peer is None:
        return [NOTHING, NOTHING]
    return [seconds_text(peer["seconds"]), f"{peer['mib_peak'] - peer['mib_before']:.0f}"]


def growth_lines(records: Sequence[Record], sweep: str) -> list[str]:
    """Growth exponents of a sweep over n, a sentence for each competitor and for n·SVs."""
    lines = []
    for competitor in SWEEPS[sweep].competitors:
        points = sweep_points(records, sweep, competitor)
        if len(points) < 2:
            continue
        n = [point["n"] for point in points]
        exponent = growth_exponent(n, [point["seconds"] for point in points])
        lines.append(f"Time of {competitor} grows as n^{exponent:.2f}.")
        if competitor == "kfu":
            work = growth_exponent(n, [point["n"] * point["n_sv"] for point in points])
            lines.append(f"n · SVs, the work of the bound, grows as n^{work:.2f}.")
    return lines
