"""Tells model files and path files from data files by their content."""

from __future__ import annotations

import gzip
import zipfile
from typing import Literal

from kfu.cli import console
from kfu.errors import SettingsError
from kfu.io.source import cannot_read, open_input
from kfu.model import Model
from kfu.paths.path_file import is_path_head

FileKind = Literal["model", "libsvm-model", "path", "data"]


def kind_of(path: str) -> FileKind:
    """What ``path`` holds: a kfu model, a LIBSVM model, a path, or (everything else) data.

    stdin (``-``) is data. A file that cannot be opened is a DataError.
    """
    if path == "-":
        return "data"
    with open_input(path) as stream:
        try:
            head = stream.read(512)
        except OSError as error:
            raise cannot_read(path, error) from None
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return "model" if holds_header(path) else "data"
    if is_path_head(head):
        return "path"
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


def load_any_model(path: str, at: float | None = None, train: str | None = None) -> Model:
    """The model in ``path``, kfu's own or LIBSVM's, or that ``at`` a value of the path there.

    ``train`` names the rows of a path whose file neither holds nor finds them.
    """
    kind = kind_of(path)
    if kind == "path":
        return model_of_path(path, at, train)
    if at is not None or train is not None:
        raise SettingsError(f"--at and --train are for path files, and {path} is none")
    if kind == "libsvm-model":
        from kfu.io.libsvm_model import read_libsvm_model

        with console.library_warnings():
            return read_libsvm_model(path)
    return Model.load(path)


def model_of_path(path: str, at: float | None, train: str | None) -> Model:
    from kfu.paths.loading import path_of
    from kfu.paths.path_file import is_table, read_path_file

    if at is None:
        raise SettingsError(f"{path} is a path, a model for every C; say which with --at C")
    with console.library_warnings():
        found = read_path_file(path)
        if is_table(found.header):
            from kfu.paths.table_file import model_of_table

            console.note(f"{path} is a table of solutions; the model is trained afresh at {at:g}")
            return model_of_table(found, at, train_file=train)
        return path_of(found, train=train).at(at)
