"""The full-kernel solution and its exact leave-one-out outputs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares import full as full_module
from kfu.least_squares import gram_matrix as gram_module
from kfu.least_squares import memory, solve_code, solve_full
from kfu.multiclass import decode, resolve_code
from kfu.pairwise import ovo_code
from kfu.solvers.blas_threads import one_blas_thread
from tests.oracles import least_squares as oracle

RBF = KernelSpec.make("rbf", gamma=0.5)
LINEAR = KernelSpec.make("linear")
PRECOMPUTED = KernelSpec.make("precomputed")


def sample(n=50, d=3, t=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, rng.normal(size=(n, t)) + 1.0, rng.integers(0, 4, size=n) * 0.7


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.01, 1.0, 300.0])
def test_solution_and_leave_one_out(bias, weighted, ridge):
    X, Y, w = sample()
    K = oracle.rbf(X, 0.5)
    weight = w if weighted else None
    found = solve_full(X, Y, RBF, ridge, weight=weight, bias=bias)
    coef, b = oracle.solve(K, Y, ridge, weight, bias)
    np.testing.assert_allclose(found.coef, coef, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.bias, b, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.fitted, oracle.outputs(K, coef, b), atol=1e-11)
    np.testing.assert_allclose(
        found.loo, oracle.leave_one_out(K, Y, ridge, weight, bias), atol=1e-10
    )
    np.testing.assert_allclose(found.diagonal, np.diag(K))
    assert found.info["residual"] < 1e-15
    assert set(found.info["seconds"]) == {"gram", "factor", "solve", "loo"}


def test_no_leave_one_out_and_one_column():
    X, Y, _ = sample()
    found = solve_full(X, Y[:, 0], RBF, 1.0, loo=False)
    assert found.loo is None
    assert found.coef.shape == (50, 1)
    np.testing.assert_allclose(found.coef, solve_full(X, Y, RBF, 1.0).coef[:, :1])


def test_bands_do_not_matter(monkeypatch):
    X, Y, w = sample(70)
    whole = solve_full(X, Y, RBF, 0.5, weight=w)
    monkeypatch.setattr(gram_module, "NARROW", 3)
    monkeypatch.setattr(gram_module, "WIDE", 7)
    banded = solve_full(X, Y, RBF, 0.5, weight=w)
    np.testing.assert_allclose(banded.coef, whole.coef, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(banded.loo, whole.loo, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bias", [False, True])
def test_float32_with_refinement(bias):
    X, Y, _ = sample(300, 5)
    double = solve_full(X, Y, RBF, 0.05, bias=bias, precision="float64")
    single = solve_full(X, Y, RBF, 0.05, bias=bias, precision="float32")
    assert single.info["precision"] == "float32"
    scale = np.abs(double.coef).max()
    assert np.abs(single.coef - double.coef).max() < 1e-9 * scale
    assert np.abs(single.fitted - double.fitted).max() < 1e-8 * np.abs(double.fitted).max()
    worst = np.abs(single.loo - double.loo).max() / np.abs(double.loo).max()
    assert 1e-9 < worst < 1e-3  # the accuracy of float32, and not more
    assert single.info["loo_error"] < 1e-3
    assert single.info["memory_bytes"] < 0.6 * double.info["memory_bytes"] + 2**20


def test_float32_too_coarse_falls_back(monkeypatch):
    X, Y, _ = sample(200, 2)
    wide = KernelSpec.make("rbf", gamma=0.01)
    with pytest.raises(SettingsError, match="float32 factor is too coarse"):
        solve_full(X, Y, wide, 1e-9, precision="float32")
    monkeypatch.setattr(full_module, "FEWEST_FOR_SINGLE", 100)
    found = solve_full(X, Y, wide, 1e-9, loo=False)
    assert found.info["precision"] == "float64"
    assert "fallback" in found.info
    easy = solve_full(X, Y, RBF, 1.0, loo=False)
    assert easy.info["precision"] == "float32"
    exact = solve_full(X, Y, RBF, 1.0, precision="float64").coef
    assert np.abs(easy.coef - exact).max() < 1e-10
    assert solve_full(X, Y, RBF, 1.0).info["precision"] == "float64"  # leave-one-out is asked for


def test_memory_stays_near_one_matrix():
    X, Y, _ = sample(800, 2)
    for precision, itemsize in (("float64", 8), ("float32", 4)):
        tracemalloc.start()
        solve_full(X, Y, RBF, 1.0, precision=precision, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.2 * itemsize * 800**2


def test_too_little_memory(monkeypatch):
    X, Y, _ = sample(20)
    monkeypatch.setattr(memory, "LEAST_CHECKED", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(SettingsError, match=r"20 rows needs 1\.0 MiB .* low-rank"):
        solve_full(X, Y, RBF, 1.0)


def test_available_memory_is_plausible():
    available = memory.available_bytes()
    assert available is None or 2**20 < available < 2**50
    assert memory.readable_bytes(1536) == "1.5 KiB"


def test_precomputed_sparse_and_integer_rows():
    X, Y, w = sample()
    X[np.abs(X) < 0.5] = 0.0
    dense = solve_full(X, Y, RBF, 0.3, weight=w, bias=True)
    for other, kernel in ((sp.csr_matrix(X), RBF), (oracle.rbf(X, 0.5), PRECOMPUTED)):
        found = solve_full(other, Y, kernel, 0.3, weight=w, bias=True)
        np.testing.assert_allclose(found.coef, dense.coef, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.loo, dense.loo, rtol=1e-9, atol=1e-11)
    whole = solve_full(np.arange(6).reshape(3, 2), [0, 1, 2], LINEAR, 1.0)
    assert np.isfinite(whole.coef).all()


def test_one_row():
    found = solve_full(np.ones((1, 1)), [3.0], RBF, 0.5)
    np.testing.assert_allclose(found.coef, [[2.0]])
    np.testing.assert_allclose(found.loo, [[0.0]], atol=1e-14)
    with_bias = solve_full(np.ones((1, 1)), [3.0], RBF, 0.5, bias=True)
    np.testing.assert_allclose([with_bias.bias[0], with_bias.coef[0, 0]], [3.0, 0.0])
    assert np.isnan(with_bias.loo).all()


def test_constant_rows_and_targets():
    found = solve_full(np.zeros((5, 2)), np.full(5, 4.0), RBF, 1.0, bias=True)
    np.testing.assert_allclose(found.bias, 4.0)
    np.testing.assert_allclose(found.coef, 0.0, atol=1e-14)
    np.testing.assert_allclose(found.loo, 4.0)


def test_vanishing_weights_count_as_none():
    X, Y, _ = sample(10)
    w = np.ones(10)
    w[3] = 1e-320
    tiny = solve_full(X, Y, RBF, 1.0, weight=w)
    w[3] = 0.0
    np.testing.assert_array_equal(tiny.coef, solve_full(X, Y, RBF, 1.0, weight=w).coef)


@pytest.mark.parametrize("n", [60, 500])
def test_indefinite_kernel_tells_a_ridge_that_does(n):
    X, Y, _ = sample(n)
    sigmoid = KernelSpec.make("sigmoid", gamma=1.0, coef0=-1.0)
    with one_blas_thread():
        lowest = np.linalg.eigvalsh(np.tanh(X @ X.T - 1.0))[0]
    with pytest.raises(DataError, match="not positive definite: pivot") as caught:
        solve_full(X, Y, sigmoid, 0.01)
    told = float(caught.value.found.split("is about ")[1].split(",")[0])
    assert told == pytest.approx(lowest, rel=0.02)
    enough = float(caught.value.remedy.split("ridge of ")[1].split(" ")[0])
    assert -lowest < enough < -1.3 * lowest
    assert np.isfinite(solve_full(X, Y, sigmoid, enough).loo).all()


def test_the_row_of_the_pivot_counts_all_rows():
    K = np.eye(4)
    K[3, 3] = -1.0
    with pytest.raises(DataError, match=r"pivot 3 \(row 4\)"):
        solve_full(K, np.ones(4), PRECOMPUTED, 0.1, weight=[1, 0, 1, 1])


def test_ridge_below_rounding():
    X, Y, _ = sample(40, 2)
    with pytest.raises(DataError) as caught:
        solve_full(X, Y, LINEAR, 1e-25)
    enough = float(caught.value.remedy.split("ridge of ")[1].split(" ")[0])
    assert 0 < enough < 1e-9
    solve_full(X, Y, LINEAR, enough)


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, np.inf, "much", None])
def test_bad_ridges(ridge):
    with pytest.raises(SettingsError, match="ridge is"):
        solve_full(np.eye(2), [0, 1], RBF, ridge)


def test_bad_settings_and_data():
    X, Y, _ = sample(5)
    with pytest.raises(SettingsError, match="precision is 'half'"):
        solve_full(X, Y, RBF, 1.0, precision="half")
    with pytest.raises(SettingsError, match="KernelSpec"):
        solve_full(X, Y, "rbf", 1.0)
    cases = [
        ((X, Y[:4]), {}, "targets of shape"),
        ((X, np.where(np.arange(5) == 2, np.nan, 1.0)), {}, "row 3 is not finite"),
        ((X, ["a", "b", "c", "d", "e"]), {}, "not numbers"),
        ((X, Y), {"weight": [1, 1, -1, 1, 1]}, r"weight -1.0 of row 3"),
        ((X, Y), {"weight": [1, 1, np.nan, 1, 1]}, "weight nan of row 3"),
        ((X, Y), {"weight": [1.0]}, "weights of shape"),
        ((X, Y), {"weight": np.zeros(5)}, "every row has weight 0"),
        ((np.where(X[1, 1] == X, np.nan, X), Y), {}, "K of rows 1 and 2 is nan"),
        ((np.zeros((0, 2)), []), {}, "no rows"),
        ((X[0], Y), {}, "dimensions"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(DataError, match=message):
            solve_full(*arguments, RBF, 1.0, **options)
    with pytest.raises(DataError, match=r"not symmetric: K\(1, 2\) = 3, K\(2, 1\) = 2"):
        solve_full(np.array([[1.0, 2.0], [3.0, 9.0]]), [1, 2], PRECOMPUTED, 1.0)


@pytest.mark.parametrize("n", [2, 10, 200])
def test_one_moved_target_of_many_at_the_origin(n):
    """The slope is 1 / (1 + λℓ): that of Tikhonov, where Ivanov's stays 1 for every ℓ."""
    X = np.zeros((n, 1))
    X[-1] = 1.0
    y = np.zeros(n)
    y[-1] = 1.0
    for lam in (0.1, 1.0):
        found = solve_full(X, y, LINEAR, lam * n)
        np.testing.assert_allclose(X.T @ found.coef, [[1.0 / (1.0 + lam * n)]])


@pytest.mark.parametrize("outliers", [0, 5])
def test_two_gaussians_beside_the_support_vector_machine(outliers):
    """Linear, no bias, λ from 0.1 to 0.001: both machines err alike, but 1/‖w‖ of least squares
    stays where it is while the margin of the support vector machine follows λ. Outliers far off on
    the right side of the plane do not move the plane of least squares."""
    svm = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(1)
    y, y_test = np.repeat([-1.0, 1.0], 100), np.repeat([-1.0, 1.0], 1000)
    X = rng.normal(size=(200, 2)) + 1.2 * y[:, None]
    Z = rng.normal(size=(2000, 2)) + 1.2 * y_test[:, None]
    if outliers:
        X = np.concatenate([X, 6.0 * np.ones((outliers, 2))])
        y = np.concatenate([y, np.ones(outliers)])
    lengths = []
    for lam in (0.1, 0.01, 0.001):
        n = len(y)
        w = (X.T @ solve_full(X, y, LINEAR, lam * n).coef)[:, 0]
        other = svm.LinearSVC(
            C=1 / (2 * lam * n), loss="hinge", fit_intercept=False, max_iter=10**6, random_state=0
        )
        v = other.fit(X, y).coef_[0]
        errors = [np.mean((Z @ u) * y_test <= 0) for u in (w, v)]
        assert abs(errors[0] - errors[1]) <= 0.0025
        assert errors[0] < 0.06
        lengths.append((1 / np.linalg.norm(w), 1 / np.linalg.norm(v)))
    of_squares, of_margins = np.array(lengths).T
    assert np.ptp(of_squares) < 0.05 * of_squares.min()
    assert of_margins.max() > 1.5 * of_margins.min()


def test_a_bad_row_of_weight_zero_is_told():
    X, Y, _ = sample(5)
    X[2] = np.nan
    with pytest.raises(DataError, match="output at row 3, of weight 0"):
        solve_full(X, Y, RBF, 1.0, weight=[1, 1, 0, 1, 1])


# -- codes ---------------------------------------------------------------------------------------


def classes(n=60, k=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, size=n)
    labels[:k] = np.arange(k)
    return rng.normal(size=(n, 2)) + rng.normal(size=(k, 2))[labels], labels


@pytest.mark.parametrize("name", ["ova", "ava", "complete", "dense", "sparse"])
@pytest.mark.parametrize("bias", [False, True])
def test_codes_against_training_each_machine_without_each_row(name, bias):
    X, labels = classes(40)
    w = np.random.default_rng(3).integers(0, 3, size=40) + (np.arange(40) < 8)
    code, _ = resolve_code(name, 4, 1)
    K = oracle.rbf(X, 0.5)
    found = solve_code(X, labels, code, RBF, 0.4, weight=w, bias=bias, decoding="square")
    for m in range(code.shape[1]):
        targets = code[labels, m].astype(float)
        seen = np.where(targets != 0, w, 0.0)
        coef, b = oracle.solve(K, targets[:, None], 0.4, seen, bias)
        np.testing.assert_allclose(found.coef[:, m], coef[:, 0], atol=1e-10)
        np.testing.assert_allclose(found.bias[m], b[0], atol=1e-10)
        left = oracle.leave_one_out(K, targets[:, None], 0.4, seen, bias)
        np.testing.assert_allclose(found.loo[:, m], left[:, 0], atol=1e-10)
    np.testing.assert_array_equal(found.loo_classes, decode(found.loo, code, "square"))
    wrong = found.loo_classes != labels
    assert found.loo_error == pytest.approx(w @ wrong / w.sum())
    expected = {"ova": 1, "complete": 1, "dense": 1, "ava": 6}
    if name in expected:
        assert found.info["factorisations"] == expected[name]


def test_complete_code_predicts_as_one_versus_all():
    X, labels = classes(80)
    ova, _ = resolve_code("ova", 4)
    complete, _ = resolve_code("complete", 4)
    Z = np.random.default_rng(5).normal(size=(500, 2)) * 2
    decided = []
    for code, decoding in ((ova, "argmax"), (ova, "square"), (complete, "square")):
        found = solve_code(X, labels, code, RBF, 0.3, decoding=decoding)
        K = np.exp(-0.5 * ((Z[:, None] - X) ** 2).sum(axis=2))
        decided.append((decode(K @ found.coef, code, decoding), found.loo_classes))
    for new, left in decided[1:]:
        np.testing.assert_array_equal(new, decided[0][0])
        np.testing.assert_array_equal(left, decided[0][1])


def test_codes_refuse():
    X, labels = classes(10)
    code = ovo_code(4)
    with pytest.raises(DataError, match="class 4 of row 1"):
        solve_code(X, np.full(10, 4), code, RBF, 1.0)
    with pytest.raises(DataError, match="class indices"):
        solve_code(X, labels.astype(str), code, RBF, 1.0)
    with pytest.raises(SettingsError, match="decoding argmax needs"):
        solve_code(X, labels, code, RBF, 1.0, decoding="argmax")
    with pytest.raises(DataError, match="weights of shape"):
        solve_code(X, labels, code, RBF, 1.0, weight=[1.0])
    with pytest.raises(SettingsError, match="entries other than"):
        solve_code(X, labels, code * 2, RBF, 1.0)
    assert solve_code(X, labels, code, RBF, 1.0, loo=False, decoding="votes").loo is None
