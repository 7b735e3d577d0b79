"""Where the rows of an experiment come from, and how they are divided.

Rows come from files (`train`, perhaps `test`: paths relative to the YAML file, `$KFU_DATA/...`
for sets that are not shipped) or from a toy generator (kfu/toys.py), drawn anew for each
repetition. A split turns them into one or more parts, each with training and test rows; SPLITS is
the one place to add a kind. Every random choice is a function of the seed and the repetition, so
a part can be computed alone, in any order, and again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import Dataset, format_label
from kfu.errors import DataError, SettingsError
from kfu.experiment.archives import read_archive, two_names
from kfu.experiment.document import (
    Key,
    choice,
    flag,
    fraction,
    positive_count,
    text,
)
from kfu.io import ALIASES, FORMATS, read_dataset
from kfu.toys import TOYS, Sample, generate


def label_column(value: Any) -> int | str:
    """1 is the first column and -1 the last; a name is one of the header."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("not a column; give its number (1 is the first) or its name")
    if value == 0:
        raise ValueError("columns count from 1 (the first) or from -1 (the last)")
    return value - 1 if isinstance(value, int) and value > 0 else value


def positive_classes(value: Any) -> str | tuple[str, ...]:
    """A label or a list of labels."""
    return tuple(text(item) for item in value) if isinstance(value, list) else text(value)


DATA_KEYS: dict[str, Key] = {
    "train": Key(text, "the file of the training rows"),
    "test": Key(text, "the file of the test rows"),
    "toy": Key(choice("toy", TOYS), "the generator of the rows"),
    "n_train": Key(positive_count, "how many training rows a toy has"),
    "n_test": Key(positive_count, "how many test rows a toy has"),
    "source": Key(text, "where the files can be had"),
    "positive": Key(positive_classes, "the class, or list of classes, against all others"),
    "format": Key(choice("format", ["auto", *FORMATS, *ALIASES]), "the format of the files"),
    "zero_based": Key(flag, "whether feature numbers of libsvm text start at 0"),
    "label_column": Key(label_column, "the column of a table that holds the label"),
    "train_arrays": Key(two_names, "the names of X and y in an .npz file of training rows"),
    "test_arrays": Key(two_names, "the same for the test rows"),
}


@dataclass(frozen=True)
class DataPlan:
    """The `data` of an experiment; `file` and `lines` say where it was written."""

    file: str = ""
    folder: Path = Path()
    lines: dict[str, int | None] = field(default_factory=dict)
    train: str | None = None
    test: str | None = None
    toy: str | None = None
    n_train: int | None = None
    n_test: int | None = None
    source: str = ""
    positive: str | tuple[str, ...] | None = None
    format: str = "auto"
    zero_based: bool | None = None
    label_column: int | str | None = None
    train_arrays: list[str] | None = None
    test_arrays: list[str] | None = None

    def path_of(self, key: str) -> Path:
        """The file that `key` (train or test) names. DataError tells where it can be had."""
        written = getattr(self, key)
        missing = [
            name for name in re.findall(r"\$\{?(\w+)\}?", written) if not os.environ.get(name)
        ]
        if missing:
            name = Path(written).name
            raise self.complaint(
                key,
                f"${missing[0]} is not set",
                f"set {missing[0]} to the folder that holds {name}",
            )
        path = self.folder / os.path.expanduser(os.path.expandvars(written))
        if not path.is_file():
            raise self.complaint(key, f"no file '{shown_path(path)}'", "put it there")
        return path

    def complaint(self, key: str, found: str, remedy: str) -> DataError:
        source = f" (it can be had from {self.source})" if self.source else ""
        return DataError(self.file, self.lines.get(key), f"data.{key}: {found}", remedy + source)

    def fingerprint(self) -> dict[str, Any]:
        """What identifies the rows: contents of files, not their names; how they are read."""
        how = {
            "positive": self.positive,
            "format": self.format,
            "zero_based": self.zero_based,
            "label_column": self.label_column,
            "arrays": [self.train_arrays, self.test_arrays],
        }
        if self.toy is not None:
            return {"toy": self.toy, "n_train": self.n_train, "n_test": self.n_test, **how}
        keys = [key for key in ("train", "test") if getattr(self, key) is not None]
        return {**{key: sha256_of(self.path_of(key)) for key in keys}, **how}


def shown_path(path: Path) -> str:
    """Relative to where the user is, when that is shorter."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def sha256_of(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Rows:
    """Training rows, and test rows where there are some."""

    train: Dataset
    test: Dataset | None = None


def load_rows(plan: DataPlan, seed: list[int]) -> Rows:
    """The rows of `plan`. `seed` matters to toys only."""
    if plan.toy is not None:
        toy = TOYS[plan.toy]
        sizes = (plan.n_train or toy.n_train, plan.n_test or toy.n_test)
        parts = [
            toy_dataset(plan.toy, generate(plan.toy, n, [*seed, stream]))
            for stream, n in enumerate(sizes)
        ]
        rows = Rows(parts[0], parts[1])
    else:
        train = read_file(plan, "train")
        rows = Rows(train, read_file(plan, "test") if plan.test is not None else None)
        if rows.test is not None and rows.test.is_sparse != train.is_sparse:
            rows = replace(rows, test=like(rows.test, train))
    if plan.positive is not None:
        test = None if rows.test is None else one_against_rest(rows.test, plan.positive)
        rows = Rows(one_against_rest(rows.train, plan.positive), test)
    return rows


def toy_dataset(name: str, sample: Sample) -> Dataset:
    X = np.ascontiguousarray(sample.X)
    return Dataset(
        X=X, y=sample.y, weights=None, qid=sample.qid, source=f"toy {name}", zero_based=False
    )


def read_file(plan: DataPlan, key: str) -> Dataset:
    arrays = plan.train_arrays if key == "train" else plan.test_arrays
    if arrays is not None:
        return read_archive(shown_path(plan.path_of(key)), arrays)
    options: dict[str, Any] = {"format": plan.format}
    if plan.zero_based is not None:
        options["zero_based"] = plan.zero_based
    if plan.label_column is not None:
        options["label_column"] = plan.label_column
    data = read_dataset(shown_path(plan.path_of(key)), **options)
    if data.y is None:
        raise plan.complaint(key, "the rows have no labels", "give a file with labels")
    return data


def like(data: Dataset, other: Dataset) -> Dataset:
    """`data` in the layout (dense or sparse) of `other`."""
    X = sp.csr_matrix(data.X) if other.is_sparse else np.ascontiguousarray(data.X.toarray())
    return replace(data, X=X)


def one_against_rest(data: Dataset, label: str | tuple[str, ...]) -> Dataset:
    """Labels +1 for the class `label`, or classes, -1 for every other."""
    assert data.y is not None
    wanted = {label} if isinstance(label, str) else set(label)
    hit = np.array([format_label(value) in wanted for value in data.y])
    if not hit.any() or hit.all():
        found = ", ".join(sorted({format_label(value) for value in data.y})[:10])
        raise SettingsError(
            f"data.positive: '{', '.join(sorted(wanted))}' is "
            f"{'every' if hit.all() else 'no'} row of "
            f"{data.source}; its classes are {found}"
        )
    return replace(data, y=np.where(hit, 1.0, -1.0))


# ---- splits ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitPlan:
    kind: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Split:
    """A kind of split: the number of parts it makes and the rows of part `k`."""

    keys: Mapping[str, Key]
    n_parts: Callable[[dict[str, Any]], int]
    rows_of: Callable[[Rows, dict[str, Any], int, list[int]], Rows]


def shuffled(data: Dataset, stratified: bool, seed: list[int]) -> np.ndarray:
    """A random order of the rows in which, when `stratified`, equal labels stand together.

    Taking every k-th row of that order gives each part its share of every class (and, for real
    targets, of every range of values).
    """
    order = np.random.default_rng(seed).permutation(data.n)
    if stratified and data.y is not None:
        order = order[np.argsort(data.y[order], kind="stable")]
    return order


def every(n: int, m: int) -> np.ndarray:
    """A mask of n places with m of them set, as evenly as whole numbers allow."""
    steps = (np.arange(n + 1) * m + n // 2) // n
    return np.diff(steps) > 0


def given_rows(rows: Rows, options: dict[str, Any], part: int, seed: list[int]) -> Rows:
    return rows


def random_rows(rows: Rows, options: dict[str, Any], part: int, seed: list[int]) -> Rows:
    n = rows.train.n
    n_train, n_test = options.get("n_train"), options.get("n_test")
    if n_test is None:
        share = options.get("test_fraction", 1 / 3)
        n_test = n - n_train if n_train is not None else round(share * n)
    n_train = n - n_test if n_train is None else n_train
    if n_test < 1 or n_train < 1 or n_train + n_test > n:
        raise SettingsError(
            f"split: {n_train} training and {n_test} test rows cannot be taken from the {n} rows "
            f"of {rows.train.source}"
        )
    order = shuffled(rows.train, options.get("stratified", True), seed)
    test = every(n, n_test)
    rest = order[~test]
    return Rows(rows.train.take(rest[every(len(rest), n_train)]), rows.train.take(order[test]))


def fold_rows(rows: Rows, options: dict[str, Any], part: int, seed: list[int]) -> Rows:
    k = options.get("folds", 5)
    if k > rows.train.n:
        raise SettingsError(f"split: {k} folds of {rows.train.n} rows; give fewer folds")
    order = shuffled(rows.train, options.get("stratified", True), seed)
    test = np.arange(len(order)) % k == part
    return Rows(rows.train.take(order[~test]), rows.train.take(order[test]))


def at_least_two(value: Any) -> int:
    if positive_count(value) < 2:
        raise ValueError("1 is out of range; give at least 2 folds")
    return int(value)


STRATIFIED = Key(flag, "whether every part gets its share of each class (default: true)")

SPLITS: dict[str, Split] = {
    "given": Split({}, lambda options: 1, given_rows),
    "random": Split(
        {
            "test_fraction": Key(fraction, "the share of test rows (default: a third)"),
            "n_train": Key(positive_count, "how many training rows"),
            "n_test": Key(positive_count, "how many test rows"),
            "stratified": STRATIFIED,
        },
        lambda options: 1,
        random_rows,
    ),
    "folds": Split(
        {"folds": Key(at_least_two, "how many folds (default: 5)"), "stratified": STRATIFIED},
        lambda options: int(options.get("folds", 5)),
        fold_rows,
    ),
}
