"""Leave-one-out outputs of a trained C-SVC from its support vectors alone: f − y α S².

If leaving row p out changes no category (unbounded 0 < α < C, bounded α = C, none α = 0), its
output falls by exactly y_p (f(x_p) − f^p(x_p)) = α_p S_p². S_p is the span, the distance of Φ(x_p)
to the affine hull of the other unbounded vectors (the linear hull without bias). With

    K̃ = [K 1; 1ᵀ 0] over unbounded vectors    (without bias: K)

    unbounded   S_p² = 1 / (K̃⁻¹)_pp
    bounded     S_p² = K_pp − v_pᵀ K̃⁻¹ v_p,    v_p = (K(x_p, x_i)_i, 1)
    none        f is not changed (α = 0)

One factorisation of K̃ gives outputs like those of n trainings: what a link may be fitted to without
a hold-out set. Categories do change for some rows; the drop is then mostly overestimated, by much
at a large cost with few unbounded vectors.

Where the formula has no answer a row keeps its output: bounded vectors of a machine with bias and
without unbounded vectors (removing one breaks Σ y α = 0, so categories must change), and the only
unbounded vector of a machine with bias (nothing is left to span). A singular K̃ (equal rows, low
rank) is inverted with its null eigenvalues raised to the tolerance, which gives a vector within the
span of the others S² = 0, as it should.

Vapnik and Chapelle, Bounds on error expectation for support vector machines, Neural Computation 12
(2000); Chapelle, Support vector machines: induction principle, adaptive tuning and prior knowledge
(thesis, 2002), who fits Platt's sigmoid to these outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning, get_lapack_funcs, lu_factor, lu_solve

__all__ = ["span_corrected_outputs", "squared_spans"]

# Distance of α from its bounds below which it is at them, relative to the cost (and to max α).
AT_BOUND = 1e-5
# Reciprocal condition number below which K̃ is taken for singular.
SINGULAR = 1e-12
BLOCK_ROWS = 1024


def span_corrected_outputs(
    decision: Any, y: Any, alpha: Any, K: Any, costs: Any, has_bias: bool = True
) -> np.ndarray:
    """f − y α S² (n,) for the rows one binary C-SVC (L1 slack) was trained on.

    `decision` f, `y` ±1, `alpha` α ≥ 0 and `costs` C_i (or one C) are of the training rows. `K`
    holds the kernel values of the support vectors, K[S, S] with S = flatnonzero(alpha > 0), or has
    a method block(rows, cols) for rows of the training data, as a Gram of them has.
    """
    f, signs = np.asarray(decision, dtype=np.float64), np.asarray(y, dtype=np.float64)
    a = np.asarray(alpha, dtype=np.float64)
    if f.ndim != 1 or f.shape != signs.shape or f.shape != a.shape:
        raise ValueError(
            f"decision, y and alpha of shapes {f.shape}, {signs.shape} and {a.shape} do not fit"
        )
    if not np.isin(signs, (-1.0, 1.0)).all():
        raise ValueError("y has to be -1 or +1")
    return np.asarray(f - signs * a * squared_spans(a, K, costs, has_bias))


def squared_spans(alpha: Any, K: Any, costs: Any, has_bias: bool = True) -> np.ndarray:
    """S² (n,); 0 for rows that keep their output. Arguments as in `span_corrected_outputs`."""
    a = np.asarray(alpha, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(costs, dtype=np.float64), a.shape)
    if not (np.isfinite(a).all() and (a >= 0).all()):
        raise ValueError("alpha has to be finite and >= 0")
    if np.isnan(bound).any() or (bound < 0).any():
        raise ValueError("costs have to be >= 0")
    support = np.flatnonzero(a > 0)
    values = _kernel_of(K, support)
    spans = np.zeros(a.shape)
    if support.size == 0:
        return spans
    a, bound = a[support], bound[support]
    is_bounded = a >= bound * (1 - AT_BOUND)
    counts = a > AT_BOUND * np.minimum(bound, a.max())
    unbounded = np.flatnonzero(~is_bounded & counts)
    bounded = np.flatnonzero(is_bounded)
    if unbounded.size == 0:
        if not has_bias:
            spans[support[bounded]] = np.maximum(_diagonal(values, bounded), 0.0)
        return spans
    inverse = _Inverse(values(unbounded, unbounded), has_bias)
    spans[support[unbounded]] = inverse.own_spans()
    for start in range(0, bounded.size, BLOCK_ROWS):
        rows = bounded[start : start + BLOCK_ROWS]
        found = _diagonal(values, rows) - inverse.projected(values(rows, unbounded))
        spans[support[rows]] = np.maximum(found, 0.0)
    return spans


Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _kernel_of(K: Any, support: np.ndarray) -> Kernel:
    """K(rows, cols) by positions among the support vectors."""
    if hasattr(K, "block"):
        # Gram takes int64 row numbers.
        return lambda rows, cols: np.asarray(
            K.block(support[rows], support[cols]), dtype=np.float64
        )
    matrix = np.asarray(K, dtype=np.float64)
    if matrix.shape != (support.size, support.size):
        raise ValueError(f"K of shape {matrix.shape} for {support.size} support vectors")
    if not np.isfinite(matrix).all():
        raise ValueError("a kernel value is not finite")
    return lambda rows, cols: matrix[np.ix_(rows, cols)]


def _diagonal(values: Kernel, rows: np.ndarray) -> np.ndarray:
    if rows.size == 0:
        return np.empty(0)
    parts = [np.diagonal(values(part, part)) for part in np.array_split(rows, -(-rows.size // 256))]
    return np.concatenate(parts)


class _Inverse:
    """K̃⁻¹, in units in which the mean of K's diagonal is 1."""

    def __init__(self, K: np.ndarray, has_bias: bool) -> None:
        n = len(K)
        self.unit = float(np.abs(np.diagonal(K)).mean()) or 1.0
        self.has_bias = has_bias
        bordered = np.ones((n + has_bias, n + has_bias))
        bordered[:n, :n] = K / self.unit
        if has_bias:
            bordered[n, n] = 0.0
        self.matrix = _inverse(bordered)

    def own_spans(self) -> np.ndarray:
        """1 / (K̃⁻¹)_pp; 0 where that is not a distance (nothing is left to span)."""
        diagonal = np.diagonal(self.matrix)[: len(self.matrix) - self.has_bias]
        floor = 1e-14 * np.abs(self.matrix).max()
        usable = diagonal > floor
        return np.where(usable, self.unit / np.where(usable, diagonal, 1.0), 0.0)

    def projected(self, rows: np.ndarray) -> np.ndarray:
        """vᵀ K̃⁻¹ v for kernel values (m, n_usv) of other vectors."""
        v = rows / self.unit
        if self.has_bias:
            v = np.concatenate((v, np.ones((len(v), 1))), axis=1)
        return np.asarray(self.unit * np.einsum("ij,ij->i", v @ self.matrix, v))


def _inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix; where it is singular, with null eigenvalues raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)  # an exact zero pivot: seen below
        factors = lu_factor(matrix)
    (condition,) = get_lapack_funcs(("gecon",), (matrix,))
    reciprocal, _ = condition(factors[0], np.abs(matrix).sum(axis=0).max(), norm="1")
    if reciprocal > SINGULAR:
        return np.asarray(lu_solve(factors, np.eye(len(matrix))))
    eigenvalues, vectors = np.linalg.eigh(matrix)
    least = SINGULAR * np.abs(eigenvalues).max()
    raised = np.where(np.abs(eigenvalues) < least, least, eigenvalues)
    return np.asarray((vectors / raised) @ vectors.T)
