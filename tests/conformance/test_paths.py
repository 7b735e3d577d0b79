"""Whole paths of the C-SVC, judged from scratch and beside cold solves.

At breakpoints and half-way between them the conditions of optimality hold to 1e-8 in units of f,
computed with kernel matrices that NumPy made. At twenty random λ the model agrees to 1e-6 with what
an interior-point method finds there, which knows nothing of paths. Long paths are looked at in some
of their places and larger sets in fewer, unless --run-slow or KFU_EXAMPLES=search asks for all.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import kfu
from kfu import KernelSpec, read_dataset
from tests.oracles import interior_point
from tests.oracles.paths import kkt_violation

KKT = 1e-8
AGREEMENT = 1e-6
COLD_SOLVES = 20
MOST_PLACES = 200
FEW_PLACES, FEW_SOLVES = 60, 3  # of larger sets
LARGE = 300  # rows

# file, rows (0: all), gamma of the RBF kernel
SETS = {
    "mixture": ("mixture.example.svm.gz", 0, 1.0),
    "heart_scale": ("heart_scale.svm.gz", 0, 0.05),
    "diabetis": ("ida/diabetis.svm.gz", 0, 0.05),
    "banana": ("ida/banana.split1.tr.gz", 0, 1.0),
    "spam": ("spam.svm.gz", 500, 0.01),
    "a1a": ("a1a.tr.gz", 800, 0.05),
    "sonar": ("sonar.svm.gz", 0, 0.1),
    "thyroid": ("ida/thyroid.svm.gz", 0, 0.2),
    "titanic": ("ida/titanic.svm.gz", 150, 0.5),
}
KERNELS = ("linear", "poly", "rbf")


# ---- data -----------------------------------------------------------------------------------


@functools.cache
def stored(name: str) -> tuple[np.ndarray, np.ndarray]:
    file, rows, _ = SETS[name]
    dataset = read_dataset(str(Path(os.environ["KFU_DATA"]) / file))
    X = dataset.X.toarray() if hasattr(dataset.X, "toarray") else np.asarray(dataset.X)
    assert dataset.y is not None
    y = np.where(dataset.y == dataset.y.max(), 1.0, -1.0)
    if rows:
        some = np.random.default_rng(0).permutation(len(y))[:rows]
        X, y = X[some], y[some]
    return np.ascontiguousarray(X, dtype=np.float64), y


def overlapping(n: int, share: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < max(1, round(share * n)), 1.0, -1.0)
    return rng.normal(size=(n, 2)) + 0.6 * y[:, None], y


def every_point_twice() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(50)
    return np.repeat(X, 2, axis=0), np.repeat(y, 2)


def every_point_twice_unbalanced() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(45, share=0.3, seed=1)
    return np.concatenate([X, X]), np.concatenate([y, y])


def opposite_duplicates() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(60, seed=2)
    return np.concatenate([X, X[::3]]), np.concatenate([y, -y[::3]])


def only_opposite_duplicates() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(30, seed=3)
    return np.concatenate([X, X, X[:5]]), np.concatenate([y, -y, y[:5]])


def one_percent() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(300, share=0.01, seed=4)
    return X + 0.9 * y[:, None], y


def single_positive() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(80, share=0.0, seed=5)
    X[0] = [0.5, -0.5]
    return X, y


def single_negative_among_equals() -> tuple[np.ndarray, np.ndarray]:
    X = np.zeros((30, 2))
    X[0] = 1.0
    y = np.ones(30)
    y[0] = -1.0
    return X, y


def grid_of_integers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    X = rng.integers(0, 4, size=(90, 2)).astype(float)
    return X, np.where(rng.uniform(size=90) < 0.4, 1.0, -1.0)


def symmetric() -> tuple[np.ndarray, np.ndarray]:
    """Four copies of a picture that mirrors itself: events come four and more at a time."""
    X, y = overlapping(15, seed=7)
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    turned = [X]
    for _ in range(3):
        turned.append(turned[-1] @ quarter)
    return np.concatenate(turned), np.tile(y, 4)


def separated() -> tuple[np.ndarray, np.ndarray]:
    X, y = overlapping(60, seed=8)
    return X + 3.0 * y[:, None], y


GENERATED = {
    made.__name__: made
    for made in (
        every_point_twice,
        every_point_twice_unbalanced,
        opposite_duplicates,
        only_opposite_duplicates,
        one_percent,
        single_positive,
        single_negative_among_equals,
        grid_of_integers,
        symmetric,
        separated,
    )
}


# ---- what is compared -----------------------------------------------------------------------


def kernel_of(name: str, X: np.ndarray, gamma: float) -> KernelSpec:
    options = {"gamma": 1.0 / X.shape[1], "coef0": 1.0, "degree": 2}
    given = {"linear": {}, "poly": options, "rbf": {"gamma": gamma}}
    return KernelSpec.make(name, **given[name])


def matrix(name: str, X: np.ndarray, gamma: float) -> np.ndarray:
    if name == "linear":
        return X @ X.T
    if name == "poly":
        return (X @ X.T / X.shape[1] + 1.0) ** 2
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def places(path: kfu.RegularisationPath, most: int) -> np.ndarray:
    """Breakpoints and the middles between them; the ends whole, the rest evenly thinned to `most`.

    Middles alternate between those in λ and those in log λ.
    """
    lam = path.columns["lambda"]
    middles = np.where(
        np.arange(len(lam) - 1) % 2, 0.5 * (lam[1:] + lam[:-1]), np.sqrt(lam[1:] * lam[:-1])
    )
    found = np.empty(2 * len(lam) - 1)
    found[::2], found[1::2] = lam, middles
    if len(found) <= most:
        return found
    ends = 5
    inner = np.linspace(ends, len(found) - ends - 1, most - 2 * ends).astype(int)
    return found[np.concatenate([np.arange(ends), inner, np.arange(-ends, 0)])]


def coefficients(path: kfu.RegularisationPath, lam: float) -> tuple[np.ndarray, float]:
    model = path.at(lam=lam)
    coef = np.zeros(path.n)
    coef[model.support] = model.coef[0]
    return coef, float(model.bias[0])


def check_conditions(path: kfu.RegularisationPath, K: np.ndarray, y: np.ndarray, most: int) -> None:
    w = np.ones(len(y))
    for lam in places(path, most):
        coef, bias = coefficients(path, lam)
        residual = kkt_violation(K, y, w, lam, lam * y * coef, lam * bias)
        assert residual <= KKT, (lam, residual)


def bias_interval(g: np.ndarray, y: np.ndarray, alpha: np.ndarray) -> tuple[float, float]:
    """The biases under which these outputs without bias, g, are optimal; α in [0, 1]."""
    room = 1e-7
    must_reach = alpha < 1 - room  # y(g + b) ≥ 1
    must_not_pass = alpha > room  # y(g + b) ≤ 1
    edge = y - g  # where y(g + b) = 1
    from_below = (must_reach & (y > 0)) | (must_not_pass & (y < 0))
    from_above = (must_reach & (y < 0)) | (must_not_pass & (y > 0))
    return edge[from_below].max(initial=-np.inf), edge[from_above].min(initial=np.inf)


def check_cold_solves(
    path: kfu.RegularisationPath, K: np.ndarray, y: np.ndarray, count: int
) -> None:
    random = np.random.default_rng(1)
    n = len(y)
    lower, upper = np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)
    for lam in np.exp(random.uniform(np.log(path.low), np.log(path.high), count)):
        cold = interior_point.solve(K, -lam * y, lower, upper, np.ones((1, n)), [0.0])
        assert cold.violation <= 1e-7 * lam, "the oracle has not converged"
        coef, bias = coefficients(path, lam)
        expected = K @ cold.x / lam
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(K @ coef, expected, rtol=0, atol=AGREEMENT * scale)
        low, high = bias_interval(expected, y, y * cold.x)
        assert low - AGREEMENT * scale <= bias <= high + AGREEMENT * scale


def check(request, X, y, name, gamma) -> None:
    path = kfu.svm_path(X, y, kernel=kernel_of(name, X, gamma), threads=1)
    assert path.is_finished, path.status
    assert path.columns["kkt"].max() <= KKT
    K = matrix(name, X, gamma)
    if path.status == "hard_margin":
        assert path.columns["n_error"][-1] == 0
    is_large = len(y) > LARGE
    places, solves = (FEW_PLACES, FEW_SOLVES) if is_large else (MOST_PLACES, COLD_SOLVES)
    if request.config.getoption("--run-slow") or os.environ.get("KFU_EXAMPLES") == "search":
        places, solves = 10**9, COLD_SOLVES
    check_conditions(path, K, y, places)
    check_cold_solves(path, K, y, solves)


# ---- tests ----------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SETS)
def test_stored_sets(request: pytest.FixtureRequest, name: str, kernel: str) -> None:
    X, y = stored(name)
    check(request, X, y, kernel, SETS[name][2])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", GENERATED)
def test_generated_sets(request: pytest.FixtureRequest, name: str, kernel: str) -> None:
    check(request, *GENERATED[name](), kernel, 0.5)
