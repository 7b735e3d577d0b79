"""Labels found with float32 kernel values are the labels of float64 ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kfu._gram import Gram

from kfu import KernelSpec, train


def trained(n: int = 300, d: int = 6, offset: float = 0.0, cost: float = 10.0):
    random = np.random.default_rng(7)
    X = random.normal(size=(n, d)) + offset
    y = np.where(np.sin(2 * X[:, 0]) + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    return train(X, y, kernel=KernelSpec.make("rbf", gamma=0.3), cost=cost), random


def near_the_boundary(model, random: np.random.Generator, d: int, count: int = 400) -> np.ndarray:
    """Points where f changes its sign, found by bisection to the last bit."""
    ends = random.normal(size=(2, 4 * count, d))
    values = [model.decision_function(e)[:, 0] for e in ends]
    crosses = np.flatnonzero(values[0] * values[1] < 0)[:count]
    low, high = ends[0][crosses], ends[1][crosses]
    positive = values[1][crosses] > 0
    for _ in range(60):
        middle = (low + high) / 2
        is_high = (model.decision_function(middle)[:, 0] > 0) == positive
        high = np.where(is_high[:, None], middle, high)
        low = np.where(is_high[:, None], low, middle)
    return np.vstack([low, high])


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_labels_on_the_boundary_are_those_of_float64(layout: str) -> None:
    model, random = trained()
    Z = near_the_boundary(model, random, 6)
    assert len(Z) > 200
    data = sp.csr_matrix(Z) if layout == "csr" else Z
    exact = model.decide(model.decision_function(data))
    rough = model.decide(model.decision_function(data, precision="float32"))
    assert np.any(rough != exact)  # float32 alone gets some of these wrong
    assert np.array_equal(model.classify(data), exact)
    assert np.array_equal(model.predict(data), model.classes[exact])


@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_the_bound_holds(offset: float) -> None:
    model, random = trained(offset=offset)
    Z = random.normal(size=(500, 6)) * 2 + offset
    for data in (Z, sp.csr_matrix(Z)):
        vectors = model.support_vectors
        gram = Gram(
            sp.csr_matrix(vectors) if sp.issparse(data) else vectors, model.kernel, "float32"
        )
        values, bounds = gram.bounded_decision(model.coef[0], data)
        exact = model.decision_function(data)[:, 0] - model.bias[0]
        assert np.all(np.abs(values - exact) <= bounds)
        assert np.all(bounds < (1e-2 if offset == 0.0 else 10.0))


def rows_of_kind(kind: str, n: int, d: int) -> np.ndarray:
    random = np.random.default_rng(d)
    if kind == "one sign":  # every rounding of the sum may go the same way
        return 0.1 + np.round(random.uniform(size=(n, d)), 2)
    if kind == "one large":
        return random.normal(size=(n, d)) * np.where(np.arange(d) == d // 2, 50.0, 0.1)
    if kind == "few entries":
        return random.normal(size=(n, d)) * (random.uniform(size=(n, d)) < 0.1)
    return random.normal(size=(n, d))


@pytest.mark.parametrize("kind", ["normal", "one sign", "one large", "few entries"])
@pytest.mark.parametrize("d", [1, 8, 60, 128, 129, 300])
def test_the_bound_of_single_values_holds(kind: str, d: int) -> None:
    """Each value K(x, z) by itself, where errors of a sum cannot cancel."""
    X = rows_of_kind(kind, 60, d)
    gamma = 0.5 / max(np.var(X) * d, 1e-3)
    wide = X.astype(np.longdouble)
    exact = np.exp(-gamma * ((wide[:, None] - wide[None]) ** 2).sum(axis=2)).astype(float)
    kernel = KernelSpec.make("rbf", gamma=gamma)
    for convert in (np.asarray, sp.csr_matrix):
        largest = 0.0
        for i in range(0, 60, 7):
            gram = Gram(convert(X[i : i + 1]), kernel, "float32")
            values, bounds = gram.bounded_decision(np.ones(1), convert(X))
            errors = np.abs(values - exact[i])
            assert np.all(errors <= bounds)
            largest = max(largest, float(np.max(errors / bounds)))
        assert largest > 0.002  # and it is not so wide that it says nothing


def test_the_bound_counts_roundings_and_not_features() -> None:
    """A term is rounded as often as terms follow it: half of them on the average."""
    X = rows_of_kind("normal", 200, 60)
    gram = Gram(X, KernelSpec.make("rbf", gamma=1 / 60), "float32")
    values, bounds = gram.bounded_decision(np.ones(200), X)
    norms = (X**2).sum(axis=1)
    by_features = 2.0**-24 / 60 * (2 * 60 + 14) * (norms + norms.max()) * values
    assert np.all(bounds < 0.5 * by_features)


def test_features_far_from_the_origin_are_decided_by_float64() -> None:
    """Sparse data are not centred: here float32 distances are off by more than they are long."""
    random = np.random.default_rng(1)
    X = 3000.0 + 0.5 * random.normal(size=(80, 10))
    y = np.where(X[:, 0] > 3000.0, 1.0, -1.0)
    sparse = sp.csr_matrix(X)
    model = train(sparse, y, kernel=KernelSpec.make("rbf", gamma=1.0), cost=10.0)
    gram = Gram(model.support_vectors, model.kernel, "float32")
    values, bounds = gram.bounded_decision(model.coef[0], sparse)
    exact = model.decision_function(sparse)[:, 0] - model.bias[0]
    assert np.all(np.abs(values - exact) <= bounds)
    assert np.array_equal(model.classify(sparse), model.decide(model.decision_function(sparse)))


def test_overflow_in_float32_is_decided_by_float64() -> None:
    model, _ = trained(n=60)
    Z = np.vstack([np.full((1, 6), 1e20), np.zeros((1, 6))])
    assert np.array_equal(model.classify(Z), model.decide(model.decision_function(Z)))


def test_other_kernels_have_no_bound() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    gram = Gram(X, KernelSpec.make("poly", degree=2, gamma=1.0, coef0=1.0), "float32")
    assert gram.bounded_decision(np.ones(20), X) is None
