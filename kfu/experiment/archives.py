"""Arrays of a .npz archive under their own names: one file that holds training and test rows.

Images are taken row by row: an array (n, 28, 28) gives 784 features.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import Any

import numpy as np

from kfu.data import Dataset, check_X, check_y
from kfu.errors import DataError


def two_names(value: Any) -> list[str]:
    """A reader of YAML: the name of the features and that of the labels."""
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(v, str) for v in value):
        raise ValueError("not two names; write those of the features and the labels, [X, y]")
    return value


def read_archive(path: str, names: list[str]) -> Dataset:
    """The rows whose features and labels have these names in the .npz file `path`."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                found = f"no array '{missing[0]}'; there are {', '.join(archive.files[:10])}"
                raise DataError(path, None, found, "name two of them")
            X, y = (archive[name] for name in names)
    except (TypeError, ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        raise DataError(path, None, "not an archive of arrays", "give a .npz file") from None
    if X.ndim < 2 or X.shape[0] == 0 or X.dtype.kind not in "biuf":
        found = f"'{names[0]}' of shape {X.shape} and type {X.dtype}"
        raise DataError(path, None, found, "rows of numbers are needed")
    X = check_X(X.reshape(len(X), -1), source=path)
    return Dataset(X, check_y(y, len(X), path), source=path)
