"""Tells model files from data files by their content."""

from __future__ import annotations

import gzip
import zipfile
from typing import Literal

from kfu.cli import console
from kfu.errors import DataError
from kfu.model import Model

FileKind = Literal["model", "libsvm-model", "data"]


def kind_of(path: str) -> FileKind:
    """What ``path`` holds: a kfu model, a LIBSVM model, or (everything else) data.

    stdin (``-``) is data. A file that cannot be opened is a DataError.
    """
    if path == "-":
        return "data"
    try:
        with open(path, "rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise DataError(path, None, error.strerror or "cannot be read", "check the path") from None
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "model" if holds_header(path) else "data"
    if head[:2] == b"\x1f\x8b":
        try:
            with gzip.open(path) as stream:
                head = stream.read(512)
        except (OSError, EOFError):
            return "data"
    return "libsvm-model" if head.startswith(b"svm_type ") else "data"


def holds_header(path: str) -> bool:
    """Whether the zip archive is a model. A damaged archive is read off its name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return not path.endswith(".npz")


def load_any_model(path: str) -> Model:
    """The model in ``path``, kfu's own or LIBSVM's."""
    if kind_of(path) == "libsvm-model":
        from kfu.io.libsvm_model import read_libsvm_model

        with console.library_warnings():
            return read_libsvm_model(path)
    return Model.load(path)
