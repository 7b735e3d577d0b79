"""What the scaling plots go over: one quantity varies, all others stay as in a base problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks import cases
from benchmarks.cases import Case

BASE_ROWS, BASE_FEATURES = 16000, 60  # about a second of training on two cores
SMALL_ROWS = 800


@dataclass(frozen=True)
class Point:
    """One training: its problem, and kfu's settings."""

    case: Case
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sweep:
    """`point(value, is_small)` is the training at one value; small ones are for a trial run."""

    title: str
    axis: str
    values: tuple[float, ...]
    small_values: tuple[float, ...]
    point: Callable[[float, bool], Point]
    competitors: tuple[str, ...] = ("kfu",)
    repeat: int = 3
    has_growth: bool = False  # time is expected to be a power of the value


def base(
    is_small: bool, d: int = BASE_FEATURES, cost: float = 1.0, gamma: float | None = None
) -> Case:
    """Case a on fewer rows."""
    n = SMALL_ROWS if is_small else BASE_ROWS
    gamma = 1 / d if gamma is None else gamma
    return Case(f"made {n}×{d}", lambda: cases.many_clusters(n, d), cost, gamma)


def rows_point(value: float, is_small: bool) -> Point:
    n = int(value)
    load = cases.many_clusters if is_small else cases.many_clusters_head
    return Point(Case(f"made {n}×60", lambda: load(n), 1.0, 1 / 60))


def mixture_point(value: float, is_small: bool) -> Point:
    n = int(value)
    cost, gamma = cases.MIXTURE_COST, cases.MIXTURE_GAMMA
    return Point(Case(f"mixtures {n}×20", lambda: cases.gaussian_mixtures(n), cost, gamma))


def features_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small, d=int(value)))


def cost_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small, cost=value))


def gamma_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small, gamma=value / BASE_FEATURES))


def cache_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small), {"cache_mib": value})


def chunk_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small), {"chunk": int(value)})


def threads_point(value: float, is_small: bool) -> Point:
    return Point(base(is_small), {"threads": int(value)})


def thread_counts() -> tuple[float, ...]:
    """Powers of two up to the cores this process may run on, and these."""
    cores = len(os.sched_getaffinity(0))
    return tuple(sorted({min(2**k, cores) for k in range(cores.bit_length() + 1)}))


WITH_ONEDAL = ("kfu", "onedal")

SWEEPS: dict[str, Sweep] = {
    "n": Sweep(
        "case a with n",
        "rows",
        (2000, 4000, 8000, 16000, 32000, 64000),
        (500, 1000, 2000),
        rows_point,
        WITH_ONEDAL,
        repeat=1,
        has_growth=True,
    ),
    "mixture": Sweep(
        "Gaussian mixtures with n",
        "rows",
        (31250, 62500, 125000, 250000, 500000),
        (1000, 2000, 4000),
        mixture_point,
        repeat=1,
        has_growth=True,
    ),
    "d": Sweep(
        "features",
        "features (γ = 1/features)",
        (15, 30, 60, 120, 240, 480),
        (15, 30),
        features_point,
        WITH_ONEDAL,
    ),
    "C": Sweep("cost", "C", (0.01, 0.1, 1, 10, 100), (0.1, 1), cost_point, WITH_ONEDAL),
    "gamma": Sweep(
        "kernel width",
        "γ × features",
        (0.0625, 0.25, 1, 4, 16),
        (0.25, 1),
        gamma_point,
        WITH_ONEDAL,
    ),
    "cache": Sweep("cache", "--cache-mib", (4, 16, 64, 256, 1024, 4096), (4, 64), cache_point),
    "chunk": Sweep(
        "chunk", "--chunk", (128, 256, 512, 1024, 2048, 4096, 8192), (128, 256), chunk_point
    ),
    "threads": Sweep("threads", "--threads", thread_counts(), thread_counts(), threads_point),
}
