"""From the options of ``kfu path`` to tasks, spans, validation rows and splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.cli import console, inputs
from kfu.cli.training_setup import data_options, read_training_data, scaled
from kfu.data import Dataset, Matrix, with_columns
from kfu.errors import DataError, SettingsError
from kfu.kernels import KERNELS, KernelSpec, suggest_gamma
from kfu.machines.task import TrainingTask
from kfu.paths.following import FollowOptions, path_task, solver_settings, watched_rows
from kfu.paths.loading import embedded
from kfu.paths.path import DataReference, RegularisationPath
from kfu.paths.registry import PathDefinition, Span
from kfu.paths.selection import PathSplit, SplitCurve, ValidationCurves, splits
from kfu.paths.split_paths import check_splits, follow_task_splits
from kfu.scale import Scaler


@dataclass
class RawRows:
    """The rows of a path as they were read and scaled, and what they are trained with."""

    X: Matrix
    dataset: Dataset
    kernel: KernelSpec  # resolved
    scaler: Scaler | None
    class_weight: Any
    sample_weight: np.ndarray | None
    file: str | None
    reader: dict[str, Any]

    def reference(self, task: TrainingTask) -> DataReference:
        return DataReference(task.fingerprint()["data"], self.file, self.reader)


@dataclass
class PathRows:
    """The checked task of a path, and how its rows came to be."""

    task: TrainingTask
    scaler: Scaler | None
    reference: DataReference | None

    def embedded(self) -> str:
        """The rows as text for the header of a path file."""
        task = self.task
        return embedded(task.X, task.targets if task.labels is None else task.classes[task.labels])


def follow_options(opts: dict[str, Any]) -> FollowOptions:
    return FollowOptions(
        max_steps=opts["max_steps"],
        threads=opts["threads"],
        memory_mib=opts["cache_mib"],
        ridge=opts["ridge"],
    )


def span_of(parameter: str, opts: dict[str, Any]) -> Span:
    """The part of the path that -c, --min and --max ask for."""
    low, high = opts["low"], opts["high"]
    if opts["cost"] is not None and parameter == "lambda":
        if low is not None or high is not None:
            raise SettingsError("-c and --min or --max both give the range; give one of them")
        least, most = opts["cost"]
        if least is not None and most is not None and not least < most:
            raise SettingsError(f"-c {least:g},{most:g}: no C lies between; give LO < HI")
        high = None if least is None else 1.0 / least
        low = None if most is None or np.isinf(most) else 1.0 / most
    if low is not None and high is not None and not low < high:
        raise SettingsError(
            f"no {parameter} lies between --min {low:g} and --max {high:g}; give a smaller --min"
        )
    return Span(low, high, opts["upward"])


def fixed_cost(definition: PathDefinition, opts: dict[str, Any]) -> float:
    """C of a path in epsilon."""
    if definition.parameter == "lambda" or opts["cost"] is None:
        return 1.0
    low, high = opts["cost"]
    if definition.parameter == "nu":
        raise SettingsError(f"machine {definition.machine} has no cost; leave -c out")
    if low != high or low is None:
        raise SettingsError("-c LO,HI is for a path in lambda; give the one C of a path in epsilon")
    return float(low)


def read_raw(data: str, opts: dict[str, Any]) -> RawRows:
    """Read and scale the training rows."""
    kernel = inputs.kernel_of(opts)
    dataset = read_training_data(data, opts, kernel)
    given = data_options(dataset, opts)
    X, scaler = scaled(dataset, opts["scale"])
    if kernel.params.get("gamma") == "median":
        kernel = kernel.with_params(gamma=suggest_gamma(X, seed=opts["seed"]))
    kernel = kernel.resolve(X)
    if opts["validate"]:
        X = widened(X, dataset, kernel, scaler, opts)
    reader = inputs.reader_options(opts)
    reader.pop("threads")
    reader["zero_based"] = dataset.zero_based
    if dataset.format not in ("csv", "tsv", "npy"):
        reader = {"format": reader["format"], "zero_based": reader["zero_based"]}
    return RawRows(
        X=X,
        dataset=dataset,
        kernel=kernel,
        scaler=scaler,
        class_weight=given["class_weight"],
        sample_weight=given["sample_weight"],
        file=None if data == "-" else data,
        reader=reader,
    )


def read_rows(definition: PathDefinition, data: str, opts: dict[str, Any]) -> PathRows:
    """Read, scale and check the rows of an exact path."""
    cost = fixed_cost(definition, opts)
    more = epsilon_option(definition.machine, definition.parameter, opts)
    raw = read_raw(data, opts)
    task = path_task(
        definition,
        raw.X,
        raw.dataset.y,
        kernel=raw.kernel,
        cost=cost,
        class_weight=raw.class_weight,
        sample_weight=raw.sample_weight,
        bias=opts["bias"],
        settings=solver_settings(follow_options(opts)),
        source=raw.dataset.source,
        **more,
    )
    return PathRows(task, raw.scaler, raw.reference(task))


def epsilon_option(machine: str, parameter: str, opts: dict[str, Any]) -> dict[str, float]:
    if opts["epsilon"] is None:
        return {}
    if (machine, parameter) != ("svr", "lambda"):
        raise SettingsError("--epsilon is for the path of svr in lambda; leave it out")
    return {"epsilon": opts["epsilon"]}


def rows_of_loaded(path: RegularisationPath) -> PathRows:
    return PathRows(path.task, path.scaler, path.data)


# ---- validation rows ------------------------------------------------------------------------


def validation_data(opts: dict[str, Any], is_precomputed: bool) -> Dataset:
    return inputs.read_data(opts["validate"], opts, precomputed=is_precomputed)


def widened(
    X: Matrix, dataset: Dataset, kernel: KernelSpec, scaler: Scaler | None, opts: dict[str, Any]
) -> Matrix:
    """X with the features that only the validation rows have, which are zero in all its rows.

    As in prediction: they count, unless kernel or scaler have a parameter for each feature.
    """
    if kernel.is_precomputed or not (dataset.from_sparse_text or sp.issparse(X)):
        return X
    if has_feature_parameters(kernel, scaler):
        return X
    width = validation_data(opts, False).n_features
    return with_columns(X, max(width, X.shape[1]))


def has_feature_parameters(kernel: KernelSpec, scaler: Scaler | None) -> bool:
    by_feature = any(KERNELS[leaf.name].is_per_feature for leaf in kernel.leaves())
    return by_feature or (scaler is not None and scaler.factor is not None)


def read_validation(
    definition: PathDefinition, rows: PathRows, opts: dict[str, Any]
) -> tuple[Matrix, np.ndarray]:
    """The rows of --validate as the kernel sees them, and their signs."""
    task = rows.task
    dataset = validation_data(opts, task.kernel.is_precomputed)
    X = dataset.X
    width = task.X.shape[1]
    if dataset.from_sparse_text or sp.issparse(X):
        if X.shape[1] > width:
            console.warn(
                f"{dataset.source}: {X.shape[1]} features where the path has {width}; the others "
                "are ignored"
            )
        X = with_columns(X, width)
    elif X.shape[1] != width:
        what = "kernel values a row" if task.kernel.is_precomputed else "features"
        raise DataError(
            dataset.source,
            None,
            f"{X.shape[1]} {what} where the path has {width}",
            "give the same features, in their order",
        )
    if rows.scaler is not None:
        X = rows.scaler.transform(X)
    task.kernel.check_data(X, source=dataset.source, is_square=False)
    return watched_rows(definition, task, X, dataset.y, dataset.source)


# ---- splits ---------------------------------------------------------------------------------


def splits_wanted(opts: dict[str, Any]) -> bool:
    return bool(opts["folds"] or opts["bootstrap"])


def split_parts(
    definition: PathDefinition, task: TrainingTask, opts: dict[str, Any]
) -> list[PathSplit]:
    """The splits of --folds or --bootstrap; none without them."""
    if not splits_wanted(opts):
        return []
    check_splits(definition, task)
    kind = "bootstrap" if opts["bootstrap"] else "stratified"
    k = opts["bootstrap"] or opts["folds"]
    with console.library_warnings():
        return splits(kind, task.n, k=k, labels=task.labels, seed=opts["seed"])


def split_curves(
    definition: PathDefinition,
    task: TrainingTask,
    parts: list[PathSplit],
    span: Span,
    limits: FollowOptions,
    opts: dict[str, Any],
) -> ValidationCurves | None:
    """The paths of the splits and their averaged validation errors."""
    if not parts:
        return None

    def tell(number: int, curve: SplitCurve) -> None:
        console.note(
            f"split {number + 1}/{len(parts)}: {curve.n_breakpoints} breakpoints, least error "
            f"{curve.error.minimum:.4g}"
        )

    return follow_task_splits(
        definition,
        task,
        parts,
        span=span,
        limits=limits,
        rescale=opts["rescale"],
        on_split=tell,
    )
