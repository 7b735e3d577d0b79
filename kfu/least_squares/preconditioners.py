"""Preconditioners of K + ridge·W⁻¹: approximate inverses that make conjugate gradients short.

`none`        M = I
`diagonal`    M = diag(K) + ridge·W⁻¹
low rank      M = R Rᵀ + ridge·W⁻¹,  K ≈ R Rᵀ of rank r by an incomplete Cholesky factorisation

The factorisation takes pivots S in blocks. With D = diag(K − RRᵀ) and E = K(:, S) − R R(S, :)ᵀ,

    E(S, :) = L Lᵀ,   R ← [R, E L⁻ᵀ],   D ← D − Σ (E L⁻ᵀ)²,

so that RRᵀ is always the Nyström approximation K(:, S) K(S, S)⁻¹ K(S, :) of the pivots so far.
They differ in how the next ones are chosen (PIVOTS): the largest entry of D, one at a time
(`greedy`; Fine and Scheinberg 2001), drawn in proportion to D (`random`; Chen, Epperly, Tropp and
Webber 2023), or all rows alike (`uniform`, the Nyström method). The drawn ones are near the best
approximation of their rank and not led astray by outliers as the greedy ones are.

M⁻¹ by Woodbury's formula, from the QR factorisation of the tall matrix, which squares nothing:

    [√W R; √ridge I] = [Q₁; Q₂] T,     M⁻¹ = √W (I − Q₁Q₁ᵀ) √W / ridge.

An iteration's share of this is 4nr operations, against n² kernel values for the product.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from kfu.errors import DataError, SettingsError
from kfu.least_squares.kernel_products import KernelOperator
from kfu.least_squares.memory import available_bytes, require_memory

__all__ = [
    "PIVOTS",
    "PRECONDITIONERS",
    "IncompleteCholesky",
    "Preconditioner",
    "chosen_rank",
    "incomplete_cholesky",
    "make_preconditioner",
]

PIVOT_BLOCK = 64
SMALLEST_PIVOT = 1e-13  # of a pivot, relative to the largest diagonal entry of K
MEMORY_SHARE = 0.25  # of what is available, for the low-rank factor
COPIES = 3  # of an n × r matrix at the worst moment
RANK_PER_ROOT = 3.0  # default rank in √n

# --------------------------------------------------------------------------- choice of pivots

PivotRule = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def _greedy(remaining: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([int(np.argmax(remaining))])


def _random(remaining: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.choice(len(remaining), size=count, p=remaining / remaining.sum())
    return np.unique(drawn)


def _uniform(remaining: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    candidates = np.flatnonzero(remaining > 0.0)
    return np.sort(rng.choice(candidates, size=min(count, len(candidates)), replace=False))


PIVOTS: dict[str, PivotRule] = {"random": _random, "greedy": _greedy, "uniform": _uniform}


@dataclass
class IncompleteCholesky:
    """K ≈ R Rᵀ: R (n, rank), the rows taken as pivots and trace(K − RRᵀ)/trace(K)."""

    factor: np.ndarray
    pivots: np.ndarray
    trace_left: float


def incomplete_cholesky(
    operator: KernelOperator, rank: int, *, pivots: str = "random", seed: int = 0
) -> IncompleteCholesky:
    """R of at most `rank` columns; fewer where K is of lower rank, to rounding."""
    if pivots not in PIVOTS:
        raise SettingsError(f"pivots is {pivots!r}; known: {', '.join(PIVOTS)}")
    n = operator.n
    if not 1 <= rank <= n:
        raise SettingsError(f"rank is {rank!r}; a number from 1 to the number of rows, {n}")
    require_memory(8.0 * n * rank, f"a factor of rank {rank}", "choose a smaller rank")
    rng = np.random.default_rng(seed)
    diagonal = operator.kernel_diagonal()
    if not np.isfinite(diagonal).all() or diagonal.min(initial=0.0) < 0.0:
        worst = float(diagonal[np.argmin(np.where(np.isfinite(diagonal), diagonal, -math.inf))])
        raise DataError(
            "<kernel>",
            None,
            f"K(i, i) = {worst:g} for some row",
            "a positive semidefinite kernel is needed; check its parameters and the data's scale",
        )
    least = SMALLEST_PIVOT * float(diagonal.max(initial=0.0))
    remaining = np.where(diagonal > least, diagonal, 0.0)
    factor = np.zeros((n, rank), order="F")
    taken: list[int] = []
    while len(taken) < rank and remaining.any():
        count = min(PIVOT_BLOCK, rank - len(taken))
        block = PIVOTS[pivots](remaining, count, rng)
        k = len(taken)
        E = operator.columns(block)
        if k:
            E = E - factor[:, :k] @ factor[block, :k].T
        kept, L = _factorised(E[block], least)
        remaining[block] = 0.0  # those not kept are combinations of the others, to rounding
        if not kept.size:
            continue
        new = scipy.linalg.solve_triangular(L, E[:, kept].T, lower=True, check_finite=False).T
        factor[:, k : k + len(kept)] = new
        taken.extend(int(i) for i in block[kept])
        remaining -= np.einsum("ij,ij->i", new, new)
        remaining[remaining <= least] = 0.0
        remaining[taken] = 0.0
    trace = float(diagonal.sum())
    k = len(taken)
    left = trace - float(np.einsum("ij,ij->", factor[:, :k], factor[:, :k]))
    share = max(left, 0.0) / trace if trace > 0.0 else 0.0
    return IncompleteCholesky(factor[:, :k], np.array(taken, dtype=np.int64), share)


def _factorised(square: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Pivoted Cholesky of a small block: the rows kept, in order, and their lower factor."""
    size = len(square)
    lapack_factor, order, found, _ = scipy.linalg.lapack.dpstrf(
        np.asfortranarray(square), lower=1, tol=max(least, 1e-14 * np.abs(square).max(initial=0.0))
    )
    found = min(int(found), size)
    if square.max(initial=0.0) <= least:
        found = 0
    return order[:found] - 1, np.tril(lapack_factor[:found, :found])


# --------------------------------------------------------------------------- preconditioners


@dataclass
class Preconditioner:
    """R ↦ M⁻¹R for an (n, t) array, or None for the identity; what it took, in `info`."""

    apply: Callable[[np.ndarray], np.ndarray] | None
    info: dict[str, Any] = field(default_factory=dict)


def chosen_rank(n: int) -> int:
    """The rank used when none is given: 3√n, less where memory is short."""
    wanted = min(n, math.ceil(RANK_PER_ROOT * math.sqrt(n)))
    available = available_bytes()
    if available is not None:
        wanted = min(wanted, int(MEMORY_SHARE * available / (8.0 * COPIES * max(n, 1))))
    return max(1, wanted)


def _none(operator: KernelOperator, rank: int | None, seed: int) -> Preconditioner:
    return Preconditioner(None)


def _diagonal(operator: KernelOperator, rank: int | None, seed: int) -> Preconditioner:
    diagonal = operator.kernel_diagonal() + operator.shift
    if not (np.isfinite(diagonal).all() and diagonal.min(initial=1.0) > 0.0):
        raise DataError(
            "<kernel>",
            None,
            f"the diagonal of the matrix falls to {diagonal.min():g}",
            "a positive semidefinite kernel is needed, or a larger ridge",
        )
    inverse = (1.0 / diagonal)[:, None]
    return Preconditioner(lambda R: inverse * R)


def _low_rank(pivots: str) -> Callable[[KernelOperator, int | None, int], Preconditioner]:
    def make(operator: KernelOperator, rank: int | None, seed: int) -> Preconditioner:
        if operator.ridge <= 0.0:
            raise SettingsError("a preconditioner of low rank needs a ridge > 0")
        rank = chosen_rank(operator.n) if rank is None else rank
        require_memory(
            8.0 * COPIES * operator.n * rank, f"a preconditioner of rank {rank}", "lower the rank"
        )
        found = incomplete_cholesky(operator, rank, pivots=pivots, seed=seed)
        root = None if operator.weight is None else np.sqrt(operator.weight)[:, None]
        Q = _upper_part(found.factor if root is None else root * found.factor, operator.ridge)
        info = {"rank": int(found.factor.shape[1]), "trace_left": found.trace_left}
        return Preconditioner(lambda R: _woodbury(Q, root, operator.ridge, R), info)

    return make


def _upper_part(factor: np.ndarray, ridge: float) -> np.ndarray:
    """Q₁ of the QR factorisation of [factor; √ridge I]."""
    n, r = factor.shape
    tall = np.zeros((n + r, r), order="F")
    tall[:n] = factor
    np.fill_diagonal(tall[n:], math.sqrt(ridge))
    Q, _ = scipy.linalg.qr(tall, mode="economic", overwrite_a=True, check_finite=False)
    return Q[:n]


def _woodbury(Q: np.ndarray, root: np.ndarray | None, ridge: float, R: np.ndarray) -> np.ndarray:
    scaled = R if root is None else root * R
    out = (scaled - Q @ (Q.T @ scaled)) / ridge
    if root is not None:
        out *= root
    return np.ascontiguousarray(out)


PRECONDITIONERS: dict[str, Callable[[KernelOperator, int | None, int], Preconditioner]] = {
    "none": _none,
    "diagonal": _diagonal,
    "random-pivots": _low_rank("random"),
    "pivoted-cholesky": _low_rank("greedy"),
    "nystrom": _low_rank("uniform"),
}


def make_preconditioner(
    name: str, operator: KernelOperator, *, rank: int | None = None, seed: int = 0
) -> Preconditioner:
    """The preconditioner `name` of PRECONDITIONERS for `operator`.

    `rank` (at most n) and `seed` are for those of low rank; rank = None takes `chosen_rank(n)`.
    """
    if name not in PRECONDITIONERS:
        known = ", ".join(PRECONDITIONERS)
        raise SettingsError(f"preconditioner is {name!r}; known: {known}")
    if rank is not None and not 1 <= rank <= operator.n:
        raise SettingsError(
            f"rank is {rank!r}; a number from 1 to the number of rows, {operator.n}"
        )
    began = time.perf_counter()
    made = PRECONDITIONERS[name](operator, rank, seed)
    made.info.update(preconditioner=name, seconds=time.perf_counter() - began)
    return made
