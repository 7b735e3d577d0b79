"""The support vector classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.estimators.base import Kernel
from kfu.estimators.machine_classifier import MachineClassifier

__all__ = ["SVC"]

LOSSES = {"hinge": "svc", "squared_hinge": "svc2"}


class SVC(MachineClassifier):
    """C-support vector classification.

    Parameters
    ----------
    C : float, default 1.0
        Cost: multiplies the sum of slacks, as in LIBSVM and scikit-learn. ``float("inf")`` is the
        hard margin.
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
    fit_intercept : True, False or "regularised", default True
        Whether the decision function has a bias; "regularised" adds ½b² to the objective.
    loss : "hinge" or "squared_hinge", default "hinge"
        Of the slacks ξ: C Σ ξ, or (C/2) Σ ξ².
    multiclass : str, array or path, default "ava"
        More than two classes: one machine for each pair ("ava"), for each class against the others
        ("ova"), for each column of another code (`kfu.multiclass.CODES`) or of a matrix of -1, 0, 1
        with a row for each class; or one machine over all classes, "crammer-singer" and
        "weston-watkins", which have no bias.
    decoding : str or None
        How decision values become a class (`kfu.multiclass.DECODINGS`); None: the code's own.
    probability : bool, "sigmoid" or "isotonic", default False
        Whether to fit probabilities, and how; True is "sigmoid".
    margins : None, "auto" or array (n,)
        Target of the margin of each row in place of 1, by which its cost is divided; "auto": the
        width of its neighbourhood.
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
        one value for each pair of classes (or machine of another code).
    random_state : int, generator of NumPy or None
        Of random codes and of the folds of probabilities. None is 0.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.
    verbose : bool, default False
        A line on stderr for each round of the solver.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_ (linear kernel),
    class_weight_, n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in scikit-learn's SVC; vectors are grouped by class. With a code other than "ava" (and
        more than two classes), `dual_coef_` is (n_machines, n_sv) and `intercept_`, `coef_` and
        `n_iter_` have an entry for each machine.
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
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: Mapping[Any, float] | str | None = None,
        fit_intercept: bool | str = True,
        loss: str = "hinge",
        multiclass: Any = "ava",
        decoding: str | None = None,
        probability: bool | str = False,
        margins: Any = None,
        shrinking: bool = True,
        cache_mib: float = 1024.0,
        chunk: int = 0,
        solver: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        max_iter: int = -1,
        polish: bool = True,
        decision_function_shape: str = "ovr",
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            class_weight=class_weight,
            multiclass=multiclass,
            decoding=decoding,
            probability=probability,
            shrinking=shrinking,
            cache_mib=cache_mib,
            chunk=chunk,
            solver=solver,
            precision=precision,
            threads=threads,
            max_iter=max_iter,
            polish=polish,
            decision_function_shape=decision_function_shape,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.C = C
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.margins = margins

    _may_be_hard = True

    def _machine_name(self) -> str:
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {tuple(LOSSES)}, got {self.loss!r}")
        return LOSSES[self.loss]

    def _machine_options(self, n: int, rows: np.ndarray | None) -> dict[str, Any]:
        margins = self.margins
        if margins is not None and not isinstance(margins, str):
            margins = np.asarray(margins)
            if margins.shape != (n,):
                raise ValueError(f"margins has shape {margins.shape}, expected {(n,)}")
            margins = margins if rows is None else margins[rows]
        return {"cost": float(self.C), "bias": self._bias(), "margins": margins}
