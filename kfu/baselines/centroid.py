"""Centroid classifier in feature space: the nearest class mean wins.

With c_k = (1/W_k) Σ_{i in k} w_i φ(x_i) the mean of class k, the distance of a point to it is

    ‖φ(x) − c_k‖² = K(x,x) − 2⟨φ(x), c_k⟩ + ‖c_k‖²,

so the nearest mean has the largest score f_k(x) = ⟨φ(x), c_k⟩ − ½‖c_k‖², which is a kernel
expansion with coefficients w_i/W_k and bias −½‖c_k‖². For two classes the difference is
f(x) = ⟨φ(x), c₊ − c₋⟩ + ½(‖c₋‖² − ‖c₊‖²). Not the Parzen rule: with equal priors that rule has the
same expansion without the bias.

Leave-one-out is in closed form: with row i of class k left out, ⟨φ(x_i), c_k⟩ and ‖c_k‖² become

    (W_k f − w_i K_ii) / (W_k − w_i)  and  (W_k² ‖c_k‖² − 2 W_k w_i f + w_i² K_ii) / (W_k − w_i)²

with f = ⟨φ(x_i), c_k⟩; a row that is its class alone counts as an error.

Vincent, Modèles à noyaux à structure locale (2003), 5.3.4; Schölkopf and Smola, Learning with
Kernels (2002), 1.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.baselines.rows import (
    Expansion,
    checked_labels,
    checked_rows,
    checked_weights,
    class_coefficients,
    class_totals,
    row_blocks,
    weighted_error,
)
from kfu.kernels import KernelSpec

__all__ = ["kernel_centroid"]


def kernel_centroid(
    X: Any,
    labels: Any,
    kernel: KernelSpec,
    *,
    weight: np.ndarray | None = None,
    n_classes: int | None = None,
    threads: int = 0,
    source: str = "data",
) -> Expansion:
    """Class means in feature space as an expansion; coef (K, n), bias (K,).

    info: train_error, loo_error, squared_norms ‖c_k‖², scatter (mean squared distance of a class to
    its own mean) and squared_distances (K, K) between the means (their maximum mean discrepancy).
    """
    X = checked_rows(X, kernel, source)
    n = X.shape[0]
    labels = checked_labels(labels, n, source)
    weights = checked_weights(weight, n, source)
    coef = class_coefficients(labels, weights, n_classes)
    totals = class_totals(coef, source)
    coef /= totals[:, None]

    gram = Gram(X, kernel, precision="float64", threads=threads)
    inner = np.empty((n, coef.shape[0]))  # ⟨φ(x_i), c_k⟩
    for rows in row_blocks(n, 8 * X.shape[1]):
        inner[rows] = gram.decision(None, coef.T, X[rows])
    products = coef @ inner  # ⟨c_j, c_k⟩
    norms = np.diag(products).copy()
    diagonal = gram.diagonal()
    scores = inner - 0.5 * norms
    return Expansion(
        coef,
        -0.5 * norms,
        {
            "train_error": weighted_error(np.argmax(scores, axis=1) != labels, weights),
            "loo_error": weighted_error(
                _is_wrong_left_out(inner, norms, diagonal, labels, weights, totals), weights
            ),
            "squared_norms": norms.tolist(),
            "scatter": np.maximum(coef @ diagonal - norms, 0.0).tolist(),
            "squared_distances": np.maximum(
                norms[:, None] + norms[None, :] - products - products.T, 0.0
            ).tolist(),
        },
    )


def _is_wrong_left_out(
    inner: np.ndarray,
    norms: np.ndarray,
    diagonal: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    totals: np.ndarray,
) -> np.ndarray:
    """For each row whether the means of the other rows misplace it; see the head."""
    rows = np.arange(labels.size)
    scores = inner - 0.5 * norms
    own, total, w = inner[rows, labels], totals[labels], weights
    rest = total - w
    is_alone = rest <= 1e-12 * total
    rest = np.where(is_alone, 1.0, rest)
    product = (total * own - w * diagonal) / rest
    norm = (total**2 * norms[labels] - 2.0 * total * w * own + w**2 * diagonal) / rest**2
    scores[rows, labels] = np.where(is_alone, -np.inf, product - 0.5 * norm)
    is_wrong: np.ndarray = np.argmax(scores, axis=1) != labels
    return is_wrong
