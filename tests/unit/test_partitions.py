"""Partitions: read one after the other they are the file, however it is cut."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.data import Dataset
from kfu.engine.partitions import ReadSettings, expand, plan, read_blocks
from kfu.engine.survey import (
    class_numbers,
    label_text,
    layout_of,
    smallest_keys,
    survey_partition,
    union_of,
)
from kfu.errors import DataError, SettingsError
from kfu.io import read_dataset, write_dataset


def pieces(path: Any, step: int, block_rows: int = 7, **options: Any) -> list[Dataset]:
    """All blocks of all partitions, in the layout that the survey of all of them gives."""
    wanted = ReadSettings(**options)
    partitions = plan(path, wanted, step)
    surveys = [survey_partition(p, wanted, "classes", 0, 5) for p in partitions]
    layout = layout_of(partitions, surveys, wanted)
    blocks = [list(read_blocks(p, layout, block_rows)) for p in partitions]
    assert [sum(b.n for b in part) for part in blocks] == [s.rows for s in surveys]
    return [block for part in blocks for block in part]


def full(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def assert_same(found: list[Dataset], whole: Dataset) -> None:
    assert {block.is_sparse for block in found} == {whole.is_sparse}
    assert np.array_equal(np.vstack([full(block.X) for block in found]), full(whole.X))
    assert whole.y is not None
    assert np.array_equal(np.concatenate([block.y for block in found]), whole.y)
    for name in ("weights", "qid"):
        parts = [getattr(block, name) for block in found]
        if getattr(whole, name) is not None:
            assert np.array_equal(np.concatenate(parts), getattr(whole, name))


def sample(n: int = 40, d: int = 5, seed: int = 0, zeros: float = 0.3) -> Dataset:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 3)
    X[rng.random(X.shape) < zeros] = 0.0
    X[0] = np.arange(1, d + 1)
    return Dataset(X, rng.integers(-1, 3, n).astype(float))


line = st.sampled_from(
    ["1 1:2 3:0.5", "-1 2:1 # note", "", "# comment", "2 4:1e-3", "1", "  ", "-1 1:1 2:2 3:3 4:4"]
)


@settings(max_examples=80, deadline=None)
@given(
    lines=st.lists(line, min_size=1, max_size=25),
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    step=st.integers(1, 120),
    zero=st.booleans(),
)
def test_libsvm_text_of_any_cut(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ending: str,
    last: bool,
    step: int,
    zero: bool,
) -> None:
    path = tmp_path_factory.mktemp("text") / "data.svm"
    lines = [*lines, "1 0:3 4:1" if zero else "1 4:1"]
    path.write_bytes((ending.join(lines) + (ending if last else "")).encode())
    assert_same(pieces(path, step), read_dataset(path, format="svmlight"))


@pytest.mark.parametrize("step", [1, 30, 100, 10**6])
@pytest.mark.parametrize(
    "name", ["a.svm", "a.csv", "a.tsv", "a.npy", "a.npz", "a.svm.gz", "a.csv.gz"]
)
def test_every_format_of_any_cut(tmp_path: Path, name: str, step: int) -> None:
    path = tmp_path / name
    write_dataset(path, sample())
    assert_same(pieces(path, step), read_dataset(path))
    kinds = {p.kind for p in plan(path, ReadSettings(), step)}
    compressed = name.endswith((".gz", ".npz"))
    assert kinds == {"whole" if compressed else "rows" if name == "a.npy" else "lines"}


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("step", [1, 9, 50])
def test_tables_with_comments_and_roles(tmp_path: Path, header: bool, step: int) -> None:
    rows = [f"{k % 3},{k}.5,{k * k},{k + 1}" for k in range(12)]
    top = ["# made by hand", "", "y,a,cost:,b"] if header else ["# made by hand"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([*top, *rows[:5], "# half", *rows[5:]]))
    whole = read_dataset(path)
    assert (whole.weights is not None) == header
    assert_same(pieces(path, step), whole)


def test_uncompressed_npz_is_cut_by_rows(tmp_path: Path) -> None:
    data = sample(30)
    path = tmp_path / "a.npz"
    labels = np.array(["no", "yes"])[(data.y > 0).astype(int)]
    np.savez(path, X=np.asfortranarray(data.X), y=labels, weights=np.arange(30) + 1.0)
    partitions = plan(path, ReadSettings(), 200)
    assert [(p.begin, p.end) for p in partitions] == [(b, b + 5) for b in range(0, 30, 5)]
    assert_same(pieces(path, 200), read_dataset(path))


def test_sparse_npz_is_one_partition(tmp_path: Path) -> None:
    X = sp.random(30, 40, density=0.05, format="csr", random_state=0)
    path = tmp_path / "a.npz"
    write_dataset(path, Dataset(X, np.arange(30) % 2.0))
    assert len(plan(path, ReadSettings(), 10)) == 1
    assert_same(pieces(path, 10), read_dataset(path))


def test_ranges_cover_the_file_and_begin_at_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    write_dataset(path, sample(200))
    content = path.read_bytes()
    partitions = plan(path, ReadSettings(), 100)
    assert len(partitions) > 20
    assert partitions[0].begin == 0
    assert partitions[-1].end == len(content)
    for before, after in itertools.pairwise(partitions):
        assert before.end == after.begin
        assert content[after.begin - 1 : after.begin] == b"\n"
    assert [p.index for p in partitions] == list(range(len(partitions)))


def test_files_of_a_pattern_are_sorted_and_share_columns(tmp_path: Path) -> None:
    (tmp_path / "b.svm").write_text("1 1:1 2:1 3:1\n")
    (tmp_path / "a.svm").write_text("-1 1:2 7:1\n")
    (tmp_path / "sub").mkdir()
    with gzip.open(tmp_path / "sub" / "c.svm", "wt") as stream:
        stream.write("1 5:4\n")
    pattern = str(tmp_path / "**" / "*")
    assert [Path(p).name for p in expand(pattern)] == ["a.svm", "b.svm", "c.svm"]
    found = pieces(pattern, 1000)
    assert [block.n_features for block in found] == [7, 7, 7]
    assert np.vstack([full(b.X) for b in found])[:, [0, 4, 6]].tolist() == [
        [2, 0, 1],
        [1, 0, 0],
        [0, 4, 0],
    ]


def test_a_fault_has_its_line_in_the_file(tmp_path: Path) -> None:
    text = tmp_path / "a.svm"
    text.write_text("# top\n" + "1 1:1 2:2\n" * 20 + "1 1:x\n" + "1 1:1\n" * 5)
    table = tmp_path / "a.csv"
    table.write_text("y,a,b\n" + "1,2,3\n" * 20 + "1,2\n" + "1,2,3\n" * 5)
    for path, step in ((text, 40), (table, 40), (text, 10**6)):
        with pytest.raises(DataError) as caught:
            pieces(path, step)
        assert caught.value.line == 22
        with pytest.raises(DataError) as expected:
            read_dataset(path)
        assert str(caught.value) == str(expected.value)


def test_bad_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n")
    with pytest.raises(SettingsError, match="standard input"):
        plan("-", ReadSettings())
    with pytest.raises(DataError, match="no file matches"):
        plan(str(tmp_path / "*.csv"), ReadSettings())
    with pytest.raises(DataError, match="no such file"):
        plan(tmp_path / "b.svm", ReadSettings())
    with pytest.raises(SettingsError, match="twice"):
        plan([path, str(tmp_path / "*.svm")], ReadSettings())
    with pytest.raises(SettingsError, match="no data files"):
        plan([], ReadSettings())
    with pytest.raises(SettingsError, match="partition_bytes"):
        plan(path, ReadSettings(), 0)
    with pytest.raises(SettingsError, match="unknown data format"):
        plan(path, ReadSettings(format="xls"))
    (tmp_path / "empty.svm").write_text("")
    with pytest.raises(DataError):
        plan(tmp_path / "empty.svm", ReadSettings())


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:2\n")
    (tmp_path / "b.svm").write_text("# nothing\n")
    with pytest.raises(DataError, match=r"b\.svm"):
        pieces([tmp_path / "a.svm", tmp_path / "b.svm"], 4)


def test_a_file_that_changes_between_passes(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n")
    [partition] = plan(path, ReadSettings())
    path.write_text("1 1:1\n-1 1:1\n")
    with pytest.raises(DataError, match="13 bytes where 6 were found"):
        list(read_blocks(partition, ReadSettings(), 5))


def test_tables_must_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,3\n0,2,3\n")
    (tmp_path / "b.csv").write_text("1,2,3,4\n0,2,3,4\n")
    with pytest.raises(DataError, match="2 features where 3 are expected"):
        pieces([tmp_path / "a.csv", tmp_path / "b.csv"], 1000)


def test_labels_that_are_texts_in_one_partition_only() -> None:
    assert [label_text(v) for v in ("+1", "1.0", 1.0, "a", "-2.50")] == ["1", "1", "1", "a", "-2.5"]
    classes = union_of([np.array([1.0, 2.0]), np.array(["+1", "a"])])
    assert classes.tolist() == ["1", "2", "a"]
    assert class_numbers(np.array([2.0, 1.0]), classes, "f").tolist() == [1, 0]
    assert class_numbers(np.array(["a", "+1"]), classes, "f").tolist() == [2, 0]
    assert union_of([np.array([10.0, 9.0]), np.array([-1.0])]).tolist() == [-1.0, 9.0, 10.0]
    with pytest.raises(DataError, match="label 7 is none of the classes"):
        class_numbers(np.array([7.0]), classes, "f")


def test_keys_of_weighted_rows_draw_in_proportion() -> None:
    weight = np.array([0.0, 1.0, 3.0, 0.0, 6.0])
    first = np.array([smallest_keys(s, 0, 5, 1, weight)[1][0] for s in range(2000)])
    share = np.bincount(first, minlength=5) / 2000
    assert np.abs(share - weight / 10).max() < 0.045  # four standard deviations
    keys, rows = smallest_keys(0, 0, 5, 5, weight)
    assert sorted(rows.tolist()) == [1, 2, 4]
    assert np.all(np.diff(keys) >= 0)


def test_numbers_wanted_but_texts_found(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:1\nb 1:2\n")
    [partition] = plan(tmp_path / "a.svm", ReadSettings())
    with pytest.raises(DataError, match="'b' is no number"):
        survey_partition(partition, ReadSettings(), "numbers", 0, 1)
