"""Losses of the margin z = M·f(x) of a binary machine, by which codes are decoded and bounded.

Each is L(z) >= 0 with L(0) = 1, (L(z) + L(-z)) / 2 >= L(0), and L(z) >= L(0) for z < 0: what the
bounds of Allwein, Schapire and Singer ask of a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfu.errors import SettingsError

__all__ = ["LOSSES", "Loss", "loss_named"]

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    """L(z), and its even and odd part: L(z) = even(z) + odd(z), L(-z) = even(z) - odd(z)."""

    name: str
    summary: str
    of: Function
    even: Function
    odd: Function
    at_zero: float = 1.0


LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            "hinge",
            "(1 - z)+, the loss of support vector machines",
            of=lambda z: np.maximum(0.0, 1.0 - z),
            even=lambda z: np.maximum(1.0, 0.5 * (1.0 + np.abs(z))),
            odd=lambda z: -np.sign(z) * np.minimum(np.abs(z), 0.5 * (1.0 + np.abs(z))),
        ),
        Loss(
            "square",
            "(1 - z)^2, the loss of regularised least squares",
            of=lambda z: np.square(1.0 - z),
            even=lambda z: 1.0 + np.square(z),
            odd=lambda z: -2.0 * z,
        ),
        Loss(
            "exponential",
            "exp(-z), the loss of AdaBoost",
            of=lambda z: np.exp(-z),
            even=np.cosh,
            odd=lambda z: -np.sinh(z),
        ),
    )
}


def loss_named(name: str) -> Loss:
    """The loss of a name, or SettingsError."""
    if name not in LOSSES:
        raise SettingsError(f"unknown loss {name!r}; choose {', '.join(LOSSES)}")
    return LOSSES[name]
