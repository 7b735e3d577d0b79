"""The support vector classifier with ν in place of C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.estimators.base import Kernel
from kfu.estimators.machine_classifier import MachineClassifier

__all__ = ["NuSVC"]


class NuSVC(MachineClassifier):
    """ν-support vector classification.

    Parameters
    ----------
    nu : float, default 0.5
        In (0, 1]: at most this share of the rows are margin errors, at least this share are support
        vectors. No machine can have more than twice the share of its smaller side.
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows, by class.
    multiclass, decoding, probability, decision_function_shape, random_state
        As in `kfu.SVC`, but for the codes that are one machine over all classes.
    tol, shrinking, cache_mib, chunk, solver, precision, threads, max_iter, polish, verbose
        Of the solver, as in `kfu.SVC`.
    warm_start : bool, default False
        Start `fit` from the previous solution when the data have the same rows.

    Attributes
    ----------
    As those of `kfu.SVC`. Decision values are scaled so that the margin is at ±1.
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
        class_weight: Mapping[Any, float] | str | None = None,
        multiclass: Any = "ava",
        decoding: str | None = None,
        probability: bool | str = False,
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
        self.nu = nu

    def _machine_name(self) -> str:
        return "nu-svc"

    def _machine_options(self, n: int, rows: np.ndarray | None) -> dict[str, Any]:
        return {"nu": self.nu}
