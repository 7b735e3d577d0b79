"""Following a path: from data and settings to a RegularisationPath."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu.data import Matrix, check_X, encode_labels, format_label
from kfu.errors import ConvergenceWarning, DataError, KfuError, SettingsError
from kfu.kernels import KernelSpec, psd_report
from kfu.machine_kinds import CLASSIFIER
from kfu.machines.task import TrainingTask
from kfu.machines.training import prepare
from kfu.paths.path import DataReference, RegularisationPath
from kfu.paths.recording import Recorder
from kfu.paths.registry import PathDefinition, Span, definition_of
from kfu.solvers import SolverSettings
from kfu.solvers.parametric import ParametricProblem, PathSettings, Track, Watch, follow

if TYPE_CHECKING:
    from kfu.scale import Scaler


FAILED = ("indefinite", "infeasible")  # ends of a track that is no path


@dataclass(frozen=True)
class FollowOptions:
    """How a path is followed: limits and resources. max_steps 0: no limit."""

    max_steps: int = 0
    threads: int = 0
    memory_mib: float = 1024.0
    ridge: float = 0.0


def svm_path(
    X: Any,
    y: Any = None,
    *,
    machine: str = "svc",
    parameter: str | None = None,
    kernel: str | KernelSpec = "rbf",
    gamma: Any = None,
    degree: int | None = None,
    coef0: float | None = None,
    cost: float = 1.0,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: Any = None,
    bias: bool | str | None = None,
    low: float | None = None,
    high: float | None = None,
    upward: bool = False,
    validate: tuple[Any, Any] | None = None,
    max_steps: int = 0,
    ridge: float = 0.0,
    threads: int = 0,
    memory_mib: float = 1024.0,
    progress: Callable[[Any], Any] | None = None,
    **options: Any,
) -> RegularisationPath:
    """Every solution of a machine as its parameter varies.

    machine and parameter: those of kfu.paths.registry.PATHS ("svc" in "lambda", "svr" in "lambda"
    or "epsilon", "one-class" and "nu-svc" in "nu"). low, high: the part of the path to follow, in
    values of the parameter; by default all of it. `upward` goes from low to high. validate: rows
    and labels whose error is counted all along the path. cost is that of a path in epsilon.
    max_steps 0 is no limit; a path that stops there warns with ConvergenceWarning. `ridge` is added
    to the diagonal of the kernel matrix. Further options are those of the machine: epsilon, ...

    Returns a RegularisationPath; its `at(C)` is the model at C.
    """
    if machine in ("rls", "rlsc"):
        raise SettingsError(f"the path of {machine} is a closed form: call kfu.paths.rls_path")
    definition = definition_of(machine, parameter)
    if isinstance(kernel, KernelSpec):
        spec = kernel
        if (gamma, degree, coef0) != (None, None, None):
            raise SettingsError(
                "a KernelSpec holds its own gamma, degree and coef0; set them there"
            )
    else:
        given = {"gamma": gamma, "degree": degree, "coef0": coef0}
        spec = KernelSpec.make(kernel, **{k: v for k, v in given.items() if v is not None})
    settings = FollowOptions(max_steps, threads, memory_mib, ridge)
    task = path_task(
        definition,
        X,
        y,
        kernel=spec,
        cost=cost,
        class_weight=class_weight,
        sample_weight=sample_weight,
        bias=bias,
        settings=solver_settings(settings),
        **options,
    )
    watched = None if validate is None else watched_rows(definition, task, *validate)
    path = follow_path(
        definition, task, Span(low, high, upward), settings, watched=watched, progress=progress
    )
    if not path.is_finished:
        warnings.warn(
            f"the path stopped early ({path.status}), at {path.parameter} = "
            f"{float(definition.value_of(float(path.track.t[-1]))):.6g}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return path


def solver_settings(options: FollowOptions) -> SolverSettings:
    """The settings of problems that are solved where a path begins."""
    return SolverSettings(
        tolerance=1e-8, threads=options.threads, cache_mib=options.memory_mib, polish=True
    )


def path_task(definition: PathDefinition, X: Any, y: Any, **arguments: Any) -> TrainingTask:
    """The checked task of a path; arguments as of kfu.machines.train."""
    task = prepare(X, y, machine=definition.machine, **arguments)
    if task.machine.kind == CLASSIFIER and len(task.classes) != 2:
        shown = ", ".join(format_label(value) for value in task.classes[:5])
        raise DataError(
            task.source,
            None,
            f"{len(task.classes)} classes ({shown}{', ...' if len(task.classes) > 5 else ''}), and "
            "a path is that of one machine between two",
            "keep the rows of two classes, or relabel the others",
        )
    if task.bias == "regularised":
        raise SettingsError("a path has a free bias or none; leave --regularised-bias out")
    definition.check(task)
    return task


def watched_rows(
    definition: PathDefinition, task: TrainingTask, X: Any, y: Any, source: str = "validation data"
) -> tuple[Matrix, np.ndarray]:
    """The validation rows as the kernel sees them and their signs ±1.

    DataError for labels that the training rows do not have.
    """
    if definition.signs(task) is None:
        raise SettingsError(
            f"machine {definition.machine} has no classes whose errors could be counted; leave the "
            "validation rows out"
        )
    X = check_X(X, source=source)
    width = task.X.shape[1]
    if X.shape[1] != width:
        raise DataError(
            source, None, f"{X.shape[1]} features where the path has {width}", "give the same ones"
        )
    if y is None:
        raise DataError(source, None, "no labels", "validation needs a label for each row")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise DataError(
            source, None, f"{labels.size} labels for {X.shape[0]} rows", "give one each"
        )
    if not X.shape[0]:
        raise DataError(source, None, "no rows", "give at least one row to validate with")
    if task.labels is None:  # novelty: the numbers are 1 inside and -1 outside
        codes = encode_labels(labels, np.array([-1.0, 1.0]))
    else:
        codes = encode_labels(labels, task.classes)
    if np.any(codes < 0):
        row = int(np.argmin(codes))
        raise DataError(
            source,
            None,
            f"label {format_label(labels[row])} in row {row + 1} is no class of the path",
            "give rows of its classes",
        )
    return X, np.where(codes == 1, 1.0, -1.0)


def follow_path(
    definition: PathDefinition,
    task: TrainingTask,
    span: Span,
    options: FollowOptions,
    *,
    watched: tuple[Matrix, np.ndarray] | None = None,
    progress: Callable[[Any], Any] | None = None,
    data: DataReference | None = None,
    scaler: Scaler | None = None,
    valid_file: str | None = None,
    embedded: str | None = None,
    to_file: str | None = None,
) -> RegularisationPath:
    """Follow the whole path of a checked task; `to_file` is written while it goes."""
    check_span(definition, span)
    problem = problem_of(definition, task, options)
    start = definition.start(task, problem, span)
    X, kernel = task.solver_kernel()

    def made(track: Track) -> RegularisationPath:
        return RegularisationPath(
            definition=definition,
            task=task,
            track=track,
            stop=start.stop,
            span=span,
            how=start.how,
            data=data,
            scaler=scaler,
            n_valid=0 if watched is None else len(watched[1]),
            valid_file=valid_file,
            options={"ridge": options.ridge} if options.ridge else {},
            embedded=embedded,
        )

    recorder = None if to_file is None else Recorder(to_file, made, progress)
    track = follow(
        problem,
        X,
        kernel,
        start=start.t,
        stop=start.stop,
        beta=start.beta,
        labels=definition.signs(task),
        watch=None if watched is None else Watch(*watched),
        settings=engine_settings(options),
        progress=recorder or progress,
    )
    path = made(track)
    if recorder is not None:
        if track.status in FAILED:
            recorder.discard()
        else:
            recorder.finish(path)
    check_track(track.status, task)
    return path


def engine_settings(options: FollowOptions) -> PathSettings:
    return PathSettings(
        max_steps=options.max_steps, threads=options.threads, memory_mib=options.memory_mib
    )


def problem_of(
    definition: PathDefinition, task: TrainingTask, options: FollowOptions
) -> ParametricProblem:
    """The parametric problem, with the ridge that was asked for."""
    problem = definition.problem(task)
    if options.ridge:
        extra = np.full(task.n, float(options.ridge))
        problem = replace(problem, ridge=extra if problem.ridge is None else problem.ridge + extra)
    return problem


def check_span(definition: PathDefinition, span: Span) -> None:
    """SettingsError for a span without an inside."""
    name = definition.parameter
    for value in (span.low, span.high):
        if value is not None and (not np.isfinite(value) or value < 0):
            raise SettingsError(f"{name} from {value!r}: give finite numbers that are not negative")
    if span.low is not None and span.high is not None and not span.low < span.high:
        raise SettingsError(
            f"no {name} lies between {span.low:g} and {span.high:g}; give a range with a smaller "
            "first number"
        )


def check_track(status: str, task: TrainingTask) -> None:
    """KfuError for a path that could not be followed at all."""
    if status == "indefinite":
        raise KfuError(indefinite_message(task))
    if status == "infeasible":
        raise DataError(
            task.source, None, "the problem has no solution on this path", "check the weights"
        )


def indefinite_message(task: TrainingTask) -> str:
    """What is wrong with a kernel that is not positive semidefinite, by its eigenvalues on a
    sample of the rows."""
    found = psd_report(task.X, task.kernel)
    return (
        f"{task.source}: kernel {task.kernel.describe()} is not positive semidefinite on these "
        f"rows (eigenvalues from {found['min_eigenvalue']:.3g} to {found['max_eigenvalue']:.3g} on "
        f"{found['sample']} of them), so there is no path; choose another kernel or add a --ridge"
    )
