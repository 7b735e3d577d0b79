"""The training problems of the benchmarks: data, kernel and cost, each made or read on demand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Data = tuple[Any, np.ndarray]


def real(name: str) -> Data:
    """A set of the folder that KFU_DATA names."""
    from kfu import read_dataset

    if "KFU_DATA" not in os.environ:
        raise SystemExit(f"{name}: set KFU_DATA to the folder of the LIBSVM data sets")
    dataset = read_dataset(str(Path(os.environ["KFU_DATA"]) / name))
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


def many_clusters() -> Data:
    options = {"n_informative": 30, "n_redundant": 0, "n_clusters_per_class": 8, "flip_y": 0.05}
    return generated(20000, 60, **options)


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


def mnist_parity() -> Data:
    with np.load(Path(os.environ["KFU_DATA"]) / "mnist.npz") as archive:
        X, y = archive["X_tr"][:20000], archive["y_tr"][:20000]
    return X.astype(np.float64) / 255.0, np.where(y % 2 == 0, 1.0, -1.0)


@dataclass(frozen=True)
class Case:
    """An RBF C-SVC on one set."""

    title: str
    load: Callable[[], Data]
    cost: float
    gamma: float
    is_quick: bool = False


CASES: dict[str, Case] = {
    "a1a": Case("a1a 1605×119, C=1, γ=0.05", lambda: real("a1a.tr.gz"), 1.0, 0.05, True),
    "a9a-wide": Case("a9a 32561×123, C=1, γ=0.05", lambda: real("a9a.tr.gz"), 1.0, 0.05, True),
    "a9a": Case("a9a 32561×123, C=1, γ=1/123", lambda: real("a9a.tr.gz"), 1.0, 1 / 123),
    "a": Case("made 20000×60, C=1, γ=1/60", many_clusters, 1.0, 1 / 60),
    "b": Case("made 20000×60, C=10, γ=1/60", many_clusters, 10.0, 1 / 60),
    "c": Case("made 50000×20 separated, C=1, γ=1/20", well_separated, 1.0, 1 / 20, True),
    "e": Case("made 5000×20 hard, C=1000, γ=1/20", hard, 1000.0, 1 / 20, True),
    "letter": Case("letter A–M/N–Z 15000×16, C=10, γ=1/16", letter_halves, 10.0, 1 / 16, True),
    "cod-rna": Case("cod-rna 59535×8, C=10, γ=0.5", cod_rna, 10.0, 0.5),
    "mnist": Case("mnist even/odd 20000×784, C=10, γ=0.02", mnist_parity, 10.0, 0.02),
}
