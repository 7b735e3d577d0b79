"""Where bytes come from: memory-mapped files, gzip in any disguise, standard input.

gzip is recognised by its first bytes, whatever the name, also on standard input.
"""

from __future__ import annotations

import mmap
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from kfu.errors import DataError

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 1 << 20
IDLE_MILLISECONDS = 10  # a pipe that has nothing for so long is waited for
HEARING_MILLISECONDS = 300  # after which Ctrl-C is heard at the latest
Buffer = Any  # bytes, bytearray or mmap


def source_name(path: str | os.PathLike[str]) -> str:
    """How messages call the input."""
    name = os.fspath(path)
    return "<stdin>" if name == "-" else name


def open_input(path: str | os.PathLike[str]) -> IO[bytes]:
    """A binary stream of the file or of standard input, or DataError."""
    name = os.fspath(path)
    if name == "-":
        return sys.stdin.buffer
    try:
        stream = open(name, "rb")  # noqa: SIM115 (the caller closes it)
    except FileNotFoundError:
        raise DataError(name, None, "no such file", "check the path") from None
    except IsADirectoryError:
        raise DataError(name, None, "is a directory", "give the data file in it") from None
    except PermissionError:
        raise DataError(
            name, None, "permission denied", "make the file readable for this user"
        ) from None
    except OSError as error:
        raise DataError(
            name, None, f"cannot be opened ({error.strerror})", "check the path"
        ) from None
    return stream


def read_buffer(path: str | os.PathLike[str]) -> Buffer:
    """All bytes of an input, decompressed: a memory map of a plain file, otherwise bytes."""
    name = source_name(path)
    stream = open_input(path)
    try:
        try:
            status = os.fstat(stream.fileno())
            is_file = stat.S_ISREG(status.st_mode) and stream.tell() == 0
        except (OSError, ValueError, AttributeError):
            is_file = False  # a stream without a descriptor
        if is_file and status.st_size > 0:
            content: Buffer = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            content = _read_all(stream, name)
        if content[:2] == GZIP_MAGIC:
            return b"".join(gunzip(iter([content]), name))
        return content
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()


def _read_all(stream: Any, name: str) -> bytearray:
    """Everything there is. Read piece by piece, so that Ctrl-C is heard while a pipe delivers."""
    content = bytearray()
    try:
        is_idle = _idle_test(stream, HEARING_MILLISECONDS)
        while chunk := _read_when_there(stream, is_idle):
            content += chunk
    except OSError as error:
        raise cannot_read(name, error) from None
    return content


def _read_when_there(stream: Any, is_idle: Callable[[], bool]) -> bytes:
    """The next bytes. Waits by looking: a signal that comes just before a read that has to wait
    would not be heard until it ends."""
    while is_idle():
        pass
    chunk: bytes = stream.read1(CHUNK_BYTES)
    return chunk


def reason_of(error: OSError) -> str:
    """Why a file cannot be opened, in the words of `open_input`."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return error.strerror or str(error)


def cannot_read(name: str, error: OSError) -> DataError:
    return DataError(name, None, f"cannot be read ({error.strerror})", "check the file")


def stream_chunks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The bytes of an input, decompressed, in pieces of at most about CHUNK_BYTES as they come.

    An empty piece says that a pipe or terminal has no more right now: whoever can use what has
    come should do so before asking for the next piece, which may take any time.
    """
    name = source_name(path)
    stream = open_input(path)
    try:
        first = _read_some(stream, name)
        while first and len(first) < len(GZIP_MAGIC) and (more := _read_some(stream, name)):
            first += more
        raw = _chunks_after(first, stream, name)
        yield from gunzip(raw, name) if first.startswith(GZIP_MAGIC) else raw
    finally:
        if stream is not sys.stdin.buffer:
            stream.close()


def _chunks_after(first: bytes, stream: Any, name: str) -> Iterator[bytes]:
    chunk = first
    is_idle = _idle_test(stream)
    while chunk:
        yield chunk
        if is_idle():
            yield b""
        chunk = _read_some(stream, name)


def _read_some(stream: Any, name: str) -> bytes:
    """What a pipe has, without waiting for more; nothing is left in the stream's buffer."""
    try:
        return _read_when_there(stream, _idle_test(stream, HEARING_MILLISECONDS))
    except OSError as error:
        raise cannot_read(name, error) from None


def _idle_test(stream: Any, milliseconds: int = IDLE_MILLISECONDS) -> Callable[[], bool]:
    """A function that says whether a stream has nothing to read for so long; files always have."""
    try:
        descriptor = stream.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return lambda: False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    except (OSError, ValueError, AttributeError):  # a stream without a descriptor
        return lambda: False
    return lambda: not poll.poll(milliseconds)


def gunzip(chunks: Iterator[Any], name: str) -> Iterator[bytes]:
    """Decompressed pieces of gzip data with one or more members; zero padding is allowed.

    Empty pieces are passed on (see stream_chunks).
    """
    inflate = zlib.decompressobj(wbits=31)
    started = False  # the current member has had input
    for chunk in chunks:
        data = memoryview(chunk)
        if not len(data):
            yield b""
        while len(data):
            if not started:
                data = _skip_zeros(data) if inflate.eof else data
                if not len(data):
                    break
                inflate = zlib.decompressobj(wbits=31)
                started = True
            piece = data[:CHUNK_BYTES]
            try:
                output = inflate.decompress(piece)
            except zlib.error as error:
                raise DataError(
                    name,
                    None,
                    f"invalid gzip data ({_reason(error)})",
                    "compress the original file again or copy it again",
                ) from None
            if output:
                yield output
            used = len(piece) - len(inflate.unused_data)
            data = data[used:]
            started = not inflate.eof
    if started or not inflate.eof:
        raise DataError(
            name, None, "the gzip data end too early (truncated file)", "copy the file again"
        )


def _skip_zeros(data: memoryview) -> memoryview:
    position = 0
    while position < len(data) and data[position] == 0:
        position += 1
    return data[position:]


def _reason(error: Exception) -> str:
    return str(error).rpartition(": ")[2] or str(error)


def plain_suffix(path: str | os.PathLike[str]) -> str:
    """Extension in lower case without a final .gz: '.csv' for 'a.CSV.gz'."""
    name = Path(os.fspath(path)).name.lower()
    return Path(name.removesuffix(".gz")).suffix
