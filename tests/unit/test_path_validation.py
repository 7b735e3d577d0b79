"""Validation curves of a path against dense evaluation, and what is chosen from them."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pytest

import kfu
from kfu.errors import SettingsError
from kfu.paths.following import FollowOptions
from kfu.paths.selection import PathSplit, choose, follow_splits, splits
from kfu.paths.split_paths import follow_task_splits
from kfu.paths.step_function import StepFunction
from kfu.paths.validation import crossings_per_interval, error_counts, error_curve
from tests.oracles.paths import follow
from tests.oracles.validation_path import SlowTrack, slow_track, wrong


def rbf(A, B, gamma=0.7):
    return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def toy(seed, n=24, m=40):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    v = np.where(np.arange(m) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + 0.6 * y[:, None]
    V = rng.normal(size=(m, 2)) + 0.6 * v[:, None]
    return X, y, V, v


def followed(seed, **sizes):
    X, y, V, v = toy(seed, **sizes)
    path = follow(rbf(X, X), y)
    track = slow_track(path, y, [(rbf(X, X), y), (rbf(V, X), v)])
    return track, lambda lam: path.decision(rbf(V, X), y, lam), v


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_every_lambda(seed):
    track, f, v = followed(seed)
    curve = error_counts(track)
    assert (curve.low, curve.high) == (track.t[-1], track.t[0])
    rng = np.random.default_rng(seed)
    points = np.exp(rng.uniform(np.log(curve.low), np.log(curve.high), 400))
    points = np.concatenate([points, curve.middles()])
    np.testing.assert_array_equal(curve(points), [wrong(f(x), v) for x in points])
    assert curve.n_steps > 3
    fraction = error_curve(track, len(v))
    np.testing.assert_allclose(fraction(points), curve(points) / len(v))


def test_counts_of_the_training_rows():
    X, y, _, _ = toy(1)
    path = follow(rbf(X, X), y)
    curve = error_counts(slow_track(path, y, [(rbf(X, X), y)]), "train")
    points = curve.middles()
    slow = [wrong(path.decision(rbf(X, X), y, x), y) for x in points]
    np.testing.assert_array_equal(curve(points), slow)


def reversed_track(track: SlowTrack) -> SlowTrack:
    """The same path met from below: counts just after a breakpoint are those before it."""
    curve = error_counts(track)
    after = [curve(x * (1 + 1e-9)) for x in track.t[:0:-1]]
    return dataclasses.replace(
        track,
        t=track.t[::-1],
        watch_errors=np.array([*after, curve(track.t[0])], dtype=int),
        crossing_t=track.crossing_t[::-1],
        crossing_set=track.crossing_set[::-1],
        crossing_delta=-track.crossing_delta[::-1],
    )


def test_upward_paths_give_the_same_curve():
    track, _, _ = followed(2)
    down, up = error_counts(track), error_counts(reversed_track(track))
    np.testing.assert_array_equal(up.edges, down.edges)
    np.testing.assert_array_equal(up.values, down.values)


def test_crossings_of_intervals():
    track, _, _ = followed(0)
    found = crossings_per_interval(track)
    assert found.counts.size == len(track.t) - 1
    mine = track.crossing_t[track.crossing_set == 1]
    slow = [
        np.sum((mine < upper) & (mine > lower))
        for upper, lower in zip(track.t[:-1], track.t[1:], strict=True)
    ]
    np.testing.assert_array_equal(found.counts, slow)
    assert found.mean == pytest.approx(np.mean(slow))
    assert found.sd == pytest.approx(np.std(slow, ddof=1))
    assert found.most == max(slow)


def by_hand(t, errors, crossings=(), status="done"):
    columns = np.array(crossings, dtype=float).reshape(-1, 2)
    return SlowTrack(
        np.array(t, float),
        np.full(len(t), -1),
        np.array(errors),
        columns[:, 0],
        np.ones(len(columns), int),
        columns[:, 1].astype(int),
        status,
    )


def test_crossings_at_breakpoints_count_after_them():
    """The one at 8 is not in the first count (f is 0 there), the one at 2 is in the count of 2."""
    track = by_hand([8, 4, 2, 1], [5, 5, 4, 5], [(8.0, 1), (6.0, -1), (2.0, -1), (1.5, 1)])
    curve = error_counts(track)
    np.testing.assert_array_equal(curve.edges, [1, 1.5, 2, 6, 8])
    np.testing.assert_array_equal(curve.values, [5, 4, 5, 6])


def test_without_crossings_the_counts_at_the_breakpoints_are_all_there_is():
    curve = error_counts(by_hand([8, 4, 2, 1], [5, 3, 5, 5]))
    np.testing.assert_array_equal(curve.edges, [1, 2, 4, 8])
    np.testing.assert_array_equal(curve.values, [5, 3, 5])


def test_crossings_at_one_place():
    for near in (2.0, 2.0 * (1 - 1e-15)):  # equal rows, parted by rounding
        track = by_hand([4, 1], [1, 2], [(2.0, 1), (2.0, 1), (near, -1)])
        curve = error_counts(track)
        np.testing.assert_array_equal(curve.edges, [1, 2, 4])
        np.testing.assert_array_equal(curve.values, [2, 1])


def test_a_hard_margin_from_the_first_point_on():
    curve = error_counts(by_hand([2], [3], status="hard_margin"))
    assert curve.high == 2
    np.testing.assert_array_equal(curve.values, [3])


def test_paths_that_cannot_be_validated():
    with pytest.raises(SettingsError, match="without labels"):
        error_counts(by_hand([2, 1], [-1, -1]))
    with pytest.raises(SettingsError, match="single point"):
        error_counts(by_hand([2], [1]))
    with pytest.raises(SettingsError, match="no rows"):
        error_curve(by_hand([2, 1], [0, 0]), 0)


# ---- the engine -----------------------------------------------------------------------------


def engine_case(seed):
    """Few rows, some on a grid (ties, equal rows), classes of unlike sizes, three kernels."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 24)), 30
    y = np.where(rng.random(n) < (0.5 if seed % 2 else 0.3), 1.0, -1.0)
    y[:2] = 1, -1
    X = rng.normal(size=(n, 2)) + 0.6 * y[:, None]
    V, v = rng.normal(size=(m, 2)), np.where(rng.random(m) < 0.5, 1.0, -1.0)
    if seed % 3 == 0:
        X, V = np.round(2 * X), np.round(2 * V) + 0.37
    kernel = ("rbf", "poly", "linear")[seed % 5 % 3]
    return X, y, V, v, kernel


@pytest.mark.parametrize("seed", range(12))
def test_counts_of_the_engine_are_those_of_the_models(seed):
    X, y, V, v, kernel = engine_case(seed)
    given = {} if kernel == "linear" else {"gamma": 0.5}
    path = kfu.svm_path(X, y, kernel=kernel, validate=(V, v), low=1e-3, **given)
    for curve, rows, labels in ((path.validation_curve(), V, v), (path.training_curve(), X, y)):
        for lam, error, ratio in zip(
            curve.middles(), curve.values, curve.edges[1:] / curve.edges[:-1], strict=True
        ):
            f = path.at(lam=float(lam)).decision_function(rows)[:, 0]
            if ratio > 1 + 1e-7 and np.abs(f).min() > 1e-9:
                assert error == pytest.approx(wrong(f, labels) / len(labels), abs=1e-12)
    assert crossings_per_interval(path.track).counts.size == path.n_steps


def test_rows_on_which_f_is_zero_count_as_predicted():
    X, y, _, _ = toy(0)
    V, v = np.zeros((3, 2)), np.array([1.0, 1.0, -1.0])
    path = kfu.svm_path(X, y, kernel="linear", bias=False, validate=(V, v))
    predicted = path.at(lam=0.1).predict(V)
    assert path.validation_curve()(0.1) == pytest.approx(np.mean(predicted != v))


def test_folds_and_bootstrap_samples_of_a_task():
    X, y, V, v = toy(7, n=40, m=60)
    path = kfu.svm_path(X, y, gamma=0.7, validate=(V, v))
    folds = splits("stratified", 40, k=4, labels=y)
    found = follow_task_splits(path.definition, path.task, folds, limits=FollowOptions(threads=2))
    for curve, split in zip(found.curves, folds, strict=True):
        held = (X[split.valid], y[split.valid])
        alone = kfu.svm_path(X[split.train], y[split.train], gamma=0.7, validate=held)
        points = alone.validation_curve().middles()
        np.testing.assert_allclose(curve.error(points), alone.validation_curve().values)
    drawn = splits("bootstrap", 40, k=3, labels=y)
    found = follow_task_splits(path.definition, path.task, drawn)
    split = drawn[0]
    # A row that counts twice is a row that is there twice.
    rows = np.repeat(split.train, split.counts.astype(int))
    held = (X[split.valid], y[split.valid])
    alone = kfu.svm_path(X[rows], y[rows], gamma=0.7, validate=held).validation_curve()
    points = np.geomspace(0.01, 0.9, 50) * min(alone.high, found.curves[0].error.high)
    np.testing.assert_allclose(found.curves[0].error(points), alone(points))


# ---- splits ---------------------------------------------------------------------------------


def test_bootstrap_samples():
    labels = np.array(["a"] * 20 + ["b"] * 3)
    found = splits("bootstrap", 23, k=8, labels=labels, seed=4)
    assert len(found) == 8
    for split in found:
        assert split.counts is not None
        assert split.counts.sum() == 23
        assert split.counts.min() >= 1
        assert set(labels[split.train]) == {"a", "b"}
        assert sorted([*split.train, *split.valid]) == list(range(23))
        assert split.n_train == 23
    again = splits("bootstrap", 23, k=8, labels=labels, seed=4)
    assert all(np.array_equal(a.train, b.train) for a, b in zip(found, again, strict=True))
    with pytest.raises(SettingsError, match="missing a class"):
        splits("bootstrap", 2, k=3, labels=np.array([0, 1]))


def test_halves_and_folds():
    labels = np.tile([0, 1], 20)
    halves = splits("hold-out", 40, k=5, labels=labels, seed=1)
    assert len(halves) == 5
    assert all(split.valid.size == 20 and labels[split.valid].sum() == 10 for split in halves)
    assert not np.array_equal(halves[0].valid, halves[1].valid)
    folds = splits("stratified", 40, k=4, labels=labels)
    assert sorted(np.concatenate([split.valid for split in folds])) == list(range(40))
    with pytest.raises(SettingsError, match="no kind of splits 'jackknife'"):
        splits("jackknife", 40)


# ---- averages and choices -------------------------------------------------------------------


def follower(seed=0, n=48):
    X, y, _, _ = toy(seed, n=n)

    def follow_split(split: PathSplit) -> SlowTrack:
        X_train, y_train = X[split.train], y[split.train]
        path = follow(rbf(X_train, X_train), y_train)
        sets = [
            (rbf(X_train, X_train), y_train),
            (rbf(X[split.valid], X_train), y[split.valid]),
        ]
        return slow_track(path, y_train, sets)

    return follow_split, y


@pytest.mark.parametrize("threads", [1, 3])
def test_curves_of_folds_are_averaged_exactly(threads):
    follow_one, y = follower()
    parts = splits("stratified", len(y), k=4, labels=y)
    seen = []
    found = follow_splits(
        parts, follow_one, n=len(y), threads=threads, on_split=lambda k, curve: seen.append(k)
    )
    assert seen == [0, 1, 2, 3]
    each = [error_curve(follow_one(split), split.valid.size) for split in parts]
    low, high = found.mean.low, found.mean.high
    assert high == min(curve.high for curve in each)
    points = np.exp(np.linspace(np.log(low * 1.001), np.log(high * 0.999), 300))
    table = np.array([curve.extended(low=low)(points) for curve in each])
    np.testing.assert_allclose(found.mean(points), table.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(
        found.standard_error(points), table.std(axis=0, ddof=1) / 2, atol=1e-14
    )
    total = sum(crossings_per_interval(follow_one(split)).counts.sum() for split in parts)
    assert found.crossings.counts.sum() == total
    choice = found.choose()
    assert choice.error == pytest.approx(table.mean(axis=0).min(), abs=1e-12)


def test_lambda_per_row():
    follow_one, y = follower()
    parts = splits("hold-out", len(y), k=2, labels=y, fraction=0.5)
    plain = follow_splits(parts, follow_one, n=len(y)).choose()
    scaled = follow_splits(parts, follow_one, n=len(y), rescale=True).choose()
    assert scaled.lam == pytest.approx(2 * plain.lam)
    assert scaled.cost == pytest.approx(1 / scaled.lam)
    assert scaled.error == plain.error


def test_hard_margins_go_on_and_others_do_not():
    tracks = iter(
        [by_hand([8, 4], [1, 1], status="hard_margin"), by_hand([9, 2], [1, 1], status="done")]
    )
    parts = [PathSplit(np.arange(3), np.arange(4))] * 2
    found = follow_splits(parts, lambda split: next(tracks), n=3)
    assert (found.mean.low, found.mean.high) == (2, 8)
    tracks = iter([by_hand([8, 4], [1, 1]), by_hand([9, 2], [1, 1])])
    found = follow_splits(parts, lambda split: next(tracks), n=3)
    assert (found.mean.low, found.mean.high) == (4, 8)


def test_weights_by_validation_rows():
    tracks = iter([by_hand([2, 1], [1, 1]), by_hand([2, 1], [0, 0])])
    parts = [PathSplit(np.arange(3), np.arange(2)), PathSplit(np.arange(3), np.arange(8))]
    found = follow_splits(parts, lambda split: next(tracks), n=5, by_rows=True)
    assert found.mean.values == pytest.approx([0.1])


def test_a_split_that_fails_stops_the_others():
    begun = []
    lock = threading.Lock()

    def fail(split):
        with lock:
            begun.append(split)
        raise SettingsError("no such kernel")

    parts = [PathSplit(np.arange(3), np.arange(2))] * 50
    with pytest.raises(SettingsError, match="no such kernel"):
        follow_splits(parts, fail, n=3)
    assert len(begun) < 50


def test_minimum_is_the_middle_of_the_widest_interval():
    curve = StepFunction(np.array([1, 2, 4, 8, 64, 100.0]), np.array([0.2, 0.1, 0.3, 0.1, 0.2]))
    choice = choose(curve)
    assert choice.interval == (8, 64)
    assert choice.lam == pytest.approx(np.sqrt(8 * 64))
    assert choice.error == choice.minimum == choice.bound == 0.1
    tied = StepFunction(np.array([1, 2, 4, 8, 16.0]), np.array([0.1, 0.2, 0.3, 0.1]))
    assert choose(tied).interval == (8, 16)


def test_one_standard_error():
    curve = StepFunction(np.array([1, 2, 4, 8, 16.0]), np.array([0.2, 0.1, 0.12, 0.5]))
    choice = choose(curve, "one-se", n_valid=100)
    assert choice.bound == pytest.approx(0.1 + np.sqrt(0.1 * 0.9 / 100))
    assert choice.lam == pytest.approx(np.sqrt(32))
    assert choice.error == 0.12
    assert choice.interval == (2, 8)
    assert choose(curve, "one-se", n_valid=10_000_000).lam == pytest.approx(np.sqrt(8))
    with pytest.raises(SettingsError, match="needs a standard error"):
        choose(curve, "one-se")
    with pytest.raises(SettingsError, match="no rule 'best'"):
        choose(curve, "best")


def test_one_standard_error_of_folds_takes_a_larger_lambda():
    follow_one, y = follower(5)
    found = follow_splits(splits("stratified", len(y), k=4, labels=y), follow_one, n=len(y))
    least, smooth = found.choose("minimum"), found.choose("one-se")
    assert smooth.lam >= least.lam
    assert smooth.error <= least.error + float(found.standard_error(least.lam)) + 1e-12
    above = found.mean.edges[:-1] > smooth.lam
    assert np.all(found.mean.values[above] > smooth.bound)
    assert set(smooth.to_dict()) >= {"rule", "lambda", "C", "error", "interval"}
