"""LIBSVM's model text, read and written, so that svm-predict and kfu exchange models.

The text is a header of ``keyword values`` lines, the line ``SV``, and one line for each support
vector: its coefficients, then ``index:value`` with indices from 1 (a precomputed kernel:
``0:serial``, the number of the training row from 1). A classifier has packed pairwise coefficients
(see kfu.pairwise); one_class, epsilon_svr and nu_svr have one, and neither ``label`` nor ``nr_sv``.

Signs. LIBSVM's f = Σ sv_coef K - rho is positive for the label that stands first in ``label``, in
the order of the training file; kfu's is positive for the larger label. The reader turns the signs
so that kfu's rule holds. The writer puts the labels in falling order, which makes the two rules
one: the decision values svm-predict prints are kfu's, with pairs counted from the last class.
Without labels f is the same function on both sides.

``probA`` and ``probB`` of a classifier are a sigmoid for each pair, P = 1 / (1 + exp(A f + B)) for
the label that stands first: kfu's calibration by sigmoids.

What the text cannot hold: a scaler, row numbers of the support vectors, string or fractional
labels, kernels other than LIBSVM's five, machines and codes that LIBSVM does not have. Writing such
a model is refused, except that row numbers are left out (a model that was read has -1 for them),
and an isotonic calibration too, with a warning.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np
import scipy.sparse as sp

from kfu.errors import ModelError
from kfu.io.atomic import atomic_output
from kfu.io.libsvm_model_reader import read_libsvm_model
from kfu.io.libsvm_model_types import CLASSIFIERS, INT32, LIBSVM_KERNELS, OUR_KERNELS, WRITTEN_AS
from kfu.model import Model
from kfu.pairwise import ovo_code, pack_pairwise, pair_order, pairs_of, support_classes

__all__ = ["read_libsvm_model", "write_libsvm_model"]


def write_libsvm_model(path: str | PathLike[str], model: Model) -> None:
    """Write `model` as LIBSVM's text, atomically; ModelError when the text cannot hold it."""
    target = fspath(path)
    _require_expressible(target, model)
    is_classifier = WRITTEN_AS[model.machine] in CLASSIFIERS
    text = _voting(target, model) if is_classifier else _single(model)
    with atomic_output(path, "wb") as file:
        lines = [f"{key} {value}\n" for key, value in text.header.items()]
        file.write("".join([*lines, "SV\n"]).encode("ascii"))
        for row, coefficients in zip(text.rows, text.coef.T, strict=True):
            numbers = " ".join(_number(c) for c in coefficients)
            file.write(f"{numbers} {_entries(model, row)}\n".encode("ascii"))


@dataclass
class _Text:
    """What is written: the header, the vectors by their rows in the model, their coefficients."""

    header: dict[str, str]
    rows: np.ndarray
    coef: np.ndarray  # (numbers of a line, vectors)


def _voting(target: str, model: Model) -> _Text:
    # Falling labels: with the classes reversed, the larger one, positive here, is the first.
    owner = model.n_classes - 1 - support_classes(model.coef, model.code)
    pairs, sign = pair_order(model.code[::-1], larger_is_positive=False)
    coef = model.coef[pairs] * sign[:, None] * model.kernel.weight
    packed = pack_pairwise(coef, ovo_code(model.n_classes), owner)
    rows = np.argsort(owner, kind="stable")
    rows = rows[owner[rows] < model.n_classes]  # a vector without coefficients has no class
    counts = np.bincount(owner[rows], minlength=model.n_classes)
    header = {
        **_common_header(model, rows.size, model.bias[pairs] * sign),
        "label": " ".join(str(int(v)) for v in model.classes[::-1]),
        **_probability_lines(target, model, pairs, sign),
        "nr_sv": " ".join(str(n) for n in counts),
    }
    return _Text(header, rows, packed[:, rows])


def _single(model: Model) -> _Text:
    rows = np.flatnonzero(model.coef[0])
    coef = model.coef[:, rows] * model.kernel.weight
    return _Text(_common_header(model, rows.size, model.bias), rows, coef)


def _common_header(model: Model, n_sv: int, bias: np.ndarray) -> dict[str, str]:
    theirs = OUR_KERNELS[model.kernel.name]
    return {
        "svm_type": WRITTEN_AS[model.machine],
        "kernel_type": theirs,
        **{p: _number(model.kernel.params[p]) for p in LIBSVM_KERNELS[theirs][1]},
        "nr_class": str(max(model.n_classes, 2)),
        "total_sv": str(n_sv),
        "rho": " ".join(_number(-b) for b in bias),
    }


def _probability_lines(
    target: str, model: Model, pairs: np.ndarray, sign: np.ndarray
) -> dict[str, str]:
    """probA and probB of a calibration by sigmoids; the sigmoid (A, B) of f is (A, -B) of -f."""
    if model.calibration is None:
        return {}
    from kfu.calibration import Calibrator, Sigmoid

    calibrator = Calibrator.from_dict(model.calibration)
    links = [link for link in calibrator.links if isinstance(link, Sigmoid)]
    if len(links) < model.n_machines or not np.array_equal(calibrator.code, model.code):
        warnings.warn(
            f"{target}: the {calibrator.method} calibration is left out; LIBSVM has sigmoids only",
            UserWarning,
            stacklevel=4,
        )
        return {}
    slopes = np.array([link.A for link in links])[pairs]
    offsets = np.array([link.B for link in links])[pairs] * sign
    return {
        "probA": " ".join(_number(a) for a in slopes),
        "probB": " ".join(_number(b) for b in offsets),
    }


def _require_expressible(target: str, model: Model) -> None:
    """ModelError when LIBSVM's text cannot hold the model."""
    if model.machine not in WRITTEN_AS:
        raise ModelError(
            target,
            f"LIBSVM has no machine like {model.machine}",
            f"train one of {', '.join(WRITTEN_AS)}",
        )
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
    if WRITTEN_AS[model.machine] not in CLASSIFIERS:
        return
    for label in model.classes.tolist():
        if isinstance(label, str) or label != int(label) or int(label) not in INT32:
            raise ModelError(
                target,
                f"label {label!r} is not a 32-bit integer, as LIBSVM's are",
                "number the classes in the training data",
            )
    if pairs_of(model.code) is None:
        raise ModelError(
            target,
            "the machines are not one for each pair of classes, as LIBSVM's are",
            "train with --multiclass ava",
        )
    if model.n_classes > 2 and model.decoding != "votes":
        raise ModelError(
            target,
            f"the model decodes by {model.decoding} where svm-predict counts votes",
            "train with --decoding votes",
        )


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
