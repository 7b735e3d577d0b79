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

Slack in squares (svc2) is the hard margin of K + diag(1/C): with the ridges r all vectors are
unbounded, the spans are of K + diag(r), and the output they correct is that of the same kernel,
f + y α r; the row left out meets no ridge, so the result is the plain output. Smoothing adds
η Σ λ²/α to the squared distance, so that spans do not jump where the set of vectors changes
(Chapelle, 4.4.4): D = η/α is added to the diagonal, and taken off S_p² again.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.calibration.span_matrix import SpanMatrix

__all__ = ["Spans", "find_spans", "span_corrected_outputs", "squared_spans"]

# Distance of α from its bounds below which it is at them, relative to the cost (and to max α).
AT_BOUND = 1e-5
BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Spans:
    """S² (n,) of the training rows, 0 for those that keep their output, and how they were found.

    unbounded, bounded: rows of either category. is_singular: null eigenvalues were raised.
    is_indefinite: the kernel has negative eigenvalues, and spans are no distances.
    """

    squared: np.ndarray
    unbounded: np.ndarray
    bounded: np.ndarray
    is_singular: bool = False
    is_indefinite: bool = False


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
    return find_spans(alpha, K, costs, has_bias).squared


def find_spans(
    alpha: Any,
    K: Any,
    costs: Any,
    has_bias: bool = True,
    *,
    ridge: np.ndarray | None = None,
    eta: float = 0.0,
) -> Spans:
    """The spans of rows with α ≥ 0 and box `costs`; `ridge` (n,) and `eta` as above."""
    a = np.asarray(alpha, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(costs, dtype=np.float64), a.shape)
    if not (np.isfinite(a).all() and (a >= 0).all()):
        raise ValueError("alpha has to be finite and >= 0")
    if np.isnan(bound).any() or (bound < 0).any():
        raise ValueError("costs have to be >= 0")
    support = np.flatnonzero(a > 0)
    values = _kernel_of(K, support)
    spans = np.zeros(a.shape)
    free, full = categories(a[support], bound[support])
    rows_free, rows_full = support[free], support[full]
    added = np.zeros(free.size) if ridge is None else ridge[rows_free]
    own = np.zeros(full.size) if ridge is None else ridge[rows_full]
    if free.size == 0:
        if full.size and not has_bias:
            spans[rows_full] = np.maximum(_diagonal(values, full) + own, 0.0)
        return Spans(spans, rows_free, rows_full)
    smoothing = eta / a[rows_free]
    matrix = SpanMatrix(values(free, free), has_bias, added + smoothing)
    spans[rows_free] = np.maximum(matrix.own_spans() - smoothing, 0.0)
    for start in range(0, full.size, BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        found = _diagonal(values, full[part]) - matrix.projected(values(full[part], free))
        spans[rows_full[part]] = np.maximum(found + own[part], 0.0)
    return Spans(spans, rows_free, rows_full, matrix.is_singular, matrix.is_indefinite)


def categories(alpha: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the unbounded and of the bounded among support vectors (α > 0)."""
    if alpha.size == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    is_bounded = alpha >= bound * (1 - AT_BOUND)
    counts = alpha > AT_BOUND * np.minimum(bound, alpha.max())
    return np.flatnonzero(~is_bounded & counts), np.flatnonzero(is_bounded)


Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _kernel_of(K: Any, support: np.ndarray) -> Kernel:
    """K(rows, cols) by positions among the support vectors: arrays that may be overwritten."""
    if hasattr(K, "block"):
        # Gram takes int64 row numbers.
        return lambda rows, cols: np.require(
            K.block(support[rows], support[cols]), np.float64, ["C", "W"]
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
