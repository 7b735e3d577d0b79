"""What must not change any SVM machine: order, layout, cache, precision, start, weights as copies.

And the ν-property, the sides of labels, and codes whose machines are trained in other ways.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu import KernelSpec, train
from kfu.errors import DataError
from kfu.machines import coded
from kfu.solvers import SOLVERS, SolverSettings

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.7},
    "laplacian": {"gamma": 0.4},
}
TOLERANCE = 1e-6
NUMBERS = ("svr", "nu-svr")
NUS = ("nu-svc", "one-class", "nu-svr")
MACHINES = ("svc", "svc2", *NUS, "svr")
LABELLED = ("svc", "svc2", "nu-svc")

machines = pytest.mark.parametrize("machine", MACHINES)


@st.composite
def problems(draw):
    """Rows that may repeat, labels that may contradict, numbers, a kernel, C, ν and ε."""
    n = draw(st.integers(8, 50))
    d = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.round(rng.normal(size=(n, d)), draw(st.sampled_from([0, 1, 6])))
    X[rng.uniform(size=X.shape) < draw(st.sampled_from([0.0, 0.6]))] = 0.0
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    y[:4] = [1.0, -1.0, 1.0, -1.0]
    t = 2.0 * X[:, 0] + np.abs(X[:, -1]) + 0.3 * rng.normal(size=n)
    name = draw(st.sampled_from(sorted(KERNELS)))
    return {
        "X": X,
        "y": y,
        "t": t,
        "kernel": KernelSpec.make(name, **KERNELS[name]),
        "cost": draw(st.sampled_from([0.1, 1.0, 10.0])),
        "nu": draw(st.sampled_from([0.1, 0.25, 0.5])),
        "epsilon": draw(st.sampled_from([0.0, 0.2])),
    }


def fit(machine, problem, *, rows=None, start=None, weights=None, **changes):
    """The machine of the problem, or of some of its rows, with settings among the changes."""
    facts = {**problem, **{k: changes.pop(k) for k in list(changes) if k in problem}}
    X, y, t = facts["X"], facts["y"], facts["t"]
    if rows is not None:
        X, y, t = X[rows], y[rows], t[rows]
    options = {"nu": facts["nu"]} if machine in NUS else {}
    if machine == "svr":
        options["epsilon"] = facts["epsilon"]
    if machine in ("svc", "svc2", "svr", "nu-svr"):
        options["cost"] = facts["cost"]
    asked = {"tolerance": TOLERANCE, "threads": 1, **changes}
    return train(
        X,
        None if machine == "one-class" else t if machine in NUMBERS else y,
        machine=machine,
        kernel=facts["kernel"],
        sample_weight=weights,
        start=start,
        settings=SolverSettings(**asked),
        **options,
    )


def fitted(machine, problem, **changes):
    """`fit`, or None where ν is not feasible for the classes (told by a DataError)."""
    try:
        return fit(machine, problem, **changes)
    except DataError as error:
        assert "is not feasible" in str(error)  # noqa: PT017
        return None


def diagonal(model, X):
    from kfu._gram import Gram

    X = X.toarray() if sp.issparse(X) else X
    return max(1.0, float(Gram(X, model.kernel, precision="float64").diagonal().max()))


def assert_same(a, b, X, *, sign=1.0):
    """Equal objectives within the duality gaps, and equal functions as far as those tell them."""
    if a is None or b is None:
        assert a is None
        assert b is None
        return
    assert a.info["status"] == b.info["status"] == "converged"
    gaps = a.info["duality_gap"] + b.info["duality_gap"]
    # ν-SVC is divided by its margin, which the tolerance leaves known to this part.
    part = 0.0
    if a.machine == "nu-svc":
        if min(a.info["margin"], b.info["margin"]) < 1e-3:
            assert max(a.info["margin"], b.info["margin"]) < 1e-3 + 10 * TOLERANCE
            return
        part = 4 * TOLERANCE / a.info["margin"]
    objective = b.info["objective"]
    slack = gaps + (1e-9 + 4 * part) * abs(objective) + 1e-9
    assert a.info["objective"] == pytest.approx(objective, abs=slack)
    fa = a.decision_function(X)[:, 0]
    fb = sign * b.decision_function(X)[:, 0]
    # ½‖w_a − w_b‖² ≤ gap_a + gap_b; the bias up to the tolerance where vectors well inside their
    # boxes fix it, otherwise any of an interval is as good.
    if not (fixes_bias(a) and fixes_bias(b)):
        if a.machine == "nu-svc":  # the margin is as free as the bias
            return
        fa, fb = fa - fa.mean(), fb - fb.mean()
    reach = 4 * np.sqrt(2 * gaps) * np.sqrt(diagonal(a, X))
    largest = np.abs(fb).max()
    assert np.abs(fa - fb).max() <= reach + (4 * TOLERANCE) + part * largest + 1e-6


def fixes_bias(model):
    """Whether each group has a coefficient well inside its box."""
    if model.machine == "svc2":
        return model.n_sv > 0
    scale = model.info["margin"] if model.machine == "nu-svc" else 1.0
    share = model.coef[0] * scale / model.settings.get("cost", 1.0)
    inside = (np.abs(share) > 1e-3) & (np.abs(share) < 1 - 1e-3)
    groups = (share > 0, share < 0) if model.machine in ("nu-svc", "nu-svr") else (share != 0,)
    return all(np.any(inside & group) for group in groups)


@machines
@given(problem=problems(), random=st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_the_order_of_rows(machine, problem, random):
    order = list(range(len(problem["y"])))
    random.shuffle(order)
    assert_same(fitted(machine, problem), fitted(machine, problem, rows=order), problem["X"])


@machines
@given(problem=problems())
@settings(max_examples=12, deadline=None)
def test_flipping_the_labels_flips_the_sign(machine, problem):
    if machine == "one-class":
        return
    flipped = fitted(machine, problem, y=-problem["y"], t=-problem["t"])
    assert_same(fitted(machine, problem), flipped, problem["X"], sign=-1.0)


@machines
@given(problem=problems())
@settings(max_examples=12, deadline=None)
def test_dense_equals_csr(machine, problem):
    sparse = fitted(machine, problem, X=sp.csr_matrix(problem["X"]))
    assert_same(fitted(machine, problem), sparse, problem["X"])


@machines
@given(problem=problems())
@settings(max_examples=12, deadline=None)
def test_float32_rows_equal_float64_rows(machine, problem):
    a = fitted(machine, problem, precision="float32")
    assert_same(a, fitted(machine, problem, precision="float64"), problem["X"])


@machines
@given(
    problem=problems(),
    chunk=st.integers(2, 60),
    rows=st.integers(0, 60),
    solver=st.sampled_from(sorted(SOLVERS)),
)
@settings(max_examples=20, deadline=None)
def test_any_solver_chunk_and_cache(machine, problem, chunk, rows, solver):
    mib = rows * len(problem["y"]) * 4 / 2**20
    b = fitted(machine, problem, chunk=chunk, cache_mib=mib, solver=solver)
    assert_same(fitted(machine, problem), b, problem["X"])


@machines
@given(problem=problems(), factor=st.floats(0.2, 5.0))
@settings(max_examples=12, deadline=None)
def test_warm_equals_cold(machine, problem, factor):
    nu = min(1.0, problem["nu"] * factor)
    elsewhere = fitted(machine, problem, cost=problem["cost"] * factor, nu=nu)
    warm = fitted(machine, problem, start=elsewhere)
    assert_same(fitted(machine, problem), warm, problem["X"])


@machines
@given(problem=problems(), times=st.integers(1, 3), row=st.integers(0, 7))
@settings(max_examples=12, deadline=None)
def test_an_integer_weight_is_a_repeated_row(machine, problem, times, row):
    n = len(problem["y"])
    weights = np.ones(n)
    weights[row] = times + 1
    rows = np.concatenate([np.arange(n), np.full(times, row)])
    weighed = fitted(machine, problem, weights=weights)
    assert_same(weighed, fitted(machine, problem, rows=rows), problem["X"])


@machines
@given(problem=problems())
@settings(max_examples=12, deadline=None)
def test_a_row_of_weight_zero_is_not_there(machine, problem):
    n = len(problem["y"])
    weights = np.ones(n)
    weights[-2:] = 0.0
    a = fitted(machine, problem, weights=weights)
    if a is not None:
        assert not np.isin(a.support, [n - 2, n - 1]).any()
    assert_same(a, fitted(machine, problem, rows=np.arange(n - 2)), problem["X"][:-2])


@machines
@given(problem=problems(), scale=st.sampled_from([0.25, 3.0]))
@settings(max_examples=8, deadline=None)
def test_weights_alike_are_a_cost(machine, problem, scale):
    """ν machines know shares only; in the others weight and cost are one product."""
    weights = np.full(len(problem["y"]), scale)
    a = fitted(machine, problem, weights=weights)
    if machine in ("nu-svc", "one-class"):
        b = fitted(machine, problem)
        if a is None or b is None:
            assert a is None
            assert b is None
        elif machine == "one-class":
            assert a.info["objective"] == pytest.approx(
                scale**2 * b.info["objective"], rel=1e-4, abs=1e-4
            )
        else:
            assert a.info["margin"] == pytest.approx(scale * b.info["margin"], rel=1e-3, abs=1e-4)
        return
    assert_same(a, fitted(machine, problem, cost=problem["cost"] * scale), problem["X"])


@pytest.mark.parametrize("machine", NUS)
@given(problem=problems(), weighed=st.booleans())
@settings(max_examples=20, deadline=None)
def test_nu_bounds_margin_errors_from_above_and_support_vectors_from_below(
    machine, problem, weighed
):
    n = len(problem["y"])
    weights = np.random.default_rng(n).uniform(0.5, 2.0, size=n) if weighed else np.ones(n)
    model = fitted(machine, problem, weights=weights)
    if model is None:
        return
    f, margin = model.decision_function(problem["X"])[:, 0], model.info["margin"]
    if machine == "nu-svc":
        if margin < 1e-3:
            return
        beyond, slack = 1.0 - problem["y"] * f, 20 * TOLERANCE / margin
    elif machine == "one-class":
        beyond, slack = -f, 20 * TOLERANCE
    else:
        beyond, slack = np.abs(f - problem["t"]) - margin, 20 * TOLERANCE
    share = problem["nu"] * weights.sum()
    assert weights[beyond > slack].sum() <= share * (1 + 1e-9)
    is_vector = np.zeros(n, dtype=bool)
    is_vector[model.support] = True
    # Of regression, α and α* of a row may cancel; points on the tube count as its vectors.
    is_vector |= np.abs(beyond) <= slack
    assert weights[is_vector].sum() >= share * (1 - 1e-9)


# ---- codes ---------------------------------------------------------------------------------------


def classes(n=160, d=4, k=4):
    rng = np.random.default_rng(3)
    y = rng.integers(k, size=n).astype(float)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(k, d))[y.astype(int)], y


@pytest.mark.parametrize("code", ["ava", "ova", "sparse", "dense"])
@pytest.mark.parametrize("machine", LABELLED)
def test_machines_side_by_side_are_those_in_turn(tmp_path, machine, code):
    X, y = classes()
    options = {"nu": 0.1} if machine == "nu-svc" else {"cost": 2.0}
    files = []
    for threads in (1, 2):
        model = train(
            X,
            y,
            machine=machine,
            kernel=KernelSpec.make("rbf", gamma=0.3),
            multiclass=code,
            settings=SolverSettings(tolerance=1e-6, threads=threads),
            **options,
        )
        model.save(tmp_path / f"{threads}.kfu")
        files.append((tmp_path / f"{threads}.kfu").read_bytes())
    assert files[0] == files[1]
    # And each is the binary machine of its column, trained alone.
    for column in range(model.n_machines):
        side = model.code[y.astype(int), column]
        rows = np.flatnonzero(side)
        alone = train(
            X[rows],
            side[rows].astype(float),
            machine=machine,
            kernel=KernelSpec.make("rbf", gamma=0.3),
            settings=SolverSettings(tolerance=1e-6, threads=1),
            **options,
        )
        f = model.decision_function(X)[:, column]
        np.testing.assert_allclose(f, alone.decision_function(X)[:, 0], atol=1e-3)


@pytest.mark.parametrize("machine", LABELLED)
@pytest.mark.parametrize("cache_mib", [0.05, 64.0])
def test_shared_rows_are_the_rows(machine, cache_mib, monkeypatch):
    """More than a hundred features: values are dear enough to share the rows of one against all."""
    X, y = classes(n=400, d=130)
    X = X / np.sqrt(130)
    options = {"nu": 0.1} if machine == "nu-svc" else {"cost": 2.0}

    def run():
        used = []
        original = coded.CodedTraining.run

        def watched(self):
            found = original(self)
            used.append(self.shares_rows)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(coded.CodedTraining, "run", watched)
            model = train(
                X,
                y,
                machine=machine,
                kernel=KernelSpec.make("rbf", gamma=1.0),
                multiclass="ova",
                settings=SolverSettings(tolerance=1e-6, cache_mib=cache_mib, chunk=50, threads=1),
                **options,
            )
        return model, used[0]

    shared, does_share = run()
    monkeypatch.setattr(coded, "SHARED_VALUE_COST", float("inf"))
    own, does_not = run()
    assert (does_share, does_not) == (True, False)
    assert shared.info["objective"] == pytest.approx(own.info["objective"], rel=1e-6)
    np.testing.assert_allclose(shared.decision_function(X), own.decision_function(X), atol=2e-4)
    if cache_mib > 1.0:
        assert shared.info["kernel_evaluations"] < own.info["kernel_evaluations"]


@pytest.mark.parametrize("machine", MACHINES)
def test_nothing_is_said_on_the_way(machine, capfd):
    X, y = classes(k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {} if machine == "one-class" else {"y": y}
        model = train(X, machine=machine, kernel=KernelSpec.make("rbf", gamma=0.3), **options)
    assert model.info["status"] == "converged"
    assert capfd.readouterr() == ("", "")
