"""What the classifiers share: classes, their weights, decision values by class, probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from kfu.errors import ModelError
from kfu.estimators.base import KernelEstimator
from kfu.estimators.rows import model_labels, rows_with_weight
from kfu.model import Model
from kfu.pairwise import pack_pairwise, pair_order, pairs_of
from kfu.sklearn_bridge import (
    ClassifierMixin,
    NotFittedError,
    available_if,
    check_fitted,
    check_targets,
)

__all__ = ["KernelClassifier", "ProbabilityMixin", "binary_sign", "code_key"]

Self = TypeVar("Self", bound="KernelClassifier")


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """A classifier over a kernel: two classes or more, by whatever code the machine has."""

    # Only of those that list them among their parameters.
    class_weight: Mapping[Any, float] | str | None = None
    decision_function_shape: str = "ovr"

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n, n_features), labels y and optional weights, which multiply the costs of
        the rows (the coefficients or votes where there are no costs).

        Rows of zero or negative weight are left out. Warns when the solver stopped early.
        """
        X = self._fit_matrix(X)
        y = check_targets(self, X, y)
        self._check_parameters()
        rows, weights = rows_with_weight(X, sample_weight)
        kept = y if rows is None else y[rows]
        classes, index = np.unique(kept, return_inverse=True)
        if classes.size < 2:
            if np.unique(y).size > 1:
                raise ValueError(
                    "Invalid input - all samples with positive weights belong to the same class."
                )
            raise ValueError(
                f"The number of classes has to be greater than one; got {classes.size} class"
            )
        factors = self._class_weights(classes, index)
        labels = model_labels(classes)
        by_label = dict(zip(labels.tolist(), factors.tolist(), strict=True))
        self._fit_classes(X, labels[index], rows, weights, by_label)
        self.classes_ = classes
        self.class_weight_ = factors
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, positive for ``classes_[1]``; otherwise
        (n, n_classes), one score for each class, the largest of which is the prediction, or with
        ``decision_function_shape="ovo"`` one value for each binary machine: for each pair i < j,
        positive for i, or in the order of the columns of the code.
        """
        decision = self._decision(X)
        model = self.model_
        if model.n_classes == 2:
            if model.n_machines == 1:
                return decision[:, 0] * binary_sign(model.code)
            scores = model.class_scores(decision)
            return scores[:, 1] - scores[:, 0]
        if self.decision_function_shape == "ovr":
            return model.class_scores(decision)
        order, sign = self._machines()
        return decision[:, order] * sign

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        X = self._checked(X)
        labels: np.ndarray = self.classes_[self.model_.classify(X, threads=self.threads)]
        return labels

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, a row for each decision value. Only for a linear kernel."""
        weights = super().coef_
        order, sign = self._machines()
        return weights[order] * sign[:, None]

    # ---- inside ----------------------------------------------------------------------------

    def _fit_classes(
        self,
        X: Any,
        y: np.ndarray,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        class_weight: dict[Any, float],
    ) -> None:
        """Train, with the machine's own options."""
        raise NotImplementedError

    def _class_weights(self, classes: np.ndarray, index: np.ndarray) -> np.ndarray:
        """The factor of each class."""
        if self.class_weight is None:
            return np.ones(classes.size)
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight must be a dict, 'balanced' or None, got {self.class_weight!r}"
                )
            return index.size / (classes.size * np.bincount(index).astype(np.float64))
        factors = np.ones(classes.size)
        for label, factor in self.class_weight.items():
            factors[classes == label] = factor
        return factors

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets what every estimator has; vectors are grouped by class, and one machine for each
        pair of classes has its coefficients in the packed layout of kfu.pairwise."""
        super()._take(model, rows)
        assert model.n_support is not None
        self.n_support_ = model.n_support.astype(np.int32)
        order, sign = self._machines()
        self.intercept_ = model.bias[order] * sign
        if pairs_of(model.code) is None:
            return
        owner = np.repeat(np.arange(model.n_classes), model.n_support)
        shown = np.empty_like(model.coef)
        shown[order] = model.coef[order] * sign[:, None]
        self.dual_coef_ = pack_pairwise(shown, model.code, owner)

    def _machines(self) -> tuple[np.ndarray, np.ndarray]:
        """The order and signs in which machines are shown. Pairs (0,1), (0,2), ... have those of
        scikit-learn: two classes, the larger is positive; more, the smaller of each pair."""
        model = self.model_
        if pairs_of(model.code) is None:
            return np.arange(model.n_machines), np.ones(model.n_machines)
        return pair_order(model.code, larger_is_positive=model.n_classes == 2)


PROBABILITIES = ("sigmoid", "isotonic")


def _gives_probabilities(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError(
            "probabilities are only available with probability=True, 'sigmoid' or 'isotonic'"
        )
    return True


class ProbabilityMixin:
    """`predict_proba`, for a classifier with a parameter `probability`."""

    probability: bool | str = False

    def _calibration(self) -> dict[str, str]:
        """The keyword of `train`, where probabilities are asked for."""
        if self.probability is True:
            return {"probability": "sigmoid"}
        if isinstance(self.probability, str) and self.probability in PROBABILITIES:
            return {"probability": self.probability}
        if self.probability:
            raise ValueError(
                f"probability must be False, True or one of {PROBABILITIES}, "
                f"got {self.probability!r}"
            )
        return {}

    @available_if(_gives_probabilities)
    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """The probability of each class (n, n_classes), in the order of ``classes_``."""
        X = self._checked(X)
        try:
            return np.asarray(self.model_.probabilities(X, threads=self.threads))
        except ModelError as error:
            raise NotFittedError("fitted without probabilities; call 'fit' again") from error

    @available_if(_gives_probabilities)
    def predict_log_proba(self: Any, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        check_fitted(self)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def binary_sign(code: np.ndarray) -> float:
    """What makes the value of the one machine of two classes positive for the larger class."""
    return 1.0 if code[1, 0] > 0 else -1.0


def code_key(multiclass: Any) -> Any:
    """A multiclass code as a value that can be compared."""
    return multiclass if isinstance(multiclass, str) else np.asarray(multiclass).tolist()
