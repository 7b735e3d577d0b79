"""CSV and TSV: columns, headers, quotes, labels, errors with their line, round trips."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io import iter_blocks, read_dataset, table, write_dataset
from kfu.io.table import TableOptions


def parse(text: str, **options) -> Dataset:
    return table.parse(text.encode(), TableOptions(**options), "t.csv")


def test_plain_numbers():
    dataset = parse("1,2,3\n-1,4.5,6e1")
    assert dataset.y.tolist() == [1, -1]
    assert dataset.X.tolist() == [[2, 3], [4.5, 60]]
    assert dataset.X.flags.c_contiguous


@pytest.mark.parametrize(
    ("text", "options", "y", "X"),
    [
        ("y,a,b\n1,2,3\n", {}, [1], [[2, 3]]),
        ("a,b,y\n2,3,1\n", {"label_column": "y"}, [1], [[2, 3]]),
        ("a,b,y\n2,3,1\n", {"label_column": -1}, [1], [[2, 3]]),
        ("2,1,3\n", {"label_column": 1}, [1], [[2, 3]]),
        ("2,1,3\n", {"label_column": "1"}, [1], [[2, 3]]),
        ("1,2,3\n4,5,6\n", {"header": True}, [4], [[5, 6]]),
        ("cat,2,3\n", {}, ["cat"], [[2, 3]]),
        ("1;2;3\n", {}, [1], [[2, 3]]),
        ("1\t2\t3\n", {}, [1], [[2, 3]]),
        (' 1 , 2 ,"3" \r\n', {}, [1], [[2, 3]]),
        ('"a ""b"", c",2,3\n', {}, ['a "b", c'], [[2, 3]]),
        ("# note\n\n1,2,3\n\n# note\n", {}, [1], [[2, 3]]),
        ("\ufeffy,a\n1,2\n", {}, [1], [[2]]),
        ("\ufeff1,2\n", {}, [1], [[2]]),
        ('"label","x 1"\n1,2\n', {"label_column": "label"}, [1], [[2]]),
    ],
)
def test_columns(text, options, y, X):
    for block_bytes in (1, 1 << 18):
        dataset = parse(text, block_bytes=block_bytes, threads=2, **options)
        assert dataset.y.tolist() == y
        assert dataset.X.tolist() == X


def test_no_labels():
    dataset = parse("1,2\n3,4\n", label_column=None)
    assert dataset.y is None
    assert dataset.X.tolist() == [[1, 2], [3, 4]]


def test_weights_and_queries_by_header():
    dataset = parse("label,qid:,cost:,x1\n1,7,0.5,3\n2,8,2,4\n")
    assert dataset.qid.tolist() == [7, 8]
    assert dataset.weights.tolist() == [0.5, 2]
    assert dataset.X.tolist() == [[3], [4]]
    assert parse("label,qid,cost\n1,7,0.5\n").X.shape == (1, 2)  # features without the colon


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,x,3", r"value 'x' in column 2 is not a number"),
        ("1,,3", r"the value in column 2 is missing"),
        ("1,2,", r"the value in column 3 is missing"),
        ("1,2, ", r"the value in column 3 is missing"),
        ("1,NaN,3", r"value 'NaN' in column 2 is not finite"),
        ("1,-inf,3", r"value '-inf' in column 2 is not finite"),
        ("1,1e999,3", r"value '1e999' in column 2 is too large"),
        ("1,2", r"2 fields where the first line has 3"),
        ("1,2,3,4", r"4 fields where the first line has 3"),
        ("1,2,3,", r"4 fields where the first line has 3"),
        (",2,3", r"the label in column 1 is empty"),
        ("nan,2,3", r"label 'nan' is not finite"),
        ("1e999,2,3", r"label '1e999' is too large"),
        ('1,"2,3', r"the quoted field .* in column 2 is not closed"),
        ("1,2\x00,3", r"byte 0x00 is not text"),
        ("1,0x10,3", r"value '0x10' in column 2 is not a number"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 1 << 18])
def test_bad_line(line, message, block_bytes):
    for head in ("", "y,a,b\n"):
        text = head + "1,2,3\n\n1,2,3\n" + line + "\n1,bad,3\n"
        number = text[: text.index(line + "\n1,bad")].count("\n") + 1
        with pytest.raises(DataError, match=rf"t.csv:{number}: " + message):
            parse(text, block_bytes=block_bytes, threads=2)


def test_bad_columns():
    with pytest.raises(DataError, match=r"no column 'z' in a table with columns y, a"):
        parse("y,a\n1,2\n", label_column="z")
    with pytest.raises(DataError, match=r"no column 'z' in a table without header"):
        parse("1,2\n", label_column="z")
    with pytest.raises(DataError, match=r"label column 6 .* 2 columns; there are columns 1 "):
        parse("1,2\n", label_column=5)
    with pytest.raises(DataError, match=r"t.csv:1: the table has no feature column"):
        parse("1\n2\n")
    with pytest.raises(DataError, match="no examples"):
        parse("y,a\n")
    with pytest.raises(DataError, match="no examples"):
        parse("")


def test_first_row_with_a_mistake_is_no_header():
    with pytest.raises(DataError, match=r"t.csv:1: value 'abc' in column 2"):
        parse("1,abc,3\n1,2,3\n")


@pytest.mark.parametrize(
    ("name", "content", "n_features"),
    [
        ("a.csv", b"1,2,3\n", 2),
        ("a.tsv", b"1\t2\t3\n", 2),
        ("a.CSV.gz", gzip.compress(b"1,2,3\n", mtime=0), 2),
        ("a.data", b"1,2,3\n", 2),
        ("a.dat", b"# x\n1\t2\t3\n", 2),
        ("a.txt", b"1\t1:2\t3:1\n", 3),
        ("b.txt", b"1 1:2 # a, b\n", 1),
        ("c.txt", b"1 # a, b\n2 1:5\n", 1),
        ("d.txt", b"1;2;3\n", 2),
    ],
)
def test_format_is_recognised(tmp_path, name, content, n_features):
    path = tmp_path / name
    path.write_bytes(content)
    assert read_dataset(path).n_features == n_features
    assert sum(b.n for b in iter_blocks(path, 5)) == read_dataset(path).n


def test_table_on_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"y,a\n1,2\n3,4\n")))
    assert read_dataset("-").X.tolist() == [[2], [4]]


def test_layout_and_width(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2,0\n")
    assert sp.issparse(read_dataset(path, dense=False).X)
    assert read_dataset(path, n_features=2, dtype="float32").X.dtype == np.float32
    with pytest.raises(DataError, match="2 features where 3 are expected"):
        read_dataset(path, n_features=3)


@pytest.mark.parametrize("block_rows", [1, 2, 7, 100])
def test_blocks_add_up(tmp_path, block_rows):
    path = tmp_path / "a.csv"
    path.write_text("# note\ny,a,b\n" + "".join(f"{i % 2},{i},{i * 0.5}\n\n" for i in range(20)))
    blocks = list(iter_blocks(path, block_rows))
    whole = read_dataset(path)
    np.testing.assert_array_equal(np.vstack([b.X for b in blocks]), whole.X)
    np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), whole.y)
    with path.open("a") as stream:
        stream.write("1,x,2\n")
    with pytest.raises(DataError, match=r"a.csv:43: value 'x' in column 2"):
        list(iter_blocks(path, block_rows))


CELL = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_written_table_reads_back_exactly(tmp_path_factory, data):
    n, d = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    X = np.array(data.draw(st.lists(CELL, min_size=n * d, max_size=n * d))).reshape(n, d)
    labels = st.text('ab ,;"#\t', min_size=1, max_size=4).filter(lambda t: t.strip())
    y = data.draw(
        st.none()
        | st.lists(CELL, min_size=n, max_size=n).map(np.array)
        | st.lists(labels, min_size=n, max_size=n).map(np.array)
    )
    weights = data.draw(st.none() | st.just(np.arange(n) / 3))
    qid = data.draw(st.none() | st.just(np.arange(n)))
    dataset = Dataset(data.draw(st.sampled_from([X, sp.csr_matrix(X)])), y, weights, qid)
    folder = tmp_path_factory.mktemp("w")
    for name in ("a.csv", "a.tsv", "a.csv.gz"):
        write_dataset(folder / name, dataset)
        got = read_dataset(folder / name, label_column=None if y is None else 0)
        np.testing.assert_array_equal(got.X, X)
        for ours, theirs in ((got.y, y), (got.weights, weights), (got.qid, qid)):
            assert (ours is None) == (theirs is None)
            if theirs is not None:
                np.testing.assert_array_equal(ours, theirs)


def test_label_that_no_table_can_hold(tmp_path):
    with pytest.raises(SettingsError):
        write_dataset(tmp_path / "a.csv", Dataset(np.ones((2, 1)), np.array(["a\nb", "c"])))
    assert list(tmp_path.iterdir()) == []
