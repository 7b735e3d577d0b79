"""Many classes by least squares: one factorisation, and exact leave-one-out decisions for any code.

A code without zeros trains every machine on the same rows, so that all share the factor of K +
ridge. Because the solution is linear in the targets, the machine of column m is M-weighted sum of
the K machines of the 0/1 class indicators,

    f_m = Σ_j M_jm f^j,   with a free bias too, and leave-one-out outputs likewise,

so a code of any length costs what min(K, columns) right-hand sides cost (Rifkin 2002, section 4.5).
Decoding the exact leave-one-out outputs gives the exact leave-one-out decisions.

A zero in the code leaves the rows of a class out of a machine, and such a machine needs the factor
of its own rows. Columns that leave out the same classes share it. The leave-one-out output of a row
that a machine does not see is its plain output. Cost: Σ (rows seen)³ · 2/3 over the different sets
of classes; one-versus-one with K classes of equal size comes to 4/K of one full factorisation, a
sparse random code of F columns (half of them zero) to about F/8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.full import solve_full
from kfu.multiclass.code_matrix import check_code
from kfu.multiclass.decoding import check_decoding, decode

__all__ = ["CodeSolution", "class_indicators", "solve_code"]


@dataclass(frozen=True)
class CodeSolution:
    """The machines of a code, one column each.

    coef (n, F), bias (F,), fitted (n, F); loo: exact leave-one-out outputs (n, F) and loo_classes
    (n,) their decoding, both None where not asked for. loo_error is the share of rows of positive
    weight, weighted, whose leave-one-out decision is not their class.
    """

    coef: np.ndarray
    bias: np.ndarray
    fitted: np.ndarray
    loo: np.ndarray | None
    loo_classes: np.ndarray | None
    loo_error: float | None
    diagonal: np.ndarray
    info: dict[str, Any] = field(default_factory=dict)


def class_indicators(labels: Any, n_classes: int) -> np.ndarray:
    """(n, n_classes), 1 where the row is of the class. DataError for labels out of range."""
    classes = np.asarray(labels)
    if classes.ndim != 1 or classes.dtype.kind not in "iu":
        found = f"class indices of shape {classes.shape} and type {classes.dtype}"
        raise DataError("data", None, found, "give one integer from 0 for each row")
    if classes.size and not (classes.min() >= 0 and classes.max() < n_classes):
        row = int(np.argmax((classes < 0) | (classes >= n_classes)))
        found = f"class {classes[row]} of row {row + 1}"
        raise DataError("data", None, found, f"the code has classes 0 to {n_classes - 1}")
    return (classes[:, None] == np.arange(n_classes)).astype(np.float64)


def solve_code(
    X: Any,
    labels: Any,
    code: Any,
    kernel: KernelSpec,
    ridge: float,
    *,
    decoding: str = "square",
    weight: Any = None,
    bias: bool = False,
    threads: int = 0,
    precision: str = "auto",
    loo: bool = True,
) -> CodeSolution:
    """Train the machines of a code (K, F) on class indices 0..K-1.

    `ridge` is λℓ and the same for every machine, however many rows it sees. For the rest see
    `solve_full`.
    """
    matrix = check_code(code, len(np.asarray(code)))
    check_decoding(decoding, matrix)
    indicators = class_indicators(labels, matrix.shape[0])
    classes = np.asarray(labels)
    weights = np.ones(classes.size) if weight is None else np.asarray(weight, dtype=np.float64)
    if weights.shape != classes.shape:
        found = f"weights of shape {weights.shape} for {classes.size} rows"
        raise DataError("data", None, found, "give one weight for each row")
    n, n_machines = classes.size, matrix.shape[1]
    out = {name: np.zeros((n, n_machines)) for name in ("coef", "fitted", "loo")}
    biases = np.zeros(n_machines)
    diagonal = np.zeros(n)
    parts = []
    patterns, which = np.unique(matrix != 0, axis=1, return_inverse=True)
    for number, seen in enumerate(patterns.T):
        columns = np.flatnonzero(which.ravel() == number)
        signs = matrix[:, columns].astype(np.float64)
        through_classes = seen.sum() < columns.size
        targets = indicators[:, seen] if through_classes else indicators @ signs
        solution = solve_full(
            X,
            targets,
            kernel,
            ridge,
            weight=np.where(seen[classes], weights, 0.0),
            bias=bias,
            threads=threads,
            precision=precision,
            loo=loo,
        )
        mix = signs[seen] if through_classes else np.eye(columns.size)
        out["coef"][:, columns] = solution.coef @ mix
        out["fitted"][:, columns] = solution.fitted @ mix
        if solution.loo is not None:
            out["loo"][:, columns] = solution.loo @ mix
        biases[columns] = solution.bias @ mix
        diagonal = solution.diagonal
        parts.append(solution.info)
    info = {"factorisations": len(parts), "parts": parts, "decoding": decoding, "ridge": ridge}
    if not loo:
        return CodeSolution(out["coef"], biases, out["fitted"], None, None, None, diagonal, info)
    if not np.isfinite(out["loo"]).all():
        raise SettingsError(
            "a machine of the code sees one row only, without which its bias is undetermined; "
            "leave the bias or the leave-one-out outputs out"
        )
    decided = decode(out["loo"], matrix, decoding)
    error = float(weights @ (decided != classes) / weights.sum())
    return CodeSolution(
        out["coef"], biases, out["fitted"], out["loo"], decided, error, diagonal, info
    )
