"""Support vector regression: ε-SVR and ν-SVR."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from kfu.estimators.base import Kernel, SolvedEstimator
from kfu.estimators.rows import rows_with_weight
from kfu.model import Model
from kfu.sklearn_bridge import RegressorMixin, check_numbers

__all__ = ["SVR", "NuSVR"]

Self = TypeVar("Self", bound="MachineRegressor")


class MachineRegressor(RegressorMixin, SolvedEstimator):
    """f(x) = Σ c_i K(x_i, x) + b, found by the dual solver."""

    def fit(self: Self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on X (n, n_features), numbers y and optional weights, which multiply C.

        Rows of zero or negative weight are left out. Warns when the solver stopped early.
        """
        X = self._fit_matrix(X)
        y = check_numbers(self, X, y)
        self._check_parameters()
        rows, weights = rows_with_weight(X, sample_weight)
        kept = y if rows is None else y[rows]
        self._fit_machine(X, kept, rows, weights, **self._machine_options())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(x) of each row."""
        return np.ascontiguousarray(self._decision(X)[:, 0])

    def _machine_options(self) -> dict[str, Any]:
        """Keywords of `train` that belong to the machine."""
        raise NotImplementedError


class SVR(MachineRegressor):
    """ε-support vector regression.

    Parameters
    ----------
    C : float, default 1.0
        Cost: multiplies the sum of the losses max(0, |f(x) - y| - epsilon).
    epsilon : float, default 0.1
        Half of the width of the tube without loss.
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    fit_intercept : True, False or "regularised", default True
        Whether there is a bias; "regularised" adds ½b² to the objective.
    tol, shrinking, cache_mib, chunk, solver, precision, threads, max_iter, polish, verbose
        Of the solver, as in `kfu.SVC`.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel),
    n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in scikit-learn.
    model_, info_
        The model and the report of training, with its certificates.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        fit_intercept: bool | str = True,
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
        self.C = C
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start

    def _machine_name(self) -> str:
        return "svr"

    def _machine_options(self) -> dict[str, Any]:
        return {"cost": float(self.C), "epsilon": self.epsilon, "bias": self._bias()}


class NuSVR(MachineRegressor):
    """ν-support vector regression: the width of the tube is found.

    Parameters
    ----------
    nu : float, default 0.5
        In (0, 1]: at most this share of the rows are outside of the tube, at least this share are
        support vectors.
    C : float, default 1.0
        Cost: multiplies the sum of the losses and n · nu · epsilon.
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    tol, shrinking, cache_mib, chunk, solver, precision, threads, max_iter, polish, verbose
        Of the solver, as in `kfu.SVC`.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.

    Attributes
    ----------
    epsilon_ : float
        Half of the width of the tube that was found.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel),
    n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in scikit-learn.
    model_, info_
        The model and the report of training, with its certificates.
    """

    def __init__(
        self,
        nu: float = 0.5,
        C: float = 1.0,
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
        self.C = C
        self.warm_start = warm_start

    def _machine_name(self) -> str:
        return "nu-svr"

    def _machine_options(self) -> dict[str, Any]:
        return {"cost": float(self.C), "nu": self.nu}

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every regressor has: epsilon_."""
        super()._take(model, rows)
        self.epsilon_ = float(model.info["epsilon"])
