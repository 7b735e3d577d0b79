"""The states of a variable along a path, and the words a path file has for them.

A variable β_i of the parametric problem (kfu.solvers.parametric, whose numbers these are) is at its
lower or upper bound, at its kink, or free. What that means depends on the machine and, for a
classifier, on the class: the row of class +1 with β = 0 is at its lower bound, that of class −1 at
its upper one, and both are "correct". A `Vocabulary` gives each item a side and each side its
words, one word a state and one state a word, so that a file of words is replayed without doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kfu.solvers.parametric import FREE, FREE_BELOW, LOWER, UPPER, ZERO

# Words that stand for no item: where a path begins, was begun again, and ends.
START, RESTART, END = MARKS = ("start", "restart", "end")

MARGIN, ERROR, CORRECT = "margin", "error", "correct"

POSITIVE_SIDE: Mapping[int, str] = {LOWER: CORRECT, UPPER: ERROR, FREE: MARGIN}
NEGATIVE_SIDE: Mapping[int, str] = {LOWER: ERROR, UPPER: CORRECT, FREE: MARGIN}
# Regression: on the bound since the target is above or below the tube, inside it, on its edges.
REGRESSION: Mapping[int, str] = {
    UPPER: "upper",
    LOWER: "lower",
    ZERO: "zero",
    FREE: "margin-upper",
    FREE_BELOW: "margin-lower",
}


@dataclass(frozen=True)
class Vocabulary:
    """The words of every item: `sides` (n,) says which of `words` (state -> word) is an item's."""

    sides: np.ndarray
    words: tuple[Mapping[int, str], ...]

    def word(self, item: int, state: int) -> str:
        return self.words[self.sides[item]][state]

    def state(self, item: int, word: str) -> int:
        """The state that `word` names; KeyError when the item's side has no such word."""
        for state, known in self.words[self.sides[item]].items():
            if known == word:
                return state
        raise KeyError(word)

    @property
    def all_words(self) -> list[str]:
        return list(dict.fromkeys(word for side in self.words for word in side.values()))

    def sets_of(self, states: np.ndarray) -> dict[str, np.ndarray]:
        """word -> the items in that state, ascending; only words that occur."""
        found: dict[str, list[np.ndarray]] = {}
        for number, side in enumerate(self.words):
            for state, word in side.items():
                items = np.flatnonzero((self.sides == number) & (states == state))
                if items.size:
                    found.setdefault(word, []).append(items)
        return {word: np.sort(np.concatenate(parts)) for word, parts in found.items()}

    def states_of(self, sets: Mapping[str, np.ndarray]) -> np.ndarray:
        """The inverse of sets_of; ValueError unless every item is in one set."""
        states = np.full(len(self.sides), -1, dtype=np.int8)
        for word, items in sets.items():
            if items.size and (items.min() < 0 or items.max() >= len(states)):
                raise ValueError(f"an item of '{word}' is outside the {len(states)} rows")
            if np.any(states[items] >= 0):
                raise ValueError(f"an item of '{word}' is in another set too")
            for number, side in enumerate(self.words):
                known = [state for state, text in side.items() if text == word]
                mine = items[self.sides[items] == number]
                if mine.size and not known:
                    raise ValueError(f"'{word}' is no state of item {mine[0]}")
                if mine.size:
                    states[mine] = known[0]
        if np.any(states < 0):
            raise ValueError(f"item {int(np.argmin(states))} is in no set")
        return states


def one_sided(n: int, words: Mapping[int, str] = POSITIVE_SIDE) -> Vocabulary:
    """The vocabulary of a machine that treats every row alike."""
    return Vocabulary(np.zeros(n, dtype=np.int8), (words,))


def two_sided(signs: np.ndarray) -> Vocabulary:
    """The vocabulary of a binary classifier, y = ±1, whose boxes are [0, w] and [−w, 0]."""
    return Vocabulary((signs < 0).astype(np.int8), (POSITIVE_SIDE, NEGATIVE_SIDE))
