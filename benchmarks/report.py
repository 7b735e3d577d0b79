"""Write the tables and pictures of docs/performance.md: ``python -m benchmarks.report``.

What stands between ``<!-- table: NAME -->`` and ``<!-- /table -->`` is replaced by what SECTIONS
makes of the last finished full runs in benchmarks/results/; a part without such a run stays as it
is. Nothing is measured here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.cases import FULL_CASES, HARD_CASES, PREDICTIONS
from benchmarks.plots import GROUPS, PICTURES, draw_all
from benchmarks.records import RESULTS, latest, read_lines
from benchmarks.sweeps import SWEEPS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
MARK = re.compile(
    r"(?P<begin><!-- table: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- /table -->)", re.DOTALL
)
Records = list[dict[str, Any]]


def replace_marked(text: str, parts: Mapping[str, str]) -> str:
    """The text with the marked parts replaced; parts that are empty or not given stay.

    A part without a place in the text is an error.
    """
    places = {match["name"] for match in MARK.finditer(text)}
    missing = sorted(set(parts) - places)
    if missing:
        raise ValueError(f"no mark <!-- table: {missing[0]} --> in the text")

    def replacement(match: re.Match[str]) -> str:
        part = parts.get(match["name"], "")
        return f"{match['begin']}{part.strip()}\n{match['end']}" if part else match[0]

    return MARK.sub(replacement, text)


def training(results: Path) -> str:
    records = latest(read_lines(results / "train.jsonl"), "case", FULL_CASES)
    return with_machine(tables.training_table(records), records)


def hard(results: Path) -> str:
    records = latest(read_lines(results / "train.jsonl"), "case", HARD_CASES)
    return with_machine(tables.hard_table(records), records)


def phases(results: Path) -> str:
    records = latest(read_lines(results / "train.jsonl"), "case", FULL_CASES)
    return tables.phases_table(records) if records else ""


def prediction(results: Path) -> str:
    records = latest(read_lines(results / "predict.jsonl"), "problem", PREDICTIONS)
    return with_machine(tables.prediction_table(records), records)


def with_machine(table: str, records: Records) -> str:
    return f"{table}\n\n{tables.machine_line(records)}" if records else ""


def sweeps(group: str) -> Callable[[Path], str]:
    """The section of a group of sweeps: its picture, then a table for each sweep."""

    def section(results: Path) -> str:
        names = GROUPS[group]
        records = latest(read_lines(results / "scaling.jsonl"), "sweep", names)
        if not records:
            return ""
        titles = " and ".join(SWEEPS[name].title for name in names)
        blocks = [f"![Time and memory against {titles}](pictures/performance-{group}.png)"]
        for name in names:
            of_sweep = [record for record in records if record["sweep"] == name]
            if of_sweep:
                blocks += [f"**{SWEEPS[name].title}**", tables.sweep_table(of_sweep, name)]
            if of_sweep and SWEEPS[name].has_growth:
                blocks.append("\n".join(tables.growth_lines(of_sweep, name)))
        return "\n\n".join([*blocks, tables.machine_line(records)])

    return section


SECTIONS: dict[str, Callable[[Path], str]] = {
    "training": training,
    "phases": phases,
    "hard": hard,
    "prediction": prediction,
    **{group: sweeps(group) for group in GROUPS},
}


def main() -> None:
    parts = {name: section(RESULTS) for name, section in SECTIONS.items()}
    PAGE.write_text(replace_marked(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")
    for name, part in parts.items():
        print(f"{name}: {'written' if part else 'no finished full run; left as it is'}")
    for path in draw_all(read_lines(RESULTS / "scaling.jsonl"), PICTURES):
        print(path.relative_to(PAGE.parents[1]))


if __name__ == "__main__":
    main()
