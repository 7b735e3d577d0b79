"""The forecast of a training: which method it would take, its seconds and its peak of memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.forecast.laws import Pilot, extrapolated, grown_rank
from kfu.forecast.pilots import part_of, pilot_sizes, run_pilot
from kfu.forecast.plans import PLANS, Plan
from kfu.forecast.process_memory import peak_bytes, resident_bytes, seconds_per_byte
from kfu.least_squares.memory import available_bytes
from kfu.least_squares.whitening import row_blocks
from kfu.machines import low_rank_svc
from kfu.machines.least_squares import is_weights
from kfu.machines.square_loss.full import LARGEST_SPECTRUM, chosen_method
from kfu.machines.square_loss.low_rank import RIDGE_STEPS, checked_centres, is_left_out
from kfu.machines.square_loss.run import USUAL_CENTRES, Run
from kfu.machines.task import TrainingTask

LINEAR_RIDGES = 41
TINY = {"n": 64, "m": 16, "d": 64}  # sizes that leave no memory behind
KERNEL_SAMPLE = 256  # rows whose kernel values with all others are timed
SOLVER_ROW_BYTES = 200.0  # of a dual solver's arrays
LEAST_SQUARES = ("rls", "rlsc")
MIB = 2.0**20


@dataclass
class Forecast:
    """seconds: by phase, {} where it depends on the data. arrays: bytes of the training by name.

    flops: operations by phase. rates: of the pilots, in operations a second. is_certain: False
    where steps are taken until something that the data decide is reached. hints: seconds of
    comparable work, where there is no forecast.
    """

    method: str
    seconds: dict[str, float]
    arrays: dict[str, float]
    peak_bytes: float
    available: int | None
    flops: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    is_certain: bool = True
    hints: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    pilot_seconds: float = 0.0

    @property
    def total(self) -> float | None:
        return sum(self.seconds.values()) if self.seconds else None

    @property
    def fits(self) -> bool | None:
        needed = sum(self.arrays.values())
        return None if self.available is None else needed <= self.available


def forecast(task: TrainingTask) -> Forecast:
    """Without training on more than pilots. SettingsError or DataError where training refuses."""
    if task.machine.name in LEAST_SQUARES:
        return of_least_squares(task)
    return of_other(task)


# ---- least squares -------------------------------------------------------------------------------


def of_least_squares(task: TrainingTask) -> Forecast:
    begin = time.perf_counter()
    run = Run(task, targets_of(task))
    run.check_left_out()
    method = method_of(run)
    plan = PLANS[method]
    sizes = sizes_of(run)
    before, available = peak_bytes(), available_bytes()
    per_byte = seconds_per_byte(sum(plan.arrays(sizes).values()))
    options = pilot_options(method, bool(sizes["left_out"]))
    chosen = pilot_sizes(plan, sizes)
    tiny = {name: min(size, TINY[name]) for name, size in chosen[-1].items()}
    run_pilot(part_of(task, tiny, **options), 1)  # threads, buffers and modules are there now
    held = resident_bytes()
    pilots = [run_pilot(part_of(task, size, **options)) for size in chosen]
    if "m" in plan.grows:
        sizes["r"] = grown_rank(pilots, sizes["m"])
    terms = plan.terms if run.takes_all else {}
    usual = plan.usual if run.takes_all else PLANS["psvm"].usual  # of a code's parts: n³ and n²
    seconds = extrapolated(pilots, terms, usual, sizes)
    arrays = plan.arrays(sizes)
    seconds["memory"] = per_byte * sum(arrays.values())
    peak = max(before, held + max(sum(arrays.values()), model_bytes(run, method)))
    found = Forecast(
        method,
        seconds,
        arrays,
        peak,
        available,
        plan.flops(sizes),
        rates_of(plan, pilots[0], sizes),
        plan.is_certain,
        notes=list(run.warnings),
    )
    if not plan.is_certain:
        found.notes.append("the number of steps depends on the data: the seconds are a guess")
    found.pilot_seconds = time.perf_counter() - begin
    return found


def targets_of(task: TrainingTask) -> np.ndarray:
    if task.targets is not None:
        return task.targets[:, None]
    assert task.code is not None
    return task.code[task.labels].astype(np.float64)


def method_of(run: Run) -> str:
    """The name in PLANS of what training would do."""
    options = run.task.options
    if options["approximation"] != "none":
        checked_centres(run)
        return str(options["approximation"])
    if is_weights(run):
        return linear_method(run)
    if options["prune"] is not None:
        return "pruned ls-svm"
    if run.task.bias == "regularised":
        return "psvm"
    if chosen_method(run) == "cg":
        return "cg"
    is_chosen = run.asked_ridge() is None and run.takes_all and run.n_rows <= LARGEST_SPECTRUM
    return "spectrum" if is_chosen else "cholesky"


def linear_method(run: Run) -> str:
    n, d = run.n_rows, run.task.X.shape[1]
    if run.method == "cg" or (run.method == "auto" and min(n, d) > LARGEST_SPECTRUM):
        return "linear cg"
    if run.method in ("primal", "dual"):
        return run.method
    return "primal" if d <= n else "dual"


def sizes_of(run: Run) -> dict[str, float]:
    task = run.task
    m = float(task.options["centres"] or min(USUAL_CENTRES, run.n_rows))
    ridges = 1.0
    if run.asked_ridge() is None:
        ridges = float(LINEAR_RIDGES if is_weights(run) else len(RIDGE_STEPS))
    block = next(row_blocks(run.n_rows, int(m)))
    return {
        "n": float(run.n_rows),
        "d": float(task.X.shape[1]),
        "t": float(run.targets.shape[1]),
        "m": m,
        "r": m,
        "b": float(block.stop - block.start),
        "ridges": ridges,
        "left_out": float(has_left_out(run, int(m))),
        "entries": float(task.X.nnz if sp.issparse(task.X) else task.X.size),
    }


def has_left_out(run: Run, m: int) -> bool:
    """Whether training computes leave-one-out figures (of methods that have none: it is no use)."""
    if run.task.options["approximation"] == "rectangle":
        return is_left_out(run, m)
    return run.when_left_out != "never"


def pilot_options(method: str, left_out: bool) -> dict[str, Any]:
    """So that a pilot takes the method of the whole, and leaves out rows if the whole does."""
    forced = {"cholesky": "cholesky", "cg": "cg", "linear cg": "cg"}
    forced |= {"primal": "primal", "dual": "dual"}
    wanted = {"method": forced[method]} if method in forced else {}
    return {**wanted, "loo": "always" if left_out else "never"}


def model_bytes(run: Run, method: str) -> float:
    """The support vectors of the model, and their bytes on the way to the file."""
    if method in ("primal", "dual", "linear cg") or run.task.kernel.is_precomputed:
        return 0.0
    X = run.task.X
    size = float(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)
    share = 1.0
    if method in ("rectangle", "subset", "falkon"):
        share = sizes_of(run)["m"] / run.n_rows
    return 2.0 * share * size


def rates_of(plan: Plan, pilot: Pilot, sizes: dict[str, float]) -> dict[str, float]:
    """Operations a second of the phases of the largest pilot that have a count."""
    flops = plan.flops({**sizes, **pilot.sizes})
    return {
        phase: flops[phase] / seconds
        for phase, seconds in pilot.seconds.items()
        if phase in flops and seconds > 0
    }


# ---- the others ----------------------------------------------------------------------------------


def of_other(task: TrainingTask) -> Forecast:
    """Memory, and the seconds of the kernel values: how many are needed the data decide."""
    begin = time.perf_counter()
    before, available = peak_bytes(), available_bytes()
    n = float(task.n)
    rate = kernel_rate(task)
    held = resident_bytes()
    arrays = arrays_of_other(task, n)
    found = Forecast(
        method_of_other(task),
        {},
        arrays,
        max(before, held + sum(arrays.values())),
        available,
        {"all kernel values": n * n * 2.0 * task.X.shape[1]},
        {"kernel values": rate},
        is_certain=False,
        hints={
            "all kernel values once": n * n / rate,
            "kernel values of 1000 support vectors": min(n, 1000.0) * n / rate,
        },
        notes=["the number of steps depends on the data: the time is not predicted"],
    )
    found.pilot_seconds = time.perf_counter() - begin
    return found


def kernel_rate(task: TrainingTask) -> float:
    """Kernel values a second."""
    from kfu._gram import Gram

    gram = Gram(task.X, task.kernel, "float32", task.settings.n_threads)
    rows = np.linspace(0, task.n - 1, min(KERNEL_SAMPLE, task.n)).astype(np.int64)
    gram.block(rows[:8], None)
    begin = time.perf_counter()
    gram.block(rows, None)
    return float(rows.size) * task.n / max(time.perf_counter() - begin, 1e-9)


def method_of_other(task: TrainingTask) -> str:
    form = task.options.get("approximation", "none")
    return task.machine.name if form == "none" else f"hinge loss, {form}"


def arrays_of_other(task: TrainingTask, n: float) -> dict[str, float]:
    if task.options.get("approximation", "none") != "none":
        m = float(low_rank_svc.checked_centres(task))
        block = next(row_blocks(int(n), int(m)))
        return {
            "features": 8.0 * n * m,
            "factors": 8.0 * 4 * m * m,
            "blocks": 8.0 * 2 * (block.stop - block.start) * m,
        }
    if task.machine.name == "kpm":
        return {"spectrum": 8.0 * 3 * n * n}
    if task.machine.name in ("centroid", "parzen", "nadaraya-watson", "knn"):
        return {"blocks of kernel values": min(8.0 * n * n, 64 * MIB)}
    machines = 1 if task.code is None else task.code.shape[1]
    cache = min(task.settings.cache_mib * MIB, 4.0 * n * n)
    return {"kernel values": cache, "solver": SOLVER_ROW_BYTES * n + 24.0 * n * machines}
