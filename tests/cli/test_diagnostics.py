"""The warnings of kfu.diagnostics: each appears when it should, and not otherwise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.diagnostics import (
    Duplicates,
    FeatureRanges,
    Training,
    data_warnings,
    row_hashes,
    training_warnings,
)
from kfu.kernels import KernelSpec

LAYOUTS = [np.asarray, sp.csr_matrix]
GOOD = Training(
    info={"status": "converged", "n_sv": 40, "n_usv": 12, "warnings": []},
    n=100,
    kernel_name="rbf",
    cost=1.0,
    largest_diagonal=1.0,
)


def changed(**changes) -> Training:
    info = {**GOOD.info, **changes.pop("info", {})}
    return dataclasses.replace(GOOD, info=info, **changes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ranges_count_the_zeros_of_sparse_data(layout):
    ranges = FeatureRanges.of(layout([[1.0, 5.0, 0.0], [2.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(ranges.low, [1, 0, 0])
    np.testing.assert_array_equal(ranges.high, [2, 5, 0])
    np.testing.assert_array_equal(ranges.constant, [2])
    assert ranges.ratio() == (5.0, 1, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_duplicates(layout):
    X = layout([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [2.0, 0.0], [3.0, 3.0]])
    found = Duplicates.of(X, np.array([1.0, 1.0, -1.0, 1.0, 1.0]))
    assert (found.n_repeated, found.n_contradictory, found.example) == (2, 2, (0, 2))
    assert Duplicates.of(X, None).n_repeated == 2
    assert Duplicates.of(X, np.ones(5)).example is None


def test_hashes_do_not_depend_on_explicit_zeros():
    explicit = sp.csr_matrix((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), (1, 3))
    implicit = sp.csr_matrix([[1.0, 0.0, 0.0]])
    assert row_hashes(explicit) == row_hashes(implicit)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_warnings(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.sign(X[:, 0])
    assert data_warnings(layout(X), y, "rbf") == []
    wild = X * [1, 1000, 1]
    (message,) = data_warnings(layout(wild), y, "rbf")
    assert "feature 2 spans" in message
    assert data_warnings(layout(wild), y, "linear") == []
    flat = np.column_stack([X, np.full(50, 3.0)])
    (message,) = data_warnings(layout(flat), y, "linear")
    assert "feature 4 has the same value in every row" in message
    doubled = np.vstack([X, X[:1]])
    (message,) = data_warnings(layout(doubled), np.append(y, -y[0]), "rbf")
    assert "rows 1 and 51" in message


def test_good_training_has_no_warning():
    assert training_warnings(GOOD) == []


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (changed(info={"n_usv": 0}), "its midpoint is used"),
        (changed(info={"n_sv": 97}), "is gamma too large"),
        (changed(info={"n_sv": 97}, kernel_name="linear"), "is C = 1 too small"),
        (changed(kernel=KernelSpec.make("sigmoid", gamma=1.0)), "may be indefinite"),
        (changed(kernel=KernelSpec.make("poly", gamma=1.0, coef0=-1.0)), "may be indefinite"),
        (changed(cost=1e7), "badly conditioned"),
        (changed(cost=100.0, largest_diagonal=1e6), "badly conditioned"),
        (changed(info={"duality_gap": 5.0, "objective": 100.0}), "lower -e"),
        (changed(info={"warnings": ["from the solver"]}), "from the solver"),
    ],
)
def test_training_warnings(training, words):
    (message,) = training_warnings(training)
    assert words in message


@pytest.mark.parametrize("n_sv", [40, 97])
def test_tiny_cost_is_not_blamed_on_gamma(n_sv):
    found = training_warnings(changed(info={"n_sv": n_sv, "n_usv": 0}, cost=1e-9))
    words = " ".join(found)
    assert "C = 1e-09 is so small" in words
    assert "raise -c" in words
    assert "gamma" not in words


def test_both_causes_are_named_when_either_may_be():
    found = training_warnings(changed(info={"n_sv": 97, "n_usv": 0}, cost=1.0))
    assert any("gamma too large, C = 1 too small" in text for text in found)


def test_bias_interval_is_not_reported_of_a_run_that_stopped_early():
    stopped = changed(info={"n_usv": 0, "status": "max_iterations"})
    assert training_warnings(stopped) == []


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "precomputed"])
def test_kernels_that_are_known_or_given_bring_no_warning(name):
    assert training_warnings(changed(kernel=KernelSpec.make(name))) == []


def test_few_rows_may_all_be_support_vectors():
    assert training_warnings(changed(info={"n_sv": 10, "n_usv": 3}, n=10)) == []
