"""Linear algebra on one thread, where threadpoolctl (scikit-learn brings it) is installed.

OpenBLAS splits a factorisation of a few hundred unknowns among threads that wait by spinning.
Beside other work on the same cores that was measured to take three hundred times as long as one
thread, which also makes results independent of the number of cores. Without threadpoolctl nothing
changes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which NumPy's and SciPy's linear algebra runs on one thread."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1)


FEW_UNKNOWNS = 512  # below, more threads than one cost more than they bring


def blas_threads(unknowns: int, threads: int = 0) -> AbstractContextManager[Any]:
    """A context for dense factorisations of so many unknowns: one thread where that is fastest,
    otherwise `threads` of them (0: as many as the library takes by itself)."""
    controller = _controller()
    if unknowns <= FEW_UNKNOWNS:
        threads = 1
    return nullcontext() if controller is None or threads < 1 else controller.limit(limits=threads)
