"""Novelty detection: the one-class support vector machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.estimators.base import Kernel, SolvedEstimator
from kfu.estimators.rows import rows_with_weight
from kfu.model import Model
from kfu.sklearn_bridge import OutlierMixin

__all__ = ["OneClassSVM"]


class OneClassSVM(OutlierMixin, SolvedEstimator):
    """Where most of the data lie.

    Parameters
    ----------
    nu : float, default 0.5
        In (0, 1]: at most this share of the rows are outside, at least this share are support
        vectors.
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    tol, shrinking, cache_mib, chunk, solver, precision, threads, max_iter, polish, verbose
        Of the solver, as in `kfu.SVC`.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.

    Attributes
    ----------
    offset_ : float
        ρ: decision_function(X) = score_samples(X) - offset_; intercept_ is -offset_.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel),
    n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in scikit-learn.
    model_, info_
        The model and the report of training, with its certificates.
    """

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        shrinking: bool = True,
        cache_mib: float = 1024.0,
        chunk: int = 0,
        solver: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        max_iter: int = -1,
        polish: bool = True,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            shrinking=shrinking,
            cache_mib=cache_mib,
            chunk=chunk,
            solver=solver,
            precision=precision,
            threads=threads,
            max_iter=max_iter,
            polish=polish,
            verbose=verbose,
        )
        self.nu = nu
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Train on X (n, n_features) and optional weights; y is not used.

        Rows of zero or negative weight are left out. Warns when the solver stopped early.
        """
        X = self._fit_matrix(X)
        self._check_parameters()
        rows, weights = rows_with_weight(X, sample_weight)
        self._fit_machine(X, None, rows, weights, nu=self.nu)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Σ α_i K(x_i, x) - ρ (n,): positive inside."""
        return np.ascontiguousarray(self._decision(X)[:, 0])

    def score_samples(self, X: Any) -> np.ndarray:
        """Σ α_i K(x_i, x) (n,)."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside (a positive decision value), -1 for the others."""
        X = self._checked(X)
        inside = self.model_.classify(X, threads=self.threads)
        return np.where(inside == 1, 1, -1)

    def _machine_name(self) -> str:
        return "one-class"

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every estimator has: offset_."""
        super()._take(model, rows)
        self.offset_ = -float(model.bias[0])
