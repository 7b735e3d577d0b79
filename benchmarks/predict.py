"""Prediction beside the peers: ``python -m benchmarks.predict [--only mnist] [--quick]``.

Each competitor trains its own model of the same problem, once, in a process of its own that then
waits; the processes predict in turn, and the table shows medians of three. kfu predicts
labels as it does by default (float32 kernel values where they prove the label) and with float64
ones throughout; oneDAL gets float32 data, its fastest
form. "Panels" is the time of `Gram.decision`, one output, on the same support vectors and rows: the
rate at which the compiled code evaluates these kernel values. Writes
benchmarks/results/predict.jsonl; ``--rows N`` takes the first N rows alone, for a trial.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import PREDICTIONS, Prediction
from benchmarks.competitors import PEER_CACHE_MIB
from benchmarks.records import Run
from benchmarks.tables import machine_line, prediction_table

COMPETITORS = ("kfu", "kfu-float64", "onedal", "sklearn")


class Fitted:
    """A trained machine: a function that predicts the test rows, and, for kfu, the panels' work."""

    def __init__(self, problem: Prediction, competitor: str, rows: int | None) -> None:
        X, y = (part[:rows] for part in problem.load())
        self.X, self.y = (part[:rows] for part in problem.load_test())
        if competitor == "onedal":
            X, self.X = X.astype(np.float32), self.X.astype(np.float32)
        machine = make_machine(problem, competitor)
        begin = time.perf_counter()
        machine.fit(X, y)
        self.train_seconds = time.perf_counter() - begin
        self.n_sv = len(machine.support_)
        self.predict: Callable[[], np.ndarray] = lambda: machine.predict(self.X)
        self.panels: Callable[[], Any] | None = None
        if competitor.startswith("kfu"):
            precision = "float64" if competitor == "kfu-float64" else "float32"
            model = machine.model_
            if precision == "float64":
                self.predict = lambda: model.predict(self.X, precision=precision)
            self.panels = self._panels(model, precision)

    def _panels(self, model: Any, precision: str) -> Callable[[], Any]:
        from kfu._gram import Gram

        gram = Gram(model.support_vectors, model.kernel, precision=precision)
        coef = np.ascontiguousarray(model.coef[:1].T)
        return lambda: gram.decision(None, coef, self.X)

    def described(self) -> dict[str, Any]:
        return {
            "train_seconds": self.train_seconds,
            "n_sv": self.n_sv,
            "n": self.X.shape[0],
            "d": self.X.shape[1],
            "accuracy": float(np.mean(self.predict() == self.y)),
            "has_panels": self.panels is not None,
        }


def make_machine(problem: Prediction, competitor: str) -> Any:
    """A machine with scikit-learn's conventions, not yet trained."""
    if competitor.startswith("kfu"):
        import kfu

        return kfu.SVC(C=problem.cost, gamma=problem.gamma)
    peer = importlib.import_module("sklearnex.svm" if competitor == "onedal" else "sklearn.svm")
    return peer.SVC(C=problem.cost, gamma=problem.gamma, cache_size=PEER_CACHE_MIB)


def serve(problem: Prediction, competitor: str, rows: int | None) -> None:
    """Train, then answer each line of stdin, `predict` or `panels`, with its seconds."""
    fitted = Fitted(problem, competitor, rows)
    print(json.dumps(fitted.described()), flush=True)
    for line in sys.stdin:
        work = fitted.predict if line.strip() == "predict" else fitted.panels
        assert work is not None
        begin = time.perf_counter()
        work()
        print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)


class Worker:
    """A process that runs `serve`."""

    def __init__(self, name: str, competitor: str, rows: int | None) -> None:
        command = [sys.executable, "-m", "benchmarks.predict", "--serve", name, competitor]
        if rows is not None:
            command += ["--rows", str(rows)]
        self.messages = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the process)
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        """The next JSON line; libraries may print others."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        self.messages.seek(0)
        reason = self.messages.read().strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(reason[0])

    def seconds(self, work: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(work + "\n")
        self.process.stdin.flush()
        return float(self.answer()["seconds"])

    def close(self) -> None:
        self.process.communicate()
        self.messages.close()


def measure(name: str, repeat: int, rows: int | None) -> list[dict[str, Any]]:
    """A record for each competitor: they train one after the other, and predict in turn."""
    workers: dict[str, Worker] = {}
    records: dict[str, dict[str, Any]] = {}
    for competitor in COMPETITORS:
        worker = Worker(name, competitor, rows)
        records[competitor] = {"problem": name, "competitor": competitor}
        try:
            records[competitor] |= worker.answer()
            workers[competitor] = worker
        except RuntimeError as error:
            records[competitor]["error"] = str(error)
            worker.close()
    times: dict[str, list[float]] = {competitor: [] for competitor in workers}
    panels: dict[str, list[float]] = {competitor: [] for competitor in workers}
    for _ in range(repeat):
        for competitor, worker in workers.items():
            times[competitor].append(worker.seconds("predict"))
            if records[competitor]["has_panels"]:
                panels[competitor].append(worker.seconds("panels"))
    for competitor, worker in workers.items():
        worker.close()
        records[competitor]["seconds"] = statistics.median(times[competitor])
        records[competitor]["all_seconds"] = times[competitor]
        if records[competitor].pop("has_panels"):
            records[competitor]["panel_seconds"] = statistics.median(panels[competitor])
    return list(records.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(PREDICTIONS))
    parser.add_argument("--quick", action="store_true", help="the quick model, once")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rows", type=int, help="rows of training and of prediction, for a trial")
    parser.add_argument("--serve", nargs=2, metavar=("MODEL", "COMPETITOR"), help="internal")
    options = parser.parse_args()
    if options.serve:
        serve(PREDICTIONS[options.serve[0]], options.serve[1], options.rows)
        return
    quick = [name for name, problem in PREDICTIONS.items() if problem.is_quick]
    names = options.only or (quick if options.quick else list(PREDICTIONS))
    repeat = 1 if options.quick else options.repeat
    is_full = repeat >= 3 and options.rows is None
    run = Run("predict", "full" if is_full else "quick")
    records = []
    for name in names:
        for record in measure(name, repeat, options.rows):
            run.add(record)
            records.append({**record, "machine": run.machine})
            if "error" in record:
                print(f"{name}: {record['competitor']} failed: {record['error']}")
    run.finish(names)
    print(f"{prediction_table(records)}\n\n{machine_line(records)}")


if __name__ == "__main__":
    main()
