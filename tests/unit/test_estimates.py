"""Every estimate against its definition, and exact leave-one-out against training without a row."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kfu
from kfu.errors import SettingsError
from kfu.estimates import ESTIMATES, Trained
from kfu.estimates.constrained_span import constrained_spans
from kfu.estimates.interface import _of_model
from kfu.estimates.risk_bounds import vc_bound
from kfu.estimates.sphere import enclosing_sphere, variance
from kfu.kernels import KernelSpec
from kfu.machines import MACHINES
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.solvers import SolverSettings
from tests.oracles import estimates as oracle

FINE = SolverSettings(tolerance=1e-9, threads=1)
GAMMA = 0.4


def problem(seed, n=16, shift=0.7):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + shift * y[:, None]
    K = np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(-1))
    return X, y, K


def machine_of(seed, **options):
    X, y, K = problem(seed)
    model = kfu.train(X, y, kernel=KernelSpec.make("rbf", gamma=GAMMA), settings=FINE, **options)
    trained = _of_model(model, X, y, None, None, None, None)
    return trained, model, X, y, K


SETTINGS = [
    {"cost": 1.0},
    {"cost": 1.0, "bias": "none"},
    {"cost": 2.0, "machine": "svc2"},
    {"cost": 2.0, "machine": "svc2", "bias": "none"},
    {"cost": 0.7, "bias": "regularised"},
]


def described(options, y, K):
    """K, box, ridge and bias of the textbook's problem."""
    cost = options["cost"]
    if options.get("bias") == "regularised":
        K = K + 1.0
    if options.get("machine") == "svc2":
        return K, np.full(len(y), np.inf), np.full(len(y), 1.0 / cost), "bias" not in options
    return K, np.full(len(y), cost), np.zeros(len(y)), "bias" not in options


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_exact_is_training_without_the_row(options):
    _, model, X, y, K = machine_of(1, **options)
    K, upper, ridge, bias = described(options, y, K)
    found = kfu.loo(model, X, y, "exact")["exact"]
    expected = oracle.left_out(K, y, upper, ridge, bias=bias)
    np.testing.assert_allclose(found.outputs[:, 0], expected, atol=2e-5)
    assert found.value == np.mean(y * expected <= 0)
    assert found.valid


@pytest.mark.parametrize("options", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [0, 3])
def test_spans(seed, options):
    """span, span-smooth and span-exact from spans by definition."""
    trained, model, X, y, K = machine_of(seed, **options)
    K, upper, ridge, bias = described(options, y, K)
    full = K + np.diag(ridge)
    (machine,) = trained.binary
    alpha, f = machine.alpha, machine.plain + y * machine.alpha * ridge
    found = kfu.loo(model, X, y, "span,span-exact,span-smooth")
    squares = {"span": {"boxes": False}, "span-smooth": {"boxes": False, "eta": 0.1}}
    for name, how in {**squares, "span-exact": {}}.items():
        expected = f.copy()
        for p in np.flatnonzero(alpha > 0):
            square = oracle.constrained_span(full, y, alpha, upper, p, bias=bias, **how)
            assert np.isfinite(square)
            expected[p] -= y[p] * alpha[p] * square
        np.testing.assert_allclose(found[name].outputs[:, 0], expected, rtol=1e-4, atol=1e-5)
        assert found[name].value == np.mean(y * expected <= 0)


def test_constraints_bind_somewhere():
    """Else the programmes above were never solved."""
    bound = 0
    for seed in range(4):
        (machine,) = machine_of(seed, cost=30.0)[0].binary
        free = machine.spans.unbounded
        squares = constrained_spans(machine)
        assert np.all(squares[free] >= machine.spans.squared[free] * (1 - 1e-6))
        bound += np.count_nonzero(squares[free] > machine.spans.squared[free] * 1.01)
    assert bound > 5


def test_no_room_for_a_vector():
    """One unbounded vector cannot take what a bounded one leaves."""
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1]])
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    model = kfu.train(X, y, kernel=KernelSpec.make("rbf", gamma=1.0), cost=0.2, settings=FINE)
    found = kfu.loo(model, X, y, "span-exact,span-bound")
    (machine,) = _of_model(model, X, y, None, None, None, None).binary
    lost = np.isinf(constrained_spans(machine))
    assert lost.any()
    assert f"{lost.sum()} rows cannot be dealt" in found["span-exact"].note
    assert found["span-exact"].flags[lost].all()
    assert "all at their bound" in found["span-bound"].note
    for p in machine.support:
        expected = oracle.constrained_span(
            machine.block(*2 * [np.arange(5)]), y, machine.alpha, machine.upper, p
        )
        assert np.isinf(expected) == lost[p]


@pytest.mark.parametrize("options", [{"cost": 1.0}, {"cost": 2.0, "machine": "svc2"}], ids=str)
def test_sphere(options):
    trained, _, _, y, K = machine_of(2, **options)
    K, _, ridge, _ = described(options, y, K)
    full = K + np.diag(ridge)
    (machine,) = trained.binary
    assert enclosing_sphere(trained, machine).squared_radius == pytest.approx(
        oracle.sphere(full), rel=1e-3
    )
    mean = np.full(len(y), 1 / len(y))
    assert variance(machine) == pytest.approx(np.diag(full) @ mean - mean @ full @ mean)


def test_counts_without_bias():
    trained, model, X, y, K = machine_of(5, cost=1.0, bias="none")
    (machine,) = trained.binary
    found = kfu.loo(model, X, y)
    beta = y * machine.alpha
    others = y * (K @ beta - np.diag(K) * beta)  # Σ over j ≠ p
    assert found["jaakkola-haussler"].value == np.mean(others <= 0)
    wrong = y * machine.plain <= 0
    assert found["sv-count"].value == np.mean((machine.alpha > 0) | wrong)
    assert found["gacv"].value == pytest.approx(oracle.gacv(K, y, machine.plain, machine.alpha))


def test_xi_alpha():
    trained, model, X, y, K = machine_of(7, cost=0.5)
    (machine,) = trained.binary
    found = kfu.loo(model, X, y, ["xi-alpha"])
    flags = oracle.xi_alpha(K, y, machine.plain, machine.alpha)
    assert 0 < flags.mean() < 1
    np.testing.assert_array_equal(found["xi-alpha"].flags, flags)
    right, missed = np.sum(~flags & (y > 0)), np.sum(flags & (y < 0))
    assert found["xi-alpha-recall"].value == right / np.sum(y > 0)
    assert found["xi-alpha-precision"].value == right / (right + missed)


def test_hard_margin_without_bias_is_opper_winther_and_the_span():
    X, y, _ = problem(1, shift=1.2)
    kernel = KernelSpec.make("rbf", gamma=2.0)
    model = kfu.train(X, y, kernel=kernel, cost=math.inf, bias="none", settings=FINE)
    found = kfu.loo(model, X, y)
    S = model.support
    K = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(-1))[np.ix_(S, S)]
    flags = np.abs(model.coef[0]) / np.diag(np.linalg.inv(K)) >= 1.0
    assert found["opper-winther"].value == flags.sum() / len(y)
    assert found["opper-winther"].value == found["span"].value
    # ‖w‖² = Σα, and K(x, x) = 1
    assert found["radius-margin"].value == pytest.approx(np.abs(model.coef).sum() / len(y))
    assert found["gacv"].value == pytest.approx(np.abs(model.coef).sum() / len(y), rel=1e-4)


def test_large_smoothing_is_jaakkola_haussler():
    _, model, X, y, _ = machine_of(4, cost=math.inf, bias="none")
    found = kfu.loo(model, X, y, "span-smooth,jaakkola-haussler", eta=1e9)
    assert found["span-smooth"].value == found["jaakkola-haussler"].value


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(10, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=10)
    K = np.exp(-((X - X.T) ** 2))
    kernel = KernelSpec.make("rbf", gamma=1.0)
    model = kfu.train(X, y, machine="svr", kernel=kernel, cost=1.0, epsilon=0.1, settings=FINE)
    found = kfu.loo(model, X, y)
    expected = oracle.left_out_regression(K, y, np.ones(10), 0.1)
    np.testing.assert_allclose(found["exact"].outputs[:, 0], expected, atol=1e-4)
    assert found["exact"].value == pytest.approx(np.mean((expected - y) ** 2), rel=1e-3)
    outside = np.abs(expected - y) > 0.1 + 1e-6
    assert found["sv-count"].value >= outside.mean()


def test_span_of_regression_where_categories_stay():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(60, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=60)
    options = {"machine": "svr", "kernel": KernelSpec.make("rbf", gamma=0.3), "cost": 1.0}
    model = kfu.train(X, y, settings=FINE, **options)
    found = kfu.loo(model, X, y, "span,exact")
    plain = model.predict(X)

    def categories(trained, rows):
        beta = np.zeros(60)
        beta[rows[trained.support]] = trained.coef[0]
        return np.sign(beta) * (1 + (np.abs(beta) >= 1.0 - 1e-9))

    same = 0
    all_rows = np.arange(60)
    for p in model.support:
        rest = np.delete(all_rows, p)
        part = kfu.train(X[rest], y[rest], settings=FINE, **options)
        changed = categories(part, rest)[rest] != categories(model, all_rows)[rest]
        if not changed.any():
            same += 1
            expected = part.predict(X[p : p + 1])[0]
            assert found["span"].outputs[p, 0] == pytest.approx(expected, abs=1e-6)
            assert found["exact"].outputs[p, 0] == pytest.approx(expected, abs=1e-6)
            assert abs(expected - plain[p]) > 1e-5
    assert same >= 3


def test_least_squares():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    X += np.array([(0, 0), (1.5, 0), (0, 1.5)])[np.arange(30) % 3]
    for options in ({}, {"multiclass": "dense"}, {"multiclass": "ava"}):
        kernel = KernelSpec.make("rbf", gamma=0.5)
        model = kfu.train(X, y, machine="rlsc", kernel=kernel, ridge=0.5, **options)
        found = kfu.loo(model, X, y)
        wrong = 0
        for p in range(30):
            rest = np.delete(np.arange(30), p)
            code = {"multiclass": model.code, "decoding": model.decoding}
            part = kfu.train(X[rest], y[rest], machine="rlsc", kernel=kernel, ridge=0.5, **code)
            wrong += part.predict(X[p : p + 1])[0] != y[p]
        assert found["exact"].value == pytest.approx(wrong / 30)
        assert found["rlsc-bound"].value >= found["exact"].value
    assert not found["gcv"].valid  # a code with zeros


def test_gcv_and_stability_of_regression():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=25)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    kernel = KernelSpec.make("rbf", gamma=0.3)
    model = kfu.train(X, y, machine="rls", kernel=kernel, ridge=0.2)
    H = K @ np.linalg.inv(K + 0.2 * np.eye(25))
    residual = y - H @ y
    found = kfu.loo(model, X, y)
    expected = np.mean(residual**2) / (1 - np.trace(H) / 25) ** 2
    assert found["gcv"].value == pytest.approx(expected)
    assert found["exact"].value == pytest.approx(np.mean((residual / (1 - np.diag(H))) ** 2))
    assert found["stability"].value == pytest.approx(model.info["stability_bound"])
    chosen = kfu.loo(kfu.train(X, y, machine="rls", kernel=kernel), X, y)
    assert "chosen on these rows" in chosen["stability"].note
    few = kfu.train(
        X, y, machine="rls", kernel=kernel, ridge=0.2, approximation="subset", centres=9
    )
    for name in ("stability", "gcv"):
        assert "full kernel" in kfu.loo(few, X, y, name)[name].note


def test_risk_bounds():
    _, model, X, y, _ = machine_of(1, cost=1.0, bias="none")
    found = kfu.loo(model, X, y, test=(X, y))
    # hinge loss, beta = kappa² C, and F = kappa √(2Cn)
    slack = np.maximum(0.0, 1 - y * model.decision_function(X)[:, 0])
    n, largest = 16, 1 + math.sqrt(2 * 16)
    deviation = math.sqrt(math.log(20) / (2 * n))
    expected = slack.mean() + 2 + (4 * n + largest) * deviation
    assert found["stability"].value == pytest.approx(expected)
    error = np.mean(model.predict(X) != y)
    assert found["validation"].value == pytest.approx(
        error + math.sqrt(-math.log(0.025) / (2 * 16))
    )
    assert found.test_error == error
    assert not found["vc"].valid  # rbf: no dimension
    linear = kfu.train(X, y, kernel=KernelSpec.make("linear"), settings=FINE)
    known = kfu.loo(linear, X, y, "vc", delta=0.1)["vc"]
    wrong = np.mean(linear.predict(X) != y)
    assert known.valid
    assert known.value == pytest.approx(
        wrong + math.sqrt((3 * (math.log(32 / 3) + 1) - math.log(0.025)) / 16) + 1 / 16
    )
    assert vc_bound(0.1, 20, 16, 0.05) >= 1


@pytest.mark.parametrize("machine", [*MACHINES, *SINGLE_MACHINES])
def test_every_machine(machine):
    """Exact leave-one-out of each is training without the row; estimates not for it say so."""
    rng = np.random.default_rng(8)
    X = rng.uniform(0.1, 2.0, size=(12, 2))
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    X += 0.5 * (y > 0)[:, None]
    qid = np.repeat([0, 1, 2], 4)
    kernel = KernelSpec.make("rbf", gamma=0.5)
    options = {"machine": machine, "kernel": kernel, "settings": FINE}
    if machine in SINGLE_MACHINES:
        options |= {"machine": "svc", "multiclass": machine}
    if options["machine"] in ("rls", "rlsc"):
        options["ridge"] = 0.3
    if machine == "knn":
        options["neighbours"] = 3
    if machine == "kpm":
        options["dims"] = 3
    grades = np.arange(12) % 3
    targets = {"rank": grades.astype(float), "one-class": None}.get(machine, y)
    of_query = {"qid": qid} if machine == "rank" else {}
    model = kfu.train(X, targets, **options, **of_query)
    found = kfu.loo(model, X, targets, list(ESTIMATES), **of_query)
    assert found["exact"].valid, found["exact"].note
    for p in range(0, 12, 5):
        rest = np.flatnonzero(qid != qid[p]) if machine == "rank" else np.delete(np.arange(12), p)
        kept = {"qid": qid[rest]} if machine == "rank" else {}
        own = None if targets is None else targets[rest]
        part = kfu.train(X[rest], own, **options, **kept)
        expected = part.decision_function(X[p : p + 1])[0]
        np.testing.assert_allclose(found["exact"].outputs[p], expected, atol=1e-5)
    for estimate in found:
        entry = ESTIMATES.get(estimate.name)
        if entry is not None and machine not in entry.machines:
            assert estimate.value is None
            assert not estimate.valid
            assert "is for the machines" in estimate.note
    # What is chosen without asking is for the machine.
    assert all(
        machine in ESTIMATES[e.name].machines
        for e in kfu.loo(model, X, targets, **of_query)
        if e.name in ESTIMATES
    )


def test_estimators():
    X, y, _ = problem(3, n=40)
    names = np.where(y > 0, "yes", "no")
    estimator = kfu.SVC(C=1.0, gamma=GAMMA, class_weight="balanced", tol=1e-9)
    fresh = kfu.loo(estimator, X, names, test=(X, names))
    assert not hasattr(estimator, "model_")
    fitted = kfu.loo(estimator.fit(X, names), X, names, test=(X, names))
    assert [e.value for e in fresh] == [e.value for e in fitted]
    direct = kfu.loo(kfu.train(X, y, kernel=KernelSpec.make("rbf", gamma=GAMMA)), X, y)
    assert direct["exact"].value == fitted["exact"].value
    by_function = kfu.SVC(kernel=lambda a, b: a @ b.T)
    linear = kfu.SVC(kernel="linear")
    a, b = kfu.loo(by_function, X, names, "exact,span"), kfu.loo(linear, X, names, "exact,span")
    assert [e.value for e in a] == [e.value for e in b]
    assert "span" in str(a)
    assert a["span"].to_dict()["name"] == "span"
    with pytest.raises(KeyError):
        a["gacv"]


def test_a_model_from_a_file(tmp_path):
    X, y, _ = problem(3, n=40)
    options = {"cost": math.inf, "class_weight": {1.0: 2.0}, "kernel": KernelSpec.make("linear")}
    model = kfu.train(X + 2 * y[:, None], y, **options)
    model.save(tmp_path / "m.kfu")
    a = kfu.loo(model, X + 2 * y[:, None], y, "exact,span")
    b = kfu.loo(kfu.load(tmp_path / "m.kfu"), X + 2 * y[:, None], y, "exact,span")
    assert [e.value for e in a] == [e.value for e in b]
    with pytest.raises(SettingsError, match="rows it was trained on"):
        kfu.loo(model, X, y)
    with pytest.raises(SettingsError, match="neither a Model"):
        kfu.loo("m.kfu", X, y)
    with pytest.raises(SettingsError, match="did you mean 'span'"):
        kfu.loo(model, X + 2 * y[:, None], y, "spam")
    with pytest.raises(SettingsError, match="eta"):
        kfu.loo(model, X + 2 * y[:, None], y, eta=-1.0)


def test_a_scaler_of_the_model():
    X, y, _ = problem(6, n=30)
    scaler = kfu.Scaler.fit(X * [100.0, 1.0], "standard")
    scaled = scaler.transform(X * [100.0, 1.0])
    plain = kfu.train(scaled, y)
    kept = kfu.train(scaled, y)
    kept.scaler = scaler
    a, b = kfu.loo(plain, scaled, y), kfu.loo(kept, X * [100.0, 1.0], y)
    assert [e.value for e in a] == [e.value for e in b]


def test_trained_signs_decide():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 4
    known = {"ova": True, "ava": True, "dense": False, "sparse": False}
    for code, decides in known.items():
        model = kfu.train(X, y, multiclass=code)
        trained: Trained = _of_model(model, X, y, None, None, None, None)
        assert trained.signs_decide == decides, code
    model = kfu.train(X, y, multiclass="dense", decoding="hamming")
    assert _of_model(model, X, y, None, None, None, None).signs_decide
