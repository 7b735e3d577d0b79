"""Every kind of scaler against its definition; sparse data; saved parameters."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kfu.errors import DataError, ModelError, SettingsError
from kfu.scale import SCALERS, Scaler, load_scaler, save_scaler

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.normal(5, 2, 50), RNG.normal(1e9, 1, 50), np.full(50, 0.1), np.zeros(50)])


def test_standard():
    Z = Scaler.fit(X, "standard").transform(X)
    np.testing.assert_allclose(Z[:, :2].mean(axis=0), 0, atol=1e-7)
    np.testing.assert_allclose(Z[:, :2].std(axis=0), 1, rtol=1e-7)
    assert not Z[:, 2:].any()  # constant features are exactly 0
    expected = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    np.testing.assert_allclose(Z[:, 0], expected, rtol=1e-12)


def test_minmax():
    scaler = Scaler.fit(X, "minmax")
    Z = scaler.transform(X)
    np.testing.assert_allclose(Z[:, :2].min(axis=0), -1, atol=1e-12)
    np.testing.assert_allclose(Z[:, :2].max(axis=0), 1, atol=1e-12)
    assert not Z[:, 2:].any()
    Z = Scaler.fit(X, "minmax", range=(0, 10)).transform(X)
    np.testing.assert_allclose(Z[:, 0].max(), 10)
    np.testing.assert_allclose(Z[:, 0].min(), 0)
    outside = scaler.transform(X * 2)
    assert outside[:, 0].max() > 1  # new data may leave the range


def test_unit():
    data = np.vstack([X[:, :2], [[0, 0]], [[3e200, 4e200]], [[3e-200, 4e-200]]])
    Z = Scaler.fit(data, "unit").transform(data)
    norms = np.linalg.norm(Z, axis=1)
    np.testing.assert_allclose(np.delete(norms, 50), 1, rtol=1e-14)
    assert norms[50] == 0
    np.testing.assert_allclose(Z[51], [0.6, 0.8])
    S = Scaler.fit(data, "unit").transform(sp.csr_matrix(data))
    np.testing.assert_allclose(S.toarray(), Z, rtol=1e-14)


def test_divide():
    pixels = np.arange(256.0)[None, :]
    np.testing.assert_array_equal(Scaler.fit(pixels, "divide").transform(pixels), pixels / 255)
    half = Scaler.fit(pixels, "divide", constant=2).transform(sp.csr_matrix(pixels))
    np.testing.assert_array_equal(half.toarray(), pixels / 2)


@pytest.mark.parametrize("kind", SCALERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kind_keeps_type_and_argument(kind, dtype):
    data = np.abs(X[:, [0, 3]]).astype(dtype)
    before = data.copy()
    scaler = Scaler.fit(data, kind)
    for given_data in (data, sp.csr_matrix(data)):
        Z = scaler.transform(given_data)
        assert Z.dtype == dtype
        assert Z.shape == data.shape
        assert sp.issparse(Z) == (sp.issparse(given_data) and scaler.keeps_sparse)
        assert not np.shares_memory(Z.data, given_data.data)
    np.testing.assert_array_equal(data, before)


def test_sparse_standard_divides_by_the_root_mean_square():
    data = sp.csr_matrix(np.array([[3.0, 0, 0], [0, 2.0, 0], [-3.0, 0, 0]]))
    scaler = Scaler.fit(data, "standard")
    assert scaler.keeps_sparse
    Z = scaler.transform(data)
    assert sp.issparse(Z)
    np.testing.assert_allclose(Z.toarray()[:, 0], np.array([3, 0, -3]) / np.sqrt(6))
    assert Z.nnz == 3


def test_sparse_minmax():
    counts = sp.csr_matrix(np.array([[0.0, 4, 0], [2, 0, 0]]))
    kept = Scaler.fit(counts, "minmax", range=(0, 1))
    assert kept.keeps_sparse
    assert kept.transform(counts).toarray().tolist() == [[0, 1, 0], [1, 0, 0]]
    full = Scaler.fit(counts, "minmax")
    assert not full.keeps_sparse
    assert full.transform(counts).tolist() == [[-1, 1, 0], [1, -1, 0]]
    dense = Scaler.fit(counts.toarray(), "minmax")
    np.testing.assert_array_equal(dense.transform(counts.toarray()), full.transform(counts))


def test_other_numbers_of_columns():
    scaler = Scaler.fit(np.array([[0.0, 1], [2, 3]]), "minmax")
    narrow = scaler.transform(np.array([[1.0]]))
    assert narrow.tolist() == [[0, -2]]  # the absent feature is 0, as in libsvm text
    wide = scaler.transform(np.array([[1.0, 2, 7]]))
    assert wide.tolist() == [[0, 0, 7]]


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (5, 3), elements=st.floats(-1e100, 1e100)), st.sampled_from([*SCALERS]))
def test_scaled_data_are_finite_and_survive_json(data, kind):
    scaler = Scaler.fit(data, kind)
    Z = scaler.transform(data)
    assert np.isfinite(Z).all()
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    np.testing.assert_array_equal(again.transform(data), Z)
    assert again.to_dict() == scaler.to_dict()


def test_options_are_checked():
    for kind, options in (
        ("zscore", {}),
        ("standard", {"range": (0, 1)}),
        ("minmax", {"range": (1, 0)}),
        ("minmax", {"range": 3}),
        ("minmax", {"range": (0, np.inf)}),
        ("divide", {"constant": 0}),
        ("divide", {"constant": "x"}),
    ):
        with pytest.raises(SettingsError):
            Scaler.fit(X, kind, **options)
    with pytest.raises(DataError):
        Scaler.fit(X[:0], "standard")


def test_overflow_is_an_error():
    scaler = Scaler.fit(np.array([[0.0], [1e-300]]), "minmax")
    with pytest.raises(DataError, match="the scaled data contains"):
        scaler.transform(np.array([[1e300]]))


@pytest.mark.parametrize("kind", SCALERS)
def test_saved_parameters(tmp_path, kind):
    path = tmp_path / "scale.json"
    scaler = Scaler.fit(X, kind)
    save_scaler(path, scaler)
    again = load_scaler(path)
    assert again.to_dict() == scaler.to_dict()
    np.testing.assert_array_equal(again.transform(X), scaler.transform(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a scaler file"),
        ({"version": 99}, "scaler file of version 99"),
        ({"kind": "zscore"}, "not a scaler"),
        ({"n_features": -1}, "not a scaler"),
        ({"n_features": 3}, "shift is not a list of 3 finite numbers"),
        ({"factor": ["x"]}, "not a scaler"),
        ({"options": None}, "not a scaler"),
        ({"options": {}}, "not a scaler"),
        ({"shift": [float("nan")] * 4}, "shift is not a list of 4 finite numbers"),
    ],
)
def test_bad_parameter_files(tmp_path, change, message):
    path = tmp_path / "scale.json"
    save_scaler(path, Scaler.fit(X, "minmax"))
    content = json.loads(path.read_text()) | change
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match=message) as caught:
        load_scaler(path)
    assert str(path) in str(caught.value)


def test_unreadable_parameter_files(tmp_path):
    path = tmp_path / "scale.json"
    with pytest.raises(ModelError, match="cannot be read"):
        load_scaler(path)
    for content in (b"", b"{", b"[1]", b"\xff\xfe", b"1 1:1\n"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match="not a scaler file"):
            load_scaler(path)


def test_constant_features():
    """What kfu scale --help says of them: dense 0 or the middle, sparse with its zeros kept."""
    X = np.array([[3.0, -2.0, 0.0, 1.0], [3.0, -2.0, 0.0, 2.0]])
    dense = {"standard": [0, 0, 0], "minmax": [1.5, 1.5, 1.5]}
    sparse = {"standard": [1, -1, 0], "minmax": [0, 0, 0]}
    for kind, options in (("standard", {}), ("minmax", {"range": (1, 2)})):
        Z = Scaler.fit(X, kind, **options).transform(X)
        np.testing.assert_array_equal(Z[:, :3], [dense[kind]] * 2)
        S = sp.csr_matrix(X)
        Z = Scaler.fit(S, kind, **options).transform(S)
        Z = Z.toarray() if sp.issparse(Z) else Z
        np.testing.assert_array_equal(Z[:, :3], [sparse[kind]] * 2)
