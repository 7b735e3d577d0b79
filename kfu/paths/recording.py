"""Writing a path while it is followed, so that a run that is killed leaves what it had found.

A `Recorder` stands in for the progress callback of the engine: every few seconds it appends the
breakpoints that are new, but for the last, to which events may still be added.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kfu.paths.path_file import PathWriter

if TYPE_CHECKING:
    from kfu.paths.path import RegularisationPath
    from kfu.solvers.parametric import PathProgress, Track

SECONDS_BETWEEN = 2.0


class Recorder:
    """Appends to `file`, or goes on with `writer` after its first `written` breakpoints."""

    def __init__(
        self,
        file: str,
        made: Callable[[Track], RegularisationPath],
        progress: Callable[[Any], Any] | None = None,
        writer: PathWriter | None = None,
        written: int = 0,
        seconds: float = SECONDS_BETWEEN,
    ) -> None:
        self.file = file
        self.made = made
        self.progress = progress
        self.writer = writer
        self.written = written
        self.seconds = seconds
        self.saved_at = time.monotonic()

    def __call__(self, seen: PathProgress) -> Any:
        now = time.monotonic()
        if now - self.saved_at >= self.seconds:
            path = self.made(seen.track())
            self.append(path, len(path) - 1)
            # Long paths take longer to look through; spend a tenth of the time on it at most.
            self.saved_at = time.monotonic()
            self.seconds = max(self.seconds, 10.0 * (self.saved_at - now))
        return None if self.progress is None else self.progress(seen)

    def append(self, path: RegularisationPath, end: int) -> None:
        if self.writer is None:
            self.writer = PathWriter(self.file, path.header())
        if end > self.written:
            self.writer.append(path.records(self.written, end))
            self.written = end
        self.writer.flush()

    def finish(self, path: RegularisationPath) -> None:
        """Append the rest and give the file its name."""
        self.append(path, len(path))
        assert self.writer is not None
        self.writer.close()

    def discard(self) -> None:
        """Leave nothing behind: there is no path."""
        if self.writer is not None:
            self.writer.close()
            with contextlib.suppress(OSError):
                os.unlink(self.file)
