"""Codes against their definitions: columns, distances, rules, files, names."""

from __future__ import annotations

import gzip
import math
import time
from pathlib import Path

import numpy as np
import pytest

from kfu.errors import DataError, SettingsError
from kfu.multiclass import CODES, DECODINGS, code_distance, read_code, resolve_code
from kfu.multiclass.bch import LENGTHS, PRIMITIVE, bch_code, bch_words
from kfu.multiclass.code_matrix import check_code, row_distances
from kfu.multiclass.codes import CODE_ALIASES, default_decoding
from kfu.multiclass.decoding import check_decoding
from kfu.multiclass.random_codes import _largest_products, dense_code, sparse_code
from kfu.pairwise import ovo_code
from tests.oracles import multiclass as oracle


@pytest.mark.parametrize("name", CODES)
def test_every_code_can_be_trained_and_decoded(name):
    for n_classes in (3, 4, 5, 7, 11):
        code, found = resolve_code(name, n_classes, seed=1)
        assert found == name
        assert code.dtype == np.int8
        assert code.shape[0] == n_classes
        assert set(np.unique(code)) <= {-1, 0, 1}
        assert oracle.is_code(code)
        assert code_distance(code) == oracle.distance(code)
        check_decoding(default_decoding(name, code), code)
        np.testing.assert_array_equal(code, resolve_code(name, n_classes, seed=1)[0])


@pytest.mark.parametrize("name", CODES)
def test_two_classes_have_one_machine(name):
    code, _ = resolve_code(name, 2, seed=3)
    assert code.dtype == np.int8
    assert code.tolist() == [[-1], [1]]
    assert code_distance(code) == 1.0
    check_decoding(CODES[name].decoding, code)
    assert default_decoding(name, code) == "votes"


@pytest.mark.parametrize("name", CODES)
def test_random_codes_depend_on_the_seed_and_no_others_do(name):
    first, second = (resolve_code(name, 9, seed=seed)[0] for seed in (0, 1))
    assert np.array_equal(first, second) != CODES[name].is_random


def test_one_versus_all_and_all_pairs():
    assert resolve_code("ova", 3)[0].tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    np.testing.assert_array_equal(resolve_code("ava", 6)[0], ovo_code(6))
    assert code_distance(resolve_code("ova", 8)[0]) == 2.0
    assert row_distances(ovo_code(3)).tolist() == [[0.5, 2, 2], [2, 0.5, 2], [2, 2, 0.5]]


@pytest.mark.parametrize("n_classes", range(2, 11))
def test_complete_has_every_partition_once(n_classes):
    code, _ = resolve_code("complete", n_classes)
    assert (code[0] == -1).all()
    found = [frozenset(np.flatnonzero(column > 0).tolist()) for column in code.T]
    assert len(found) == 2 ** (n_classes - 1) - 1
    assert set(found) == oracle.partitions(n_classes)
    assert code_distance(code) == 2.0 ** (n_classes - 2)


def test_complete_refuses_many_classes():
    assert resolve_code("complete", 15)[0].shape == (15, 2**14 - 1)
    with pytest.raises(SettingsError, match="32767 columns"):
        resolve_code("complete", 16)


@pytest.mark.parametrize("n_classes", [6, 8, 12, 13, 30])
def test_dense_columns_are_different_partitions(n_classes):
    code = dense_code(n_classes, 0, draws=300)
    assert code.shape[1] == math.ceil(10 * math.log2(n_classes))
    assert (code != 0).all()
    assert (code[0] == -1).all()
    parts = {frozenset(np.flatnonzero(column > 0).tolist()) for column in code.T}
    assert len(parts) == code.shape[1]
    assert frozenset() not in parts


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_dense_is_complete_where_columns_run_out(n_classes):
    np.testing.assert_array_equal(dense_code(n_classes, 5), resolve_code("complete", n_classes)[0])


@pytest.mark.parametrize("build", [dense_code, sparse_code])
@pytest.mark.parametrize("n_classes", [7, 14])
def test_more_draws_take_the_rows_farther_apart(build, n_classes):
    few = np.mean([code_distance(build(n_classes, seed, draws=1)) for seed in range(8)])
    many = np.mean([code_distance(build(n_classes, seed, draws=2000)) for seed in range(8)])
    assert many >= few + 1


def test_sparse_has_half_of_its_entries_zero():
    codes = [sparse_code(12, seed, draws=50) for seed in range(40)]
    assert codes[0].shape[1] == math.ceil(15 * math.log2(12))
    assert all((code != 0).any(axis=1).all() for code in codes)
    entries = np.concatenate([code.ravel() for code in codes])
    # Redrawn columns make zeros rarer: P(0 | both signs) = 0.479 for twelve classes (exact below).
    p = {0: 0.5, 1: 0.25, -1: 0.25}
    both = 1 - 2 * 0.75**12 + 0.5**12
    both_given_zero = 1 - 2 * 0.75**11 + 0.5**11
    expected = p[0] * both_given_zero / both
    assert abs(np.mean(entries == 0) - expected) < 0.015
    assert abs(np.mean(entries == 1) - np.mean(entries == -1)) < 0.02


@pytest.mark.parametrize(("n_classes", "n_columns"), [(5, 30), (40, 7), (90, 70)])
def test_largest_products_of_rows(n_classes, n_columns):
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(-1, 2, size=(8, n_columns, n_classes)).astype(np.float32)
    distances = np.array([oracle.distance(code.T.astype(int)) for code in codes])
    expected = n_columns - 2 * distances
    np.testing.assert_array_equal(_largest_products(codes, np.inf), expected)
    limit = np.median(expected)
    limited = np.where(expected < limit, expected, np.inf)
    np.testing.assert_array_equal(_largest_products(codes, limit), limited)


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_ten_thousand_draws_are_quick(name):
    begin = time.perf_counter()
    code, _ = resolve_code(name, 26)
    assert time.perf_counter() - begin < 5.0  # about 0.3 s on an idle core
    assert code.shape == (26, math.ceil((10 if name == "dense" else 15) * math.log2(26)))


# The dimensions every table of BCH codes has.
DIMENSIONS = {
    7: [1, 4],
    15: [1, 5, 7, 11],
    31: [1, 6, 11, 16, 21, 26],
    63: [1, 7, 10, 16, 18, 24, 30, 36, 39, 45, 51, 57],
    127: [1, 8, 15, 22, 29, 36, 43, 50, 57, 64, 71, 78, 85, 92, 99, 106, 113, 120],
}


@pytest.mark.parametrize("length", LENGTHS)
def test_bch_generators(length):
    codes = bch_words(length)
    assert [code.n_bits for code in codes] == DIMENSIONS[length]
    modulus = PRIMITIVE[length.bit_length()]
    for code in codes:
        for power in range(1, code.distance):
            assert oracle.has_root(code.generator, power, modulus)
        if code.distance < length:
            assert not oracle.has_root(code.generator, code.distance, modulus)


def test_bch_generators_in_the_tables():
    by_bits = {code.n_bits: code.generator for code in bch_words(15)}
    assert by_bits[11] == 0b10011
    assert by_bits[7] == 0b111010001
    assert by_bits[5] == 0b10100110111


@pytest.mark.parametrize(("length", "n_bits"), [(7, 4), (15, 5), (15, 7), (31, 6), (63, 7)])
def test_bch_words_keep_their_distance(length, n_bits):
    code = next(code for code in bch_words(length) if code.n_bits == n_bits)
    words = code.words(np.arange(2**n_bits))
    assert words.shape == (2**n_bits, length)
    assert words[1:].sum(axis=1).min() >= code.distance  # the code is linear
    powers = 2 ** np.arange(length, dtype=object)
    numbers = set((words @ powers).tolist())
    assert len(numbers) == 2**n_bits
    assert all(first ^ second in numbers for first in list(numbers)[:9] for second in numbers)
    # cyclic: each word turned by one place is a word
    assert set((np.roll(words, 1, axis=1) @ powers).tolist()) == numbers


@pytest.mark.parametrize(("n_classes", "length"), [(20, 63), (105, 63), (105, 127), (200, 63)])
def test_bch_codes_of_many_classes_keep_all_columns(n_classes, length):
    code = bch_code(n_classes, length)
    assert code.shape == (n_classes, length)
    designed = next(c.distance for c in bch_words(length) if 2**c.n_bits >= n_classes)
    assert code_distance(code) >= designed
    parts = {frozenset(np.flatnonzero(c * -c[0] > 0).tolist()) for c in code.T}
    assert len(parts) == length


def test_bch_length_grows_with_the_classes():
    assert [bch_code(k).shape[1] for k in (3, 4, 8, 9, 78, 79)] == [3, 7, 31, 63, 63, 127]
    assert max(1 << c.n_bits for c in bch_words(15)) == 2048
    with pytest.raises(SettingsError, match="2048 words"):
        bch_code(2049, 15)
    with pytest.raises(SettingsError, match="length 14"):
        bch_code(5, 14)


def write(folder: Path, text: str) -> Path:
    file = folder / "code.txt"
    file.write_text(text, encoding="utf-8")
    return file


GOOD = "# three classes\n+1 -1, 0\n\n-1  0 +1.0  # the second\n0, 1.,-1e0\n"


def test_a_file_is_read(tmp_path):
    expected = [[1, -1, 0], [-1, 0, 1], [0, 1, -1]]
    file = write(tmp_path, GOOD)
    assert read_code(file, 3).tolist() == expected
    assert read_code(file, 3).dtype == np.int8
    packed = tmp_path / "code.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()))
    assert resolve_code(str(packed), 3)[0].tolist() == expected
    code, name = resolve_code(file, 3)
    assert (code.tolist(), name) == (expected, str(file))


@pytest.mark.parametrize("name", CODES)
def test_every_code_survives_a_file(name, tmp_path):
    code, _ = resolve_code(name, 7)
    np.savetxt(tmp_path / "code.csv", code, delimiter=",")
    np.testing.assert_array_equal(read_code(tmp_path / "code.csv", 7), code)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("1 -1\n-1 2\n", 2, "entry '2'"),
        ("1 -1\n-1 x\n", 2, "entry 'x'"),
        ("1 nan\n-1 1\n", 1, "entry 'nan'"),
        ("1 0.5\n-1 1\n", 1, "entry '0.5'"),
        ("1,,-1\n", 1, "an empty entry"),
        ("1,-1,\n", 1, "an empty entry"),
        ("# c\n1 -1 0\n-1 1\n", 3, "2 entries where line 2 has 3"),
        ("1 -1 0\n-1 0 1\n", 2, "ends after 2 rows; the data have 3 classes"),
        ("1\n-1\n1\n0\n", 4, "more rows than the 3 classes"),
        ("", None, "ends after 0 rows"),
        ("1 -1\n-1 1\n\n-1 1\n", 4, "rows 2 and 3 of the code are the same"),
        ("1 1\n-1 1\n0 0\n", 1, "column 2 of the code has no -1"),
        ("-1 1 -1\n0 -1 -1\n-1 -1 1\n", 1, "column 1 of the code has no +1"),
        ("1 1\n-1 1\n-1 0\n", 1, "column 2 of the code has no -1"),
        ("1 1 1\n-1 -1 0\n-1 0 -1\n", 3, "rows 2 and 3 of the code have opposite signs in no"),
    ],
)
def test_what_files_are_refused(text, line, found, tmp_path):
    file = write(tmp_path, text)
    with pytest.raises(DataError) as error:
        read_code(file, 3)
    assert found in str(error.value)
    assert error.value.line == line
    assert str(error.value).startswith(str(file) if line is None else f"{file}:{line}: ")


def test_names_and_aliases(tmp_path, monkeypatch):
    for alias, name in CODE_ALIASES.items():
        assert resolve_code(alias.upper().replace("-", "_"), 4)[1] == name
    with pytest.raises(SettingsError, match=r"unknown code 'ovaa'; choose ova, ava"):
        resolve_code("ovaa", 4)
    with pytest.raises(DataError, match="no such file"):
        resolve_code("nowhere.txt", 4)
    with pytest.raises(SettingsError, match="at least two"):
        resolve_code("ova", 1)
    with pytest.raises(SettingsError, match="seed -1"):
        resolve_code("dense", 7, -1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ova").write_text("1\n-1\n")
    assert resolve_code("./ova", 2)[0].tolist() == [[1], [-1]]
    assert resolve_code("ova", 2)[0].tolist() == [[-1], [1]]


def test_matrices(tmp_path):
    code, name = resolve_code([[1, 1], [-1, 1], [0, -1]], 3)
    assert (code.dtype, name) == (np.int8, "custom")
    assert resolve_code(code.astype(float), 3)[0].dtype == np.int8
    for matrix, message in (
        ([[1, -1]], "shape"),
        ([1, -1, 1], "shape"),
        (np.zeros((3, 0)), "shape"),
        ([[1, 2], [-1, 1], [0, -1]], "other than"),
        ([[1, np.nan], [-1, 1], [0, -1]], "other than"),
        (np.array([["1"], ["-1"], ["0"]]), "other than"),
        ([[1, 1], [1, 1], [-1, -1]], "the same"),
        ([[1], [-1], [0]], "opposite signs in no column"),
        ([[1, 1], [-1, 1], [-1, 1]], "column 2"),
    ):
        with pytest.raises(SettingsError, match=message):
            check_code(matrix, 3)


def test_default_decodings_exist_and_follow_the_loss():
    assert all(code.decoding in DECODINGS for code in CODES.values())
    code, name = resolve_code("dense", 6)
    assert default_decoding(name, code) == "hinge"
    assert default_decoding(name, code, "square") == "square"
    assert default_decoding("ova", resolve_code("ova", 6)[0], "square") == "argmax"
    assert default_decoding("my-code.txt", code, "square") == "square"


@pytest.mark.parametrize("seed", range(25))
def test_dense_columns_drawn_by_chance_are_different_too(seed):
    code = dense_code(13, seed, draws=1)  # one matrix in six has equal columns
    assert np.unique(code, axis=1).shape[1] == code.shape[1]


@pytest.mark.parametrize("build", [dense_code, sparse_code])
def test_the_best_matrix_is_kept_from_chunk_to_chunk(build, monkeypatch):
    monkeypatch.setattr("kfu.multiclass.random_codes.CHUNK_ENTRIES", 1)  # one matrix at a time
    distances = [code_distance(build(9, 0, draws=draws)) for draws in (1, 5, 20, 60, 120)]
    assert distances == sorted(distances)
    assert distances[-1] > distances[0]
