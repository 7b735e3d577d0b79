"""Scores against scikit-learn and against their definitions."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import sklearn.metrics
from sklearn.calibration import calibration_curve

from kfu.calibration import (
    accuracy,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_reliability,
    reliability,
)
from kfu.errors import DataError, KfuError, SettingsError
from tests.oracles import calibration as oracle


@pytest.fixture
def binary():
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(size=300), 3)
    return p, rng.uniform(size=300) < p**2, rng.uniform(0, 2, size=300)


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(4), size=200)
    outcome = np.array([rng.choice(4, p=row) for row in p])
    return p, outcome, rng.uniform(0, 2, size=200)


def test_scores_of_two_classes(binary):
    p, outcome, weight = binary
    for w in (None, weight):
        theirs = sklearn.metrics.brier_score_loss(outcome, p, sample_weight=w)
        assert brier_score(p, outcome, w) == pytest.approx(theirs, rel=1e-12)
        theirs = sklearn.metrics.log_loss(outcome, p, sample_weight=w)
        assert log_loss(p, outcome, w) == pytest.approx(theirs, rel=1e-9)
        theirs = sklearn.metrics.accuracy_score(outcome, p > 0.5, sample_weight=w)
        assert accuracy(p, outcome, w) == pytest.approx(theirs, rel=1e-12)
    two = np.column_stack((1 - p, p))
    assert brier_score(two, outcome.astype(int)) == pytest.approx(2 * brier_score(p, outcome))
    assert log_loss(two, outcome.astype(int)) == pytest.approx(log_loss(p, outcome))


def test_scores_of_several_classes(table):
    p, outcome, weight = table
    for w in (None, weight):
        theirs = sklearn.metrics.log_loss(outcome, p, sample_weight=w)
        assert log_loss(p, outcome, w) == pytest.approx(theirs, rel=1e-9)
        squares = ((p - np.eye(4)[outcome]) ** 2).sum(axis=1)
        assert brier_score(p, outcome, w) == pytest.approx(np.average(squares, weights=w))
        right = np.argmax(p, axis=1) == outcome
        assert accuracy(p, outcome, w) == pytest.approx(np.average(right, weights=w))


def test_certainty_that_is_wrong_has_a_finite_loss():
    assert log_loss([0.0, 1.0], [1, 0]) == pytest.approx(-np.log(1e-15), rel=1e-9)
    assert log_loss([[1.0, 0.0, 0.0]], [2], floor=1e-3) == pytest.approx(-np.log(1e-3))


@pytest.mark.parametrize("bins", [1, 5, 10])
def test_uniform_bins_are_those_of_scikit_learn(binary, bins):
    p, outcome, _ = binary
    found = reliability(p, outcome, bins)
    frequency, mean = calibration_curve(outcome, p, n_bins=bins)
    np.testing.assert_allclose(found.frequency, frequency, rtol=1e-12)
    np.testing.assert_allclose(found.probability, mean, rtol=1e-12)
    by_loops = oracle.reliability_by_loops(p, outcome, np.linspace(0, 1, bins + 1))
    np.testing.assert_allclose(found.share, by_loops[:, 0], rtol=1e-12)
    error = by_loops[:, 0] @ np.abs(by_loops[:, 1] - by_loops[:, 2])
    assert expected_calibration_error(p, outcome, bins) == pytest.approx(error, rel=1e-12)


def test_quantile_bins_hold_equal_shares(binary):
    p, outcome, _ = binary
    p = p + np.arange(300) * 1e-9  # no ties
    p = np.minimum(p, 1.0)
    found = reliability(p, outcome, 10, "quantile")
    np.testing.assert_allclose(found.share, 0.1, atol=1e-12)
    order = np.argsort(p).reshape(10, 30)
    np.testing.assert_allclose(found.frequency, outcome[order].mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.high, p[order[:, -1]])


def test_weights_are_copies(binary):
    p, outcome, _ = binary
    times = np.random.default_rng(2).integers(0, 4, size=300)
    copied = np.repeat(p, times), np.repeat(outcome, times)
    for strategy in ("uniform", "quantile"):
        a = reliability(p, outcome, 7, strategy, weight=times)
        b = reliability(*copied, 7, strategy)
        for name in ("low", "high", "share", "probability", "frequency"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-12)
    assert log_loss(p, outcome, times) == pytest.approx(log_loss(*copied))
    assert brier_score(p, outcome, times) == pytest.approx(brier_score(*copied))


def test_the_table_of_several_classes_is_that_of_the_best(table):
    p, outcome, weight = table
    best, right = p.max(axis=1), np.argmax(p, axis=1) == outcome
    a, b = reliability(p, outcome, weight=weight), reliability(best, right, weight=weight)
    np.testing.assert_allclose(a.frequency, b.frequency)
    assert a.error == pytest.approx(expected_calibration_error(best, right, weight=weight))


def test_ties_share_a_bin():
    found = reliability(np.full(5, 0.3), [0, 0, 1, 0, 0], 4, "quantile")
    [row] = found.rows()
    expected = {"low": 0.3, "high": 0.3, "share": 1.0, "probability": 0.3, "frequency": 0.2}
    assert row == pytest.approx(expected)
    assert found.error == pytest.approx(0.1)
    ends = reliability([0.0, 0.1, 1.0], [0, 1, 1])
    assert ends.share.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_bad_arguments():
    with pytest.raises(DataError, match=r"not in \[0, 1\]"):
        brier_score([1.5], [1])
    with pytest.raises(DataError, match=r"not in \[0, 1\]"):
        brier_score([np.nan], [1])
    with pytest.raises(DataError, match="sum to 1"):
        brier_score([[0.5, 0.6]], [1])
    with pytest.raises(DataError, match="no row"):
        brier_score([], np.zeros(0, dtype=bool))
    with pytest.raises(ValueError, match="positions"):
        brier_score([[0.5, 0.5]], [2])
    with pytest.raises(ValueError, match="shape"):
        brier_score(0.5, 1)
    with pytest.raises(SettingsError, match="bins"):
        reliability([0.5], [1], 0)
    with pytest.raises(SettingsError, match="uniform, quantile"):
        reliability([0.5], [1], 5, "equal")
    with pytest.raises(SettingsError, match="floor"):
        log_loss([0.5], [1], floor=0.0)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture(binary, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    p, outcome, _ = binary
    found = reliability(p, outcome)
    file = tmp_path / f"one.{suffix}"
    plot_reliability(file, found, title="here")
    assert file.stat().st_size > 3000
    if suffix == "svg":  # text is drawn as paths, so compare curves by size
        several = tmp_path / "several.svg"
        plot_reliability(several, {"a": found, "b": reliability(p**2, outcome)})
        assert several.stat().st_size > file.stat().st_size
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert file.read_bytes().startswith(starts[suffix])


def test_no_picture(binary, tmp_path, monkeypatch):
    found = reliability(*binary[:2])
    with pytest.raises(SettingsError, match="not the name of a picture"):
        plot_reliability(tmp_path / "one.jpg", found)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(KfuError, match="needs matplotlib"):
        plot_reliability(tmp_path / "one.png", found)
    assert not list(tmp_path.iterdir())
