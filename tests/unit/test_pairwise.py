"""Codes and votes against their definitions, written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.pairwise import (
    ovo_code,
    ovr_scores,
    pack_pairwise,
    pair_order,
    pairs_of,
    support_classes,
    unpack_pairwise,
    vote,
)


def shuffled_code(n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """One-versus-one with its columns in any order and orientation."""
    code = ovo_code(n_classes)
    columns = rng.permutation(code.shape[1])
    return code[:, columns] * rng.choice([-1, 1], size=columns.size)


def naive_vote(values: np.ndarray, code: np.ndarray) -> int:
    n_classes = code.shape[0]
    sides = [
        (int(np.flatnonzero(column == 1)[0]), int(np.flatnonzero(column == -1)[0]))
        for column in code.T
    ]
    votes, favour = [0] * n_classes, [0.0] * n_classes
    for (positive, negative), f in zip(sides, values, strict=True):
        votes[positive if f > 0 else negative] += 1
    for (positive, negative), f in zip(sides, values, strict=True):
        if votes[positive] == votes[negative] == max(votes):  # between tied classes
            favour[positive] += f
            favour[negative] -= f
    return max(range(n_classes), key=lambda k: (votes[k], favour[k], -k))


def test_the_code_of_two_and_of_three():
    assert ovo_code(2).tolist() == [[-1], [1]]
    assert ovo_code(3).tolist() == [[-1, -1, 0], [1, 0, -1], [0, 1, 1]]


@settings(max_examples=150, deadline=None)
@given(n_classes=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_votes_follow_the_rule(n_classes, seed):
    rng = np.random.default_rng(seed)
    code = shuffled_code(n_classes, rng)
    # Small integers, so that votes and sums are often equal and always exact.
    decision = rng.integers(-2, 3, size=(20, code.shape[1])).astype(float)
    expected = [naive_vote(row, code) for row in decision]
    assert vote(decision, code).tolist() == expected
    if n_classes > 2:  # the scores have the winner among the classes of most votes
        scores = ovr_scores(decision, code)
        rows = np.arange(len(expected))
        assert np.all(scores[rows, expected] > scores.max(axis=1) - 2 / 3)


@settings(max_examples=60, deadline=None)
@given(n_classes=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_packing_is_undone_and_classes_are_recognised(n_classes, seed):
    rng = np.random.default_rng(seed)
    code = shuffled_code(n_classes, rng)
    owner = rng.integers(n_classes, size=15)
    coef = rng.random((code.shape[1], 15)) * code[owner].T * rng.integers(0, 2, size=(1, 15))
    used = coef.any(axis=0)
    found = support_classes(coef, code)
    assert found[used].tolist() == owner[used].tolist()
    assert (found[~used] == -1).all()
    packed = pack_pairwise(coef, code, owner)
    assert packed.shape == (n_classes - 1, 15)
    order, sign = pair_order(code, larger_is_positive=True)
    np.testing.assert_array_equal(unpack_pairwise(packed, owner), coef[order])
    np.testing.assert_array_equal(code[:, order] * sign, ovo_code(n_classes))


def test_other_codes_are_not_pairs():
    one_versus_rest = 2 * np.eye(3, dtype=np.int8) - 1
    assert pairs_of(one_versus_rest) is None
    twice = ovo_code(3)[:, [0, 0, 1]]
    assert pairs_of(twice) is None
    with pytest.raises(ValueError, match="not one-versus-one"):
        pair_order(one_versus_rest, larger_is_positive=True)
    with pytest.raises(ValueError, match="not one-versus-one"):
        pack_pairwise(np.zeros((3, 1)), one_versus_rest, np.zeros(1))
