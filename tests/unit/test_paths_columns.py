"""States, their words, and the sizes of sets counted from events."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kfu.paths.columns import rate, set_sizes
from kfu.paths.states import (
    FREE,
    FREE_BELOW,
    LOWER,
    REGRESSION,
    UPPER,
    ZERO,
    one_sided,
    two_sided,
)


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


@pytest.mark.parametrize("seed", range(5))
def test_set_sizes_are_those_of_replayed_states(seed: int) -> None:
    """Random events, several of one item at a breakpoint too."""
    rng = np.random.default_rng(seed)
    n, m = 8, 30
    signs = rng.choice([-1.0, 1.0], n)
    words = two_sided(signs)
    states = rng.choice([LOWER, UPPER, FREE], n)
    per_step = np.concatenate([[0], rng.integers(0, 4, m)])
    start = np.concatenate([[0], np.cumsum(per_step)])
    items = rng.integers(0, n, start[-1])
    new = rng.choice([LOWER, UPPER, FREE], start[-1])
    track = SimpleNamespace(
        first_state=states, event_start=start, event_item=items, event_state=new
    )
    found = set_sizes(track, words)
    now = states.copy()
    for k in range(m + 1):
        for e in range(start[k], start[k + 1]):
            now[items[e]] = new[e]
        sets = words.sets_of(now)
        for name in ("margin", "error", "correct"):
            assert found[f"n_{name}"][k] == len(sets.get(name, []))


def test_rates_of_unknown_counts_are_unknown() -> None:
    np.testing.assert_array_equal(rate([-1, 2, 4], 8), [np.nan, 0.25, 0.5])
