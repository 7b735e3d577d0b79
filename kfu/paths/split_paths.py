"""The paths of the splits of one training task, validated with the rows each leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.machines.task import TrainingTask
from kfu.paths.following import FollowOptions, follow_path, path_task, solver_settings
from kfu.paths.registry import PathDefinition, Span
from kfu.paths.selection import PathSplit, SplitCurve, ValidationCurves, follow_splits

__all__ = ["check_splits", "follow_task_splits", "task_of_split"]


def task_of_split(
    definition: PathDefinition, task: TrainingTask, split: PathSplit, limits: FollowOptions
) -> TrainingTask:
    """The task of the training rows of a split: kernel, bias and weights are those of `task` (a
    derived gamma and balanced weights are thus of all rows), times how often a row was drawn."""
    check_splits(definition, task)
    assert task.labels is not None
    counts = 1.0 if split.counts is None else split.counts
    return path_task(
        definition,
        task.X[split.train],
        task.classes[task.labels[split.train]],
        kernel=task.kernel,
        sample_weight=task.weights[split.train] * counts,
        bias=task.bias,
        settings=solver_settings(limits),
        source=f"a split of {task.source}",
        **task.options,
    )


def check_splits(definition: PathDefinition, task: TrainingTask) -> None:
    """SettingsError for a task whose splits could not be followed and validated."""
    if task.labels is None or definition.parameter != "lambda":
        raise SettingsError(
            "folds and bootstrap samples validate classifiers along lambda, not machine "
            f"{definition.machine} in {definition.parameter}; leave them out"
        )
    if task.kernel.is_precomputed:
        raise SettingsError(
            "folds and bootstrap samples do not take a precomputed kernel; leave them out"
        )


def follow_task_splits(
    definition: PathDefinition,
    task: TrainingTask,
    parts: Sequence[PathSplit],
    *,
    span: Span | None = None,
    limits: FollowOptions | None = None,
    rescale: bool = False,
    by_rows: bool = False,
    on_split: Callable[[int, SplitCurve], None] | None = None,
) -> ValidationCurves:
    """The validation curves of `parts` (kfu.paths.selection.splits); one thread for each path, as
    many at a time as limits.threads allows, the memory shared between them."""
    limits = limits or FollowOptions()
    span = span or Span()
    threads = max(1, min(solver_settings(limits).n_threads, len(parts)))
    own = replace(limits, threads=1, memory_mib=limits.memory_mib / threads)
    signs = definition.signs(task)

    def follow(split: PathSplit) -> Any:
        part = task_of_split(definition, task, split, own)
        assert signs is not None
        watched = (task.X[split.valid], signs[split.valid])
        return follow_path(definition, part, span, own, watched=watched).track

    return follow_splits(
        parts,
        follow,
        n=float(np.count_nonzero(task.weights)),
        threads=threads,
        rescale=rescale,
        by_rows=by_rows,
        on_split=on_split,
    )
