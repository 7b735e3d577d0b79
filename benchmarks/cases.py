"""The training problems of the benchmarks: data, kernel, cost and goals, made or read on demand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Data = tuple[Any, np.ndarray]

LARGEST_MANY_CLUSTERS = 64000  # rows of the sweep over n; each point is the head of one set


def data_folder(name: str) -> Path:
    if "KFU_DATA" not in os.environ:
        raise SystemExit(f"{name}: set KFU_DATA to the folder of the LIBSVM data sets")
    return Path(os.environ["KFU_DATA"])


def real(name: str) -> Data:
    """A set of the folder that KFU_DATA names."""
    from kfu import read_dataset

    dataset = read_dataset(str(data_folder(name) / name))
    assert dataset.y is not None
    return dataset.X, dataset.y


def standardised(X: Any) -> np.ndarray:
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    spread = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def generated(n: int, d: int, **options: Any) -> Data:
    from sklearn.datasets import make_classification

    X, y = make_classification(n, d, random_state=0, **options)
    return standardised(X), 2.0 * y - 1.0


def many_clusters(n: int = 20000, d: int = 60) -> Data:
    options = {"n_redundant": 0, "n_clusters_per_class": 8, "flip_y": 0.05}
    return generated(n, d, n_informative=d // 2, **options)


def many_clusters_head(n: int) -> Data:
    """The first n rows of one large set: the same problem at every n, in the manner of case a."""
    X, y = many_clusters(max(n, LARGEST_MANY_CLUSTERS))
    return X[:n].copy(), y[:n].copy()


def well_separated() -> Data:
    options = {"n_informative": 10, "n_redundant": 0, "class_sep": 3.0, "flip_y": 0.0}
    return generated(50000, 20, **options)


def hard() -> Data:
    options = {"n_informative": 15, "n_redundant": 0, "n_clusters_per_class": 6, "flip_y": 0.02}
    return generated(5000, 20, **options)


def letter_halves() -> Data:
    X, y = real("letter.tr.gz")
    return X, np.where(y <= 13, 1.0, -1.0)


def cod_rna() -> Data:
    X, y = real("cod-rna.tr.gz")
    return standardised(X), y


def mnist_parity(part: str = "tr", rows: int = 20000) -> Data:
    """Even against odd digits; `part` is "tr" or "t"."""
    with np.load(data_folder("mnist.npz") / "mnist.npz") as archive:
        X, y = archive[f"X_{part}"][:rows], archive[f"y_{part}"][:rows]
    return X.astype(np.float64) / 255.0, np.where(y % 2 == 0, 1.0, -1.0)


MIXTURE_PARTS = 6  # Gaussians of each class
MIXTURE_SPREAD = 0.95  # standard deviation of the centres; that of the points about them is 1
MIXTURE_COST, MIXTURE_GAMMA = 1.0, 1 / 40


def gaussian_mixtures(n: int, d: int = 20, seed: int = 0) -> Data:
    """Two overlapping classes, each a mixture of Gaussians whose centres depend on the seed alone.

    At MIXTURE_COST and MIXTURE_GAMMA one point in ten is an SV of 20,000, and one in twenty of
    500,000: those within the margin go with n, those on it do not.
    """
    rng = np.random.default_rng(seed)
    centres = MIXTURE_SPREAD * rng.standard_normal((2 * MIXTURE_PARTS, d))
    part = rng.integers(0, 2 * MIXTURE_PARTS, size=n)
    X = rng.standard_normal((n, d))
    X += centres[part]
    return X, np.where(part < MIXTURE_PARTS, 1.0, -1.0)


@dataclass(frozen=True)
class Goals:
    """What a case is held to; None where nothing is asked."""

    onedal: float | None = None  # at least: seconds of oneDAL / seconds of kfu
    libsvm: float | None = None  # at least: seconds of LIBSVM / seconds of kfu
    bound: float | None = None  # at most: seconds of kfu / the bound


@dataclass(frozen=True)
class Case:
    """An RBF C-SVC on one set.

    is_sparse: the data are CSR, and peers also run on a dense copy.
    is_quick: part of the quick subset; is_extra: runs only when it is quick or asked for by name.
    is_hard: many unbounded vectors and a large C, where peers take up to minutes; an extra.
    """

    title: str
    load: Callable[[], Data]
    cost: float
    gamma: float
    is_sparse: bool = False
    is_quick: bool = False
    is_extra: bool = False
    is_hard: bool = False


def a9a() -> Data:
    return real("a9a.tr.gz")


def cadata() -> Data:
    """Houses dearer than the median, against the others."""
    X, y = real("cadata.svm.gz")
    return standardised(X), np.where(y > np.median(y), 1.0, -1.0)


def hard_case(title: str, load: Callable[[], Data], cost: float, gamma: float) -> Case:
    return Case(title, load, cost, gamma, is_sparse=load is a9a, is_extra=True, is_hard=True)


CASES: dict[str, Case] = {
    "a": Case("made 20000×60, C=1, γ=1/60", many_clusters, 1.0, 1 / 60),
    "b": Case("made 20000×60, C=10, γ=1/60", many_clusters, 10.0, 1 / 60),
    "c": Case("made 50000×20 separated, C=1, γ=1/20", well_separated, 1.0, 1 / 20, is_quick=True),
    "a9a": Case("a9a 32561×123, C=1, γ=1/123", a9a, 1.0, 1 / 123, is_sparse=True),
    "cod-rna": Case("cod-rna 59535×8, C=10, γ=0.5", cod_rna, 10.0, 0.5),
    "letter": Case(
        "letter A–M/N–Z 15000×16, C=10, γ=1/16", letter_halves, 10.0, 1 / 16, is_quick=True
    ),
    "mnist": Case("mnist even/odd 20000×784, C=10, γ=0.02", mnist_parity, 10.0, 0.02),
    "e": Case("made 5000×20 hard, C=1000, γ=1/20", hard, 1000.0, 1 / 20, is_quick=True),
    "a1a": Case(
        "a1a 1605×119, C=1, γ=0.05",
        lambda: real("a1a.tr.gz"),
        1.0,
        0.05,
        is_sparse=True,
        is_quick=True,
        is_extra=True,
    ),
    "a9a-wide": Case("a9a 32561×123, C=1, γ=0.05", a9a, 1.0, 0.05, is_sparse=True, is_extra=True),
    "a9a-hard": hard_case("a9a 32561×123, C=100, γ=0.05", a9a, 100.0, 0.05),
    "cod-rna-hard": hard_case("cod-rna 59535×8, C=100, γ=1", cod_rna, 100.0, 1.0),
    "cadata": hard_case("cadata 20640×8, C=1000, γ=0.5", cadata, 1000.0, 0.5),
    "mixtures": hard_case(
        "mixtures 50000×10, C=100, γ=0.1", lambda: gaussian_mixtures(50000, 10), 100.0, 0.1
    ),
}

GOALS: dict[str, Goals] = {
    "a": Goals(onedal=4, libsvm=12, bound=4),
    "b": Goals(onedal=4, libsvm=12, bound=8),
    "c": Goals(onedal=8, libsvm=16, bound=6),
    "a9a": Goals(onedal=6, libsvm=30, bound=2.5),
    "cod-rna": Goals(onedal=6, libsvm=12, bound=6),
    "letter": Goals(onedal=5, libsvm=12, bound=7),
    "mnist": Goals(onedal=3, libsvm=20, bound=4),
    "e": Goals(onedal=4, libsvm=7),
}
MARGIN_MIB = 200.0  # at most: peak memory of kfu - memory before training - cache budget

FULL_CASES = [name for name, case in CASES.items() if not case.is_extra]
QUICK_CASES = [name for name, case in CASES.items() if case.is_quick]
HARD_CASES = [name for name, case in CASES.items() if case.is_hard]


@dataclass(frozen=True)
class Prediction:
    """A model to predict with: its training problem, and the rows it is given."""

    title: str
    load: Callable[[], Data]
    load_test: Callable[[], Data]
    cost: float
    gamma: float
    goals: Goals = Goals()  # the bound is the panel rate
    is_quick: bool = False


PREDICTIONS: dict[str, Prediction] = {
    "mnist": Prediction(
        "mnist even/odd, 10000 rows",
        mnist_parity,
        lambda: mnist_parity("t", 10000),
        10.0,
        0.02,
        Goals(onedal=2, libsvm=20, bound=1.5),
    ),
    "letter": Prediction(
        "letter, 26 classes one against one, 5000 rows, C=16, γ=4",
        lambda: real("letter.tr.gz"),
        lambda: real("letter.t.gz"),
        16.0,
        4.0,
        is_quick=True,
    ),
}
