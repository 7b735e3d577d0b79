"""Low-rank least squares against whole matrices: rectangle, nystrom, subset, falkon, bagging."""

from __future__ import annotations

import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.errors import DataError, SettingsError
from kfu.io import read_dataset
from kfu.kernels import KernelSpec
from kfu.least_squares import ridge_system, whitening
from kfu.least_squares.bagging import bagged
from kfu.least_squares.centres import choose_centres
from kfu.least_squares.falkon import falkon
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.rectangle import rectangle, trace_portion
from kfu.least_squares.subset_methods import nystrom, subset
from tests.oracles import low_rank as oracle

GAMMA = 0.3
RBF = KernelSpec.make("rbf", gamma=GAMMA)
N, M = 90, 25
RIDGE = 0.2


def gauss(A, B, gamma=GAMMA):
    return np.exp(-gamma * np.square(A[:, None] - B[None]).sum(-1))


@pytest.fixture(scope="module")
def case():
    """X, Y, K, centres and weights (some 0)."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * rng.normal(size=N), np.sign(X[:, 1])])
    weight = rng.uniform(0.0, 2.0, N) * (rng.random(N) > 0.1)
    return X, Y, gauss(X, X), rng.choice(N, M, replace=False), weight


def close(a, b, tolerance):
    return np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("form", ["plain", "whitened"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rectangle_is_the_least_squares_solution(case, form, bias, weighted):
    X, Y, K, rows, weight = case
    w = weight if weighted else None
    fit = rectangle(X, Y, RBF, rows, RIDGE, weight=w, bias=bias, form=form, block=17)
    c, b = oracle.rectangle(K, rows, Y, RIDGE, w, bias)
    outputs = K[:, rows] @ c + b
    assert close(fit.coef, c, 1e-8)
    assert close(fit.bias, b, 1e-9)
    assert close(fit.decision(X, X, RBF), outputs, 1e-9)
    weights = np.ones(N) if w is None else w
    residual = weights @ np.square(outputs - Y)
    assert np.allclose(fit.info["residual"], residual, rtol=1e-8)
    norm = np.einsum("jt,jk,kt->t", c, K[np.ix_(rows, rows)], c)
    assert np.allclose(fit.info["norm"], norm, rtol=1e-8)
    tilde = oracle.approximate(K, rows).diagonal()
    assert fit.info["trace_portion"] == pytest.approx(weights @ tilde / weights.sum(), rel=1e-9)
    assert trace_portion(X, RBF, rows, weight=w) == pytest.approx(fit.info["trace_portion"])


def test_rectangle_is_full_least_squares_under_the_approximate_kernel(case):
    """The primal form over m centres and the dual form over n rows."""
    X, Y, K, rows, _ = case
    tilde = oracle.approximate(K, rows)
    v = oracle.full(tilde, Y, RIDGE)
    fit = rectangle(X, Y, RBF, rows, RIDGE)
    assert close(fit.decision(X, X, RBF), tilde @ v, 1e-9)


def test_all_rows_as_centres_is_full_least_squares(case):
    X, Y, K, _, weight = case
    c = oracle.full(K, Y, RIDGE, weight)
    for form in ("plain", "whitened"):
        fit = rectangle(X, Y, RBF, np.arange(N), RIDGE, weight=weight, form=form)
        assert close(fit.decision(X, X, RBF), K @ c, 1e-7)


def test_nystrom_with_the_approximate_kernel_is_rectangle_and_with_the_true_one_is_not(case):
    X, Y, K, rows, weight = case
    tilde = oracle.approximate(K, rows)
    Z = np.random.default_rng(1).normal(size=(40, 3))
    Kz = gauss(Z, X)
    tilde_z = Kz[:, rows] @ np.linalg.pinv(K[np.ix_(rows, rows)], hermitian=True) @ K[rows]
    v = oracle.full(tilde, Y, RIDGE, weight)
    true = nystrom(X, Y, RBF, rows, RIDGE, weight=weight, block=31)
    assert close(true.coef, v, 1e-8)
    assert np.array_equal(true.rows, np.arange(N))
    assert close(true.decision(X, Z, RBF), Kz @ v, 1e-8)
    approximate = nystrom(X, Y, RBF, rows, RIDGE, weight=weight, test_kernel="approximate")
    assert close(approximate.decision(X, Z, RBF), tilde_z @ v, 1e-8)
    same = rectangle(X, Y, RBF, rows, RIDGE, weight=weight)
    assert close(approximate.coef, same.coef, 1e-8)
    assert not close(true.decision(X, Z, RBF), same.decision(X, Z, RBF), 1e-2)


@pytest.mark.parametrize("bias", [False, True])
def test_subset(case, bias):
    X, Y, K, rows, weight = case
    fit = subset(X, Y, RBF, rows, RIDGE, weight=weight, bias=bias)
    inner = K[np.ix_(rows, rows)]
    if bias:
        c, b = oracle.rectangle(inner, np.arange(M), Y[rows], RIDGE, weight[rows], True)
        expected = gauss(X, X[rows]) @ c + b
        assert close(fit.bias, b, 1e-8)
    else:
        expected = gauss(X, X[rows]) @ oracle.full(inner, Y[rows], RIDGE, weight[rows])
    assert close(fit.decision(X, X, RBF), expected, 1e-8)
    assert (fit.coef[weight[rows] == 0] == 0.0).all()


@pytest.mark.parametrize("layout", ["csr", "precomputed"])
@pytest.mark.parametrize("method", [rectangle, nystrom, subset, falkon])
def test_layouts_agree(case, layout, method):
    X, Y, K, rows, _ = case
    dense = method(X, Y, RBF, rows, RIDGE)
    if layout == "csr":
        data, kernel, probe = sp.csr_matrix(X), RBF, sp.csr_matrix(X)
    else:
        data, kernel, probe = K, KernelSpec.make("precomputed"), K
    other = method(data, Y, kernel, rows, RIDGE)
    outputs = other.decision(data, probe, kernel)
    assert close(outputs, dense.decision(X, X, RBF), 1e-6)


# -- sums over blocks -----------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, N), max_size=6), seed=st.integers(0, 99), plain=st.booleans())
def test_blocks_in_any_size_and_order_and_merged_sums_give_one_solution(cuts, seed, plain):
    rng = np.random.default_rng(7)
    X, Y = rng.normal(size=(N, 3)), rng.normal(size=(N, 2))
    weight = rng.uniform(0.1, 2.0, N)
    form = "plain" if plain else "whitened"
    whole = NormalEquations(X[:M], RBF, 2, form=form).add(X, Y, weight).solve(RIDGE)
    edges = [0, *sorted(cuts), N]
    parts = [slice(a, b) for a, b in itertools.pairwise(edges)]
    order = np.random.default_rng(seed).permutation(len(parts))
    streamed = NormalEquations(X[:M], RBF, 2, form=form)
    merged = NormalEquations(X[:M], RBF, 2, form=form)
    for k in order:
        block = (X[parts[k]], Y[parts[k]], weight[parts[k]])
        streamed.add(*block)
        merged.merge(NormalEquations(X[:M], RBF, 2, form=form).add(*block))
    K = gauss(X, X[:M])
    assert close(K @ streamed.solve(RIDGE).coef, K @ whole.coef, 1e-10)
    assert close(K @ merged.solve(RIDGE).coef, K @ whole.coef, 1e-10)


def test_sums_travel_and_go_on_after_a_solution(case):
    X, Y, _, rows, _ = case
    first = NormalEquations(X[rows], RBF, 2).add(X[:40], Y[:40])
    early = first.solve(RIDGE)
    travelled = pickle.loads(pickle.dumps(first)).add(X[40:], Y[40:])
    whole = rectangle(X, Y, RBF, rows, RIDGE)
    assert close(travelled.solve(RIDGE).coef, whole.coef, 1e-10)
    assert not close(early.coef, whole.coef, 1e-3)
    with pytest.raises(SettingsError, match="different centres"):
        first.merge(NormalEquations(X[rows[::-1]], RBF, 2))
    with pytest.raises(SettingsError, match="outputs"):
        first.merge(NormalEquations(X[rows], RBF, 1))


def test_weight_two_is_a_row_twice(case):
    X, Y, _, rows, _ = case
    weight = np.where(np.arange(N) < 30, 2.0, 1.0)
    twice = np.vstack([X, X[:30]]), np.vstack([Y, Y[:30]])
    fit = rectangle(X, Y, RBF, rows, RIDGE, weight=weight, bias=True)
    other = rectangle(*twice, RBF, rows, RIDGE, bias=True)
    assert close(fit.coef, other.coef, 1e-9)
    assert close(fit.bias, other.bias, 1e-10)


@pytest.mark.parametrize("form", ["plain", "whitened"])
def test_float32_values(case, form):
    X, Y, K, rows, _ = case
    c, _ = oracle.rectangle(K, rows, Y, RIDGE)
    fit = rectangle(X, Y, RBF, rows, RIDGE, precision="float32", form=form)
    assert close(fit.decision(X, X, RBF), K[:, rows] @ c, 1e-4)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_dependent_centres_are_left_out(case, precision):
    """A wide Gaussian, and every centre twice: K_mm is singular to the last digit."""
    X, Y, _, rows, _ = case
    X, Y = np.vstack([X, X]), np.vstack([Y, Y])
    both = np.concatenate([rows, rows + N])
    wide = KernelSpec.make("rbf", gamma=0.01)
    K = gauss(X, X, 0.01)
    c, _ = oracle.rectangle(K, rows, Y, RIDGE)
    fit = rectangle(X, Y, wide, both, RIDGE, precision=precision)
    assert fit.info["rank"] <= M
    assert fit.info["form"] == "whitened"
    tolerance = 1e-6 if precision == "float64" else 2e-2
    assert close(fit.decision(X, X, wide), K[:, rows] @ c, tolerance)


def test_a_linear_kernel_has_the_rank_of_its_features(case):
    X, Y, _, rows, _ = case
    linear = KernelSpec.make("linear")
    fit = rectangle(X, Y, linear, rows, RIDGE)
    w = np.linalg.solve(X.T @ X + RIDGE * np.eye(3), X.T @ Y)
    assert fit.info["rank"] == 3
    assert close(fit.decision(X, X, linear), X @ w, 1e-9)
    assert fit.info["trace_portion"] == pytest.approx(1.0)


# -- ridges and leave-one-out ---------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 10], ids=["eigen", "cholesky"])
@pytest.mark.parametrize("bias", [False, True])
def test_many_ridges_and_their_leave_one_out_outputs(case, most, bias, monkeypatch):
    X, Y, K, rows, weight = case
    monkeypatch.setattr(ridge_system, "MOST_CHOLESKY", most)
    weight = np.maximum(weight, 0.2)
    ridges = [0.01, 0.3, 5.0]
    sums = NormalEquations(X[rows], RBF, 2).add(X, Y, weight)
    fits = sums.solve(ridges, bias=bias)
    left = sums.loo_pass(X, Y, ridges, weight, bias=bias)
    squares = []
    for k, ridge in enumerate(ridges):
        c, b = oracle.rectangle(K, rows, Y, ridge, weight, bias)
        assert close(fits[k].coef, c, 1e-7)
        assert close(fits[k].bias, b, 1e-8)
        assert fits[k].info["solved_by"] == ("cholesky" if most else "eigen")
        expected = oracle.loo_outputs(K, rows, Y, ridge, weight, bias)
        assert close(left[k], expected, 1e-7)
        squares.append(weight @ np.square(Y - expected).mean(axis=1) / weight.sum())
    fit = rectangle(X, Y, RBF, rows, ridges, weight=weight, bias=bias, block=20)
    assert np.allclose(fit.info["loo_square"], squares, rtol=1e-7)
    assert fit.ridge == ridges[int(np.argmin(squares))]
    assert close(sums.loo_pass(X, Y, 0.3, weight, bias=bias), left[1], 1e-8)


def test_conditions_are_those_of_the_matrices(case):
    X, Y, K, rows, _ = case
    fit = rectangle(X, Y, RBF, rows, RIDGE)
    true = 1.0 / np.linalg.cond(K[np.ix_(rows, rows)], 1)
    assert true <= fit.info["reciprocal_condition_centres"] * 1.001 <= 10 * true


@pytest.mark.parametrize("bias", [False, True])
def test_equations_solved_as_they_stand_tell_their_residual_and_condition(case, bias):
    """One ridge: no whitening. The same machine as by the whitened system of two ridges."""
    X, Y, K, rows, weight = case
    sums = NormalEquations(X[rows], RBF, 2, form="plain").add(X, Y, weight)
    fit = sums.solve(RIDGE, bias=bias)
    assert 0.0 <= fit.info["equations_residual"] <= 1e-12
    L = K[:, rows]
    mean = weight @ L / weight.sum() if bias else np.zeros(M)
    centred = (L - mean) * np.sqrt(weight)[:, None]
    matrix = centred.T @ centred + RIDGE * K[np.ix_(rows, rows)]
    target = Y - (weight @ Y / weight.sum() if bias else 0.0)
    right = (L - mean).T @ (weight[:, None] * target)
    assert close(matrix @ fit.coef, right, 1e-12)
    true = 1.0 / np.linalg.cond(matrix, 1)
    assert true <= fit.info["reciprocal_condition"] * 1.001 <= 10 * true
    whitened = sums.solve([RIDGE, 1.0], bias=bias)[0]
    assert "equations_residual" not in whitened.info
    assert close(fit.coef, whitened.coef, 1e-9)
    assert close(fit.bias, whitened.bias, 1e-10)
    for figure in ("residual", "norm"):
        assert np.allclose(fit.info[figure], whitened.info[figure], rtol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
def test_the_trace_is_the_same_with_and_without_whitening(case, bias):
    X, Y, _, rows, weight = case
    sums = NormalEquations(X[rows], RBF, 2, form="plain").add(X, Y, weight)
    trace = sums.trace()
    sums.add(X[:1], Y[:1], np.array([1e-300]))  # the sums are the same and forgotten
    sums.solve(RIDGE, bias=bias)
    assert sums.trace() == pytest.approx(trace, rel=1e-10)
    assert sums.trace() != trace  # found in another way


def test_sums_that_rounding_made_indefinite_are_whitened_and_cut_off(case):
    X, Y, _, rows, _ = case
    sums = NormalEquations(X[rows], RBF, 2, form="plain").add(X, Y)
    sums.B -= 0.5 * np.eye(M)  # as if
    fit = sums.solve(1e-3)
    assert (fit.info["solved_by"], "equations_residual" in fit.info) == ("eigen", False)
    assert fit.info["clipped_eigenvalues"] > 0
    assert np.isfinite(fit.coef).all()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_centres_in_any_order_of_pivots_have_the_same_kernel(case, precision, monkeypatch):
    X, _, _, rows, _ = case
    far = KernelSpec.make("rbf", gamma=5.0)
    natural = whitening.Whitening(X[rows], far, precision)
    monkeypatch.setattr(whitening, "WELL_ABOVE", np.inf)
    pivoted = whitening.Whitening(X[rows], far, precision)
    assert natural.kept.tolist() == list(range(M)) != pivoted.kept.tolist()
    assert sorted(pivoted.kept) == list(range(M))
    products = [w.features(X) @ w.features(X).T for w in (natural, pivoted)]
    assert close(*products, 1e-12 if precision == "float64" else 1e-5)
    assert natural.reciprocal_condition == pytest.approx(pivoted.reciprocal_condition, rel=1e-6)
    for found in (natural, pivoted):
        L, K = np.tril(found.factor), gauss(X[rows], X[rows], 5.0)[np.ix_(found.kept, found.kept)]
        assert close(L @ L.T, K, 1e-12)
        assert close(np.tril(found.centre_values()), np.tril(K), 1e-12)


# -- falkon ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("cache_mib", [0.0, 100.0])
def test_falkon_converges_to_rectangle(case, bias, cache_mib):
    X, Y, _, rows, weight = case
    Y = np.column_stack([Y, np.zeros(N)])
    options = {"weight": weight, "bias": bias}
    fit = falkon(X, Y, RBF, rows, RIDGE, tolerance=1e-9, cache_mib=cache_mib, block=13, **options)
    same = rectangle(X, Y, RBF, rows, RIDGE, **options)
    assert fit.info["status"] == "converged"
    assert max(fit.info["residual"]) < 1e-7
    assert close(fit.decision(X, X, RBF), same.decision(X, X, RBF), 1e-7)
    assert close(fit.coef, same.coef, 1e-6)
    assert np.abs(fit.coef[:, 2]).max() < 1e-12


def test_falkon_needs_few_iterations_with_a_sample_of_its_own():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1500, 3))
    Y = np.sin(X @ rng.normal(size=(3, 2)))
    rows = choose_centres("random", X, RBF, 150).rows
    fit = falkon(X, Y, RBF, rows, 1e-2, tolerance=1e-8)
    assert fit.info["status"] == "converged"
    assert fit.info["iterations"] <= 60
    of_centres = falkon(X, Y, RBF, rows, 1e-2, tolerance=1e-8, sample=0)
    assert of_centres.info["iterations"] > 2 * fit.info["iterations"]
    assert close(of_centres.decision(X, X, RBF), fit.decision(X, X, RBF), 1e-6)
    same = rectangle(X, Y, RBF, rows, 1e-2)
    assert close(fit.decision(X, X, RBF), same.decision(X, X, RBF), 1e-6)
    stopped = falkon(X, Y, RBF, rows, 1e-2, max_iterations=2)
    assert stopped.info["status"] == "max_iterations"
    assert stopped.info["iterations"] == 2
    assert max(stopped.info["residual"]) > 1e-6


# -- bagging --------------------------------------------------------------------------------------


@pytest.mark.parametrize("disjoint", [False, True])
def test_bagging_is_the_mean_of_its_parts(case, disjoint):
    from kfu.least_squares.bagging import deal

    X, Y, K, _, weight = case
    fit = bagged(X, Y, RBF, 20, RIDGE, parts=6, disjoint=disjoint, seed=4, weight=weight, bias=True)
    parts = deal(np.flatnonzero(weight > 0), 20, 6, disjoint, 4)
    assert fit.info["parts"] == len(parts) == (round((weight > 0).sum() / 20) if disjoint else 6)
    outputs = np.zeros(Y.shape)
    for rows in parts:
        inner = K[np.ix_(rows, rows)]
        c, b = oracle.rectangle(inner, np.arange(len(rows)), Y[rows], RIDGE, weight[rows], True)
        outputs += K[:, rows] @ c + b
    assert close(fit.decision(X, X, RBF), outputs / len(parts), 1e-8)
    if disjoint:
        assert sorted(np.concatenate(parts)) == np.flatnonzero(weight > 0).tolist()


def test_one_disjoint_part_is_full_least_squares(case):
    X, Y, K, _, _ = case
    fit = bagged(X, Y, RBF, N, RIDGE, disjoint=True)
    assert close(fit.coef, oracle.full(K, Y, RIDGE), 1e-8)


# -- what cannot be done --------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, np.inf, []])
@pytest.mark.parametrize("method", [rectangle, subset, nystrom, falkon])
def test_bad_ridges(case, method, ridge):
    X, Y, _, rows, _ = case
    if ridge == [] and method is not rectangle:
        pytest.skip("one ridge only")
    with pytest.raises(SettingsError, match="ridge"):
        method(X, Y, RBF, rows, ridge)


@pytest.mark.parametrize("method", [rectangle, subset, nystrom, falkon])
def test_bad_centres_targets_and_weights(case, method):
    X, Y, _, _, _ = case
    with pytest.raises(SettingsError, match="outside"):
        method(X, Y, RBF, [0, N], RIDGE)
    with pytest.raises(SettingsError, match="twice"):
        method(X, Y, RBF, [3, 3], RIDGE)
    with pytest.raises(SettingsError, match="at least one"):
        method(X, Y, RBF, [], RIDGE)
    bad = Y.copy()
    bad[4, 1] = np.nan
    with pytest.raises(DataError, match="row 5"):
        method(X, bad, RBF, [0, 1], RIDGE)
    with pytest.raises(DataError, match=r"shape .89, 2. for 90 rows"):
        method(X, Y[1:], RBF, [0, 1], RIDGE)
    with pytest.raises(DataError, match="positive weight"):
        method(X, Y, RBF, [0, 1], RIDGE, weight=np.zeros(N))


def test_an_indefinite_kernel_is_named_with_its_pivot():
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(DataError, match=r"not positive semidefinite.*-3"):
        rectangle(K, np.ones(3), KernelSpec.make("precomputed"), [0, 1, 2], 1.0)
    with pytest.raises(DataError, match=r"K.z, z. is 0"):
        rectangle(np.zeros((3, 2)), np.ones(3), KernelSpec.make("linear"), [0, 1], 1.0)


@pytest.mark.parametrize("method", [rectangle, subset, nystrom, falkon])
def test_bad_data_and_kernels_to_be_resolved(case, method):
    X, Y, _, rows, _ = case
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(DataError, match="NaN in row 7"):
        method(bad, Y, RBF, rows, RIDGE)
    with pytest.raises(DataError, match="negative value"):
        method(X, Y, KernelSpec.make("chi2"), rows, RIDGE)
    with pytest.raises(DataError, match="not numbers"):
        method(X, np.full(N, "a"), RBF, rows, RIDGE)
    fit = method(X, Y, KernelSpec.make("rbf"), rows, RIDGE)  # gamma = 1 / features
    third = method(X, Y, KernelSpec.make("rbf", gamma=1 / 3), rows, RIDGE)
    assert close(fit.decision(X, X), third.decision(X, X), 1e-12)


def test_rounding_beyond_the_ridge_ends_in_eigenvalues_cut_off():
    B = np.asfortranarray(np.diag([5.0, -0.5]))
    sums = ridge_system.Sums(B, np.array([[1.0], [1.0]]), np.zeros(2), np.zeros(1), 3.0)
    system = ridge_system.RidgeSystem(sums, [0.1], bias=False)
    assert (system.method, system.clipped) == ("eigen", 1)
    assert np.allclose(system.u[0][:, 0], [1.0 / 5.1, 1.0 / 0.1])


def test_one_row():
    fit = rectangle(np.ones((1, 2)), [3.0], RBF, [0], 0.5, loo=True)
    assert fit.coef[0, 0] == pytest.approx(3.0 / 1.5)
    assert fit.info["loo_square"][0] == pytest.approx(9.0)


# -- real data ------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA is not set")
def test_usps_rectangle_is_best_then_subset_then_nystrom():
    """Rifkin's figure for usps, 4 against the rest: areas under the ROC curve, mean of three.

    The order is that of a small ridge: with ridge 1 nystrom is the best of them.
    """
    from sklearn.metrics import roc_auc_score

    folder = Path(os.environ["KFU_DATA"])
    train, test = (read_dataset(str(folder / f"usps.{part}.gz")) for part in ("tr", "t"))
    X, Z = (np.asarray(d.X.toarray() if sp.issparse(d.X) else d.X) for d in (train, test))
    four = train.y[np.argmin(np.abs(train.y - 5))]  # the digit 4 is class 5 in this file
    assert np.count_nonzero(train.y == four) == 652
    y = np.where(train.y == four, 1.0, -1.0)[:4000]
    X = X[:4000]
    kernel = KernelSpec.make("rbf", gamma=1.0 / 50.0)
    areas = {method: [] for method in (rectangle, subset, nystrom)}
    for seed in range(3):
        rows = choose_centres("random", X, kernel, 512, seed=seed).rows
        for method, found in areas.items():
            outputs = method(X, y, kernel, rows, 0.01).decision(X, Z, kernel, precision="float32")
            found.append(roc_auc_score(test.y == four, outputs[:, 0]))
    means = [np.mean(found) for found in areas.values()]
    assert means[0] > means[1] + 0.003
    assert means[1] > means[2] + 0.01
