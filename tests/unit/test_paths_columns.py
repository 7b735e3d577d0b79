"""States and their words."""

from __future__ import annotations

import numpy as np
import pytest

from kfu.paths.columns import rate
from kfu.paths.states import REGRESSION, one_sided, two_sided
from kfu.solvers.parametric import FREE, FREE_BELOW, LOWER, UPPER, ZERO


def test_words_of_a_classifier_depend_on_the_class() -> None:
    words = two_sided(np.array([1.0, -1.0]))
    assert [words.word(0, s) for s in (LOWER, UPPER, FREE)] == ["correct", "error", "margin"]
    assert [words.word(1, s) for s in (LOWER, UPPER, FREE)] == ["error", "correct", "margin"]
    assert words.state(1, "error") == LOWER
    with pytest.raises(KeyError):
        words.state(0, "upper")


@pytest.mark.parametrize("kind", ["classifier", "regression"])
def test_sets_and_states_are_inverse(kind: str) -> None:
    rng = np.random.default_rng(1)
    if kind == "classifier":
        words = two_sided(rng.choice([-1.0, 1.0], 50))
        states = rng.choice([LOWER, UPPER, FREE], 50)
    else:
        words = one_sided(50, REGRESSION)
        states = rng.choice([LOWER, UPPER, ZERO, FREE, FREE_BELOW], 50)
    sets = words.sets_of(states)
    assert sum(len(items) for items in sets.values()) == 50
    np.testing.assert_array_equal(words.states_of(sets), states)


def test_damaged_sets_are_refused() -> None:
    words = two_sided(np.array([1.0, -1.0, 1.0]))
    with pytest.raises(ValueError, match="item 2 is in no set"):
        words.states_of({"error": np.array([0, 1])})
    with pytest.raises(ValueError, match="another set too"):
        words.states_of({"error": np.array([0, 1, 2]), "margin": np.array([1])})
    with pytest.raises(ValueError, match="outside"):
        words.states_of({"error": np.array([0, 1, 3])})
    with pytest.raises(ValueError, match="no state of item 0"):
        words.states_of({"upper": np.array([0, 1, 2])})


def test_rates_of_unknown_counts_are_unknown() -> None:
    np.testing.assert_array_equal(rate([-1, 2, 4], 8), [np.nan, 0.25, 0.5])
