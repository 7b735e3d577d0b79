"""What must not change a decoding: order and sign of the machines, order of the classes."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kfu.multiclass import (
    DECODINGS,
    LOSSES,
    class_scores,
    code_distance,
    decode,
    machine_losses,
    resolve_code,
    reverse_cdf,
    training_error_bounds,
)
from kfu.multiclass.random_codes import dense_code, sparse_code
from tests.oracles import multiclass as oracle

PROFILE = settings(max_examples=80, deadline=None)


def some_code(name, n_classes, seed):
    builders = {"dense": dense_code, "sparse": sparse_code}
    if name in builders:
        return builders[name](n_classes, seed, draws=5)
    return resolve_code(name, n_classes)[0]


@st.composite
def problems(draw):
    """A code, outputs of its machines, and a decoding it accepts."""
    name = draw(st.sampled_from(["ova", "ava", "complete", "dense", "sparse", "bch15"]))
    code = some_code(name, draw(st.integers(2, 7)), draw(st.integers(0, 5)))
    allowed = [method for method, kind in DECODINGS.items() if kind.refusal(code) is None]
    method = draw(st.sampled_from(allowed))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 1.0, 10.0]))
    return code, rng.normal(scale=scale, size=(12, code.shape[1])), method, rng


def is_clear(scores):
    """Rows in which one class is ahead by more than rounding."""
    top = np.sort(scores, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0] > 1e-9 * (1 + np.abs(top[:, 1]))


@PROFILE
@given(problems())
def test_order_and_sign_of_machines_do_not_matter(problem):
    code, decision, method, rng = problem
    columns = rng.permutation(code.shape[1])
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=columns.size)
    turned, outputs = code[:, columns] * signs, decision[:, columns] * signs
    if DECODINGS[method].refusal(turned) is not None:
        assert method == "argmax"  # which asks for positive classes
        turned, outputs = code[:, columns], decision[:, columns]
    scores = class_scores(decision, code, method)
    again = class_scores(outputs, turned, method)
    np.testing.assert_allclose(again, scores, rtol=1e-10, atol=1e-10)
    clear = is_clear(scores)
    np.testing.assert_array_equal(
        decode(outputs, turned, method)[clear], decode(decision, code, method)[clear]
    )


@PROFILE
@given(problems())
def test_classes_may_be_renumbered(problem):
    """Class k becomes row `place[k]` of the code; only the decision graph asks for their order."""
    code, decision, method, rng = problem
    assume(method != "dag")
    order = rng.permutation(code.shape[0])
    scores = class_scores(decision, code, method)
    again = class_scores(decision, code[order], method)
    np.testing.assert_allclose(again, scores[:, order], rtol=1e-10, atol=1e-10)
    clear = is_clear(scores)
    winners = order[decode(decision, code[order], method)]
    np.testing.assert_array_equal(winners[clear], decode(decision, code, method)[clear])


@PROFILE
@given(st.integers(2, 9), st.integers(0, 2**32 - 1), st.sampled_from([0.2, 1.0, 5.0]))
def test_one_versus_all_by_loss_is_the_largest_output(n_classes, seed, scale):
    code = resolve_code("ova", n_classes)[0]
    decision = np.random.default_rng(seed).normal(scale=scale, size=(20, code.shape[1]))
    for loss in LOSSES:
        clear = is_clear(class_scores(decision, code, loss))
        assert clear.sum() >= 15
        np.testing.assert_array_equal(
            decode(decision, code, loss)[clear], decode(decision, code, "argmax")[clear]
        )


@PROFILE
@given(problems())
def test_the_winner_is_the_row_of_least_loss(problem):
    code, decision, _, _ = problem
    for loss in LOSSES:
        winners = decode(decision, code, loss)
        for f, winner in zip(decision, winners, strict=True):
            losses = oracle.row_losses(f, code, oracle.LOSSES[loss])
            assert losses[winner] <= min(losses) * (1 + 1e-9) + 1e-9


@PROFILE
@given(problems())
def test_outputs_that_spell_a_row_are_decoded_to_it(problem):
    code, _, method, rng = problem
    assume(method not in ("dag", "votes"))  # where machines that do not know the class vote, too
    true = rng.integers(0, code.shape[0], size=15)
    np.testing.assert_array_equal(decode(1.0 * code[true], code, method), true)


@PROFILE
@given(problems())
def test_codes_without_zeros_correct_half_their_distance(problem):
    """Without zeros, Hamming decoding survives ⌊(ρ-1)/2⌋ wrong machines."""
    code, _, _, rng = problem
    assume((code != 0).all())
    n_wrong = int((code_distance(code) - 1) // 2)
    true = rng.integers(0, code.shape[0], size=10)
    decision = code[true].astype(float)
    for row in decision:
        row[rng.permutation(row.size)[:n_wrong]] *= -1
    np.testing.assert_array_equal(decode(decision, code, "hamming"), true)


@PROFILE
@given(st.sampled_from(["dense", "sparse"]), st.integers(2, 16), st.integers(0, 10**6))
def test_random_codes_keep_the_rules(name, n_classes, seed):
    code = some_code(name, n_classes, seed)
    assert oracle.is_code(code)
    assert code_distance(code) == oracle.distance(code) > 0


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 13))
def test_distance_of_the_complete_code(n_classes):
    assert code_distance(resolve_code("complete", n_classes)[0]) == 2.0 ** (n_classes - 2)


@PROFILE
@given(problems())
def test_bounds_cover_the_mistakes(problem):
    code, decision, _, rng = problem
    true = rng.integers(0, code.shape[0], size=len(decision))
    for loss in LOSSES:
        losses = machine_losses(decision, code, true, loss)
        bounds = training_error_bounds(losses, code, len(true), loss)
        assert np.sum(decode(decision, code, loss) != true) <= bounds.loss_based + 1e-9
        assert np.sum(decode(decision, code, "hamming") != true) <= bounds.hamming + 1e-9


@PROFILE
@given(problems())
def test_hamming_mistakes_have_half_the_machines_wrong(problem):
    """Where no entry is zero, a class wins only if half the machines that part it from the true
    one say so."""
    code, decision, _, rng = problem
    assume((code != 0).all())
    true = rng.integers(0, code.shape[0], size=len(decision))
    curve = reverse_cdf(decision, code, true, decode(decision, code, "hamming"))
    assert (curve.fraction >= 0.5).all()
