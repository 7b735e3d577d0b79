"""Models whose decision values are not Σ c_i K(x_i, x) + b but another function of the same parts.

Their model files hold the training rows as vectors and the rows' class weights as coefficients. A
rule takes the model's vectors, coefficients, kernel and settings, and rows as the kernel sees them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from kfu.model import Model

Rule = Callable[["Model", Any, Any, int], np.ndarray]


def _neighbours(model: Model, vectors: Any, X: Any, threads: int) -> np.ndarray:
    from kfu.baselines import knn_scores

    return knn_scores(
        vectors,
        model.coef,
        model.kernel,
        X,
        neighbours=int(model.settings["neighbours"]),
        weighting=str(model.settings.get("distance_weights", "none")),
        threads=threads,
    )


def _windows(model: Model, vectors: Any, X: Any, threads: int) -> np.ndarray:
    from kfu.baselines import nadaraya_watson_scores

    return nadaraya_watson_scores(vectors, model.coef, model.kernel, X, threads=threads)


SPECIAL_RULES: dict[str, Rule] = {"knn": _neighbours, "nadaraya-watson": _windows}


def special_rule(machine: str) -> Rule | None:
    """The rule of a machine's decision values, None where they are the usual expansion."""
    return SPECIAL_RULES.get(machine)
