"""The panel code against the written-out formulas, and what must not change its values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from kfu._gram import Gram, available_simd

from kfu.kernels import KERNELS, KernelSpec
from tests.oracles.kernels import rbf
from tests.unit.kernel_cases import (
    EVALUATED,
    LAYOUTS,
    PRECISIONS,
    TOLERANCE,
    laid_out,
    oracle_of,
    points,
    spec_of,
)

SIMD = available_simd()


def assert_near(K: np.ndarray, exact: np.ndarray, precision: str, factor: float = 1.0) -> None:
    assert K.dtype == precision
    error = np.abs(K - exact).max(initial=0.0)
    assert error <= factor * TOLERANCE[precision] * max(np.abs(exact).max(initial=0.0), 1e-300)


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EVALUATED)
def test_every_kernel_agrees_with_its_formula(
    name: str, layout: str, precision: str, simd: str
) -> None:
    for n, m, d in [(45, 37, 60), (7, 100, 13), (33, 5, 1)]:
        X, Z = points(n, d), points(m, d, seed=1)
        gram = Gram(laid_out(X, layout), spec_of(name, d), precision, 2, simd)
        K = gram.block()
        assert (gram.layout, gram.simd, len(gram)) == (layout, simd, n)
        assert_near(K, oracle_of(name, X, X), precision)
        assert_near(gram.cross(laid_out(Z, layout)), oracle_of(name, X, Z), precision)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(gram.diagonal(), np.diag(K).astype(np.float64))


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name", [name for name in EVALUATED if not KERNELS[name].needs_non_negative]
)
def test_data_of_both_signs(name: str, layout: str, simd: str) -> None:
    signs = np.random.default_rng(4).choice([-1.0, 1.0], (41, 27))
    X = points(41, 27) * signs
    for precision in PRECISIONS:
        K = Gram(laid_out(X, layout), spec_of(name, 27), precision, 1, simd).block()
        assert_near(K, oracle_of(name, X, X), precision)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "rational", "rbf-ard"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_equal_points_have_distance_zero(name: str, layout: str, precision: str) -> None:
    X = points(20, 31) * 1e3 + 1e4 * (layout == "dense")
    gram = Gram(laid_out(X, layout), spec_of(name, 31), precision)
    assert (gram.diagonal() == 1.0).all()
    assert gram.block([1], [4])[0, 0] == 1.0  # points() repeats row 1 as row 4


def test_distances_keep_their_accuracy_far_from_the_origin() -> None:
    X = points(40, 8) + 1e4
    K = Gram(X, KernelSpec.make("rbf", gamma=0.1), "float32").block()
    assert_near(K, rbf(X, X, 0.1), "float32")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EVALUATED)
def test_values_do_not_depend_on_grouping_slots_or_threads(
    name: str, layout: str, precision: str
) -> None:
    n, d = 83, 19
    X = laid_out(points(n, d), layout)
    gram = Gram(X, spec_of(name, d), precision, 1)
    K = gram.block()
    rng = np.random.default_rng(3)
    for count in range(1, 15):
        rows = rng.integers(0, n, count)
        columns = rng.permutation(n)[: 5 * count]
        np.testing.assert_array_equal(gram.block(rows, columns), K[np.ix_(rows, columns)])
    np.testing.assert_array_equal(Gram(X, spec_of(name, d), precision, 2).block(), K)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_decision_is_the_ordered_float64_sum_whatever_the_threads(
    layout: str, precision: str
) -> None:
    X, Z = points(700, 23), points(611, 23, seed=5)
    coef = np.random.default_rng(1).standard_normal((700, 3))
    results = []
    for threads in (1, 2):
        gram = Gram(laid_out(X, layout), spec_of("rbf", 23), precision, threads)
        results.append(gram.decision(None, coef, laid_out(Z, layout)))
        exact = gram.cross(laid_out(Z, layout)).astype(np.float64).T @ coef
        np.testing.assert_allclose(results[-1], exact, rtol=0, atol=1e-12 * len(X))
    np.testing.assert_array_equal(results[0], results[1])
    single = gram.decision(None, coef[:, 1], laid_out(Z, layout))
    np.testing.assert_array_equal(single[:, 0], results[0][:, 1])
    some = np.array([5, 3, 699, 3])
    np.testing.assert_allclose(
        gram.decision(some, coef[:4], laid_out(Z, layout)),
        gram.cross(laid_out(Z, layout)).astype(np.float64)[some].T @ coef[:4],
        atol=1e-12,
    )


@pytest.mark.parametrize("name", EVALUATED)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_dense_and_csr_agree(name: str, precision: str) -> None:
    X = points(50, 40, density=0.2)
    dense = Gram(X, spec_of(name, 40), precision).block()
    sparse = Gram(scipy.sparse.csr_matrix(X), spec_of(name, 40), precision).block()
    assert_near(sparse, dense.astype(np.float64), precision, 2.0)


@pytest.mark.parametrize("n_features", [3000, 120_000])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", EVALUATED)
def test_many_features(name: str, precision: str, n_features: int) -> None:
    """Columns are then renumbered panel by panel, or met by spread-out rows when these are few."""
    rng = np.random.default_rng(2)
    X = abs(scipy.sparse.random(130, n_features, 40 / n_features, "csr", rng=rng))
    common = abs(scipy.sparse.random(130, n_features, 0, "csr", rng=rng)).tolil()
    common[:, :20] = rng.random((130, 20)) * (rng.random((130, 20)) < 0.5)
    X = (X + common.tocsr()).tocsr()
    used = np.unique(X.indices)
    small = np.asarray(X[:, used].todense())
    spec = spec_of(name, n_features)
    if isinstance(spec.params.get("gamma"), tuple):
        reference_spec = spec.with_params(gamma=np.asarray(spec.params["gamma"])[used])
    else:
        reference_spec = spec
    reference = Gram(small, reference_spec, "float64").block()
    gram = Gram(X, spec, precision, 2)
    K = gram.block()
    assert_near(K, reference, precision)
    np.testing.assert_array_equal(K, K.T)
    for rows in ([7], [7, 8], list(range(9)), list(range(40))):
        np.testing.assert_array_equal(gram.block(rows, None), K[rows])
    np.testing.assert_array_equal(gram.block(None, [3, 99]), K[:, [3, 99]])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EVALUATED)
def test_empty_and_degenerate_data(name: str, layout: str) -> None:
    gram = Gram(laid_out(np.zeros((3, 4)), layout), spec_of(name, 4), "float64")
    np.testing.assert_allclose(gram.block(), oracle_of(name, np.zeros((3, 4)), np.zeros((3, 4))))
    assert gram.block([], []).shape == (0, 0)
    assert gram.block([1], []).shape == (1, 0)
    assert gram.cross(laid_out(np.zeros((0, 4)), layout)).shape == (3, 0)
    empty = Gram(laid_out(np.zeros((0, 4)), layout), spec_of(name, 4), "float64")
    assert empty.block().shape == (0, 0)
    assert empty.diagonal().shape == (0,)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_subnormal_and_huge_values_stay_finite(layout: str, precision: str) -> None:
    tiny = float(np.finfo(precision).tiny)
    X = np.array([[tiny / 8, 0.0], [0.0, tiny / 2], [1.0, 2.0]])
    for name in EVALUATED:
        assert np.isfinite(Gram(laid_out(X, layout), spec_of(name, 2), precision).block()).all()
    far = np.array([[0.0], [1e15]])
    K = Gram(laid_out(far, layout), KernelSpec.make("rbf", gamma=1.0), precision).block()
    assert K.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_accepts_strided_rows_and_both_float_types() -> None:
    X = points(30, 12)
    reference = Gram(X, spec_of("rbf", 12), "float64").block()
    wide = np.zeros((30, 20))
    wide[:, :12] = X
    for view in (wide[:, :12], np.asfortranarray(X), wide[::-1, :12][::-1], X.tolist()):
        np.testing.assert_array_equal(Gram(view, spec_of("rbf", 12), "float64").block(), reference)
    single = Gram(X.astype(np.float32), spec_of("rbf", 12), "float64").block()
    exact = Gram(X.astype(np.float32).astype(np.float64), spec_of("rbf", 12), "float64").block()
    np.testing.assert_array_equal(single, exact)
    long_indices = scipy.sparse.csr_matrix(X)
    long_indices.indices = long_indices.indices.astype(np.int64)
    long_indices.indptr = long_indices.indptr.astype(np.int64)
    np.testing.assert_allclose(
        Gram(long_indices, spec_of("rbf", 12), "float64").block(), reference, atol=1e-14
    )


def test_unsorted_csr_is_sorted_first() -> None:
    X = scipy.sparse.csr_matrix(points(10, 6))
    shuffled = X.copy()
    for i in range(10):
        part = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.indices[part] = X.indices[part][::-1]
        shuffled.data[part] = X.data[part][::-1]
    shuffled.has_sorted_indices = False
    np.testing.assert_array_equal(
        Gram(shuffled, spec_of("rbf", 6)).block(), Gram(X, spec_of("rbf", 6)).block()
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_precomputed_reads_the_columns_matrix(layout: str, precision: str) -> None:
    K = points(9, 9).astype(np.float32).astype(np.float64)
    T = points(4, 9, seed=8).astype(np.float32).astype(np.float64)
    gram = Gram(laid_out(K, layout), KernelSpec.make("precomputed"), precision)
    assert gram.layout == "precomputed"
    np.testing.assert_array_equal(gram.block([1, 5], [0, 2, 8]), K[np.ix_([0, 2, 8], [1, 5])].T)
    np.testing.assert_array_equal(gram.diagonal(), np.diag(K))
    np.testing.assert_array_equal(gram.cross(laid_out(T, layout)), T.T)
    coef = np.arange(9.0)
    np.testing.assert_allclose(gram.decision(None, coef, laid_out(T, layout))[:, 0], T @ coef)


def test_mismatches_are_refused() -> None:
    gram = Gram(points(5, 3), spec_of("rbf", 3))
    with pytest.raises(ValueError, match="features"):
        gram.cross(np.zeros((2, 4)))
    with pytest.raises(IndexError, match="outside"):
        gram.block([5], [0])
    with pytest.raises(IndexError, match="outside"):
        gram.block([-1], [0])
    with pytest.raises(ValueError, match="coefficients"):
        gram.decision(None, np.ones(4), points(2, 3))
    with pytest.raises(ValueError, match="float16"):
        Gram(points(5, 3), spec_of("rbf", 3), "float16")
    with pytest.raises(ValueError, match="scales 2 features"):
        Gram(points(5, 3), spec_of("rbf-ard", 2))
    with pytest.raises(ValueError, match="dimensions"):
        Gram(np.zeros(3), spec_of("rbf", 3))
    with pytest.raises(ValueError, match="not resolved"):
        Gram(points(5, 3), KernelSpec.make("rbf"))


def test_the_other_data_set_may_have_the_other_layout() -> None:
    X, Z = points(12, 5), points(8, 5, seed=9)
    exact = oracle_of("rbf", X, Z)
    for left in LAYOUTS:
        for right in LAYOUTS:
            K = Gram(laid_out(X, left), spec_of("rbf", 5), "float64").cross(laid_out(Z, right))
            assert_near(K, exact, "float64")
