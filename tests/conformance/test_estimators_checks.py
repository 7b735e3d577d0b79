"""Every estimator but SVC (test_estimators.py) under scikit-learn's own checks.

What is expected to fail, and why, stands in EXPECTED; scikit-learn expects the same of its NuSVC
and OneClassSVM.
"""

from __future__ import annotations

import inspect

import pytest

import kfu
from kfu import estimators

pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn.utils.estimator_checks import parametrize_with_checks

REPETITION = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
EXPECTED = {
    "NuSVC": {"check_class_weight_classifiers": "nu is not feasible for a class of weight 1e-7"},
    "OneClassSVM": dict.fromkeys(REPETITION, "rows at 0 exactly, the boundary, have either sign"),
    "KernelKNN": dict.fromkeys(REPETITION, "a row of weight two is still one neighbour"),
    "KernelProjection": dict.fromkeys(REPETITION, "the eigenvectors are those without weights"),
}
CHECKED = [
    kfu.NuSVC(nu=0.2),
    kfu.OneClassSVM(),
    kfu.SVR(),
    kfu.NuSVR(),
    kfu.RankSVM(),
    kfu.KernelCentroid(),
    kfu.ParzenClassifier(),
    kfu.NadarayaWatson(),
    kfu.KernelKNN(),
    kfu.KernelProjection(dims=2),
    kfu.SVC(loss="squared_hinge", multiclass="ova"),
    kfu.SVC(multiclass="crammer-singer"),
]


@parametrize_with_checks(
    CHECKED, expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator).__name__, {})
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_estimator_is_checked():
    checked = {type(estimator).__name__ for estimator in CHECKED}
    checked |= {"RLS", "RLSC"}  # in test_least_squares_estimators.py
    assert checked == set(estimators.__all__)
    assert checked <= set(kfu.__all__)


@pytest.mark.parametrize("name", estimators.__all__)
def test_parameters_are_documented_and_kept(name):
    kind = getattr(kfu, name)
    names = [p for p in inspect.signature(kind.__init__).parameters if p != "self"]
    made = kind()
    assert set(made.get_params()) == set(names)
    shared = {"kernel", "degree", "gamma", "coef0", "threads"}
    for parameter in set(names) - shared:
        assert parameter in kind.__doc__, parameter
