"""The plan of a partitioned computation, and its execution in this process: the reference.

An engine does four things with functions of the library:

    share(f, *args)                  a value every task needs, made once: returns a handle
    map(stage, f, items, *shared)    [f(item, *shared) for item in items], in the order of the items
    reduce(stage, f, merge, items, *shared)
                                     f of every item, merged pairwise: returns a handle
    fetch(handle)                    the value

The tree of `reduce` is fixed by the number of items: neighbours are merged, then neighbours of the
results, and so on, an odd one out passing to the next level. Floating-point sums are then the same
whatever the number of workers and the order in which they finish. `merge(a, b, *shared)` must not
change its arguments: they are needed again when a worker is lost.

`progress(stage, done, total)` is called as items are done.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

from kfu.solvers.blas_threads import one_blas_thread

Progress = Callable[[str, int, int], Any]


class Engine(Protocol):
    """See the head of the file. Engines are context managers; leaving one frees its workers."""

    name: str
    workers: int

    def share(self, function: Callable[..., Any], *arguments: Any) -> Any: ...

    def map(
        self, stage: str, function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> list[Any]: ...

    def reduce(
        self,
        stage: str,
        function: Callable[..., Any],
        merge: Callable[..., Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any: ...

    def fetch(self, handle: Any) -> Any: ...

    def __enter__(self) -> Engine: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class LocalEngine:
    """Threads of this process, one partition each; linear algebra inside a task has one thread.

    workers: 0 takes every processor. At most twice as many results as workers, and one for each
    level of the tree, are held at a time.
    """

    name = "local"

    def __init__(self, workers: int = 0, progress: Progress | None = None) -> None:
        self.workers = workers or len(os.sched_getaffinity(0))
        self.progress = progress
        self._blas = one_blas_thread()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> LocalEngine:
        self._blas.__enter__()
        if self.workers > 1:
            self._pool = ThreadPoolExecutor(self.workers)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._blas.__exit__(kind, error, trace)

    def share(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def fetch(self, handle: Any) -> Any:
        return handle

    def map(
        self, stage: str, function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> list[Any]:
        return list(self._results(stage, function, items, shared))

    def reduce(
        self,
        stage: str,
        function: Callable[..., Any],
        merge: Callable[..., Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        # A binary counter: the stack holds complete trees of falling height, so that what is
        # merged with what is the same as level by level.
        stack: list[tuple[int, Any]] = []
        for result in self._results(stage, function, items, shared):
            height, tree = 0, result
            while stack and stack[-1][0] == height:
                tree = merge(stack.pop()[1], tree, *shared)
                height += 1
            stack.append((height, tree))
        _, tree = stack.pop()
        while stack:
            tree = merge(stack.pop()[1], tree, *shared)
        return tree

    def _results(
        self, stage: str, function: Callable[..., Any], items: Sequence[Any], shared: Any
    ) -> Iterator[Any]:
        """Results in the order of the items, a bounded number of them under way."""
        total = len(items)
        if self._pool is None:
            for done, item in enumerate(items, 1):
                result = function(item, *shared)
                self._tell(stage, done, total)
                yield result
            return
        waiting: deque[Future[Any]] = deque()
        done = 0
        try:
            for item in items:
                waiting.append(self._pool.submit(function, item, *shared))
                if len(waiting) >= 2 * self.workers:
                    result = waiting.popleft().result()
                    done += 1
                    self._tell(stage, done, total)
                    yield result
            while waiting:
                result = waiting.popleft().result()
                done += 1
                self._tell(stage, done, total)
                yield result
        finally:
            for future in waiting:
                future.cancel()

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)
