"""Forecasts of trainings: laws found from pilots, the method, the memory of the arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.errors import SettingsError
from kfu.forecast import forecast
from kfu.forecast.laws import Pilot, extrapolated, grown_rank, term
from kfu.forecast.pilots import part_of, pilot_sizes
from kfu.forecast.plans import PLANS
from kfu.kernels import KernelSpec
from kfu.least_squares import rectangle_cost
from kfu.machines.training import prepare

RBF = KernelSpec.make("rbf", gamma=0.5)
LINEAR = KernelSpec.make("linear")


def task_of(n=300, d=4, machine="rls", kernel=RBF, classes=3, sparse=False, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X[:, 0] if machine in ("rls", "svr") else rng.integers(0, classes, n)
    return prepare(sp.csr_matrix(X) if sparse else X, y, machine=machine, kernel=kernel, **options)


class TestLaws:
    def test_cubic_and_square_are_told_apart(self):
        true = lambda n: 2e-9 * n**3 + 3e-7 * n**2  # noqa: E731
        pilots = [Pilot({"n": n}, {"factor": true(n)}) for n in (500.0, 1000.0, 2000.0)]
        found = extrapolated(pilots, {}, (term(n=3), term(n=2)), {"n": 8000.0})
        assert found["factor"] == pytest.approx(true(8000.0), rel=1e-6)

    def test_a_disturbed_pilot_changes_little(self):
        true = lambda n: 2e-9 * n**3 + 3e-7 * n**2  # noqa: E731
        pilots = [Pilot({"n": n}, {"factor": true(n)}) for n in (500.0, 1000.0, 2000.0)]
        pilots[2].seconds["factor"] *= 10
        found = extrapolated(pilots, {}, (term(n=3), term(n=2)), {"n": 8000.0})
        assert found["factor"] == pytest.approx(true(8000.0), rel=1e-6)

    def test_each_phase_has_its_own_law(self):
        pilots = [Pilot({"n": n}, {"gram": 1e-7 * n**2, "other": 0.0}) for n in (100.0, 200.0)]
        found = extrapolated(pilots, {"gram": (term(n=2),)}, (term(n=1),), {"n": 1000.0})
        assert found == {"gram": pytest.approx(0.1), "other": 0.0}

    def test_rank(self):
        full = [Pilot({"m": m, "r": m}, {}) for m in (100.0, 200.0)]
        assert grown_rank(full, 1000.0) == 1000.0
        saturated = [Pilot({"m": m, "r": 50.0}, {}) for m in (100.0, 200.0)]
        assert grown_rank(saturated, 1000.0) == pytest.approx(50.0)
        root = [Pilot({"m": m, "r": np.sqrt(m)}, {}) for m in (100.0, 400.0)]
        assert grown_rank(root, 10000.0) == pytest.approx(100.0)


class TestPilots:
    @pytest.mark.parametrize("name", PLANS)
    @pytest.mark.parametrize("n", [3, 50, 1000, 100000])
    def test_sizes_are_parts(self, name, n):
        plan = PLANS[name]
        sizes = {"n": float(n), "d": 700.0, "m": min(n, 5000.0)}
        for chosen in pilot_sizes(plan, sizes):
            for grown, size in chosen.items():
                assert 2 <= size <= max(min(sizes[grown], plan.grows[grown]), 2) or n <= 400
                assert size <= max(sizes[grown], 2)
            assert chosen.get("m", 0) <= chosen["n"]

    @pytest.mark.parametrize("sparse", [False, True])
    def test_rows_labels_and_weights_stay_together(self, sparse):
        task = task_of(sample_weight=np.arange(300.0), sparse=sparse)
        part = part_of(task, {"n": 40})
        X = part.X.toarray() if sparse else part.X
        np.testing.assert_array_equal(X[:, 0], part.targets)
        where = np.searchsorted(np.sort(task.targets), part.targets)
        assert part.weights.tolist() == np.argsort(task.targets)[where].tolist()
        assert part.weights.min() > 0


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("cholesky", {"ridge": 1.0}),
        ("spectrum", {}),
        ("cg", {"ridge": 1.0, "method": "cg"}),
        ("psvm", {"ridge": 1.0, "bias": "regularised"}),
        ("pruned ls-svm", {"ridge": 1.0, "bias": True, "prune": 0.2}),
        ("rectangle", {"ridge": 1.0, "approximation": "rectangle", "centres": 40}),
        ("rectangle", {"approximation": "rectangle", "centres": 40}),
        ("nystrom", {"ridge": 1.0, "approximation": "nystrom", "centres": 40}),
        ("subset", {"ridge": 1.0, "approximation": "subset", "centres": 40}),
        ("falkon", {"ridge": 1.0, "approximation": "falkon", "centres": 40}),
        ("bagging", {"ridge": 1.0, "approximation": "bagging", "centres": 40}),
        ("primal", {"kernel": LINEAR}),
        ("primal", {"kernel": LINEAR, "ridge": 1.0, "sparse": True}),
        ("dual", {"kernel": LINEAR, "ridge": 1.0, "n": 20, "d": 60}),
        ("linear cg", {"kernel": LINEAR, "ridge": 1.0, "method": "cg"}),
    ],
)
@pytest.mark.parametrize("machine", ["rls", "rlsc"])
def test_the_method_is_that_of_the_training(machine, method, options):
    task = task_of(machine=machine, **options)
    found = forecast(task)
    assert found.method == method
    assert found.total is not None
    assert 0 < found.total < 20
    assert found.peak_bytes > sum(found.arrays.values()) > 0
    assert found.is_certain == PLANS[method].is_certain
    assert all(count > 0 for count in found.flops.values())
    trained = task.machine.train(task).info["method"]
    assert trained == {"linear cg": "cg"}.get(method, trained)
    if method not in ("linear cg", "primal", "dual"):
        assert trained == method


@pytest.mark.parametrize("little", [0.0, np.inf], ids=["dear", "cheap"])
def test_leave_one_out_is_forecast_where_training_computes_it(little, monkeypatch):
    monkeypatch.setattr(rectangle_cost, "LITTLE", little)
    options = {"approximation": "rectangle", "centres": 40, "machine": "rls"}
    for more, is_computed in (
        ({"ridge": 1.0}, little > 0),
        ({"ridge": 1.0, "loo": "always"}, True),
        ({"ridge": 1.0, "loo": "never"}, False),
        ({}, True),
    ):
        task = task_of(**options, **more)
        found = forecast(task)
        assert ("leave_one_out" in found.flops) == is_computed
        assert ("leave_one_out" in found.seconds) == is_computed
        assert ("loo_mse" in task.machine.train(task).info) == is_computed
    with pytest.raises(SettingsError, match="nothing to choose the ridge by"):
        forecast(task_of(**options, loo="never"))


def test_what_leave_one_out_costs_beside_training():
    """Counts by hand: 2nrd + 2nr² + 2nrt against 2r²d + r³ + 2nrd + nr²."""
    sizes = rectangle_cost.RectangleSizes(n=1000.0, d=3.0, m=10.0, r=10.0, t=2.0)
    assert rectangle_cost.left_out_operations(sizes) == 60_000 + 200_000 + 40_000
    training = rectangle_cost.training_operations(sizes, whitens=False)
    assert sum(training.values()) == pytest.approx(2 * 300 + 1000 + 60_000 + 100_000)
    assert rectangle_cost.is_left_out_cheap(sizes)  # little to do
    digits = rectangle_cost.RectangleSizes(60_000.0, 784.0, 5000.0, 5000.0, 10.0)
    assert not rectangle_cost.is_left_out_cheap(digits)
    for rows, is_cheap in ((4900.0, True), (5500.0, False)):  # 2nr² against (n + r)r²
        sizes = rectangle_cost.RectangleSizes(rows, 20.0, 5000.0, 5000.0, 1.0)
        assert rectangle_cost.is_left_out_cheap(sizes) == is_cheap


def test_zeros_in_the_code():
    found = forecast(task_of(machine="rlsc", ridge=1.0, multiclass="ava"))
    assert found.method == "cholesky"
    assert found.total is not None


@pytest.mark.parametrize("machine", ["svc", "svr", "knn", "centroid"])
def test_others_have_memory_and_comparable_seconds(machine):
    found = forecast(task_of(machine=machine))
    assert found.total is None
    assert not found.is_certain
    assert found.hints["all kernel values once"] > 0
    assert found.peak_bytes > 0


def test_memory_of_the_matrix():
    task = task_of(n=500, ridge=1.0)
    arrays = forecast(task).arrays
    assert arrays["kernel matrix"] == pytest.approx(8 * 500 * 532, rel=0.6)
    large = PLANS["cholesky"].arrays({"n": 20000.0, "t": 1.0})
    assert large["kernel matrix"] == pytest.approx(8 * 20000**2, rel=0.05)


def test_what_training_refuses():
    with pytest.raises(SettingsError, match="both set the ridge"):
        forecast(task_of(ridge=1.0, lam=1.0))
