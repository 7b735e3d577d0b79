"""Windows: the Parzen classifier, and the Nadaraya–Watson estimator of posteriors and regression.

A kernel that is nowhere negative is a window around each training row. With row weights w_i,

    Parzen            f_k(x) = π_k (1/W_k) Σ_{i in k} w_i K(x_i, x)       an expansion, bias 0
    Nadaraya–Watson   p_k(x) = Σ_{i in k} w_i K(x_i, x) / Σ_i w_i K(x_i, x)
    regression        f(x)   = Σ_i w_i y_i K(x_i, x) / Σ_i w_i K(x_i, x)

W_k is the total weight of class k and π_k its prior: W_k/W ("data"), equal, or given. With the
priors of the data both rules choose the same class; Nadaraya–Watson also gives the posterior.

Where no window reaches, the quotient is 0/0. For the exponential kernels (rbf, rbf-ard, laplacian,
chi2) sums that underflow are formed from log K_γ = s·log K_{γ/s}, less the largest of the row, so
far from the data the nearest row decides, as it does in the limit. Where that fails as well, and
for other kernels, the answer is the weighted mean of the targets (the prior of the classes); the
rows are counted and a warning tells how many. A Parzen score there is 0 for every class.

Leave-one-out takes each row's own window out of its sums before they are formed. Taking it off
afterwards would lose every row whose neighbours' windows are smaller than the rounding of its own.

Parzen, Ann. Math. Stat. 33 (1962); Nadaraya, Theory Probab. Appl. 9 (1964); Watson, Sankhyā A 26
(1964).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu._gram import Gram
from kfu.baselines.rows import (
    Expansion,
    checked_labels,
    checked_new_rows,
    checked_rows,
    checked_weights,
    class_coefficients,
    class_totals,
    expansion_scores,
    row_blocks,
    weighted_error,
)
from kfu.data import Matrix
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec

__all__ = [
    "check_window",
    "class_priors",
    "leave_one_out_sums",
    "nadaraya_watson_regression",
    "nadaraya_watson_scores",
    "parzen",
    "quotients",
]

# Kernels that are never negative on the data they are defined on.
WINDOWS = ("rbf", "rbf-ard", "laplacian", "rational", "chi2", "intersection")
# Those with log K_γ = s · log K_{γ/s}; their sums are formed in logarithms where they underflow.
EXPONENTIAL = ("rbf", "rbf-ard", "laplacian", "chi2")
STRETCH = 1024.0
# Sums below this share of the total weight have lost terms to underflow.
TINY = 1e-200


def check_window(kernel: KernelSpec) -> None:
    """SettingsError unless the kernel is never negative, so that its values can be weights.

    Precomputed kernels are let through; their values are looked at when they are used.
    """
    for leaf in kernel.leaves():
        is_even_power = leaf.name.startswith("poly") and leaf.params["degree"] % 2 == 0
        if not (leaf.name in WINDOWS or is_even_power or leaf.is_precomputed):
            raise SettingsError(
                f"kernel {leaf.name} can be negative, and windows cannot; "
                f"choose one of {', '.join(WINDOWS)}"
            )


# ---- Parzen ------------------------------------------------------------------------------------


def parzen(
    X: Any,
    labels: Any,
    kernel: KernelSpec,
    *,
    weight: np.ndarray | None = None,
    prior: str | np.ndarray = "data",
    n_classes: int | None = None,
    threads: int = 0,
    source: str = "data",
) -> Expansion:
    """The Parzen classifier as an expansion, coef (K, n) and bias 0.

    `prior` is "data" (shares of the weight), "equal", or one number for each class. info: prior,
    loo_error (a row that no other window reaches is an error), n_unreached (their number).
    """
    check_window(kernel)
    X = checked_rows(X, kernel, source)
    labels = checked_labels(labels, X.shape[0], source)
    weights = checked_weights(weight, X.shape[0], source)
    coef = class_coefficients(labels, weights, n_classes)
    totals = class_totals(coef, source)
    priors = class_priors(prior, totals)
    sums = leave_one_out_sums(X, coef, kernel, threads=threads, source=source)
    left = np.tile(totals, (labels.size, 1))
    if not isinstance(prior, str) or prior != "data":
        left[np.arange(labels.size), labels] -= weights
    is_empty = left <= 1e-12 * totals
    scores = np.where(is_empty, 0.0, priors * sums / np.where(is_empty, 1.0, left))
    is_unreached = scores.max(axis=1) <= 0.0
    is_wrong = (np.argmax(scores, axis=1) != labels) | is_unreached
    return Expansion(
        coef * (priors / totals)[:, None],
        np.zeros(coef.shape[0]),
        {
            "prior": priors.tolist(),
            "loo_error": weighted_error(is_wrong, weights),
            "n_unreached": int(np.count_nonzero(is_unreached)),
        },
    )


def class_priors(prior: str | np.ndarray, totals: np.ndarray) -> np.ndarray:
    """π, summing to 1, from the option `prior` and the total weight of each class."""
    rules: dict[str, Callable[[], np.ndarray]] = {
        "data": lambda: totals / totals.sum(),
        "equal": lambda: np.full(totals.size, 1.0 / totals.size),
    }
    if isinstance(prior, str):
        if prior not in rules:
            raise SettingsError(f"prior is {prior!r}; give data, equal or a number for each class")
        return rules[prior]()
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != totals.shape:
        raise SettingsError(f"{values.size} priors for {totals.size} classes")
    if not np.all(np.isfinite(values)) or np.any(values < 0.0) or values.sum() <= 0.0:
        raise SettingsError("priors are finite, not negative and not all 0")
    return values / values.sum()


# ---- Nadaraya–Watson ---------------------------------------------------------------------------


def nadaraya_watson_scores(
    vectors: Matrix | None,
    coef: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    *,
    threads: int = 0,
) -> np.ndarray:
    """Posterior of each class (n, K) for the rows of X; rows sum to 1.

    `vectors` are the training rows and `coef` their class coefficients (K, n_vectors), see
    kfu.baselines.rows. For a precomputed kernel X holds the kernel values with the vectors.
    """
    if np.any(coef < 0.0):
        raise SettingsError("class coefficients are row weights, and one of them is negative")
    return _estimates(vectors, coef, coef.sum(axis=0), kernel, X, threads)


def nadaraya_watson_regression(
    vectors: Matrix | None,
    coef: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    *,
    threads: int = 0,
) -> np.ndarray:
    """Kernel regression (n, outputs); `coef` is that of `target_coefficients`."""
    return _estimates(vectors, coef[:-1], coef[-1], kernel, X, threads)


def _estimates(
    vectors: Matrix | None,
    parts: np.ndarray,
    weights: np.ndarray,
    kernel: KernelSpec,
    X: Any,
    threads: int,
) -> np.ndarray:
    """Σ parts K / Σ weights K, guarded."""
    check_window(kernel)
    X = checked_new_rows(X, weights.size, None if vectors is None else vectors.shape[1], kernel)
    if kernel.is_precomputed:
        _check_values(X.data if sp.issparse(X) else X, "X")
    rows = np.vstack([parts, weights])
    sums = expansion_scores(vectors, rows, kernel, X, threads=threads)

    def logarithms(chosen: np.ndarray) -> np.ndarray | None:
        return _log_values(vectors, kernel, X[chosen], threads)

    return quotients(sums, rows, logarithms)[0]


def quotients(
    sums: np.ndarray,
    rows: np.ndarray,
    logarithms: Callable[[np.ndarray], np.ndarray | None],
) -> tuple[np.ndarray, int]:
    """The quotients of the sums (n, outputs + 1) by their last column, and how many had to guess.

    `rows` are the coefficients of the sums, the weights last; `logarithms(rows of X)` gives
    log K (those rows, n_vectors), −inf for what is to be left out, or None where it is not known.
    """
    weights = rows[-1]
    total = weights.sum()
    if total <= 0.0:
        raise DataError("weights", None, "every weight is 0", "give some row a positive weight")
    parts, below = sums[:, :-1].copy(), sums[:, -1].copy()
    small = np.flatnonzero(~(below > TINY * total))
    for block in row_blocks(small.size, 16 * weights.size):
        chosen = small[block]
        logs = logarithms(chosen)
        if logs is None:
            below[chosen] = np.where(below[chosen] > 0.0, below[chosen], 0.0)
            continue
        logs[:, weights <= 0.0] = -np.inf
        top = logs.max(axis=1)
        reached = np.isfinite(top)
        windows = np.exp(logs[reached] - top[reached, None])
        parts[chosen[reached]] = windows @ rows[:-1].T
        below[chosen] = 0.0
        below[chosen[reached]] = windows @ weights
    is_unreached = ~(below > 0.0)
    count = int(np.count_nonzero(is_unreached))
    if count:
        parts[is_unreached] = rows[:-1].sum(axis=1)
        below[is_unreached] = total
        warnings.warn(
            f"{count} of {len(sums)} rows are out of reach of every window (γ too large?); they "
            "get the mean of the training rows",
            UserWarning,
            stacklevel=4,
        )
    return parts / below[:, None], count


def _log_values(
    vectors: Matrix | None, kernel: KernelSpec, X: Any, threads: int
) -> np.ndarray | None:
    """log K(x, vectors) (rows of X, n_vectors), without the kernel's weight; None if unknown."""
    if kernel.parts or kernel.name not in EXPONENTIAL:
        return None
    gamma = kernel.params["gamma"]
    narrow = tuple(g / STRETCH for g in gamma) if isinstance(gamma, tuple) else gamma / STRETCH
    wide = KernelSpec.make(kernel.name, **{**kernel.params, "gamma": narrow})
    values = Gram(vectors, wide, precision="float64", threads=threads).cross(X).T
    with np.errstate(divide="ignore"):
        return np.asarray(STRETCH * np.log(values))


# ---- leave-one-out -----------------------------------------------------------------------------


def leave_one_out_sums(
    X: Matrix, rows: np.ndarray, kernel: KernelSpec, *, threads: int = 0, source: str = "data"
) -> np.ndarray:
    """Σ_{j≠i} rows[k, j] K(x_j, x_i) for every row i of X: (n, K)."""
    check_window(kernel)
    n = X.shape[0]
    gram = Gram(X, kernel, precision="float64", threads=threads)
    sums = np.empty((n, rows.shape[0]))
    for block in row_blocks(n, 8 * n):
        members = np.arange(block.start, block.stop)
        values = gram.block(members, None)
        if kernel.is_precomputed:
            _check_values(values, source)
        values[members - block.start, members] = 0.0
        sums[block] = values @ rows.T
    return sums


def leave_one_out_quotients(
    X: Matrix, rows: np.ndarray, kernel: KernelSpec, *, threads: int = 0, source: str = "data"
) -> tuple[np.ndarray, int]:
    """The Nadaraya–Watson estimate of each row from the others, and how many are out of reach.

    `rows` are coefficients with the weights last, as for `quotients`.
    """
    sums = leave_one_out_sums(X, rows, kernel, threads=threads, source=source)

    def logarithms(chosen: np.ndarray) -> np.ndarray | None:
        logs = _log_values(X, kernel, X[chosen], threads)
        if logs is not None:
            logs[np.arange(chosen.size), chosen] = -np.inf
        return logs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return quotients(sums, rows, logarithms)


def _check_values(values: np.ndarray, source: str) -> None:
    if values.min(initial=0.0) < 0.0:
        raise DataError(
            source, None, "a negative kernel value, and windows cannot be", "give another kernel"
        )
