"""The ridge by squares or by errors of leave-one-out: against training without every row."""

from __future__ import annotations

import numpy as np
import pytest

from kfu import RLS, RLSC
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares import decompose_linear, rectangle
from kfu.least_squares.ridge_choice import best_ridge
from kfu.machines import train
from tests.oracles import least_squares, least_squares_linear, low_rank

GAMMA = 0.7
RBF = KernelSpec.make("rbf", gamma=GAMMA)
KINDS = {
    "full": {"kernel": RBF},
    "linear": {"kernel": KernelSpec.make("linear")},
    "rectangle": {"kernel": RBF, "approximation": "rectangle", "centres": 12},
}


def sample(classes=3, n=54, seed=3):
    """Classes that overlap, and a far cluster that squares mind more than errors do."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    middle = 1.3 * np.array([[0, 1], [1, -1], [-1, -1]])[labels]
    X = rng.normal(size=(n, 2)) + middle
    X[:6] *= 3.0
    return X, labels


def targets(labels):
    if labels.max() == 1:
        return np.where(labels == 1, 1.0, -1.0)[:, None]
    return np.where(labels[:, None] == np.arange(3), 1.0, -1.0)


def decided(outputs):
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).astype(int)
    return np.argmax(outputs, axis=1)


def retrained(kind, X, Y, ridge, w, bias, rows):
    """Outputs at each row of the machine trained without it."""
    if kind == "linear":
        return Y - least_squares_linear.loo_residuals(X, Y, ridge, w, bias)
    K = least_squares.rbf(X, GAMMA)
    if kind == "full":
        return least_squares.leave_one_out(K, Y, ridge, w, bias)
    return low_rank.loo_outputs(K, rows, Y, ridge, w, bias)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("classes", "bias"), [(2, True), (3, False)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_choice_is_that_of_retraining(kind, classes, bias, is_weighted):
    X, labels = sample(classes)
    w = np.ones(len(X))
    options = {**KINDS[kind], "bias": bias, "machine": "rlsc"}
    if is_weighted:  # of class and row
        w = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
        options |= {"sample_weight": w, "class_weight": {0: 3.0}}
        w = np.where(labels == 0, 3.0, 1.0) * w
    by = {name: train(X, labels, lam_by=name, **options).info for name in ("squares", "errors")}
    path = by["errors"]["path"]
    rows = train(X, labels, **options).support if kind == "rectangle" else None
    Y = targets(labels)
    places = range(0, len(path["ridge"]), 1 if kind == "rectangle" else 5)
    for k in places:
        if path["ridge"][k] < 1e-4:  # the oracle's normal equations end here
            continue
        left = retrained(kind, X, Y, path["ridge"][k], w, bias, rows)
        wrong = decided(left) != labels
        assert path["error"][k] == pytest.approx(w @ wrong / w.sum(), abs=1e-12)
        assert path["loo"][k] == pytest.approx((w @ (left - Y) ** 2).sum() / w.sum(), rel=1e-5)
    for name, info in by.items():
        assert info["lambda_by"] == name
        errors, squares = np.array(info["path"]["error"]), np.array(info["path"]["loo"])
        k = info["path"]["ridge"].index(pytest.approx(info["ridge"], rel=1e-12))
        if name == "squares":
            assert squares[k] == pytest.approx(squares.min(), rel=1e-11)
        else:
            least = errors <= errors.min() + 1e-12
            assert least[k]
            assert squares[k] == pytest.approx(squares[least].min(), rel=1e-11)
        if not is_weighted:
            assert info["loo_error"] == pytest.approx(errors[k], abs=1e-12)
            assert info["loo_mse"] == pytest.approx(squares[k] / Y.shape[1], rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_criteria_differ_where_squares_and_errors_do(kind):
    found = set()
    for seed in range(6):
        X, labels = sample(seed=seed)
        info = {
            by: train(X, labels, machine="rlsc", lam_by=by, **KINDS[kind]).info
            for by in ("squares", "errors")
        }
        assert info["errors"]["loo_error"] <= info["squares"]["loo_error"]
        assert info["errors"]["loo_mse"] >= info["squares"]["loo_mse"] * (1 - 1e-12)
        found.add(info["errors"]["loo_error"] < info["squares"]["loo_error"])
    assert True in found


def test_rows_of_weight_0_count_for_nothing():
    X, labels = sample()
    w = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.0)
    kept = w > 0
    common = {"machine": "rlsc", "kernel": RBF, "lam_by": "errors"}
    full = train(X, labels, sample_weight=w, **common).info
    without = train(X[kept], labels[kept], **common).info
    assert full["ridge"] == pytest.approx(without["ridge"])
    assert full["loo_error"] == pytest.approx(without["loo_error"])
    Y, rows, code = targets(labels), np.flatnonzero(kept)[:10], targets(np.arange(3))
    known = {"code": code, "decoding": "argmax", "criterion": "error"}
    ridges = [0.01, 0.1, 1.0, 10.0]
    one = rectangle(X, Y, RBF, rows, ridges, weight=w, labels=labels, **known)
    other = rectangle(
        X[kept], Y[kept], RBF, np.arange(10), ridges, labels=labels[kept], means=X[rows], **known
    )
    assert one.info["loo_error"] == pytest.approx(other.info["loo_error"])
    assert one.ridge == other.ridge
    del known["criterion"]
    tables = (
        decompose_linear(X, Y, weight=w).table(ridges, labels=labels, **known),
        decompose_linear(X[kept], Y[kept]).table(ridges, labels=labels[kept], **known),
    )
    np.testing.assert_allclose(*(table.error for table in tables))


def test_equal_errors_go_to_the_least_square_then_to_the_largest_ridge():
    ridges = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    error = np.array([0.2, 0.1, 0.1, 0.1, 0.3])
    loo = np.array([0.0, 3.0, 2.0, 2.0, 1.0])
    assert best_ridge(ridges, "error", loo=loo, error=error) == 3
    assert best_ridge(ridges[::-1], "error", loo=loo, error=error) == 2
    assert best_ridge(ridges, "loo", loo=loo, error=error) == 0
    assert best_ridge(ridges, "loo", loo=np.array([np.nan, 2.0, np.inf, 2.0, 3.0])) == 3
    assert best_ridge(ridges, "loo", loo=np.full(5, np.nan)) == 4


def test_classes_that_part_have_no_errors_and_the_ridge_of_least_squares_among_them():
    rng = np.random.default_rng(0)
    labels = np.arange(50) % 2
    X = rng.uniform(-1.0, 1.0, size=(50, 2)) + 2.0 * labels[:, None]
    info = train(X, labels, machine="rlsc", kernel=RBF, lam_by="errors").info
    assert info["loo_error"] == 0.0
    again = train(X, labels, machine="rlsc", kernel=RBF).info
    assert again["loo_error"] == 0.0
    assert info["ridge"] == pytest.approx(again["ridge"])


def test_pruning_and_codes_choose_by_errors_too():
    X, labels = sample()
    common = {"machine": "rlsc", "kernel": RBF, "lam_by": "errors"}
    pruned = train(X, labels, bias=True, prune=0.1, **common).info
    plain = train(X, labels, bias=True, **common).info
    assert pruned["ridge"] == pytest.approx(plain["ridge"])
    assert pruned["lambda_by"] == "errors"
    complete = train(X, labels, multiclass="complete", **common).info
    ova = train(X, labels, **common).info
    assert complete["loo_error"] == pytest.approx(ova["loo_error"])


def test_what_is_asked_in_vain():
    X, labels = sample()
    info = train(X, labels, machine="rlsc", kernel=RBF, lam_by="errors", ridge=1.0).info
    assert any("--lambda-by is of no use" in text for text in info["warnings"])
    assert "lambda_by" not in info
    with pytest.raises(SettingsError, match="takes no lam_by"):
        train(X, X[:, 0], machine="rls", kernel=RBF, lam_by="errors")
    with pytest.raises(SettingsError, match="did you mean 'errors'"):
        train(X, labels, machine="rlsc", kernel=RBF, lam_by="error")
    assert train(X, X[:, 0], machine="rls", kernel=RBF).info["lambda_by"] == "squares"


def test_library_refusals():
    X, labels = sample()
    Y, rows = targets(labels), np.arange(9)
    with pytest.raises(SettingsError, match="needs class labels"):
        rectangle(X, Y, RBF, rows, [0.1, 1.0], criterion="error")
    with pytest.raises(SettingsError, match="criterion is 'gcv'"):
        rectangle(X, Y, RBF, rows, [0.1, 1.0], criterion="gcv")
    with pytest.raises(SettingsError, match="both labels and their code"):
        decompose_linear(X, Y).table([1.0], labels=labels)
    with pytest.raises(SettingsError, match="give a label for each row"):
        decompose_linear(X, Y).table([1.0], labels=labels[1:], code=targets(np.arange(3)))


def test_estimators():
    X, labels = sample()
    names = np.array(["a", "b", "c"])[labels]
    for by in ("squares", "errors"):
        machine = RLSC(gamma=GAMMA, lam_by=by).fit(X, names)
        info = train(X, labels, machine="rlsc", kernel=RBF, lam_by=by).info
        assert machine.ridge_ == pytest.approx(info["ridge"])
        assert machine.info_["lambda_by"] == by
    assert "lam_by" not in RLS().get_params()
    common = {"ridge": 0.1, "prune": 0.05}
    pruned = RLSC(gamma=GAMMA, fit_intercept=True, **common).fit(X, names)
    same = train(X, labels, machine="rlsc", kernel=RBF, bias=True, **common)
    assert pruned.info_["pruning"] == same.info["pruning"]
    np.testing.assert_allclose(pruned.decision_function(X), same.decision_function(X))
    by_cg = RLS(ridge=1.0, gamma=GAMMA, method="cg").fit(X, X[:, 0])
    exact = RLS(ridge=1.0, gamma=GAMMA, method="cholesky").fit(X, X[:, 0])
    np.testing.assert_allclose(by_cg.predict(X), exact.predict(X), atol=1e-6)
    assert by_cg.loo_predictions_ is None
