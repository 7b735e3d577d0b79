"""The width of a window by leave-one-out: γ from a grid, at the cost of one pass over K for each.

Classification counts the errors of the left-out rows; among the γ with the fewest the one with the
smallest log-loss of the Nadaraya–Watson posterior is taken, so flat stretches of the error do not
decide by chance. Regression takes the smallest mean squared error. Then the smallest γ, the widest
window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.baselines.rows import (
    checked_labels,
    checked_rows,
    checked_weights,
    class_coefficients,
    class_totals,
    target_coefficients,
    weighted_error,
)
from kfu.baselines.windows import check_window, class_priors, leave_one_out_quotients
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec, suggest_gamma

__all__ = ["WidthChoice", "default_gammas", "select_width"]

FLOOR = 1e-12  # of a posterior in the log-loss


@dataclass
class WidthChoice:
    """What leave-one-out says about each γ of the grid."""

    kernel: KernelSpec  #: with the chosen γ
    gamma: float
    gammas: np.ndarray  #: the grid, ascending
    loo_error: np.ndarray  #: share of errors, or mean squared error in regression
    loo_log_loss: np.ndarray  #: of the posterior; NaN in regression
    n_unreached: np.ndarray  #: rows that no other window reaches

    def table(self) -> list[dict[str, float]]:
        """One plain row for each γ, for reports."""
        columns = (self.gammas, self.loo_error, self.loo_log_loss, self.n_unreached)
        names = ("gamma", "loo_error", "loo_log_loss", "n_unreached")
        return [
            dict(zip(names, map(float, row), strict=True)) for row in zip(*columns, strict=True)
        ]


def default_gammas(X: Any, kernel: KernelSpec) -> np.ndarray:
    """Powers of 2 from 2⁻⁶ to 2⁹ times 1 / (median squared distance); its root for laplacian."""
    centre = suggest_gamma(X)
    if kernel.name == "laplacian":
        centre = np.sqrt(centre / max(X.shape[1], 1))
    return np.asarray(centre * 2.0 ** np.arange(-6, 10))


def select_width(
    X: Any,
    targets: Any,
    kernel: KernelSpec,
    *,
    gammas: Sequence[float] | np.ndarray | None = None,
    weight: np.ndarray | None = None,
    prior: str | np.ndarray = "data",
    regression: bool = False,
    n_classes: int | None = None,
    threads: int = 0,
    source: str = "data",
) -> WidthChoice:
    """Choose γ of a single kernel by leave-one-out.

    `targets` are class indices, or numbers with regression=True. `prior` as for `parzen`; priors
    other than those of the data weigh each class by π_k/W_k, with W_k that of all rows.
    """
    if kernel.parts or "gamma" not in kernel.params:
        raise SettingsError(f"kernel {kernel.describe()} has no single gamma to choose")
    check_window(kernel)
    X = checked_rows(X, kernel, source)
    n = X.shape[0]
    if n < 2:
        raise SettingsError("leave-one-out needs two rows or more")
    weights = checked_weights(weight, n, source)
    grid = _grid(default_gammas(X, kernel) if gammas is None else gammas)
    if regression:
        rows = target_coefficients(targets, weights)
        goals = np.atleast_2d(np.asarray(targets, dtype=np.float64).T).T
    else:
        labels = checked_labels(targets, n, source)
        coef = class_coefficients(labels, weights, n_classes)
        totals = class_totals(coef, source)
        coef *= (class_priors(prior, totals) / totals * totals.sum())[:, None]
        rows = np.vstack([coef, coef.sum(axis=0)])

    error, loss, unreached = np.empty(grid.size), np.full(grid.size, np.nan), np.empty(grid.size)
    for k, gamma in enumerate(grid):
        spec = kernel.with_params(gamma=_like(kernel, gamma))
        found, unreached[k] = leave_one_out_quotients(X, rows, spec, threads=threads, source=source)
        if regression:
            squares = ((found - goals) ** 2).mean(axis=1)
            error[k] = weights @ squares / weights.sum()
        else:
            error[k] = weighted_error(np.argmax(found, axis=1) != labels, weights)
            own = np.maximum(found[np.arange(n), labels], FLOOR)
            loss[k] = -(weights @ np.log(own)) / weights.sum()
    best = int(np.lexsort((grid, np.zeros(grid.size) if regression else loss, error))[0])
    return WidthChoice(
        kernel=kernel.with_params(gamma=_like(kernel, grid[best])),
        gamma=float(grid[best]),
        gammas=grid,
        loo_error=error,
        loo_log_loss=loss,
        n_unreached=unreached.astype(np.int64),
    )


def _grid(gammas: Sequence[float] | np.ndarray) -> np.ndarray:
    grid = np.unique(np.asarray(gammas, dtype=np.float64))
    if grid.size == 0 or not np.all(np.isfinite(grid)) or grid[0] <= 0.0:
        raise SettingsError("the grid of gamma needs finite numbers greater than 0")
    return grid


def _like(kernel: KernelSpec, gamma: float) -> Any:
    """One γ for each feature where the kernel takes that, with the proportions it has."""
    now = kernel.params["gamma"]
    if not isinstance(now, tuple):
        return float(gamma)
    mean = float(np.mean(now))
    return tuple(float(gamma) * g / mean for g in now)
