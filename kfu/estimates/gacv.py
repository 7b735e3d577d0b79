"""Generalised approximate cross-validation of the hinge loss (Wahba, Lin and Zhang 2000).

    (1/n) [Σ (1 − y_p f_p)₊ + 2 Σ_{yf < −1} α_p K(p, p) + Σ_{−1 ≤ yf ≤ 1} α_p K(p, p)]

estimates the mean hinge loss of rows left out, which is never below the error. For a hard margin it
is Σ α_p K(p, p) / n.
"""

from __future__ import annotations

import numpy as np

from kfu.estimates.conditions import all_of, hinge_loss, two_classes, unit_margins
from kfu.estimates.registry import Entry, Found, Options
from kfu.estimates.trained import Trained


def gacv(trained: Trained, options: Options) -> Found:
    (machine,) = trained.binary
    margin = machine.y * machine.plain
    own = machine.alpha * machine.diagonal * np.where(margin < -1.0, 2.0, 1.0)
    losses = np.maximum(0.0, 1.0 - margin) + own
    return Found(float(np.average(losses, weights=trained.task.row_weights[machine.rows])))


GACV = Entry(
    "gacv",
    "generalised approximate cross-validation",
    "estimate",
    "hinge loss of left-out rows",
    "Wahba, Lin and Zhang 2000",
    ("svc",),
    gacv,
    all_of(two_classes, hinge_loss, unit_margins),
)
