"""kfu: kernel machines, exact, certified and fast.

From Python: ``from kfu import SVC, load``. Names are imported when they are first used, so that
``import kfu`` and the command line start without NumPy, SciPy or the compiled modules.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kfu._openmp import load_with_short_spinning
from kfu._version import __version__

if TYPE_CHECKING:
    from kfu.data import Dataset
    from kfu.errors import ConvergenceWarning, DataError, KfuError, ModelError, SettingsError
    from kfu.estimates import loo
    from kfu.estimators import (
        RLS,
        RLSC,
        SVC,
        SVR,
        KernelCentroid,
        KernelKNN,
        KernelProjection,
        NadarayaWatson,
        NuSVC,
        NuSVR,
        OneClassSVM,
        ParzenClassifier,
        RankSVM,
    )
    from kfu.io import read_dataset, write_dataset
    from kfu.io.libsvm_model import read_libsvm_model, write_libsvm_model
    from kfu.io.model_file import load_model as load
    from kfu.kernels import KernelSpec
    from kfu.machines import train
    from kfu.model import Model
    from kfu.paths.following import svm_path
    from kfu.paths.loading import load_path
    from kfu.scale import Scaler

    # The compiled modules have no stubs.
    _gram: Any
    _reader: Any
    _solver: Any

load_with_short_spinning()

# Public name -> "module:name".
_EXPORTS = {
    "RLS": "kfu.estimators:RLS",
    "RLSC": "kfu.estimators:RLSC",
    "SVC": "kfu.estimators:SVC",
    "NuSVC": "kfu.estimators:NuSVC",
    "OneClassSVM": "kfu.estimators:OneClassSVM",
    "SVR": "kfu.estimators:SVR",
    "NuSVR": "kfu.estimators:NuSVR",
    "RankSVM": "kfu.estimators:RankSVM",
    "KernelCentroid": "kfu.estimators:KernelCentroid",
    "ParzenClassifier": "kfu.estimators:ParzenClassifier",
    "NadarayaWatson": "kfu.estimators:NadarayaWatson",
    "KernelKNN": "kfu.estimators:KernelKNN",
    "KernelProjection": "kfu.estimators:KernelProjection",
    "load": "kfu.io.model_file:load_model",
    "loo": "kfu.estimates:loo",
    "train": "kfu.machines:train",
    "svm_path": "kfu.paths.following:svm_path",
    "load_path": "kfu.paths.loading:load_path",
    "Model": "kfu.model:Model",
    "KernelSpec": "kfu.kernels:KernelSpec",
    "Scaler": "kfu.scale:Scaler",
    "Dataset": "kfu.data:Dataset",
    "read_dataset": "kfu.io:read_dataset",
    "write_dataset": "kfu.io:write_dataset",
    "read_libsvm_model": "kfu.io.libsvm_model:read_libsvm_model",
    "write_libsvm_model": "kfu.io.libsvm_model:write_libsvm_model",
    "KfuError": "kfu.errors:KfuError",
    "DataError": "kfu.errors:DataError",
    "ModelError": "kfu.errors:ModelError",
    "SettingsError": "kfu.errors:SettingsError",
    "ConvergenceWarning": "kfu.errors:ConvergenceWarning",
}

__all__ = [
    "RLS",
    "RLSC",
    "SVC",
    "SVR",
    "ConvergenceWarning",
    "DataError",
    "Dataset",
    "KernelCentroid",
    "KernelKNN",
    "KernelProjection",
    "KernelSpec",
    "KfuError",
    "Model",
    "ModelError",
    "NadarayaWatson",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ParzenClassifier",
    "RankSVM",
    "Scaler",
    "SettingsError",
    "__version__",
    "load",
    "load_path",
    "loo",
    "read_dataset",
    "read_libsvm_model",
    "svm_path",
    "train",
    "write_dataset",
    "write_libsvm_model",
]


if not TYPE_CHECKING:  # type checkers take the imports above, and find what is missing

    def __getattr__(name: str) -> Any:
        try:
            module, _, attribute = _EXPORTS[name].partition(":")
        except KeyError:
            raise AttributeError(f"module 'kfu' has no attribute '{name}'") from None
        value = getattr(importlib.import_module(module), attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
