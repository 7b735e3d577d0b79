"""Regularised least squares: RLS (regression) and RLSC (classification)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.estimators.base import BIASES, Kernel, KernelEstimator
from kfu.estimators.classification import KernelClassifier
from kfu.estimators.rows import rows_with_weight, seed_of
from kfu.model import Model
from kfu.multiclass.decoding import decode
from kfu.sklearn_bridge import RegressorMixin, check_numbers

__all__ = ["RLS", "RLSC"]


class LeastSquaresMixin(KernelEstimator):
    """The parameters of the ridge and of low rank, and the leave-one-out outputs."""

    def __init__(
        self,
        *,
        ridge: float | str | None,
        lam: float | str | None,
        fit_intercept: bool,
        loo: str,
        method: str,
        prune: float | None,
        approximation: str,
        centres: int | None,
        centres_by: str,
        random_state: Any,
        **of_kernel: Any,
    ) -> None:
        super().__init__(**of_kernel)
        self.ridge = ridge
        self.lam = lam
        self.fit_intercept = fit_intercept
        self.loo = loo
        self.method = method
        self.prune = prune
        self.approximation = approximation
        self.centres = centres
        self.centres_by = centres_by
        self.random_state = random_state

    def _least_squares_options(self) -> dict[str, Any]:
        return {
            "ridge": self.ridge,
            "lam": self.lam,
            "bias": BIASES[bool(self.fit_intercept)],
            "loo": self.loo,
            "method": self.method,
            "prune": self.prune,
            "approximation": self.approximation,
            "centres": self.centres,
            "centres_by": self.centres_by,
            "seed": seed_of(self.random_state),
        }

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what every estimator has: ridge_, loo_predictions_ (NaN for rows that were
        left out of the training)."""
        outputs = model.loo
        super()._take(model, rows)
        self.ridge_ = float(model.info["ridge"])
        self.loo_predictions_: np.ndarray | None = None
        if outputs is None:
            return
        full = outputs
        if rows is not None:
            full = np.full((self.shape_fit_[0], outputs.shape[1]), np.nan)
            full[rows] = outputs
        self.loo_predictions_ = full[:, 0] if full.shape[1] == 1 else full


class RLS(RegressorMixin, LeastSquaresMixin):
    """Regularised least squares regression: (K + ridge I) c = y.

    Parameters
    ----------
    ridge : float, "auto" or None, default None
        The regularisation λℓ, ℓ the number of rows. None and "auto" choose it by exact
        leave-one-out.
    lam : float, "auto" or None, default None
        The regularisation λ; give this or `ridge`.
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    fit_intercept : bool, default False
        Whether there is a free bias (least squares SVM).
    loo : "auto", "always" or "never", default "auto"
        Whether exact leave-one-out figures are computed. "auto": of `approximation="rectangle"`
        where they cost little beside the training or the ridge is chosen by them, of the full and
        the linear kernel always.
    method : str, default "auto"
        How the equations of the full kernel are solved: "cholesky", "cg" (conjugate gradients,
        which store no matrix), with the linear kernel also "primal", "dual", "eig" or "svd".
        "auto" is "cg" where the matrix does not fit into memory.
    prune : float or None, default None
        With `fit_intercept`: drop this share of the rows, those of the smallest coefficients, and
        train again, as long as the leave-one-out error does not grow.
    approximation : "none", "rectangle", "subset", "nystrom", "falkon" or "bagging", default "none"
        Low rank in place of the full kernel matrix.
    centres : int or None, default None
        Centres of the approximation; None takes 1000.
    centres_by : "random", "kmeans++", "leverage", "ic" or "kmeans", default "random"
        How they are chosen.
    random_state : int, RandomState or None, default None
        Of the choice of centres.
    threads : int, default 0
        0 uses all cores.

    Attributes
    ----------
    ridge_ : float
        λℓ, as given or chosen.
    loo_predictions_ : array (n,) or None
        Output of each row by the machine trained without it, exactly; None for low rank, "cg" and
        `loo="never"`.
    support_, support_vectors_, dual_coef_, intercept_, model_, info_
        As in `kfu.SVR`.
    """

    def __init__(
        self,
        ridge: float | str | None = None,
        *,
        lam: float | str | None = None,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = False,
        loo: str = "auto",
        method: str = "auto",
        prune: float | None = None,
        approximation: str = "none",
        centres: int | None = None,
        centres_by: str = "random",
        random_state: Any = None,
        threads: int = 0,
    ) -> None:
        super().__init__(
            ridge=ridge,
            lam=lam,
            fit_intercept=fit_intercept,
            loo=loo,
            method=method,
            prune=prune,
            approximation=approximation,
            centres=centres,
            centres_by=centres_by,
            random_state=random_state,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RLS:
        """Train on X (n, n_features), numbers y and optional weights of the squared errors."""
        X = self._fit_matrix(X)
        y = check_numbers(self, X, y)
        rows, weights = rows_with_weight(X, sample_weight)
        kept = y if rows is None else y[rows]
        self._fit_machine(X, kept, rows, weights, **self._least_squares_options())
        return self

    def predict(self, X: Any) -> np.ndarray:
        """f(x) of each row."""
        return np.ascontiguousarray(self._decision(X)[:, 0])

    def _machine_name(self) -> str:
        return "rls"


class RLSC(LeastSquaresMixin, KernelClassifier):
    """Regularised least squares classification: targets ±1 by a code, one factorisation for all.

    Parameters
    ----------
    ridge, lam, kernel, degree, gamma, coef0, fit_intercept, loo, method, prune, approximation,
    centres, centres_by, random_state, threads
        As in `kfu.RLS`.
    lam_by : "squares" or "errors", default "squares"
        What a ridge that is not given makes least, exactly by leave-one-out: the mean square of
        the residuals, or the share of rows put into a wrong class (of equal ones the mean square).
    class_weight : dict, "balanced" or None, default None
        Factors of the squared errors by class.
    multiclass : str or matrix, default "ova"
        The code of more than two classes, as in `kfu.SVC`.
    decoding : str or None, default None
        How outputs become a class.

    Attributes
    ----------
    classes_ : array
        The labels.
    loo_predictions_ : array (n,), or (n, n_machines) for more than two classes, or None
        Outputs of each row by the machines trained without it, exactly.
    loo_labels_ : array (n,) or None
        Their classes.
    loo_error_ : float or None
        The share of rows whose class they miss.
    ridge_, support_, support_vectors_, dual_coef_, intercept_, model_, info_
        As in `kfu.RLS`.
    """

    def __init__(
        self,
        ridge: float | str | None = None,
        *,
        lam: float | str | None = None,
        lam_by: str = "squares",
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        class_weight: Any = None,
        multiclass: Any = "ova",
        decoding: str | None = None,
        fit_intercept: bool = False,
        loo: str = "auto",
        method: str = "auto",
        prune: float | None = None,
        approximation: str = "none",
        centres: int | None = None,
        centres_by: str = "random",
        random_state: Any = None,
        threads: int = 0,
    ) -> None:
        super().__init__(
            ridge=ridge,
            lam=lam,
            fit_intercept=fit_intercept,
            loo=loo,
            method=method,
            prune=prune,
            approximation=approximation,
            centres=centres,
            centres_by=centres_by,
            random_state=random_state,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            threads=threads,
        )
        self.lam_by = lam_by
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.decoding = decoding

    def _machine_name(self) -> str:
        return "rlsc"

    def _fit_classes(
        self,
        X: Any,
        y: np.ndarray,
        rows: np.ndarray | None,
        weights: np.ndarray | None,
        class_weight: dict[Any, float],
    ) -> None:
        self._fit_machine(
            X,
            y,
            rows,
            weights,
            class_weight=class_weight,
            multiclass=self.multiclass,
            decoding=self.decoding,
            lam_by=self.lam_by,
            **self._least_squares_options(),
        )

    def _take(self, model: Model, rows: np.ndarray | None) -> None:
        """Sets, beside what RLS has: loo_error_."""
        super()._take(model, rows)
        self.loo_error_: float | None = model.info.get("loo_error")

    @property
    def loo_labels_(self) -> np.ndarray | None:
        """The class of each row by the machines trained without it; None for low rank."""
        if self.loo_predictions_ is None:
            return None
        outputs = self.loo_predictions_.reshape(self.shape_fit_[0], -1)
        found = decode(np.nan_to_num(outputs), self.model_.code, self.model_.decoding)
        return np.asarray(self.classes_[found])
