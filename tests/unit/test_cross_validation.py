"""Cross-validation: folds that share kernel values and starts are what separate trainings are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, train
from kfu.errors import DataError
from kfu.solvers import SolverSettings
from kfu.validation.cross_validation import cross_validate
from kfu.validation.folds import make_folds

N = 60
KERNEL = KernelSpec.make("rbf", gamma=0.5)
TIGHT = SolverSettings(tolerance=1e-8)
MACHINES = ["svc", "svc2", "nu-svc", "one-class", "svr", "nu-svr", "rank", "centroid", "knn"]


def problem(seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    labels = np.arange(N) % n_classes
    X = rng.normal(size=(N, 3)) + 1.2 * labels[:, None]
    return X, labels


def options_of(machine, X, labels):
    rng = np.random.default_rng(1)
    targets = {
        "svr": X[:, 0] + 0.2 * rng.normal(size=N),
        "nu-svr": X[:, 0] + 0.2 * rng.normal(size=N),
        "rank": np.digitize(X[:, 0], [-0.5, 0.5]),
    }
    more = {"rank": {"qid": np.arange(N) // 6}, "nu-svc": {"nu": 0.3}, "knn": {"neighbours": 3}}
    return {"y": targets.get(machine, labels), "machine": machine, **more.get(machine, {})}


def check_against_separate_trainings(X, folds, options, kernel=KERNEL, atol=1e-5):
    found = cross_validate(X, folds, options={"kernel": kernel, "settings": TIGHT, **options})
    assert len(found.folds) == len(folds)
    by_row = ("y", "sample_weight", "qid", "margins")
    for fold, (rows, test) in zip(found.folds, folds, strict=True):
        own = {k: np.asarray(v)[rows] if k in by_row else v for k, v in options.items()}
        y = own.pop("y")
        model = train(X[rows], y, kernel=kernel, settings=TIGHT, **own)
        np.testing.assert_array_equal(fold.test, test)
        np.testing.assert_allclose(fold.decision, model.decision_function(X[test]), atol=atol)
        assert fold.info["n_train"] == rows.size
    return found


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine(machine, weighed):
    X, labels = problem()
    options = options_of(machine, X, labels)
    if weighed:
        weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], size=N)
        if machine == "nu-svc":
            weights += 0.5  # the least share of a class bounds nu
        options["sample_weight"] = weights
    folds = make_folds("k-fold", N, k=4, seed=3)
    if machine == "rank":
        folds = make_folds("group", N, k=4, groups=options["qid"])
    check_against_separate_trainings(X, folds, options)


@pytest.mark.parametrize(
    "more",
    [
        {"bias": False},
        {"bias": "regularised"},
        {"cost": 100.0},
        {"machine": "svc2", "cost": 1e5},
        {"margins": np.linspace(0.5, 1.5, N)},
    ],
    ids=str,
)
def test_settings_of_the_machine(more):
    X, labels = problem()
    folds = make_folds("stratified", N, k=4, labels=labels)
    check_against_separate_trainings(X, folds, {"y": labels, **more}, atol=1e-4)


@pytest.mark.parametrize("multiclass", ["ava", "ova", "sparse", "crammer-singer", "weston-watkins"])
def test_several_classes(multiclass):
    X, labels = problem(n_classes=3)
    folds = make_folds("stratified", N, k=3, labels=labels)
    options = {"y": np.array(["x", "y", "z"])[labels], "multiclass": multiclass}
    check_against_separate_trainings(X, folds, options, atol=1e-4)


@pytest.mark.parametrize("machine", ["svc", "nu-svc", "svc2"])
def test_balanced_weights_are_those_of_the_training_part(machine):
    X, labels = problem()
    labels = (np.arange(N) % 4 == 0).astype(int)
    X = np.random.default_rng(5).normal(size=(N, 3)) + labels[:, None]
    options = {"y": labels, "class_weight": "balanced", "machine": machine}
    # Consecutive rows, shuffled unevenly: each training part has its own shares of the classes.
    folds = make_folds("k-fold", N, k=4, seed=11)
    shares = {round(float(labels[rows].mean()), 6) for rows, _ in folds}
    assert len(shares) > 1
    check_against_separate_trainings(X, folds, options)
    weights = np.where(np.arange(N) % 5 == 0, 0.0, 1.0)
    check_against_separate_trainings(X, folds, {**options, "sample_weight": weights})


def test_sparse_rows_and_kernel_values():
    X, labels = problem()
    folds = make_folds("stratified", N, k=4, labels=labels)
    options = {"y": labels, "settings": TIGHT, "kernel": KERNEL}
    dense = cross_validate(X, folds, options=options).decision
    sparse = cross_validate(sp.csr_matrix(X), folds, options=options).decision
    np.testing.assert_allclose(sparse, dense, atol=1e-6)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    for machine in ("svc", "centroid"):
        same = {**options, "machine": machine}
        by_rows = cross_validate(X, folds, options=same).decision
        given = {**same, "kernel": KernelSpec.make("precomputed")}
        np.testing.assert_allclose(
            cross_validate(K, folds, options=given).decision, by_rows, atol=1e-6
        )


@pytest.mark.parametrize("more", [{}, {"bias": False}, {"machine": "svc2"}, {"sample_weight": 0}])
def test_leave_one_out(more):
    X, labels = problem(n_classes=3)
    if "sample_weight" in more:
        more = {"sample_weight": np.random.default_rng(3).choice([0.5, 1.0, 2.0], size=N)}
    folds = make_folds("loo", N)
    found = check_against_separate_trainings(X, folds, {"y": labels, **more}, atol=1e-4)
    assert found.decision.shape == (N, 3)


def test_gamma_is_found_once():
    X, labels = problem()
    folds = make_folds("stratified", N, k=3, labels=labels)
    rule = cross_validate(X, folds, options={"y": labels, "kernel": KernelSpec.make("rbf")})
    number = KernelSpec.make("rbf", gamma=1 / 3)
    np.testing.assert_array_equal(
        rule.decision, cross_validate(X, folds, options={"y": labels, "kernel": number}).decision
    )


def test_outputs_of_rows_that_no_fold_tests_are_unknown():
    X, labels = problem()
    folds = make_folds("hold-out", N, labels=labels)
    found = cross_validate(X, folds, options={"y": labels})
    tested = np.zeros(N, bool)
    tested[folds.tests[0]] = True
    np.testing.assert_array_equal(np.isfinite(found.decision[:, 0]), tested)
    assert np.isnan(found.std("error"))
    assert found.mean("error") == found.folds[0].scores["error"]


def test_repeated_outputs_are_averaged():
    X, labels = problem()
    folds = make_folds("stratified", N, k=3, labels=labels, repeats=2)
    found = cross_validate(X, folds, options={"y": labels})
    row = int(folds.tests[0][0])
    values = [f.decision[list(f.test).index(row), 0] for f in found.folds if row in f.test]
    assert len(values) == 2
    assert found.decision[row, 0] == pytest.approx(np.mean(values))


def test_a_class_missing_from_a_training_part():
    X, labels = problem()
    labels = labels.copy()
    labels[0] = 5
    with pytest.raises(DataError, match="no training row of class 5;"):
        cross_validate(X, make_folds("loo", N), options={"y": labels})


@pytest.mark.parametrize("machine", ["svc", "svr", "centroid"])
def test_a_fold_of_rows_without_weight_is_not_judged(machine):
    X, labels = problem()
    weights = np.ones(N)
    weights[:3] = 0.0
    options = {"y": labels, "machine": machine, "sample_weight": weights}
    found = cross_validate(X, make_folds("loo", N), options=options)
    name = found.score_names[0]
    assert np.isnan([fold.scores[name] for fold in found.folds[:3]]).all()
    kept = [fold.scores[name] for fold in found.folds[3:]]
    assert found.mean(name) == pytest.approx(np.mean(kept))


def test_stopping_after_a_fold():
    X, labels = problem()
    seen = []
    folds = make_folds("stratified", N, k=5, labels=labels)
    found = cross_validate(
        X, folds, options={"y": labels}, on_fold=lambda k, fold: seen.append(k) or k == 1
    )
    assert seen == [0, 1]
    assert len(found.folds) == 2


def test_novelty_is_judged_by_its_own_labels_only():
    X, labels = problem()
    folds = make_folds("k-fold", N, k=3)
    options = {"machine": "one-class", "nu": 0.2}
    assert cross_validate(X, folds, options=options).score_names == ["outliers"]
    assert cross_validate(X, folds, options={**options, "y": labels}).score_names == ["outliers"]
    signs = np.where(labels > 0, 1, -1)
    assert cross_validate(X, folds, options={**options, "y": signs}).score_names[0] == "error"
