"""kfu beside LIBSVM: data × kernel × C × weights × layout × precision, a verdict for each.

Each configuration is trained by both; the verdict says whether objectives (recomputed here from the
coefficients and an independent kernel), decision values and certificates agree, and whether models
survive the exchange in both directions. Run ``python -m tests.conformance.differential`` for the
table.
"""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from kfu import KernelSpec, train
from kfu.io.libsvm_model import read_libsvm_model, write_libsvm_model
from kfu.solvers import SolverSettings
from tests.oracles import qp

# What "agrees" means, at tolerance 1e-3 as at 1e-6.
OBJECTIVE_RTOL = 1e-5
DECISION_ATOL = {1e-3: 1e-2, 1e-6: 1e-4}
EXCHANGE_ATOL = 1e-6


def two_gaussians(rng):
    y = np.repeat([-1.0, 1.0], 60)
    return rng.normal(size=(120, 4)) + 0.8 * y[:, None], y


def banana(rng):
    angle = rng.uniform(0, np.pi, 140)
    y = np.where(np.arange(140) % 2 == 0, 1.0, -1.0)
    X = np.column_stack([np.cos(angle) * y + 0.5 * y, np.sin(angle) * y])
    return X + rng.normal(scale=0.35, size=X.shape), y


def sparse_binary(rng):
    X = (rng.uniform(size=(180, 90)) < 0.12).astype(float)
    w = rng.normal(size=90)
    return X, np.where(X @ w + rng.normal(scale=0.5, size=180) > 0, 1.0, -1.0)


def wide(rng):
    X = rng.normal(size=(70, 60)) / np.sqrt(60)
    return X, np.where(X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=70) > 0, 1.0, -1.0)


def imbalanced(rng):
    y = np.where(np.arange(150) < 18, 1.0, -1.0)
    X = rng.normal(size=(150, 3))
    X[y > 0] += 1.2
    X[140:150] = X[0:10]  # duplicates, some with the opposite label
    return X, y


DATA = {f.__name__: f for f in (two_gaussians, banana, sparse_binary, wide, imbalanced)}
KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.5, "coef0": 1.0, "degree": 2},
    "rbf": {"gamma": 0.3},
    "rbf-narrow": {"gamma": 4.0},
    "sigmoid": {"gamma": 0.02, "coef0": 0.0},
}
COSTS = (0.1, 1.0, 30.0)
WEIGHTS = ("none", "class", "sample")
LAYOUTS = ("dense-float64", "csr-float64", "dense-float32", "csr-float32")
PRECISIONS = ("auto", "float64", "float32")


@dataclass(frozen=True)
class Configuration:
    data: str
    kernel: str
    cost: float
    weights: str
    layout: str
    precision: str

    def __str__(self) -> str:
        return (
            f"{self.data}-{self.kernel}-C{self.cost:g}-{self.weights}-{self.layout}"
            f"-{self.precision}"
        )


def configurations() -> list[Configuration]:
    """Every data × kernel × C × weights; layouts and precisions take turns over them."""
    grid = itertools.product(DATA, KERNELS, COSTS, WEIGHTS)
    turns = itertools.cycle(itertools.product(LAYOUTS, PRECISIONS))
    return [Configuration(*point, *turn) for point, turn in zip(grid, turns, strict=False)]


@dataclass
class Verdict:
    configuration: Configuration
    tolerance: float
    objective: float
    peer_objective: float
    kkt_gap: float
    peer_kkt_gap: (
        float  # from scratch, as ours: LIBSVM's rows are float32 and may miss its tolerance
    )
    decision_difference: float  # relative to the largest decision value, or absolute below 1
    exchange_difference: float
    is_definite: bool  # an indefinite kernel has several local optima

    @property
    def objective_difference(self) -> float:
        """Relative; negative when kfu's dual objective is the larger (the better)."""
        return (self.peer_objective - self.objective) / max(1.0, abs(self.peer_objective))

    def failures(self) -> list[str]:
        found = []
        if self.objective_difference > OBJECTIVE_RTOL:
            found.append(f"objective short by {self.objective_difference:.2e}")
        if self.kkt_gap > self.tolerance:
            found.append(f"gap {self.kkt_gap:.2e} above {self.tolerance:g}")
        if self.exchange_difference > EXCHANGE_ATOL:
            found.append(f"exchanged models differ by {self.exchange_difference:.2e}")
        if self.decision_difference > DECISION_ATOL[self.tolerance] and not self.excuse():
            found.append(f"decision values differ by {self.decision_difference:.2e}")
        return found

    def excuse(self) -> str:
        """Why decision values may differ although kfu's certificate holds, or nothing."""
        if not self.is_definite:
            return "indefinite kernel"
        if self.peer_kkt_gap > self.tolerance:
            return f"LIBSVM's gap is {self.peer_kkt_gap:.1e}"
        return ""

    @property
    def outcome(self) -> str:
        if self.failures():
            return "fail"
        return "warn" if self.decision_difference > DECISION_ATOL[self.tolerance] else "pass"


def gram(name, params, X, Z):
    """The kernel, independently of kfu's."""
    if name.startswith("rbf"):
        d = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-params["gamma"] * d)
    dot = X @ Z.T
    if name == "poly":
        return (params["gamma"] * dot + params["coef0"]) ** params["degree"]
    return np.tanh(params["gamma"] * dot + params["coef0"]) if name == "sigmoid" else dot


def dual_objective(coef, K):
    return np.abs(coef).sum() - 0.5 * coef @ K @ coef


def sample_weights(n):
    return np.random.default_rng(3).uniform(0.2, 2.0, size=n)


def judge(configuration: Configuration, tolerance: float) -> Verdict:
    X, y = DATA[configuration.data](np.random.default_rng(11))
    if configuration.layout.endswith("float32"):
        X = X.astype(np.float32).astype(np.float64)  # both sides see the same numbers
    params = KERNELS[configuration.kernel]
    K = gram(configuration.kernel, params, X, X)
    mine = train_kfu(configuration, X, y, params, tolerance)
    decision = mine.decision_function(X)[:, 0]
    coef = np.zeros(len(y))
    coef[mine.support] = mine.coef[0]
    upper = costs(configuration, y)
    peer_coef, peer_decision, exchange = train_peer(configuration, X, y, params, tolerance, mine)
    return Verdict(
        configuration,
        tolerance,
        objective=dual_objective(coef, K),
        peer_objective=dual_objective(peer_coef, K),
        kkt_gap=mine.info["kkt_gap"],
        peer_kkt_gap=qp.judge(K, y, upper, np.abs(peer_coef), 0.0).kkt_gap,
        decision_difference=float(
            np.abs(decision - peer_decision).max() / max(1.0, np.abs(peer_decision).max())
        ),
        exchange_difference=exchange,
        is_definite=bool(np.linalg.eigvalsh(K)[0] > -1e-10 * np.abs(K).max() * len(y)),
    )


def costs(configuration, y):
    """The box of each example."""
    if configuration.weights == "class":
        return configuration.cost * np.where(y > 0, 2.5, 0.5)
    if configuration.weights == "sample":
        return configuration.cost * sample_weights(len(y))
    return np.full(len(y), configuration.cost)


def train_kfu(configuration, X, y, params, tolerance):
    data = X.astype(np.float32) if configuration.layout.endswith("float32") else X
    data = sp.csr_matrix(data) if configuration.layout.startswith("csr") else data
    return train(
        data,
        y,
        kernel=KernelSpec.make(configuration.kernel.removesuffix("-narrow"), **params),
        cost=configuration.cost,
        class_weight={1.0: 2.5, -1.0: 0.5} if configuration.weights == "class" else None,
        sample_weight=sample_weights(len(y)) if configuration.weights == "sample" else None,
        settings=SolverSettings(tolerance=tolerance, precision=configuration.precision),
    )


def train_peer(configuration, X, y, params, tolerance, mine):
    """(coefficients by row, decision values, worst difference after exchanging the models).

    scikit-learn's build of LIBSVM is the one that takes weights per example; LIBSVM itself trains
    the rest, reads our model and gives us its own.
    """
    if configuration.weights == "sample":
        from sklearn.svm import SVC

        peer = SVC(
            C=configuration.cost,
            kernel=configuration.kernel.removesuffix("-narrow"),
            tol=tolerance,
            gamma=params.get("gamma", 1.0),
            coef0=params.get("coef0", 0.0),
            degree=params.get("degree", 3),
        ).fit(X, y, sample_weight=sample_weights(len(y)))
        coef = np.zeros(len(y))
        coef[peer.support_] = peer.dual_coef_[0]
        return coef, peer.decision_function(X), ours_by_libsvm(mine, X, y)
    return train_libsvm(configuration, X, y, params, tolerance, mine)


def train_libsvm(configuration, X, y, params, tolerance, mine):
    from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train

    kinds = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}
    options = (
        f"-q -t {kinds[configuration.kernel.removesuffix('-narrow')]} -c {configuration.cost!r} "
        f"-e {tolerance!r} -g {params.get('gamma', 1.0)!r} -r {params.get('coef0', 0.0)!r} "
        f"-d {params.get('degree', 3)}"
    )
    if configuration.weights == "class":
        options += " -w1 2.5 -w-1 0.5"
    peer = svm_train(y, sp.csr_matrix(X), options)
    sign = 1.0 if peer.get_labels()[0] == 1 else -1.0
    coef = np.zeros(len(y))
    coef[np.array(peer.get_sv_indices()) - 1] = sign * np.array(peer.get_sv_coef())[:, 0]
    values = decision_by_libsvm(svm_predict, peer, X, y)
    with tempfile.TemporaryDirectory() as folder:
        theirs = str(Path(folder) / "theirs.model")
        svm_save_model(theirs, peer)  # LIBSVM writes features with 8 digits: compare what it reads
        reread = decision_by_libsvm(svm_predict, svm_load_model(theirs), X, y)
        read = read_libsvm_model(theirs).decision_function(sp.csr_matrix(X))[:, 0]
    exchange = max(float(np.abs(read - reread).max()), ours_by_libsvm(mine, X, y))
    return coef, values, exchange


def ours_by_libsvm(mine, X, y):
    """How far LIBSVM's decision values for kfu's model, written and read, are from kfu's own."""
    from libsvm.svmutil import svm_load_model, svm_predict

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "ours.model")
        write_libsvm_model(path, mine)
        written = decision_by_libsvm(svm_predict, svm_load_model(path), X, y)
    return float(np.abs(written - mine.decision_function(X)[:, 0]).max())


def decision_by_libsvm(svm_predict, model, X, y):
    """Decision values of a LIBSVM model, positive for class 1."""
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    return sign * np.array(svm_predict(y, sp.csr_matrix(X), model, "-q")[2])[:, 0]


def main() -> int:
    outcomes = {"pass": 0, "warn": 0, "fail": 0}
    for tolerance in DECISION_ATOL:
        for configuration in configurations():
            verdict = judge(configuration, tolerance)
            outcomes[verdict.outcome] += 1
            remarks = verdict.failures() or (
                [verdict.excuse()] if verdict.outcome == "warn" else []
            )
            print(
                f"{verdict.outcome} {tolerance:g} {configuration} "
                f"objective {verdict.objective_difference:+.1e} gap {verdict.kkt_gap:.1e} "
                f"(LIBSVM {verdict.peer_kkt_gap:.1e}) decision {verdict.decision_difference:.1e} "
                f"exchange {verdict.exchange_difference:.1e} {'; '.join(remarks)}"
            )
    print(", ".join(f"{count} {name}" for name, count in outcomes.items()))
    return 1 if outcomes["fail"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
