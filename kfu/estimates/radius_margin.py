"""Radius and margin: R²/M² = R²‖w‖², over the number of rows.

For hard margins (squared slack: those of K + diag(1/C)). Without bias R² = max K(x, x), and the
bound follows from Jaakkola and Haussler's, errors ≤ Σ α_p K(p, p) ≤ R² Σ α = R²‖w‖². With a bias R
is the radius of the smallest sphere around the rows; what is proved of a single sample is four
times the value (errors ≤ Σ α_p S_p D with S_p ≤ D = 2R), the value itself bounds expectations.

Its level is useless, its minimum over C and kernel parameters good. radius-variance has the
variance of the rows in place of R² (with and without bias): no bound, but smooth.

Vapnik 1998; Chapelle, Vapnik, Bousquet and Mukherjee 2002.
"""

from __future__ import annotations

import numpy as np

from kfu.estimates.conditions import all_of, no_slack, two_classes, unit_margins
from kfu.estimates.registry import LOO_ERROR, SVC, Entry, Found, Options
from kfu.estimates.sphere import enclosing_sphere, variance
from kfu.estimates.trained import Trained

EXPECTED = "leave-one-out error in expectation"


def radius_margin(trained: Trained, options: Options) -> Found:
    (machine,) = trained.binary
    counted = machine.upper > 0
    if machine.has_bias:
        square = enclosing_sphere(trained, machine).squared_radius
        note = f"R² = {square:.4g}; 4 times the value bounds the error of this sample"
    else:
        square = float(machine.diagonal[counted].max(initial=0.0))
        note = f"R² = {square:.4g}"
    value = square * machine.squared_norm / trained.counted.size
    if value >= 1.0:
        note += "; says nothing of the level (1 or more)"
    of = EXPECTED if machine.has_bias else None
    return Found(value, note, of=of)


def radius_variance(trained: Trained, options: Options) -> Found:
    (machine,) = trained.binary
    square = variance(machine)
    value = square * machine.squared_norm / trained.counted.size
    return Found(value, f"variance {square:.4g} in place of R²: for tuning, not a bound")


def work(trained: Trained) -> float:
    return 20.0 * 1e-9 * trained.task.n**2


def finite_or_wide(trained: Trained) -> str | None:
    """With a bias a box below 1/D² would bind in the argument."""
    if not trained.has_bias or trained.model.n_machines > 1:
        return None
    (machine,) = trained.binary
    far = float(np.max(machine.farthest, initial=0.0))
    if machine.support.size and far * float(machine.upper[machine.support].min()) < 1.0:
        return "with a bias it needs a cost of at least 1/D², D the largest distance between rows"
    return None


RADIUS_MARGIN = Entry(
    "radius-margin",
    "squared radius of the smallest sphere over squared margin",
    "bound",
    LOO_ERROR,
    "Vapnik 1998",
    SVC,
    radius_margin,
    all_of(two_classes, unit_margins, no_slack, finite_or_wide),
    size=work,
)
RADIUS_VARIANCE = Entry(
    "radius-variance",
    "variance over squared margin",
    "estimate",
    "trend of the leave-one-out error",
    "Chapelle 2002, 4.4.2",
    SVC,
    radius_variance,
    all_of(two_classes, unit_margins),
    size=work,
)
