"""Estimators with scikit-learn's conventions over the machines of kfu.

They translate: parameters into a KernelSpec and SolverSettings, labels into classes, a Model into
``support_``, ``dual_coef_`` and the rest. Training and prediction belong to kfu.machines and
kfu.model.
"""

from kfu.estimators.baselines import (
    KernelCentroid,
    KernelKNN,
    KernelProjection,
    NadarayaWatson,
    ParzenClassifier,
)
from kfu.estimators.least_squares import RLS, RLSC
from kfu.estimators.novelty import OneClassSVM
from kfu.estimators.nu_svc import NuSVC
from kfu.estimators.ranking import RankSVM
from kfu.estimators.regression import SVR, NuSVR
from kfu.estimators.svc import SVC

__all__ = [
    "RLS",
    "RLSC",
    "SVC",
    "SVR",
    "KernelCentroid",
    "KernelKNN",
    "KernelProjection",
    "NadarayaWatson",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "ParzenClassifier",
    "RankSVM",
]
