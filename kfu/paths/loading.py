"""Reading a path back: the file and the rows it was followed on make the same path again.

The header names the file of the rows and how it was read, or holds the rows themselves
(`embedded`). They are recognised by a fingerprint of what the solver saw: features after scaling,
labels, weights.
"""

from __future__ import annotations

import base64
import io
import os
import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import with_columns
from kfu.errors import DataError, SettingsError
from kfu.io import read_dataset
from kfu.kernels import KernelSpec
from kfu.machines.task import TrainingTask
from kfu.paths.following import FollowOptions, path_task, problem_of, solver_settings
from kfu.paths.path import DataReference, RegularisationPath
from kfu.paths.path_file import PathFile, is_table, read_path_file
from kfu.paths.ranges import items_of
from kfu.paths.registry import PathDefinition, Span, definition_of
from kfu.paths.replay import columns_of, track_of
from kfu.scale import Scaler

NOT_OPTIONS = frozenset({"bias", "class_weight", "cost", "ridge"})  # of a header's settings


def load_path(
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    train: str | None = None,
    threads: int = 0,
) -> RegularisationPath:
    """The path in a file that `save` or 'kfu path' wrote.

    The training rows come from X and y (as they were given, before any scaling), from the file
    `train`, from the path file if it holds them, or from the file that it names. DataError when
    they are not the rows of the path.
    """
    found = read_path_file(path)
    return path_of(found, X, y, train=train, threads=threads)


def path_of(
    found: PathFile, X: Any = None, y: Any = None, *, train: str | None = None, threads: int = 0
) -> RegularisationPath:
    """`load_path` of a file that was read."""
    header = found.header
    if is_table(header):
        raise DataError(
            found.name,
            None,
            "a table of solutions (of --gap, or of least squares), not a whole path",
            "'kfu path FILE --at C' trains a model at one of its values",
        )
    definition = definition_of(header["machine"], header["parameter"])
    scaler = Scaler.from_dict(header["scaler"], found.name) if header.get("scaler") else None
    X, y, source = rows_of_path(found, X, y, train, scaler)
    task = rebuilt_task(found, definition, X, y, source, threads)
    options = FollowOptions(threads=threads, ridge=header["settings"].get("ridge", 0.0))
    span = header.get("span") or {}
    validation = header.get("validation") or {}
    words = definition.vocabulary(task)
    try:
        sets = {word: items_of(ranges) for word, ranges in header["start"]["sets"].items()}
        first = words.states_of(sets)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            found.name, 1, f"a damaged header of a path file ({error})", "compute the path again"
        ) from None
    track = track_of(
        found,
        definition,
        task,
        problem_of(definition, task, options),
        words,
        first,
        n_valid=validation.get("n", 0),
    )
    path = RegularisationPath(
        definition=definition,
        task=task,
        track=track,
        stop=float(span.get("stop") or 0.0),
        span=Span(span.get("low"), span.get("high"), bool(span.get("upward"))),
        how=header["start"].get("how", ""),
        data=DataReference(**header["data"]),
        scaler=scaler,
        n_valid=validation.get("n", 0),
        valid_file=validation.get("file"),
        options={"ridge": options.ridge} if options.ridge else {},
        embedded=header.get("embedded"),
        is_from_file=True,
    )
    path._columns = columns_of(found)
    return path


def rebuilt_task(
    found: PathFile, definition: PathDefinition, X: Any, y: Any, source: str, threads: int
) -> TrainingTask:
    """The task of the path over these rows; DataError unless they are its rows."""
    header = found.header
    check_shape(found, X, source)
    settings = header["settings"]
    weights = header.get("weights")
    task = path_task(
        definition,
        X,
        y,
        kernel=KernelSpec.from_dict(header["kernel"]),
        cost=settings.get("cost", 1.0),
        sample_weight=None if weights is None else np.array(weights, dtype=np.float64),
        bias=settings.get("bias"),
        settings=solver_settings(FollowOptions(threads=threads)),
        source=source,
        **{name: value for name, value in settings.items() if name not in NOT_OPTIONS},
    )
    check_fingerprint(found, task, source)
    task.class_weight = settings.get("class_weight")
    return task


def check_shape(found: PathFile, X: Any, source: str) -> None:
    """DataError unless there are as many rows and features as the path has."""
    n, width = found.header["n"], found.header["n_features"]
    if X.shape != (n, width):
        raise DataError(
            source,
            None,
            f"{X.shape[0]} rows and {X.shape[1]} features, and {found.name} is a path of "
            f"{n} rows and {width} features",
            "give the rows it was followed on",
        )


def check_fingerprint(found: PathFile, task: TrainingTask, source: str) -> None:
    """DataError unless the rows are those of the path."""
    if task.fingerprint()["data"] != found.header["data"]["fingerprint"]:
        raise DataError(
            source,
            None,
            f"not the rows that {found.name} is a path of (they or their labels differ)",
            "give the rows it was followed on with --train, in their order",
        )


# ---- rows -----------------------------------------------------------------------------------


def rows_of_path(
    found: PathFile, X: Any, y: Any, train: str | None, scaler: Scaler | None
) -> tuple[Any, Any, str]:
    """X as the kernel sees it, y, and a name for messages."""
    header = found.header
    if X is None and train is None and header.get("embedded"):
        return *extracted(header["embedded"], found.name), found.name
    if X is None:
        train = train or place_of_rows(found)
        reader = header["data"].get("reader") or {}
        is_precomputed = KernelSpec.from_dict(header["kernel"]).is_precomputed
        dataset = read_dataset(train, **reader, precomputed=is_precomputed)
        if dataset.serial is not None and dataset.n == dataset.n_features:
            dataset = dataset.take(np.argsort(dataset.serial))
        X, y, source = dataset.X, dataset.y, dataset.source
        if dataset.from_sparse_text and X.shape[1] < header["n_features"]:
            X = with_columns(X, header["n_features"])
    else:
        source = "X"
        X = X if sp.issparse(X) else np.asarray(X)
    if scaler is not None:
        X = scaler.transform(X)
    return X, y, source


def place_of_rows(found: PathFile) -> str:
    """The file that the header names: from here, or beside the path file."""
    name = found.header["data"].get("file")
    if not name:
        raise SettingsError(
            f"{found.name} does not say where its rows are; name their file with --train"
        )
    beside = os.path.join(os.path.dirname(found.name), os.path.basename(name))
    for place in (name, beside):
        if os.path.exists(place):
            return str(place)
    raise DataError(
        found.name,
        None,
        f"the file of its rows, {name}, is not there",
        "name it with --train (a path written with --embed holds its rows)",
    )


def embedded(X: Any, y: Any) -> str:
    """Rows as text for a header: a compressed .npz in base64."""
    arrays: dict[str, Any] = {} if y is None else {"y": np.asarray(y)}
    if sp.issparse(X):
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        arrays["shape"] = np.array(X.shape)
    else:
        arrays["X"] = X
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return base64.b64encode(stream.getvalue()).decode("ascii")


def extracted(text: str, source: str) -> tuple[Any, Any]:
    """The inverse of `embedded`."""
    try:
        with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as archive:
            y = archive["y"] if "y" in archive.files else None
            if "X" in archive.files:
                return archive["X"], y
            parts = (archive["data"], archive["indices"], archive["indptr"])
            return sp.csr_matrix(parts, shape=tuple(archive["shape"])), y
    except (ValueError, KeyError, OSError, zipfile.BadZipFile):
        raise DataError(source, 1, "the rows it holds are damaged", "name their file") from None
