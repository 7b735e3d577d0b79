"""Memory of this process, now and at its peak, in bytes."""

from __future__ import annotations

import time

import numpy as np

from kfu.report import peak_rss_mib

SAMPLE_BYTES = 2.0**26
PAGE_BYTES = 4096


def resident_bytes() -> float:
    """Resident memory now; where the system does not tell, its peak so far."""
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("VmRSS:"):
                    return float(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return peak_bytes()


def peak_bytes() -> float:
    return peak_rss_mib() * 2.0**20


def seconds_per_byte(largest: float) -> float:
    """What the system takes to hand out a byte of memory that is touched for the first time.

    Measured on 64 MiB (on `largest`, if that is less, but on 8 at least) and so, to be true, before
    the process has used and returned as much. Pilots that are run again use memory that is there.
    """
    size = int(min(max(largest, SAMPLE_BYTES / 8), SAMPLE_BYTES)) // 8
    begin = time.perf_counter()
    sample = np.empty(size)
    sample[:: PAGE_BYTES // 8] = 1.0
    return (time.perf_counter() - begin) / (8.0 * size)
