"""The engine dask: worker processes give what the local run gives, also when one is killed."""

from __future__ import annotations

import operator
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfu.data import Dataset
from kfu.engine import train_rectangle_partitioned
from kfu.engine.dask_engine import DaskEngine, PartitionError
from kfu.errors import DataError, SettingsError
from kfu.io import write_dataset
from kfu.kernels import KernelSpec

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    with DaskEngine(workers=2, memory_limit="0") as made:
        yield made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400).astype(float)
    X = np.round(rng.normal(size=(400, 4)) + 0.7 * y[:, None], 4)
    name = tmp_path_factory.mktemp("dask") / "a.svm"
    write_dataset(name, Dataset(X, y))
    return name


def fit(path: Path, engine: Any, **options: Any) -> Any:
    kernel = KernelSpec.make("rbf", gamma=0.3)
    base = {"kernel": kernel, "ridge": [0.5, 5.0], "n_centres": 25, "partition_bytes": 1500}
    return train_rectangle_partitioned(path, engine=engine, **(base | options))


def assert_close(found: Any, expected: Any) -> None:
    assert np.array_equal(found.centres, expected.centres)
    assert np.abs(found.coef - expected.coef).max() <= 1e-8 * np.abs(expected.coef).max()
    assert np.allclose(found.info["loo_square"], expected.info["loo_square"], rtol=1e-8)
    assert found.info["ridge"] == expected.info["ridge"]
    assert found.info["n"] == expected.info["n"]


@pytest.mark.parametrize("partition_bytes", [900, 10**6])
def test_equals_the_local_run(path: Path, engine: DaskEngine, partition_bytes: int) -> None:
    told: list[tuple[str, int, int]] = []
    engine.progress = lambda *what: told.append(what)
    found = fit(path, engine, partition_bytes=partition_bytes)
    assert_close(found, fit(path, "local", partition_bytes=partition_bytes))
    assert found.info["engine"] == "dask"
    sums = [(done, total) for stage, done, total in told if stage == "sums"]
    assert sums == [(k + 1, found.info["partitions"]) for k in range(found.info["partitions"])]


def test_the_workers_of_a_scheduler(path: Path, engine: DaskEngine) -> None:
    address = engine.client.scheduler.address
    found = fit(path, "dask", scheduler=address)
    assert_close(found, fit(path, "local"))
    assert found.info["workers"] == 2
    assert engine.client.status == "running"  # what belongs to others is left alone


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr("kfu.engine.dask_engine.CONNECT_SECONDS", 0.5)
    with pytest.raises(SettingsError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        fit(path, "dask", scheduler="tcp://127.0.0.1:9")
    for address in ("nonsense", "127.0.0.1:port", ":8786", "http://127.0.0.1:9"):
        with pytest.raises(SettingsError, match=r"no scheduler answers at .*check the address"):
            fit(path, "dask", scheduler=address)


def test_bad_data_give_the_message_of_the_local_run(tmp_path: Path, engine: DaskEngine) -> None:
    engine.progress = None
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:1\n-1 1:2\n" * 30 + "1 1:oops\n")
    with pytest.raises(DataError) as expected:
        fit(bad, "local", partition_bytes=50, n_centres=3)
    with pytest.raises(DataError) as found:
        fit(bad, engine, partition_bytes=50, n_centres=3)
    assert str(found.value) == str(expected.value)
    assert found.value.line == 61


def test_a_task_that_fails_now_and_then_is_tried_again(tmp_path: Path, engine: DaskEngine) -> None:
    def flaky(item: int, folder: str) -> int:
        marks = [name for name in os.listdir(folder) if name.startswith(f"{item}-")]
        open(os.path.join(folder, f"{item}-{len(marks)}"), "w").close()
        if len(marks) < 2:
            raise OSError("the network sleeps")
        return item * item

    assert engine.map("x", flaky, [1, 2, 3], str(tmp_path)) == [1, 4, 9]
    assert len(os.listdir(tmp_path)) == 9


def test_results_are_merged_as_they_come(engine: DaskEngine) -> None:
    """Sums of all partitions at a time would be more than memory holds."""

    def held(dask_scheduler: Any) -> int:
        return sum(ts.state == "memory" for ts in dask_scheduler.tasks.values())

    def slow(item: int) -> int:
        time.sleep(0.01)
        return item

    most: list[int] = []

    def look(stage: str, done: int, total: int) -> None:
        if done % 8 == 0:
            most.append(engine.client.run_on_scheduler(held))

    engine.progress = look
    total = engine.reduce("x", slow, operator.add, range(100))
    assert engine.fetch(total) == 4950
    assert max(most) < 40


def test_a_killed_worker_changes_nothing(path: Path, engine: DaskEngine) -> None:
    class Slow:
        """A scaler that does nothing, slowly: tasks are under way when the worker dies."""

        def transform(self, X: Any) -> Any:
            time.sleep(0.05)
            return X

    pids = engine.client.run(os.getpid)
    victim = sorted(pids.values())[0]
    killed: list[int] = []

    def kill_once(stage: str, done: int, total: int) -> None:
        if stage == "sums" and done == 3 and not killed:
            assert done < total - 3  # others are still to come
            os.kill(victim, signal.SIGKILL)
            killed.append(done)

    engine.progress = kill_once
    found = fit(path, engine, scaler=Slow(), partition_bytes=900)
    assert killed == [3]
    assert_close(found, fit(path, "local", partition_bytes=900))
    assert victim not in engine.client.run(os.getpid).values()


def test_errors_travel_with_their_fields() -> None:
    import pickle

    error = PartitionError("data", ("f", 3, "no such file", "check the path"), "host-7")
    back = pickle.loads(pickle.dumps(error)).error()
    assert isinstance(back, DataError)
    assert str(back) == "f:3: no such file; worker host-7 has to see the file under this path"


def test_without_dask_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingsError, match=r"kfu\[dask\]"):
        fit(path, "dask")


def test_scheduler_and_workers_exclude_each_other() -> None:
    with pytest.raises(SettingsError, match="own workers"):
        DaskEngine(2, scheduler="tcp://127.0.0.1:1")
