"""How OpenMP threads of the compiled modules wait.

A thread that waits for work by spinning is harmless on an idle machine and ruinous on a busy one:
beside other work on two cores a training was measured to take six times as long. One that sleeps at
once has to be woken for each of a round's small pieces of work, which took up to a tenth of a
training. So threads spin for some tens of microseconds, then sleep. libgomp reads how long from the
environment, once, when it is first loaded; so it is loaded here, before the compiled modules ask
for it, and the environment left as it was. Whoever sets OMP_WAIT_POLICY or GOMP_SPINCOUNT keeps
that.
"""

from __future__ import annotations

import ctypes
import os

LIBRARY = "libgomp.so.1"
POLICY, SPINS = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"
FEW_SPINS = "2000"  # some 25 microseconds


def load_with_short_spinning() -> None:
    """Load libgomp with short spinning; nothing happens where it is already loaded or absent."""
    if POLICY in os.environ or SPINS in os.environ:
        return
    os.environ[SPINS] = FEW_SPINS
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:  # another OpenMP runtime, or one bundled under another name
        pass
    finally:
        del os.environ[SPINS]
