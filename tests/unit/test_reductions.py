"""Every SVM machine against its textbook QP: objective, function, certificate, edge cases."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from kfu import KernelSpec, train
from kfu.errors import DataError, SettingsError
from kfu.solvers import SOLVERS, SolverSettings
from tests.oracles import machines as oracle

KERNEL = KernelSpec.make("rbf", gamma=0.5)
TIGHT = SolverSettings(tolerance=1e-8, precision="float64", threads=1)
LOOSE = SolverSettings(tolerance=0.05, precision="float64", threads=1)
N = 24


def rbf(X, Z=None):
    Z = X if Z is None else Z
    return np.exp(-0.5 * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def data(seed=0, n=N):
    """Rows, overlapping labels ±1, numbers, weights (one of them 0)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    t = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * rng.normal(size=n)
    weights = rng.uniform(0.3, 2.0, size=n)
    weights[3] = 0.0
    return X, y, t, weights


@dataclass
class Case:
    """A machine, its options, and the names of what its textbook form needs."""

    machine: str
    options: dict[str, Any] = field(default_factory=dict)
    cost: float = 2.0
    bias: str = "free"

    @property
    def is_regression(self) -> bool:
        return self.machine in ("svr", "nu-svr")

    @property
    def nu(self) -> float:
        return self.options["nu"]

    def __str__(self) -> str:
        shown = "-".join(f"{k}{v}" for k, v in self.options.items() if not hasattr(v, "shape"))
        margins = "-margins" if "margins" in self.options else ""
        bias = "" if self.bias == "free" else f"-{self.bias}"
        return f"{self.machine}-C{self.cost:g}{bias}{margins}-{shown}"

    def train(self, X, y, t, weights=None, settings=TIGHT, **more):
        costs = {} if self.machine in ("nu-svc", "one-class") else {"cost": self.cost}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return train(
                X,
                None if self.machine == "one-class" else t if self.is_regression else y,
                machine=self.machine,
                kernel=KERNEL,
                sample_weight=weights,
                bias=self.bias,
                settings=settings,
                **costs,
                **self.options,
                **more,
            )

    def solve(self, K, y, t, weights):
        """The textbook optimum; ν-SVC's before the division by ρ."""
        K = K + (self.bias == "regularised")
        costs, bias = self.cost * weights, self.bias == "free"
        g = self.options.get("margins", np.ones(len(y)))
        if self.machine == "svc":
            return oracle.svc(K, y, costs / g, targets=g, bias=bias)
        if self.machine == "svc2":
            upper = np.where(weights > 0, np.inf, 0.0)
            ridge = 1.0 / np.where(weights > 0, costs, 1.0)
            return oracle.svc(K, y, upper, targets=g, ridge=ridge, bias=bias)
        if self.machine == "nu-svc":
            return oracle.nu_svc(K, y, weights, self.nu)
        if self.machine == "one-class":
            return oracle.one_class(K, weights, self.nu)
        if self.machine == "svr":
            return oracle.svr(K, t, costs, self.options["epsilon"], bias=bias)
        return oracle.nu_svr(K, t, costs, self.nu)


MARGINS = np.random.default_rng(7).uniform(0.4, 2.5, size=N)
CASES = [
    *(Case("svc", cost=c) for c in (0.3, 20.0)),
    *(Case("svc2", cost=c) for c in (0.3, 20.0)),
    *(Case(m, bias=b) for m in ("svc", "svc2") for b in ("none", "regularised")),
    *(Case(m, {"margins": MARGINS}) for m in ("svc", "svc2")),
    Case("svc", {"margins": MARGINS}, bias="none"),
    *(Case("nu-svc", {"nu": nu}) for nu in (0.15, 0.5)),
    *(Case("one-class", {"nu": nu}) for nu in (0.1, 0.5)),
    *(Case("svr", {"epsilon": e}, cost=c) for e in (0.0, 0.3) for c in (0.3, 20.0)),
    *(Case("svr", {"epsilon": 0.2}, bias=b) for b in ("none", "regularised")),
    *(Case("nu-svr", {"nu": nu}, cost=c) for nu in (0.2, 0.7, 1.0) for c in (0.3, 20.0)),
]


def by_row(model, n=N):
    beta = np.zeros(n)
    beta[model.support] = model.coef[0]
    return beta


# ---- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weighed", [False, True], ids=["alike", "weighed"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_textbook_optimum_is_reached(case, weighed):
    X, y, t, weights = data()
    weights = weights if weighed else np.ones(N)
    K = rbf(X)
    expected = case.solve(K, y, t, weights)
    model = case.train(X, y, t, weights if weighed else None)
    beta, margin = by_row(model), model.info["margin"]
    scale = margin if case.machine == "nu-svc" else 1.0
    assert model.info["status"] == "converged"
    assert model.info["objective"] * scale**2 == pytest.approx(expected.objective, rel=1e-7)
    # w is unique: the functions agree up to the bias, here and at new points.
    Z = np.random.default_rng(9).normal(size=(10, 3))
    for kernel in (K, rbf(Z, X)):
        ours, theirs = kernel @ beta * scale, kernel @ expected.beta
        np.testing.assert_allclose(ours, theirs, atol=2e-4 * max(1.0, np.abs(theirs).max()))
    decision = model.decision_function(Z)[:, 0]
    np.testing.assert_allclose(decision, rbf(Z, X) @ beta + model.bias[0], atol=1e-10)
    if weighed:
        assert 3 not in model.support
    if case.bias == "none":
        assert model.bias[0] == 0.0
    if case.bias == "regularised":
        assert model.bias[0] == pytest.approx(beta.sum(), abs=1e-12)
    if case.bias == "free" and case.machine not in ("one-class",):
        assert abs(beta.sum()) <= 1e-9 * max(1.0, np.abs(beta).sum())


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@pytest.mark.parametrize("chunk", [2, 3, 4])
@pytest.mark.parametrize("machine", ["nu-svc", "nu-svr"])
def test_the_smallest_chunks_hold_a_pair_of_one_group(machine, chunk, solver):
    """Rows that repeat and gaps that are equal in both groups."""
    for seed in range(5):
        X, y, t, _ = data(seed)
        X, y = np.round(X), np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
        small = replace(TIGHT, tolerance=1e-6, chunk=chunk, cache_mib=0.0, solver=solver)
        model = Case(machine, {"nu": 0.15}).train(X, y, t, settings=small)
        whole = Case(machine, {"nu": 0.15}).train(X, y, t, settings=TIGHT)
        assert model.info["status"] == "converged"
        gaps = model.info["duality_gap"] + whole.info["duality_gap"]
        assert model.info["objective"] == pytest.approx(
            whole.info["objective"], rel=1e-4, abs=gaps + 1e-6
        )


# ---- the certificate -----------------------------------------------------------------------------


@dataclass
class Scratch:
    """The textbook variables x ∈ [0, upper] at a solution, slopes before and after the threshold"""

    dual: float
    primal: float
    gradient: np.ndarray
    slope: np.ndarray
    x: np.ndarray
    upper: np.ndarray
    signs: np.ndarray
    group: np.ndarray | None  # None: no equality


def scratch(case: Case, model, K, y, t, weights) -> Scratch:
    """Everything again from β, the bias and K; ν-SVC is brought back to before the division."""
    beta, bias, margin = by_row(model, len(y)), model.bias[0], model.info["margin"]
    costs, n = case.cost * weights, len(y)
    has_bias = case.bias == "free"
    zeros = np.zeros(n, dtype=int)
    if case.machine in ("svc", "svc2"):
        g = case.options.get("margins", np.ones(n))
        is_square = case.machine == "svc2"
        upper = np.where(weights > 0, np.inf, 0.0) if is_square else costs / g
        alpha, f = y * beta, K @ beta
        ridge = alpha / np.where(weights > 0, costs, 1.0) if is_square else 0.0
        extra = 0.5 * bias**2 if case.bias == "regularised" else 0.0
        square = beta @ K @ beta + (bias**2 if case.bias == "regularised" else 0.0)
        dual = g @ alpha - 0.5 * square - 0.5 * np.sum(ridge * alpha)
        if is_square:
            primal = oracle.primal_svc2(K, y, costs, beta, bias, g)
        else:
            primal = oracle.primal_svc(K, y, upper, beta, bias, g)
        slope = y * (f + bias) - g + ridge
        gradient = slope - y * bias if has_bias else slope
        group = zeros if has_bias else None
        return Scratch(dual, primal + extra, gradient, slope, alpha, upper, y, group)
    if case.machine == "nu-svc":
        beta, bias = beta * margin, bias * margin
        beta = np.where(np.isclose(np.abs(beta), weights, rtol=1e-12, atol=0), y * weights, beta)
        primal = oracle.primal_nu_svc(K, y, weights, case.nu, beta, bias, margin)
        gradient = y * (K @ beta)
        slope = gradient + y * bias - margin
        group = (y < 0).astype(int)
        dual = -0.5 * beta @ K @ beta
        return Scratch(dual, primal, gradient, slope, y * beta, weights, y, group)
    if case.machine == "one-class":
        primal = oracle.primal_one_class(K, weights, case.nu, beta, -bias)
        gradient = K @ beta
        dual = -0.5 * beta @ K @ beta
        return Scratch(dual, primal, gradient, gradient + bias, beta, weights, np.ones(n), zeros)
    epsilon = margin if case.machine == "nu-svr" else case.options["epsilon"]
    residual = K @ beta - t
    slope = np.concatenate([residual + bias + epsilon, epsilon - residual - bias])
    tube = epsilon if case.machine == "svr" else 0.0
    gradient = np.concatenate([residual + tube, tube - residual])
    x = np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
    extra = 0.5 * bias**2 if case.bias == "regularised" else 0.0
    dual = t @ beta - tube * np.abs(beta).sum() - 0.5 * beta @ K @ beta - extra
    if case.machine == "svr":
        primal = oracle.primal_svr(K, t, costs, epsilon, beta, bias) + extra
    else:
        primal = oracle.primal_nu_svr(K, t, costs, case.nu, beta, bias, epsilon)
    if not has_bias:
        gradient = slope
    sides = np.repeat([0, 1], n)
    group = None if not has_bias else sides * 0 if case.machine == "svr" else sides
    both = np.concatenate([costs, costs])
    signs = np.repeat([1.0, -1.0], n)
    return Scratch(dual, primal, gradient, slope, x, both, signs, group)


@pytest.mark.parametrize("settings", [TIGHT, LOOSE], ids=["tight", "loose"])
@pytest.mark.parametrize("weighed", [False, True], ids=["alike", "weighed"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_certificate_from_scratch(case, weighed, settings):
    X, y, t, weights = data(seed=1)
    weights = weights if weighed else np.ones(N)
    model = case.train(X, y, t, weights if weighed else None, settings)
    info = model.info
    found = scratch(case, model, rbf(X), y, t, weights)
    scale = info["margin"] if case.machine == "nu-svc" else 1.0
    size = max(1.0, abs(found.primal), abs(found.dual)) * 1e-9
    assert info["objective"] * scale**2 == pytest.approx(found.dual, abs=size)
    gap = found.primal - found.dual
    assert gap >= -size
    assert info["duality_gap"] * scale**2 == pytest.approx(gap, abs=size)
    if case.machine == "nu-svr" and found.x.sum() < case.nu * case.cost * weights.sum() - size:
        return  # α and α* of a row were both positive; the model has their difference alone
    violation = oracle.worst_violation(found.slope, found.x, found.upper)
    assert info["kkt_violation"] * scale == pytest.approx(violation, abs=size)
    if found.group is None:
        kkt_gap = violation
    else:
        kkt_gap = oracle.pair_gap(found.gradient, found.x, found.upper, found.signs, found.group)
    assert max(0.0, info["kkt_gap"]) == pytest.approx(kkt_gap, abs=size)
    assert info["kkt_gap"] <= settings.tolerance
    assert info["n_sv"] == np.count_nonzero(by_row(model)) == model.n_sv


# ---- targets of the margin, class weights --------------------------------------------------------


def test_margins_auto_is_the_mean_distance_to_five_neighbours():
    X, y, _, _ = data()
    X[1] = X[0]  # a duplicate has one neighbour at distance 0
    K = rbf(X)
    distance = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K)[None, :] - 2.0 * K, 0.0))
    np.fill_diagonal(distance, np.inf)
    widths = np.sort(distance, axis=1)[:, :5].mean(axis=1)
    expected = oracle.svc(K, y, 2.0 * widths.mean() / widths, targets=widths / widths.mean())
    model = train(X, y, kernel=KERNEL, cost=2.0, margins="auto", settings=TIGHT)
    assert model.info["objective"] == pytest.approx(expected.objective, rel=1e-7)
    given = train(X, y, kernel=KERNEL, cost=2.0, margins=widths / widths.mean(), settings=TIGHT)
    np.testing.assert_allclose(by_row(model), by_row(given), atol=1e-5)


@pytest.mark.parametrize(
    ("margins", "error", "message"),
    [
        ("some", SettingsError, "give auto or one number a row"),
        (np.ones(3), DataError, "3 margins for 24 rows"),
        (np.append(np.ones(N - 1), 0.0), DataError, "the margin of row 24 is not > 0"),
        (np.append(np.nan, np.ones(N - 1)), DataError, "the margin of row 1 is not > 0"),
    ],
)
def test_improper_margins(margins, error, message):
    X, y, _, _ = data()
    with pytest.raises(error, match=message):
        train(X, y, kernel=KERNEL, margins=margins)


@pytest.mark.parametrize("machine", ["svc", "svc2", "nu-svc"])
def test_class_weights_multiply_the_weights_of_their_rows(machine):
    X, y, _, weights = data()
    options = {"nu": 0.2} if machine == "nu-svc" else {"cost": 3.0}
    common = {"machine": machine, "kernel": KERNEL, "settings": TIGHT, **options}
    # Rows of weight 0 are not there, so they do not count.
    there = weights > 0
    share = {s: there.sum() / (2.0 * np.count_nonzero(y[there] == s)) for s in (1.0, -1.0)}
    assert share[1.0] != share[-1.0]
    balanced = train(X, y, class_weight="balanced", sample_weight=weights, **common)
    mapped = train(X, y, class_weight=share, sample_weight=weights, **common)
    rows = train(X, y, sample_weight=weights * np.where(y > 0, share[1.0], share[-1.0]), **common)
    plain = train(X, y, sample_weight=weights, **common)
    np.testing.assert_array_equal(by_row(balanced), by_row(mapped))
    np.testing.assert_allclose(by_row(balanced), by_row(rows), atol=1e-8)
    assert np.abs(by_row(balanced) - by_row(plain)).max() > 1e-3


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "3 weights for 24 rows"),
        (np.ones((N, 1)), "24 weights for 24 rows"),
        (["a"] * N, "weights that are not numbers"),
        (np.append(np.ones(N - 1), -1.0), "the weight of row 24 is not ≥ 0"),
        (np.append(np.nan, np.ones(N - 1)), "the weight of row 1 is not ≥ 0"),
        (np.zeros(N), "fewer than two classes have rows of positive weight"),
    ],
)
def test_improper_weights(weights, message, class_weight):
    X, y, _, _ = data()
    with pytest.raises(DataError, match=message):
        train(X, y, kernel=KERNEL, sample_weight=weights, class_weight=class_weight)


# ---- how the machines hang together --------------------------------------------------------------


def test_nu_svc_is_the_svc_of_cost_one_over_its_margin():
    X, y, t, _ = data()
    nu = Case("nu-svc", {"nu": 0.4}).train(X, y, t)
    rho = nu.info["margin"]
    svc = Case("svc", cost=1.0 / rho).train(X, y, t)
    np.testing.assert_allclose(by_row(nu), by_row(svc), atol=1e-5)
    assert nu.bias[0] == pytest.approx(svc.bias[0], abs=1e-5)


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_nu_svr_is_the_svr_of_its_tube(nu):
    X, y, t, weights = data()
    found = Case("nu-svr", {"nu": nu}).train(X, y, t, weights)
    epsilon = found.info["epsilon"]
    assert epsilon > 0.0
    given = Case("svr", {"epsilon": epsilon}).train(X, y, t, weights)
    np.testing.assert_allclose(by_row(found), by_row(given), atol=1e-5)
    assert found.bias[0] == pytest.approx(given.bias[0], abs=1e-5)


def test_one_class_of_nu_one_is_the_mean():
    X, y, t, weights = data()
    model = Case("one-class", {"nu": 1.0}).train(X, y, t, weights)
    np.testing.assert_allclose(by_row(model), weights, rtol=1e-12)
    assert model.classes.tolist() == [-1.0, 1.0]


def test_one_class_has_no_use_for_labels():
    X, y, _, _ = data()
    options = {"machine": "one-class", "nu": 0.3, "kernel": KERNEL, "settings": TIGHT}
    with_labels, without = train(X, y, **options), train(X, **options)
    np.testing.assert_array_equal(by_row(with_labels), by_row(without))
    inside = without.decision_function(X)[:, 0] > 0
    np.testing.assert_array_equal(without.predict(X), np.where(inside, 1.0, -1.0))


# ---- what cannot be ------------------------------------------------------------------------------


def test_an_infeasible_nu_is_told_with_the_feasible_range():
    X, y, _, _ = data()
    y = np.where(np.arange(N) < 6, 1.0, -1.0)
    with pytest.raises(DataError, match=r"nu = 0\.6 is not feasible.*6 of 24.*0 < nu <= 0\.5"):
        train(X, y, machine="nu-svc", nu=0.6, kernel=KERNEL)
    at_the_end = train(X, y, machine="nu-svc", nu=0.5, kernel=KERNEL, settings=TIGHT)
    assert np.count_nonzero(by_row(at_the_end)[:6]) == 6  # all of the smaller class
    weights = np.where(y > 0, 3.0, 1.0)  # 18 of 36
    assert train(X, y, machine="nu-svc", nu=1.0, kernel=KERNEL, sample_weight=weights).n_sv == N


@pytest.mark.parametrize("machine", ["nu-svc", "one-class", "nu-svr"])
@pytest.mark.parametrize("nu", [0.0, -0.1, 1.0001, float("nan"), "much"])
def test_nu_is_in_its_range(machine, nu):
    X, y, _, _ = data()
    with pytest.raises(SettingsError, match="nu is"):
        train(X, y, machine=machine, nu=nu, kernel=KERNEL)


def test_a_margin_of_zero_is_told():
    model = train(
        np.ones((6, 2)), np.array([1.0, 1, 1, -1, -1, -1]), machine="nu-svc", kernel=KERNEL
    )
    assert any("the margin is 0" in warning for warning in model.info["warnings"])
    assert np.isfinite(model.coef).all()


@pytest.mark.parametrize("machine", ["svr", "nu-svr", "one-class"])
def test_weights_that_are_all_zero(machine):
    X, _, t, _ = data()
    with pytest.raises(DataError, match="no row has a positive weight"):
        train(X, t, machine=machine, kernel=KERNEL, sample_weight=np.zeros(N))


@pytest.mark.parametrize("machine", ["svr", "nu-svr"])
def test_numbers_without_anything_to_learn(machine):
    X, _, _, _ = data()
    constant = train(X, np.full(N, 3.0), machine=machine, kernel=KERNEL)
    assert constant.n_sv == 0
    np.testing.assert_allclose(constant.predict(X), 3.0, atol=1e-9)
    single = train(X[:1], np.array([2.0]), machine=machine, kernel=KERNEL)
    assert single.predict(X[:1])[0] == pytest.approx(2.0, abs=0.1)
    for bad, message in (([np.nan] * N, "row 1 is not finite"), (["a"] * N, "not numbers")):
        with pytest.raises(DataError, match=message):
            train(X, bad, machine=machine, kernel=KERNEL)


def test_a_tube_wider_than_the_data_holds_them_all():
    X, _, t, _ = data()
    model = train(X, t, machine="svr", epsilon=100.0, kernel=KERNEL)
    assert model.n_sv == 0
    assert model.info["objective"] == 0.0
    assert model.bias[0] == pytest.approx((t.max() + t.min()) / 2, abs=1e-9)
