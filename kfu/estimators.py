"""Estimators with scikit-learn's conventions over the machines of kfu.

They translate: parameters into a KernelSpec and SolverSettings, labels into classes, a Model into
``support_``, ``dual_coef_`` and the rest. Training and prediction belong to kfu.machines and
kfu.model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import KfuError
from kfu.kernels import KERNELS, KernelSpec, kernel_name
from kfu.machines import train
from kfu.model import Model
from kfu.pairwise import ovr_scores, pack_pairwise, pair_order, support_classes
from kfu.sklearn_bridge import (
    BaseEstimator,
    ClassifierMixin,
    check_fitted,
    check_targets,
    check_weights,
    validate_matrix,
)
from kfu.solvers import SolverSettings

__all__ = ["SVC"]

SHAPES = ("ovr", "ovo")


class SVC(ClassifierMixin, BaseEstimator):
    """C-support vector classification.

    Parameters
    ----------
    C : float, default 1.0
        Cost: multiplies the sum of slacks, as in LIBSVM and scikit-learn.
    kernel : str, KernelSpec, dict or callable, default "rbf"
        A kernel of kfu by name (`kfu.kernels.KERNELS`); a KernelSpec or its dict form, which bring
        their own parameters; "precomputed", X then being the kernel matrix; or a function
        ``kernel(X, Z)`` returning the matrix of kernel values.
    gamma : "scale", "auto" or float, default "scale"
        "scale" is 1 / (n_features · X.var()) as in scikit-learn (with weights, the weighted
        variance: an example of weight two is an example given twice), "auto" is 1 / n_features,
        which the command line and LIBSVM have as default. For kernels by name.
    degree, coef0 : int, float
        Of the kernels by name that have them.
    tol : float, default 1e-3
        Bound on the gap of the maximal violating pair, as LIBSVM's ``-e``.
    class_weight : dict, "balanced" or None
        Multiplies C for each class.
    fit_intercept : bool, default True
        Whether the decision function has a bias.
    shrinking, cache_mib, chunk, solver, precision, threads
        Of the solver, see `kfu.solvers.SolverSettings`; ``threads=0`` uses all cores.
    max_iter : int, default -1
        Bound on the iterations of all binary machines together; -1 for the larger of 10,000,000
        and 100 for each row.
    polish : bool, default True
        Solve problems of at most 512 rows to rounding accuracy, in float64, whatever `tol` says: a
        row of weight two is then a row given twice, to ten digits.
    decision_function_shape : "ovr" or "ovo", default "ovr"
        With more than two classes: one score for each class, whose argmax is the prediction, or
        one value for each pair of classes.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.
    verbose : bool, default False
        A line on stderr for each round of the solver.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel),
    class_weight_, n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in scikit-learn's SVC; vectors are grouped by class.
    model_ : Model
        What ``kfu predict`` reads after ``model_.save(path)``.
    info_ : dict
        The report of training, with the certificates (duality gap, worst KKT violation).

    Notes
    -----
    Equal votes between classes are always decided by the decision values (scikit-learn's
    ``break_ties=True``). Kernel values in prediction are float64.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | KernelSpec | Mapping[str, Any] | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool = True,
        shrinking: bool = True,
        cache_mib: float = 1024.0,
        chunk: int = 0,
        solver: str = "svmfu",
        precision: str = "auto",
        threads: int = 0,
        max_iter: int = -1,
        polish: bool = True,
        decision_function_shape: str = "ovr",
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_mib = cache_mib
        self.chunk = chunk
        self.solver = solver
        self.precision = precision
        self.threads = threads
        self.max_iter = max_iter
        self.polish = polish
        self.decision_function_shape = decision_function_shape
        self.warm_start = warm_start
        self.verbose = verbose

    # ---- scikit-learn's protocol -----------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._takes_matrix()
        tags.input_tags.pairwise = self._takes_matrix()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Train on X (n, n_features), labels y and optional weights, which multiply C.

        Rows of zero or negative weight are left out. Warns when the solver stopped early.
        """
        X = validate_matrix(self, X, reset=True, sparse=not self._takes_matrix())
        y = check_targets(self, X, y)
        self._check_parameters(X)
        rows, weights = _rows_with_weight(X, y, sample_weight)
        kept = y if rows is None else y[rows]
        classes, index = np.unique(kept, return_inverse=True)
        if classes.size < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {classes.size} class"
            )
        start = self._start(X, classes, rows)
        self.classes_ = classes
        self.class_weight_ = self._class_weights(classes, index)
        self.shape_fit_ = X.shape
        labels = _model_labels(classes)
        try:
            data, kernel = self._training_data(X, rows, weights)
            model = train(
                data,
                labels[index],
                kernel=kernel,
                cost=float(self.C),
                class_weight=dict(zip(labels.tolist(), self.class_weight_.tolist(), strict=True)),
                sample_weight=weights,
                bias=bool(self.fit_intercept),
                settings=self._settings(),
                start=start,
                progress=_print_progress if self.verbose else None,
            )
        except KfuError as error:  # scikit-learn's callers expect this kind
            raise ValueError(str(error)) from error
        self._take(model, rows)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values: (n,) for two classes, positive for ``classes_[1]``; otherwise by
        ``decision_function_shape`` (n, n_classes) or, for each pair i < j, positive for i,
        (n, n_classes (n_classes - 1) / 2).
        """
        decision = self._decision(X)
        if self.classes_.size > 2 and self.decision_function_shape == "ovr":
            return ovr_scores(decision, self.model_.code)
        order, sign = self._pairs()
        pairs = decision[:, order] * sign
        return pairs[:, 0] if self.classes_.size == 2 else pairs

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        X = self._checked(X)
        labels: np.ndarray = self.classes_[self.model_.classify(X, threads=self.threads)]
        return labels

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, a row for each decision value. Only for a linear kernel."""
        check_fitted(self)
        if self.model_.kernel.name != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        order, sign = self._pairs()
        return self.model_.linear_weights()[order] * sign[:, None]

    # ---- inside ----------------------------------------------------------------------------

    def _check_parameters(self, X: Any) -> None:
        if self.decision_function_shape not in SHAPES:
            raise ValueError(
                f"decision_function_shape must be one of {SHAPES}, "
                f"got {self.decision_function_shape!r}"
            )
        if not self.C > 0 or not np.isfinite(self.C):
            raise ValueError(f"C must be a positive number, got {self.C!r}")
        if self.max_iter < -1:
            raise ValueError(f"max_iter must be -1 (automatic) or more, got {self.max_iter!r}")
        if self._takes_matrix() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix, but X has shape {X.shape}"
            )

    def _settings(self) -> SolverSettings:
        return SolverSettings(
            solver=self.solver,
            tolerance=float(self.tol),
            cache_mib=self.cache_mib,
            chunk=self.chunk,
            threads=self.threads,
            precision=self.precision,
            shrinking=bool(self.shrinking),
            polish=bool(self.polish),
            max_iterations=max(int(self.max_iter), 0),
        )

    def _kernel_spec(self, X: Any, weights: np.ndarray | None) -> KernelSpec:
        if isinstance(self.kernel, KernelSpec):
            return self.kernel.resolve(X)
        if isinstance(self.kernel, Mapping):
            return KernelSpec.from_dict(dict(self.kernel)).resolve(X)
        if not isinstance(self.kernel, str):
            raise TypeError(f"kernel must be a name, KernelSpec, dict or function: {self.kernel!r}")
        gamma = self._gamma_value(X, weights)
        offered = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        return KernelSpec.make(self.kernel, **_accepted(self.kernel, offered)).resolve(X)

    def _gamma_value(self, X: Any, weights: np.ndarray | None) -> float:
        if self.gamma == "scale":
            variance = _variance(X, weights)
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if isinstance(self.gamma, str) or not np.isfinite(self.gamma) or self.gamma < 0:
            raise ValueError(
                f"gamma must be 'scale', 'auto' or a number of at least 0, got {self.gamma!r}"
            )
        return float(self.gamma)

    def _training_data(
        self, X: Any, rows: np.ndarray | None, weights: np.ndarray | None
    ) -> tuple[Any, KernelSpec]:
        """What is trained on, after `rows` are chosen, and its kernel.

        Sets: _X_fit, for a kernel that is a function.
        """
        if callable(self.kernel):
            self._X_fit = X
            X = self._kernel_values(X)
        if callable(self.kernel) or self._takes_matrix():
            kept = X if rows is None else np.ascontiguousarray(X[np.ix_(rows, rows)])
            return kept, KernelSpec.make("precomputed")
        kept = X if rows is None else X[rows]
        return kept, self._kernel_spec(kept, weights)

    def _takes_matrix(self) -> bool:
        """Whether X is a kernel matrix."""
        kernel = self.kernel
        if isinstance(kernel, Mapping):
            kernel = kernel.get("name", "")
        return (kernel.name if isinstance(kernel, KernelSpec) else kernel) == "precomputed"

    def _kernel_values(self, X: Any) -> np.ndarray:
        assert callable(self.kernel)
        values = self.kernel(X, self._X_fit)
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        shape = (X.shape[0], self._X_fit.shape[0])
        if values.shape != shape:
            raise ValueError(f"the kernel function returned shape {values.shape}, not {shape}")
        return np.ascontiguousarray(values)

    def _class_weights(self, classes: np.ndarray, index: np.ndarray) -> np.ndarray:
        """The factor of C for each class."""
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

    def _start(self, X: Any, classes: np.ndarray, rows: np.ndarray | None) -> Model | None:
        """The previous model, where its support still means rows of X."""
        if not self.warm_start or not hasattr(self, "model_") or rows is not None:
            return None
        same = self.shape_fit_ == X.shape and np.array_equal(self.classes_, classes)
        return self.model_ if same else None

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Set the fitted attributes from the model trained on `rows`.

        Sets: model_, info_, support_, support_vectors_, n_support_, dual_coef_, intercept_,
        n_iter_, fit_status_.
        """
        if rows is not None:
            width = self.shape_fit_[0] if model.is_precomputed else model.n_features
            model = replace(model, support=rows[model.support], n_features=width)
        self.model_ = model
        self.info_ = model.info
        owner = support_classes(model.coef, model.code)
        by_class = np.lexsort((model.support, owner))
        order, sign = self._pairs()
        packed = pack_pairwise(model.coef, model.code, owner)
        self.support_ = model.support[by_class].astype(np.int32)
        self.support_vectors_ = (
            np.empty((0, 0)) if model.support_vectors is None else model.support_vectors[by_class]
        )
        self.n_support_ = np.bincount(owner, minlength=model.n_classes).astype(np.int32)
        self.dual_coef_ = packed[:, by_class] * sign[0]
        self.intercept_ = model.bias[order] * sign
        iterations = model.info.get("iterations_by_machine", model.info.get("iterations", 0))
        self.n_iter_ = np.atleast_1d(iterations)
        self.fit_status_ = int(model.info.get("status") != "converged")

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Machines of the pairs (0,1), (0,2), ... and their signs in scikit-learn's convention:
        two classes, the larger is positive; more, the smaller of each pair."""
        return pair_order(self.model_.code, larger_is_positive=self.model_.n_classes == 2)

    def _checked(self, X: Any) -> Any:
        check_fitted(self)
        X = validate_matrix(self, X, reset=False, sparse=not self._takes_matrix())
        return self._kernel_values(X) if callable(self.kernel) else X

    def _decision(self, X: Any) -> np.ndarray:
        X = self._checked(X)
        return self.model_.decision_function(X, threads=self.threads)


def _accepted(kernel: str, offered: dict[str, Any]) -> dict[str, Any]:
    """Those of the offered parameters that the kernel of this name has."""
    return {k: v for k, v in offered.items() if k in KERNELS[kernel_name(kernel)].parameters}


def _variance(X: Any, weights: np.ndarray | None) -> float:
    """The variance of all entries, a row of weight w counting w times."""
    if weights is None and not sp.issparse(X):
        return float(X.var(dtype=np.float64))
    weights = np.ones(X.shape[0]) if weights is None else weights
    size = weights.sum() * X.shape[1]
    first = weights @ np.asarray(X.sum(axis=1, dtype=np.float64)).reshape(-1) / size
    squares = X.multiply(X) if sp.issparse(X) else np.square(X - first)
    second = weights @ np.asarray(squares.sum(axis=1, dtype=np.float64)).reshape(-1) / size
    return float(second - first**2 if sp.issparse(X) else second)


def _rows_with_weight(
    X: Any, y: np.ndarray, sample_weight: Any
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The rows of positive weight, None for all of them, and their weights."""
    if sample_weight is None:
        return None, None
    weights = check_weights(sample_weight, X)
    rows = np.flatnonzero(weights > 0)
    if rows.size == 0:
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    if rows.size == weights.size:
        return None, weights
    if np.unique(y[rows]).size == 1 < np.unique(y).size:
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class."
        )
    return rows, weights[rows]


def _model_labels(classes: np.ndarray) -> np.ndarray:
    """The labels a model file can hold for these classes: numbers, strings, else their ranks."""
    if classes.dtype.kind in "biuf":
        labels = classes.astype(np.float64)
    elif all(isinstance(label, str) for label in classes.tolist()):
        labels = classes.astype(np.str_)
    else:
        return np.arange(classes.size, dtype=np.float64)
    distinct = np.unique(labels).size == classes.size
    return labels if distinct else np.arange(classes.size, dtype=np.float64)


def _print_progress(state: Any) -> bool:
    sys.stderr.write(
        f"round {state.round}: gap {state.gap:.3g}, {state.n_sv} SVs, {state.seconds:.1f} s\n"
    )
    return False
