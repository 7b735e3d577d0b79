"""The file of a path: what is written is read back, cut files say where, damage names its line."""

from __future__ import annotations

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kfu.errors import DataError
from kfu.paths import path_file
from kfu.paths.path_file import PathWriter, read_path_file, record_keys, write_path_file
from kfu.paths.ranges import items_of, ranges_of

HEADER = {
    "machine": "svc",
    "parameter": "lambda",
    "kernel": {"name": "rbf", "gamma": 0.5},
    "n": 4,
    "n_features": 2,
    "classes": ["ash", "birch"],
    "settings": {"bias": "free"},
    "start": {"how": "balanced", "sets": {"error": [[0, 1]], "margin": [[2, 3]]}},
    "data": {"file": "toy.svm", "fingerprint": "00", "reader": {}},
}


def record(step: int, lam: float, event: str, items: list[int]) -> dict:
    return {
        "step": step,
        "lambda": lam,
        "C": 1.0 / lam,
        "event": event,
        "items": items,
        "n_margin": 2,
        "n_error": 2,
        "n_correct": 0,
        "bias": -0.1 * step,
        "objective": math.pi,
        "train_error": 0.25,
        "valid_error": None,
        "kkt": 1e-16,
    }


RECORDS = [
    record(0, 2.0 / 3.0, "start", []),
    record(1, 0.5, "margin+correct", [1, 3]),
    record(2, 0.1, "end", []),
]


@pytest.mark.parametrize("name", ["path.jsonl", "path.csv"])
def test_both_formats_give_the_same_back(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    write_path_file(str(file), HEADER, RECORDS)
    found = read_path_file(file)
    assert found.records == RECORDS
    assert {key: found.header[key] for key in HEADER} == HEADER
    assert found.is_finished
    assert found.cut_line is None
    assert found.ends[-1] == file.stat().st_size
    assert not (tmp_path / (name + ".part")).exists()


def test_lines_have_the_documented_keys(tmp_path: Path) -> None:
    write_path_file(str(tmp_path / "p.jsonl"), HEADER, RECORDS)
    lines = (tmp_path / "p.jsonl").read_text().splitlines()
    assert list(json.loads(lines[0]))[:2] == ["format", "version"]
    wanted = (
        "step lambda C event items n_margin n_error n_correct bias objective train_error "
        "valid_error kkt"
    )
    assert [list(json.loads(line)) for line in lines[1:]] == [wanted.split()] * 3
    assert record_keys("nu")[:3] == ("step", "nu", "event")


def test_not_a_number_becomes_null(tmp_path: Path) -> None:
    strange = {**RECORDS[0], "kkt": float("nan"), "bias": float("inf")}
    write_path_file(str(tmp_path / "p.jsonl"), HEADER, [strange])
    text = (tmp_path / "p.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text.splitlines()[1])["kkt"] is None


@pytest.mark.parametrize("name", ["path.jsonl", "path.csv"])
def test_every_cut_is_read_up_to_its_last_whole_line(tmp_path: Path, name: str) -> None:
    whole = tmp_path / name
    write_path_file(str(whole), HEADER, RECORDS)
    content = whole.read_bytes()
    first_lines = 2 if name.endswith("csv") else 1
    second = [k for k, byte in enumerate(content) if byte == ord("\n")][first_lines]
    for length in range(second + 1, len(content), 3):
        cut = tmp_path / f"cut-{name}"
        cut.write_bytes(content[:length])
        found = read_path_file(cut, warns=False)
        n_whole = content[:length].count(b"\n") - first_lines
        assert found.records == RECORDS[:n_whole]
        assert content[: found.ends[-1]].count(b"\n") == first_lines + n_whole
        assert content[found.ends[-1] - 1 : found.ends[-1]] == b"\n"
        is_between = content[length - 1 : length] == b"\n"
        assert found.cut_line == (None if is_between else n_whole + first_lines + 1)


def test_a_cut_file_warns_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    write_path_file(str(file), HEADER, RECORDS)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.warns(UserWarning, match=r"p\.jsonl:4: cut off .* lambda = 0\.5 \(--resume"):
        read_path_file(file)


@pytest.mark.parametrize("name", ["path.jsonl", "path.csv"])
def test_going_on_writes_what_one_run_would_have(tmp_path: Path, name: str) -> None:
    whole, part = tmp_path / name, tmp_path / f"part-{name}"
    write_path_file(str(whole), HEADER, RECORDS)
    part.write_bytes(whole.read_bytes()[:-15])
    found = read_path_file(part, warns=False)
    with PathWriter.go_on(found, str(part), 1) as writer:  # the second record once more
        writer.append(RECORDS[1:])
    assert part.read_bytes() == whole.read_bytes()


def test_an_append_that_was_interrupted_is_written_over(tmp_path: Path) -> None:
    def interrupted():
        yield RECORDS[1]
        raise KeyboardInterrupt

    file = tmp_path / "p.jsonl"
    with PathWriter(str(file), HEADER) as writer:
        writer.append(RECORDS[:1])
        with pytest.raises(KeyboardInterrupt):
            writer.append(interrupted())
        writer._stream.write(b"half a line")  # as if the signal came while writing
        assert writer.written == 1
        writer.append(RECORDS[1:])
    assert read_path_file(file).records == RECORDS


def test_a_killed_run_leaves_its_lines_and_not_its_name(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    writer = PathWriter(str(file), HEADER)
    writer.append(RECORDS[:2])
    assert not file.exists()
    found = read_path_file(str(file) + ".part")
    assert found.records == RECORDS[:2]
    assert not found.is_finished
    writer.close()
    assert read_path_file(file).records == RECORDS[:2]


def failing_records():
    yield RECORDS[0]
    raise RuntimeError


def test_an_exception_leaves_an_earlier_file(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    with pytest.raises(RuntimeError):
        write_path_file(str(file), HEADER, failing_records())
    assert list(tmp_path.iterdir()) == []
    write_path_file(str(file), HEADER, RECORDS)
    before = file.read_bytes()
    with pytest.raises(RuntimeError):
        write_path_file(str(file), HEADER, failing_records())
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["p.jsonl", "p.jsonl.part"])
def test_what_is_not_gone_on_with_is_put_back(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    write_path_file(str(tmp_path / "whole.jsonl"), HEADER, RECORDS)
    file.write_bytes((tmp_path / "whole.jsonl").read_bytes()[:-15])
    before = file.read_bytes()
    writer = PathWriter.go_on(read_path_file(file, warns=False), str(tmp_path / "p.jsonl"), 1)
    writer.append(RECORDS[1:])
    writer.discard()
    assert {place.name for place in tmp_path.iterdir()} == {"whole.jsonl", name}
    assert file.read_bytes() == before


def test_a_link_stays_one(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link.jsonl"
    folder.mkdir()
    link.symlink_to(folder / "p.jsonl")
    write_path_file(str(link), HEADER, RECORDS)
    assert link.is_symlink()
    assert read_path_file(folder / "p.jsonl").records == RECORDS
    with PathWriter.go_on(read_path_file(link), str(link), 1) as writer:
        writer.append(RECORDS[1:2])
    assert link.is_symlink()
    assert read_path_file(folder / "p.jsonl").records == RECORDS[:2]
    assert [place.name for place in folder.iterdir()] == ["p.jsonl"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        content = pool.submit(pipe.read_bytes)
        write_path_file(str(pipe), HEADER, RECORDS)
        received = content.result(timeout=10)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
    write_path_file(str(tmp_path / "p.jsonl"), HEADER, RECORDS)
    assert received == (tmp_path / "p.jsonl").read_bytes()


def test_other_white_space_is_read(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    write_path_file(str(file), HEADER, RECORDS)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    assert read_path_file(file).records == RECORDS


def test_damage_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    write_path_file(str(file), HEADER, RECORDS)
    lines = file.read_text().splitlines()

    def fails(changed: list[str], match: str) -> None:
        file.write_text("\n".join(changed) + "\n")
        with pytest.raises(DataError, match=match):
            read_path_file(file)

    fails([lines[0], lines[1], "{", lines[3]], r"p\.jsonl:3: no breakpoint")
    fails([lines[0], lines[1], lines[3]], r"p\.jsonl:3: .*step 2 where 1 follows")
    fails([lines[0], lines[1].replace('"kkt"', '"kk"')], r"p\.jsonl:2: .*no kkt")
    fails([lines[0], lines[1].replace("[]", "[0.5]")], r"p\.jsonl:2: .*row numbers")
    fails(lines[:1], "no breakpoint")
    fails([lines[0].replace('"version": 1', '"version": 9'), *lines[1:]], "version 9")
    fails([lines[0].replace('"kernel"', '"kern"'), *lines[1:]], "without kernel")
    fails(["1 1:2 2:3"], "not the file of a path")
    with pytest.raises(DataError, match="check the path"):
        read_path_file(tmp_path / "none.jsonl")
    file.write_bytes(lines[0].encode()[:60])
    with pytest.raises(DataError, match="header is cut off"):
        read_path_file(file)


def test_ranges_are_short_and_exact() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.5, 0.95, 1.0):
        items = np.flatnonzero(rng.random(200) < share)
        np.testing.assert_array_equal(items_of(ranges_of(items)), items)
    assert ranges_of(np.array([0, 1, 2, 7])) == [[0, 2], [7, 7]]
    with pytest.raises(ValueError, match="no range"):
        items_of([[3, 2]])


def test_heads_are_recognised() -> None:
    assert path_file.is_path_head(b'{"format": "kfu-path", "version": 1')
    assert path_file.is_path_head(b'# kfu-path {"format"')
    assert path_file.is_path_head(b'{"format":"kfu-path","version":1')
    assert path_file.is_path_head(b' { "format" :\t"kfu-path"')
    assert not path_file.is_path_head(b'{"format": "kfu-scaler"')
    assert not path_file.is_path_head(b'{"format": "kfu-paths"')
