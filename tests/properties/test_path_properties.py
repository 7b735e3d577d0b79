"""Every path on small data with ties: integers on a grid, weights, contradictions, low rank.

The solution at breakpoints and between them satisfies the conditions of its machine, computed from
scratch; cold solves find the same function; neither the direction, the order of the rows nor the
names of the classes changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kfu
from kfu import KernelSpec
from tests.oracles import path_machines
from tests.oracles.kernels import linear, poly, rbf

KKT = 1e-8
AGREEMENT = 1e-6
MOST_STEPS = 1000  # many times what these paths have
KERNELS: dict[str, dict[str, float]] = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.5},
}
MATRICES = {"linear": linear, "poly": poly, "rbf": rbf}
# machine, parameter, options
PATHS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "svc": ("svc", "lambda", {}),
    "svc-without-bias": ("svc", "lambda", {"bias": False}),
    "nu-svc": ("nu-svc", "nu", {}),
    "one-class": ("one-class", "nu", {}),
    "svr-lambda": ("svr", "lambda", {"epsilon": 0.5}),
    "svr-lambda-without-bias": ("svr", "lambda", {"epsilon": 0.5, "bias": False}),
    "svr-epsilon": ("svr", "epsilon", {"cost": 0.7}),
}


@dataclass
class Case:
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    kernel: str
    path: str
    seed: int

    K: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.K = MATRICES[self.kernel](self.X, self.X, **KERNELS[self.kernel])

    def follow(self, order=None, sign: float = 1.0, **span: Any) -> kfu.RegularisationPath:
        machine, parameter, options = PATHS[self.path]
        order = np.arange(len(self.y)) if order is None else order
        spec = KernelSpec.make(self.kernel, **KERNELS[self.kernel])
        return kfu.svm_path(
            self.X[order],
            None if machine == "one-class" else sign * self.y[order],
            machine=machine,
            parameter=parameter,
            kernel=spec,
            sample_weight=self.w[order],
            threads=1,
            max_steps=MOST_STEPS,
            **options,
            **span,
        )

    def program(self, value: float) -> path_machines.Program:
        machine, parameter, options = PATHS[self.path]
        return path_machines.MACHINES[machine, parameter](self.y, self.w, value, **options)

    def outputs(self, path: kfu.RegularisationPath, value: float, order=None) -> np.ndarray:
        """Kβ in units of f, by row of the case."""
        beta, _ = path.solution(value)
        if order is not None:
            back = np.empty_like(beta)
            back[order] = beta
            beta = back
        return self.K @ beta / self.program(value).unit

    def values(self, path: kfu.RegularisationPath, count: int) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        low = max(path.low, 1e-4 * path.high)
        return np.exp(rng.uniform(np.log(low), np.log(path.high), count))


@st.composite
def cases(draw: Any, path: str) -> Case:
    n = draw(st.integers(3, 24))
    d = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(2, 5)), size=(n, d)).astype(float)
    if PATHS[path][0] == "svr":
        y = rng.integers(-3, 4, size=n).astype(float)
        y[:2] = [0.0, 2.0]
    else:
        y = np.where(rng.uniform(size=n) < draw(st.sampled_from([0.1, 0.5])), 1.0, -1.0)
        y[:2] = [1.0, -1.0]
    kind = draw(st.sampled_from(["equal", "integers", "any"]))
    w = np.ones(n)
    if kind == "integers":
        w = rng.integers(0, 3, size=n).astype(float)
    elif kind == "any":
        w = rng.uniform(0.2, 3.0, size=n)
    w[:2] = np.maximum(w[:2], 1.0)
    kernel = draw(st.sampled_from(sorted(KERNELS)))
    return Case(X, y, w, kernel, path, draw(st.integers(0, 1000)))


def places(path: kfu.RegularisationPath) -> np.ndarray:
    values = path.track.t
    return np.concatenate([values, 0.5 * (values[1:] + values[:-1])])


def scale_of(outputs: np.ndarray) -> float:
    return max(1.0, float(np.abs(outputs).max()))


@pytest.mark.parametrize("name", PATHS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_conditions_and_cold_solves(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    path = case.follow()
    assert path.is_finished, path.status
    for value in places(path):
        beta, theta = path.solution(value)
        residual = path_machines.violation(case.program(value), case.K, beta, theta)
        assert residual <= KKT, value
    for value in case.values(path, 2):
        expected = path_machines.cold(case.program(value), case.K)
        np.testing.assert_allclose(
            case.outputs(path, value), expected, rtol=0, atol=AGREEMENT * scale_of(expected)
        )


@pytest.mark.parametrize("name", PATHS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_upward_and_in_another_order(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    down = case.follow()
    assume(down.low < 0.5 * down.high)
    low, high = max(1.5 * down.low, 1e-4 * down.high), 0.9 * down.high
    assume(low < 0.9 * high)
    up = case.follow(low=low, high=high, upward=True)
    assert up.is_finished, up.status
    order = np.random.default_rng(case.seed).permutation(len(case.y))
    mixed = case.follow(order)
    for value in case.values(up, 6):
        expected = case.outputs(down, value)
        atol = AGREEMENT * scale_of(expected)
        np.testing.assert_allclose(case.outputs(up, value), expected, rtol=0, atol=atol)
        if mixed.low <= value <= mixed.high:
            found = case.outputs(mixed, value, order)
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(mixed.high, down.high, rtol=1e-7)


@pytest.mark.parametrize("name", ["svc", "svc-without-bias", "nu-svc", "svr-lambda"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_other_sign_of_the_labels_is_the_other_sign_of_f(
    name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name))
    path, flipped = case.follow(), case.follow(sign=-1.0)
    np.testing.assert_allclose(flipped.high, path.high, rtol=1e-7)
    for value in case.values(path, 6):
        if not flipped.low <= value <= flipped.high:
            continue
        expected = case.outputs(path, value)
        found = -case.outputs(flipped, value)
        atol = AGREEMENT * scale_of(expected)
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
