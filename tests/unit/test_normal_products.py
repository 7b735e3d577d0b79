"""Products with the normal equations of sparse rows, against matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kfu._linear import NormalProducts

from kfu.least_squares.centred_rows import CentredRows

N, D, RIDGE = 23, 11, 0.7


def rows(dtype=np.float64):
    rng = np.random.default_rng(3)
    X = sp.random(N, D, density=0.4, format="lil", rng=rng, dtype=dtype)
    X[5] = 0.0  # a row without entries
    X[6] = np.arange(1, D + 1)  # and one without zeros
    return X.tocsr()


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_against_the_matrix_written_out(columns, weighted, intercept, dtype):
    X = rows(dtype)
    rng = np.random.default_rng(columns)
    weight = rng.uniform(0.2, 3.0, N) if weighted else None
    centred = CentredRows(X, rng.normal(size=(N, 1)), weight, intercept)
    A = X.toarray().astype(np.float64)
    w = np.ones(N) if weight is None else weight
    if intercept:
        A = A - (w @ A) / w.sum()
    A = np.sqrt(w)[:, None] * A
    products = centred.normal_products(RIDGE)
    P, V = rng.normal(size=(N, columns)), rng.normal(size=(D, columns))
    np.testing.assert_allclose(
        products.of_rows(P), A @ (A.T @ P) + RIDGE * P, rtol=1e-12, atol=1e-11
    )
    np.testing.assert_allclose(
        products.of_features(V), A.T @ (A @ V) + RIDGE * V, rtol=1e-12, atol=1e-11
    )


def test_a_column_is_the_same_alone_to_rounding():
    products = NormalProducts(rows(), None, None, RIDGE)
    P = np.random.default_rng(0).normal(size=(N, 4))
    for j in range(4):
        alone = products.of_rows(np.ascontiguousarray(P[:, [j]]))
        np.testing.assert_allclose(alone[:, 0], products.of_rows(P)[:, j], rtol=1e-13)


def test_no_columns_and_no_entries():
    products = NormalProducts(sp.csr_matrix((3, 2)), None, None, RIDGE)
    assert products.of_rows(np.empty((3, 0))).shape == (3, 0)
    np.testing.assert_array_equal(products.of_features(np.ones((2, 1))), [[RIDGE], [RIDGE]])


def test_wrong_shapes_and_dense_rows():
    X = rows()
    products = NormalProducts(X, None, None, RIDGE)
    with pytest.raises(ValueError, match="as many rows as X"):
        products.of_rows(np.ones((D, 1)))
    with pytest.raises(ValueError, match="as X has features"):
        products.of_features(np.ones((N, 1)))
    with pytest.raises(ValueError, match="root of the weight for every row"):
        NormalProducts(X, np.ones(N - 1), None, RIDGE)
    with pytest.raises(ValueError, match="mean for every feature"):
        NormalProducts(X, None, np.ones(D + 1), RIDGE)
    with pytest.raises(ValueError, match="CSR"):
        NormalProducts(X.toarray(), None, None, RIDGE)
