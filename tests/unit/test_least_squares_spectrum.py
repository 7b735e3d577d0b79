"""All ridges from one eigendecomposition, and the choice among them."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares import Spectrum, memory, solve_code, solve_full
from kfu.least_squares import spectrum as spectrum_module
from kfu.least_squares.bounds import generalised_cross_validation
from kfu.multiclass import resolve_code
from tests.oracles import least_squares as oracle

RBF = KernelSpec.make("rbf", gamma=0.5)
GRID = [1e-3, 0.1, 1.0, 50.0]


def sample(n=45, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(2 * X[:, 0])]) + 0.3 * rng.normal(size=(n, 2))
    return X, Y, rng.integers(0, 3, size=n) * 0.8


@pytest.mark.parametrize("driver", ["evr", "evd"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_ridge_as_the_full_solution(driver, bias, weighted, monkeypatch):
    monkeypatch.setattr(spectrum_module, "STRIPE", 500)  # several stripes
    X, Y, w = sample()
    weight = w if weighted else None
    spectrum = Spectrum(X, RBF, weight=weight, bias=bias, driver=driver)
    for ridge in GRID:
        found = spectrum.solve(Y, ridge)
        full = solve_full(X, Y, RBF, ridge, weight=weight, bias=bias)
        for name in ("coef", "bias", "fitted", "loo", "diagonal"):
            expected = getattr(full, name)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                getattr(found, name), expected, rtol=0, atol=1e-9 * scale, err_msg=name
            )


@pytest.mark.parametrize("bias", [False, True])
def test_table_by_definition(bias):
    X, Y, w = sample()
    K = oracle.rbf(X, 0.5)
    table = Spectrum(X, RBF, weight=w, bias=bias).table(Y, GRID[::-1])
    rows = w > 0
    np.testing.assert_array_equal(table.ridge, GRID)
    for k, ridge in enumerate(GRID):
        left = oracle.leave_one_out(K, Y, ridge, w, bias)
        squares = ((left - Y) ** 2).sum(axis=1)
        assert table.loo[k] == pytest.approx(w @ squares / w.sum(), rel=1e-9)
        H = oracle.smoother(K[np.ix_(rows, rows)], ridge, w[rows], bias)
        assert table.df[k] == pytest.approx(np.trace(H), rel=1e-8, abs=1e-9)
        residual = Y[rows] - H @ Y[rows]
        assert table.train[k] == pytest.approx(
            w[rows] @ (residual**2).sum(axis=1) / w.sum(), rel=1e-8
        )
        n = rows.sum()
        gcv = w[rows] @ (residual**2).sum(axis=1) / n / (1 - np.trace(H) / n) ** 2
        assert table.gcv[k] == pytest.approx(gcv, rel=1e-7)
        assert generalised_cross_validation(residual, np.trace(H), w[rows]) == pytest.approx(gcv)
    assert table.error is None


def test_the_choice_is_the_minimum():
    X, Y, _ = sample(80)
    spectrum = Spectrum(X, RBF)
    for criterion in ("loo", "gcv"):
        choice = spectrum.choose_ridge(Y, criterion=criterion)
        values = getattr(choice.table, criterion)
        assert choice.ridge == choice.table.ridge[choice.index]
        assert values[choice.index] == values.min()
        assert not choice.at_edge
        assert (np.diff(choice.table.ridge) > 0).all()
        # refinement: nothing on a far finer grid is better by a thousandth
        fine = np.geomspace(choice.ridge / 30, choice.ridge * 30, 400)
        finest = getattr(spectrum.table(Y, fine), criterion).min()
        assert values.min() <= finest * 1.001
        assert 1e-3 < choice.ridge < 10  # noise of 0.3: neither none nor all


def test_no_ridge_is_tried_twice():
    """The middle between the neighbours of the best is the best itself."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(80, 4))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=80)
    ridges = Spectrum(X, KernelSpec.make("rbf", gamma=0.2)).choose_ridge(y).table.ridge
    assert (np.diff(np.log(ridges)) > 1e-6).all()


def test_a_given_grid_is_kept():
    X, Y, _ = sample()
    choice = Spectrum(X, RBF).choose_ridge(Y, [100.0, 1000.0])
    np.testing.assert_array_equal(choice.table.ridge, [100.0, 1000.0])
    assert choice.ridge == 100.0
    assert choice.at_edge


def test_class_errors_and_ties():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    X = rng.normal(size=(60, 2)) + 3 * np.array([[0, 1], [1, -1], [-1, -1]])[labels]
    code, _ = resolve_code("ova", 3)
    spectrum = Spectrum(X, RBF)
    choice = spectrum.choose_ridge(None, criterion="error", labels=labels, code=code)
    error, loo = choice.table.error, choice.table.loo
    tied = error == error.min()
    assert tied.sum() > 1
    assert loo[choice.index] == loo[tied].min()
    exact = solve_code(X, labels, code, RBF, choice.ridge)
    assert error[choice.index] == pytest.approx(exact.loo_error)


def test_default_grid_spans_the_spectrum():
    X, _, _ = sample()
    spectrum = Spectrum(X, RBF)
    grid = spectrum.default_grid()
    values = spectrum.eigenvalues
    assert grid[-1] == pytest.approx(10 * values.max())
    assert grid[0] <= 1e-9 * values.max()
    zero = Spectrum(np.zeros((3, 1)), KernelSpec.make("linear"))
    np.testing.assert_array_equal(zero.default_grid(), [1.0])
    np.testing.assert_allclose(zero.solve([1.0, 2.0, 3.0], 1.0).fitted, 0.0)


def test_degrees_of_freedom_end_at_the_rank_and_at_nothing():
    X, _, _ = sample()
    linear = KernelSpec.make("linear")
    np.testing.assert_allclose(
        Spectrum(X, linear).degrees_of_freedom([1e-9, 1e12]), [1.0, 0.0], atol=1e-6
    )
    np.testing.assert_allclose(
        Spectrum(X, linear, bias=True).degrees_of_freedom([1e-9, 1e12]), [2.0, 1.0], atol=1e-6
    )


def test_refusals(monkeypatch):
    X, Y, _ = sample()
    with pytest.raises(SettingsError, match="driver is 'qr'"):
        Spectrum(X, RBF, driver="qr")
    spectrum = Spectrum(X, RBF)
    for ridge in (0.0, -1.0, np.nan):
        with pytest.raises(SettingsError, match="ridge is"):
            spectrum.solve(Y, ridge)
    with pytest.raises(SettingsError, match="criterion is"):
        spectrum.choose_ridge(Y, criterion="aic")
    with pytest.raises(SettingsError, match="needs class labels"):
        spectrum.choose_ridge(Y, criterion="error")
    with pytest.raises(SettingsError, match="both labels and their code"):
        spectrum.choose_ridge(Y, labels=np.zeros(45, int))
    code, _ = resolve_code("ova", 3)
    with pytest.raises(SettingsError, match="both labels and their code"):
        spectrum.table(Y, GRID, code=code)
    with pytest.raises(SettingsError, match="45 labels and a code of 3 columns"):
        spectrum.table(Y, GRID, labels=np.zeros(45, int), code=code)
    with pytest.raises(DataError, match="class 3 of row 1"):
        spectrum.table(Y, GRID, labels=np.full(45, 3), code=code)
    with pytest.raises(SettingsError, match="give targets"):
        spectrum.choose_ridge()
    indefinite = Spectrum(X, KernelSpec.make("sigmoid", gamma=1.0, coef0=-1.0))
    with pytest.raises(DataError, match="smallest eigenvalue"):
        indefinite.solve(Y, 1e-3)
    assert np.isfinite(indefinite.choose_ridge(Y).ridge)
    monkeypatch.setattr(memory, "LEAST_CHECKED", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(SettingsError, match="the spectrum of 45 rows"):
        Spectrum(X, RBF)
