"""Reads LIBSVM's model text; kfu.io.libsvm_model says what it holds and how signs are turned."""

from __future__ import annotations

import gzip
import math
import warnings
import zlib
from array import array
from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from kfu.errors import KfuError, ModelError
from kfu.io.libsvm_model_types import CLASSIFIERS, INT32, LIBSVM_KERNELS, SVM_TYPES
from kfu.kernels import KernelSpec
from kfu.model import Model
from kfu.pairwise import ovo_code, pair_order, unpack_pairwise

__all__ = ["read_libsvm_model"]

# Header keyword -> type of its values and whether there is one or a list.
KEYWORDS: dict[str, tuple[type, bool]] = {
    "svm_type": (str, False),
    "kernel_type": (str, False),
    "degree": (int, False),
    "gamma": (float, False),
    "coef0": (float, False),
    "nr_class": (int, False),
    "total_sv": (int, False),
    "rho": (float, True),
    "label": (int, True),
    "nr_sv": (int, True),
    "probA": (float, True),
    "probB": (float, True),
    "prob_density_marks": (float, True),
}
# Keywords of one_class and the regressions that kfu's models have no place for.
WITHOUT_A_PLACE = {
    "probA": "the scale of the residuals' Laplace distribution",
    "probB": "no meaning without classes",
    "prob_density_marks": "the density of the training data by decision value",
}
# A dense matrix of support vectors is kept when at least this part of it is not zero.
DENSE_FROM = 0.4


def read_libsvm_model(path: str | PathLike[str]) -> Model:
    """The model in LIBSVM's text, plain or gzip; ModelError, with the line, when it is not one."""
    source = fspath(path)
    try:
        with open(source, "rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
        opener: Any = gzip.open if is_gzip else open
        with opener(source, "rt", encoding="ascii", errors="strict", newline=None) as text:
            return _Reader(source).read(enumerate(text, start=1))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ModelError(source, "damaged gzip file", "copy it again or train again") from None
    except FileNotFoundError:
        raise ModelError(source, "no such file", "check the path of the model") from None
    except IsADirectoryError:
        raise ModelError(source, "is a directory", "give the path of a model file") from None
    except UnicodeDecodeError:
        raise ModelError(source, "not text", "give a model that svm-train wrote") from None


class _Reader:
    """Parses one file; `at` is the line being read, for messages."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.header: dict[str, Any] = {}

    def fail(self, found: str, remedy: str = "give a model that svm-train wrote") -> NoReturn:
        where = f"{self.source}:{self.at}" if self.at else self.source
        raise ModelError(where, found, remedy)

    def read(self, lines: Iterator[tuple[int, str]]) -> Model:
        self.read_header(lines)
        kernel = self.kernel()
        is_precomputed = kernel.name == "precomputed"
        packed, vectors = self.read_vectors(lines, self.header["nr_class"] - 1, is_precomputed)
        support = np.full(packed.shape[1], -1, dtype=np.int64)
        svm_type = self.header["svm_type"]
        settings: dict[str, Any] = {"source": "libsvm", "svm_type": svm_type}
        if is_precomputed:
            support, vectors = vectors, None
            settings["n_train"] = "unknown"
        self.at = 0
        machine = self.voting(packed) if svm_type in CLASSIFIERS else self.single(packed)
        width = int(support.max(initial=-1)) + 1 if vectors is None else vectors.shape[1]
        try:
            return Model(
                machine=SVM_TYPES[svm_type],
                kernel=kernel,
                n_features=width,
                support=support,
                support_vectors=vectors,
                settings=settings,
                **machine,
            )
        except ValueError as error:
            self.fail(str(error))

    def voting(self, packed: np.ndarray) -> dict[str, Any]:
        """The parts of a classifier's model, signs and order turned into kfu's."""
        header, n_classes = self.header, self.header["nr_class"]
        labels = np.asarray(header["label"], dtype=np.float64)
        owner = np.repeat(np.arange(n_classes), header["nr_sv"])
        # In LIBSVM's order of classes the first of each pair is positive; ours is the sorted order.
        code = -ovo_code(n_classes)[np.argsort(labels)]
        order, sign = pair_order(code, larger_is_positive=True)
        return {
            "classes": np.sort(labels),
            "coef": unpack_pairwise(packed, owner)[order] * sign[:, None],
            "bias": -np.asarray(header["rho"])[order] * sign,
            "code": ovo_code(n_classes),
            "calibration": self.calibration(ovo_code(n_classes), order, sign),
        }

    def calibration(
        self, code: np.ndarray, order: np.ndarray, sign: np.ndarray
    ) -> dict[str, Any] | None:
        """The sigmoids 1 / (1 + exp(A f + B)); of -f they are those of (A, -B), turned over."""
        if "probA" not in self.header:
            return None
        from kfu.calibration import Calibrator, Sigmoid

        slopes = np.asarray(self.header["probA"])[order].tolist()
        offsets = (np.asarray(self.header["probB"])[order] * sign).tolist()
        links = tuple(Sigmoid(A, B) for A, B in zip(slopes, offsets, strict=True))
        return Calibrator("sigmoid", code, links).to_dict()

    def single(self, packed: np.ndarray) -> dict[str, Any]:
        """The parts of a model of one function: one_class and the regressions."""
        for key, meaning in WITHOUT_A_PLACE.items():
            if key in self.header:
                warnings.warn(
                    f"{self.source}: '{key}' ({meaning}) is left out; kfu has no place for it",
                    UserWarning,
                    stacklevel=5,
                )
        is_novelty = self.header["svm_type"] == "one_class"
        n_sv = packed.shape[1]
        return {
            "classes": np.array([-1.0, 1.0]) if is_novelty else np.zeros(0),
            "coef": packed,
            "bias": -np.asarray(self.header["rho"]),
            "code": np.array([[-1], [1]]) if is_novelty else np.zeros((0, 1)),
            "n_support": np.array([0, n_sv]) if is_novelty else np.zeros(0),
        }

    def read_header(self, lines: Iterator[tuple[int, str]]) -> None:
        for self.at, line in lines:
            words = line.split()
            if not words:
                continue
            if words[0] == "SV":
                break
            self.read_keyword(words)
        else:
            self.fail("no 'SV' line", "the file is not complete: copy it again or train again")
        if "svm_type" not in self.header:
            self.fail("not a LIBSVM model (it starts with 'svm_type')")
        needed = ["kernel_type", "nr_class", "total_sv", "rho"]
        if self.header["svm_type"] in CLASSIFIERS:
            needed += ["label", "nr_sv"]
        for key in needed:
            if key not in self.header:
                self.fail(f"no '{key}' before 'SV'")
        self.check_counts()

    def read_keyword(self, words: list[str]) -> None:
        key, values = words[0], words[1:]
        if not self.header and key != "svm_type":
            self.fail("not a LIBSVM model (it starts with 'svm_type')")
        if key not in KEYWORDS:
            self.fail(f"keyword '{key[:40]}' is not known")
        kind, is_list = KEYWORDS[key]
        if key in self.header:
            self.fail(f"'{key}' for the second time")
        try:
            parsed = [kind(value) for value in values]
        except ValueError:
            self.fail(f"'{' '.join(values)[:60]}' after '{key}'")
        if kind is not str and any("_" in value for value in values):  # Python's, not C's
            self.fail(f"'{' '.join(values)[:60]}' after '{key}'")
        if kind is int and not all(value in INT32 for value in parsed):
            self.fail(f"a value of '{key}' is not a 32-bit integer")
        if kind is float and not all(map(math.isfinite, parsed)):
            self.fail(f"a value of '{key}' is not finite", "train again")
        if not is_list and len(parsed) != 1:
            self.fail(f"{len(parsed)} values after '{key}' where 1 belongs")
        if key == "svm_type" and parsed[0] not in SVM_TYPES:
            self.fail(f"svm_type '{parsed[0]}' is not known")
        if key == "kernel_type" and parsed[0] not in LIBSVM_KERNELS:
            self.fail(
                f"kernel_type '{parsed[0]}' is not known",
                f"kfu reads {', '.join(LIBSVM_KERNELS)}",
            )
        self.header[key] = parsed if is_list else parsed[0]

    def check_counts(self) -> None:
        header, n_classes = self.header, self.header["nr_class"]
        is_classifier = header["svm_type"] in CLASSIFIERS
        if not is_classifier and n_classes != 2:
            self.fail(f"nr_class {n_classes} where svm_type {header['svm_type']} has 2")
        if n_classes < 2:
            self.fail(f"nr_class {n_classes}", "train on data with at least two classes")
        n_pairs = n_classes * (n_classes - 1) // 2
        self.require_size("rho", n_pairs)
        if header["total_sv"] < 0:
            self.fail(f"total_sv {header['total_sv']}")
        if not is_classifier:
            return
        self.require_size("label", n_classes)
        self.require_size("nr_sv", n_classes)
        if len(set(header["label"])) != n_classes:
            self.fail("a label appears twice")
        if min(header["nr_sv"]) < 0 or sum(header["nr_sv"]) != header["total_sv"]:
            self.fail("nr_sv does not add up to total_sv")
        if ("probA" in header) != ("probB" in header):
            self.fail("one of 'probA' and 'probB' without the other")
        if "probA" in header:
            self.require_size("probA", n_pairs)
            self.require_size("probB", n_pairs)

    def require_size(self, key: str, size: int) -> None:
        if len(self.header[key]) != size:
            self.fail(f"{len(self.header[key])} values of '{key}' where {size} belong")

    def kernel(self) -> KernelSpec:
        name, parameters = LIBSVM_KERNELS[self.header["kernel_type"]]
        for parameter in parameters:
            if parameter not in self.header:
                self.fail(f"no '{parameter}' for kernel_type {self.header['kernel_type']}")
        try:
            return KernelSpec.make(name, **{p: self.header[p] for p in parameters})
        except (KfuError, ValueError) as error:
            self.fail(f"kernel_type {self.header['kernel_type']} ({error})", "train again")

    def read_vectors(
        self, lines: Iterator[tuple[int, str]], n_rows: int, is_precomputed: bool
    ) -> tuple[np.ndarray, Any]:
        """Packed coefficients (n_rows, total_sv); the vectors, or for precomputed their rows."""
        total = self.header["total_sv"]
        coef: list[list[float]] = []
        data, indices = array("d"), array("q")
        indptr = [0]
        for self.at, line in lines:
            words = line.split()
            if not words:
                continue
            if not line.endswith("\n"):  # a cut can leave a shorter, valid number or vector
                self.fail(
                    "the last line does not end", "copy the file again, or add the missing newline"
                )
            if "_" in line:  # Python's numbers may have it, C's may not
                self.fail("'_' in a number")
            if len(coef) == total:
                self.fail(f"more than the {total} support vectors of 'total_sv'")
            try:
                coef.append([float(word) for word in words[:n_rows]])
            except ValueError:
                self.fail(f"fewer than {n_rows} coefficients")
            if len(words) < n_rows:
                self.fail(f"fewer than {n_rows} coefficients")
            self.read_entries(words[n_rows:], is_precomputed, data, indices)
            indptr.append(len(data))
        if len(coef) != total:
            self.fail(
                f"{len(coef)} support vectors where 'total_sv' says {total}",
                "the file is not complete: copy it again or train again",
            )
        packed = np.asarray(coef, dtype=np.float64).reshape(total, n_rows).T
        if not np.isfinite(packed).all() or not np.isfinite(data).all():
            self.at = 0
            self.fail("a coefficient or value that is not finite", "train again")
        if is_precomputed:
            return packed, np.asarray(data, dtype=np.int64) - 1
        return packed, _compact(data, indices, indptr)

    def read_entries(
        self, words: list[str], is_precomputed: bool, data: array[float], indices: array[int]
    ) -> None:
        last = 0
        for word in words:
            index_text, _, value_text = word.partition(":")
            try:
                index, value = int(index_text), float(value_text)
            except ValueError:
                self.fail(f"'{word[:40]}' where index:value belongs")
            if is_precomputed:
                if index != 0 or len(words) != 1 or not _is_serial(value):
                    self.fail(f"'{word[:40]}' where 0:serial belongs")
            elif index <= last or index not in INT32:
                self.fail(f"index {index} after {last}", "indices start at 1 and increase")
            last = index
            data.append(value)
            indices.append(index - 1)
        if is_precomputed and not words:
            self.fail("no 0:serial for a precomputed kernel")


def _is_serial(value: float) -> bool:
    return 1 <= value < 2**31 and value == int(value)


def _compact(data: array[float], indices: array[int], indptr: list[int]) -> Any:
    """CSR, or an array where most entries are there."""
    width = max(max(indices, default=0) + 1, 1)
    shape = (len(indptr) - 1, width)
    matrix = sp.csr_matrix(
        (np.asarray(data, dtype=np.float64), np.asarray(indices, dtype=np.int32), indptr),
        shape=shape,
    )
    if matrix.nnz >= DENSE_FROM * shape[0] * width:
        return matrix.toarray()
    return matrix
