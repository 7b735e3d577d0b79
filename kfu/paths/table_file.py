"""Models from the file of a table: an ε-path (kfu.paths.gap_path) or least squares (kfu.paths.rls).

Such a file has errors and certificates of the solutions, not their coefficients, so a model is
trained afresh at the value that is asked for, on the rows and with the settings of the header. A
model of least squares is thereby the same as the path's; one of an ε-path is better than its gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.machines.training import prepare, train
from kfu.model import Model
from kfu.paths.loading import check_fingerprint, check_shape, rows_of_path
from kfu.paths.path_file import PathFile
from kfu.paths.rls import MACHINES, rls_path
from kfu.scale import Scaler
from kfu.solvers import SolverSettings

__all__ = ["best_of_table", "is_least_squares", "model_of_table"]

OPTIONS = ("epsilon",)  # of the machine, in the settings of the header


def is_least_squares(found: PathFile) -> bool:
    return found.header["machine"] in MACHINES


def model_of_table(
    found: PathFile, value: float, *, train_file: str | None = None, threads: int = 0
) -> Model:
    """The model at a C (of least squares: λ), trained on the rows that the header names."""
    header = found.header
    if not (np.isfinite(value) and value > 0.0):
        raise SettingsError(f"the value is {value!r}; a finite number greater than 0 is needed")
    scaler = Scaler.from_dict(header["scaler"], found.name) if header.get("scaler") else None
    X, y, source = rows_of_path(found, None, None, train_file, scaler)
    check_shape(found, X, source)
    settings = header.get("settings") or {}
    weights = header.get("weights")
    arguments: dict[str, Any] = {
        "machine": header["machine"],
        "kernel": KernelSpec.from_dict(header["kernel"]),
        "sample_weight": None if weights is None else np.array(weights, dtype=np.float64),
        "bias": settings.get("bias"),
        "settings": SolverSettings(threads=threads),
        "source": source,
        **{name: settings[name] for name in OPTIONS if name in settings},
    }
    check_fingerprint(found, prepare(X, y, **arguments), source)
    if is_least_squares(found):
        return rls_path(X, y, grid=[value], scaler=scaler, **arguments).at(value)
    model = train(X, y, cost=value, **arguments)
    model.scaler = scaler
    return model


def best_of_table(found: PathFile) -> float:
    """C (of least squares: λ) of the record with the least validation error, or with the least
    error of left-out rows; of equals the largest λ."""
    for name in ("valid_error", "loo"):
        known = [record for record in found.records if record.get(name) is not None]
        if known:
            best = min(known, key=lambda record: (record[name], -record["lambda"]))
            return float(best["lambda"] if is_least_squares(found) else best["C"])
    raise SettingsError(f"{found.name} has no validation errors to choose by; give --at")
