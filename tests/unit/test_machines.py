"""Machines: what an interrupt leaves, and what a checkpoint costs and gives back."""

from __future__ import annotations

import numpy as np
import pytest

from kfu import KernelSpec, train
from kfu.errors import ConvergenceWarning
from kfu.machines import Checkpoint
from kfu.solvers import SolverSettings


def three_classes(n=300):
    rng = np.random.default_rng(5)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 2.0 * np.column_stack([y == 1, y == 2]), y.astype(float)


def fit(X, y, **options):
    kernel = KernelSpec.make("rbf", gamma=0.5)
    settings = SolverSettings(chunk=20, threads=1)  # one machine after the other
    return train(X, y, kernel=kernel, settings=settings, **options)


def test_an_interrupted_multiclass_run_does_not_claim_what_was_not_trained():
    X, y = three_classes()
    with pytest.warns(ConvergenceWarning):
        model = fit(X, y, progress=lambda state: state.stage == "2/3")
    info = model.info
    assert info["status"] == "interrupted"
    assert not model.coef[2].any()
    assert info["kkt_gap"] >= 2.0
    assert info["kkt_violation"] >= 1.0
    assert info["duality_gap"] >= 200.0  # Σ C_i of the machine that was not trained
    assert any("1 of the binary machines" in warning for warning in info["warnings"])


def test_finished_machines_are_written_when_due_only(tmp_path, monkeypatch):
    X, y = three_classes()
    saves = []
    original = Checkpoint.save
    monkeypatch.setattr(
        Checkpoint, "save", lambda self, *a: (saves.append(a[0]), original(self, *a))
    )
    fit(X, y, checkpoint=Checkpoint(tmp_path / "c.npz", seconds=3600.0))
    assert saves == []
    assert not (tmp_path / "c.npz").exists()
    fit(X, y, checkpoint=Checkpoint(tmp_path / "c.npz", seconds=0.0))
    assert {0, 1, 2} <= set(saves)


def test_a_checkpoint_holds_every_machine_begun(tmp_path):
    X, y = three_classes()
    path = tmp_path / "c.npz"
    with pytest.warns(ConvergenceWarning):
        stopped = fit(
            X, y, progress=lambda s: s.stage == "2/3", checkpoint=Checkpoint(path, seconds=0.0)
        )
    resumed_from = []
    model = fit(
        X,
        y,
        progress=lambda s: resumed_from.append((s.stage, s.round)) and False,
        checkpoint=Checkpoint(path, seconds=0.0),
    )
    full = np.zeros(len(y))
    full[stopped.support] = stopped.coef[0]
    again = np.zeros(len(y))
    again[model.support] = model.coef[0]
    assert np.allclose(full, again)  # the first machine was done: it comes back as it was
    assert [r for stage, r in resumed_from if stage == "1/3"] == [0]
    assert model.info["status"] == "converged"
    assert not path.exists()


@pytest.mark.parametrize("seed", range(10))
def test_rounding_leaves_no_variable_beside_its_bound(seed):
    """Warm starts down to costs where all are at C: a rest of C - α = 1e-16 would be taken for an
    unbounded vector and fix a bias that is free in an interval."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 2)), np.repeat([-1.0, 1.0], 20)
    settings = SolverSettings(tolerance=1e-6, polish=True, threads=1)
    model = None
    for cost in np.geomspace(3.0, 0.01, 25):
        model = train(X, y, cost=float(cost), start=model, settings=settings)
        alpha = np.abs(model.coef[0])
        rest = np.minimum(alpha, cost - alpha)
        assert not ((rest > 0.0) & (rest < 1e-13 * cost)).any()
        low, high = model.info["bias_interval"]
        assert (model.info["n_usv"] == 0) == (high - low > 1e-6)
    assert model.info["n_usv"] == 0
