"""The plan of kfu.engine.local on a dask cluster: processes of this machine, or a scheduler.

Every item is one task, every merge another. A task that raises is run again up to RETRIES times;
one whose worker dies runs elsewhere, as do the tasks whose results died with it (shared values are
tasks too, so nothing lives on one worker only). Merges go before items that have not begun, which
bounds the results held at a time. Errors in the data or the settings end the run with the same
message as on one machine.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from kfu._version import __version__
from kfu.engine.local import Progress
from kfu.errors import DataError, KfuError, SettingsError

RETRIES = 3
MERGES_FIRST, SHARED_FIRST = 1, 2  # priorities; items have 0
CONNECT_SECONDS = 10
SCHEMES = ("tcp", "tls", "ws", "wss")
FEW_WORKERS_SECONDS = 60
FAULTS: dict[str, type[KfuError]] = {"data": DataError, "settings": SettingsError}


class PartitionError(Exception):
    """A KfuError on its way from a worker: plain arguments, so that it survives pickling."""

    def __init__(self, kind: str, fields: tuple[Any, ...], host: str) -> None:
        super().__init__(kind, fields, host)
        self.kind, self.fields, self.host = kind, fields, host

    def error(self) -> KfuError:
        if self.kind == "data":
            source, line, found, remedy = self.fields
            if found == "no such file":
                remedy = f"worker {self.host} has to see the file under this path"
            return DataError(source, line, found, remedy)
        return FAULTS[self.kind](*self.fields)


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments) with the library's errors made fit to travel."""
    try:
        return function(*arguments)
    except DataError as error:
        fields = (error.source, error.line, error.found, error.remedy)
        raise PartitionError("data", fields, socket.gethostname()) from None
    except SettingsError as error:
        raise PartitionError("settings", (str(error),), socket.gethostname()) from None


def check_address(address: str) -> None:
    """ValueError or OSError unless something listens at host:port: at once, and without a client
    that would try again and is slow to close."""
    scheme, separator, rest = address.rpartition("://")
    if separator and scheme not in SCHEMES:
        raise ValueError(f"addresses begin with {', '.join(f'{name}://' for name in SCHEMES)}")
    place = urlsplit(f"//{rest}")
    try:
        port = place.port
    except ValueError:
        port = None
    if not place.hostname or port is None:
        raise ValueError("not of the form host:port")
    with socket.create_connection((place.hostname, port), timeout=CONNECT_SECONDS):
        pass


def _for_each(items: Sequence[Any], shared: Sequence[Any]) -> list[list[Any]]:
    return [[value] * len(items) for value in shared]


def _version_here() -> str:
    return __version__


class DaskEngine:
    """workers processes of one thread each on this machine (0: one for every processor), or the
    workers of the cluster whose scheduler is at an address such as tcp://host:8786.

    memory_limit: of a local worker, as dask writes it ("4GiB", "auto").
    """

    name = "dask"

    def __init__(
        self,
        workers: int = 0,
        progress: Progress | None = None,
        *,
        scheduler: str | None = None,
        memory_limit: str = "auto",
        retries: int = RETRIES,
    ) -> None:
        try:
            import distributed
        except ImportError:
            raise SettingsError(
                "the engine dask needs the packages dask and distributed; "
                "install them with: pip install 'kfu[dask]'"
            ) from None
        if scheduler is not None and workers:
            raise SettingsError("the cluster of a scheduler has its own workers; give one of both")
        self._distributed = distributed
        self.workers = workers or len(os.sched_getaffinity(0))
        self.progress = progress
        self.scheduler = scheduler
        self.memory_limit = memory_limit
        self.retries = retries
        self.client: Any = None
        self._cluster: Any = None

    def __enter__(self) -> DaskEngine:
        if self.scheduler is None:
            self._cluster = self._distributed.LocalCluster(
                n_workers=self.workers,
                threads_per_worker=1,
                processes=True,
                memory_limit=self.memory_limit,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
            self.client = self._distributed.Client(self._cluster, set_as_default=False)
            return self
        try:
            check_address(self.scheduler)
            self.client = self._distributed.Client(
                self.scheduler, timeout=CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError) as error:
            self._close()
            raise SettingsError(
                f"no scheduler answers at {self.scheduler} ({error}); "
                "start `dask scheduler`, or check the address"
            ) from None
        try:
            self.client.wait_for_workers(1, timeout=FEW_WORKERS_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            self._close()
            raise SettingsError(
                f"no workers at scheduler {self.scheduler} ({error}); start `dask worker` there"
            ) from None
        try:
            self._check_workers()
        except BaseException:
            self._close()
            raise
        return self

    def _check_workers(self) -> None:
        """Every worker has this kfu."""
        try:
            versions = self.client.run(_version_here)
        except Exception as error:
            raise SettingsError(
                f"a worker of {self.scheduler} cannot use kfu ({error}); install it there"
            ) from None
        self.workers = len(versions)
        for address, version in versions.items():
            if version != __version__:
                raise SettingsError(
                    f"worker {address} has kfu {version}, this is {__version__}; "
                    "install the same version everywhere"
                )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self.client is not None:
            self.client.close()
        if self._cluster is not None:
            self._cluster.close()
        self.client = self._cluster = None

    def share(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._submit(function, *([value] for value in arguments), priority=SHARED_FIRST)[0]

    def fetch(self, handle: Any) -> Any:
        return self._watched(handle.result)

    def map(
        self, stage: str, function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> list[Any]:
        futures = self._submit(function, items, *_for_each(items, shared))
        places = {future.key: k for k, future in enumerate(futures)}
        results: list[Any] = [None] * len(items)

        def collect() -> None:
            done = self._distributed.as_completed(futures, with_results=True)
            for count, (future, result) in enumerate(done, 1):
                results[places[future.key]] = result
                self._tell(stage, count, len(items))

        self._watched(collect, futures)
        return results

    def reduce(
        self,
        stage: str,
        function: Callable[..., Any],
        merge: Callable[..., Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        leaves = self._submit(function, items, *_for_each(items, shared))
        level = leaves
        while len(level) > 1:
            right = level[1::2]
            left = level[: 2 * len(right) : 2]
            odd = level[2 * len(right) :]
            same = _for_each(right, shared)
            level = self._submit(merge, left, right, *same, priority=MERGES_FIRST) + odd
        root = level[0]
        # Only the root is held from here on: a result is dropped once it is merged.
        with self.client.as_current():
            waiting = self._distributed.as_completed(leaves)
        total = len(leaves)
        del leaves, level

        def follow() -> None:
            for count, future in enumerate(waiting, 1):
                if future.status in ("error", "cancelled"):
                    future.result()
                del future
                self._tell(stage, count, total)
            self._distributed.wait(root)

        self._watched(follow, [root])
        return root

    def _submit(
        self, function: Callable[..., Any], *columns: Sequence[Any], priority: int = 0
    ) -> list[Any]:
        """Futures of function(*row) for the rows of these columns, sent as one graph: a call for
        each would take longer than short tasks do."""
        count = len(columns[0])
        name = getattr(function, "__name__", "task").strip("_")
        mark = uuid4().hex
        with warnings.catch_warnings():
            # The centres travel in the graph, so that they can be sent again when workers die.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            futures: list[Any] = self.client.map(
                _guarded,
                [function] * count,
                *columns,
                key=[f"{name}-{mark}-{k}" for k in range(count)],
                retries=self.retries,
                priority=priority,
                pure=False,
            )
        return futures

    def _watched(self, wait: Callable[[], Any], futures: Sequence[Any] = ()) -> Any:
        """wait() with errors of workers turned into messages, and what is left cancelled."""
        try:
            with self.client.as_current():
                return wait()
        except PartitionError as fault:
            self.client.cancel(list(futures), force=True)
            raise fault.error() from None
        except self._distributed.KilledWorker as error:
            self.client.cancel(list(futures), force=True)
            raise SettingsError(
                f"workers died again and again on the same task ({error.task}), most likely for "
                "want of memory; give them more, or take fewer centres or smaller partitions"
            ) from None
        except BaseException:
            self.client.cancel(list(futures), force=True)
            raise

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)
