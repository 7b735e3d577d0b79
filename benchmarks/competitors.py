"""The competitors: each trains one case and returns its coefficients, so all are judged alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import Case

PEER_CACHE_MB = 4000


def fit_kfu(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    from kfu import KernelSpec, train

    begin = time.perf_counter()
    model = train(X, y, kernel=KernelSpec.make("rbf", gamma=case.gamma), cost=case.cost)
    seconds = time.perf_counter() - begin
    keys = ("iterations", "rounds", "kernel_evaluations", "simd", "layout", "precision", "chunk")
    return {
        "seconds": seconds,
        "rows": model.support,
        "coef": model.coef[0],
        **{key: model.info[key] for key in keys},
    }


def fit_sklearn(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """scikit-learn's SVC: LIBSVM on float64 data, float32 kernel rows."""
    from sklearn.svm import SVC

    return _fit_svc(SVC, X, y, case)


def fit_sklearn_dense(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    return fit_sklearn(X.toarray() if sp.issparse(X) else X, y, case)


def fit_onedal(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """scikit-learn-intelex (oneDAL) on float32 data, its fastest form."""
    from sklearnex.svm import SVC

    return _fit_svc(SVC, X.astype(np.float32), y, case)


def _fit_svc(kind: Any, X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    machine = kind(C=case.cost, gamma=case.gamma, tol=1e-3, cache_size=PEER_CACHE_MB)
    begin = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - begin
    coef = machine.dual_coef_
    coef = coef.toarray() if sp.issparse(coef) else np.asarray(coef)
    return {
        "seconds": seconds,
        "rows": np.asarray(machine.support_),
        "coef": coef[0].astype(np.float64),
        "iterations": int(np.max(getattr(machine, "n_iter_", 0))),
    }


def fit_libsvm(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """LIBSVM itself (libsvm-official), with the OpenMP build it ships."""
    from libsvm.svmutil import svm_parameter, svm_problem, svm_train

    problem = svm_problem(y, sp.csr_matrix(X))
    options = f"-q -t 2 -c {case.cost!r} -g {case.gamma!r} -e 0.001 -m {PEER_CACHE_MB}"
    parameter = svm_parameter(options)
    begin = time.perf_counter()
    model = svm_train(problem, parameter)
    seconds = time.perf_counter() - begin
    sign = 1.0 if model.get_labels()[0] == max(y) else -1.0
    return {
        "seconds": seconds,
        "rows": np.array(model.get_sv_indices()) - 1,
        "coef": sign * np.array(model.get_sv_coef())[:, 0],
    }


COMPETITORS: dict[str, Callable[[Any, np.ndarray, Case], dict[str, Any]]] = {
    "kfu": fit_kfu,
    "sklearn": fit_sklearn,
    "sklearn-dense": fit_sklearn_dense,
    "onedal": fit_onedal,
    "libsvm": fit_libsvm,
}
