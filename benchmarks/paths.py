"""Exact paths: ``python -m benchmarks.paths [--quick] [--part r grid whole growth]``.

r       the path of mixture, heart_scale and diabetis beside R's svmpath, which runs here too where
        Rscript has that package, and otherwise is what it took on two cores of the same class
grid    the whole path beside the grid of 30 LIBSVM trainings (scikit-learn's SVC, its default
        tolerance, costs evenly in log C over the range of the path) that it replaces, in turns
whole   the paths of all of spam and of 5,000 rows of a9a
growth  steps, seconds and memory of paths on the first n rows of a9a, each in a process of its own;
        drawn into docs/pictures/path-growth.png

kfu has one thread but in `whole`. Seconds are medians of the turns; `cpu` is processor time, which
a busy machine changes less. Each record is a JSON line in benchmarks/results/paths.jsonl.
``--quick`` takes generated data and no time; ``--summary`` prints the tables of the last complete
runs again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Data, gaussian_mixtures, standardised
from benchmarks.linear import two_classes
from benchmarks.plots import COLOURS, PICTURES, Curve, draw_curves
from benchmarks.processes import run_module
from benchmarks.records import RESULTS, Record, Run, latest, read_lines
from benchmarks.tables import growth_exponent

TURNS = 3
GRID = 30  # costs
LAMBDA_MIN = 1e-3  # of the larger sets: C up to 1000
R_LAMBDA_MIN = 1e-4  # where svmpath stops
GROWTH = (250, 500, 1000, 2000, 4000, 8000)
QUICK_GROWTH = (100, 200)
R_SCRIPT = """
suppressMessages(library(svmpath))
a <- commandArgs(TRUE)
d <- as.matrix(read.csv(a[1], header = FALSE))
x <- d[, -1]; y <- d[, 1]
g <- as.numeric(a[2])
s <- system.time(p <- svmpath(x, y, kernel.function = radial.kernel, param.kernel = g))
cat(s[["elapsed"]], length(p$lambda), "\\n")
"""


def dense(X: Any) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def stored(name: str, n: int = 0, is_standardised: bool = False) -> Callable[[], Data]:
    def load() -> Data:
        X, y = two_classes(name)
        X = standardised(X) if is_standardised else dense(X)
        return (X[:n], y[:n]) if n else (X, y)

    return load


def made(n: int) -> Callable[[], Data]:
    return lambda: gaussian_mixtures(n, 2)


@dataclass(frozen=True)
class PathCase:
    """A C-SVC with an RBF kernel; r_seconds and r_steps are svmpath's on two such cores."""

    load: Callable[[], Data]
    gamma: float
    low: float | None = None
    r_seconds: float | None = None
    r_steps: int | None = None


MIXTURE = stored("mixture.example.svm.gz")
HEART = stored("heart_scale.svm.gz")
DIABETIS = stored("ida/diabetis.svm.gz")
SPAM = stored("spam.svm.gz", is_standardised=True)
A9A = "a9a.tr.gz"

BESIDE_R = {
    "mixture": PathCase(MIXTURE, 1.0, R_LAMBDA_MIN, 0.30, 600),
    "heart_scale": PathCase(HEART, 0.05, R_LAMBDA_MIN, 0.23),
    "diabetis": PathCase(DIABETIS, 0.05, R_LAMBDA_MIN, 5.3, 1640),
}
GRIDS = {
    "mixture": PathCase(MIXTURE, 1.0),
    "heart_scale": PathCase(HEART, 0.05),
    "diabetis": PathCase(DIABETIS, 0.05, R_LAMBDA_MIN),
    "spam": PathCase(SPAM, 0.01, LAMBDA_MIN),
}
WHOLE = {
    "spam": PathCase(SPAM, 0.01),
    "a9a 5000": PathCase(stored(A9A, 5000), 1 / 123),
}
QUICK = {"made": PathCase(made(80), 1.0)}


def clocked(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, seconds of processor time, and what came out."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def follow(case: PathCase, X: Any, y: np.ndarray, threads: int = 1) -> Any:
    import kfu

    return kfu.svm_path(X, y, gamma=case.gamma, low=case.low, threads=threads)


def facts_of(path: Any) -> Record:
    return {
        "n": path.n,
        "status": path.status,
        "steps": path.n_steps,
        "events": len(path.track.event_item),
        "lambda_first": path.high,
        "lambda_last": path.low,
        "largest_margin": int(path.columns["n_margin"].max()),
        "kkt": float(path.columns["kkt"].max()),
    }


def median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


# ---- parts ----------------------------------------------------------------------------------


def beside_r(turns: int, is_quick: bool) -> Iterable[Record]:
    for name, case in (QUICK if is_quick else BESIDE_R).items():
        X, y = case.load()
        follow(case, X, y)  # imports, first touches
        times = [clocked(lambda: follow(case, X, y)) for _ in range(max(turns, 9))]  # noqa: B023
        r_seconds, r_steps, source = case.r_seconds, case.r_steps, "stated"
        ran = run_r(X, y, case.gamma)
        if ran is not None:
            (r_seconds, r_steps), source = ran, "run"
        seconds, cpu = median(t[0] for t in times), median(t[1] for t in times)
        yield {
            "part": "r",
            "case": name,
            "seconds": seconds,
            "cpu": cpu,
            "r_seconds": r_seconds,
            "r_steps": r_steps,
            "r_source": source,
            "ratio": None if r_seconds is None else r_seconds / seconds,
            "ratio_cpu": None if r_seconds is None else r_seconds / cpu,
            **facts_of(times[0][2]),
        }


def run_r(X: np.ndarray, y: np.ndarray, gamma: float) -> tuple[float, int] | None:
    """Seconds and steps of R's svmpath; None where Rscript or the package is missing."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "rows.csv", Path(folder) / "path.R"
        np.savetxt(data, np.column_stack([y, X]), delimiter=",", fmt="%.17g")
        script.write_text(R_SCRIPT, encoding="utf-8")
        command = ["Rscript", str(script), str(data), repr(gamma)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        return None
    seconds, steps = done.stdout.split()[-2:]
    return float(seconds), int(steps)


def beside_grid(turns: int, is_quick: bool) -> Iterable[Record]:
    from sklearn.svm import SVC

    for name, case in (QUICK if is_quick else GRIDS).items():
        X, y = case.load()
        path = follow(case, X, y)
        costs = np.geomspace(1.0 / path.high, 1.0 / path.low, GRID)

        def grid(X: Any = X, y: Any = y, costs: Any = costs, gamma: float = case.gamma) -> None:
            for cost in costs:
                SVC(C=cost, gamma=gamma).fit(X, y)

        paths, grids = [], []
        for _ in range(turns):
            paths.append(clocked(lambda: follow(case, X, y)))  # noqa: B023
            grids.append(clocked(grid))
        seconds, grid_seconds = median(t[0] for t in paths), median(t[0] for t in grids)
        cpu, grid_cpu = median(t[1] for t in paths), median(t[1] for t in grids)
        yield {
            "part": "grid",
            "case": name,
            "seconds": seconds,
            "cpu": cpu,
            "grid_seconds": grid_seconds,
            "grid_cpu": grid_cpu,
            "ratio": grid_seconds / seconds,
            "ratio_cpu": grid_cpu / cpu,
            "turns": turns,
            **facts_of(path),
        }


def whole(turns: int, is_quick: bool) -> Iterable[Record]:
    for name, case in (QUICK if is_quick else WHOLE).items():
        X, y = case.load()
        seconds, cpu, path = clocked(lambda: follow(case, X, y, threads=0))  # noqa: B023
        yield {"part": "whole", "case": name, "seconds": seconds, "cpu": cpu, **facts_of(path)}


def growth(turns: int, is_quick: bool) -> Iterable[Record]:
    for n in QUICK_GROWTH if is_quick else GROWTH:
        record = run_module("benchmarks.paths", "--one", str(n), *(["--quick"] if is_quick else []))
        if "error" in record:
            raise SystemExit(record["error"])
        yield {"part": "growth", "case": "a9a", **record}


def one(n: int, is_quick: bool) -> Record:
    """A path of the growth, in this process: peak memory is that of the path."""
    from benchmarks.worker import reset_peak
    from kfu.report import peak_rss_mib

    case = PathCase(made(n) if is_quick else stored(A9A, n), 1 / 123, LAMBDA_MIN)
    X, y = case.load()
    follow(case, X[: min(50, n)], y[: min(50, n)])
    reset_peak()
    before = peak_rss_mib()
    seconds, cpu, path = clocked(lambda: follow(case, X, y))
    peak = peak_rss_mib()
    return {
        "seconds": seconds,
        "cpu": cpu,
        "mib_before": before,
        "mib_peak": peak,
        "track_mib": track_bytes(path.track) / 2**20,
        **facts_of(path),
    }


def track_bytes(track: Any) -> int:
    """What a path keeps beside the rows: its breakpoints and events."""
    arrays = [v for k, v in vars(track).items() if isinstance(v, np.ndarray) and k != "X"]
    return sum(array.nbytes for array in arrays)


PARTS: dict[str, Callable[[int, bool], Iterable[Record]]] = {
    "r": beside_r,
    "grid": beside_grid,
    "whole": whole,
    "growth": growth,
}


# ---- tables and the picture -----------------------------------------------------------------


def row(record: Record) -> str:
    text = (
        f"{record['part']:<7}{record['case']:<12} n={record['n']:<6} {record['steps']:>6} steps "
        f"{record['seconds']:9.4f} s  cpu {record['cpu']:9.4f} s"
    )
    if record["part"] == "r" and record["r_seconds"]:
        text += f"  svmpath ({record['r_source']}) {record['r_seconds']:.2f} s"
    if record["part"] == "grid":
        text += f"  {GRID} trainings {record['grid_seconds']:.3f} s"
    if record.get("ratio"):
        text += f": {record['ratio']:.1f}× (cpu {record['ratio_cpu']:.1f}×)"
    if record["part"] == "growth":
        text += f"  peak {record['mib_peak'] - record['mib_before']:.1f} MiB"
        text += f", path {record['track_mib']:.2f} MiB"
    return text + f"  kkt {record['kkt']:.0e}"


def draw(records: list[Record], folder: Path) -> Path:
    """Steps, seconds and memory against n."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(11.0, 3.0), layout="constrained")
    n = [float(record["n"]) for record in records]

    def curve(label: str, colour: str, values: list[float]) -> Curve:
        return Curve(f"{label}\nn$^{{{growth_exponent(n, values):.2f}}}$", colour, n, values)

    blue, orange = COLOURS["kfu"], COLOURS["onedal"]
    columns = {
        "steps": [curve("steps", blue, [float(r["steps"]) for r in records])],
        "seconds of processor time": [curve("cpu", blue, [r["cpu"] for r in records])],
        "MiB": [
            curve("peak", blue, [max(r["mib_peak"] - r["mib_before"], 0.1) for r in records]),
            curve("the path", orange, [r["track_mib"] for r in records]),
        ],
    }
    columns["steps"].append(
        curve("largest\nmargin", orange, [float(r["largest_margin"]) for r in records])
    )
    for axis, (title, curves) in zip(axes, columns.items(), strict=True):
        draw_curves(axis, curves, is_log=True)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("rows of a9a")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "path-growth.png"
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a trial run of seconds")
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--summary", action="store_true", help="the last tables again, and picture")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.quick)))
        return
    if options.summary:
        found = latest(read_lines(RESULTS / "paths.jsonl"), "part", options.part)
        for record in found:
            print(row(record))
    else:
        out = Run("paths", "quick" if options.quick else "full")
        found = []
        for part in options.part:
            for record in PARTS[part](options.turns, options.quick):
                out.add(record)
                found.append(record)
                print(row(record), flush=True)
        out.finish(options.part)
    grown = [record for record in found if record["part"] == "growth"]
    if grown:
        print(draw(grown, RESULTS if options.quick else PICTURES))


if __name__ == "__main__":
    main()
