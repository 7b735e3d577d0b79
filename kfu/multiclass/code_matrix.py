"""What a code matrix has to be, and how far apart its rows are.

``code[k, m]`` in {-1, 0, +1}: the side on which machine m puts class k, 0 where it does not see the
class (the convention of kfu/pairwise.py). A code can be trained and decoded when

- every column has a +1 and a -1 (the machine has two classes to tell apart), and
- every two rows have opposite signs in some column (some machine tells the two classes apart).

The second rule is stricter than "no two rows are equal": rows (+1, 0) and (+1, -1) differ, but only
by a machine that has seen one of the two classes, and its output on the other means nothing.

Distance of rows r, s (Allwein, Schapire and Singer, JMLR 1, 2000): d = Σ_m (1 - M_rm M_sm) / 2, the
Hamming distance in which a column with a zero counts ½; ρ is the smallest over all pairs. In a
code without zeros any ⌊(ρ-1)/2⌋ wrong machines are outvoted by the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kfu.errors import SettingsError

__all__ = ["binary_code", "check_code", "code_distance", "code_fault", "row_distances"]


class CodeFault(NamedTuple):
    """Why a matrix is no code: the rows concerned (empty: none in particular) and the reason."""

    rows: tuple[int, ...]
    found: str
    remedy: str


def binary_code() -> np.ndarray:
    """The code of two classes: one machine, positive for the second."""
    return np.array([[-1], [1]], dtype=np.int8)


def row_distances(code: np.ndarray) -> np.ndarray:
    """d(r, s) of all pairs of rows (n_classes, n_classes).

    The diagonal is half the number of zeros of the row, as the formula has it.
    """
    signs = np.asarray(code, dtype=np.float64)
    return (signs.shape[1] - signs @ signs.T) / 2


def code_distance(code: np.ndarray) -> float:
    """ρ: the smallest distance between two different rows."""
    distances = row_distances(code)
    first, second = np.triu_indices(distances.shape[0], k=1)
    return float(distances[first, second].min())


def code_fault(code: np.ndarray) -> CodeFault | None:
    """The first rule the matrix breaks, None if it keeps both. Entries are in {-1, 0, 1}."""
    positive, negative = (code > 0).astype(np.float32), (code < 0).astype(np.float32)
    both = positive.any(axis=0) & negative.any(axis=0)
    if not both.all():
        column = int(np.argmin(both))
        return CodeFault(
            (),
            f"column {column + 1} of the code has no {'-1' if positive[:, column].any() else '+1'}",
            "give every column a +1 and a -1, for its machine has to tell classes apart",
        )
    opposed = positive @ negative.T
    opposed += opposed.T
    np.fill_diagonal(opposed, 1)
    if opposed.all():
        return None
    first, second = (int(k) for k in np.argwhere(opposed == 0)[0])
    if np.array_equal(code[first], code[second]):
        found = f"rows {first + 1} and {second + 1} of the code are the same"
    else:
        found = f"rows {first + 1} and {second + 1} of the code have opposite signs in no column"
    remedy = "let some machine tell the two classes apart (+1 for one, -1 for the other)"
    return CodeFault((first, second), found, remedy)


def check_code(matrix: object, n_classes: int) -> np.ndarray:
    """The matrix as an int8 code of n_classes rows, or SettingsError."""
    values = np.asarray(matrix)
    if values.ndim != 2 or values.shape[0] != n_classes or values.shape[1] == 0:
        raise SettingsError(
            f"the code has shape {values.shape}; give a matrix with one row for each of the "
            f"{n_classes} classes and one column for each machine"
        )
    if values.dtype.kind not in "biuf" or not np.isin(values, (-1, 0, 1)).all():
        raise SettingsError("the code has entries other than -1, 0 and 1")
    code = values.astype(np.int8)
    fault = code_fault(code)
    if fault is not None:
        raise SettingsError(f"{fault.found}; {fault.remedy}")
    return code
