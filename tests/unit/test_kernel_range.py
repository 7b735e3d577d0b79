"""Features so large that a kernel overflows: refused in float64, avoided in float32."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kfu._gram import largest_modulus

import kfu
from kfu.errors import DataError
from kfu.kernels import KernelSpec
from kfu.machines.kernel_range import settings_in_range
from kfu.solvers import SolverSettings

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_overflow_is_refused(name, kind):
    rows = X.copy()
    rows[7] *= 1e200
    kernel = KernelSpec.make(name).resolve(X)
    with pytest.raises(DataError, match=r"overflows.*--scale"):
        settings_in_range(kind(rows), kernel, SolverSettings(), "data")
    with pytest.raises(DataError, match="overflows"):
        kfu.train(kind(rows), Y, kernel=kernel)
    with pytest.raises(DataError, match="overflows"):
        kfu.svm_path(kind(rows), Y, kernel=kernel)


def test_float32_is_left_where_it_overflows():
    kernel = KernelSpec.make("rbf", gamma=1e-50)
    near, far = (
        settings_in_range(X * size, kernel, SolverSettings(), "data") for size in (1.0, 1e25)
    )
    assert (near.precision, far.precision) == ("auto", "float64")
    with pytest.raises(DataError, match="in float32"):
        settings_in_range(X * 1e25, kernel, SolverSettings(precision="float32"), "data")
    scaled = kfu.train(X * 1e25, Y, kernel=kernel).decision_function(X * 1e25)
    plain = kfu.train(X, Y, kernel=KernelSpec.make("rbf", gamma=1.0)).decision_function(X)
    np.testing.assert_allclose(scaled, plain, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_largest_modulus_is_that_of_all_values(dtype: type) -> None:
    values = np.random.default_rng(0).normal(size=(700, 613)).astype(dtype)
    for row, column, extreme in ((0, 0, -9.0), (699, 612, 11.0), (350, 7, -13.0)):
        values[row, column] = extreme
        assert largest_modulus(values) == abs(extreme)
    assert largest_modulus(values[::2, 1::3]) == np.abs(values[::2, 1::3]).max()
    assert largest_modulus(np.zeros((0, 4))) == 0.0
    values[500, 3] = np.inf
    assert largest_modulus(values) == np.inf
    values[698, 600] = np.nan  # the largest of the others does not hide it
    assert np.isnan(largest_modulus(values))
