"""NumPy files, and the atomic writer every output goes through."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io import atomic_output, iter_blocks, read_dataset, write_dataset

X = np.array([[1.0, 0.0, 2.5], [0.0, -3.0, 1e300]])
Y = np.array([1.0, -1.0])


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([Y, X]))
    dataset = read_dataset(tmp_path / "a.npy")
    np.testing.assert_array_equal(dataset.X, X)
    np.testing.assert_array_equal(dataset.y, Y)
    last = read_dataset(tmp_path / "a.npy", label_column=-1)
    assert last.y.tolist() == [2.5, 1e300]
    np.save(tmp_path / "b.npy", X[:1].astype(np.float32))
    plain = read_dataset(tmp_path / "b.npy", label_column=None, dtype=np.float32)
    assert plain.y is None
    assert plain.X.dtype == np.float32
    np.save(tmp_path / "c.npy", np.arange(6).reshape(2, 3))
    assert read_dataset(tmp_path / "c.npy").X.dtype == np.float64


def test_npz(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["a", "b"]), weights=[1, 2], qid=[3, 4])
    dataset = read_dataset(tmp_path / "a.npz")
    assert dataset.y.tolist() == ["a", "b"]
    assert dataset.weights.tolist() == [1, 2]
    assert dataset.qid.tolist() == [3, 4]
    assert not read_dataset(tmp_path / "a.npz", dense=True).is_sparse
    assert read_dataset(tmp_path / "a.npz", dense=False).is_sparse
    assert [b.n for b in iter_blocks(tmp_path / "a.npz", 1)] == [1, 1]


def test_file_of_save_npz(tmp_path):
    matrix = sp.random(30, 20, 0.1, format="csr", random_state=0)
    sp.save_npz(tmp_path / "a.npz", matrix)
    dataset = read_dataset(tmp_path / "a.npz")
    assert dataset.is_sparse
    assert abs(dataset.X - matrix).nnz == 0
    assert dataset.y is None
    assert read_dataset(tmp_path / "a.npz", n_features=25).n_features == 25
    sp.save_npz(tmp_path / "b.npz", matrix.tocsc())
    with pytest.raises(DataError, match="in csc form"):
        read_dataset(tmp_path / "b.npz")


def test_content_beats_a_missing_extension(tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([Y, X]))
    (tmp_path / "a").write_bytes((tmp_path / "a.npy").read_bytes())
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    for name in ("a", "a.npy.gz"):
        np.testing.assert_array_equal(read_dataset(tmp_path / name).X, X)
        assert sum(b.n for b in iter_blocks(tmp_path / name, 1)) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values_have_a_place(tmp_path, value):
    bad = X.copy()
    bad[1, 2] = value
    np.savez(tmp_path / "a.npz", X=bad)
    with pytest.raises(DataError, match=r"a.npz: X contains (NaN|infinity) in row 1, column 2"):
        read_dataset(tmp_path / "a.npz")
    sp.save_npz(tmp_path / "b.npz", sp.csr_matrix(bad))
    with pytest.raises(DataError, match=r"b.npz: X contains (NaN|infinity) in row 1, column 2"):
        read_dataset(tmp_path / "b.npz")


def test_bad_arrays(tmp_path):
    def refuses(message: str, name: str = "a.npy", **options) -> None:
        with pytest.raises(DataError, match=message):
            read_dataset(tmp_path / name, **options)

    np.save(tmp_path / "a.npy", np.arange(3.0))
    refuses(r"an array of shape \(3,\), expected examples by features")
    np.save(tmp_path / "a.npy", np.array([["a", "b"]]))
    refuses("an array of type <U1")
    np.save(tmp_path / "a.npy", np.array([[object()]]), allow_pickle=True)
    refuses("an array of Python objects")
    np.save(tmp_path / "a.npy", np.ones((3, 1)))
    refuses("a single column holds label and features")
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    refuses("label column 8 of an array with 2 columns; there are columns 1 ", label_column=7)
    refuses("label column 'y' of an array without names", label_column="y")
    np.save(tmp_path / "a.npy", np.ones((0, 2)))
    refuses("no examples")
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:20])
    refuses("damaged or truncated")
    (tmp_path / "a.npy").write_bytes(b"1 1:1\n")
    refuses("not a NumPy file")
    np.savez(tmp_path / "a.npz", A=X)
    refuses("an archive with A", "a.npz")
    np.savez(tmp_path / "a.npz", X=X, y=[1, 2, 3])
    refuses("3 labels for 2 examples", "a.npz")
    np.savez(tmp_path / "a.npz", X=X, y=[1, np.nan])
    refuses("label NaN in row 1", "a.npz")
    np.savez(tmp_path / "a.npz", X=X, weights=[1, -2])
    refuses(r"a.npz: weight -2.0 in row 1", "a.npz")
    np.savez(tmp_path / "a.npz", X=X, qid=[1.5, 2])
    refuses("qid of shape", "a.npz")
    np.savez(tmp_path / "a.npz", X=X)
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:-30])
    refuses("damaged or truncated", "a.npz")
    (tmp_path / "a.npz").write_bytes(whole.replace(X.tobytes()[:8], b"\x01" * 8))
    refuses("damaged or truncated", "a.npz")
    pieces = {"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 2]}
    np.savez(tmp_path / "a.npz", **pieces)
    refuses("inconsistent CSR pieces", "a.npz")


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("name", ["a.npz", "a.npz.gz", "a.npy"])
def test_round_trip(tmp_path, is_sparse, name):
    matrix = sp.random(30, 20, 0.1, format="csr", random_state=1)
    y, weights, qid = np.arange(30.0), np.full(30, 0.1), np.arange(30)
    dataset = Dataset(matrix if is_sparse else matrix.toarray(), y)
    if "npz" in name:
        dataset.weights, dataset.qid, dataset.y = weights, qid, np.array(["é", "b"] * 15)
    write_dataset(tmp_path / name, dataset)
    got = read_dataset(tmp_path / name)
    np.testing.assert_array_equal(got.X.toarray() if got.is_sparse else got.X, matrix.toarray())
    np.testing.assert_array_equal(got.y, dataset.y)
    if "npz" in name:
        assert got.is_sparse == is_sparse
        np.testing.assert_array_equal(got.weights, weights)
        np.testing.assert_array_equal(got.qid, qid)
        first = (tmp_path / name).read_bytes()
        write_dataset(tmp_path / name, dataset)
        assert (tmp_path / name).read_bytes() == first


def test_npz_is_an_ordinary_archive(tmp_path):
    write_dataset(tmp_path / "a.npz", Dataset(X, Y))
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["X", "y"]
    assert zipfile.ZipFile(tmp_path / "a.npz").testzip() is None


def test_what_npy_cannot_hold(tmp_path):
    for dataset in (Dataset(X, np.array(["a", "b"])), Dataset(X, Y, weights=Y)):
        with pytest.raises(SettingsError, match=r"write \.npz"):
            write_dataset(tmp_path / "a.npy", dataset)
    assert list(tmp_path.iterdir()) == []


def test_precomputed_arrays(tmp_path):
    np.save(tmp_path / "k.npy", np.column_stack([Y, np.eye(2)]))
    dataset = read_dataset(tmp_path / "k.npy", precomputed=True)
    assert dataset.serial.tolist() == [1, 2]
    assert dataset.X.tolist() == [[1, 0], [0, 1]]


# ---- atomic output ----


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")

    def write_and_fail() -> None:
        with atomic_output(path, "w") as stream:
            stream.write("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_success_replaces_and_keeps_permissions(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    with atomic_output(path) as stream:
        stream.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    with atomic_output(tmp_path / "fresh", "w") as stream:
        stream.write("é\n")
    assert (tmp_path / "fresh").read_bytes() == "é\n".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o666 & ~mask


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_output(tmp_path / "link", "w") as stream:
        stream.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="is a directory"), atomic_output(tmp_path):
        pass
    with (
        pytest.raises(DataError, match=r"cannot write \(No such file or directory\)"),
        atomic_output(tmp_path / "no" / "out"),
    ):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_full_device():
    with pytest.raises(DataError, match=r"/dev/full: cannot write \(No space left on device\)"):
        write_dataset("/dev/full", Dataset(X, Y))


def test_standard_output_and_devices(capfdbinary):
    write_dataset("-", Dataset(X, Y))
    assert capfdbinary.readouterr().out == b"1 1:1 3:2.5\n-1 2:-3 3:1e+300\n"
    with atomic_output("/dev/null") as stream:
        stream.write(b"x")
    assert Path("/dev/null").exists()
