"""Pictures of the sweeps for docs/performance.md: ``python -m benchmarks.plots [--small]``.

Reads benchmarks/results/scaling.jsonl, takes the last finished run of each sweep and draws one
figure for each group of sweeps into docs/pictures/: time above, memory below. Sweeps that have not
been run are left out. ``--small`` draws the last small runs, to look at the drawing itself.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.records import RESULTS, latest, read_lines
from benchmarks.sweeps import SWEEPS
from benchmarks.tables import growth_exponent, sweep_points

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
GROUPS = {
    "rows": ("n", "mixture"),
    "problem": ("d", "C", "gamma"),
    "settings": ("cache", "chunk", "threads"),
}
COLOURS = {"kfu": "#1f5fa8", "onedal": "#c2571a"}
NAMES = {"kfu": "kfu", "onedal": "oneDAL"}
GREY = "#7a7a7a"


def draw_group(group: str, records: list[dict[str, Any]], folder: Path) -> Path | None:
    """One figure: a column for each sweep of the group that has points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name in GROUPS[group] if sweep_points(records, name, "kfu")]
    if not names:
        return None
    size = (3.5 * len(names) + 0.6, 5.4)
    figure, axes = pyplot.subplots(
        2, len(names), figsize=size, layout="constrained", squeeze=False, sharex="col"
    )
    for column, name in enumerate(names):
        draw_time(axes[0, column], name, records)
        draw_memory(axes[1, column], name, records)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("peak − before, MiB")
    path = folder / f"performance-{group}.png"
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def draw_time(axes: Any, name: str, records: list[dict[str, Any]]) -> None:
    sweep = SWEEPS[name]
    curves = []
    for competitor in sweep.competitors:
        points = sweep_points(records, name, competitor)
        if not points:
            continue
        seconds = [point["seconds"] for point in points]
        label = NAMES[competitor]
        if sweep.has_growth and len(points) > 1:
            exponent = growth_exponent([point["n"] for point in points], seconds)
            label += f"\nn$^{{{exponent:.2f}}}$"
        curves.append(Curve(label, COLOURS[competitor], values_of(points), seconds))
    mine = sweep_points(records, name, "kfu")
    if name not in GROUPS["settings"]:
        bounds = [point["bound_seconds"] for point in mine]
        curves.append(Curve("bound", GREY, values_of(mine), bounds, is_dashed=True))
    default = sweep_points(records, "threads", "kfu")  # its last point has the default settings
    if name == "chunk" and default:
        level = [default[-1]["seconds"]] * len(mine)
        curves.append(Curve("automatic", GREY, values_of(mine), level, is_dashed=True))
    axes.set_title(sweep.title, fontsize=10)
    draw_curves(axes, curves, is_log=name not in GROUPS["settings"])


def draw_memory(axes: Any, name: str, records: list[dict[str, Any]]) -> None:
    curves = []
    for competitor in SWEEPS[name].competitors:
        points = sweep_points(records, name, competitor)
        used = [max(point["mib_peak"] - point["mib_before"], 0.1) for point in points]
        if points:
            curves.append(Curve(NAMES[competitor], COLOURS[competitor], values_of(points), used))
    if name == "cache":
        budgets = values_of(sweep_points(records, name, "kfu"))
        curves.append(Curve("budget", GREY, budgets, budgets, is_dashed=True))
    axes.set_xlabel(SWEEPS[name].axis)
    draw_curves(axes, curves, is_log=name not in ("chunk", "threads"))


@dataclass(frozen=True)
class Curve:
    label: str
    colour: str
    x: list[float]
    y: list[float]
    is_dashed: bool = False


def values_of(points: list[dict[str, Any]]) -> list[float]:
    return [float(point["value"]) for point in points]


def draw_curves(axes: Any, curves: list[Curve], is_log: bool) -> None:
    """The curves with their names at their right ends; ticks at the values that were run."""
    from matplotlib import ticker

    for curve in curves:
        style = {"linestyle": "--"} if curve.is_dashed else {"marker": "o", "markersize": 4}
        axes.plot(curve.x, curve.y, color=curve.colour, linewidth=1.4, **style)
    axes.set_xscale("log")
    axes.set_xticks(curves[0].x, [short(value) for value in curves[0].x], fontsize=8)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    if is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 3.0)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        axes.set_ylim(0, 1.15 * max(max(curve.y) for curve in curves))
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(True, linewidth=0.4, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    name_ends(axes, curves)


def name_ends(axes: Any, curves: list[Curve]) -> None:
    """Write each name beside the end of its curve, moved up where it would cover another."""
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [(to_axes.transform((curve.x[-1], curve.y[-1]))[1], curve) for curve in curves]
    lowest = -1.0
    for height, curve in sorted(ends, key=lambda end: end[0]):
        lines = 1 + curve.label.count("\n")
        place = max(height, lowest + 0.04 * lines)
        axes.annotate(
            curve.label,
            (1.01, place),
            xycoords="axes fraction",
            va="center",
            color=curve.colour,
            fontsize=8,
        )
        lowest = place + 0.04 * lines


def short(value: float) -> str:
    """A number for an axis: 64000 as 64k, 0.25 as 1/4."""
    if value >= 10000 or (value >= 1000 and value % 1000 == 0):
        return f"{value / 1000:.3g}k"
    if 0 < value < 1 and (1 / value).is_integer() and value not in (0.1, 0.01):
        return f"1/{round(1 / value)}"
    return f"{value:g}"


def draw_all(lines: list[dict[str, Any]], folder: Path = PICTURES) -> list[Path]:
    """The pictures of the last finished run of each sweep."""
    records = latest(lines, "sweep", SWEEPS)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [draw_group(group, records, folder) for group in GROUPS]
    return [path for path in drawn if path is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small runs, into benchmarks/results/")
    options = parser.parse_args()
    lines = read_lines(RESULTS / "scaling.jsonl")
    if options.small:
        lines = [{**line, "kind": "full"} for line in lines if line.get("kind") != "full"]
    drawn = draw_all(lines, RESULTS if options.small else PICTURES)
    if not drawn:
        raise SystemExit("no finished run of a sweep; python -m benchmarks.scaling makes one")
    print(*drawn, sep="\n")


if __name__ == "__main__":
    main()
