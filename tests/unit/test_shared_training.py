"""What trainings share, and what they must not: stores, starts, class weights, interrupts."""

from __future__ import annotations

import numpy as np
import pytest

from kfu import RLS, RLSC, KernelSpec, train
from kfu.errors import DataError, SettingsError
from kfu.machines.coded import CodedTraining
from kfu.solvers import SolverSettings
from kfu.solvers.dual import make_store
from kfu.validation.cross_validation import cross_validate
from kfu.validation.folds import make_folds

KERNEL = KernelSpec.make("rbf", gamma=0.5)


def classes(n=60, k=3, seed=2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, 2)) + 1.5 * np.column_stack([y == 1, y == 2]), y.astype(float)


def test_leave_one_out_with_balanced_weights_is_retraining():
    X, y = classes(40, 2)
    y[:8] = 0.0
    settings = SolverSettings(tolerance=1e-7)
    options = {"y": y, "kernel": KERNEL, "class_weight": "balanced", "settings": settings}
    found = cross_validate(X, make_folds("loo", 40), options=options).decision
    for row in (0, 13, 39):
        kept = np.delete(np.arange(40), row)
        model = train(X[kept], y[kept], kernel=KERNEL, class_weight="balanced", settings=settings)
        assert found[row, 0] == pytest.approx(
            model.decision_function(X[row : row + 1])[0, 0], abs=1e-5
        )


def test_a_store_of_the_plain_kernel_does_not_serve_a_regularised_bias():
    X, y = classes(60, 2)
    store = make_store(X, KERNEL, SolverSettings())
    a = train(X, y, kernel=KERNEL, bias="regularised", store=store)
    b = train(X, y, kernel=KERNEL, bias="regularised")
    assert a.bias[0] == pytest.approx(b.bias[0], abs=1e-9)


def test_an_interrupt_between_machines_keeps_those_trained(monkeypatch):
    X, y = classes()
    original = CodedTraining.reduction_of

    def interrupted(self, machine):
        if machine == 2:
            raise KeyboardInterrupt
        return original(self, machine)

    monkeypatch.setattr(CodedTraining, "reduction_of", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = train(X, y, kernel=KERNEL, settings=SolverSettings(threads=1))
    assert model.coef[0].any()
    assert model.coef[1].any()
    assert not model.coef[2].any()
    assert model.info["status"] == "interrupted"


def test_leave_one_out_error_counts_rows_not_class_weights():
    X, y = classes(90)
    model = RLSC(ridge=1.0, gamma=0.3, class_weight={0.0: 10.0}).fit(X, y)
    assert model.loo_error_ == pytest.approx(np.mean(model.loo_labels_ != y))


def test_weights_of_a_linear_machine_have_no_rows():
    X, y = classes(40, 2)
    w = np.ones(40)
    w[-1] = 0.0
    model = RLS(ridge=1.0, kernel="linear").fit(X, y, sample_weight=w)
    assert model.support_.tolist() == [-1, -1]


@pytest.mark.parametrize(
    "options", [{"margins": "auto"}, {"bias": "regularised"}], ids=lambda o: next(iter(o))
)
def test_single_machines_refuse_what_they_do_not_have(options):
    X, y = classes()
    with pytest.raises(SettingsError, match="takes no margins or regularised bias"):
        train(X, y, kernel=KERNEL, multiclass="crammer-singer", **options)


def test_a_ranking_without_weight_is_refused():
    X, y = classes()
    with pytest.raises(DataError, match="no pair has a positive weight"):
        train(X, y, machine="rank", kernel=KERNEL, qid=np.ones(60), sample_weight=np.zeros(60))


@pytest.mark.parametrize("options", [{"cost": "x"}, {"machine": "rls", "centres": "a"}], ids=str)
def test_values_that_are_no_numbers(options):
    X, y = classes()
    with pytest.raises(SettingsError, match="number"):
        train(X, y, kernel=KERNEL, **options)


def test_shared_rows_give_way_when_not_all_have_room():
    """A tier that the first training has filled is not closed to the unbounded rows of the next."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 60))
    settings = SolverSettings(chunk=100, tolerance=1e-4)
    kernel = KernelSpec.make("rbf", gamma=0.01)
    hits = []
    for shares in (False, True):
        store = make_store(X, kernel, settings)
        if shares:
            store.share_rows(200 * 1500 * 4.0)
            noise = np.where(rng.uniform(size=1500) < 0.5, 1.0, -1.0)
            train(X, noise, kernel=kernel, cost=0.01, settings=settings, store=store)
        y = np.where(X[:, :4].sum(axis=1) > 0, 1.0, -1.0)
        info = train(X, y, kernel=kernel, cost=10.0, settings=settings, store=store).info
        hits.append(info["cache_hits"] / (info["cache_hits"] + info["cache_misses"]))
    assert hits[1] > 0.3 * hits[0]
