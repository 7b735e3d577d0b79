"""What every estimator shares: the kernel and its data, the call of `train`, fitted attributes.

KernelEstimator has a kernel; SolvedEstimator also the parameters of the dual solver. A subclass
names its machine (`_machine_name`), writes `fit` around `_fit_machine`, reads `model_`, and lists
its parameters in ``__init__``, as scikit-learn wants it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.errors import KfuError
from kfu.estimators.rows import variance
from kfu.kernels import KERNELS, KernelSpec, kernel_name
from kfu.machines import train
from kfu.model import Model
from kfu.sklearn_bridge import BaseEstimator, check_fitted, validate_matrix
from kfu.solvers import SolverSettings

__all__ = ["Kernel", "KernelEstimator", "SolvedEstimator"]

Kernel = str | KernelSpec | Mapping[str, Any] | Callable[..., Any]

BIASES = {True: "free", False: "none", "regularised": "regularised"}


class KernelEstimator(BaseEstimator):
    """A machine over a kernel.

    kernel: a name, a KernelSpec or its dict form, "precomputed" or a function of two matrices;
    degree, gamma, coef0: of the kernels by name; threads: 0 uses all cores.
    """

    model_: Model
    shape_fit_: tuple[int, int]
    _X_fit: Any  # the rows a kernel function is asked about

    def __init__(
        self,
        *,
        kernel: Kernel,
        degree: int,
        gamma: float | str,
        coef0: float,
        threads: int,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._takes_matrix()
        tags.input_tags.pairwise = self._takes_matrix()
        return tags

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, a row for each decision value. Only for a linear kernel."""
        check_fitted(self)
        if self.model_.kernel.name != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self.model_.linear_weights()

    # ---- training --------------------------------------------------------------------------

    def _machine_name(self) -> str:
        """The machine of kfu.machines this estimator trains."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """ValueError for parameters that mean nothing, before anything is trained."""

    def _fit_machine(
        self,
        X: Any,
        y: np.ndarray | None,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        **keywords: Any,
    ) -> None:
        """Train on the given rows of X (None: all), whose targets are y, and keep the model.

        The model changes only when training succeeds. `keywords` are those of `train`.
        """
        try:
            data, kernel = self._training_data(X, rows, weights)
            model = train(
                data,
                y,
                machine=self._machine_name(),
                kernel=kernel,
                sample_weight=weights,
                settings=self._settings(),
                **keywords,
            )
        except KfuError as error:  # scikit-learn's callers expect this kind
            raise ValueError(str(error)) from error
        self.shape_fit_ = X.shape
        self._X_fit = X if callable(self.kernel) else None
        self._take(model, rows)

    def _settings(self) -> SolverSettings:
        return SolverSettings(threads=self.threads)

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Keep a model trained on `rows`; its support then counts rows of the data given to fit.

        Sets: model_, info_, support_, support_vectors_, n_support_, dual_coef_, intercept_,
        fit_status_.
        """
        if rows is not None:
            width = self.shape_fit_[0] if model.is_precomputed else model.n_features
            support = np.where(model.support >= 0, rows[model.support], -1)
            model = replace(model, support=support, n_features=width)
        self.model_ = model
        self.info_ = model.info
        self.support_ = model.support.astype(np.int32)
        self.support_vectors_ = (
            np.empty((0, 0)) if model.support_vectors is None else model.support_vectors
        )
        self.n_support_ = np.array([model.n_sv], dtype=np.int32)
        self.dual_coef_ = model.coef
        self.intercept_ = model.bias
        self.fit_status_ = int(model.info.get("status") != "converged")

    # ---- data and kernel -------------------------------------------------------------------

    def _fit_matrix(self, X: Any) -> Any:
        """X as `fit` takes it."""
        X = validate_matrix(self, X, reset=True, sparse=not self._takes_matrix())
        if self._takes_matrix() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed matrix must be a square matrix, but X has shape {X.shape}"
            )
        return X

    def _checked(self, X: Any) -> Any:
        """X as the model takes it, after `fit`."""
        check_fitted(self)
        X = validate_matrix(self, X, reset=False, sparse=not self._takes_matrix())
        return self._kernel_values(X, self._X_fit) if callable(self.kernel) else X

    def _decision(self, X: Any) -> np.ndarray:
        """Decision values (n, n_machines)."""
        X = self._checked(X)
        return self.model_.decision_function(X, threads=self.threads)

    def _training_data(
        self, X: Any, rows: np.ndarray | None, weights: np.ndarray | None
    ) -> tuple[Any, KernelSpec]:
        """What is trained on, after `rows` are chosen, and its kernel."""
        if callable(self.kernel):
            X = self._kernel_values(X, X)
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

    def _kernel_values(self, X: Any, known: Any) -> np.ndarray:
        """The values of a kernel function."""
        assert callable(self.kernel)
        values = self.kernel(X, known)
        values = np.asarray(values.toarray() if sp.issparse(values) else values, dtype=np.float64)
        shape = (X.shape[0], known.shape[0])
        if values.shape != shape:
            raise ValueError(f"the kernel function returned shape {values.shape}, not {shape}")
        return np.ascontiguousarray(values)

    def _kernel_spec(self, X: Any, weights: np.ndarray | None) -> KernelSpec:
        if isinstance(self.kernel, KernelSpec):
            return self.kernel.resolve(X)
        if isinstance(self.kernel, Mapping):
            return KernelSpec.from_dict(dict(self.kernel)).resolve(X)
        if not isinstance(self.kernel, str):
            raise TypeError(f"kernel must be a name, KernelSpec, dict or function: {self.kernel!r}")
        gamma = self._gamma_value(X, weights)
        offered = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        known = KERNELS[kernel_name(self.kernel)].parameters
        accepted = {name: value for name, value in offered.items() if name in known}
        return KernelSpec.make(self.kernel, **accepted).resolve(X)

    def _gamma_value(self, X: Any, weights: np.ndarray | None) -> float:
        if isinstance(self.gamma, str) and self.gamma == "scale":
            spread = variance(X, weights)
            return 1.0 / (X.shape[1] * spread) if spread > 0 else 1.0
        if isinstance(self.gamma, str) and self.gamma == "auto":
            return 1.0 / X.shape[1]
        if isinstance(self.gamma, str) or not np.isfinite(self.gamma) or self.gamma < 0:
            raise ValueError(
                f"gamma must be 'scale', 'auto' or a number of at least 0, got {self.gamma!r}"
            )
        return float(self.gamma)


class SolvedEstimator(KernelEstimator):
    """A machine trained by a solver of duals.

    tol, shrinking, cache_mib, chunk, solver, precision, polish: see kfu.solvers.SolverSettings;
    max_iter: -1 for the solver's own bound; verbose: a line on stderr for each round.
    """

    # Only of those that list them among their parameters.
    C: float = 1.0
    fit_intercept: bool | str = True
    warm_start: bool = False

    _may_be_hard = False  # whether C = ∞ means a hard margin

    def __init__(
        self,
        *,
        tol: float,
        shrinking: bool,
        cache_mib: float,
        chunk: int,
        solver: str,
        precision: str,
        max_iter: int,
        polish: bool,
        verbose: bool,
        **of_kernel: Any,
    ) -> None:
        super().__init__(**of_kernel)
        self.tol = tol
        self.shrinking = shrinking
        self.cache_mib = cache_mib
        self.chunk = chunk
        self.solver = solver
        self.precision = precision
        self.max_iter = max_iter
        self.polish = polish
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if not self.C > 0 or (np.isinf(self.C) and not self._may_be_hard):
            finite = "" if self._may_be_hard else "finite "
            raise ValueError(f"C must be a positive {finite}number, got {self.C!r}")
        if self.max_iter < -1:
            raise ValueError(f"max_iter must be -1 (automatic) or more, got {self.max_iter!r}")

    def _bias(self) -> str:
        """`fit_intercept` in the words of `train`."""
        asked = self.fit_intercept
        if isinstance(asked, np.bool_):
            asked = bool(asked)
        if not isinstance(asked, (bool, str)) or asked not in BIASES:
            raise ValueError(
                f"fit_intercept must be True, False or 'regularised', got {self.fit_intercept!r}"
            )
        return BIASES[asked]

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

    def _fit_machine(
        self,
        X: Any,
        y: np.ndarray | None,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        *,
        kept: tuple[Any, ...] = (),
        **keywords: Any,
    ) -> None:
        """As above; a warm start also needs `kept` to be, by value, what it was."""
        now = (X.shape, self._machine_name(), *kept)
        if self.warm_start and rows is None and getattr(self, "_trained_as", None) == now:
            keywords["start"] = self.model_
        progress = _print_progress if self.verbose else None
        super()._fit_machine(X, y, rows, weights, progress=progress, **keywords)
        self._trained_as = now

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every estimator has: n_iter_."""
        super()._take(model, rows)
        self.n_iter_ = int(model.info["iterations"])


def _print_progress(state: Any) -> bool:
    sys.stderr.write(
        f"round {state.round}: gap {state.gap:.3g}, {state.n_sv} SVs, {state.seconds:.1f} s\n"
    )
    return False
