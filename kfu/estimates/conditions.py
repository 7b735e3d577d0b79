"""Conditions of theorems, as functions that say why one does not hold (None where it does)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kfu.estimates.trained import BinaryMachine, Trained
from kfu.machine_kinds import CLASSIFIER

Condition = Callable[[Trained], str | None]


def all_of(*conditions: Condition) -> Condition:
    """The first reason that one of the conditions gives."""

    def check(trained: Trained) -> str | None:
        reasons = (condition(trained) for condition in conditions)
        return next((reason for reason in reasons if reason is not None), None)

    return check


def without_bias(trained: Trained) -> str | None:
    return "holds without a free bias (--no-bias, --regularised-bias)" if trained.has_bias else None


def two_classes(trained: Trained) -> str | None:
    if trained.kind == CLASSIFIER and trained.model.n_machines > 1:
        return f"known for two classes, one machine; this one has {trained.model.n_machines}"
    return None


def signs_decide(trained: Trained) -> str | None:
    if trained.signs_decide:
        return None
    return (
        "a wrong class is possible with every binary machine right under this code and decoding; "
        "use ova, ava or a code without zeros and Hamming decoding"
    )


def hinge_loss(trained: Trained) -> str | None:
    return "holds for the hinge loss (svc)" if trained.machine == "svc2" else None


def equal_costs(trained: Trained) -> str | None:
    """With a bias, α may have to be moved between rows: their boxes have to be alike."""
    if not trained.has_bias:
        return None
    for machine in trained.binary:
        upper = machine.upper[machine.upper > 0]
        if upper.size and upper.max() > upper.min() * (1 + 1e-9):
            return "with a free bias it holds for equal costs only (no weights, no margins)"
    return None


def unit_margins(trained: Trained) -> str | None:
    is_unit = all(np.all(machine.target == 1.0) for machine in trained.binary)
    return None if is_unit else "holds for margins of 1 (without --margins)"


def hard_margin(trained: Trained) -> str | None:
    """Slack is squared, C = ∞, or no box binds: the solution is that of a hard margin."""
    for machine in trained.binary:
        if machine.categories[1].size:
            return "holds for hard margins (svc2, C = inf, or no support vector at its bound)"
    return None


def unbounded_vectors(trained: Trained) -> str | None:
    for machine in trained.binary:
        if machine.has_bias and machine.support.size and machine.categories[0].size == 0:
            return "no support vector is unbounded: the bias is not determined by the margins"
    return None


def stays_unbounded(trained: Trained) -> str | None:
    """With a bias, machines without a row need an unbounded vector, or their bias is an interval of
    which theorems know one end. Not to be told without training them; but it is to be feared where
    all rows of a class, or all but one, are at their bound."""
    for machine in trained.binary:
        if not machine.has_bias:
            continue
        full = np.zeros(machine.rows.size, dtype=bool)
        full[machine.categories[1]] = True
        for sign in (1.0, -1.0):
            side = (machine.y == sign) & (machine.upper > 0)
            if np.count_nonzero(full[side]) >= np.count_nonzero(side) - 1:
                return (
                    "the rows of a class are all at their bound, or all but one: machines without "
                    "a row may have no unbounded vector, which the theorem needs"
                )
    return None


def no_slack(trained: Trained) -> str | None:
    """Margins are kept by all rows."""
    for machine in trained.binary:
        allowed = 2.0 * trained.task.settings.tolerance
        worst = float(machine.slack.max(initial=0.0))
        if not np.any(machine.ridge) and worst > allowed:
            return f"holds where every row keeps its margin; the largest slack here is {worst:.3g}"
    return None


def slack_of(machine: BinaryMachine) -> np.ndarray:
    """ξ of support vectors; others have none but for the accuracy of training."""
    return np.where(machine.alpha > 0, machine.slack, 0.0)
