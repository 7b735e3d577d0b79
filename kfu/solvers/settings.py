"""What a caller may ask of the dual solver: the registry of solvers and the settings object."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass
from typing import Any

from kfu.errors import SettingsError


@dataclass(frozen=True)
class SolverKind:
    """An outer loop: how it chooses the variables of a subproblem, and what it is."""

    working_set: str  # name of the rule in csrc/kfu/settings.h
    summary: str


SOLVERS: dict[str, SolverKind] = {
    "auto": SolverKind(
        "svmfu", "svmfu, or coordinate descent and Newton steps on w where the kernel is linear"
    ),
    "svmfu": SolverKind(
        "svmfu", "chunks that keep unbounded SVs and refill by violation (Rifkin 2002)"
    ),
    "svmlight": SolverKind(
        "svmlight", "the q steepest feasible variables each round, LRU rows (Joachims 1998)"
    ),
    "osuna": SolverKind(
        "osuna", "sequential scan for violators, replacing satisfied points (Osuna 1997)"
    ),
    "smo": SolverKind(
        "keerthi", "the maximal violating pair, round by round (Platt 1998, Keerthi)"
    ),
}

PRECISIONS = ("auto", "float32", "float64")
SELECTIONS = ("second", "first")
SIMD_LEVELS = ("best", "baseline", "avx2", "avx512")


@dataclass(frozen=True)
class SolverSettings:
    """Settings of the dual solver. Names are those of the command-line options.

    tolerance: bound on the gap of the maximal violating pair, met by float64 kernel values.
    cache_mib: budget of the kernel cache (square and rectangular tier) in MiB.
    chunk: variables per subproblem; 0 chooses and adapts.
    threads: 0 uses every core this process may run on.
    precision: of kernel rows. "auto" uses float32, refines in float64, and changes to float64 rows
        when refinement does not reach the tolerance.
    selection: second-order or first-order (maximal violating pair) choice inside a subproblem.
    max_iterations: 0 for max(10⁷, 100·n), as LIBSVM has it: badly scaled data end with a message
        instead of seeming to hang.
    max_seconds: 0 for no limit.
    polish: problems of at most 512 variables go on from the tolerance to rounding accuracy, in
        float64; a row of weight two is then a row given twice, to ten digits.
    """

    solver: str = "auto"
    tolerance: float = 1e-3
    cache_mib: float = 1024.0
    chunk: int = 0
    threads: int = 0
    precision: str = "auto"
    selection: str = "second"
    shrinking: bool = True
    max_iterations: int = 0
    max_seconds: float = 0.0
    simd: str = "best"
    polish: bool = False

    def __post_init__(self) -> None:
        choices = {
            "solver": tuple(SOLVERS),
            "precision": PRECISIONS,
            "selection": SELECTIONS,
            "simd": SIMD_LEVELS,
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed:
                raise SettingsError(f"{name} is {value!r}; choose one of {', '.join(allowed)}")
        limits: dict[str, tuple[float, bool]] = {  # name: least value, whether it is allowed itself
            "tolerance": (0.0, False),
            "cache_mib": (0.0, True),
            "chunk": (0, True),
            "threads": (0, True),
            "max_iterations": (0, True),
            "max_seconds": (0.0, True),
        }
        for name, (least, inclusive) in limits.items():
            value = getattr(self, name)
            if not math.isfinite(value) or value < least or (value == least and not inclusive):
                bound = "at least" if inclusive else "greater than"
                raise SettingsError(f"{name} is {value!r}; it has to be {bound} {least:g}")
        if self.chunk == 1:
            raise SettingsError("chunk is 1; a subproblem has at least 2 variables (0: automatic)")

    @property
    def n_threads(self) -> int:
        """The number of threads to use, `threads` or every core this process may run on."""
        return self.threads or len(os.sched_getaffinity(0))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def core_options(self) -> dict[str, Any]:
        """What the compiled solver takes, by its names."""
        return {
            "working_set": SOLVERS[self.solver].working_set,
            "pair": self.selection,
            "precision": self.precision,
            "tolerance": self.tolerance,
            "cache_bytes": self.cache_mib * 2.0**20,
            "chunk": self.chunk,
            "threads": self.n_threads,
            "shrinking": self.shrinking,
            "max_iterations": self.max_iterations,
            "simd": self.simd,
            "polish": self.polish,
        }
