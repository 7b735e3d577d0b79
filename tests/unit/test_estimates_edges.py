"""Where formulas have no answer: each case says so and leaves something usable."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kfu
from kfu.errors import DataError
from kfu.estimates import ESTIMATES
from kfu.kernels import KernelSpec
from kfu.solvers import SolverSettings

FINE = SolverSettings(tolerance=1e-9, threads=1)
RBF = KernelSpec.make("rbf", gamma=0.5)


def two_clouds(n=30, seed=0, shift=0.8, d=2):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def test_no_unbounded_vector():
    X, y = two_clouds()
    model = kfu.train(X, y, kernel=RBF, cost=1e-3, settings=FINE)
    assert model.info["n_usv"] == 0
    found = kfu.loo(model, X, y)
    span = found["span"]
    assert not span.valid
    assert "no unbounded support vector" in span.note
    assert span.value == np.mean(model.predict(X) != y)  # of training
    assert "unbounded" in found["xi-alpha"].note
    assert found["xi-alpha"].value is None
    assert found["exact"].valid
    assert found["sv-count"].value == 1.0
    # Without bias the rule is exact there.
    free = kfu.train(X, y, kernel=RBF, cost=1e-3, bias="none", settings=FINE)
    found = kfu.loo(free, X, y)
    assert found["span"].valid
    np.testing.assert_allclose(found["span"].outputs, found["exact"].outputs, atol=1e-9)


def test_singular_span_matrix():
    """Every row twice: a row is in the span of its double."""
    X, y = two_clouds(n=24)
    X, y = np.vstack([X, X]), np.append(y, y)
    model = kfu.train(X, y, kernel=RBF, cost=5.0, settings=FINE)
    found = kfu.loo(model, X, y)
    assert "singular" in found["span"].note
    assert found["span"].valid
    assert found["span"].value == pytest.approx(found["exact"].value, abs=0.1)
    for name in ("span-bound", "xi-alpha", "sv-count"):
        if found[name].valid:
            assert found[name].value >= found["exact"].value
    # More unbounded vectors than dimensions.
    linear = kfu.train(X, y, kernel=KernelSpec.make("linear"), machine="svc2", settings=FINE)
    assert kfu.loo(linear, X, y, "span")["span"].valid


@pytest.mark.parametrize("few", [1, 2])
@pytest.mark.parametrize("bias", ["free", "none"])
def test_a_class_of_few_rows(few, bias):
    X, y = two_clouds(n=20)
    kept = np.append(np.flatnonzero(y < 0), np.flatnonzero(y > 0)[:few])
    X, y = X[kept], y[kept]
    model = kfu.train(X, y, kernel=RBF, bias=bias, settings=FINE)
    found = kfu.loo(model, X, y)
    assert len(found.warnings) == 1
    assert f"class 1 has {few} row" in found.warnings[0]
    assert found["exact"].valid
    if few == 1:
        assert found["exact"].flags[-1]
        assert "one row" in found["exact"].note
    else:
        for p in (len(y) - 1, len(y) - 2):
            rest = np.delete(np.arange(len(y)), p)
            part = kfu.train(X[rest], y[rest], kernel=RBF, bias=bias, settings=FINE)
            expected = part.decision_function(X[p : p + 1])[0]
            np.testing.assert_allclose(found["exact"].outputs[p], expected, atol=1e-6)
    for estimate in found:
        if estimate.kind == "bound" and estimate.of == "leave-one-out error" and estimate.valid:
            assert estimate.value >= found["exact"].value, estimate.name


def test_the_last_row_of_a_class_where_folds_are_trained():
    X, y = two_clouds(n=12)
    kept = np.append(np.flatnonzero(y < 0), 0)
    model = kfu.train(X[kept], y[kept], kernel=RBF, machine="nu-svc", nu=0.1)
    found = kfu.loo(model, X[kept], y[kept])["exact"]
    assert not found.valid
    assert found.value is None
    assert "class 1" in found.note or "nu is not feasible" in found.note


def test_indefinite_kernel():
    X, y = two_clouds()
    kernel = KernelSpec.make("sigmoid", gamma=2.0, coef0=-1.0)
    model = kfu.train(X, y, kernel=kernel, cost=1.0)
    found = kfu.loo(model, X, y)
    assert any("not positive semidefinite" in text for text in found.warnings)
    assert found["exact"].value is not None
    assert not found["span"].valid
    assert found["span"].value is not None
    for name in ("span-bound", "sv-count", "xi-alpha"):
        assert found[name].value is None
        assert "positive semidefinite" in found[name].note
    # A matrix tells by its eigenvalues.
    K = X @ X.T
    good = kfu.train(K, y, kernel=KernelSpec.make("precomputed"), settings=FINE)
    same = kfu.train(X, y, kernel=KernelSpec.make("linear"), settings=FINE)
    a, b = kfu.loo(good, K, y), kfu.loo(same, X, y)
    assert a["sv-count"].valid
    for name in ("exact", "span", "sv-count", "xi-alpha"):
        assert a[name].value == pytest.approx(b[name].value), name
    K[0, 0] -= 50.0
    bad = kfu.train(K, y, kernel=KernelSpec.make("precomputed"))
    assert "negative eigenvalue" in kfu.loo(bad, K, y, "sv-count")["sv-count"].note


def test_hard_margin():
    X, y = two_clouds(shift=3.0)
    model = kfu.train(X, y, kernel=KernelSpec.make("linear"), cost=math.inf, settings=FINE)
    found = kfu.loo(model, X, y)
    assert found["exact"].valid
    assert found["radius-margin"].valid
    assert 4 * found["radius-margin"].value >= found["exact"].value
    assert found["span-bound"].value >= found["exact"].value
    soft = kfu.loo(kfu.train(X, y, kernel=RBF, cost=0.01), X, y)
    assert "keeps its margin" in soft["radius-margin"].note
    mixed = X.copy()
    mixed[0], mixed[1] = X[1], X[0]
    with pytest.raises(DataError, match="cannot be separated"):
        kfu.train(mixed, y, kernel=KernelSpec.make("linear"), cost=math.inf)


def test_weights_and_margins():
    X, y = two_clouds()
    weights = np.linspace(0.0, 2.0, 30)
    model = kfu.train(X, y, kernel=RBF, sample_weight=weights, settings=FINE)
    found = kfu.loo(model, X, y, sample_weight=weights)
    assert found["exact"].value == np.average(found["exact"].flags, weights=weights)
    assert "equal costs" in found["span-bound"].note
    # A row of weight 0 is there, and never a support vector.
    assert found["exact"].outputs[0] == pytest.approx(model.decision_function(X[:1])[0])
    margins = np.linspace(0.5, 1.5, 30)
    model = kfu.train(X, y, kernel=RBF, margins=margins, bias="none", settings=FINE)
    found = kfu.loo(model, X, y, margins=margins)
    for name in ("span-bound", "jaakkola-haussler", "sv-count"):
        assert found[name].value >= found["exact"].value
    assert "margins of 1" in found["xi-alpha"].note


def test_balanced_weights_are_those_of_all_rows():
    X, y = two_clouds(n=31)
    model = kfu.train(X, y, kernel=RBF, class_weight="balanced", settings=FINE)
    factors = {-1.0: 31 / 30, 1.0: 31 / 32}
    plain = kfu.train(X, y, kernel=RBF, class_weight=factors, settings=FINE)
    a, b = kfu.loo(model, X, y, "exact"), kfu.loo(plain, X, y, "exact")
    np.testing.assert_allclose(a["exact"].outputs, b["exact"].outputs, atol=1e-7)


def test_many_classes():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(36, 2)), np.arange(36) % 3
    X += np.array([(0, 0), (2, 0), (0, 2)])[y]
    for code in ("ova", "ava", "dense"):
        model = kfu.train(X, y, kernel=RBF, multiclass=code, bias="none", settings=FINE)
        found = kfu.loo(model, X, y)
        wrong = 0
        for p in range(36):
            rest = np.delete(np.arange(36), p)
            options = {"multiclass": model.code, "decoding": model.decoding, "bias": "none"}
            part = kfu.train(X[rest], y[rest], kernel=RBF, settings=FINE, **options)
            wrong += part.predict(X[p : p + 1])[0] != y[p]
        assert found["exact"].value == wrong / 36
        assert found["jaakkola-haussler"].value >= found["exact"].value
        assert found["sv-count"].value >= found["exact"].value
        assert ("binary machine" in found["span-bound"].note) == (code == "dense")
        assert found["gacv"].value is None
        assert "two classes" in found["gacv"].note


def test_what_takes_long_has_to_be_asked_for(monkeypatch):
    X, y = two_clouds()
    model = kfu.train(X, y, kernel=RBF)
    monkeypatch.setattr("kfu.estimates.table.MOST_WORK", 0.0)
    found = kfu.loo(model, X, y)["exact"]
    assert found.value is None
    assert "--estimate exact" in found.note
    assert kfu.loo(model, X, y, "exact")["exact"].value is not None


def test_unfinished_training_is_told():
    X, y = two_clouds(n=60)
    settings = SolverSettings(max_iterations=1, polish=False)
    with pytest.warns(kfu.ConvergenceWarning):
        model = kfu.train(X, y, kernel=RBF, settings=settings)
    found = kfu.loo(model, X, y, "span")
    assert any("before convergence" in text for text in found.warnings)


def test_one_feature_of_zeros():
    X, y = np.zeros((8, 1)), np.array([1.0, -1.0] * 4)
    found = kfu.loo(kfu.train(X, y, kernel=KernelSpec.make("linear")), X, y)
    assert all(e.value is None or np.isfinite(e.value) for e in found)


def test_registry():
    for name, entry in ESTIMATES.items():
        assert entry.name == name
        assert entry.kind in ("exact", "estimate", "bound")
        assert entry.summary
        assert entry.machines
