"""Is one classifier better than another? Tests on rows, and on repeated splits.

`mcnemar` compares two classifiers on the same test rows: b rows that only the first gets right
against c rows that only the second does; under the hypothesis of equal error rates b is binomial
(b + c, ½). McNemar, Psychometrika 12 (1947).

`corrected_resampled_t_test` compares two methods by the differences d_1 … d_J of a score over J
random splits. Training parts overlap, so the differences are not independent and the plain t-test
rejects far too often; Nadeau and Bengio (*Inference for the generalization error*, Machine Learning
52, 2003) replace the variance of the mean s²/J by

    (1/J + n_test/n_train) s²,      t = mean d / √that,      J − 1 degrees of freedom.

`paired_t_test` is the plain one. On the folds of one cross-validation it has the same fault in a
weaker form (Dietterich, Neural Computation 10, 1998); its result says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from kfu.errors import SettingsError
from kfu.validation.checked import flags, numbers

__all__ = ["Comparison", "corrected_resampled_t_test", "mcnemar", "paired_t_test"]

# With fewer rows than this on which the two differ, "auto" counts instead of approximating.
FEW_DISCORDANT = 25


@dataclass(frozen=True)
class Comparison:
    """What a test found. Positive differences speak for the first of the two."""

    test: str
    statistic: float
    degrees_of_freedom: float | None  #: None where the test has none
    p_value: float  #: two-sided
    mean_difference: float
    low: float  #: interval of the difference at ``confidence``
    high: float
    confidence: float
    note: str = ""

    def summary(self) -> dict[str, Any]:
        """Plain values, for a report."""
        return asdict(self)


# ---- two classifiers on the same rows -------------------------------------------------------


def _exact(b: int, c: int) -> tuple[float, float]:
    return float(min(b, c)), float(min(1.0, 2 * stats.binom.cdf(min(b, c), b + c, 0.5)))


def _mid_p(b: int, c: int) -> tuple[float, float]:
    few = min(b, c)
    tail = stats.binom.cdf(few, b + c, 0.5) - stats.binom.pmf(few, b + c, 0.5) / 2
    return float(few), float(min(1.0, 2 * tail))


def _chi_squared(b: int, c: int) -> tuple[float, float]:
    statistic = max(abs(b - c) - 1, 0) ** 2 / (b + c)
    return statistic, float(stats.chi2.sf(statistic, 1))


# Name -> function of (b, c), not both 0, that gives the statistic and the p-value.
MCNEMAR_METHODS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "exact": _exact,
    "mid-p": _mid_p,
    "chi2": _chi_squared,
}


def mcnemar(
    a_correct: Any, b_correct: Any, method: str = "auto", confidence: float = 0.95
) -> Comparison:
    """Compare two classifiers by whether each of them is right, row by row.

    method: exact (binomial; the statistic is min(b, c)), mid-p (exact less half of the probability
    of what was observed, Fagerland et al. 2013), chi2 (with continuity correction), or auto: exact
    below 25 rows on which the two differ, else chi2. The difference is that of the accuracies; its
    interval is Wald's for paired rows.
    """
    check_confidence(confidence)
    first = flags(a_correct, "a_correct")
    second = flags(b_correct, "b_correct", first.size)
    n = first.size
    if n == 0:
        raise SettingsError("no rows to compare on; give at least one")
    b, c = int(np.sum(first & ~second)), int(np.sum(second & ~first))
    if method == "auto":
        method = "exact" if b + c < FEW_DISCORDANT else "chi2"
    if method not in MCNEMAR_METHODS:
        known = ", ".join(["auto", *MCNEMAR_METHODS])
        raise SettingsError(f"unknown method '{method}' of McNemar's test; choose one of {known}")
    statistic, p_value = MCNEMAR_METHODS[method](b, c) if b + c else (0.0, 1.0)
    difference = (b - c) / n
    half = normal_quantile(confidence) * math.sqrt(max(b + c - (b - c) ** 2 / n, 0.0)) / n
    return Comparison(
        f"McNemar ({method})",
        statistic,
        1.0 if method == "chi2" else None,
        p_value,
        difference,
        max(difference - half, -1.0),
        min(difference + half, 1.0),
        confidence,
        f"{b} rows right by the first alone, {c} by the second alone",
    )


# ---- two methods over many splits -----------------------------------------------------------


def corrected_resampled_t_test(
    differences: Any, n_train: Any, n_test: Any, confidence: float = 0.95
) -> Comparison:
    """The t-test over random splits with the variance that Nadeau and Bengio correct.

    ``differences``: score of the first method less that of the second, one per split. ``n_train``
    and ``n_test``: rows of a training and of a test part; for parts of unequal size one number per
    split, of which the means are used. Repeated k-fold splits are commonly tested the same way.
    """
    sizes = [float(np.mean(numbers(np.atleast_1d(size), "sizes"))) for size in (n_train, n_test)]
    if min(sizes) <= 0:
        raise SettingsError(f"parts of {sizes[0]:g} and {sizes[1]:g} rows; give numbers above 0")
    return t_test("corrected resampled t", differences, sizes[1] / sizes[0], confidence, "")


def paired_t_test(differences: Any, confidence: float = 0.95) -> Comparison:
    """The plain paired t-test. Over the folds of one cross-validation it is too confident."""
    note = (
        "takes the differences as independent; over folds, whose training parts overlap, the "
        "p-value is too small"
    )
    return t_test("paired t", differences, 0.0, confidence, note)


def t_test(
    name: str, differences: Any, correction: float, confidence: float, note: str
) -> Comparison:
    """t with the variance of the mean (1/J + correction) s².

    Differences that are all equal leave no spread to judge by: the statistic is infinite and the
    p-value 0, or 0 and 1 when the differences are 0 themselves.
    """
    check_confidence(confidence)
    d = numbers(differences, "differences")
    if d.size < 2:
        raise SettingsError(f"{d.size} differences; a t-test needs at least 2 splits")
    mean = float(d.mean())
    spread = float(d.std(ddof=1)) if np.ptp(d) > 0 else 0.0
    error = math.sqrt(1 / d.size + correction) * spread
    freedom = float(d.size - 1)
    if error > 0:
        statistic = mean / error
        p_value = float(2 * stats.t.sf(abs(statistic), freedom))
    else:
        statistic = math.copysign(math.inf, mean) if mean != 0 else 0.0
        p_value = 0.0 if mean != 0 else 1.0
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * error
    return Comparison(
        name, statistic, freedom, p_value, mean, mean - half, mean + half, confidence, note
    )


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise SettingsError(f"a confidence of {confidence:g}; give one between 0 and 1, like 0.95")


def normal_quantile(confidence: float) -> float:
    """Half the width of a two-sided normal interval, in standard errors."""
    return float(stats.norm.ppf((1 + confidence) / 2))
