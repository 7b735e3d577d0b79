"""The baselines of kfu as estimators: centroids, windows, neighbours, projections.

kfu.baselines has what they compute. The parameters of the kernel are those of `kfu.SVC`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.estimators.base import Kernel
from kfu.estimators.classification import KernelClassifier
from kfu.estimators.rows import seed_of
from kfu.model import Model

__all__ = [
    "KernelCentroid",
    "KernelKNN",
    "KernelProjection",
    "NadarayaWatson",
    "ParzenClassifier",
]


class BaselineClassifier(KernelClassifier):
    """A classifier that `train` fits without the dual solver."""

    def _machine_options(self) -> dict[str, Any]:
        """Keywords of `train` that belong to the machine."""
        return {}

    def _fit_classes(
        self,
        X: Any,
        y: np.ndarray,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        class_weight: dict[Any, float],
    ) -> None:
        options = self._machine_options()
        self._fit_machine(X, y, rows, weights, class_weight=class_weight, **options)


class ShareClassifier(BaselineClassifier):
    """One whose scores are the shares of the classes: probabilities as they are."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """The share of each class (n, n_classes), in the order of ``classes_``."""
        shares = self._decision(X)
        return shares / shares.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


class KernelCentroid(BaselineClassifier):
    """The class of the nearest mean in feature space."""

    def __init__(
        self,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        threads: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )

    def _machine_name(self) -> str:
        return "centroid"


class ParzenClassifier(BaselineClassifier):
    """The class of the highest density, estimated by windows.

    prior: weight of the classes, their share of the data ("data") or "equal".
    """

    def __init__(
        self,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        prior: str = "data",
        threads: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )
        self.prior = prior

    def _machine_name(self) -> str:
        return "parzen"

    def _machine_options(self) -> dict[str, Any]:
        return {"prior": self.prior}


class NadarayaWatson(ShareClassifier):
    """The largest share of the classes among the rows, weighed by the kernel."""

    def __init__(
        self,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        threads: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )

    def _machine_name(self) -> str:
        return "nadaraya-watson"


class KernelKNN(ShareClassifier):
    """Nearest neighbours in feature space.

    neighbours: how many vote; None chooses the number of least leave-one-out error, which is then
    ``neighbours_``. distance_weights: "none", "inverse" or "inverse-squared". Weights of rows are
    weights of their votes: a row of weight two is still one neighbour.
    """

    def __init__(
        self,
        neighbours: int | None = None,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        distance_weights: str = "none",
        threads: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )
        self.neighbours = neighbours
        self.distance_weights = distance_weights

    def _machine_name(self) -> str:
        return "knn"

    def _machine_options(self) -> dict[str, Any]:
        return {"neighbours": self.neighbours, "distance_weights": self.distance_weights}

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every classifier has: neighbours_."""
        super()._take(model, rows)
        self.neighbours_ = int(model.settings["neighbours"])


class KernelProjection(BaselineClassifier):
    """Kernel projection machine: hinge loss on the leading eigenvectors of the kernel matrix.

    dims: how many of them; None chooses by cross-validation, or with `dim_penalty` by the mean
    hinge loss plus dim_penalty times dimension / rows. ``dims_`` has the choice of each machine.
    class_weight, multiclass, decoding: as in `kfu.SVC`, but for the codes that are one machine over
    all classes. random_state: of the folds; None is 0.
    """

    def __init__(
        self,
        dims: int | None = None,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        dim_penalty: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        multiclass: Any = "ava",
        decoding: str | None = None,
        random_state: Any = None,
        threads: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )
        self.dims = dims
        self.dim_penalty = dim_penalty
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.decoding = decoding
        self.random_state = random_state

    def _machine_name(self) -> str:
        return "kpm"

    def _machine_options(self) -> dict[str, Any]:
        return {
            "dims": self.dims,
            "dim_penalty": self.dim_penalty,
            "multiclass": self.multiclass,
            "decoding": self.decoding,
            "seed": seed_of(self.random_state),
        }

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every classifier has: dims_."""
        super()._take(model, rows)
        self.dims_ = np.asarray(model.info["dims"])
