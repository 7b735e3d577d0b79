"""LS-SVM with a free bias, its pruning, and the proximal machine."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares import prune_ls_svm, solve_full, solve_ls_svm, solve_psvm
from tests.oracles import least_squares as oracle

RBF = KernelSpec.make("rbf", gamma=0.5)


def curve(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + 5.0 + 0.2 * rng.normal(size=n)


def two(n=100, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 2)) + y[:, None], y


def test_conditions_of_the_ls_svm():
    X, y = curve()
    found = solve_ls_svm(X, y, RBF, 0.3)
    assert abs(found.coef.sum()) < 1e-10
    K = oracle.rbf(X, 0.5)
    np.testing.assert_allclose(K @ found.coef + found.bias + 0.3 * found.coef, y[:, None])
    # shifting the targets shifts the bias alone
    shifted = solve_ls_svm(X, y + 7.0, RBF, 0.3)
    np.testing.assert_allclose(shifted.coef, found.coef, atol=1e-10)
    np.testing.assert_allclose(shifted.bias, found.bias + 7.0)


def test_pruning_keeps_the_error():
    X, y = curve()
    found = prune_ls_svm(X, y, RBF, 0.3, share=0.1, allowance=0.02)
    errors = [step.error for step in found.rounds]
    sizes = [step.kept for step in found.rounds]
    assert sizes[0] == 80
    assert sizes == sorted(sizes, reverse=True)
    assert found.kept.size < 80
    accepted = sizes.index(found.kept.size)
    least = np.minimum.accumulate(errors)
    assert all(errors[k + 1] <= 1.02 * least[k] for k in range(accepted))
    if accepted + 1 < len(errors):
        assert errors[accepted + 1] > 1.02 * least[accepted]
    # the machine is the one trained on the kept rows, its error that over all rows
    alone = solve_full(X[found.kept], y[found.kept], RBF, 0.3, bias=True)
    np.testing.assert_allclose(found.coef[found.kept], alone.coef, atol=1e-9)
    dropped = np.setdiff1d(np.arange(80), found.kept)
    assert (found.coef[dropped] == 0).all()
    w = np.zeros(80)
    w[found.kept] = 1.0
    left = oracle.leave_one_out(oracle.rbf(X, 0.5), y[:, None], 0.3, w, True)
    assert np.mean((left[:, 0] - y) ** 2) == pytest.approx(errors[accepted])


def test_first_round_drops_the_smallest():
    X, y = curve(20)
    whole = solve_ls_svm(X, y, RBF, 0.3)
    found = prune_ls_svm(X, y, RBF, 0.3, share=0.25, allowance=1e9, fewest=15)
    smallest = np.argsort(np.abs(whole.coef[:, 0]))[:5]
    np.testing.assert_array_equal(np.sort(smallest), np.setdiff1d(np.arange(20), found.kept))
    assert len(found.rounds) == 2


def test_pruning_by_validation_rows_and_by_errors():
    X, y = two()
    Z, z = two(200, 1)
    found = prune_ls_svm(X, y, RBF, 1.0, share=0.1, measure="error", validation=(Z, z))
    K = np.exp(-0.5 * ((Z[:, None] - X) ** 2).sum(axis=2))
    wrong = np.mean((K @ found.coef + found.bias)[:, 0] * z <= 0)
    accepted = [step for step in found.rounds if step.kept == found.kept.size]
    assert accepted[0].error == pytest.approx(wrong)
    assert wrong <= found.rounds[0].error
    assert found.loo is None
    by_loo = prune_ls_svm(X, y, RBF, 1.0, share=0.1, measure="error")
    assert by_loo.rounds[0].error == pytest.approx(
        np.mean(solve_ls_svm(X, y, RBF, 1.0).loo[:, 0] * y <= 0)
    )


def test_pruning_ends_at_the_fewest_rows():
    X, y = curve(12)
    found = prune_ls_svm(X, y, RBF, 0.3, share=0.5, allowance=1e9, fewest=3)
    assert [step.kept for step in found.rounds] == [12, 6, 3]
    assert prune_ls_svm(X[:2], y[:2], RBF, 0.3).kept.size == 2


def test_pruning_weights():
    X, y = curve(30)
    w = np.ones(30)
    w[::3] = 0.0
    kept = w > 0
    found = prune_ls_svm(X, y, RBF, 0.3, weight=w)
    other = prune_ls_svm(X[kept], y[kept], RBF, 0.3)
    np.testing.assert_array_equal(found.kept, np.flatnonzero(kept)[other.kept])
    np.testing.assert_allclose(
        [step.error for step in found.rounds], [step.error for step in other.rounds]
    )


def test_pruning_refusals():
    X, y = curve(10)
    for options, message in (
        ({"share": 0.0}, "share is"),
        ({"share": 1.0}, "share is"),
        ({"fewest": 0}, "fewest is"),
        ({"allowance": -1.0}, "allowance is"),
        ({"measure": "auc"}, "measure is"),
        ({"measure": "error"}, "targets -1 and 1"),
    ):
        with pytest.raises(SettingsError, match=message):
            prune_ls_svm(X, y, RBF, 0.3, **options)
    with pytest.raises(DataError, match="3 validation rows and 2 targets"):
        prune_ls_svm(X, y, RBF, 0.3, validation=(X[:3], y[:2]))


@pytest.mark.parametrize("bias", [False, True])
def test_proximal_machine(bias):
    X, y = curve(40)
    Y = np.column_stack([y, y**2])
    K = oracle.rbf(X, 0.5)
    found = solve_psvm(X, Y, RBF, 0.3, bias=bias)
    coef, b = oracle.psvm(K, Y, 0.3, np.ones(40), bias)
    np.testing.assert_allclose(found.coef, coef, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.bias, b, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.fitted, K @ coef + b, atol=1e-8)
    np.testing.assert_allclose(
        found.loo, oracle.psvm_leave_one_out(K, Y, 0.3, bias), rtol=1e-8, atol=1e-8
    )


def test_proximal_machine_with_many_rows_and_weights():
    X, y = curve(300)  # more than one band of the mirrored half
    w = np.random.default_rng(0).integers(0, 3, size=300).astype(float)
    K = oracle.rbf(X, 0.5)
    found = solve_psvm(X, y, RBF, 2.0, weight=w)
    rows = np.flatnonzero(w)
    coef, b = oracle.psvm(K[np.ix_(rows, rows)], y[rows, None], 2.0, w[rows])
    np.testing.assert_allclose(found.coef[rows], coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.fitted, K[:, rows] @ coef + b, atol=1e-7)
    assert (found.coef[w == 0] == 0).all()


def test_a_doubled_row_changes_the_proximal_machine_only():
    """The point of penalising cᵀKc: the machine of the kernel's space knows functions, not rows."""
    X, y = curve(20)
    twice = np.concatenate([X, X[:1]])
    Y = np.concatenate([y, y[:1]])
    w = np.ones(21)
    w[[0, 20]] = 0.5
    plain = [solve_full(a, t, RBF, 0.3, weight=v) for a, t, v in ((X, y, None), (twice, Y, w))]
    proximal = [solve_psvm(a, t, RBF, 0.3, weight=v) for a, t, v in ((X, y, None), (twice, Y, w))]
    assert np.abs(plain[0].fitted - plain[1].fitted[:20]).max() < 1e-10
    assert np.abs(proximal[0].fitted - proximal[1].fitted[:20]).max() > 1e-4
