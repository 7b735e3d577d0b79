"""What the estimators need of scikit-learn, with a small stand-in where it is not installed.

Everything an estimator takes from scikit-learn comes from here: the base classes, input validation,
the not-fitted error. With scikit-learn installed they are its own, so estimators take part in its
pipelines, searches and checks. Without it the stand-ins below do the same for arrays and sparse
matrices: `get_params`/`set_params` from the signature of ``__init__``, and validation with the same
exceptions. The choice is made once, at import.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

__all__ = [
    "HAS_SKLEARN",
    "BaseEstimator",
    "ClassifierMixin",
    "NotFittedError",
    "OutlierMixin",
    "RegressorMixin",
    "available_if",
    "check_fitted",
    "check_numbers",
    "check_targets",
    "check_weights",
    "validate_matrix",
]

FLOATS = (np.float64, np.float32)


class PlainEstimator:
    """Parameters by the signature of ``__init__``, as scikit-learn's base class has them."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> PlainEstimator:
        known = self._parameter_names()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. "
                    f"Valid parameters are: {known}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = {k: v for k, v in self.get_params().items() if v is not signature[k].default}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


class PlainClassifier:
    """Adds `score`, the mean accuracy."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        hits = cast(Any, self).predict(X) == np.asarray(y)
        return float(np.average(hits, weights=sample_weight))


class PlainRegressor:
    """Adds `score`, the coefficient of determination R² = 1 - Σ (y - f)² / Σ (y - ȳ)²."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        y = np.asarray(y, dtype=np.float64)
        left = np.average(np.square(y - cast(Any, self).predict(X)), weights=sample_weight)
        spread = np.average(
            np.square(y - np.average(y, weights=sample_weight)), weights=sample_weight
        )
        if spread > 0:
            return float(1.0 - left / spread)
        return 1.0 if left == 0 else 0.0


class PlainOutlier:
    """Adds `fit_predict`."""

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> np.ndarray:
        return cast(np.ndarray, cast(Any, self).fit(X, **options).predict(X))


class _PlainAvailable:
    """A method that is there only when `check` holds: AttributeError otherwise."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], bool]) -> None:
        self.method, self.check = method, check
        functools.update_wrapper(cast(Any, self), method)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.method
        if not self.check(instance):
            raise AttributeError(f"no {self.method.__name__} with these parameters")
        return MethodType(self.method, instance)


def _plain_available_if(check: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda method: _PlainAvailable(method, check)


class PlainNotFittedError(ValueError, AttributeError):
    """Predicting before `fit`."""


def _plain_check_fitted(estimator: Any) -> None:
    if not hasattr(estimator, "model_"):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' first."
        )


def _plain_validate_matrix(estimator: Any, X: Any, *, reset: bool, sparse: bool) -> Any:
    if sp.issparse(X):
        if not sparse:
            raise TypeError("Sparse data was passed, but dense data is required.")
        X = sp.csr_matrix(X)
    else:
        X = np.asarray(X)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data.")
    if min(X.shape) == 0:
        raise ValueError(f"Found array with shape {X.shape} while a minimum of 1 is required.")
    if X.dtype not in FLOATS:
        X = X.astype(np.float64)
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError("Input X contains NaN or infinity.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X if sp.issparse(X) else np.ascontiguousarray(X)


def _plain_column(X: Any, y: Any) -> np.ndarray:
    """y as a one-dimensional array, one entry for each row of X."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {y.shape[0]}: inconsistent numbers")
    return y


def _plain_check_targets(X: Any, y: Any) -> np.ndarray:
    y = _plain_column(X, y)
    if y.dtype.kind == "f" and (not np.isfinite(y).all() or np.any(y != np.floor(y))):
        raise ValueError("Unknown label type: continuous or not finite. Labels are classes.")
    return y


def _plain_check_numbers(X: Any, y: Any) -> np.ndarray:
    y = _plain_column(X, y)
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported")
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return y


def _plain_check_weights(weights: Any, X: Any) -> np.ndarray:
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(X.shape[0], float(weights))
    if weights.shape != (X.shape[0],):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(X.shape[0],)}!")
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    return weights


try:
    from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import check_array
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )

    HAS_SKLEARN = True
except ImportError:
    BaseEstimator, ClassifierMixin = PlainEstimator, PlainClassifier
    RegressorMixin, OutlierMixin = PlainRegressor, PlainOutlier
    available_if = _plain_available_if
    NotFittedError = PlainNotFittedError
    HAS_SKLEARN = False


def check_fitted(estimator: Any) -> None:
    """NotFittedError unless `fit` has been called."""
    if HAS_SKLEARN:
        check_is_fitted(estimator, "model_")
    else:
        _plain_check_fitted(estimator)


def validate_matrix(estimator: Any, X: Any, *, reset: bool, sparse: bool = True) -> Any:
    """X as a C-contiguous float array or (if `sparse`) CSR matrix, finite, 2-D, not empty.

    `reset` records ``n_features_in_`` (and the feature names); otherwise X has to match them.
    """
    if not HAS_SKLEARN:
        return _plain_validate_matrix(estimator, X, reset=reset, sparse=sparse)
    accepted = "csr" if sparse else False
    return validate_data(
        estimator, X, reset=reset, accept_sparse=accepted, dtype=FLOATS, order="C", copy=False
    )


def check_targets(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """y as a one-dimensional array of class labels, one for each row of X."""
    if not HAS_SKLEARN:
        return _plain_check_targets(X, y)
    y = _column(estimator, y)
    check_classification_targets(y)
    check_consistent_length(X, y)
    return y


def check_numbers(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """y as a one-dimensional array of finite float64 numbers, one for each row of X."""
    if not HAS_SKLEARN:
        return _plain_check_numbers(X, y)
    y = _column(estimator, y)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=estimator)
    check_consistent_length(X, y)
    return cast(np.ndarray, y)


def _column(estimator: Any, y: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    return cast(np.ndarray, column_or_1d(y, warn=True))


def check_weights(weights: Any, X: Any) -> np.ndarray:
    """Finite float64 weights, one for each row of X."""
    if not HAS_SKLEARN:
        return _plain_check_weights(weights, X)
    return cast(np.ndarray, _check_sample_weight(weights, X, dtype=np.float64))
