"""Least hinge loss over a finite-dimensional class, as a linear programme.

    min_{β, b} Σ w_i [1 − y_i(⟨φ_i, β⟩ + b)]₊                      D + 1 variables, n slacks
    max_a Σ a_i,  0 ≤ a_i ≤ w_i,  Σ a_i y_i φ_i = 0,  Σ a_i y_i = 0       its dual: D + 1 rows

The dual is solved (HiGHS, dual simplex): it has D + 1 rows instead of n, and was faster by 2 to 7
times for D small beside n, and about as fast otherwise (docs/baselines.md). (β, b) are its
multipliers. The hinge loss is then computed from (β, b), so `gap` = loss − Σ a_i certifies the
answer; where it is not small the primal is solved as well and the better of the two kept.

SciPy's interface to HiGHS takes no starting basis, so programmes that differ by one column are each
solved from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

__all__ = ["HingeFit", "least_hinge", "solve_dual", "solve_primal"]

GAP = 1e-6  # relative to the total weight


@dataclass(frozen=True)
class HingeFit:
    """The minimiser, its loss Σ w ξ and how far from the least loss it can be."""

    beta: np.ndarray
    bias: float
    hinge: float
    gap: float


def least_hinge(features: np.ndarray, signs: np.ndarray, weight: np.ndarray) -> HingeFit:
    """Minimise the weighted hinge loss over (β, b); features (n, D), signs ±1, weight > 0.

    The minimiser need not be unique: a vertex of the set of minimisers is returned.
    """
    mean = float(weight.mean())  # the solver's tolerances are absolute
    shares = weight / mean
    design = signs[:, None] * np.column_stack([features, np.ones(len(signs))])
    solution, bound = solve_dual(design, shares)
    hinge = _loss(design, shares, solution)
    if not hinge - bound <= GAP * shares.sum():
        other = solve_primal(design, shares)
        if other is not None and not hinge <= _loss(design, shares, other):
            solution, hinge = other, _loss(design, shares, other)
    if solution is None:
        raise RuntimeError("the linear programme was not solved by HiGHS")
    return HingeFit(
        beta=solution[:-1],
        bias=float(solution[-1]),
        hinge=mean * hinge,
        gap=mean * max(hinge - bound, 0.0),
    )


def solve_dual(design: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray | None, float]:
    """(β, b) and the value of the dual, a lower bound of the loss; (None, 0) on failure."""
    n, width = design.shape
    found: Any = linprog(
        -np.ones(n),
        A_eq=design.T,
        b_eq=np.zeros(width),
        bounds=np.column_stack([np.zeros(n), shares]),
        method="highs-ds",
        options={"presolve": False},  # dense rows: it finds nothing and takes a third of the time
    )
    if found.status != 0:
        return None, 0.0
    return -np.asarray(found.eqlin.marginals), -float(found.fun)


def solve_primal(design: np.ndarray, shares: np.ndarray) -> np.ndarray | None:
    """(β, b) from the programme with slacks; None on failure."""
    n, width = design.shape
    found: Any = linprog(
        np.concatenate([np.zeros(width), shares]),
        A_ub=sp.hstack([sp.csr_matrix(-design), -sp.identity(n)], format="csr"),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * width + [(0.0, None)] * n,
        method="highs",
    )
    return np.asarray(found.x[:width]) if found.status == 0 else None


def _loss(design: np.ndarray, shares: np.ndarray, solution: np.ndarray | None) -> float:
    if solution is None:
        return np.inf
    return float(shares @ np.maximum(1.0 - design @ solution, 0.0))
