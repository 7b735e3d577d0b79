"""Training time against chunk size and cache memory, as Figure 2-7 of Rifkin's thesis.

``python -m benchmarks.memory [--case a9a-wide] [--repeat 3]`` trains one case for every chunk and
budget, prints the medians and draws them to benchmarks/results/memory-CASE.png. More memory at one
chunk must not be slower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from benchmarks.cases import CASES, Case
from benchmarks.records import RESULTS

CHUNKS = (256, 512, 1024, 2048, 4096)
BUDGETS_MIB = (20, 80, 320, 1280)


def seconds(X: Any, y: Any, case: Case, chunk: int, budget: float) -> float:
    from kfu import KernelSpec, train
    from kfu.solvers import SolverSettings

    settings = SolverSettings(chunk=chunk, cache_mib=budget)
    begin = time.perf_counter()
    train(X, y, kernel=KernelSpec.make("rbf", gamma=case.gamma), cost=case.cost, settings=settings)
    return time.perf_counter() - begin


def draw(name: str, title: str, table: dict[tuple[int, int], float]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for chunk in CHUNKS:
        times = [table[chunk, budget] for budget in BUDGETS_MIB]
        axes.plot(BUDGETS_MIB, times, marker="o", label=f"chunk {chunk}")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("cache (MiB)")
    axes.set_ylabel("seconds")
    axes.set_title(title)
    axes.legend()
    path = RESULTS / f"memory-{name}.png"
    figure.savefig(path, dpi=120)
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="a9a-wide", choices=list(CASES))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    case = CASES[options.case]
    X, y = case.load()
    RESULTS.mkdir(exist_ok=True)
    runs: dict[tuple[int, int], list[float]] = {(c, b): [] for c in CHUNKS for b in BUDGETS_MIB}
    for _ in range(options.repeat):
        for chunk, budget in runs:
            runs[chunk, budget].append(seconds(X, y, case, chunk, budget))
    table = {key: statistics.median(times) for key, times in runs.items()}
    print("chunk \\ MiB" + "".join(f"{b:>9d}" for b in BUDGETS_MIB))
    for chunk in CHUNKS:
        print(f"{chunk:11d}" + "".join(f"{table[chunk, b]:9.2f}" for b in BUDGETS_MIB))
    with (RESULTS / "memory.jsonl").open("a") as out:
        for (chunk, budget), value in table.items():
            record = {"case": options.case, "chunk": chunk, "mib": budget, "seconds": value}
            out.write(json.dumps(record) + "\n")
    print(draw(options.case, case.title, table))


if __name__ == "__main__":
    main()
