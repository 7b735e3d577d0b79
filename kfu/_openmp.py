"""How OpenMP threads of the compiled modules wait.

A thread that waits for work by spinning is harmless on an idle machine and ruinous on a busy one:
beside other work on two cores a training was measured to take six times as long. libgomp reads
its policy from the environment, once, when it is first loaded; so it is loaded here, before the
compiled modules ask for it, with the policy "passive", and the environment left as it was. Whoever
sets OMP_WAIT_POLICY or GOMP_SPINCOUNT keeps that.
"""

from __future__ import annotations

import ctypes
import os

LIBRARY = "libgomp.so.1"
POLICY = "OMP_WAIT_POLICY"


def load_with_passive_waiting() -> None:
    """Load libgomp with passive waiting; nothing happens where it is already loaded or absent."""
    if POLICY in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return
    os.environ[POLICY] = "passive"
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:  # another OpenMP runtime, or one bundled under another name
        pass
    finally:
        del os.environ[POLICY]
