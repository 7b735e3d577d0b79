"""Bounds, agreement and shared mistakes against loops over their definitions."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from kfu.errors import KfuError, SettingsError
from kfu.multiclass import (
    LOSSES,
    agreement_table,
    code_distance,
    decode,
    machine_losses,
    plot_reverse_cdf,
    resolve_code,
    reverse_cdf,
    training_error_bounds,
    unanimous_fraction,
)
from tests.oracles import multiclass as oracle


def noisy_outputs(code, n, noise, seed):
    """Outputs around the rows of the code of the true classes."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, code.shape[0], size=n)
    return code[true] + rng.normal(scale=noise, size=(n, code.shape[1])), true


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["ova", "ava", "sparse"])
def test_mean_losses_count_unseen_classes(loss, name):
    code = resolve_code(name, 5)[0]
    decision, true = noisy_outputs(code, 30, 0.7, 0)
    losses = machine_losses(decision, code, true, loss)
    bounds = training_error_bounds(losses, code, 30, loss)
    epsilon = oracle.mean_loss(decision, code, true, oracle.LOSSES[loss])
    assert bounds.mean_loss == pytest.approx(epsilon, rel=1e-12)
    expected = 30 * code.shape[1] * epsilon / (oracle.distance(code) * 1.0)
    assert bounds.loss_based == pytest.approx(expected, rel=1e-12)
    assert bounds.hamming == pytest.approx(2 * expected, rel=1e-12)
    assert (bounds.distance, bounds.n_rows) == (code_distance(code), 30)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["ova", "ava", "complete", "dense", "sparse", "bch"])
def test_the_bounds_cover_the_mistakes(loss, name):
    code = resolve_code(name, 6)[0]
    for noise in (0.3, 1.0, 4.0):
        decision, true = noisy_outputs(code, 400, noise, 1)
        bounds = training_error_bounds(machine_losses(decision, code, true, loss), code, 400, loss)
        assert np.sum(decode(decision, code, loss) != true) <= bounds.loss_based
        for method in ("hamming", "votes"):
            assert np.sum(decode(decision, code, method) != true) <= bounds.hamming


def test_the_bounds_can_be_met():
    """Two classes, square loss, output 0 for a row of the second class: a tie, and one mistake."""
    code = resolve_code("ova", 2)[0]
    decision, true = np.array([0.0]), np.array([1])
    bounds = training_error_bounds(
        machine_losses(decision, code, true, "square"), code, 1, "square"
    )
    assert decode(decision, code, "square").tolist() == [0]
    assert bounds.loss_based == 1.0


def test_bad_losses():
    code = resolve_code("ova", 3)[0]
    with pytest.raises(ValueError, match="3 machines"):
        training_error_bounds(np.zeros(2), code, 5)
    with pytest.raises(ValueError, match="non-negative"):
        training_error_bounds(np.array([0.1, -0.1, 0]), code, 5)
    with pytest.raises(SettingsError, match="unknown loss 'l1'"):
        training_error_bounds(np.zeros(3), code, 5, "l1")
    with pytest.raises(ValueError, match="shape"):
        machine_losses(np.zeros((4, 2)), code, np.zeros(4, int))


def test_agreement():
    predictions = {
        "a": np.array(["x", "y", "z", "x"]),
        "b": ["x", "y", "y", "y"],
        "c": ["x", "z", "z", "x"],
    }
    names, table = agreement_table(predictions)
    assert names == ["a", "b", "c"]
    assert table.tolist() == [[1, 0.5, 0.75], [0.5, 1, 0.25], [0.75, 0.25, 1]]
    assert unanimous_fraction(predictions) == 0.25
    with pytest.raises(ValueError, match="same rows"):
        agreement_table({"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="at least one row"):
        agreement_table({"a": [], "b": []})
    with pytest.raises(ValueError, match="same rows"):
        unanimous_fraction({})


@pytest.mark.parametrize("name", ["ova", "ava", "dense", "sparse"])
def test_reverse_cdf(name):
    code = resolve_code(name, 6, seed=2)[0]
    decision, true = noisy_outputs(code, 200, 1.5, 4)
    predicted = np.random.default_rng(0).integers(0, 6, size=200)
    curve = reverse_cdf(decision, code, true, predicted)
    fractions = oracle.wrong_fractions(decision, code, true, predicted)
    assert len(fractions) == np.sum(true != predicted) > 100
    np.testing.assert_allclose(curve.fraction, fractions)
    shares = [sum(other >= f for other in fractions) / len(fractions) for f in fractions]
    np.testing.assert_allclose(curve.share, shares)
    assert curve.share_at(0.0) == 1.0
    for f in (0.1, 0.5, 0.7, 1.0):
        assert curve.share_at(f) == pytest.approx(np.mean(np.array(fractions) >= f))


def test_reverse_cdf_by_hand():
    code = np.array([[1, 1, 1], [-1, -1, 0], [-1, 1, -1]], dtype=np.int8)
    # classes 0 and 1 are parted by machines 1 and 2; the second is wrong on the row (0 is a no)
    curve = reverse_cdf([[2.0, 0.0, -9.0], [9.0, 9.0, 9.0]], code, [0, 2], [1, 2])
    assert curve.fraction.tolist() == [0.5]
    assert curve.share.tolist() == [1.0]
    none = reverse_cdf(np.ones((2, 3)), code, [0, 1], [0, 1])
    assert none.fraction.size == none.share.size == 0
    assert np.isnan(none.share_at(0.5))


def test_mistakes_no_machine_can_avoid_are_left_out():
    code = np.array([[1, 0], [-1, 1], [0, -1]], dtype=np.int8)
    curve = reverse_cdf(np.ones((2, 2)), code, [0, 1], [2, 2])
    assert curve.fraction.tolist() == [0.0]


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_picture(ending, magic, tmp_path):
    pytest.importorskip("matplotlib")
    code = resolve_code("dense", 6)[0]
    decision, true = noisy_outputs(code, 50, 3.0, 0)
    curve = reverse_cdf(decision, code, true, decode(decision, code, "hinge"))
    empty = reverse_cdf(decision, code, true, true)
    file = tmp_path / f"curves.{ending}"
    plot_reverse_cdf(file, {"dense": curve, "none": empty})
    assert file.read_bytes().startswith(magic)
    if ending != "svg":  # its identifiers are random
        first = file.read_bytes()
        plot_reverse_cdf(file, {"dense": curve, "none": empty})
        assert file.read_bytes() == first


def test_pictures_that_cannot_be_drawn(tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match=r"end it in \.png"):
        plot_reverse_cdf(tmp_path / "curves.txt", {})
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(KfuError, match=r"kfu\[plot\]"):
        plot_reverse_cdf(tmp_path / "curves.png", {})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA does not name the data sets")
def test_satimage_as_published():
    """Rifkin (2002), table 4.5: 7.85% for one-versus-all (σ = ¼, C = 2) and for all pairs (C = 8),
    decoded by hinge loss; section 4.3.3: most machines are wrong on the mistakes of the former."""
    from kfu import KernelSpec, read_dataset, train

    folder = Path(os.environ["KFU_DATA"])
    rows, test = (read_dataset(str(folder / f"satimage.{part}.gz")) for part in ("tr", "t"))
    classes, y = np.unique(rows.y, return_inverse=True)
    true = np.searchsorted(classes, test.y)
    predicted, outputs, codes = {}, {}, {}
    for name, cost in (("ova", 2.0), ("ava", 8.0)):
        codes[name] = code = resolve_code(name, 6)[0]
        outputs[name] = np.empty((true.size, code.shape[1]))
        for m, column in enumerate(code.T):
            seen = column[y] != 0
            machine = train(
                rows.X[seen] / 100,
                column[y][seen],
                kernel=KernelSpec.make("rbf", sigma=0.25),
                cost=cost,
            )
            outputs[name][:, m] = machine.decision_function(test.X / 100).ravel()
        predicted[name] = decode(outputs[name], code, "hinge")
        assert np.sum(predicted[name] != true) == pytest.approx(157, abs=1)
    assert agreement_table(predicted)[1][0, 1] > 0.96
    for name, code in codes.items():
        assert reverse_cdf(outputs[name], code, true, predicted["ova"]).share_at(0.7) > 0.7
