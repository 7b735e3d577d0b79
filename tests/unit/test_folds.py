"""Folds: each row tested once, classes and groups dealt as promised, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.errors import SettingsError
from kfu.validation.folds import (
    SPLITTERS,
    Folds,
    by_group,
    hold_out,
    k_fold,
    leave_one_out,
    make_folds,
    repeated,
    stratified,
)

LABELS = np.array(["a", "b", "c"])[np.arange(37) % 3]
GROUPS = np.arange(37) // 4


def folds_of(kind, **options):
    return make_folds(kind, 37, **{"k": 4, "labels": LABELS, "groups": GROUPS, **options})


def assert_equal(first: Folds, second: Folds) -> None:
    assert len(first) == len(second)
    for (train, test), (other_train, other_test) in zip(first, second, strict=True):
        np.testing.assert_array_equal(train, other_train)
        np.testing.assert_array_equal(test, other_test)


@pytest.mark.parametrize("kind", SPLITTERS)
def test_rows_train_or_test_and_seeds_decide(kind):
    folds = folds_of(kind, seed=3)
    for train, test in folds:
        assert train.dtype == test.dtype == np.int64
        assert len(train)
        assert len(test)
        np.testing.assert_array_equal(np.sort(np.append(train, test)), np.arange(37))
        assert np.all(np.diff(train) > 0)
        assert np.all(np.diff(test) > 0)
    if kind != "hold-out":
        tested = np.concatenate([test for _, test in folds])
        np.testing.assert_array_equal(np.sort(tested), np.arange(37))
    assert_equal(folds, folds_of(kind, seed=3))
    other = folds_of(kind, seed=4)
    is_same = all(np.array_equal(a[1], b[1]) for a, b in zip(folds, other, strict=True))
    assert is_same == (not SPLITTERS[kind].is_random)


def test_folds_are_the_same_on_every_platform():
    """Recorded once: a change of these is a change of everyone's cross-validation."""
    folds = k_fold(10, 3, seed=0)
    assert [test.tolist() for _, test in folds] == [[2, 4, 6, 7], [3, 5, 9], [0, 1, 8]]
    folds = stratified([0, 1] * 5, 2, seed=1)
    assert [test.tolist() for _, test in folds] == [[0, 1, 6, 8, 9], [2, 3, 4, 5, 7]]


@given(st.integers(2, 60), st.integers(2, 12), st.booleans(), st.integers(0, 5))
def test_parts_are_of_equal_size(n, k, shuffle, seed):
    if n < k:
        with pytest.raises(SettingsError, match=f"{k} folds of {n} rows"):
            k_fold(n, k, seed, shuffle)
        return
    sizes = [len(test) for _, test in k_fold(n, k, seed, shuffle)]
    assert len(sizes) == k
    assert max(sizes) - min(sizes) <= 1


def test_without_shuffle_rows_stay_together():
    assert [test.tolist() for _, test in k_fold(5, 2, shuffle=False)] == [[0, 1, 2], [3, 4]]
    assert_equal(make_folds("sequential", 5, k=2), k_fold(5, 2, shuffle=False))


@settings(max_examples=60)
@given(
    st.lists(st.integers(2, 9), min_size=1, max_size=5),
    st.integers(2, 6),
    st.integers(0, 3),
)
@pytest.mark.filterwarnings("ignore:.*fewer than")
def test_every_class_is_spread_evenly(counts, k, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    if labels.size < k:
        return
    folds = stratified(labels, k, seed)
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for label, count in enumerate(counts):
        tested = [int(np.sum(labels[test] == label)) for _, test in folds]
        assert sum(tested) == count
        assert max(tested) - min(tested) <= 1
        assert all(np.any(labels[train] == label) for train, _ in folds)


def test_small_classes_under_stratified_folds():
    with pytest.warns(UserWarning, match=r"class 'b' has fewer than 4 examples \(at least 2\)"):
        stratified(["a"] * 9 + ["b"] * 2, 4)
    with pytest.raises(SettingsError, match=r"class 'b' has one example: .* leave the example out"):
        stratified(["a"] * 9 + ["b"], 4)
    with pytest.raises(SettingsError, match="then choose k-fold"):
        stratified(np.linspace(0, 1, 12), 3)
    with pytest.raises(SettingsError, match="each of the classes '0', '1', '2' and 1 others"):
        stratified([0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6], 3)


@given(st.lists(st.integers(0, 8), min_size=3, max_size=60), st.integers(2, 4), st.integers(0, 3))
def test_groups_stay_whole_and_parts_balance(groups, k, seed):
    groups = np.array(groups)
    sizes = np.unique(groups, return_counts=True)[1]
    if sizes.size < k:
        with pytest.raises(SettingsError, match="groups"):
            by_group(groups, k, seed)
        return
    folds = by_group(groups, k, seed)
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])
    filled = [len(test) for _, test in folds]
    assert min(filled) > 0
    assert max(filled) - min(filled) <= sizes.max()


def test_greedy_dealing_of_groups():
    groups = np.repeat([1, 2, 3, 4, 5], [6, 5, 4, 3, 2])  # 6+3, 5+4, then 2 to the first
    filled = sorted(len(test) for _, test in by_group(groups, 2))
    assert filled == [9, 11]


def test_leave_one_out_takes_little_memory():
    folds = leave_one_out(20_000)
    train, test = folds[7]
    assert test.tolist() == [7]
    assert train.size == 19_999
    assert len(folds[3:6]) == 3
    assert folds[3:6][0][1].tolist() == [3]
    assert folds[-1][1].tolist() == [19_999]
    with pytest.raises(IndexError):
        folds[20_000]


def test_hold_out():
    assert len(hold_out(100, 0.3)[0][1]) == 30
    assert len(hold_out(3, 0.01)[0][1]) == 1
    assert len(hold_out(3, 0.99)[0][1]) == 2
    labels = np.repeat([0, 1, 2], [60, 30, 11])
    test = hold_out(101, 0.2, labels, seed=5)[0][1]
    assert np.bincount(labels[test]).tolist() == [12, 6, 2]
    with pytest.warns(UserWarning, match="class 'x' has a single row, which is not tested"):
        train, _ = hold_out(9, 0.5, ["y"] * 8 + ["x"])[0]
    assert 8 in train
    with pytest.raises(SettingsError, match="between 0 and 1"):
        hold_out(10, 1.0)
    with (
        pytest.warns(UserWarning, match="single row"),
        pytest.raises(SettingsError, match="nothing to test"),
    ):
        hold_out(3, 0.5, [1, 2, 3])


def test_repetitions_differ_and_begin_with_the_plain_folds():
    three = make_folds("stratified", 37, k=4, labels=LABELS, seed=9, repeats=3)
    assert len(three) == 12
    assert_equal(three[:4], stratified(LABELS, 4, 9))
    assert not np.array_equal(three[0][1], three[4][1])
    assert not np.array_equal(three[4][1], three[8][1])
    assert_equal(three, repeated(lambda seed: stratified(LABELS, 4, seed), 3, 9))
    assert len({tuple(test) for _, test in make_folds("hold-out", 50, repeats=5)}) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "kfold"}, "unknown kind of folds 'kfold'; choose one of k-fold, "),
        ({"kind": "stratified"}, "stratified folds need labels"),
        ({"kind": "group"}, "group folds need groups"),
        ({"kind": "k-fold", "k": 1}, "1 fold; give a whole number from 2 on"),
        ({"kind": "k-fold", "k": 2.5}, "2.5 folds"),
        ({"kind": "k-fold", "k": 11}, "11 folds of 10 rows"),
        ({"kind": "k-fold", "labels": [1, 2]}, "2 labels for 10 rows"),
        ({"kind": "loo", "repeats": 2}, "loo folds are the same every time"),
        ({"kind": "sequential", "k": 2, "repeats": 2}, "the same every time"),
        ({"kind": "k-fold", "repeats": 0}, "0 repetitions"),
        ({"kind": "group", "groups": [1] * 10, "k": 2}, "2 folds of 1 groups"),
    ],
)
def test_refused(options, words):
    with pytest.raises(SettingsError, match=words.replace("(", r"\(")):
        make_folds(**{"n": 10, **options})


def test_one_row_cannot_be_split():
    with pytest.raises(SettingsError, match="2 folds of 1 rows"):
        leave_one_out(1)
    with pytest.raises(ValueError, match="folds of 5 rows and of 6 rows"):
        k_fold(5, 2) + k_fold(6, 2)
