"""Support vectors are copied row by row, by one thread or several, dense or sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.machines.task import WORTH_THREADS, rows_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_are_those_asked_for(dtype, threads):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 500)).astype(dtype)
    rows = rng.permutation(900)[:701]
    assert len(rows) * X.shape[1] > WORTH_THREADS
    found = rows_of(X, rows, threads)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, X[rows])
    found[:] = 0.0
    assert X.any(), "a copy, not a view"


def test_rows_of_arrays_in_columns_and_of_none():
    X = np.asfortranarray(np.arange(2.0 * WORTH_THREADS).reshape(-1, 2))
    rows = np.arange(len(X))[::-1]
    np.testing.assert_array_equal(rows_of(X, rows, 2), X[::-1])
    assert rows_of(X, rows[:0], 2).shape == (0, 2)


def test_sparse_rows_stay_sparse():
    X = sp.random(50, 20, density=0.2, format="csr", random_state=0)
    rows = np.array([3, 49, 0])
    found = rows_of(X, rows, 2)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), X.toarray()[rows])
