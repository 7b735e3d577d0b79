"""SVMlight text: the parser against Python's float and scikit-learn, its errors, its writer."""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.io import faults, iter_blocks, read_dataset, source, svmlight, write_dataset
from kfu.io.svmlight import TextOptions

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def parse(text: str | bytes, **options) -> Dataset:
    data = text.encode() if isinstance(text, str) else text
    return svmlight.parse(data, TextOptions(**options), "data")


def dense(dataset: Dataset) -> np.ndarray:
    return dataset.X.toarray() if dataset.is_sparse else dataset.X


@pytest.fixture
def stdin(monkeypatch):
    """Sets what standard input holds."""

    def give(content: bytes) -> None:
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stream)

    return give


# ---- what is read ----


def test_lines_of_every_shape():
    text = (
        "# a comment line\r\n"
        "+1 1:0.5 3:-2e-3\t4:7   \r\n"
        "\r\n"
        "   \t \n"
        "-1 2:1#glued comment\n"
        "  2.5 sid:9 2:.5 3:5. # 9:9\n"
        "-1"  # no features, no final line feed
    )
    dataset = parse(text, dense=True)
    assert dataset.y.tolist() == [1, -1, 2.5, -1]
    assert dataset.X.tolist() == [[0.5, 0, -0.002, 7], [0, 1, 0, 0], [0, 0.5, 5, 0], [0, 0, 0, 0]]
    assert not dataset.zero_based
    assert dataset.weights is None
    assert dataset.qid is None


def test_qid_and_cost():
    dataset = parse("1 qid:7 cost:0.25 1:1\n2 1:1 qid:8\n3 qid:8 1:2 cost:0\n")
    assert dataset.qid.tolist() == [7, 8, 8]
    assert dataset.weights.tolist() == [0.25, 1, 0]
    assert dataset.qid.dtype == np.int64


@pytest.mark.parametrize(
    ("zero_based", "text", "expected", "found"),
    [
        ("auto", "1 1:5 2:6\n", [[5, 6]], False),
        ("auto", "1 1:5\n1 0:4\n", [[0, 5], [4, 0]], True),
        (True, "1 1:5\n", [[0, 5]], True),
        (False, "1 1:5\n", [[5]], False),
    ],
)
def test_index_base(zero_based, text, expected, found):
    for layout in (True, False):
        dataset = parse(text, zero_based=zero_based, dense=layout)
        assert dense(dataset).tolist() == expected
        assert dataset.zero_based is found


def test_text_labels_keep_their_text():
    dataset = parse("spam 1:1\n1.0 1:1\nhäm 1:2\nspam 2:1\ninfo 1:1\nnancy 1:1\n")
    assert dataset.y.tolist() == ["spam", "1.0", "häm", "spam", "info", "nancy"]
    assert dataset.y.dtype.kind == "U"


def test_close_labels_stay_apart():
    assert parse("0.5 1:1\n0.6 1:1\n1.7 1:1\n").y.tolist() == [0.5, 0.6, 1.7]


def test_byte_order_mark():
    assert parse(b"\xef\xbb\xbf1 1:2\n").y.tolist() == [1]


def test_explicit_zeros_are_stored():
    dataset = parse("1 2:0\n2 9:1\n")
    assert dataset.is_sparse
    assert dataset.X.nnz == 2


def test_layout_follows_density():
    rows = "".join("1 " + " ".join(f"{j}:1" for j in range(1, 5)) + " 10:1\n" for _ in range(20))
    assert not parse(rows).is_sparse  # 0.5
    assert parse(rows.replace(" 3:1 4:1", "")).is_sparse  # 0.3
    # colons in comments and qid: tokens mislead the sample, not the result
    commented = "".join("1 qid:1 1:1 10:1 # " + ": " * 20 + "\n" for _ in range(20))
    assert parse(commented).is_sparse


def test_wide_indices_become_64_bit():
    dataset = parse("1 1:1 3000000000:2\n-1 5:1\n")
    assert dataset.n_features == 3_000_000_000
    assert dataset.X.indices.dtype == np.int64
    assert dataset.X.indices.tolist() == [0, 2_999_999_999, 4]
    narrow = parse("1 1:1 2147483647:2\n")
    assert narrow.X.indices.dtype == np.int32


def test_number_of_features():
    assert parse("1 2:1\n", n_features=5).n_features == 5
    assert parse("1 2:1\n", n_features=5, dense=True).X.shape == (1, 5)
    with pytest.raises(DataError, match=r"data:2: feature index 6 is beyond the 5 features"):
        parse("1 2:1\n1 6:1\n", n_features=5)
    # 5 is the sixth feature once an index 0 shows that the file counts from 0
    with pytest.raises(DataError, match=r"data:1: feature index 5 is beyond the 5 features"):
        parse("1 5:1\n1 0:1\n", n_features=5)


def test_float32():
    dataset = parse("1 1:0.1 2:3e38\n", dtype=np.float32, dense=True)
    assert dataset.X.dtype == np.float32
    assert dataset.X.tolist() == [[np.float32(0.1), np.float32(3e38)]]
    with pytest.raises(DataError, match="too large"):
        parse("1 1:3.5e38\n", dtype=np.float32)


@settings(max_examples=300, deadline=None)
@given(
    st.from_regex(
        r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True
    )
)
def test_numbers_are_correctly_rounded(token):
    expected = float(token)
    if math.isinf(expected):
        with pytest.raises(DataError, match="too large"):
            parse(f"1 1:{token}\n")
        return
    value = parse(f"1 1:{token}\n", dense=True).X[0, 0]
    assert value == expected
    assert math.copysign(1, value) == math.copysign(1, expected)


@settings(max_examples=300, deadline=None)
@given(FINITE, st.integers(1, 25))
def test_printed_numbers_read_back(value, digits):
    token = f"{value:.{digits}g}"
    expected = float(token)
    if not math.isinf(expected):
        assert parse(f"1 1:{token}\n", dense=True).X[0, 0] == expected


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 20))
def test_float32_is_rounded_once(value, digits):
    token = f"{value:.{digits}g}"
    with np.errstate(over="ignore"):
        # through numpy's parser of decimal text into float32, which rounds once
        expected = np.array([token]).astype(np.longdouble).astype(np.float32)[0]
    if np.isfinite(expected):
        got = parse(f"1 1:{token}\n", dense=True, dtype=np.float32).X[0, 0]
        assert got == expected


def test_extreme_numbers():
    tokens = ["5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "1e-400", "-0"]
    tokens += ["0e999", "4.9e-325"]
    text = "1 " + " ".join(f"{i + 1}:{t}" for i, t in enumerate(tokens)) + "\n"
    values = parse(text, dense=True).X[0]
    assert values.tolist() == [float(t) for t in tokens]
    assert math.copysign(1, values[4]) == -1
    long = "0." + "0" * 400 + "1e401"
    assert parse(f"1 1:{long}\n", dense=True).X[0, 0] == 1.0


# ---- blocks and threads change nothing ----

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", "-1", "0.25", "1e3"]),
        st.dictionaries(st.integers(1, 40), st.floats(-1e6, 1e6), max_size=8),
        st.sampled_from(["", " # note 3:4", "\n\n# 5:6 7:8", "\r"]),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.integers(1, 200), st.sampled_from([1, 2, 5]), st.booleans())
def test_result_is_independent_of_blocks_and_threads(rows, block_bytes, threads, final_feed):
    lines = [
        label + "".join(f" {j}:{v!r}" for j, v in sorted(entries.items())) + tail
        for label, entries, tail in rows
    ]
    text = "\n".join(lines) + ("\n" if final_feed else "")
    if not any(entries for _, entries, _ in rows):
        with pytest.raises(DataError, match="no line has a feature"):
            parse(text, block_bytes=block_bytes)
        return
    width = max(j for _, entries, _ in rows for j in entries)
    expected = np.zeros((len(rows), width))
    for i, (_, entries, _) in enumerate(rows):
        for j, value in entries.items():
            expected[i, j - 1] = value
    for layout in (True, False, "auto"):
        dataset = parse(text, block_bytes=block_bytes, threads=threads, dense=layout)
        np.testing.assert_array_equal(dense(dataset), expected)
        assert dataset.y.tolist() == [float(label) for label, _, _ in rows]
        if dataset.is_sparse:
            assert dataset.X.nnz == sum(len(entries) for _, entries, _ in rows)


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 18])
@pytest.mark.parametrize("threads", [1, 3])
def test_first_bad_line_is_reported(block_bytes, threads):
    lines = [f"{i} 1:{i} 2:3" for i in range(1, 201)]
    for bad in (150, 77, 180):
        lines[bad - 1] = f"1 1:x{bad}"
    text = "\n".join(lines)
    with pytest.raises(DataError, match=r"data:77: value 'x77' of feature 1 is not a number"):
        parse(text, block_bytes=block_bytes, threads=threads)


# ---- errors ----

BAD = {
    "value": ("1 3:abc", r"value 'abc' of feature 3 is not a number; write index:value pairs"),
    "empty value": ("1 3:", r"value '' of feature 3 is not a number"),
    "value with tail": ("1 3:1.5x", r"value '1.5x' of feature 3 is not a number"),
    "half exponent": ("1 3:1e", r"value '1e' of feature 3 is not a number"),
    "hexadecimal": ("1 3:0x1p3", r"value '0x1p3' of feature 3 is not a number"),
    "nan": ("1 3:nan", r"value 'nan' of feature 3 is not finite"),
    "inf": ("1 3:-Inf", r"value '-Inf' of feature 3 is not finite"),
    "infinity": ("1 3:INFINITY", r"value 'INFINITY' of feature 3 is not finite"),
    "overflow": ("1 3:1e999", r"value '1e999' of feature 3 is too large"),
    "negative overflow": ("1 3:-2e308", r"value '-2e308' of feature 3 is too large"),
    "no colon": ("1 3:1 4", r"token '4' has no colon; write a line as"),
    "word": ("1 hello 3:1", r"token 'hello' has no colon"),
    "word index": ("1 abc:1", r"feature index 'abc' is not an integer"),
    "real index": ("1 1.5:1", r"feature index '1.5' is not an integer"),
    "no index": ("1 :1", r"feature index '' is not an integer"),
    "negative index": ("1 -3:1", r"feature index '-3' is negative"),
    "decreasing": ("1 3:1 2:1", r"feature index 2 comes after 3"),
    "repeated": ("1 3:1 3:1", r"feature index 3 is repeated"),
    "repeated zero": ("1 0:1 0:1", r"feature index 0 is repeated"),
    "huge index": (
        "1 12345678901234567890:1",
        r"feature index '12345678901234567890' is too large",
    ),
    "no label": ("1:1 2:3", r"the line starts with '1:1' where a label is expected"),
    "nan label": ("nan 1:1", r"label 'nan' is not finite"),
    "inf label": ("+inf 1:1", r"label '\+inf' is not finite"),
    "huge label": ("1e999 1:1", r"label '1e999' is too large"),
    "qid": ("1 qid:x 1:1", r"query number 'x' is not a non-negative integer"),
    "negative qid": ("1 qid:-1 1:1", r"query number '-1' is not a non-negative integer"),
    "cost": ("1 cost:-0.5 1:1", r"cost '-0.5' is not a non-negative number"),
    "nan cost": ("1 cost:nan 1:1", r"cost 'nan' is not a non-negative number"),
    "two costs": ("1 cost:1 cost:2 1:1", r"second token 'cost:2' in the line"),
    "two qids": ("1 qid:1 qid:1 1:1", r"second token 'qid:1' in the line"),
    "unexpected qid": ("1 qid:1 1:1", r"a qid: in this line, but none in line 1"),
    "control byte": ("1 1:\x01", r"byte 0x01 is not text"),
    "binary label": ("a\x02b 1:1", r"byte 0x02 is not text"),
    "nul": ("1 1:1 \x002:1", r"byte 0x00 is not text"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("block_bytes", [1, 1 << 18])
@pytest.mark.parametrize("layout", [True, False])
def test_bad_line(name, block_bytes, layout):
    line, message = BAD[name]
    before = "1 1:1 2:2\n# comment\n\n-1 1:3 2:4\n"
    for text in (before + line + "\n1 1:1\n", before + line):
        with pytest.raises(DataError, match=r"data:5: " + message) as caught:
            parse(text, block_bytes=block_bytes, dense=layout)
        assert caught.value.line == 5
        assert "; " in str(caught.value)


def test_fault_numbers_are_those_of_the_parser():
    header = Path(__file__).parents[2] / "csrc" / "kfu" / "text_blocks.h"
    body = re.search(r"enum class Fault : int \{(.*?)\};", header.read_text(), re.DOTALL)[1]
    names = re.findall(r"^ *k([A-Za-z]+)", body, re.MULTILINE)
    expected = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in names]
    assert [kind.name for kind in faults.Kind] == expected
    assert [kind.value for kind in faults.Kind] == list(range(len(expected)))
    assert {*faults.SVMLIGHT, *faults.TABLE, faults.Kind.NONE} == {*faults.Kind}


def test_zero_index_in_one_based_data():
    with pytest.raises(DataError, match=r"data:2: feature index 0 in data that count from 1"):
        parse("1 1:1\n1 0:1\n", zero_based=False)


def test_qid_in_some_lines():
    text = "1 qid:1 1:1\n1 qid:1 1:1\n# c\n1 1:1\n1 1:x\n"
    for block_bytes in (1, 1 << 18):
        with pytest.raises(DataError, match=r"data:4: no qid: in this line, but one in line 1"):
            parse(text, block_bytes=block_bytes)
    # an earlier fault wins
    with pytest.raises(DataError, match=r"data:2: value 'x'"):
        parse("1 qid:1 1:1\n1 1:x\n1 1:1\n", block_bytes=1)


def test_label_that_is_no_utf8():
    with pytest.raises(DataError, match=r"data:2: label .*is not UTF-8 text"):
        parse(b"a 1:1\n\xff\xfe 1:1\n")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "  \t\r\n"])
def test_no_examples(text):
    with pytest.raises(DataError, match="data: no examples in the file"):
        parse(text)


def test_no_features():
    with pytest.raises(DataError, match="data: no line has a feature"):
        parse("1\n-1\n# 1:1\n")


def test_long_tokens_are_shortened():
    with pytest.raises(DataError) as caught:
        parse("1 1:" + "x" * 10_000 + "\n")
    assert len(str(caught.value)) < 200


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_never_crashes(content):
    verdicts = set()
    for block_bytes in (1, 16, 1000):
        try:
            svmlight.parse(content, TextOptions(block_bytes=block_bytes, threads=2), "data")
            verdicts.add("read")
        except DataError as error:
            verdicts.add(str(error))
    assert len(verdicts) == 1
    assert verdicts.pop().startswith(("read", "data"))


# ---- precomputed kernels ----


def test_precomputed_kernel():
    text = "1 0:2 1:3 2:1\n-1 0:1 1:4 2:3\n"
    options = TextOptions()
    dataset = svmlight.parse_precomputed(text.encode(), options, "data")
    assert dataset.X.tolist() == [[3, 1], [4, 3]]
    assert dataset.serial.tolist() == [2, 1]
    assert dataset.X.flags.c_contiguous
    rectangular = svmlight.parse_precomputed(b"1 0:17 1:3 2:1\n", options, "data")
    assert rectangular.X.shape == (1, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 0:1 1:3 2:1\n1 0:1 1:3 2:1\n", r"data:2: serial number 0:1 of a 2 x 2"),
        ("1 0:3 1:3 2:1\n1 0:1 1:3 2:1\n", r"data:1: serial number 0:3 of a 2 x 2"),
        ("1 0:1.5 1:3 2:1\n", r"data:1: serial number 0:1.5 of a 1 x 2"),
        ("1 0:1 1:3 2:1\n# c\n1 0:2 1:3\n", r"data:3: a precomputed kernel needs 0:serial and 2"),
        ("1 1:3 2:1\n", r"data:1: a precomputed kernel needs 0:serial and 2 values"),
        ("1 0:1\n", r"no line has a feature"),
    ],
)
def test_bad_precomputed_kernel(text, message):
    with pytest.raises(DataError, match=message):
        svmlight.parse_precomputed(text.encode(), TextOptions(), "data")


# ---- files, gzip, standard input ----

SAMPLE = b"1 1:1 2:2\n-1 2:3\n"


def test_files_plain_and_compressed(tmp_path):
    plain, packed, disguised = tmp_path / "a.svm", tmp_path / "a.svm.gz", tmp_path / "b.txt"
    plain.write_bytes(SAMPLE)
    packed.write_bytes(gzip.compress(SAMPLE))
    disguised.write_bytes(gzip.compress(SAMPLE[:10]) + gzip.compress(SAMPLE[10:]) + bytes(20))
    for path in (plain, packed, disguised, str(plain)):
        dataset = read_dataset(path)
        assert dense(dataset).tolist() == [[1, 2], [0, 3]]
        assert dataset.source == str(path)


@pytest.mark.parametrize("content", [SAMPLE, gzip.compress(SAMPLE, mtime=0)])
def test_standard_input(stdin, content):
    stdin(content)
    dataset = read_dataset("-")
    assert dataset.source == "<stdin>"
    assert dense(dataset).tolist() == [[1, 2], [0, 3]]


def test_bad_gzip(tmp_path):
    path = tmp_path / "a.gz"
    whole = gzip.compress(SAMPLE * 1000)
    for size in (3, 15, len(whole) - 9, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"a.gz: the gzip data end too early"):
            read_dataset(path)
        with pytest.raises(DataError, match=r"a.gz: the gzip data end too early"):
            list(iter_blocks(path, 100))
    path.write_bytes(whole[:40] + b"garbage!" + whole[48:])
    with pytest.raises(DataError, match=r"a.gz: invalid gzip data"):
        read_dataset(path)
    path.write_bytes(whole + b"trailing garbage")
    with pytest.raises(DataError, match=r"a.gz: invalid gzip data"):
        read_dataset(path)


def test_gunzip_in_small_pieces(monkeypatch):
    packed = gzip.compress(b"abc" * 50) + gzip.compress(b"") + gzip.compress(b"def") + bytes(5)
    for step in (1, 2, 7, 1000):
        chunks = [packed[i : i + step] for i in range(0, len(packed), step)]
        assert b"".join(source.gunzip(iter(chunks), "x")) == b"abc" * 50 + b"def"


def test_unreadable_paths(tmp_path):
    with pytest.raises(DataError, match=r"nothing.svm: no such file; check the path"):
        read_dataset("nothing.svm")
    with pytest.raises(DataError, match=r"is a directory; give the data file in it"):
        read_dataset(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty: no examples in the file"):
        read_dataset(tmp_path / "empty")
    locked = tmp_path / "locked"
    locked.write_bytes(SAMPLE)
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(DataError, match=r"locked: permission denied"):
            read_dataset(locked)


def test_options_are_checked(tmp_path):
    for options in (
        {"format": "arff"},
        {"zero_based": 2},
        {"dense": "yes"},
        {"dtype": np.int32},
        {"n_features": 0},
    ):
        with pytest.raises(SettingsError):
            read_dataset(tmp_path / "a", **options)
    with pytest.raises(SettingsError):
        list(iter_blocks(tmp_path / "a", 0))


# ---- streaming ----


@pytest.mark.parametrize("block_rows", [1, 3, 7, 1000])
def test_blocks_add_up(tmp_path, stdin, monkeypatch, block_rows):
    monkeypatch.setattr(source, "CHUNK_BYTES", 50)
    content = b"".join(b"%d 1:%d 3:1\n" % (i % 3, i) + b"# c\n" * (i % 2) for i in range(40))
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    whole = svmlight.parse(content, TextOptions(), "x")
    stdin(content)
    for path in (tmp_path / "a.gz", "-"):
        blocks = list(iter_blocks(path, block_rows, n_features=3, dense=True))
        assert max(b.n for b in blocks) <= block_rows
        np.testing.assert_array_equal(np.vstack([b.X for b in blocks]), dense(whole))
        np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), whole.y)


def test_line_numbers_in_blocks(tmp_path):
    path = tmp_path / "a"
    path.write_text("1 1:1\n\n" * 10 + "1 1:x\n")
    blocks = iter_blocks(path, 4)
    with pytest.raises(DataError, match=r"a:21: value 'x'"):
        list(blocks)


def test_late_surprises_in_blocks(tmp_path):
    path = tmp_path / "a"
    path.write_text("1 1:1\n1 1:1\n1 0:1\n")
    with pytest.raises(DataError, match=r"a:3: feature index 0 in data that count from 1"):
        list(iter_blocks(path, 1))
    path.write_text("1 1:1\n1 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"a:2: query numbers \(qid:\) start here"):
        list(iter_blocks(path, 1))
    path.write_text("# nothing\n")
    with pytest.raises(DataError, match="no examples"):
        list(iter_blocks(path, 1))
    path.write_text("1\n2\n")
    with pytest.raises(DataError, match="no line has a feature"):
        list(iter_blocks(path, 1))


# ---- writing ----


@st.composite
def datasets(draw) -> Dataset:
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 9))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    width = 64 if dtype is np.float64 else 32
    value = st.floats(allow_nan=False, allow_infinity=False, width=width)
    X = np.zeros((n, d), dtype)
    for cell in draw(st.lists(st.integers(0, n * d - 1), max_size=n * d, unique=True)):
        X.flat[cell] = draw(value)
    numeric = st.lists(FINITE, min_size=n, max_size=n).map(np.array)
    text = st.text("abcé_", min_size=1, max_size=3)
    texts = st.lists(text, min_size=n, max_size=n).map(np.array)
    y = draw(st.one_of(numeric, texts))
    weights = draw(st.none() | st.lists(st.floats(0, 1e9), min_size=n, max_size=n).map(np.array))
    qid = draw(st.none() | st.lists(st.integers(0, 10**15), min_size=n, max_size=n).map(np.array))
    is_sparse, zero_based = draw(st.booleans()), draw(st.booleans())
    return Dataset(sp.csr_matrix(X) if is_sparse else X, y, weights, qid, "made", zero_based)


def assert_same(got: Dataset, expected: Dataset) -> None:
    np.testing.assert_array_equal(dense(got), dense(expected))
    assert got.X.shape == expected.X.shape
    assert got.X.dtype == expected.X.dtype
    for name in ("y", "weights", "qid"):
        ours, theirs = getattr(got, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs)


@settings(max_examples=150, deadline=None)
@given(datasets())
def test_written_text_reads_back_exactly(tmp_path_factory, dataset):
    folder = tmp_path_factory.mktemp("w")
    for name in ("a.svm", "a.svm.gz"):
        write_dataset(folder / name, dataset)
        got = read_dataset(folder / name, dtype=dataset.X.dtype)
        assert_same(got, dataset)
        assert got.zero_based == dataset.zero_based


def test_written_text():
    X = np.array([[1.0, 0.0, 0.1], [0.0, -0.0, 1e22]])
    blocks = svmlight.format_blocks(Dataset(X, np.array([1.0, -1.5]), qid=np.array([1, 2])), False)
    assert b"".join(blocks) == b"1 qid:1 1:1 3:0.1\n-1.5 qid:2 2:-0 3:1e+22\n"
    empty = Dataset(sp.csr_matrix((2, 3)), np.array([0.0, 123456.0]), np.array([1.0, 0.5]))
    assert b"".join(svmlight.format_blocks(empty, False)) == b"0 cost:1 3:0\n123456 cost:0.5\n"


def test_what_text_cannot_carry(tmp_path):
    X = np.ones((2, 1))
    for y in (np.array(["a b", "c"]), np.array(["a:b", "c"]), np.array(["#", "c"]), None):
        with pytest.raises(SettingsError):
            write_dataset(tmp_path / "a.svm", Dataset(X, y))
    assert list(tmp_path.iterdir()) == []


# ---- real files ----


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA is not set")
@pytest.mark.parametrize(
    "name", ["a1a.tr", "heart_scale.svm", "usps.t", "20news_w100.svm", "lgbm_rank.t", "golub.t"]
)
def test_agrees_with_scikit_learn(name):
    load = pytest.importorskip("sklearn.datasets").load_svmlight_file
    path = Path(os.environ["KFU_DATA"]) / f"{name}.gz"
    dataset = read_dataset(path)
    with gzip.open(path) as stream:
        X, y, qid = load(stream, query_id=True)
    assert dataset.X.shape == X.shape
    np.testing.assert_array_equal(dense(dataset), X.toarray())
    np.testing.assert_array_equal(dataset.y, y)
    if dataset.qid is not None:
        np.testing.assert_array_equal(dataset.qid, qid)
