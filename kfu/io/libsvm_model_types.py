"""What LIBSVM calls the machines and kernels that kfu has too."""

from __future__ import annotations

__all__ = ["CLASSIFIERS", "INT32", "LIBSVM_KERNELS", "OUR_KERNELS", "SVM_TYPES", "WRITTEN_AS"]

# LIBSVM's kernel name -> kfu's name and the parameters its header lists.
LIBSVM_KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("linear", ()),
    "polynomial": ("poly", ("degree", "gamma", "coef0")),
    "rbf": ("rbf", ("gamma",)),
    "sigmoid": ("sigmoid", ("gamma", "coef0")),
    "precomputed": ("precomputed", ()),
}
OUR_KERNELS = {ours: theirs for theirs, (ours, _) in LIBSVM_KERNELS.items()}

# LIBSVM's svm_type -> kfu's machine.
SVM_TYPES: dict[str, str] = {
    "c_svc": "svc",
    "nu_svc": "nu-svc",
    "one_class": "one-class",
    "epsilon_svr": "svr",
    "nu_svr": "nu-svr",
}
# Types with labels, whose decision function is a vote over Σ sv_coef K - rho.
CLASSIFIERS = ("c_svc", "nu_svc")
# kfu's machine -> the type it is written as. svc2 differs from svc in training alone.
WRITTEN_AS: dict[str, str] = {ours: theirs for theirs, ours in SVM_TYPES.items()}
WRITTEN_AS["svc2"] = "c_svc"

INT32 = range(-(2**31), 2**31)
