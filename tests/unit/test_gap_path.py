"""The ε-path: what it promises for every cost, recomputed from scratch."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.errors import DataError, SettingsError
from kfu.io import read_dataset
from kfu.kernels import KernelSpec
from kfu.machines import train
from kfu.paths import gap_start
from kfu.paths.gap_path import follow_gap
from kfu.paths.sloped_loss import SlopedLoss
from kfu.solvers import SolverSettings
from tests.oracles.gap_path import least_loss, rbf_matrix, spread, svc_values, svr_values

GAMMA = 0.5
RBF = KernelSpec.make("rbf", gamma=GAMMA)
ROUNDING = 1e-9


def blobs(n=120, seed=0, distance=1.0, d=3):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = rng.normal(size=(n, d)) + distance * y[:, None] * np.array([1.0, *[0.3] * (d - 1)])
    return X, y


def random_costs(path, seed=1, count=25):
    low, high = path.covered
    inside = np.exp(np.random.default_rng(seed).uniform(np.log(low), np.log(high), count))
    return [low, high, *path.costs, *np.clip(inside, low, high)]


def check_svc(path, X, y, weights, K=None, has_bias=True):
    """Every model of the path keeps its promise, by values computed from scratch."""
    K = rbf_matrix(X, X, GAMMA) if K is None else K
    for cost in random_costs(path):
        model = path.at(cost)
        beta, bias = spread(model, len(y)), float(model.bias[0])
        primal, dual = svc_values(K, y, weights, cost, beta, bias)
        if has_bias:
            assert abs(beta.sum()) <= 1e-9 * max(np.abs(beta).sum(), 1.0)
        else:
            assert bias == 0.0
        promised = path.gap_at(cost)
        assert (primal - dual) / primal <= promised + ROUNDING
        assert promised <= path.gap + ROUNDING
        assert promised <= path.worst_gap + ROUNDING
        assert model.info["relative_gap"] == promised
        assert model.info["objective"] <= dual * (1 + ROUNDING) + ROUNDING


@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-4])
def test_gap_holds_everywhere(gap):
    X, y = blobs()
    path = follow_gap(X, y, RBF, gap=gap)
    assert path.status == "done"
    assert path.covered == (1e-2, 1e2)
    check_svc(path, X, y, np.ones(len(y)))


def test_promise_is_not_empty():
    """Between breakpoints the bound is near the gap itself, not merely above it."""
    X, y = blobs()
    path = follow_gap(X, y, RBF, gap=1e-2)
    K, ones = rbf_matrix(X, X, GAMMA), np.ones(len(y))
    for cost in random_costs(path):
        model = path.at(cost)
        beta = spread(model, len(y))
        primal, dual = svc_values(K, y, ones, cost, beta, float(model.bias[0]))
        assert path.gap_at(cost) <= (primal - dual) / primal + 3e-3


def test_no_holes_and_one_segment_between_neighbours():
    X, y = blobs(seed=3)
    path = follow_gap(X, y, RBF, gap=3e-3, cost_range=(1e-3, 1e3))
    assert np.all(np.diff(path.costs) > 0)
    assert len(path.segments) == len(path) - 1
    for k, segment in enumerate(path.segments):
        assert segment.low is path.points[k]
        assert segment.high is path.points[k + 1]
        assert segment.worst <= path.gap
    assert path.worst_gap == max(s.worst for s in path.segments)


def test_worst_of_a_segment_is_its_largest_value():
    X, y = blobs(seed=4)
    for segment in follow_gap(X, y, RBF, gap=5e-2).segments:
        sampled = max(segment.judge(mu).relative for mu in np.linspace(0, 1, 2001))
        assert sampled <= segment.worst * (1 + 1e-9)
        assert segment.worst <= sampled * (1 + 1e-4)


def test_fewer_breakpoints_for_a_larger_gap():
    X, y = blobs(n=200, seed=5)
    counts = [len(follow_gap(X, y, RBF, gap=gap)) for gap in (1e-1, 1e-2, 1e-3)]
    assert counts[0] < counts[1] < counts[2]
    assert counts[2] <= 12 * counts[1]  # 1/√gap, not 1/gap


def test_agrees_with_training():
    """The optimal value lies between the dual and the primal of the path's model."""
    X, y = blobs(seed=6)
    path = follow_gap(X, y, RBF, gap=1e-3)
    for cost in (0.02, 0.7, 33.0):
        model, exact = path.at(cost), train(X, y, kernel=RBF, cost=cost)
        primal = model.info["objective"] + model.info["duality_gap"]
        slack = exact.info["duality_gap"] + 1e-9
        assert model.info["objective"] <= exact.info["objective"] + slack
        assert primal >= exact.info["objective"] - 1e-9
        assert primal <= exact.info["objective"] / (1 - 1e-3) + slack


def test_warm_is_as_good_as_cold():
    """A breakpoint reached from its neighbours is one solved on its own, within both gaps."""
    X, y = blobs(seed=7)
    path = follow_gap(X, y, RBF, gap=1e-3)
    for point in path.points:
        cold = follow_gap(X, y, RBF, gap=1e-3, cost_range=(point.cost, point.cost)).points[0]
        assert cold.cost == point.cost
        assert max(cold.objective, point.objective) <= min(cold.primal, point.primal) * (1 + 1e-9)


def test_weights_of_rows_and_classes():
    X, y = blobs(seed=8)
    rows = np.random.default_rng(8).choice([0.0, 0.5, 1.0, 3.0], len(y))
    rows[:2] = 1.0
    path = follow_gap(X, y, RBF, sample_weight=rows, class_weight={1.0: 4.0}, gap=1e-2)
    check_svc(path, X, y, rows * np.where(y > 0, 4.0, 1.0))


def test_without_bias():
    X, y = blobs(seed=9)
    path = follow_gap(X, y, RBF, bias=False)
    check_svc(path, X, y, np.ones(len(y)), has_bias=False)


def test_regularised_bias():
    X, y = blobs(seed=10)
    path = follow_gap(X, y, RBF, bias="regularised", cost_range=(0.1, 10.0))
    K = rbf_matrix(X, X, GAMMA)
    for cost in random_costs(path, count=5):
        model = path.at(cost)
        beta = spread(model, len(y))
        assert model.bias[0] == pytest.approx(beta.sum(), abs=1e-12)
        primal, dual = svc_values(K + 1.0, y, np.ones(len(y)), cost, beta, 0.0)
        assert (primal - dual) / primal <= path.gap_at(cost) + ROUNDING


@pytest.mark.parametrize("name", ["linear", "precomputed", "poly"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_kernels(name, is_sparse):
    X, y = blobs(n=60, seed=11)
    K = X @ X.T if name != "poly" else (0.5 * X @ X.T + 1.0) ** 2
    kernel = KernelSpec.make(
        name, **({"degree": 2, "gamma": 0.5, "coef0": 1.0} if name == "poly" else {})
    )
    data = K if name == "precomputed" else X
    path = follow_gap(sp.csr_matrix(data) if is_sparse else data, y, kernel, cost_range=(0.01, 1.0))
    check_svc(path, X, y, np.ones(len(y)), K=K)


def test_large_linear_problem_takes_the_linear_solver():
    X, y = blobs(n=700, seed=12, distance=0.7)
    path = follow_gap(X, y, KernelSpec.make("linear"), cost_range=(0.01, 1.0))
    check_svc(path, X, y, np.ones(len(y)), K=X @ X.T)


def test_separable_data_stay_at_the_hard_margin():
    X, y = blobs(n=60, seed=13, distance=6.0)
    path = follow_gap(X, y, KernelSpec.make("linear"), cost_range=(1.0, 1e6), gap=1e-3)
    check_svc(path, X, y, np.ones(len(y)), K=X @ X.T)
    assert len(path) <= 12
    assert path.points[-1].loss <= 1e-2
    assert path.at(1e6).info["objective"] == pytest.approx(path.at(1e5).info["objective"], rel=2e-3)


@pytest.mark.parametrize("has_bias", [True, False])
def test_svr(has_bias):
    rng = np.random.default_rng(14)
    X = rng.uniform(-2, 2, (90, 2))
    y = 10.0 * np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=90)
    weights = rng.choice([0.0, 1.0, 2.0], 90)
    path = follow_gap(
        X, y, RBF, machine="svr", epsilon=0.5, bias=has_bias, sample_weight=weights, gap=5e-3
    )
    assert path.status == "done"
    K = rbf_matrix(X, X, GAMMA)
    for cost in random_costs(path):
        model = path.at(cost)
        beta, bias = spread(model, 90), float(model.bias[0])
        primal, dual = svr_values(K, y, weights, cost, 0.5, beta, bias)
        assert (primal - dual) / primal <= path.gap_at(cost) + ROUNDING <= path.gap + 2 * ROUNDING
        assert has_bias or bias == 0.0
        assert model.predict(X) == pytest.approx(K @ beta + bias, abs=1e-8)


def test_svr_with_a_tube_that_holds_everything():
    X, y = blobs(n=20, seed=15)
    path = follow_gap(X, y, RBF, machine="svr", epsilon=2.0)
    assert path.status == "done"
    assert path.worst_gap == 0.0
    assert path.at(1.0).n_sv == 0


def test_one_point():
    X, y = blobs(seed=16)
    path = follow_gap(X, y, RBF, cost_range=(2.0, 2.0))
    assert path.costs.tolist() == [2.0]
    assert path.worst_gap == path.points[0].gap <= 1e-2
    check_svc(path, X, y, np.ones(len(y)))
    with pytest.raises(SettingsError, match="C = 3 is not on the path"):
        path.at(3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_range": (10.0, 1.0)}, "empty"),
        ({"cost_range": (0.0, 1.0)}, "greater than 0"),
        ({"cost_range": (1.0, np.inf)}, "finite"),
        ({"cost_range": (1.0,)}, "two numbers"),
        ({"gap": 0.0}, "between 0 and 1"),
        ({"gap": 1.5}, "between 0 and 1"),
        ({"gap": "small"}, "between 0 and 1"),
        ({"machine": "nu-svc"}, "no gap path"),
        ({"max_steps": -1}, "max_steps"),
    ],
)
def test_bad_settings(options, message):
    X, y = blobs(n=10)
    with pytest.raises(SettingsError, match=message):
        follow_gap(X, y, RBF, **options)


def test_bad_labels():
    X, y = blobs(n=12)
    with pytest.raises(DataError, match="3 classes"):
        follow_gap(X, np.arange(12) % 3, RBF)
    with pytest.raises(DataError, match="only one class"):
        follow_gap(X, np.ones(12), RBF)
    with pytest.raises(DataError, match="no row has a positive weight"):
        follow_gap(X, y, RBF, machine="svr", sample_weight=np.zeros(12))


def test_duplicates_and_constant_rows():
    X, y = blobs(n=30, seed=17)
    twice, labels = np.vstack([X, X, X[:5]]), np.concatenate([y, y, -y[:5]])
    path = follow_gap(twice, labels, RBF, gap=1e-3)
    check_svc(path, twice, labels, np.ones(len(labels)))
    same = np.ones((6, 2))
    signs = np.array([1.0, -1.0, 1.0, -1.0, -1.0, -1.0])
    check_svc(follow_gap(same, signs, RBF), same, signs, np.ones(6))


def test_two_rows():
    X, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    path = follow_gap(X, y, RBF)
    check_svc(path, X, y, np.ones(2))


# ---- columns, errors, labels ---------------------------------------------------------------------


def test_records_and_errors():
    X, y = blobs(n=150, seed=18)
    names = np.where(y > 0, "yes", "no")
    X_valid, y_valid = blobs(n=70, seed=19)
    valid = np.where(y_valid > 0, "yes", "no")
    valid[3] = "maybe"  # a class that the path does not know: always wrong
    path = follow_gap(X, names, RBF, X_valid=X_valid, y_valid=valid)
    rows = list(path.records())
    assert [row["step"] for row in rows] == list(range(len(path)))
    for row, point in zip(rows, path.points, strict=True):
        model = path.at(row["C"])
        assert row["lambda"] == 1.0 / row["C"]
        assert (row["event"], row["items"]) == ("solve", [])
        beta = y * spread(model, len(y))
        at_bound = beta >= row["C"] * (1 - 1e-12)
        assert row["n_error"] == np.count_nonzero(at_bound)
        assert row["n_margin"] == np.count_nonzero((beta > 0) & ~at_bound)
        assert row["n_correct"] == np.count_nonzero(beta == 0)
        assert row["bias"] == model.bias[0]
        assert row["gap"] == point.gap
        f = rbf_matrix(X, X, GAMMA) @ (y * beta) + row["bias"]
        wrong = np.maximum(np.where(beta < row["C"], 1 - y * f, 0.0).max(), 0.0)
        wrong = max(wrong, np.where(beta > 0, y * f - 1, 0.0).max())
        assert row["kkt"] == pytest.approx(wrong, abs=1e-8)
        assert row["train_error"] == np.mean(model.predict(X) != names)
        assert row["valid_error"] == np.mean(model.predict(X_valid) != valid)
    assert next(iter(follow_gap(X, names, RBF).records()))["valid_error"] is None


def test_at_takes_lambda_and_one_value():
    X, y = blobs(n=40)
    path = follow_gap(X, y, RBF)
    assert path.at(lam=0.5).bias == path.at(2.0).bias == path.at(C=2.0).bias
    assert path.at(2.0).settings["cost"] == 2.0
    for wrong in ({}, {"C": 1.0, "lam": 1.0}, {"C": -1.0}, {"C": np.nan}):
        with pytest.raises(SettingsError):
            path.at(**wrong)


def test_scaler_goes_into_the_models():
    from kfu.scale import Scaler

    X, y = blobs(n=60, seed=20)
    scaler = Scaler.fit(X, "standard")
    path = follow_gap(scaler.transform(X), y, RBF, scaler=scaler, X_valid=X, y_valid=y)
    rows = list(path.records())
    assert [row["valid_error"] for row in rows] == [row["train_error"] for row in rows]
    assert np.mean(path.at(1e2).predict(X) != y) == rows[-1]["train_error"]


# ---- ends before the end -------------------------------------------------------------------------


def test_stopped_paths_keep_what_is_proved():
    X, y = blobs(n=80, seed=21)
    whole = follow_gap(X, y, RBF, gap=1e-3)
    seen = []
    for options, status in (
        ({"max_steps": 4}, "max_steps"),
        ({"progress": lambda point, k: seen.append(point.cost) or k >= 4}, "interrupted"),
    ):
        path = follow_gap(X, y, RBF, gap=1e-3, **options)
        assert path.status == status
        assert not path.is_finished
        assert 2 <= len(path) < len(whole)
        check_svc(path, X, y, np.ones(len(y)))
        with pytest.raises(SettingsError, match="stopped early"):
            path.at(1e-2)
    assert seen[0] == pytest.approx(1.0)


def test_solver_that_does_not_get_there():
    """The range is covered, with the gap that was reached, and the status says so."""
    X, y = blobs(n=200, seed=22)
    path = follow_gap(X, y, RBF, gap=1e-3, settings=SolverSettings(max_iterations=20))
    assert path.status == "stalled"
    assert path.covered == (1e-2, 1e2)
    assert path.worst_gap > path.gap
    K, ones = rbf_matrix(X, X, GAMMA), np.ones(len(y))
    for cost in random_costs(path):
        model = path.at(cost)
        values = svc_values(K, y, ones, cost, spread(model, len(y)), float(model.bias[0]))
        assert (values[0] - values[1]) / values[0] <= path.gap_at(cost) + ROUNDING


def test_no_time_at_all():
    X, y = blobs(n=80, seed=21)
    with pytest.raises(KeyboardInterrupt):
        follow_gap(X, y, RBF, settings=SolverSettings(max_seconds=1e-9))


def test_sparse_rows_of_real_data():
    folder = os.environ.get("KFU_DATA")
    if not folder:
        pytest.skip("KFU_DATA names no folder with a1a")
    data = read_dataset(os.path.join(folder, "a1a.tr.gz"))
    path = follow_gap(data.X, data.y, KernelSpec.make("rbf", gamma=GAMMA / 10), gap=1e-2)
    assert path.status == "done"
    assert len(path) <= 20
    dense = data.X.toarray()
    squares = (dense**2).sum(axis=1)
    K = np.exp(-GAMMA / 10 * (squares[:, None] + squares - 2 * dense @ dense.T))
    check_svc(path, dense, data.y, np.ones(len(data.y)), K=K)


# ---- the first start of many rows ----------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
def test_start_from_a_sample_ends_where_others_do(monkeypatch, bias):
    X, y = blobs(n=400, seed=23)
    weights = np.random.default_rng(23).choice([0.0, 1.0, 2.0], 400)
    options = {"sample_weight": weights, "bias": bias, "gap": 1e-3}
    plain = follow_gap(X, y, RBF, **options)
    monkeypatch.setattr(gap_start, "LEAST_ROWS", 100)
    path = follow_gap(X, y, RBF, **options)
    check_svc(path, X, y, weights, has_bias=bias)
    assert path.tally.moved_rows != plain.tally.moved_rows  # it was taken
    low, high = path.at(1.0).info, plain.at(1.0).info
    assert low["objective"] <= high["objective"] + high["duality_gap"] + 1e-9
    assert high["objective"] <= low["objective"] + low["duality_gap"] + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 15), st.integers(0, 10**6))
def test_carried_over_is_feasible(n, seed):
    rng = np.random.default_rng(seed)
    loss = SlopedLoss.hinge(rng.choice([-1.0, 1.0], n), rng.choice([0.0, 1.0, 2.5], n))
    outputs = rng.integers(-2, 3, n).astype(float)
    beta = gap_start.carried_over(loss, 3.0, outputs + loss.best_bias(outputs), True)
    lower, upper = loss.box(3.0)
    assert abs(beta.sum()) <= 1e-12
    assert np.all((beta >= lower) & (beta <= upper))


# ---- the loss ------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_best_bias(n, seed, is_tube):
    rng = np.random.default_rng(seed)
    outputs = rng.integers(-2, 3, n).astype(float)
    weights = rng.choice([0.0, 1.0, 2.5], n)
    if is_tube:
        loss = SlopedLoss.tube(rng.integers(-3, 4, n).astype(float), weights, 0.5)
    else:
        loss = SlopedLoss.hinge(rng.choice([-1.0, 1.0], n), weights)
    rest = loss.y - outputs
    knots = np.concatenate([rest - loss.epsilon, rest + loss.epsilon])
    least = least_loss(lambda b: loss.value(outputs + b), knots)
    assert loss.value(outputs + loss.best_bias(outputs)) <= least + 1e-12


@settings(max_examples=15, deadline=None)
@given(st.integers(4, 14), st.integers(0, 10**6))
def test_small_problems_with_ties(n, seed):
    """Integers on a grid: equal rows of both classes, degenerate margins."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float)
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = 1.0, -1.0
    weights = rng.choice([0.5, 1.0, 2.0], n)
    path = follow_gap(X, y, RBF, sample_weight=weights, gap=2e-3)
    assert path.status == "done"
    check_svc(path, X, y, weights)
