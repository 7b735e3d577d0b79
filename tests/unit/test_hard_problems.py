"""Many unbounded vectors, large C and cheap kernel values: the chunk grows, rows earn memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kfu import KernelSpec, train
from kfu.solvers import SolverSettings

COST, GAMMA = 1000.0, 0.5


def noisy(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)


X, y = noisy(5000, 6)


def trained(**settings: Any) -> Any:
    kernel = KernelSpec.make("rbf", gamma=GAMMA)
    return train(X, y, kernel=kernel, cost=COST, settings=SolverSettings(**settings))


def gap_from_scratch(model: Any) -> float:
    """The gap of the maximal violating pair, by NumPy in float64."""
    rows = X[model.support]
    squares = (X**2).sum(1)[:, None] + (rows**2).sum(1)[None, :] - 2.0 * X @ rows.T
    F = np.exp(-GAMMA * np.maximum(squares, 0.0)) @ model.coef[0] - y
    alpha = np.zeros(len(y))
    alpha[model.support] = np.abs(model.coef[0])
    can_grow, can_fall = alpha < COST, alpha > 0
    up = np.where(y > 0, can_grow, can_fall)
    low = np.where(y > 0, can_fall, can_grow)
    return float(F[low].max() - F[up].min())


@pytest.fixture(scope="module")
def by_default() -> Any:
    return trained()


def test_the_chunk_grows_where_progress_is_slow(by_default: Any) -> None:
    # Twice 1024 would not hold them all, and yet 1024 are not kept.
    assert by_default.info["n_usv"] > 2048
    assert by_default.info["chunk"] > 1024
    assert gap_from_scratch(by_default) <= 1e-3


def test_the_chunk_becomes_as_large_as_unbounded_vectors_need(by_default: Any) -> None:
    info = by_default.info
    assert info["n_usv"] < info["chunk"] <= 3072
    assert info["chunk"] % 256 == 0


def test_a_small_budget_bounds_the_chunk() -> None:
    info = trained(cache_mib=40).info
    assert info["status"] == "converged"
    assert info["chunk"] ** 2 * 4 <= 0.5 * 40 * 2**20


@pytest.mark.parametrize(
    "settings",
    [{"cache_mib": 16}, {"chunk": 1500, "shrinking": False}, {"cache_mib": 200, "threads": 1}],
    ids=["small cache", "fixed chunk", "other cache, one thread"],
)
def test_memory_and_chunk_change_the_time_alone(by_default: Any, settings: dict[str, Any]) -> None:
    model = trained(**settings)
    assert model.info["status"] == "converged"
    assert gap_from_scratch(model) <= 1e-3
    assert model.info["objective"] == pytest.approx(by_default.info["objective"], rel=1e-7)


def test_rows_of_cheap_values_are_kept_in_the_end() -> None:
    # Some rows are computed again and again before: without the memory for them, most would be.
    info = trained(chunk=1024).info
    assert info["cache_hits"] > 10 * info["n_usv"]
    poor = trained(chunk=1024, cache_mib=6).info  # a tenth of the rows, beside the square tier
    assert poor["kernel_evaluations"] > 1.5 * info["kernel_evaluations"]


def test_threads_change_no_bit(by_default: Any) -> None:
    other = trained(threads=3)
    np.testing.assert_array_equal(other.coef, by_default.coef)
    np.testing.assert_array_equal(other.support, by_default.support)
