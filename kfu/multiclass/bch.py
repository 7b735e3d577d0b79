"""Codes from the error-correcting codes of Bose, Chaudhuri and Hocquenghem (BCH).

Their use for classes is Dietterich and Bakiri's (JAIR 2, 1995); the construction is that of any
book on coding, e.g. Lin and Costello, *Error control coding*, chapter 6. With α a primitive element
of GF(2^p), the code of length n = 2^p - 1 and designed distance δ consists of the polynomials over
GF(2) that vanish at α, α², ..., α^(δ-1): the multiples of g, the product of the minimal polynomials
of these powers. It has 2^k words, k = n - deg g, and any two differ in at least δ places.

From words to a code matrix of K classes:

1. Length: the smallest n of 7, 15, 31, 63, 127 with n >= 10 log₂ K (127 if none), as many machines
   as a dense code has, unless the caller says otherwise (`bch63`).
2. Code: the one with fewest words, hence largest distance, of those with at least K words. With 63
   places that is (63, 7) with distance 31 up to 128 classes, (63, 10) with 27 up to 1024.
3. Rows: the words of the messages 0, a, 2a, ..., (K-1)a mod 2^k, a odd. They are spread over the
   messages, since the first K would leave the upper bits of the message 0 and make columns equal.
   Of a = 1, 3, 5, ..., 63 the one is taken that gives the largest ρ, then most columns.
4. Columns that are constant over the K rows, or equal to an earlier one up to sign, are left out:
   their machines could not be trained, or would be trained twice. With K > k rows all n columns
   usually remain; with few classes, few do (three classes: 3).

No random numbers: the code depends on K and n alone.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from kfu.errors import SettingsError
from kfu.multiclass.code_matrix import binary_code, code_distance, code_fault

__all__ = ["LENGTHS", "BchWords", "bch_code", "bch_words"]

# A primitive polynomial of each degree, as bits: 0b1011 is x³ + x + 1.
PRIMITIVE = {3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10001001}
LENGTHS = tuple((1 << degree) - 1 for degree in PRIMITIVE)
MULTIPLIERS = range(1, 64, 2)


class BchWords:
    """One BCH code: its length n, number of message bits k, designed distance and generator g."""

    def __init__(self, length: int, distance: int, generator: int) -> None:
        self.length = length
        self.distance = distance
        self.generator = generator  # bits: the lowest is the constant term
        self.n_bits = length - (generator.bit_length() - 1)

    def words(self, messages: np.ndarray) -> np.ndarray:
        """The words message(x)·g(x) as 0/1 (len(messages), length), constant terms first."""
        shifts = np.arange(self.n_bits)
        bits = np.asarray(messages, dtype=np.int64)[:, None] >> shifts & 1
        places = np.arange(self.length)
        taps = places - shifts[:, None]
        coefficients = np.array([self.generator >> i & 1 for i in range(self.length)])
        basis = np.where(taps >= 0, coefficients[taps], 0)
        return bits @ basis & 1


@cache
def bch_words(length: int) -> tuple[BchWords, ...]:
    """The primitive narrow-sense BCH codes of a length, by falling distance, each dimension once.

    The designed distance of each is the largest that gives its generator.
    """
    powers = _powers_of_alpha(length)
    codes: dict[int, BchWords] = {}
    generator, roots = 1, frozenset[int]()
    for distance in range(2, length + 1):
        root = distance - 1
        if root not in roots:
            conjugates = _conjugates(root, length)
            roots |= conjugates
            generator = _times(generator, _minimal_polynomial(conjugates, powers))
        code = BchWords(length, distance, generator)
        codes[code.n_bits] = code  # a larger distance replaces a smaller of equal generator
    return tuple(sorted(codes.values(), key=lambda code: code.n_bits))


def bch_code(n_classes: int, length: int | None = None) -> np.ndarray:
    """The BCH code matrix of n_classes; see the head of this file."""
    if n_classes == 2:
        return binary_code()
    if length is None:
        wanted = 10 * math.log2(n_classes)
        length = next((n for n in LENGTHS if n >= wanted), LENGTHS[-1])
    if length not in LENGTHS:
        raise SettingsError(f"no BCH codes of length {length}; choose one of {LENGTHS}")
    words = next((code for code in bch_words(length) if 1 << code.n_bits >= n_classes), None)
    if words is None:
        most = 1 << bch_words(length)[-1].n_bits
        raise SettingsError(
            f"BCH codes of length {length} have at most {most} words, not enough for "
            f"{n_classes} classes; take a longer one"
        )
    best: np.ndarray | None = None
    best_rank = (-1.0, -1)
    for multiplier in MULTIPLIERS:
        if multiplier >= 1 << words.n_bits:
            break
        messages = np.arange(n_classes) * multiplier % (1 << words.n_bits)
        code = _different_columns(2 * words.words(messages) - 1)
        rank = (code_distance(code), code.shape[1])
        if rank > best_rank and code_fault(code) is None:
            best, best_rank = code, rank
    assert best is not None  # rows are words at a distance: some column tells any two apart
    return best


def _different_columns(code: np.ndarray) -> np.ndarray:
    """Without columns that are constant or equal an earlier one; the first row is all -1."""
    first = np.unique(code, axis=1, return_index=True)[1]
    first = first[(code[:, first] > 0).any(axis=0)]
    return np.ascontiguousarray(code[:, np.sort(first)]).astype(np.int8)


# Arithmetic of GF(2^p), elements as bits of polynomials in α.


def _powers_of_alpha(length: int) -> list[int]:
    """α^0, ..., α^(length-1)."""
    modulus = PRIMITIVE[length.bit_length()]
    powers = [1]
    while len(powers) < length:
        doubled = powers[-1] << 1
        powers.append(doubled ^ modulus if doubled > length else doubled)
    return powers


def _conjugates(root: int, length: int) -> frozenset[int]:
    """The exponents root, 2 root, 4 root, ...: the powers of α with one minimal polynomial."""
    exponents, exponent = {root}, 2 * root % length
    while exponent != root:
        exponents.add(exponent)
        exponent = 2 * exponent % length
    return frozenset(exponents)


def _minimal_polynomial(conjugates: frozenset[int], powers: list[int]) -> int:
    """Π (x + α^e) over the conjugates, whose coefficients are 0 and 1, as bits."""
    length = len(powers)
    logarithm = {element: exponent for exponent, element in enumerate(powers)}
    polynomial = [1]  # coefficients in GF(2^p), constant term first
    for exponent in conjugates:
        scaled = [powers[(logarithm[c] + exponent) % length] if c else 0 for c in [*polynomial, 0]]
        polynomial = [s ^ c for s, c in zip(scaled, [0, *polynomial], strict=True)]
    return sum(coefficient << i for i, coefficient in enumerate(polynomial))


def _times(a: int, b: int) -> int:
    """The product of two polynomials over GF(2)."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
    return product
