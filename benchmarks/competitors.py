"""The competitors: each trains one case and returns its coefficients, so all are judged alike."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import Case

PEER_CACHE_MIB = 4000
INFO_KEYS = (
    *("status", "iterations", "rounds", "kernel_evaluations", "verification_evaluations"),
    *("kkt_gap", "simd", "layout", "precision", "chunk", "refinements"),
)


def fit_kfu(
    X: Any, y: np.ndarray, case: Case, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """kfu with its defaults, or with some settings of the solver."""
    from kfu import KernelSpec, train
    from kfu.solvers import SolverSettings

    chosen = SolverSettings(**(settings or {}))
    kernel = KernelSpec.make("rbf", gamma=case.gamma)
    begin = time.perf_counter()
    model = train(X, y, kernel=kernel, cost=case.cost, settings=chosen)
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "rows": model.support,
        "coef": model.coef[0],
        "cache_mib": chosen.cache_mib,
        "threads": chosen.n_threads,
        "phases": {name: round(value, 6) for name, value in model.info["seconds"].items()},
        **{key: model.info[key] for key in INFO_KEYS},
    }


def fit_sklearn(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """scikit-learn's SVC: LIBSVM on float64 data, float32 kernel rows."""
    from sklearn.svm import SVC

    return _fit_svc(SVC, X, y, case)


def fit_sklearn_dense(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    return fit_sklearn(_dense(X), y, case)


def fit_onedal(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """scikit-learn-intelex (oneDAL) on float32 data, its fastest form."""
    from sklearnex.svm import SVC

    return _fit_svc(SVC, X.astype(np.float32), y, case)


def fit_onedal_dense(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    return fit_onedal(_dense(X), y, case)


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def _fit_svc(kind: Any, X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    machine = kind(C=case.cost, gamma=case.gamma, tol=1e-3, cache_size=PEER_CACHE_MIB)
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
        "cache_mib": PEER_CACHE_MIB,
    }


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """What C code prints to stdout meanwhile: one string, in the list when the block is left."""
    texts: list[str] = []
    with tempfile.TemporaryFile() as stream:
        kept = os.dup(1)
        os.dup2(stream.fileno(), 1)
        try:
            yield texts
        finally:
            os.dup2(kept, 1)
            os.close(kept)
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))


def fit_libsvm(X: Any, y: np.ndarray, case: Case) -> dict[str, Any]:
    """LIBSVM itself (libsvm-official), with the OpenMP build it ships."""
    from libsvm.svmutil import svm_parameter, svm_problem, svm_train

    problem = svm_problem(y, sp.csr_matrix(X))
    options = f"-t 2 -c {case.cost!r} -g {case.gamma!r} -e 0.001 -m {PEER_CACHE_MIB}"
    parameter = svm_parameter(options)
    with captured_output() as printed:
        begin = time.perf_counter()
        model = svm_train(problem, parameter)
        seconds = time.perf_counter() - begin
    iterations = re.search(r"#iter = (\d+)", printed[0])
    sign = 1.0 if model.get_labels()[0] == max(y) else -1.0
    return {
        "seconds": seconds,
        "rows": np.array(model.get_sv_indices()) - 1,
        "coef": sign * np.array(model.get_sv_coef())[:, 0],
        "iterations": int(iterations[1]) if iterations else None,
        "cache_mib": PEER_CACHE_MIB,
    }


COMPETITORS: dict[str, Callable[..., dict[str, Any]]] = {
    "kfu": fit_kfu,
    "onedal": fit_onedal,
    "onedal-dense": fit_onedal_dense,
    "sklearn": fit_sklearn,
    "sklearn-dense": fit_sklearn_dense,
    "libsvm": fit_libsvm,
}

# A peer counts with the fastest of its forms.
FORMS = {
    "kfu": ("kfu",),
    "oneDAL": ("onedal", "onedal-dense"),
    "LIBSVM": ("sklearn", "sklearn-dense", "libsvm"),
}
SLOW = FORMS["LIBSVM"]  # up to minutes a case: run in the first turn only


def default_competitors(case: Case) -> list[str]:
    names = ["kfu", "onedal", "sklearn"]
    return [*names, "onedal-dense", "sklearn-dense"] if case.is_sparse else names
