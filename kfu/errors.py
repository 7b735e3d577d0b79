"""The exceptions kfu raises. Each knows the exit code the command line turns it into."""

from __future__ import annotations


class KfuError(Exception):
    """Something the user can mend; the message says what was found and what to do."""

    exit_code = 1


class DataError(KfuError):
    """Bad data: ``source:line: what was found; what to do``."""

    def __init__(self, source: str, line: int | None, found: str, remedy: str) -> None:
        where = source if line is None else f"{source}:{line}"
        super().__init__(f"{where}: {found}; {remedy}")
        self.source = source
        self.line = line
        self.found = found
        self.remedy = remedy


class ModelError(KfuError):
    """A model file that is corrupted, foreign or written by a newer version."""

    def __init__(self, source: str, found: str, remedy: str) -> None:
        super().__init__(f"{source}: {found}; {remedy}")
        self.source = source
        self.found = found
        self.remedy = remedy


class SettingsError(KfuError):
    """An option value, or a combination of options, that cannot be used."""

    exit_code = 2


class ConvergenceWarning(UserWarning):
    """The solver stopped before it reached the tolerance; the result is its best so far."""
