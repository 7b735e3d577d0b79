"""The model file: a zip archive of ``header.json`` and one ``.npy`` member for each array.

The header holds everything small (names, kernel, classes, scaler, settings, the report of training)
and a manifest with the type and shape of each array. Arrays are stored, not compressed, members
have one fixed date and the header's keys are sorted, so equal models are equal bytes on every
machine. Nothing in the file is executed: JSON and plain numeric arrays only, and no memory is
reserved beyond what the file holds.

The file is written beside its destination and moved there when it is complete. docs/model-file.md
describes the format for readers in other languages.
"""

from __future__ import annotations

import ast
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu._version import __version__
from kfu.errors import KfuError, ModelError, SettingsError
from kfu.io.atomic import atomic_output
from kfu.io.json_values import plain
from kfu.kernels import KernelSpec
from kfu.model import Model
from kfu.scale import Scaler

__all__ = ["FORMAT", "VERSION", "load_model", "save_model"]

FORMAT = "kfu-model"
VERSION = 2  # 2: machines without classes, decodings, calibration
HEADER = "header.json"
MAX_HEADER_BYTES = 256 << 20
LABEL_TYPES = {"number": np.float64, "string": np.str_}
# Array -> the types it may have in a file; which arrays there are follows from `vectors`.
ARRAY_TYPES: dict[str, tuple[str, ...]] = {
    "support": ("<i8",),
    "coef": ("<f8",),
    "bias": ("<f8",),
    "code": ("|i1",),
    "n_support": ("<i8",),
    "vectors": ("<f8", "<f4"),
    "vectors.data": ("<f8", "<f4"),
    "vectors.indices": ("<i4", "<i8"),
    "vectors.indptr": ("<i8",),
}
BASE_ARRAYS = ("support", "coef", "bias", "code", "n_support")
VECTOR_ARRAYS = {
    "dense": ("vectors",),
    "csr": ("vectors.data", "vectors.indices", "vectors.indptr"),
    "precomputed": (),
}
HEADER_KEYS: dict[str, type | tuple[type, ...]] = {
    "machine": str,
    "kernel": dict,
    "classes": list,
    "label_type": str,
    "n_features": int,
    "vectors": str,
    "scaler": (dict, type(None)),
    "settings": dict,
    "info": dict,
    "arrays": dict,
}
OPTIONAL_KEYS: dict[str, tuple[type | tuple[type, ...], Any]] = {  # type, value when missing
    "decoding": (str, "votes"),
    "calibration": ((dict, type(None)), None),
}
# What a report says of the run rather than of the model: left out, so that training again gives the
# same bytes, whatever the number of threads.
OF_THE_RUN = frozenset({"seconds", "phases", "peak_rss_mib", "threads"})
REPLACE = "the file is damaged: copy it again or train again"


def _of_the_model(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without those of the run, and the same for the settings among them."""
    kept = {name: value for name, value in facts.items() if name not in OF_THE_RUN}
    if isinstance(kept.get("settings"), Mapping):
        kept["settings"] = _of_the_model(kept["settings"])
    return kept


def save_model(path: str | PathLike[str], model: Model) -> None:
    """Write `model` to `path`, atomically."""
    arrays = _arrays_of(model)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "kfu": __version__,
        "machine": model.machine,
        "kernel": plain(model.kernel.to_dict()),
        "classes": model.classes.tolist(),
        "label_type": "string" if model.classes.dtype.kind == "U" else "number",
        "n_features": model.n_features,
        "vectors": model.layout,
        "scaler": None if model.scaler is None else plain(model.scaler.to_dict()),
        "decoding": model.decoding,
        "calibration": None if model.calibration is None else plain(model.calibration),
        "settings": plain(_of_the_model(model.settings)),
        "info": plain(_of_the_model(model.info)),
        "arrays": {k: {"dtype": a.dtype.str, "shape": list(a.shape)} for k, a in arrays.items()},
    }
    text = json.dumps(header, sort_keys=True, indent=1, allow_nan=False) + "\n"
    with (
        atomic_output(path, "wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(_member(HEADER), text.encode("ascii"))
        for name, array in arrays.items():
            big = array.nbytes >= 1 << 31
            with archive.open(_member(f"{name}.npy"), "w", force_zip64=big) as out:
                np.lib.format.write_array(out, array, version=(1, 0), allow_pickle=False)


def load_model(path: str | PathLike[str]) -> Model:
    """Read a model file; ModelError when it is not one, is damaged or is from a later version."""
    source = fspath(path)
    try:
        with open(source, "rb") as file:
            _require_kfu_zip(source, file)
            with zipfile.ZipFile(file) as archive:
                header = _read_header(source, archive)
                arrays = _read_arrays(source, archive, header)
        return _build(source, header, arrays)
    except FileNotFoundError:
        raise ModelError(source, "no such file", "check the path of the model") from None
    except IsADirectoryError:
        raise ModelError(source, "is a directory", "give the path of a model file") from None
    except OSError as error:  # also where a damaged archive points outside the file
        raise ModelError(source, f"cannot be read ({error.strerror or error})", REPLACE) from None
    except zipfile.BadZipFile as error:
        raise ModelError(source, f"damaged ({error})", REPLACE) from None
    except (EOFError, NotImplementedError, RuntimeError, struct.error, zlib.error) as error:
        raise ModelError(source, f"unreadable archive ({error})", REPLACE) from None


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    return info


def _arrays_of(model: Model) -> dict[str, np.ndarray]:
    assert model.n_support is not None
    arrays: dict[str, np.ndarray] = {name: getattr(model, name) for name in BASE_ARRAYS}
    vectors = model.support_vectors
    if vectors is not None and sp.issparse(vectors):
        index_type = np.int32 if vectors.indices.dtype == np.int32 else np.int64
        arrays["vectors.data"] = vectors.data
        arrays["vectors.indices"] = vectors.indices.astype(index_type, copy=False)
        arrays["vectors.indptr"] = vectors.indptr.astype(np.int64, copy=False)
    elif vectors is not None:
        arrays["vectors"] = vectors
    little = {k: a.astype(a.dtype.newbyteorder("<"), copy=False) for k, a in arrays.items()}
    return {k: np.ascontiguousarray(a) for k, a in little.items()}


def _require_kfu_zip(source: str, file: io.BufferedReader) -> None:
    """ModelError for a file that is something else, by its first bytes."""
    start = file.read(16)
    file.seek(0)
    if start[:4] == b"PK\x03\x04":
        return
    if start.startswith((b"svm_type", b"solver_type")):
        raise ModelError(
            source, "a LIBSVM model, not a kfu model", f"convert it: kfu convert {source} OUT.kfu"
        )
    found = "an empty file" if not start else "not a kfu model"
    raise ModelError(source, found, "give a file that `kfu train` or `Model.save` wrote")


def _read_member(source: str, archive: zipfile.ZipFile, name: str) -> bytearray:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise ModelError(source, f"'{name}' is missing", REPLACE) from None
    with archive.open(info) as member:
        return bytearray(member.read())


def _read_header(source: str, archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise ModelError(
            source, "a zip archive, but not a kfu model", "give a file that `kfu train` wrote"
        )
    if archive.getinfo(HEADER).file_size > MAX_HEADER_BYTES:
        raise ModelError(source, "the header is too long", REPLACE)
    try:
        header = json.loads(_read_member(source, archive, HEADER))
    except (ValueError, RecursionError) as error:
        raise ModelError(source, f"the header cannot be read ({error})", REPLACE) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelError(source, "not a kfu model", "give a file that `kfu train` wrote")
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(source, f"format version {version!r}", REPLACE)
    if version > VERSION:
        raise ModelError(
            source,
            f"format version {version}, written by kfu {header.get('kfu')}; this is kfu "
            f"{__version__}, which reads up to version {VERSION}",
            "upgrade kfu or train again",
        )
    for key, kind in HEADER_KEYS.items():
        value = header.get(key, NotImplemented)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ModelError(source, f"the header has no proper '{key}'", REPLACE)
    for key, (allowed, missing) in OPTIONAL_KEYS.items():
        value = header.setdefault(key, missing)
        if not isinstance(value, allowed):
            raise ModelError(source, f"the header has no proper '{key}'", REPLACE)
    return header


def _read_arrays(
    source: str, archive: zipfile.ZipFile, header: dict[str, Any]
) -> dict[str, np.ndarray]:
    if header["vectors"] not in VECTOR_ARRAYS:
        raise ModelError(source, f"vectors '{header['vectors']}' are not known", REPLACE)
    expected = BASE_ARRAYS + VECTOR_ARRAYS[header["vectors"]]
    manifest = header["arrays"]
    members = sorted(archive.namelist())
    if sorted(manifest) != sorted(expected):
        raise ModelError(source, "the header's list of arrays is not complete", REPLACE)
    if members != sorted([HEADER, *(f"{name}.npy" for name in expected)]):
        raise ModelError(source, "members are missing or too many", REPLACE)
    arrays = {}
    for name in expected:
        array = _parse_npy(source, name, _read_member(source, archive, f"{name}.npy"))
        if manifest[name] != {"dtype": array.dtype.str, "shape": list(array.shape)}:
            raise ModelError(source, f"array '{name}' is not as the header says", REPLACE)
        if array.dtype.str not in ARRAY_TYPES[name]:
            raise ModelError(source, f"array '{name}' has type {array.dtype.str}", REPLACE)
        arrays[name] = array
    return arrays


def _parse_npy(source: str, name: str, content: bytearray) -> np.ndarray:
    """The array of an .npy member, over the memory of `content`; sizes are checked first."""
    try:
        if content[:8] != b"\x93NUMPY\x01\x00":
            raise ValueError("not an .npy array of version 1")
        offset = 10 + int.from_bytes(content[8:10], "little")
        entry = ast.literal_eval(content[10:offset].decode("latin-1").strip())
        if set(entry) != {"descr", "fortran_order", "shape"} or entry["fortran_order"]:
            raise ValueError("an unusual .npy header")
        if not isinstance(entry["descr"], str) or entry["descr"] not in ARRAY_TYPES[name]:
            raise ValueError(f"type {entry['descr']!r}")
        dtype, shape = np.dtype(entry["descr"]), tuple(int(n) for n in entry["shape"])
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(content) - offset:
            raise ValueError("its size does not fit its shape")
        return np.frombuffer(content, dtype=dtype, offset=offset).reshape(shape)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ModelError(source, f"array '{name}' cannot be read ({error})", REPLACE) from None


def _build(source: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Model:
    label_type = LABEL_TYPES.get(header["label_type"])
    if label_type is None:
        raise ModelError(source, f"label type '{header['label_type']}' is not known", REPLACE)
    try:
        kernel = KernelSpec.from_dict(header["kernel"])
    except (KfuError, ValueError, TypeError, KeyError) as error:
        raise ModelError(
            source, f"kernel {header['kernel']} ({error})", "upgrade kfu or train again"
        ) from None
    try:
        scaler = None if header["scaler"] is None else Scaler.from_dict(header["scaler"])
    except KfuError as error:
        found = error.found if isinstance(error, ModelError) else str(error)
        raise ModelError(source, found, "upgrade kfu or train again") from None
    kind = str if label_type is np.str_ else (int, float)
    if not all(isinstance(v, kind) and not isinstance(v, bool) for v in header["classes"]):
        raise ModelError(source, "a class label is not of the label type", REPLACE)
    try:
        return Model(
            machine=header["machine"],
            kernel=kernel,
            classes=np.asarray(header["classes"], dtype=label_type),
            n_features=header["n_features"],
            support_vectors=_vectors(header, arrays),
            scaler=scaler,
            decoding=header["decoding"],
            calibration=_calibration(source, header["calibration"]),
            settings=header["settings"],
            info=header["info"],
            **{name: arrays[name] for name in BASE_ARRAYS},
        )
    except (SettingsError, ValueError, TypeError, OverflowError) as error:
        raise ModelError(source, str(error), REPLACE) from None


def _calibration(source: str, values: dict[str, Any] | None) -> dict[str, Any] | None:
    """The calibration as it is, when a Calibrator can be made of it."""
    if values is None:
        return None
    from kfu.calibration import Calibrator

    try:
        Calibrator.from_dict(values)
    except (KfuError, ValueError, TypeError, KeyError) as error:
        raise ModelError(source, f"the calibration cannot be read ({error})", REPLACE) from None
    return values


def _vectors(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    if header["vectors"] == "precomputed":
        return None
    if header["vectors"] == "dense":
        return arrays["vectors"]
    shape = (arrays["support"].size, header["n_features"])
    parts = tuple(arrays[name] for name in VECTOR_ARRAYS["csr"])
    data, indices, indptr = parts
    if any(part.ndim != 1 for part in parts) or indptr.size != shape[0] + 1:
        raise ValueError("the sparse support vectors do not fit together")
    if indptr[0] != 0 or np.any(np.diff(indptr) < 0) or not indptr[-1] == indices.size == data.size:
        raise ValueError("the sparse support vectors' row starts are wrong")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        raise ValueError("a sparse support vector has a feature beyond n_features")
    step = np.diff(indices)
    step[indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < indices.size)] - 1] = 1
    if np.any(step <= 0):
        raise ValueError("a sparse support vector's features are not in increasing order")
    return sp.csr_matrix((data, indices, indptr), shape=shape)
