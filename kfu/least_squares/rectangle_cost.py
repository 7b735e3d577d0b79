"""What `rectangle` costs, counted beforehand: operations by phase, and if leave-one-out is cheap.

n: rows, d: features, m: centres, r: their rank, t: outputs. Multiplications and additions count, a
kernel value of d features 2d. The forecast (kfu.forecast) turns the same counts into seconds.

A leave-one-out pass whitens every row (n r²), solves with the factor for its leverage (n r² for
each of a few ridges) and computes its kernel values anew: about twice the training itself. It is
called cheap where there is little to do, and where it takes no more than the training, whose m³
outweigh it when there are few rows beside the centres.
"""

from __future__ import annotations

from dataclasses import dataclass

from kfu.least_squares.ridge_system import MOST_CHOLESKY

LITTLE = 1e11  # operations, a second or two, that a leave-one-out pass may take in any case


@dataclass(frozen=True)
class RectangleSizes:
    n: float
    d: float
    m: float
    r: float
    t: float
    ridges: float = 1.0


def training_operations(s: RectangleSizes, *, whitens: bool) -> dict[str, float]:
    """By phase. `whitens`: the sums are whitened, as leave-one-out and several ridges need it."""
    if whitens:
        factors = s.ridges / 3.0 if s.ridges <= MOST_CHOLESKY else 9.0
        solve = (2.0 + factors) * s.r**3
    else:
        solve = s.r**2 * s.d + 2.0 / 3.0 * s.r**3  # K_mm again, a factor, a triangle (the trace)
    return {
        "centres": s.m**2 * s.d + s.r**3 / 3.0,
        "kernel": 2.0 * s.n * s.r * s.d,
        "products": s.n * s.r**2,
        "solve": solve,
    }


def left_out_operations(s: RectangleSizes) -> float:
    """Of the pass over the rows that gives leave-one-out outputs for every ridge."""
    passes = 1.0 + s.ridges if s.ridges <= MOST_CHOLESKY else 3.0
    return 2.0 * s.n * s.r * s.d + passes * s.n * s.r**2 + 2.0 * s.n * s.r * s.t * s.ridges


def is_left_out_cheap(s: RectangleSizes) -> bool:
    """Whether leave-one-out outputs come unasked."""
    training = sum(training_operations(s, whitens=False).values())
    return left_out_operations(s) <= max(LITTLE, training)
