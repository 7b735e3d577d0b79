"""Every decoding against its definition, written as loops; ties, refusals and extremes."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.errors import SettingsError
from kfu.multiclass import DECODINGS, LOSSES, class_scores, decode, decoding_name, resolve_code
from kfu.multiclass.decoding import DECODING_ALIASES, check_decoding
from kfu.pairwise import ovr_scores, vote
from tests.oracles import multiclass as oracle

SIMPLE = np.array([[1, 1, 0, -1], [-1, 1, -1, 0], [0, -1, 1, 1]], dtype=np.int8)


def codes(n_classes):
    for name in ("ova", "ava", "complete", "dense", "sparse", "bch15"):
        yield resolve_code(name, n_classes, seed=n_classes)[0]


def outputs(n, code, seed=0, digits=6):
    """Decision values; few digits make ties and zeros."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(scale=1.3, size=(n, code.shape[1])), digits)


def accepted(code):
    return [name for name, decoding in DECODINGS.items() if decoding.refusal(code) is None]


def turned(code, rng):
    """The code with its columns in another order, some of them with the other sign."""
    columns = rng.permutation(code.shape[1])
    return code[:, columns] * rng.choice(np.array([-1, 1], dtype=np.int8), size=columns.size)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_loss_based_scores(loss, n_classes):
    for code in [*codes(n_classes), *([SIMPLE] if n_classes == 3 else [])]:
        decision = outputs(15, code)
        expected = [oracle.row_losses(f, code, oracle.LOSSES[loss]) for f in decision]
        expected = -np.log(expected) if loss == "exponential" else -np.array(expected)
        np.testing.assert_allclose(class_scores(decision, code, loss), expected, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_their_parts(loss):
    function = LOSSES[loss]
    z = np.array([-30.0, -2.0, -1.0, -0.5, 0.0, 0.3, 1.0, 1.5, 30.0])
    values = [oracle.LOSSES[loss](v) for v in z]
    np.testing.assert_allclose(function.of(z), values, rtol=1e-14)
    scale = np.abs(function.even(z))
    assert np.all(np.abs(function.even(z) + function.odd(z) - values) <= 1e-15 * scale)
    np.testing.assert_array_equal(function.even(-z), function.even(z))
    np.testing.assert_array_equal(function.odd(-z), -function.odd(z))
    assert function.at_zero == function.of(np.zeros(1))[0]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_hamming_scores(n_classes):
    for code in [*codes(n_classes), *([SIMPLE] if n_classes == 3 else [])]:
        decision = outputs(40, code, digits=0)
        assert (decision == 0).any()
        expected = -np.array([oracle.hamming(f, code) for f in decision])
        np.testing.assert_array_equal(class_scores(decision, code, "hamming"), expected)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
@pytest.mark.parametrize("digits", [0, 6])
def test_votes_are_the_votes_of_the_library(n_classes, digits):
    for code in [*codes(n_classes), *([SIMPLE] if n_classes == 3 else [])]:
        decision = outputs(60, code, digits=digits)
        winners = decode(decision, code, "votes")
        np.testing.assert_array_equal(winners, vote(decision, code))
        if digits == 0:  # sums of integers: no rounding, ties are ties
            np.testing.assert_array_equal(winners, [oracle.votes(f, code) for f in decision])


def test_votes_part_sums_that_rounding_would_hide():
    code = resolve_code("ava", 3)[0]
    decision = np.array([[-1e-17, 3e-17, -1e-18]])  # one vote each, the last class in favour
    assert np.ptp(ovr_scores(decision, code)) == 0
    assert vote(decision, code).tolist() == [2]
    assert decode(decision, code, "votes").tolist() == [2]


def test_votes_of_pairs_have_the_scores_of_the_library():
    code = turned(resolve_code("ava", 5)[0], np.random.default_rng(3))
    decision = outputs(50, code)
    scores, usual = class_scores(decision, code, "votes"), ovr_scores(decision, code)
    clear = np.argmax(usual, axis=1) == vote(decision, code)
    np.testing.assert_array_equal(scores[clear], usual[clear])
    assert 0 < np.sum(~clear) < 10  # ties that the machines between the tied decide otherwise


def test_argmax_is_the_largest_output():
    code = resolve_code("ova", 5)[0]
    decision = outputs(50, code)
    np.testing.assert_array_equal(decode(decision, code, "argmax"), decision.argmax(axis=1))
    order = np.array([3, 0, 4, 1, 2])
    moved = code[:, order]
    np.testing.assert_array_equal(class_scores(decision[:, order], moved, "argmax"), decision)
    binary = np.array([[-1], [1]], dtype=np.int8)
    assert decode(np.array([-1.0, 0.0, 2.0]), binary, "argmax").tolist() == [0, 0, 1]


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
@pytest.mark.parametrize("digits", [0, 6])
def test_dag_eliminates_class_by_class(n_classes, digits):
    rng = np.random.default_rng(n_classes)
    code = turned(resolve_code("ava", n_classes)[0], rng)
    decision = outputs(60, code, seed=1, digits=digits)
    scores = class_scores(decision, code, "dag")
    leaving = [oracle.dag(f, code) for f in decision]
    np.testing.assert_array_equal(np.argsort(scores, axis=1), leaving)
    np.testing.assert_array_equal(np.sort(scores, axis=1), np.tile(range(n_classes), (60, 1)))
    np.testing.assert_array_equal(
        decode(decision, code, "dag"), [classes[-1] for classes in leaving]
    )


def test_dag_and_votes_agree_where_one_class_beats_all():
    code = resolve_code("ava", 6)[0]
    strength = np.random.default_rng(0).normal(size=(40, 6))
    first, second = np.triu_indices(6, k=1)
    decision = strength[:, second] - strength[:, first]
    for method in ("dag", "votes", "hamming"):
        np.testing.assert_array_equal(decode(decision, code, method), strength.argmax(axis=1))


@pytest.mark.parametrize("method", DECODINGS)
def test_scores_are_finite_and_ties_go_to_the_first(method):
    code = resolve_code("ova" if method == "argmax" else "ava", 4)[0]
    extreme = np.array([[1e3], [-1e3], [1e6], [-1e5]]) * np.ones(code.shape[1])
    extreme = np.vstack([extreme, outputs(20, code) * 1e4])
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(class_scores(extreme, code, method)).all()
    if method in LOSSES:
        largest = np.full((1, code.shape[1]), np.finfo(float).max)
        assert np.isfinite(class_scores(largest, code, method)).all()
    if method not in ("votes", "dag"):  # these have no ties at 0: f <= 0 is a no
        assert decode(np.zeros((1, code.shape[1])), code, method).tolist() == [0]
    assert class_scores(np.zeros((0, code.shape[1])), code, method).shape == (0, 4)
    assert decode(np.zeros((0, code.shape[1])), code, method).shape == (0,)


@pytest.mark.parametrize("method", DECODINGS)
def test_two_classes_are_decided_by_the_sign(method):
    code = resolve_code("ova", 2)[0]
    f = np.array([-2.0, -1e-9, 0.0, 1e-9, 0.5, 3.0])
    assert decode(f, code, method).tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(
        class_scores(f, code, method), class_scores(f[:, None], code, method)
    )


def test_exponential_keeps_the_order_where_sums_would_overflow():
    code = resolve_code("ova", 3)[0]
    assert decode([[900.0, 901.0, 899.0], [-900, -901, -899]], code, "exponential").tolist() == [
        1,
        2,
    ]


def test_what_is_refused():
    ova, ava, dense = (resolve_code(name, 5)[0] for name in ("ova", "ava", "complete"))
    assert "argmax" in accepted(ova)
    assert "dag" in accepted(ava)
    assert accepted(dense) == ["votes", "hamming", "hinge", "square", "exponential"]
    with pytest.raises(SettingsError, match=r"argmax needs .*\(code ova\); .* votes, hamming"):
        decode(np.zeros((1, 10)), ava, "argmax")
    with pytest.raises(SettingsError, match=r"argmax needs"):
        check_decoding("argmax", -ova)
    with pytest.raises(SettingsError, match=r"dag needs .*\(code ava\)"):
        decode(np.zeros((1, 5)), ova, "dag")
    doubled = ava.copy()
    doubled[:, 1] = -ava[:, 0]  # as many machines as pairs, but one pair twice
    with pytest.raises(SettingsError, match="dag needs"):
        check_decoding("dag", doubled)
    with pytest.raises(SettingsError, match="unknown decoding 'hing'; choose votes"):
        check_decoding("hing", ova)
    with pytest.raises(ValueError, match="5 machines"):
        decode(np.zeros((2, 4)), ova, "hinge")
    with pytest.raises(ValueError, match="shape"):
        decode(np.zeros(5), ova, "hinge")
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            decode(np.full((1, 5), value), ova, "hinge")


def test_names():
    for alias, name in DECODING_ALIASES.items():
        assert decoding_name(f" {alias.upper().replace('-', '_')}") == name
    assert all(name == decoding.name for name, decoding in DECODINGS.items())
    assert {name for name, decoding in DECODINGS.items() if decoding.loss} == set(LOSSES)
