"""Output files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from kfu.errors import DataError

# What writing itself can meet: no space, quota, file too large, device failure, read-only system.
WRITE_FAILURES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@contextlib.contextmanager
def atomic_output(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[IO[Any]]:
    """A stream that becomes the file ``path`` when the block ends without an exception.

    What is written goes to a temporary file in the same directory, is flushed to the disk and
    renamed, so readers see the old file or the new one, and a failure leaves the old one. Mode "w"
    writes UTF-8 with "\\n". ``-`` is standard output; devices and pipes are written to directly, as
    nothing can be renamed over them. DataError when the place cannot be written or is full.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb', not {mode!r}")
    name = os.fspath(path)
    target = Path(name)
    try:
        if name == "-":
            stream: IO[Any] = sys.stdout.buffer if mode == "wb" else sys.stdout
            yield stream
            stream.flush()
        elif target.exists() and not (target.is_file() or target.is_dir()):
            with _open(target, mode) as stream:
                yield stream
        else:
            with _replacement(target, mode) as stream:
                yield stream
    except OSError as error:
        if error.errno not in WRITE_FAILURES:
            raise
        raise cannot_write(name, error) from None


@contextlib.contextmanager
def _replacement(path: Path, mode: str) -> Iterator[IO[Any]]:
    """A temporary file that is renamed to path at the end, or removed."""
    name = str(path)
    target = path.resolve()  # a symbolic link stays one; what it points to is replaced
    if target.is_dir():
        raise DataError(name, None, "is a directory", "give the name of a file to write")
    try:
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        descriptor, created = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
    except OSError as error:
        raise cannot_write(name, error) from None
    temporary: Path | None = Path(created)
    try:
        with _open(descriptor, mode) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(created, _permissions(target))
        os.replace(created, target)
        temporary = None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _open(file: int | Path, mode: str) -> IO[Any]:
    if mode == "wb":
        return open(file, mode)
    return open(file, mode, encoding="utf-8", newline="\n")


def cannot_write(name: str, error: OSError) -> DataError:
    """The error message for an output that cannot be created."""
    reason = error.strerror or str(error)
    return DataError(name, None, f"cannot write ({reason})", "give a writable place")


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, or those a new file would have."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
