"""Writing a path while it is followed, so that a run that is killed leaves what it had found.

A `Recorder` stands in for the progress callback of the engine: every few seconds it appends the
breakpoints that are new, but for the last, to which events may still be added.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kfu.paths.path_file import PathWriter

if TYPE_CHECKING:
    from kfu.paths.path import RegularisationPath
    from kfu.solvers.parametric import PathProgress, Track

FIRST_SECONDS, MOST_SECONDS = 0.5, 5.0  # between two looks at what is new


class Recorder:
    """Appends to `file`, or goes on with a `writer` that holds the first breakpoints already."""

    def __init__(
        self,
        file: str,
        made: Callable[[Track], RegularisationPath],
        progress: Callable[[Any], Any] | None = None,
        writer: PathWriter | None = None,
    ) -> None:
        self.file = file
        self.made = made
        self.progress = progress
        self.writer = writer
        self.seconds = FIRST_SECONDS
        self.saved_at = time.monotonic()

    def __call__(self, seen: PathProgress) -> Any:
        now = time.monotonic()
        if now - self.saved_at >= self.seconds:
            path = self.made(seen.track())
            self.append(path, len(path) - 1)
            self.saved_at = time.monotonic()
            # Looking through a long path takes longer; spend a tenth of the time on it at most.
            spent = self.saved_at - now
            self.seconds = max(min(2.0 * self.seconds, MOST_SECONDS), 10.0 * spent)
        return None if self.progress is None else self.progress(seen)

    def append(self, path: RegularisationPath, end: int) -> None:
        """Append the breakpoints up to `end` that are not in the file yet."""
        if self.writer is None:
            self.writer = PathWriter(self.file, path.header())
        if end > self.writer.written:
            self.writer.append(path.records(self.writer.written, end))

    def finish(self, path: RegularisationPath) -> None:
        """Append the rest and give the file its name."""
        self.append(path, len(path))
        assert self.writer is not None
        self.writer.close()

    def discard(self) -> None:
        """There is no path: leave the files as they were before it."""
        if self.writer is not None:
            self.writer.discard()
