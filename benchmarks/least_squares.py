"""The square loss beside its peers: ``python -m benchmarks.least_squares [--quick] [--part NAME]``.

`sparse`     linear, sparse rows: kfu's conjugate gradients, and whatever kfu chooses by itself,
             beside scikit-learn's Ridge(solver="sparse_cg") with the loosest tolerance of a list at
             which its residual is no larger than kfu's. Residuals are those of the normal
             equations, recomputed from scratch for everyone.
`full`       the whole kernel matrix, with and without exact leave-one-out: solve_full beside
             scikit-learn's rbf_kernel and SciPy's cho_factor; the memory it adds in matrices of n².
`rectangle`  2000 centres and 10⁶ rows of 50 features: kfu's rectangle beside the count of its
             operations at the rate of matrix products, and beside scikit-learn's Nystroem and Ridge
             on a tenth of the rows (all their features would take 16 GB).
`iterative`  n² kernel values per step and no matrix: iterations and seconds against the rank.

Competitors take turns, the median of TURNS counts (of more where fits take milliseconds); only the
fit is timed. Fits whose memory counts have processes of their own (benchmarks/square_loss.py). A
part whose function is missing says so. Each record is a JSON line in
benchmarks/results/least_squares.jsonl.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks.cases import gaussian_mixtures
from benchmarks.linear import text_like, two_classes
from benchmarks.processes import run_module
from benchmarks.records import Record, Run
from benchmarks.square_loss import FEATURES, FITS

TURNS = 3
MOST_TURNS, SHORT = 25, 0.5  # of fits that take milliseconds: turns until each had SHORT seconds
GOAL = 1e-8  # relative residual
TOLERANCES = tuple(10.0 ** (-k / 8) for k in range(48, 100))
RIDGE = 1.0  # λℓ, as in the text experiments of the literature
TARGETS = 10  # of the cases with several right-hand sides


def medians(fits: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, Any]]:
    """Seconds and result of each, taking turns; short ones take more of them."""
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    results: dict[str, Any] = {}
    for turn in range(MOST_TURNS):
        if turn >= TURNS and min(map(sum, seconds.values())) >= SHORT:
            break
        for name, fit in fits.items():
            began = time.perf_counter()
            results[name] = fit()
            seconds[name].append(time.perf_counter() - began)
    return {name: (float(np.median(seconds[name])), results[name]) for name in fits}


# --------------------------------------------------------------------------- linear, sparse

SPARSE: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "small text": lambda: text_like(3000, 5000),
    "20news": lambda: two_classes("20news_w100.svm.gz"),
    "reuters": lambda: two_classes("reuters-grain.tr.gz"),
    "text, tall": lambda: text_like(30000, 10000),
    "text, wide": lambda: text_like(10000, 30000),
}
QUICK_SPARSE = ("small text",)


def residual(X: Any, Y: np.ndarray, W: np.ndarray, b: np.ndarray) -> float:
    """Worst ‖Xᵀ(Y − XV − b) − ridge V‖ / ‖XᵀY‖ (centred where there is an intercept)."""
    V = W.T
    errors = Y - np.asarray(X @ V) - b
    left = np.asarray(X.T @ errors) - RIDGE * V
    right = np.asarray(X.T @ (Y - (Y.mean(axis=0) if np.any(b) else 0.0)))
    return float(np.max(np.linalg.norm(left, axis=0) / np.linalg.norm(right, axis=0)))


def matched_tolerance(X: Any, Y: np.ndarray, goal: float, intercept: bool) -> float:
    """The loosest tolerance at which scikit-learn's residual is at most `goal`, by bisection."""
    from sklearn.linear_model import Ridge

    low, high = 0, len(TOLERANCES) - 1
    while low < high:
        middle = (low + high) // 2
        options = {"fit_intercept": intercept, "solver": "sparse_cg", "tol": TOLERANCES[middle]}
        peer = Ridge(RIDGE, **options).fit(X, Y)
        found = residual(X, Y, np.atleast_2d(peer.coef_), np.atleast_1d(peer.intercept_))
        low, high = (low, middle) if found <= goal else (middle + 1, high)
    return TOLERANCES[low]


def sparse_case(name: str, targets: int, intercept: bool) -> Iterator[Record]:
    from sklearn.linear_model import Ridge

    from kfu.least_squares import solve_linear_rls

    X, y = SPARSE[name]()
    Y = y[:, None]
    if targets > 1:  # columns of a random code, as of an error-correcting machine
        signs = np.where(np.random.default_rng(0).random((len(y), targets)) < 0.25, -1.0, 1.0)
        Y = Y * signs
    first = solve_linear_rls(X, Y, RIDGE, intercept=intercept, method="cg", tolerance=GOAL)
    goal = residual(X, Y, first.weights, first.bias)
    tolerance = matched_tolerance(X, Y, goal, intercept)

    def ours(method: str) -> Callable[[], Any]:
        return lambda: solve_linear_rls(
            X, Y, RIDGE, intercept=intercept, method=method, tolerance=GOAL
        )

    def peer() -> Any:
        model = Ridge(RIDGE, fit_intercept=intercept, solver="sparse_cg", tol=tolerance)
        return model.fit(X, Y)

    runs = medians({"kfu, cg": ours("cg"), "kfu, auto": ours("auto"), "sklearn sparse_cg": peer})
    for competitor, (seconds, result) in runs.items():
        record: Record = {"case": name, "n": X.shape[0], "d": X.shape[1], "nnz": int(X.nnz)}
        record |= {"targets": targets, "intercept": intercept, "competitor": competitor}
        if competitor.startswith("kfu"):
            W, b = result.weights, result.bias
            record |= {"method": result.info["method"]}
            record |= {"iterations": result.info.get("iterations")}
        else:
            W, b = np.atleast_2d(result.coef_), np.atleast_1d(result.intercept_)
            steps = result.n_iter_
            record |= {"method": f"tol {tolerance:.0e}"}
            record |= {"iterations": None if steps is None else int(np.max(steps))}
        yield {**record, "seconds": seconds, "residual": residual(X, Y, W, b)}


def run_sparse(quick: bool) -> Iterator[Record]:
    for name in QUICK_SPARSE if quick else [n for n in SPARSE if n not in QUICK_SPARSE]:
        for targets, intercept in ((1, False), (1, True), (TARGETS, False)):
            yield from sparse_case(name, targets, intercept)


# --------------------------------------------------------------------------- kernels


def turns_of(case: str, competitors: Iterable[str], n: int, m: int = 0) -> dict[str, Record]:
    """Medians over processes that take turns; a competitor that fails has an `error`."""
    taken: dict[str, list[Record]] = {name: [] for name in competitors}
    for _ in range(TURNS):
        for name, found in taken.items():
            if not found or "seconds" in found[-1]:
                sizes = ("--rows", str(n), "--centres", str(m))
                found.append(run_module("benchmarks.square_loss", case, name, *sizes))
    results: dict[str, Record] = {}
    for name, found in taken.items():
        if "seconds" not in found[-1]:
            results[name] = {"seconds": float("nan"), "failed": found[-1].get("error")}
            continue
        middle = {key: float(np.median([one[key] for one in found])) for key in found[0]}
        results[name] = middle
    return results


def run_full(quick: bool) -> Iterator[Record]:
    n = 1500 if quick else 10000
    runs = turns_of("full", FITS["full"], n)
    for competitor, found in runs.items():
        record: Record = {"n": n, "competitor": competitor, **found}
        if "added_mib" in found:
            record["squares"] = found["added_mib"] * 2.0**20 / (8.0 * n * n)  # n² float64
        record["times_scipy"] = found["seconds"] / runs["scipy"]["seconds"]
        yield record


def run_rectangle(quick: bool) -> Iterator[Record]:
    """The large case by kfu alone, beside the operations it takes at the rate of products; then a
    tenth of the rows, as the features of all rows that scikit-learn makes do not fit in memory."""
    n, m = (20000, 300) if quick else (1_000_000, 2000)
    rate = float(run_module("benchmarks.square_loss", "gemm")["rate"])
    operations = n * (m * m + 2.0 * m * FEATURES) + 4.0 / 3.0 * m**3
    alone = turns_of("rectangle", ["kfu"], n, m)["kfu"]
    bound = operations / rate
    yield {
        **{"n": n, "m": m, "competitor": "kfu", **alone},
        **{"gemm_rate": rate, "bound_seconds": bound, "times_bound": alone["seconds"] / bound},
    }
    runs = turns_of("rectangle", FITS["rectangle"], n // 10, m)
    for competitor, found in runs.items():
        yield {"n": n // 10, "m": m, "competitor": competitor, **found}


def run_iterative(quick: bool) -> Iterator[Record]:
    from kfu.kernels import KernelSpec
    from kfu.least_squares import solve_iterative

    n = 1500 if quick else 8000
    X, y = gaussian_mixtures(n, 5)
    kernel = KernelSpec.make("rbf", gamma=0.2)
    for name, rank in (("none", None), *(("random-pivots", n // k) for k in (80, 20, 8))):
        began = time.perf_counter()
        _, info = solve_iterative(X, y, kernel, 0.1, preconditioner=name, rank=rank)
        yield {
            "n": n,
            "competitor": name,
            "rank": info.get("rank", 0),
            "seconds": time.perf_counter() - began,
            "iterations": info["iterations"],
            "residual": info["residual"],
            "setup_seconds": info["seconds"]["precondition"],
        }


PARTS: dict[str, Callable[[bool], Iterator[Record]]] = {
    "sparse": run_sparse,
    "full": run_full,
    "rectangle": run_rectangle,
    "iterative": run_iterative,
}


def described(record: Record) -> str:
    shown = [f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
             for key, value in record.items() if key not in ("competitor", "seconds")]  # fmt: skip
    return f"  {record['competitor']:20s} {record['seconds']:8.3f} s  {', '.join(shown)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small made-up cases")
    parser.add_argument("--part", action="append", choices=list(PARTS))
    options = parser.parse_args()
    names = options.part or list(PARTS)
    run = Run("least_squares", "quick" if options.quick else "full")
    for name in names:
        print(name)
        try:
            for record in PARTS[name](options.quick):
                run.add({"part": name, **record})
                print(described(record), flush=True)
        except ImportError as error:
            print(f"  left out: {error}")
    run.finish(names)


if __name__ == "__main__":
    main()
