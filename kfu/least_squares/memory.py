"""Memory asked for before it is taken: what a method needs is predicted and compared with what the
machine has, so that a matrix too large ends in one message instead of in swapping or a killed
process.
"""

from __future__ import annotations

import os
from pathlib import Path

from kfu.errors import SettingsError

__all__ = ["available_bytes", "readable_bytes", "require_memory"]

CONTROL_GROUPS = (  # (limit, use) of the container the process runs in
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
LEAST_CHECKED = 2**26  # bytes; smaller requests are not worth reading /proc for


def available_bytes() -> int | None:
    """Bytes that can be allocated without swapping, None where the system does not tell.

    Linux: MemAvailable of /proc/meminfo, or less where a control group leaves less. Elsewhere the
    free pages of sysconf.
    """
    found = [number for number in (_meminfo(), *map(_control_group, CONTROL_GROUPS)) if number]
    return min(found) if found else _free_pages()


def _meminfo() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _control_group(files: tuple[str, str]) -> int | None:
    try:
        limit, use = (Path(name).read_text(encoding="ascii") for name in files)
        return max(int(limit) - int(use), 1)
    except (OSError, ValueError):  # "max": no limit
        return None


def _free_pages() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def readable_bytes(count: float) -> str:
    """1536 → "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def require_memory(count: float, what: str, alternative: str) -> None:
    """SettingsError when `count` bytes are more than there are.

    `what` needs them ("the kernel matrix of 90000 rows"); `alternative` says what does with less.
    """
    if count < LEAST_CHECKED:
        return
    available = available_bytes()
    if available is not None and count > available:
        raise SettingsError(
            f"{what} needs {readable_bytes(count)} of memory and {readable_bytes(available)} are "
            f"available; {alternative}"
        )
