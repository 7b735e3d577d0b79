"""Many classes beside the peers: ``python -m benchmarks.multiclass [--quick] [--case usps]``.

All pairs (ava) by kfu, LIBSVM (scikit-learn's SVC) and oneDAL; one against the rest (ova) by kfu
and, on the smaller sets, by LIBSVM under OneVsRestClassifier; and the machines of ova trained by
kfu one after the other, each on its own, against the run that trains them together. Competitors
take turns, one process each; only the fit is timed, after one of a few rows. Figures are medians
of three (LIBSVM, which is slow, runs once), claims are ratios, and accuracies on the test rows
stand beside them, since a fast answer that errs more is not comparable. Each training is a JSON
line in benchmarks/results/multiclass.jsonl; ``--summary`` prints the tables of each case's last
run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cases import Data, data_folder, real
from benchmarks.processes import run_module
from benchmarks.records import RESULTS, Run, latest, read_lines
from benchmarks.tables import NOTHING, Record, machine_line, markdown, middle, seconds_text

PEER_CACHE_MIB = 1000
WARM_UP_ROWS = 5  # of each class
SAME_ACCURACY = 0.002  # within this of LIBSVM's with the same parameters


def pair_of(name: str) -> tuple[Data, Data]:
    """Training and test rows of a set in KFU_DATA, dense."""
    parts = [real(f"{name}.{part}.gz") for part in ("tr", "t")]
    dense = [(X.toarray() if sp.issparse(X) else X, y) for X, y in parts]
    return dense[0], dense[1]


def mnist(rows: int = 20000, test_rows: int = 5000) -> tuple[Data, Data]:
    with np.load(data_folder("mnist.npz") / "mnist.npz") as archive:
        parts = [
            (archive[f"X_{part}"][:n].astype(np.float64) / 255.0, archive[f"y_{part}"][:n])
            for part, n in (("tr", rows), ("t", test_rows))
        ]
    return parts[0], parts[1]


def digits() -> tuple[Data, Data]:
    """The 8×8 digits that come with scikit-learn."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    return (X[:1200], y[:1200]), (X[1200:], y[1200:])


@dataclass(frozen=True)
class MulticlassCase:
    title: str
    load: Callable[[], tuple[Data, Data]]
    cost: float
    gamma: float
    is_small: bool = True  # LIBSVM also trains one machine a class
    is_quick: bool = False


CASES: dict[str, MulticlassCase] = {
    "letter": MulticlassCase(
        "letter 15000×16, 26 classes, C=10, γ=1/16", lambda: pair_of("letter"), 10.0, 1 / 16
    ),
    "usps": MulticlassCase(
        "usps 7291×256, 10 classes, C=10, γ=1/128", lambda: pair_of("usps"), 10.0, 1 / 128
    ),
    "mnist": MulticlassCase(
        "mnist 20000×784, 10 classes, C=10, γ=0.02", mnist, 10.0, 0.02, is_small=False
    ),
    "digits": MulticlassCase(
        "digits 1200×64, 10 classes, C=10, γ=0.1", digits, 10.0, 0.1, is_quick=True
    ),
}
FULL_CASES = [name for name, case in CASES.items() if not case.is_quick]
QUICK_CASES = [name for name, case in CASES.items() if case.is_quick]

# A fit returns what to predict with, the number of SVs, and more figures.
Fitted = tuple[Callable[[Any], np.ndarray], int, dict[str, Any]]


def fit_kfu(code: str, X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    from kfu import KernelSpec, train

    model = train(
        X, y, kernel=KernelSpec.make("rbf", gamma=case.gamma), cost=case.cost, multiclass=code
    )
    more = {name: model.info.get(name) for name in ("status", "kernel_evaluations", "iterations")}
    return model.predict, model.n_sv, more


def fit_kfu_separately(X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    """A training of its own for each class against the rest."""
    from kfu import KernelSpec, train

    kernel = KernelSpec.make("rbf", gamma=case.gamma)
    classes = np.unique(y)
    models = [
        train(X, np.where(y == label, 1.0, -1.0), kernel=kernel, cost=case.cost)
        for label in classes
    ]

    def predict(rows: Any) -> np.ndarray:
        outputs = [model.decision_function(rows)[:, 0] for model in models]
        return np.asarray(classes[np.argmax(outputs, axis=0)])

    support = np.unique(np.concatenate([model.support for model in models]))
    totals = {
        name: int(sum(model.info[name] for model in models))
        for name in ("kernel_evaluations", "iterations")
    }
    return predict, int(support.size), totals


def _svc(kind: Any, X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    machine = kind(C=case.cost, gamma=case.gamma, tol=1e-3, cache_size=PEER_CACHE_MIB).fit(X, y)
    return machine.predict, int(np.sum(machine.n_support_)), {"cache_mib": PEER_CACHE_MIB}


def fit_libsvm(X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    from sklearn.svm import SVC

    return _svc(SVC, X, y, case)


def fit_libsvm_rest(X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    base = SVC(C=case.cost, gamma=case.gamma, tol=1e-3, cache_size=PEER_CACHE_MIB)
    machine = OneVsRestClassifier(base).fit(X, y)
    support = np.unique(np.concatenate([part.support_ for part in machine.estimators_]))
    return machine.predict, int(support.size), {"cache_mib": PEER_CACHE_MIB}


def fit_onedal(X: Any, y: np.ndarray, case: MulticlassCase) -> Fitted:
    """On float32 data, its fastest form."""
    from sklearnex.svm import SVC

    predict, n_sv, more = _svc(SVC, X.astype(np.float32), y, case)
    return lambda rows: predict(rows.astype(np.float32)), n_sv, more


COMPETITORS: dict[str, Callable[[Any, np.ndarray, MulticlassCase], Fitted]] = {
    "kfu ava": partial(fit_kfu, "ava"),
    "kfu ova": partial(fit_kfu, "ova"),
    "oneDAL ava": fit_onedal,
    "LIBSVM ava": fit_libsvm,
    "LIBSVM ova": fit_libsvm_rest,
    "kfu separate": fit_kfu_separately,
}
SLOW = ("LIBSVM ava", "LIBSVM ova")  # run in the first turn only
# What a competitor is compared with.
RIVAL_OF = {
    "oneDAL ava": "kfu ava",
    "LIBSVM ava": "kfu ava",
    "LIBSVM ova": "kfu ova",
    "kfu separate": "kfu ova",
}


def competitors_of(case: MulticlassCase) -> list[str]:
    return [name for name in COMPETITORS if case.is_small or name != "LIBSVM ova"]


# ---------------------------------------------------------------- one training


def measure(case: MulticlassCase, competitor: str) -> Record:
    (X, y), (X_test, y_test) = case.load()
    fit = COMPETITORS[competitor]
    few = np.concatenate([np.flatnonzero(y == label)[:WARM_UP_ROWS] for label in np.unique(y)])
    fit(X[few], y[few], case)
    wall, processor = time.perf_counter(), time.process_time()
    predict, n_sv, more = fit(X, y, case)
    seconds = time.perf_counter() - wall
    return {
        "n": X.shape[0],
        "d": X.shape[1],
        "n_classes": int(np.unique(y).size),
        "cost": case.cost,
        "gamma": case.gamma,
        "seconds": seconds,
        "processor_seconds": time.process_time() - processor,
        "n_sv": n_sv,
        "accuracy": float(np.mean(predict(X_test) == y_test)),
        **more,
    }


# ---------------------------------------------------------------- tables

HEAD = ("", "seconds", "÷kfu", "processor s", "÷kfu", "kernel values", "SVs", "accuracy")


def medians(records: Sequence[Record]) -> dict[str, Record]:
    found = {}
    for name in COMPETITORS:
        mine = [r for r in records if r["competitor"] == name and "error" not in r]
        if mine:
            found[name] = middle(mine)
    return found


def times(record: Record, rival: Record | None, key: str) -> str:
    return NOTHING if rival is None else f"{record[key] / rival[key]:.2f}"


def case_table(records: Sequence[Record]) -> str:
    """A row for each competitor; ratios are to kfu's run of the same code."""
    best = medians(records)
    rows = []
    for name, record in best.items():
        rival = best.get(RIVAL_OF.get(name, ""))
        evaluations = record.get("kernel_evaluations")
        rows.append(
            [
                name,
                seconds_text(record["seconds"]),
                times(record, rival, "seconds"),
                seconds_text(record["processor_seconds"]),
                times(record, rival, "processor_seconds"),
                NOTHING if evaluations is None else f"{evaluations / 1e6:.1f} M",
                str(record["n_sv"]),
                f"{100 * record['accuracy']:.2f} %",
            ]
        )
    return markdown(HEAD, rows)


def remarks(records: Sequence[Record]) -> list[str]:
    """Accuracies that differ, and competitors that failed."""
    best = medians(records)
    lines = []
    for scheme in ("ava", "ova"):
        mine, peer = best.get(f"kfu {scheme}"), best.get(f"LIBSVM {scheme}")
        if mine and peer and abs(mine["accuracy"] - peer["accuracy"]) > SAME_ACCURACY:
            difference = 100 * (mine["accuracy"] - peer["accuracy"])
            lines.append(f"{scheme}: the accuracy of kfu is {difference:+.2f} points off LIBSVM's")
    failed = {r["competitor"]: r["error"] for r in records if "error" in r}
    return lines + [f"{name} failed: {error}" for name, error in failed.items()]


def print_case(name: str, records: Sequence[Record]) -> None:
    print(f"\n{CASES[name].title}\n\n{case_table(records)}")
    for line in remarks(records):
        print(line)


# ---------------------------------------------------------------- the program


def run_case(run: Run, name: str, competitors: list[str], repeat: int) -> list[Record]:
    records = []
    for turn in range(repeat):
        for competitor in competitors:
            if turn > 0 and competitor in SLOW:
                continue
            found = run_module("benchmarks.multiclass", "--worker", name, competitor)
            record = {"case": name, "competitor": competitor, "turn": turn, **found}
            records.append(record)
            run.add(record)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="scikit-learn's digits, once")
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--competitor", action="append", choices=list(COMPETITORS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--summary", action="store_true", help="the tables of each case's last run")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(CASES[options.worker[0]], options.worker[1])))
        return
    names = options.case or (QUICK_CASES if options.quick else FULL_CASES)
    if options.summary:
        records = latest(read_lines(RESULTS / "multiclass.jsonl"), "case", names)
        if not records:
            raise SystemExit("no complete run; python -m benchmarks.multiclass makes one")
    else:
        repeat = 1 if options.quick else options.repeat
        is_full = repeat >= 3 and options.competitor is None
        run = Run("multiclass", "full" if is_full else "quick")
        records = []
        for name in names:
            chosen = options.competitor or competitors_of(CASES[name])
            records += run_case(run, name, chosen, repeat)
        run.finish(names)
        records = [{**record, "machine": run.machine} for record in records]
    for name in names:
        of_case = [record for record in records if record["case"] == name]
        if of_case:
            print_case(name, of_case)
    print(f"\n{machine_line(records)}")


if __name__ == "__main__":
    main()
