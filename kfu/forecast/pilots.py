"""Pilots: the same training on part of the rows, of the centres and of the features."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.forecast.laws import Pilot
from kfu.forecast.plans import Plan
from kfu.machines.task import TrainingTask

SMALL = 400  # a size up to which pilots take all of it
SHARES = (1.0, 0.6, 0.35)  # of the largest pilot, where one size grows
FEWER = 0.4  # of it, where two grow
REPEATS, REPEATED_SECONDS = 5, 0.6  # runs of a pilot, and the time after which there are no more


def pilot_sizes(plan: Plan, sizes: Mapping[str, float]) -> list[dict[str, int]]:
    """The sizes of the pilots, the largest first."""
    largest = {
        name: int(sizes[name]) if sizes[name] <= SMALL else int(min(most, sizes[name] / 2))
        for name, most in plan.grows.items()
    }
    if "m" in largest:
        largest["m"] = min(largest["m"], largest["n"])
    if len(largest) == 1:
        shares: list[tuple[float, ...]] = [(share,) for share in SHARES]
    else:
        shares = list(itertools.product((1.0, FEWER), repeat=len(largest)))
    found = []
    for share in shares:
        chosen = {
            name: max(int(part * most), 2)
            for part, (name, most) in zip(share, largest.items(), strict=True)
        }
        if chosen.get("m", 0) <= chosen["n"]:
            found.append(chosen)
    return found


def part_of(task: TrainingTask, chosen: Mapping[str, int], **options: Any) -> TrainingTask:
    """The task on `chosen` rows, centres and features, drawn with the seed of the task."""
    rng = np.random.default_rng(task.seed)
    trained = np.flatnonzero(task.weights > 0)
    rows = np.sort(rng.permutation(trained)[: chosen["n"]])
    X = task.X[rows]
    if task.kernel.is_precomputed:
        X = X[:, rows]
    elif "d" in chosen and chosen["d"] < X.shape[1]:
        X = X[:, np.sort(rng.permutation(X.shape[1])[: chosen["d"]])]
    X = X if sp.issparse(X) else np.ascontiguousarray(X)
    if "m" in chosen:
        options["centres"] = chosen["m"]
    return dataclasses.replace(
        task,
        X=X,
        n=len(rows),
        labels=None if task.labels is None else task.labels[rows],
        targets=None if task.targets is None else task.targets[rows],
        weights=task.weights[rows],
        row_weights=task.row_weights[rows],
        options={**task.options, **options},
        progress=None,
        store=None,
    )


def run_pilot(part: TrainingTask, most: int = REPEATS) -> Pilot:
    """The shortest seconds of each phase in up to `most` runs: what else the machine does now
    can only lengthen them."""
    begin = time.perf_counter()
    found: dict[str, float] = {}
    for _ in range(most):
        model = part.machine.train(part)
        for phase, seconds in model.info["seconds"].items():
            found[phase] = min(found.get(phase, np.inf), seconds)
        if time.perf_counter() - begin > REPEATED_SECONDS:
            break
    sizes = {
        "n": float(part.n),
        "d": float(part.X.shape[1]),
        "m": float(model.info.get("centres") or part.options.get("centres") or part.n),
        "entries": float(part.X.nnz if sp.issparse(part.X) else part.X.size),
    }
    sizes["r"] = float(model.info.get("rank") or sizes["m"])
    return Pilot(sizes, found)
