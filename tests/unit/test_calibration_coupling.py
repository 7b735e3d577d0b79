"""Class probabilities from machines' probabilities, and their agreement with labels."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.calibration import coupling
from kfu.calibration.agreement import GAP, agree, disagreement
from kfu.calibration.coupling import bradley_terry, couple_pairs, normalised_ova, pair_matrix
from kfu.pairwise import ovo_code, pairs_of
from tests.oracles import calibration as oracle


def shuffled_pairs(n_classes, rng):
    code = ovo_code(n_classes)
    order = rng.permutation(code.shape[1])
    return code[:, order] * rng.choice([-1, 1], size=code.shape[1])


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
def test_coupling_minimises_the_squares(n_classes):
    rng = np.random.default_rng(n_classes)
    code = shuffled_pairs(n_classes, rng)
    pairs = pairs_of(code)
    r = rng.uniform(0.02, 0.98, size=(12, code.shape[1]))
    p = couple_pairs(r, pairs, n_classes)
    for row, R in zip(p, pair_matrix(r, pairs, n_classes), strict=True):
        np.testing.assert_allclose(row, oracle.couple_pairs(R), atol=2e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_consistent_pairs_are_recovered(n_classes):
    rng = np.random.default_rng(n_classes)
    true = rng.dirichlet(np.ones(n_classes), size=50)
    code = shuffled_pairs(n_classes, rng)
    above, below = true @ (code > 0), true @ (code < 0)
    r = above / (above + below)
    kept = (np.minimum(r, 1 - r) > 1e-6).all(axis=1)
    p = couple_pairs(r[kept], pairs_of(code), n_classes)
    np.testing.assert_allclose(p, true[kept], atol=1e-8)
    found = bradley_terry(r[kept], code)
    np.testing.assert_allclose(found, true[kept], atol=1e-4)


def test_the_iteration_finds_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = pairs_of(ovo_code(5))
    r = rng.uniform(0.01, 0.99, size=(30, 10))
    direct = couple_pairs(r, pairs, 5)

    def singular(*_):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(coupling.np.linalg, "solve", singular)
    np.testing.assert_allclose(couple_pairs(r, pairs, 5), direct, atol=1e-9)


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(1)
    r = rng.uniform(size=(23, 6))
    whole = couple_pairs(r, pairs_of(ovo_code(4)), 4), bradley_terry(r, ovo_code(4))
    monkeypatch.setattr(coupling, "BLOCK_BYTES", 5000)
    np.testing.assert_array_equal(couple_pairs(r, pairs_of(ovo_code(4)), 4), whole[0])
    np.testing.assert_allclose(bradley_terry(r, ovo_code(4)), whole[1], atol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_machines_that_are_certain_leave_probabilities(n_classes):
    rng = np.random.default_rng(n_classes)
    code = ovo_code(n_classes)
    r = rng.integers(0, 2, size=(300, code.shape[1])).astype(float)  # often contradictory
    for p in (couple_pairs(r, pairs_of(code), n_classes), bradley_terry(r, code)):
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    # All machines of class 0 (negative side everywhere it takes part) are sure of it.
    p = couple_pairs(np.where(code[0] < 0, 0.0, 0.5)[None, :], pairs_of(code), n_classes)
    assert p[0, 0] > 1 - 1e-5


def test_one_versus_all_is_normalised():
    assert normalised_ova(np.array([[0.2, 0.2, 0.4]])).tolist() == [[0.25, 0.25, 0.5]]
    np.testing.assert_allclose(normalised_ova(np.zeros((1, 4))), 0.25)


CODES = {
    "dense": np.array([[1, -1, 1, -1], [-1, 1, 1, -1], [1, 1, -1, 1], [-1, -1, -1, 1]]),
    "sparse": np.array([[1, 0, 1, -1], [-1, 1, 0, -1], [0, -1, 1, 1], [1, 1, -1, 0]]),
    "one versus all": 2 * np.eye(4, dtype=int) - 1,
}


@pytest.mark.parametrize("name", CODES)
def test_bradley_terry_maximises_the_likelihood(name):
    rng = np.random.default_rng(5)
    code = CODES[name]
    r = rng.uniform(0.1, 0.9, size=(8, code.shape[1]))
    for row, rates in zip(bradley_terry(r, code), r, strict=True):
        reference = oracle.bradley_terry(rates, code)
        best = oracle.bradley_terry_value(np.maximum(reference, 1e-12), rates, code)
        assert oracle.bradley_terry_value(row, rates, code) >= best - 1e-6


def test_classes_no_machine_tells_apart_share_equally():
    code = np.array([[1, 1], [-1, 1], [-1, 1], [-1, -1]])
    p = bradley_terry(np.array([[0.5, 0.9]]), code)[0]
    np.testing.assert_allclose(p, [0.5, 0.2, 0.2, 0.1], atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_agreement_is_the_nearest_point(n_classes):
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.ones(n_classes), size=15)
    winners = rng.integers(n_classes, size=15)
    for row, before, winner in zip(agree(p, winners), p, winners, strict=True):
        expected = oracle.nearest_with_winner(before, winner, GAP)
        np.testing.assert_allclose(row, expected, atol=1e-6)


def test_agreement_by_hand():
    p = np.array([[0.5, 0.3, 0.2], [0.4, 0.38, 0.22], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])
    winners = np.array([1, 2, 2, 1])
    assert disagreement(p, winners).tolist() == [True, True, False, True]
    expected = [[0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]]
    result = agree(p, winners)
    np.testing.assert_allclose(result, expected, atol=2 * GAP)
    assert np.argmax(result, axis=1).tolist() == winners.tolist()
    np.testing.assert_array_equal(result[2], p[2])
    single = result.astype(np.float32)
    assert np.argmax(single, axis=1).tolist() == winners.tolist()
