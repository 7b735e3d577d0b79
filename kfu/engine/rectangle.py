"""`rectangle` over partitions: rows that no single memory, and no single machine, has to hold.

    (K_mℓ W K_ℓm + ridge K_mm) c = K_mℓ W Y                       (Rifkin 2002, section 3.7.2)

The sums over rows are sums over partitions: each worker adds up what it reads
(kfu.least_squares.normal_equations), and the sums are merged in a fixed tree. Passes over files:

survey    rows, columns and classes of each partition
centres   the rows drawn as centres are fetched
sums      the normal equations; m² numbers travel for each partition, whatever its rows
loo       to choose among several ridges, or where asked for: squares of the leave-one-out residuals

Random centres are those of the same seed in memory (kfu.engine.drawn_centres).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from kfu.engine import rectangle_tasks as tasks
from kfu.engine.dask_engine import DaskEngine
from kfu.engine.drawn_centres import CentreRule, find_centres
from kfu.engine.local import Engine, LocalEngine, Progress
from kfu.engine.partitions import PARTITION_BYTES, Partition, Paths, ReadSettings, plan
from kfu.engine.survey import (
    TARGETS,
    Survey,
    label_text,
    layout_of,
    survey_partition,
    union_of,
)
from kfu.errors import DataError, SettingsError
from kfu.kernel_registry import nearest
from kfu.kernels import KernelSpec
from kfu.least_squares.centres import SELECTIONS
from kfu.least_squares.low_rank_fit import checked_ridges
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.rectangle_cost import RectangleSizes, is_left_out_cheap


def _local(workers: int, progress: Progress | None, scheduler: str | None) -> Engine:
    if scheduler is not None:
        raise SettingsError("a scheduler is for the engine dask")
    return LocalEngine(workers, progress)


def _dask(workers: int, progress: Progress | None, scheduler: str | None) -> Engine:
    return DaskEngine(workers, progress, scheduler=scheduler)


ENGINES: dict[str, Callable[[int, Progress | None, str | None], Engine]] = {
    "local": _local,
    "dask": _dask,
}


class PartitionedFit(NamedTuple):
    """f_k(x) = Σ_j coef[j, k] K(centres[j], x) + bias[k]; classes None for numbers.

    info: figures of kfu.least_squares.rectangle, and `engine`, `workers`, `files`, `partitions`,
    `bytes_read` (in one pass), `n_features`, `kernel` (resolved), `zero_based`, `seconds` by pass
    and `task_seconds` by phase summed over tasks.
    """

    centres: Any
    coef: np.ndarray
    bias: np.ndarray
    classes: np.ndarray | None
    info: dict[str, Any]


def train_rectangle_partitioned(
    paths: Paths,
    *,
    kernel: KernelSpec,
    ridge: float | Sequence[float],
    n_centres: int,
    selection: str = "random",
    seed: int = 0,
    targets: str = "classes",
    classes: Sequence[Any] | None = None,
    code: Any = None,
    class_weight: Mapping[Any, float] | None = None,
    bias: bool = False,
    engine: str | Engine = "local",
    scheduler: str | None = None,
    workers: int = 0,
    precision: str = "float64",
    form: str = "auto",
    scaler: Any = None,
    block_rows: int = 0,
    partition_bytes: int = PARTITION_BYTES,
    loo: bool | str = False,
    progress: Progress | None = None,
    **reading: Any,
) -> PartitionedFit:
    """Fit the rows of all files; `paths` are files or patterns.

    ridge: λℓ, or several of which the one with the least leave-one-out square is taken.
    targets: `classes` makes columns ±1 (one column for two classes, the second positive, else one
        for each class against the rest), or what `code` (classes, t) says; `numbers` takes labels.
    classes: in their order; otherwise the labels that occur, sorted. class_weight: by label.
    scaler: a fitted kfu.scale.Scaler, applied to every block and to the centres.
    engine: a key of ENGINES, or an engine that has been entered (which brings its own workers and
        progress). scheduler: address for `dask`. workers: 0 takes every processor.
    loo: whether the leave-one-out square of a single ridge is wanted; "auto": where it costs little
        beside the sums (kfu.least_squares.rectangle_cost). Of several ridges it always is.
    block_rows: rows whose kernel values are held at a time (0: by the number of centres).
    reading: fields of ReadSettings (format, zero_based, label_column, header, n_features, dense,
        dtype).
    progress(stage, done, total): called for each partition.

    The result does not depend on the engine or the number of workers, and on `block_rows` and
    `partition_bytes` in the last bits only. A gamma rule that looks at values (scale, median) sees
    the sample that the centres are selected from.
    """
    known = [f.name for f in fields(ReadSettings)]
    for name in reading:
        if name not in known:
            raise SettingsError(f"unknown option {name!r}; {nearest(name, known)}")
    wanted = Wanted(
        kernel,
        checked_ridges(ridge),
        CentreRule(n_centres, selection, seed),
        targets,
        None if classes is None else _class_array(classes),
        None if code is None else np.atleast_2d(np.asarray(code, dtype=np.float64)),
        class_weight,
        bias,
        precision,
        form,
        scaler,
        block_rows,
        loo,
    )
    settings = ReadSettings(**reading)
    partitions = plan(paths, settings, partition_bytes)
    if isinstance(engine, str):
        if engine not in ENGINES:
            raise SettingsError(f"unknown engine {engine!r}; choose one of {', '.join(ENGINES)}")
        context: Any = ENGINES[engine](workers, progress, scheduler)
    else:
        context = nullcontext(engine)
    with context as entered:
        run = _Run(entered, partitions, settings, wanted)
        added = run.added()
    # Outside, so that the threads of linear algebra, and with them the last bits, are the same
    # whatever the engine.
    return run.solved(added)


def _class_array(classes: Sequence[Any]) -> np.ndarray:
    """Classes in the order given, as numbers when all of them are."""
    try:
        values = np.asarray([float(value) for value in classes], dtype=np.float64)
    except (TypeError, ValueError):
        values = np.asarray([label_text(value) for value in classes], dtype=str)
    if len(np.unique(values)) != len(values):
        raise SettingsError("a class is listed twice")
    return values


@dataclass(frozen=True)
class Wanted:
    """The settings of a fit, checked."""

    kernel: KernelSpec
    ridges: list[float]
    rule: CentreRule
    targets: str
    classes: np.ndarray | None
    code: np.ndarray | None
    class_weight: Mapping[Any, float] | None
    bias: bool
    precision: str
    form: str
    scaler: Any
    block_rows: int
    loo: bool | str

    def __post_init__(self) -> None:
        if self.kernel.is_precomputed:
            raise SettingsError("a precomputed kernel cannot be partitioned; train in memory")
        if self.loo not in (True, False, "auto"):
            raise SettingsError(f"loo is {self.loo!r}; it is True, False or 'auto'")
        if self.rule.m < 1:
            raise SettingsError(f"{self.rule.m} centres; at least one is needed")
        if self.block_rows < 0:
            raise SettingsError(f"block_rows must not be negative, not {self.block_rows}")
        if self.rule.selection not in SELECTIONS:
            hint = nearest(self.rule.selection, list(SELECTIONS))
            raise SettingsError(f"unknown selection of centres {self.rule.selection!r}; {hint}")
        if self.targets not in TARGETS:
            raise SettingsError(f"targets are {' or '.join(TARGETS)}, not {self.targets!r}")
        if self.targets == "numbers":
            for name in ("classes", "code", "class_weight"):
                if getattr(self, name) is not None:
                    raise SettingsError(f"{name} is for classes, the targets are numbers")


@dataclass
class _Added:
    """The sums over all rows, with what is needed to solve and describe them."""

    centres: Any
    job: tasks.Job
    sums: NormalEquations
    diagonal: float  # Σ w K(x, x)
    squares: np.ndarray | None  # of leave-one-out residuals, summed, for each ridge
    figures: dict[str, Any]


@dataclass
class _Run:
    """One fit: the passes over the partitions, in their order."""

    engine: Engine
    partitions: list[Partition]
    settings: ReadSettings
    wanted: Wanted
    seconds: dict[str, float] = field(default_factory=dict)

    def added(self) -> _Added:
        """What the passes over the partitions leave behind."""
        wanted, engine = self.wanted, self.engine
        surveys = self._timed("survey", self._survey)
        layout = layout_of(self.partitions, surveys, self.settings)
        classes = self._classes(surveys)
        code, class_weight = self._code(classes), self._class_weight(classes)

        def found() -> tuple[Any, KernelSpec, dict[str, Any]]:
            return find_centres(
                engine,
                self.partitions,
                surveys,
                layout,
                wanted.rule,
                wanted.kernel,
                wanted.scaler,
                wanted.ridges[0],
            )

        centres, kernel, figures = self._timed("centres", found)
        job = tasks.Job(
            layout,
            kernel,
            classes,
            code,
            class_weight,
            wanted.scaler,
            wanted.block_rows,
            wanted.ridges,
            wanted.bias,
        )
        job_there = engine.share(_itself, job)
        start = engine.share(tasks.blank, centres, job_there, wanted.precision, wanted.form)
        inhabited = [p for p, s in zip(self.partitions, surveys, strict=True) if s.rows]

        def reduced() -> Any:
            return engine.reduce(
                "sums", tasks.sum_partition, tasks.merge_sums, inhabited, start, job_there
            )

        total = self._timed("sums", reduced)
        squares = None
        if self._is_left_out(surveys, centres, job):
            squares = self._timed("loo", lambda: self._loo(total, start, job_there, inhabited))
        part = engine.fetch(total)
        sums = tasks.joined(part, engine.fetch(start))
        return _Added(centres, job, sums, part.diagonal, squares, figures)

    def solved(self, added: _Added) -> PartitionedFit:
        wanted, sums, figures = self.wanted, added.sums, dict(added.figures)
        sums.threads = 0
        chosen = 0
        if added.squares is not None:
            mean = added.squares / sums.total
            chosen = int(np.argmin(mean))
            figures |= {"ridges": wanted.ridges, "loo_square": mean.tolist()}
        fits = self._timed("solve", lambda: sums.solve([wanted.ridges[chosen]], bias=wanted.bias))
        figures["trace_portion"] = sums.trace() / added.diagonal if added.diagonal > 0.0 else 0.0
        info = self._info(fits[0].info, added.job.layout, added.job.kernel) | figures
        return PartitionedFit(added.centres, fits[0].coef, fits[0].bias, added.job.classes, info)

    def _timed(self, name: str, work: Callable[[], Any]) -> Any:
        begin = time.perf_counter()
        result = work()
        self.seconds[name] = time.perf_counter() - begin
        return result

    def _info(
        self, info: dict[str, Any], layout: ReadSettings, kernel: KernelSpec
    ) -> dict[str, Any]:
        wanted = self.wanted
        sizes = {p.path: p.size for p in self.partitions}
        return {
            **info,
            "engine": self.engine.name,
            "workers": self.engine.workers,
            "files": len(sizes),
            "partitions": len(self.partitions),
            "bytes_read": sum(sizes.values()),
            "n_features": layout.n_features,
            "zero_based": bool(layout.zero_based),
            "kernel": kernel.to_dict(),
            "selection": wanted.rule.selection,
            "seed": wanted.rule.seed,
            "task_seconds": info["seconds"],
            "seconds": dict(self.seconds),
        }

    # ---- survey ---------------------------------------------------------------------------------

    def _survey(self) -> list[Survey]:
        w = self.wanted
        settings, m = self.settings, w.rule.sample_size
        return self.engine.map(
            "survey", survey_partition, self.partitions, settings, w.targets, w.rule.seed, m
        )

    def _classes(self, surveys: list[Survey]) -> np.ndarray | None:
        if self.wanted.targets == "numbers":
            return None
        found = union_of([s.classes for s in surveys if s.classes is not None])
        if self.wanted.classes is not None:
            return self.wanted.classes
        if len(found) < 2:
            raise DataError(
                self.partitions[0].path,
                None,
                f"all labels are {label_text(found[0])}, a classifier needs two classes",
                "add examples of another class, or check which column holds the label",
            )
        return found

    def _code(self, classes: np.ndarray | None) -> np.ndarray | None:
        if classes is None:
            return None
        code = self.wanted.code
        if code is None:
            if len(classes) == 2:
                return np.array([[-1.0], [1.0]])
            return 2.0 * np.eye(len(classes)) - 1.0
        if code.shape[0] != len(classes):
            raise SettingsError(f"a code of {code.shape[0]} rows for {len(classes)} classes")
        return code

    def _class_weight(self, classes: np.ndarray | None) -> np.ndarray | None:
        given = self.wanted.class_weight
        if classes is None or not given:
            return None
        by_text = {label_text(label): float(value) for label, value in given.items()}
        texts = [label_text(label) for label in classes]
        for label, value in by_text.items():
            if label not in texts:
                raise SettingsError(f"class weight for {label}, which is no class")
            if not (np.isfinite(value) and value >= 0.0):
                raise SettingsError(f"class weight {value:g} of {label}; it must not be negative")
        return np.array([by_text.get(text, 1.0) for text in texts])

    # ---- leave-one-out --------------------------------------------------------------------------

    def _is_left_out(self, surveys: list[Survey], centres: Any, job: tasks.Job) -> bool:
        wanted = self.wanted
        if len(wanted.ridges) > 1 or wanted.loo != "auto":
            return len(wanted.ridges) > 1 or bool(wanted.loo)
        n, (m, d) = sum(survey.rows for survey in surveys), centres.shape
        return is_left_out_cheap(RectangleSizes(n, d, m, m, job.outputs))

    def _loo(self, total: Any, start: Any, job: Any, partitions: list[Partition]) -> np.ndarray:
        sums = self.engine.share(tasks.joined, total, start)
        squares = self.engine.map("loo", tasks.loo_partition, partitions, sums, job)
        return np.asarray(np.add.reduce(squares, axis=0))


def _itself(value: Any) -> Any:
    return value
