"""One least-squares fit by one competitor in a process of its own, for its peak of memory.

    python -m benchmarks.square_loss full kfu --rows 10000
    python -m benchmarks.square_loss rectangle sklearn --rows 100000 --centres 2000

Prints a JSON object: seconds of the fit alone, the MiB that it added to the process at most, and
the share of training rows (the first 2000) that get the wrong sign. A fit of a few rows comes
before, so that loading libraries and starting threads count for nobody. `gemm` measures products of
square matrices: operations per second, float64.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEATURES, GAMMA, RIDGE = 50, 0.02, 1.0
JUDGED_ROWS = 2000
GEMM_SIZE, GEMM_TURNS = 2000, 5
Fit = Callable[[np.ndarray, np.ndarray, int], Callable[[np.ndarray], np.ndarray]]


def generated(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows around 40 middles, each with a sign; the same first rows whatever n is."""
    middles = np.random.default_rng(0).normal(size=(40, FEATURES))
    signs = np.random.default_rng(1).choice([-1.0, 1.0], 40)
    X, y = np.empty((n, FEATURES)), np.empty(n)
    for k, start in enumerate(range(0, n, 2**16)):
        rng = np.random.default_rng([2, k])
        of = rng.integers(0, 40, 2**16)
        rows = middles[of] + 0.7 * rng.normal(size=(2**16, FEATURES))
        part = slice(start, min(start + 2**16, n))
        X[part], y[part] = rows[: part.stop - start], signs[of[: part.stop - start]]
    return X, y


def full_kfu(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    from kfu.kernels import KernelSpec
    from kfu.least_squares import solve_full

    found = solve_full(X, y[:, None], KernelSpec.make("rbf", gamma=GAMMA), RIDGE, loo=False)
    return lambda Z: _values(X, Z) @ found.coef[:, 0]


def full_loo(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    from kfu.kernels import KernelSpec
    from kfu.least_squares import solve_full

    found = solve_full(X, y[:, None], KernelSpec.make("rbf", gamma=GAMMA), RIDGE, loo=True)
    return lambda Z: _values(X, Z) @ found.coef[:, 0]


def full_scipy(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    import scipy.linalg
    from sklearn.metrics.pairwise import rbf_kernel

    K = rbf_kernel(X, gamma=GAMMA)
    K[np.diag_indices(len(K))] += RIDGE
    factor = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    coef = scipy.linalg.cho_solve(factor, y, check_finite=False)
    return lambda Z: np.asarray(_values(X, Z) @ coef)


def rectangle_kfu(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    from kfu.kernels import KernelSpec
    from kfu.least_squares.rectangle import rectangle

    rows = np.random.default_rng(0).choice(len(X), m, replace=False)
    fit = rectangle(X, y, KernelSpec.make("rbf", gamma=GAMMA), rows, RIDGE)
    return lambda Z: fit.decision(X, Z)[:, 0]


def rectangle_sklearn(X: np.ndarray, y: np.ndarray, m: int) -> Callable[[np.ndarray], np.ndarray]:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    features = Nystroem(gamma=GAMMA, n_components=m, random_state=0)
    ridge = Ridge(RIDGE, fit_intercept=False, solver="cholesky", copy_X=False)
    model = make_pipeline(features, ridge).fit(X, y)
    return lambda Z: np.asarray(model.predict(Z))


FITS: dict[str, dict[str, Fit]] = {
    "full": {"kfu": full_kfu, "kfu, leave-one-out": full_loo, "scipy": full_scipy},
    "rectangle": {"kfu": rectangle_kfu, "sklearn": rectangle_sklearn},
}


def _values(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    from sklearn.metrics.pairwise import rbf_kernel

    return np.asarray(rbf_kernel(Z, X, gamma=GAMMA))


def gemm_rate() -> float:
    A = np.random.default_rng(0).normal(size=(GEMM_SIZE, GEMM_SIZE))
    A @ A
    seconds = []
    for _ in range(GEMM_TURNS):
        began = time.perf_counter()
        A @ A
        seconds.append(time.perf_counter() - began)
    return 2.0 * GEMM_SIZE**3 / float(np.median(seconds))


def forget_peak() -> float:
    """MiB of this process now, which its peak is from here on (where the system lets it be)."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
            control.write("5")
        return status_mib("VmRSS")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def peak_mib() -> float:
    try:
        return status_mib("VmHWM")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def status_mib(name: str) -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024.0


def measured(case: str, competitor: str, n: int, m: int) -> dict[str, Any]:
    fit = FITS[case][competitor]
    X, y = generated(n)
    fit(X[:500].copy(), y[:500].copy(), min(m, 50))
    before = forget_peak()
    began = time.perf_counter()
    outputs = fit(X, y, m)
    seconds = time.perf_counter() - began
    added = peak_mib() - before
    wrong = float(np.mean(np.sign(outputs(X[:JUDGED_ROWS])) != y[:JUDGED_ROWS]))
    return {"seconds": seconds, "added_mib": added, "error": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("case", choices=[*FITS, "gemm"])
    parser.add_argument("competitor", nargs="?", default="kfu")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--centres", type=int, default=100)
    options = parser.parse_args()
    if options.case == "gemm":
        print(json.dumps({"rate": gemm_rate()}))
        return
    print(json.dumps(measured(options.case, options.competitor, options.rows, options.centres)))


if __name__ == "__main__":
    main()
