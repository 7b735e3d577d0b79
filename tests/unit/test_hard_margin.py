"""The hard margin, C = ∞: the optimum where classes can be separated, a message where not."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, train
from kfu.errors import DataError
from tests.oracles import machines as oracle
from tests.unit.test_reductions import KERNEL, MARGINS, TIGHT, data, rbf


def separable(n=30):
    rng = np.random.default_rng(2)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 3.0 * y[:, None], y


@pytest.mark.parametrize("machine", ["svc", "svc2"])
def test_the_hard_margin_is_the_plane_of_the_primal(machine):
    X, y = separable()
    kernel = KernelSpec.make("linear")
    model = train(X, y, machine=machine, kernel=kernel, cost=np.inf, settings=TIGHT)
    w, b = oracle.hard_margin_plane(X, y)
    np.testing.assert_allclose(model.linear_weights()[0], w, rtol=1e-6)
    assert model.bias[0] == pytest.approx(b, rel=1e-6)
    assert model.info["objective"] == pytest.approx(0.5 * w @ w, rel=1e-7)
    assert 0.0 <= model.info["duality_gap"] <= 1e-6


@pytest.mark.parametrize("machine", ["svc", "svc2"])
@pytest.mark.parametrize("bias", ["free", "none", "regularised"])
def test_the_hard_margin_of_a_kernel(machine, bias):
    X, y, _, weights = data()
    K = rbf(X) + (bias == "regularised")
    upper = np.where(weights > 0, np.inf, 0.0)
    expected = oracle.svc(K, y, upper, targets=MARGINS, bias=bias == "free")
    model = train(
        X,
        y,
        machine=machine,
        kernel=KERNEL,
        cost=np.inf,
        bias=bias,
        margins=MARGINS,
        sample_weight=weights,
        settings=TIGHT,
    )
    assert model.info["objective"] == pytest.approx(expected.objective, rel=1e-7)
    reached = (y * model.decision_function(X)[:, 0])[weights > 0]
    assert np.all(reached >= MARGINS[weights > 0] - 1e-6)


def overlapping():
    X, y, _, _ = data(n=60)
    return X, y, KernelSpec.make("linear")


def contradicting():
    X, y, _, _ = data()
    return np.vstack([X, X[:1]]), np.append(y, -y[0]), KERNEL


def all_alike():
    return np.ones((6, 2)), np.array([1.0, 1, 1, -1, -1, -1]), KERNEL


def empty_rows():
    return np.zeros((6, 2)), np.array([1.0, 1, 1, -1, -1, -1]), KernelSpec.make("linear")


def overlapping_rows_of_text():
    X, y, kernel = overlapping()
    return sp.csr_matrix(X), y, kernel


def overlapping_kernel_values():
    X, y, _ = overlapping()
    return X @ X.T, y, KernelSpec.make("precomputed")


def overlapping_in_the_square():
    X, y, _ = overlapping()
    return X, y, KernelSpec.make("poly", gamma=1.0, coef0=1.0, degree=2)


INSEPARABLE = [
    *(overlapping, overlapping_rows_of_text, overlapping_kernel_values, overlapping_in_the_square),
    *(contradicting, all_alike, empty_rows),
]


@pytest.mark.parametrize("machine", ["svc", "svc2"])
@pytest.mark.parametrize("bias", ["free", "none", "regularised"])
@pytest.mark.parametrize("make", INSEPARABLE)
def test_what_cannot_be_separated_is_said_soon(machine, bias, make):
    X, y, kernel = make()
    begin = time.perf_counter()
    with pytest.raises(DataError, match=r"cannot be separated by this kernel.*finite --cost"):
        train(X, y, machine=machine, kernel=kernel, cost=np.inf, bias=bias)
    assert time.perf_counter() - begin < 5.0


def test_a_narrow_margin_is_a_margin():
    """Some thousandths of the largest norm, with and without a bias; progress is still told."""
    X = np.array([[1.0, 4e-3], [1.0, -4e-3], [-1.0, 4e-3], [-1.0, -4e-3]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    seen = []
    for bias in ("free", "none", "regularised"):
        model = train(
            X,
            y,
            kernel=KernelSpec.make("linear"),
            cost=np.inf,
            bias=bias,
            progress=lambda state: seen.append(state.round) and False,
        )
        np.testing.assert_allclose(model.linear_weights()[0], [0.0, 250.0], atol=0.5)
    assert seen
