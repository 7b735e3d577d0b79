"""rectangle over partitions against the normal equations written out, and against itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfu.data import Dataset
from kfu.engine import train_rectangle_partitioned
from kfu.engine.local import LocalEngine
from kfu.errors import DataError, SettingsError
from kfu.io import write_dataset
from kfu.kernels import KernelSpec
from kfu.scale import Scaler

KERNEL = KernelSpec.make("rbf", gamma=0.3)


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float = 0.3) -> np.ndarray:
    return np.exp(-gamma * np.square(X[:, None, :] - Z[None, :, :]).sum(axis=2))


def oracle(
    X: np.ndarray, Y: np.ndarray, Z: np.ndarray, ridge: float, weight: np.ndarray | None = None
) -> np.ndarray:
    """(K_mℓ W K_ℓm + ridge K_mm) c = K_mℓ W Y."""
    K = rbf(X, Z)
    w = np.ones(len(X)) if weight is None else weight
    return np.linalg.solve((K.T * w) @ K + ridge * rbf(Z, Z), (K.T * w) @ Y)


def data(n: int = 300, classes: int = 3, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n).astype(float)
    return Dataset(np.round(rng.normal(size=(n, 4)) + 0.7 * y[:, None], 4), y)


def fit(path: Any, **options: Any) -> Any:
    base: dict[str, Any] = {
        "kernel": KERNEL,
        "ridge": 2.0,
        "n_centres": 20,
        "partition_bytes": 2000,
        "workers": 1,
    }
    return train_rectangle_partitioned(path, **(base | options))


@pytest.mark.parametrize("name", ["a.svm", "a.csv", "a.npy", "a.svm.gz"])
def test_is_the_solution_of_the_normal_equations(tmp_path: Path, name: str) -> None:
    d = data()
    write_dataset(tmp_path / name, d)
    found = fit(tmp_path / name, seed=4)
    rows = np.random.default_rng(4).choice(300, 20, replace=False)
    assert np.array_equal(found.centres, d.X[rows])  # as drawn in memory
    Y = 2.0 * (d.y[:, None] == np.arange(3)) - 1.0
    expected = oracle(d.X, Y, d.X[rows], 2.0)
    assert np.abs(found.coef - expected).max() < 1e-8 * np.abs(expected).max()
    assert found.classes.tolist() == [0.0, 1.0, 2.0]
    assert found.bias.tolist() == [0.0, 0.0, 0.0]
    K = rbf(d.X, d.X[rows])
    low_rank = np.trace(K @ np.linalg.solve(rbf(d.X[rows], d.X[rows]), K.T))
    assert found.info["trace_portion"] == pytest.approx(low_rank / 300)
    assert found.info["n"] == 300


def test_two_classes_are_one_column_and_codes_are_kept(tmp_path: Path) -> None:
    d = data(classes=2)
    write_dataset(tmp_path / "a.svm", d)
    found = fit(tmp_path / "a.svm")
    assert found.coef.shape == (20, 1)
    assert np.allclose(found.coef, oracle(d.X, 2 * d.y[:, None] - 1, found.centres, 2.0))
    code = np.array([[3.0, 0.0], [-1.0, 5.0]])
    coded = fit(tmp_path / "a.svm", code=code, classes=[1, 0])
    Y = code[1 - d.y.astype(int)]
    assert np.allclose(coded.coef, oracle(d.X, Y, coded.centres, 2.0))


def test_numbers_with_a_free_bias(tmp_path: Path) -> None:
    d = data()
    d.y = d.X[:, 0] ** 2 + 5.0
    write_dataset(tmp_path / "a.csv", d)
    found = fit(tmp_path / "a.csv", targets="numbers", bias=True)
    assert found.classes is None
    K, Kmm = rbf(d.X, found.centres), rbf(found.centres, found.centres)
    full = np.zeros((21, 21))
    A = np.column_stack([K, np.ones(300)])
    full[:20, :20] = Kmm
    expected = np.linalg.solve(A.T @ A + 2.0 * full, A.T @ d.y)
    assert np.allclose(found.coef[:, 0], expected[:-1], atol=1e-8)
    assert found.bias[0] == pytest.approx(expected[-1])


def test_ridge_by_leave_one_out(tmp_path: Path) -> None:
    d = data(80, 2)
    write_dataset(tmp_path / "a.svm", d)
    ridges = [0.01, 0.3, 30.0]
    found = fit(tmp_path / "a.svm", ridge=ridges, partition_bytes=300)
    Y = 2 * d.y[:, None] - 1
    squares = []
    for ridge in ridges:
        left = []
        for i in range(80):
            keep = np.arange(80) != i
            c = oracle(d.X[keep], Y[keep], found.centres, ridge)
            left.append(float((rbf(d.X[[i]], found.centres) @ c)[0, 0] - Y[i, 0]))
        squares.append(np.mean(np.square(left)))
    assert np.allclose(found.info["loo_square"], squares)
    best = ridges[int(np.argmin(squares))]
    assert found.info["ridge"] == best
    assert np.allclose(found.coef, oracle(d.X, Y, found.centres, best))


@pytest.mark.parametrize("workers", [2, 5])
def test_the_number_of_workers_changes_no_bit(tmp_path: Path, workers: int) -> None:
    write_dataset(tmp_path / "a.svm", data())
    for partition_bytes in (200, 900, 10**6):
        one = fit(tmp_path / "a.svm", partition_bytes=partition_bytes)
        more = fit(tmp_path / "a.svm", partition_bytes=partition_bytes, workers=workers)
        assert np.array_equal(one.coef, more.coef)


def test_partitions_and_blocks_change_last_bits_only(tmp_path: Path) -> None:
    write_dataset(tmp_path / "a.svm", data())
    base = fit(tmp_path / "a.svm", partition_bytes=10**6)
    for options in ({"partition_bytes": 1}, {"block_rows": 3}, {"precision": "float32"}):
        other = fit(tmp_path / "a.svm", **options)
        assert np.array_equal(base.centres, other.centres)
        least = 1e-3 if "precision" in options else 1e-9
        assert np.abs(base.coef - other.coef).max() < least * np.abs(base.coef).max()


def test_weights_of_rows_and_classes(tmp_path: Path) -> None:
    d = data(classes=2)
    weight = np.random.default_rng(1).integers(0, 4, 300).astype(float)
    d.weights = weight
    write_dataset(tmp_path / "a.svm", d)
    found = fit(tmp_path / "a.svm", class_weight={1: 3.0})
    w = weight * np.where(d.y == 1, 3.0, 1.0)
    assert np.allclose(found.coef, oracle(d.X, 2 * d.y[:, None] - 1, found.centres, 2.0, w))
    unused = {tuple(row) for row in d.X[weight == 0.0]}
    assert not unused & {tuple(row) for row in found.centres}
    with pytest.raises(SettingsError, match="rows of positive weight"):
        fit(tmp_path / "a.svm", n_centres=280)


@pytest.mark.parametrize("selection", ["kmeans++", "leverage", "ic"])
def test_other_selections_see_a_sample(tmp_path: Path, selection: str) -> None:
    d = data()
    write_dataset(tmp_path / "a.svm", d)
    found = fit(tmp_path / "a.svm", selection=selection)
    again = fit(tmp_path / "a.svm", selection=selection, workers=3)
    assert np.array_equal(found.centres, again.centres)
    rows = {tuple(row) for row in d.X}
    assert {tuple(row) for row in found.centres} <= rows
    Y = 2.0 * (d.y[:, None] == np.arange(3)) - 1.0
    assert np.allclose(found.coef, oracle(d.X, Y, found.centres, 2.0), atol=1e-7)


def test_a_scaler_acts_on_rows_and_centres(tmp_path: Path) -> None:
    d = data(classes=2)
    write_dataset(tmp_path / "a.svm", d)
    scaler = Scaler.fit(d.X, "standard")
    found = fit(tmp_path / "a.svm", scaler=scaler)
    X = scaler.transform(d.X)
    assert np.allclose(found.coef, oracle(X, 2 * d.y[:, None] - 1, found.centres, 2.0))


def test_progress_counts_every_partition(tmp_path: Path) -> None:
    write_dataset(tmp_path / "a.svm", data())
    told: list[tuple[str, int, int]] = []
    fit(tmp_path / "a.svm", ridge=[1.0, 2.0], progress=lambda *what: told.append(what), workers=2)
    stages = [stage for stage, _, _ in told]
    assert list(dict.fromkeys(stages)) == ["survey", "centres", "sums", "loo"]
    for stage in ("survey", "sums", "loo"):
        counts = [(done, total) for name, done, total in told if name == stage]
        total = counts[0][1]
        assert counts == [(k + 1, total) for k in range(total)]


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (1, 7), (2, 6), (3, 13)])
def test_the_tree_is_fixed(workers: int, count: int) -> None:
    level = [str(k) for k in range(count)]
    while len(level) > 1:
        pairs = [f"({a}{b})" for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) - len(level) % 2 :]
    with LocalEngine(workers) as engine:
        found = engine.reduce("x", str, lambda a, b: f"({a}{b})", range(count))
    assert found == level[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "unknown engine"),
        ({"scheduler": "tcp://h:1"}, "engine dask"),
        ({"kernel": KernelSpec.make("precomputed")}, "precomputed"),
        ({"n_centres": 0}, "at least one"),
        ({"n_centres": 301}, "301 centres out of 300 rows"),
        ({"ridge": 0.0}, "ridge"),
        ({"selection": "best"}, "unknown selection"),
        ({"targets": "ranks"}, "targets are"),
        ({"targets": "numbers", "classes": [0, 1, 2]}, "classes is for classes"),
        ({"classes": [0, 1, 1]}, "listed twice"),
        ({"code": [[1.0], [2.0]]}, "2 rows for 3 classes"),
        ({"class_weight": {9: 1.0}}, "no class"),
        ({"labels": 0}, "unknown option 'labels'"),
        ({"block_rows": -1}, "block_rows"),
    ],
)
def test_bad_settings(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    write_dataset(tmp_path / "a.svm", data())
    with pytest.raises(SettingsError, match=message):
        fit(tmp_path / "a.svm", **options)


def test_one_class_and_unlisted_labels(tmp_path: Path) -> None:
    d = data()
    write_dataset(tmp_path / "a.svm", d)
    with pytest.raises(DataError, match="label 2 is none of the classes"):
        fit(tmp_path / "a.svm", classes=[0, 1])
    d.y = np.ones(300)
    write_dataset(tmp_path / "a.svm", d)
    with pytest.raises(DataError, match="all labels are 1"):
        fit(tmp_path / "a.svm")
