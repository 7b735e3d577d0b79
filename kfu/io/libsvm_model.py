"""LIBSVM's model text, read and written, so that svm-predict and kfu exchange models.

The text is a header of ``keyword values`` lines, the line ``SV``, and one line for each support
vector: its packed pairwise coefficients (see kfu.pairwise), then ``index:value`` with indices from
1 (a precomputed kernel: ``0:serial``, the number of the training row from 1).

Signs. LIBSVM's f = Σ sv_coef K - rho is positive for the label that stands first in ``label``, in
the order of the training file; kfu's is positive for the larger label. The reader turns the signs
so that kfu's rule holds. The writer puts the labels in falling order, which makes the two rules
one: the decision values svm-predict prints are kfu's, with pairs counted from the last class.

What the text cannot hold: a scaler, row numbers of the support vectors, string or fractional
labels, kernels other than LIBSVM's five. Writing such a model is refused, except that row numbers
are left out; a model that was read has -1 for them.
"""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections.abc import Iterator
from os import PathLike, fspath
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from kfu.errors import KfuError, ModelError
from kfu.io.atomic import atomic_output
from kfu.kernels import KernelSpec
from kfu.model import Model
from kfu.pairwise import (
    ovo_code,
    pack_pairwise,
    pair_order,
    pairs_of,
    support_classes,
    unpack_pairwise,
)

__all__ = ["read_libsvm_model", "write_libsvm_model"]

# LIBSVM's kernel name -> kfu's name and the parameters its header lists.
LIBSVM_KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
OUR_KERNELS = {ours: theirs for theirs, (ours, _) in LIBSVM_KERNELS.items()}
# Types whose decision function is a vote over Σ sv_coef K - rho.
CLASSIFIERS = ("c_svc", "nu_svc")
OTHER_TYPES = ("one_class", "epsilon_svr", "nu_svr")
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
INT32 = range(-(2**31), 2**31)
# A dense matrix of support vectors is kept when at least this part of it is not zero.
DENSE_FROM = 0.4


# ---- reading -------------------------------------------------------------------------------


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
        header = self.header
        kernel = self.kernel()
        n_classes = header["nr_class"]
        packed, vectors = self.read_vectors(lines, n_classes - 1, kernel.name == "precomputed")
        labels = np.asarray(header["label"], dtype=np.float64)
        owner = np.repeat(np.arange(n_classes), header["nr_sv"])
        # In LIBSVM's order of classes the first of each pair is positive; ours is the sorted order.
        code = -ovo_code(n_classes)[np.argsort(labels)]
        order, sign = pair_order(code, larger_is_positive=True)
        coef = unpack_pairwise(packed, owner)[order] * sign[:, None]
        bias = -np.asarray(header["rho"])[order] * sign
        support = np.full(owner.size, -1, dtype=np.int64)
        settings: dict[str, Any] = {"source": "libsvm", "svm_type": header["svm_type"]}
        if kernel.name == "precomputed":
            support, vectors = vectors, None
            settings["n_train"] = "unknown"
        self.at = 0
        try:
            return Model(
                machine="svc",
                kernel=kernel,
                classes=np.sort(labels),
                n_features=int(support.max(initial=-1)) + 1
                if vectors is None
                else vectors.shape[1],
                support=support,
                support_vectors=vectors,
                coef=coef,
                bias=bias,
                code=ovo_code(n_classes),
                settings=settings,
            )
        except ValueError as error:
            self.fail(str(error))

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
        if self.header["svm_type"] in OTHER_TYPES:
            self.at = 0
            self.fail(
                f"svm_type {self.header['svm_type']}",
                f"kfu reads the classifiers of LIBSVM ({', '.join(CLASSIFIERS)})",
            )
        for key in ("kernel_type", "nr_class", "total_sv", "rho", "label", "nr_sv"):
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
        if key == "svm_type" and parsed[0] not in CLASSIFIERS + OTHER_TYPES:
            self.fail(f"svm_type '{parsed[0]}' is not known")
        if key == "kernel_type" and parsed[0] not in LIBSVM_KERNELS:
            self.fail(
                f"kernel_type '{parsed[0]}' is not known",
                f"kfu reads {', '.join(LIBSVM_KERNELS)}",
            )
        self.header[key] = parsed if is_list else parsed[0]

    def check_counts(self) -> None:
        header, n_classes = self.header, self.header["nr_class"]
        if n_classes < 2:
            self.fail(f"nr_class {n_classes}", "train on data with at least two classes")
        sizes = {"rho": n_classes * (n_classes - 1) // 2, "label": n_classes, "nr_sv": n_classes}
        for key, size in sizes.items():
            if len(header[key]) != size:
                self.fail(f"{len(header[key])} values of '{key}' where {size} belong")
        if len(set(header["label"])) != n_classes:
            self.fail("a label appears twice")
        if min(header["nr_sv"]) < 0 or sum(header["nr_sv"]) != header["total_sv"]:
            self.fail("nr_sv does not add up to total_sv")

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


# ---- writing -------------------------------------------------------------------------------


def write_libsvm_model(path: str | PathLike[str], model: Model) -> None:
    """Write `model` as LIBSVM's text, atomically; ModelError when the text cannot hold it."""
    target = fspath(path)
    _require_expressible(target, model)
    # Falling labels: with the classes reversed, the larger one, positive here, is the first.
    owner = model.n_classes - 1 - support_classes(model.coef, model.code)
    pairs, sign = pair_order(model.code[::-1], larger_is_positive=False)
    coef = model.coef[pairs] * sign[:, None] * model.kernel.weight
    bias = model.bias[pairs] * sign
    packed = pack_pairwise(coef, ovo_code(model.n_classes), owner)
    order = np.argsort(owner, kind="stable")
    order = order[owner[order] < model.n_classes]  # a vector without coefficients has no class
    with atomic_output(path, "wb") as file:
        counts = np.bincount(owner[order], minlength=model.n_classes)
        file.write("".join(_header_lines(model, counts, bias)).encode("ascii"))
        for row in order:
            text = " ".join(_number(c) for c in packed[:, row])
            file.write(f"{text} {_entries(model, row)}\n".encode("ascii"))


def _require_expressible(target: str, model: Model) -> None:
    """ModelError when LIBSVM's text cannot hold the model."""
    if model.scaler is not None:
        raise ModelError(
            target,
            "the model holds a scaler, which LIBSVM's text cannot",
            "scale the data with `kfu scale` first and train without --scale",
        )
    if model.kernel.name not in OUR_KERNELS:
        raise ModelError(
            target,
            f"LIBSVM has no {model.kernel.name} kernel",
            f"train with one of {', '.join(OUR_KERNELS)}",
        )
    for label in model.classes.tolist():
        if isinstance(label, str) or label != int(label) or int(label) not in INT32:
            raise ModelError(
                target,
                f"label {label!r} is not a 32-bit integer, as LIBSVM's are",
                "number the classes in the training data",
            )
    if pairs_of(model.code) is None:
        raise ModelError(
            target, "the machines are not one for each pair of classes", "train one-versus-one"
        )


def _header_lines(model: Model, counts: np.ndarray, bias: np.ndarray) -> list[str]:
    theirs = OUR_KERNELS[model.kernel.name]
    values = {
        "svm_type": "c_svc",
        "kernel_type": theirs,
        **{p: _number(model.kernel.params[p]) for p in LIBSVM_KERNELS[theirs][1]},
        "nr_class": str(model.n_classes),
        "total_sv": str(int(counts.sum())),
        "rho": " ".join(_number(-b) for b in bias),
        "label": " ".join(str(int(v)) for v in model.classes[::-1]),
        "nr_sv": " ".join(str(n) for n in counts),
    }
    return [*(f"{key} {value}\n" for key, value in values.items()), "SV\n"]


def _number(value: float) -> str:
    """The shortest decimal that reads back as the same float64; no '.0', no '-0'."""
    text = repr(float(value) + 0.0)
    return text.removesuffix(".0")


def _entries(model: Model, row: int) -> str:
    vectors = model.support_vectors
    if vectors is None:
        return f"0:{model.support[row] + 1}"
    if sp.issparse(vectors):
        start, stop = vectors.indptr[row], vectors.indptr[row + 1]
        columns, values = vectors.indices[start:stop], vectors.data[start:stop]
    else:
        columns = np.flatnonzero(vectors[row])
        values = vectors[row, columns]
    pairs = zip((columns + 1).tolist(), values.tolist(), strict=True)
    return " ".join(f"{column}:{_number(value)}" for column, value in pairs)
