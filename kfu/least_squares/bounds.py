"""Bounds: on leave-one-out errors without G, and on the true risk by stability.

Leave-one-out (Rifkin 2002, sections 3.3 and 4.4.1). For a positive semidefinite kernel, *without
bias*, G_ii lies between 1/(K_ii + ridge/w_i) and w_i/ridge, so the leave-one-out output of row i
lies between f_i and f_i − c_i K_ii. A row counts as a possible error when some outputs within these
intervals decode to another class; ties count. The number of possible errors is never below the
number of leave-one-out errors (ridge λℓ held fixed). It is loose, but costs O(n) per machine, where
no diagonal of an inverse is at hand (iterative and low-rank solutions).

Stability (Bousquet and Elisseeff, JMLR 2, 2002). For ℓ independent rows from one distribution, f
minimising (1/ℓ) Σ V(f(x_i), y_i) + λ‖f‖² without weights or bias, κ² ≥ K(x, x) and |y| ≤ Y for all
points that can occur (not only those seen), with probability 1 − δ

    R ≤ R̂ + 2β + (4ℓβ + M) √(ln(1/δ) / 2ℓ),   β = σ²κ² / (2λℓ),

where B = sup V(0, y) bounds |f| ≤ F = κ√(B/λ), σ is the Lipschitz constant of V on [−F, F] and M
its largest value there. For the square loss B = Y², σ = 2(F + Y), M = (F + Y)².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfu.errors import SettingsError
from kfu.least_squares.full_problem import check_ridge
from kfu.multiclass.decoding import check_decoding

__all__ = [
    "STABLE_LOSSES",
    "StabilityBound",
    "binary_loo_bound",
    "code_loo_bound",
    "generalised_cross_validation",
    "loo_interval",
    "multiclass_stability",
    "ova_loo_bound",
    "ramp_loss",
    "stability_bound",
]

ROUNDING = 1e-12  # relative; decisions closer than this count as ties


# -- leave-one-out ------------------------------------------------------------------------------


def loo_interval(
    fitted: np.ndarray, coef: np.ndarray, diagonal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest leave-one-out output (n, t) of each row and machine.

    Valid without bias, for a positive semidefinite kernel; any weights. A row of weight 0 has
    coefficient 0 and an interval of one point, which is right.
    """
    far = fitted - coef * (diagonal if coef.ndim == 1 else diagonal[:, None])
    return np.minimum(fitted, far), np.maximum(fitted, far)


def binary_loo_bound(
    y: np.ndarray, fitted: np.ndarray, coef: np.ndarray, diagonal: np.ndarray
) -> np.ndarray:
    """Rows that may be leave-one-out errors of a binary machine with targets ±1.

    y_i (f_i − c_i K_ii) ≤ 0 or, the same without weights, y_i f_i ≤ K_ii / (K_ii + ridge).
    """
    signs, f, c = (np.asarray(part, dtype=np.float64).reshape(-1) for part in (y, fitted, coef))
    if not np.isin(signs, (-1.0, 1.0)).all():
        raise SettingsError("the bound of a binary machine needs targets -1 and 1")
    low, high = loo_interval(f, c, diagonal)
    worst = np.where(signs > 0, low, -high)
    return worst <= ROUNDING * (np.abs(f) + np.abs(c * diagonal))


def ova_loo_bound(
    labels: np.ndarray, fitted: np.ndarray, coef: np.ndarray, diagonal: np.ndarray
) -> np.ndarray:
    """Rows that may be leave-one-out errors of one-versus-all with the largest output winning.

    Possible iff max_{r≠y} max(f_r, f_r − c_r K_ii) ≥ min(f_y, f_y − c_y K_ii).
    """
    low, high = loo_interval(fitted, coef, diagonal)
    rows = np.arange(len(labels))
    own = low[rows, labels].copy()
    high[rows, labels] = -np.inf
    rival = high.max(axis=1)
    return rival >= own - ROUNDING * (np.abs(own) + np.abs(rival))


def code_loo_bound(
    labels: np.ndarray,
    code: np.ndarray,
    fitted: np.ndarray,
    coef: np.ndarray,
    diagonal: np.ndarray,
    decoding: str = "square",
) -> np.ndarray:
    """Rows that may be leave-one-out errors of any code under a loss-based or Hamming decoding.

    Row i of class y may go to class r iff Σ_m max over the ends of machine m's interval of
    L(M_ym f) − L(M_rm f) ≥ 0. The maximum over the interval is at an end, for the difference is
    monotone in f where M_rm = −M_ym and convex where M_rm = 0; where M_ym = 0 the machine never saw
    the row and its output is exact. (The thesis takes one end per machine for all rivals, which is
    the same for codes without zeros.)
    """
    rule = check_decoding(decoding, code)
    if rule.name == "hamming":
        loss: Callable[[np.ndarray], np.ndarray] = lambda z: (1.0 - np.sign(z)) / 2.0  # noqa: E731
    elif rule.loss is not None:
        loss = rule.loss.of
    elif rule.name == "argmax":
        if code.shape == (2, 1):
            return binary_loo_bound(code[labels, 0], fitted, coef, diagonal)
        order = np.argmax(code, axis=1)  # the machine of each class
        return ova_loo_bound(labels, fitted[:, order], coef[:, order], diagonal)
    else:
        raise SettingsError(
            f"no bound is known for decoding {rule.name}; choose square, hinge, exponential, "
            "hamming or argmax"
        )
    signs = code.astype(np.float64)
    own = signs[labels]
    possible = np.zeros(len(labels), dtype=bool)
    low, high = loo_interval(fitted, np.where(own != 0, coef, 0.0), diagonal)
    slack = ROUNDING * (1.0 + np.abs(low) + np.abs(high))  # a sign may hang on the last bit
    ends = low - slack, high + slack
    with np.errstate(over="ignore", invalid="ignore"):  # e^(-z); what is not below 0 is possible
        own_losses = [loss(own * f) for f in ends]
        for rival, row in enumerate(signs):
            differences = [mine - loss(row * f) for mine, f in zip(own_losses, ends, strict=True)]
            worst = np.where(row == own, 0.0, np.maximum(*differences))
            ahead = worst.sum(axis=1) < -ROUNDING * (1.0 + np.abs(worst).sum(axis=1))
            possible |= ~ahead & (labels != rival)
    return possible


def generalised_cross_validation(
    residual: np.ndarray, degrees: float, weight: np.ndarray | None = None
) -> float:
    """(1/n) Σ w_i r_i² / (1 − df/n)², summed over columns; df = tr H (Spectrum has it).

    Condition: df < n; otherwise infinite.
    """
    values = np.asarray(residual, dtype=np.float64).reshape(len(residual), -1)
    weights = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    n = np.count_nonzero(weights)
    free = 1.0 - degrees / n
    return math.inf if free <= 0 else float(weights @ (values**2).sum(axis=1) / n / free**2)


# -- stability ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StableLoss:
    """B = sup V(0, y), and from F, the bound on |f|, and Y ≥ |y| the constants σ and M."""

    at_zero: Callable[[float], float]
    lipschitz: Callable[[float, float], float]
    largest: Callable[[float, float], float]


STABLE_LOSSES: dict[str, StableLoss] = {
    "square": StableLoss(lambda Y: Y * Y, lambda F, Y: 2 * (F + Y), lambda F, Y: (F + Y) ** 2),
    "absolute": StableLoss(lambda Y: Y, lambda F, Y: 1.0, lambda F, Y: F + Y),
    # (|f − y| − ε)+ is below |f − y|, whatever ε
    "epsilon-insensitive": StableLoss(lambda Y: Y, lambda F, Y: 1.0, lambda F, Y: F + Y),
    "hinge": StableLoss(lambda Y: 1.0, lambda F, Y: 1.0, lambda F, Y: 1.0 + F),
}


@dataclass(frozen=True)
class StabilityBound:
    """R ≤ `value` = empirical risk + 2β + (4ℓβ + M)√(ln(1/δ)/2ℓ) with probability 1 − δ.

    beta: by how much a loss may change when one row is replaced. output_bound: F ≥ |f|.
    `conditions` says what has to hold. A value above M (1 for a ramp) says nothing.
    """

    value: float
    empirical: float
    beta: float
    output_bound: float
    lipschitz: float
    loss_bound: float
    conditions: tuple[str, ...]

    @property
    def is_vacuous(self) -> bool:
        return self.value >= self.loss_bound


CONDITIONS = (
    "the rows are independent draws from one distribution",
    "kappa² is at least K(x, x), and target_bound at least |y|, of every point that can occur",
    "no free bias and no row weights",
    "kernel and ridge were fixed before the rows were seen",
)


def stability_bound(
    empirical: float,
    ridge: float,
    n: int,
    kappa: float,
    *,
    target_bound: float = 1.0,
    loss: str = "square",
    delta: float = 0.05,
) -> StabilityBound:
    """The bound of a machine trained with ridge = λn on n rows, from its mean training loss.

    `kappa` ≥ √K(x, x): 1 for rbf; `target_bound` ≥ |y|: 1 for ±1.
    """
    ridge = check_ridge(ridge)
    if loss not in STABLE_LOSSES:
        raise SettingsError(f"loss is {loss!r}; choose {', '.join(STABLE_LOSSES)}")
    _check_common(n, kappa, target_bound, delta)
    rule = STABLE_LOSSES[loss]
    output_bound = kappa * math.sqrt(rule.at_zero(target_bound) * n / ridge)
    sigma = rule.lipschitz(output_bound, target_bound)
    largest = rule.largest(output_bound, target_bound)
    beta = sigma**2 * kappa**2 / (2.0 * ridge)
    value = _risk(empirical, beta, largest, n, delta)
    return StabilityBound(value, empirical, beta, output_bound, sigma, largest, CONDITIONS)


def ramp_loss(
    decision: np.ndarray, labels: np.ndarray, code: np.ndarray, gamma: float, loss: str = "square"
) -> np.ndarray:
    """V_γ of each row: 0 where its class is ahead by γ in summed loss, 1 where it is not ahead.

    clip(1 + (L_y − min_{r≠y} L_r) / γ, 0, 1), the ramp on [−γ, 0], which is above the 0/1 loss of
    loss-based decoding.
    """
    from kfu.multiclass.decoding import class_scores

    if not (math.isfinite(gamma) and gamma > 0):
        raise SettingsError(f"gamma is {gamma!r}; give a finite number above 0")
    losses = -class_scores(decision, code, loss)
    rows = np.arange(len(labels))
    own = losses[rows, labels].copy()
    losses[rows, labels] = np.inf
    return np.clip(1.0 + (own - losses.min(axis=1)) / gamma, 0.0, 1.0)


def multiclass_stability(
    empirical: float, beta: float, code: np.ndarray, n: int, gamma: float, delta: float = 0.05
) -> StabilityBound:
    """The 0/1 risk of a code of stable machines: R ≤ R̂_γ + 4Gβ/γ + (8ℓGβ/γ + 1)√(ln(1/δ)/2ℓ).

    `empirical` is the mean of `ramp_loss`, `beta` that of one binary machine (stability_bound), G
    the most columns in which two rows of the code differ (2 for one-versus-all). Condition besides
    those of stability_bound: no zeros in the code, loss-based decoding with the machines' loss.
    """
    signs = np.asarray(code)
    if not signs.all():
        raise SettingsError("the stability bound is known for codes without zeros only")
    _check_common(n, 1.0, 1.0, delta)
    if not (math.isfinite(gamma) and gamma > 0):
        raise SettingsError(f"gamma is {gamma!r}; give a finite number above 0")
    differing = int((signs[:, None, :] != signs[None, :, :]).sum(axis=2).max())
    of_code = 2.0 * differing * beta / gamma
    value = _risk(empirical, of_code, 1.0, n, delta)
    conditions = (*CONDITIONS, "loss-based decoding with the loss of the machines")
    return StabilityBound(value, empirical, of_code, math.nan, 1.0 / gamma, 1.0, conditions)


def _risk(empirical: float, beta: float, largest: float, n: int, delta: float) -> float:
    deviation = math.sqrt(math.log(1.0 / delta) / (2.0 * n))
    return empirical + 2.0 * beta + (4.0 * n * beta + largest) * deviation


def _check_common(n: int, kappa: float, target_bound: float, delta: float) -> None:
    if n < 1:
        raise SettingsError(f"{n} rows; a bound needs at least one")
    if not (math.isfinite(kappa) and kappa >= 0 and math.isfinite(target_bound)):
        raise SettingsError("kappa and target_bound are finite numbers from 0")
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"delta is {delta!r}; give a probability between 0 and 1")
