"""Linear least squares against stacked least squares, retraining, scikit-learn and itself."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.least_squares import centred_rows
from kfu.least_squares.linear_rls import METHODS, decompose_linear, solve_linear_rls
from tests.oracles import least_squares_linear as oracle

DIRECT = [name for name in METHODS if name != "cg"]
TIGHT = 1e-12  # of conjugate gradients, where they are compared


def problem(n, d, t=2, seed=0, density=0.5, shift=0.7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + shift
    X[rng.random((n, d)) > density] = 0.0
    Y = X @ rng.normal(size=(d, t)) + rng.normal(size=(n, t)) + 3.0
    weight = rng.integers(1, 4, size=n).astype(float)
    return X, Y, weight


def close(found, expected, rel=1e-8):
    scale = max(np.abs(expected).max(), 1e-12)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rel * scale)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(40, 7), (12, 30), (15, 15)])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_weights_are_those_of_stacked_least_squares(
    method, shape, is_sparse, intercept, is_weighted
):
    X, Y, weight = problem(*shape)
    weight = weight if is_weighted else None
    v, b = oracle.fit(X, Y, 0.3, weight, intercept)
    data = sp.csr_matrix(X) if is_sparse else X
    options = {"weight": weight, "intercept": intercept, "method": method, "dual": True}
    found = solve_linear_rls(data, Y, 0.3, tolerance=TIGHT, **options)
    close(found.weights, v.T)
    close(found.bias, b)
    close(found.fitted, X @ v + b)
    close(X.T @ found.dual_coef, v, rel=1e-7)
    w = np.ones(len(Y)) if weight is None else weight
    close(found.dual_coef, w[:, None] * (Y - X @ v - b) / 0.3, rel=1e-7)
    if intercept:
        assert np.abs(found.dual_coef.sum(axis=0)).max() < 1e-7 * np.abs(found.dual_coef).max()
    assert found.info["method"] == method
    assert found.info["residual"] < 1e-9
    assert found.loo_residuals is None


@pytest.mark.parametrize("method", [*DIRECT, "auto"])
@pytest.mark.parametrize("shape", [(25, 4), (9, 20)])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_leave_one_out_is_that_of_retraining(method, shape, is_sparse, intercept):
    X, Y, weight = problem(*shape, seed=1)
    weight[3] = 0.0
    data = sp.csr_matrix(X) if is_sparse else X
    options = {"weight": weight, "intercept": intercept}
    found = solve_linear_rls(data, Y, 0.2, method=method, loo=True, **options)
    close(found.loo_residuals, oracle.loo_residuals(X, Y, 0.2, weight, intercept))
    close(found.leverages, oracle.leverages(X, 0.2, weight, intercept))


@pytest.mark.parametrize("step", [0.01, 1e9])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
def test_both_ways_to_form_a_sparse_matrix_agree(step, shape, monkeypatch):
    """Sparse products with rank-one corrections, and rows written out in blocks of a few."""
    monkeypatch.setattr(centred_rows, "SPARSE_STEP", step)
    monkeypatch.setattr(centred_rows, "BLOCK_BYTES", 8 * 40 * 17)
    X, Y, weight = problem(*shape, density=0.1)
    v, b = oracle.fit(X, Y, 0.5, weight, True)
    expected = oracle.loo_residuals(X, Y, 0.5, weight, True)
    for method in ("primal", "dual", "eig"):
        for data in (sp.csr_matrix(X), X):
            found = solve_linear_rls(
                data, Y, 0.5, weight=weight, intercept=True, method=method, loo=True
            )
            close(found.weights, v.T)
            close(found.bias, b)
            close(found.loo_residuals, expected)


def test_leverages_of_very_sparse_rows_come_from_the_inverse():
    X, Y, weight = problem(600, 30, density=0.05)
    both = [
        solve_linear_rls(
            data, Y, 0.5, weight=weight, intercept=True, loo=True, method="primal"
        ).leverages
        for data in (X, sp.csr_matrix(X))
    ]
    close(both[1], both[0])
    assert both[0].sum() == pytest.approx(oracle.leverages(X, 0.5, weight, True).sum(), rel=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_sklearn_ridge(intercept):
    ridge = pytest.importorskip("sklearn.linear_model").Ridge
    X, Y, weight = problem(50, 8)
    for data, solver in ((X, "cholesky"), (sp.csr_matrix(X), "sparse_cg")):
        peer = ridge(alpha=0.7, fit_intercept=intercept, solver=solver, tol=1e-13)
        peer.fit(data, Y, sample_weight=weight)
        for method in METHODS:
            found = solve_linear_rls(
                data, Y, 0.7, weight=weight, intercept=intercept, method=method, tolerance=TIGHT
            )
            close(found.weights, peer.coef_, rel=1e-7)
            close(found.bias, peer.intercept_ * np.ones(2), rel=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_integer_weights_are_copies(method):
    X, Y, weight = problem(20, 6)
    weight[2] = 0.0
    repeated = np.repeat(np.arange(20), weight.astype(int))
    options = {"intercept": True, "method": method, "tolerance": TIGHT}
    weighted = solve_linear_rls(X, Y, 0.4, weight=weight, **options)
    copied = solve_linear_rls(X[repeated], Y[repeated], 0.4, **options)
    close(weighted.weights, copied.weights)
    close(weighted.bias, copied.bias)
    close(weighted.fitted[repeated], copied.fitted)


@pytest.mark.parametrize("method", METHODS)
def test_rows_and_targets_may_be_permuted_and_scaled(method):
    X, Y, weight = problem(18, 25)
    order = np.random.default_rng(3).permutation(18)
    options = {"intercept": True, "method": method, "tolerance": TIGHT}
    first = solve_linear_rls(X, Y, 0.4, weight=weight, **options)
    second = solve_linear_rls(
        X[order], 5.0 * Y[order][:, ::-1], 0.4, weight=weight[order], **options
    )
    close(second.weights, 5.0 * first.weights[::-1])
    close(second.fitted, 5.0 * first.fitted[order][:, ::-1])
    moved = solve_linear_rls(X + 4.0, Y - 2.0, 0.4, weight=weight, **options)
    close(moved.weights, first.weights, rel=1e-7)
    close(moved.fitted, first.fitted - 2.0, rel=1e-7)


@pytest.mark.parametrize("method", ["eig", "svd"])
@pytest.mark.parametrize("shape", [(22, 5), (8, 20), (9, 9)])
@pytest.mark.parametrize("intercept", [False, True])
def test_all_ridges_from_one_decomposition(method, shape, intercept):
    X, Y, weight = problem(*shape)
    ridges = [3.0, 1e-3, 0.2]
    spectrum = decompose_linear(X, Y, weight=weight, intercept=intercept, method=method)
    table = spectrum.table(ridges)
    assert table.ridge.tolist() == sorted(ridges)
    for k, ridge in enumerate(sorted(ridges)):
        v, b = oracle.fit(X, Y, ridge, weight, intercept)
        left = oracle.loo_residuals(X, Y, ridge, weight, intercept)
        train = (weight @ (Y - X @ v - b) ** 2).sum() / weight.sum()
        df = oracle.leverages(X, ridge, weight, intercept).sum()
        assert table.loo[k] == pytest.approx((weight @ left**2).sum() / weight.sum(), rel=1e-6)
        assert table.gcv[k] == pytest.approx(oracle.gcv(X, Y, ridge, weight, intercept), rel=1e-5)
        assert table.train[k] == pytest.approx(train, rel=1e-6)
        assert table.df[k] == pytest.approx(df, rel=1e-8)
        close(spectrum.solve(ridge)[0], v, rel=1e-7)
    with pytest.raises(SettingsError, match="ridges"):
        spectrum.table([1.0, 0.0])


def test_far_mean_costs_dense_rows_nothing():
    X, Y, weight = problem(30, 5, density=1.0)
    v, _ = oracle.fit(X, Y, 0.3, weight, True)
    for method in METHODS:
        found = solve_linear_rls(
            X + 1e6, Y, 0.3, weight=weight, intercept=True, method=method, tolerance=1e-10
        )
        close(found.weights, v.T, rel=1e-6)


def test_ridge_below_rounding():
    """1e-14 beside ‖A‖² of 1e8: Cholesky fails or has lost all, singular values have not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    X[:, 5] = X[:, 4]
    X *= 1e4
    Y = rng.normal(size=(30, 1))
    found = solve_linear_rls(X, Y, 1e-14, method="auto")
    assert found.info["method"] == "svd"
    half = found.weights[0, 4]
    assert found.weights[0, 5] == pytest.approx(half, rel=1e-3)
    with pytest.raises(SettingsError, match="svd"):
        solve_linear_rls(X, Y, 1e-14, method="primal")


def test_interpolation_keeps_its_leave_one_out():
    """More features than rows and a tiny ridge: 1 − h is 1e-10, and still exact."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(10, 40)), rng.normal(size=(10, 1))
    for intercept in (False, True):
        expected = oracle.loo_residuals(X, Y, 1e-9, None, intercept)
        for method in ("dual", "eig", "svd"):
            found = solve_linear_rls(X, Y, 1e-9, intercept=intercept, method=method, loo=True)
            close(found.loo_residuals, expected, rel=1e-6)


def test_one_row_and_constant_features():
    alone = solve_linear_rls([[2.0, 1.0]], [3.0], 1.0, loo=True)
    np.testing.assert_allclose(alone.weights, [[1.0, 0.5]])
    np.testing.assert_allclose(alone.loo_residuals, [[3.0]])
    mean = solve_linear_rls([[2.0, 1.0]], [3.0], 1.0, intercept=True, loo=True)
    np.testing.assert_allclose(mean.weights, 0.0)
    np.testing.assert_allclose(mean.bias, 3.0)
    assert np.isnan(mean.loo_residuals).all()
    for method in METHODS:
        flat = solve_linear_rls(
            np.ones((4, 2)), [1.0, 2.0, 3.0, 6.0], 0.5, intercept=True, method=method
        )
        np.testing.assert_allclose(flat.weights, 0.0, atol=1e-12)
        np.testing.assert_allclose(flat.bias, 3.0)
        nothing = solve_linear_rls(sp.csr_matrix((4, 3)), np.ones(4), 0.5, method=method)
        np.testing.assert_array_equal(nothing.weights, 0.0)


def test_ivanov_counterexample():
    """Rows at the origin and one at (1, 1): slope 1/(1 + λℓ)."""
    X = np.zeros((20, 1))
    X[-1] = 1.0
    found = solve_linear_rls(X, X[:, 0], 0.25)
    assert found.weights[0, 0] == pytest.approx(1.0 / 1.25, rel=1e-12)


def test_cheapest_method_is_chosen():
    tall, _, _ = problem(400, 5)
    assert solve_linear_rls(tall, tall[:, :1], 1.0).info["method"] == "primal"
    wide = np.ascontiguousarray(tall.T)
    assert solve_linear_rls(wide, wide[:, :1], 1.0).info["method"] == "dual"
    text = sp.random(2000, 2000, density=0.003, random_state=0, format="csr")
    found = solve_linear_rls(text, np.asarray(text.sum(axis=1)), 1.0)
    assert found.info["method"] == "cg"
    assert found.info["status"] == "converged"


def test_float32_and_input_left_alone():
    X, Y, weight = problem(30, 5)
    single = X.astype(np.float32)
    before = single.copy(), Y.copy(), weight.copy()
    for method in METHODS:
        found = solve_linear_rls(
            single, Y, 0.3, weight=weight, intercept=True, method=method, tolerance=TIGHT
        )
        v, _ = oracle.fit(single.astype(float), Y, 0.3, weight, True)
        close(found.weights, v.T, rel=1e-6)
    for now, then in zip((single, Y, weight), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_bad_settings_and_data():
    X, Y, _ = problem(10, 3)
    for ridge in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(SettingsError, match="ridge"):
            solve_linear_rls(X, Y, ridge)
    with pytest.raises(SettingsError, match="primal"):
        solve_linear_rls(X, Y, 1.0, method="cholesky")
    with pytest.raises(SettingsError, match="leave-one-out"):
        solve_linear_rls(X, Y, 1.0, method="cg", loo=True)
    with pytest.raises(DataError, match="targets"):
        solve_linear_rls(X, Y[:5], 1.0)
    with pytest.raises(DataError, match="finite"):
        solve_linear_rls(X, np.full(10, np.nan), 1.0)
    with pytest.raises(DataError, match="weight"):
        solve_linear_rls(X, Y, 1.0, weight=-np.ones(10))
    with pytest.raises(DataError, match="rows"):
        solve_linear_rls(np.empty((0, 3)), np.empty((0, 1)), 1.0)


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA is not set")
def test_text_by_every_method():
    from kfu import read_dataset

    data = read_dataset(os.path.join(os.environ["KFU_DATA"], "reuters-grain.tr.gz"))
    test = read_dataset(os.path.join(os.environ["KFU_DATA"], "reuters-grain.t.gz"))
    direct = solve_linear_rls(data.X, data.y, 1.0, intercept=True, method="dual")
    steps = solve_linear_rls(data.X, data.y, 1.0, intercept=True, method="cg")
    close(steps.weights, direct.weights, rel=1e-6)
    outputs = test.X @ direct.weights[0, : test.X.shape[1]] + direct.bias
    assert np.mean(np.sign(outputs) == test.y) > 0.94
