"""Labels, classes and the checks of arrays that come from Python."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.data import (
    Dataset,
    check_weights,
    check_X,
    check_y,
    classes_of,
    encode_labels,
    format_label,
    format_labels,
    require_classes,
)
from kfu.errors import DataError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-1.0, "-1"),
        (0.1, "0.1"),
        (1e300, repr(1e300)),
        (np.float64(2.5), "2.5"),
        (np.int64(3), "3"),
        ("spam", "spam"),
        (np.str_("ham"), "ham"),
        (1e15, "1000000000000000"),
    ],
)
def test_format_label(value, text):
    assert format_label(value) == text
    assert type(format_label(value)) is str


def test_format_labels():
    assert format_labels(np.array([1.0, 0.5, 1.0])) == ["1", "0.5", "1"]
    assert format_labels(np.array(["b", "a"])) == ["b", "a"]


def test_classes_are_sorted():
    assert classes_of(np.array([10.0, 2.0, 10.0, -1.0])).tolist() == [-1, 2, 10]
    assert classes_of(np.array(["b", "a", "b"])).tolist() == ["a", "b"]


def test_encode_labels():
    classes = np.array([-1.0, 2.0])
    assert encode_labels(np.array([2.0, -1.0, 5.0, 0.0]), classes).tolist() == [1, 0, -1, -1]
    words = np.array(["a", "b"])
    assert encode_labels(np.array(["b", "a", "zz", ""]), words).tolist() == [1, 0, -1, -1]
    # the same label as a number and as a text
    assert encode_labels(np.array(["2", "-1", "x"]), classes).tolist() == [1, 0, -1]
    assert encode_labels(np.array([2.0, 7.0]), np.array(["2", "a"])).tolist() == [0, -1]


def test_one_class_only():
    X = np.ones((2, 1))
    with pytest.raises(DataError, match=r"f: all 2 labels are 1, a classifier needs two classes"):
        require_classes(Dataset(X, np.array([1.0, 1.0]), source="f"))
    with pytest.raises(DataError, match="no labels"):
        require_classes(Dataset(X))
    assert require_classes(Dataset(X, np.array([1.0, 0.0]))).tolist() == [0, 1]


def test_dataset():
    X = np.arange(12.0).reshape(4, 3)
    dataset = Dataset(X, np.arange(4.0), np.ones(4), np.arange(4), "s", True)
    assert (dataset.n, dataset.n_features, dataset.is_sparse) == (4, 3, False)
    assert dataset.density == pytest.approx(11 / 12)
    part = dataset.take(np.array([2, 0]))
    assert part.y.tolist() == [2, 0]
    assert part.qid.tolist() == [2, 0]
    assert part.zero_based
    blocks = list(Dataset(sp.csr_matrix(X)).blocks(3))
    assert [b.n for b in blocks] == [3, 1]
    assert np.shares_memory(next(dataset.blocks(2)).X, X)


def test_features_copies_only_when_needed():
    for dtype in (np.float64, np.float32):
        X = np.ones((3, 2), dtype)
        assert check_X(X) is X
        matrix = sp.csr_matrix(X)
        assert np.shares_memory(check_X(matrix).data, matrix.data)
    assert check_X(np.ones((3, 2), np.float32), dtype=np.float64).dtype == np.float64
    assert check_X(np.ones((3, 2), int)).dtype == np.float64
    assert check_X(np.asfortranarray(np.ones((3, 2)))).flags.c_contiguous
    assert check_X([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_features_sorts_a_copy():
    messy = sp.csr_matrix(
        (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3)
    )
    result = check_X(messy)
    assert result.toarray().tolist() == [[2, 0, 4]]
    assert result.has_canonical_format
    assert messy.indices.tolist() == [2, 0, 2]
    assert messy.data.tolist() == [1, 2, 3]
    assert check_X(sp.coo_matrix(np.eye(2))).format == "csr"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "got 1-D"),
        (np.array([[1, np.nan]]), "X contains NaN in row 0, column 1"),
        (np.array([[1.0], [np.inf]]), "X contains infinity in row 1, column 0"),
        (sp.csr_matrix([[0, 1], [np.inf, 0]]), "X contains infinity in row 1, column 0"),
        (np.array([["a"]]), "not numeric"),
        (np.array([[1j]]), "complex"),
        (sp.csr_matrix([[1j]]), "complex"),
    ],
)
def test_features_refuses(X, message):
    with pytest.raises(DataError, match=message):
        check_X(X)


def test_large_finite_values_pass():
    check_X(np.full((4, 2), 1.7e308))
    check_X(np.full((4, 2), 3e38, np.float32))


def test_check_y():
    assert check_y([1, 2], 2).dtype == np.float64
    assert check_y(np.array([[1], [2]]), 2).tolist() == [1, 2]
    assert check_y(np.array(["a", "b"], dtype=object), 2).dtype.kind == "U"
    assert check_y(np.array([1, 2.5], dtype=object), 2).tolist() == [1, 2.5]
    assert check_y([True, False], 2).tolist() == [1, 0]
    assert check_y(np.array([b"a", b"b"]), 2).tolist() == ["a", "b"]
    for y in ([1], [np.nan, 1], [[1, 2], [3, 4]], np.array([1, "a"], dtype=object)):
        with pytest.raises(DataError):
            check_y(y, 2)


def test_check_weights():
    assert check_weights([1, 0], 2).tolist() == [1, 0]
    for weights in ([1], [-1, 1], [np.nan, 1], [0, 0]):
        with pytest.raises(DataError):
            check_weights(weights, 2)
