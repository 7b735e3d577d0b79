"""ξα: bounds on error, precision and recall from slack and α (Joachims 2000).

Row p is right without itself unless ρ α_p R² + ξ_p ≥ 1. With a free bias ρ = 2 and R² bounds the
range of the kernel, c ≤ K(x, z) ≤ c + R² over the rows (SVMlight's rule; the form without ξ found
in some texts is that of hard margins). Without one ρ = 1 and R² = K(p, p), which is Jaakkola and
Haussler's. Squared slack: the hard margin of K + diag(1/C), ξ = 0.

With e₊ and e₋ such rows of either class of n₊ and n₋: error ≤ (e₊ + e₋)/n, recall ≥ (n₊ − e₊)/n₊,
precision ≥ (n₊ − e₊) / (n₊ − e₊ + e₋), all of leave-one-out. The larger label is positive.
"""

from __future__ import annotations

import numpy as np

from kfu.data import format_label
from kfu.estimates.conditions import (
    all_of,
    equal_costs,
    signs_decide,
    slack_of,
    stays_unbounded,
    unbounded_vectors,
    unit_margins,
)
from kfu.estimates.registry import LOO_ERROR, SVC, Entry, Found, Options
from kfu.estimates.trained import BinaryMachine, Trained

NOT_NEGATIVE = frozenset({"rbf", "rbf-ard", "laplacian", "rational", "chi2", "intersection"})
MOST_ROWS = 10_000  # whose kernel values are all looked at
BLOCK_ROWS = 512


def kernel_range(machine: BinaryMachine) -> float:
    """R²: the largest value of K̃ less the smallest, or a bound of it where the rows are many."""
    places = np.flatnonzero(machine.upper > 0)
    largest = float(machine.diagonal[places].max(initial=0.0))
    if places.size > MOST_ROWS:
        names = {leaf.name for leaf in machine.kernel.task.kernel.leaves()}
        return largest if names <= NOT_NEGATIVE else 2.0 * largest
    smallest = largest
    for start in range(0, places.size, BLOCK_ROWS):
        part = places[start : start + BLOCK_ROWS]
        smallest = min(smallest, float(machine.block(part, places[start:]).min()))
    return largest - smallest


def possible_errors(machine: BinaryMachine) -> np.ndarray:
    slack = slack_of(machine)
    reach = 2.0 * kernel_range(machine) if machine.has_bias else machine.diagonal
    return (machine.alpha > 0) & (machine.alpha * reach + slack >= machine.target * (1 - 1e-9))


def xi_alpha(trained: Trained, options: Options) -> list[Found]:
    flags = trained.any_machine([possible_errors(machine) for machine in trained.binary])
    flags |= trained.wrong(trained.decision)
    found = [Found(trained.share(flags), flags=flags)]
    if len(trained.task.classes) != 2:
        return found
    weights = trained.task.row_weights
    is_positive = trained.task.labels == 1
    name = f"class {format_label(trained.task.classes[1])}"
    right = float(weights[is_positive & ~flags].sum())
    taken = right + float(weights[~is_positive & flags].sum())
    total = float(weights[is_positive].sum())
    recall, precision = (f"leave-one-out {what}, from below" for what in ("recall", "precision"))
    found.append(Found(right / total, name, suffix="recall", of=recall))
    if taken > 0:
        found.append(Found(right / taken, name, suffix="precision", of=precision))
    else:
        note = f"{name}: no row is sure to be taken for it"
        found.append(Found(None, note, valid=False, suffix="precision", of=precision))
    return found


XI_ALPHA = Entry(
    "xi-alpha",
    "bounds from slack and alpha",
    "bound",
    LOO_ERROR,
    "Joachims 2000",
    SVC,
    xi_alpha,
    all_of(equal_costs, unit_margins, unbounded_vectors, stays_unbounded, signs_decide),
    size=lambda trained: 1e-9 * trained.task.n**2,
)
