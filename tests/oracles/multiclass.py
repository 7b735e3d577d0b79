"""Codes, decodings and diagnostics by loops over their definitions. Nothing here imports kfu."""

from __future__ import annotations

import itertools
import math

import numpy as np

LOSSES = {
    "hinge": lambda z: max(0.0, 1.0 - z),
    "square": lambda z: (1.0 - z) ** 2,
    "exponential": lambda z: math.exp(-z),
}


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


def distance(code: np.ndarray) -> float:
    """ρ: ½ for each column with a zero, 1 for each with opposite signs, the least over pairs."""
    least = math.inf
    for r, s in itertools.combinations(range(len(code)), 2):
        total = 0.0
        for a, b in zip(code[r].tolist(), code[s].tolist(), strict=True):
            total += 0.5 if a == 0 or b == 0 else float(a != b)
        least = min(least, total)
    return least


def is_code(code: np.ndarray) -> bool:
    """Both signs in every column, and opposite signs somewhere for every two rows."""
    rows = code.tolist()
    columns = list(zip(*rows, strict=True))
    return all(1 in c and -1 in c for c in columns) and all(
        any(a * b == -1 for a, b in zip(r, s, strict=True))
        for r, s in itertools.combinations(rows, 2)
    )


def partitions(n_classes: int) -> set[frozenset[int]]:
    """The ways to part the classes in two, each by the part without class 0."""
    others = range(1, n_classes)
    return {
        frozenset(part)
        for size in range(1, n_classes)
        for part in itertools.combinations(others, size)
    }


def row_losses(f: np.ndarray, code: np.ndarray, loss) -> list[float]:
    """Σ_m L(M_rm f_m) for each class r."""
    return [
        sum(loss(float(m * v)) for m, v in zip(row.tolist(), f.tolist(), strict=True))
        for row in code
    ]


def hamming(f: np.ndarray, code: np.ndarray) -> list[float]:
    return row_losses(f, code, lambda z: (1 - sign(z)) / 2)


def votes(f: np.ndarray, code: np.ndarray) -> int:
    """Net votes, then the outputs of machines between tied classes, then the first class."""
    net = [
        sum(m * (1 if v > 0 else -1) for m, v in zip(row, f.tolist(), strict=True))
        for row in code.tolist()
    ]
    tied = [k for k in range(len(code)) if net[k] == max(net)]
    between = [
        any(code[k, m] > 0 for k in tied) and any(code[k, m] < 0 for k in tied)
        for m in range(code.shape[1])
    ]
    favour = {k: sum(code[k, m] * f[m] for m in range(code.shape[1]) if between[m]) for k in tied}
    return max(tied, key=lambda k: (favour[k], -k))


def dag(f: np.ndarray, code: np.ndarray) -> list[int]:
    """The classes in the order in which they leave the list; the last is the winner."""
    alive, gone = list(range(len(code))), []
    while len(alive) > 1:
        first, last = alive[0], alive[-1]
        for m in range(code.shape[1]):
            if code[first, m] and code[last, m]:
                winner_sign = 1 if f[m] > 0 else -1
                loser = first if code[last, m] == winner_sign else last
        alive.remove(loser)
        gone.append(loser)
    return gone + alive


def mean_loss(decision: np.ndarray, code: np.ndarray, true: np.ndarray, loss) -> float:
    total = 0.0
    for row, y in zip(decision, true, strict=True):
        for m, f in enumerate(row):
            total += loss(float(code[y, m] * f))
    return total / decision.size


def wrong_fractions(decision, code, true, predicted) -> list[float]:
    """For each mistake, how many of the machines that part the two classes are wrong."""
    fractions = []
    for row, i, j in zip(decision, true, predicted, strict=True):
        asked = wrong = 0
        for m, f in enumerate(row):
            if code[i, m] != 0 and code[i, m] == -code[j, m]:
                asked += 1
                wrong += (1 if f > 0 else -1) != code[i, m]
        if i != j and asked:
            fractions.append(wrong / asked)
    return sorted(fractions)


def has_root(generator: int, power: int, modulus: int) -> bool:
    """Whether a polynomial over GF(2) vanishes at α^power, α a root of the modulus.

    Polynomials are bits; g(x^power) is reduced modulo the modulus term by term.
    """
    degree = modulus.bit_length() - 1
    value = 0
    for i in range(generator.bit_length()):
        if generator >> i & 1:
            term = 1
            for _ in range(i * power % (2**degree - 1)):
                term <<= 1
                if term >> degree:
                    term ^= modulus
            value ^= term
    return value == 0
