"""kfu path: files, models, resuming, validation, bad input and exit codes."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from cli_toys import COMMAND, ENVIRONMENT, files_in, libsvm_text, two_classes

from kfu.paths.path_file import read_path_file


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def decisions(kfu, model: object, data: object, *more: object) -> np.ndarray:
    result = kfu("predict", model, data, "--output", "decision", *more)
    assert result.exit_code == 0, result.stderr
    return np.array([float(line) for line in result.stdout.splitlines() if line[0] != "#"])


def test_writes_the_path_and_says_what_it_is(kfu, toy, tmp_path):
    result = kfu("path", toy, "-g", 0.5, "--report", "r.json")
    assert result.exit_code == 0, result.stderr
    header, *steps = lines_of(tmp_path / "toy.jsonl")
    assert header["machine"] == "svc"
    assert header["kernel"] == {"name": "rbf", "gamma": 0.5}
    assert header["data"]["file"] == str(toy)
    assert [step["step"] for step in steps] == list(range(len(steps)))
    assert all(a["lambda"] > b["lambda"] for a, b in itertools.pairwise(steps))
    assert all(step["n_margin"] + step["n_error"] + step["n_correct"] == 80 for step in steps)
    assert max(step["kkt"] for step in steps) < 1e-8
    assert f"steps                 {len(steps) - 1} (" in result.stdout
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["steps"] == len(steps) - 1
    assert report["status"] in ("done", "hard_margin")
    assert files_in(tmp_path) == {"toy.svm", "toy.jsonl", "r.json"}


def test_o_with_the_name_of_a_model_is_one(kfu, toy, toy_test, tmp_path):
    assert kfu("path", toy, "-g", 0.5, "-q").exit_code == 0
    assert kfu("path", "toy.jsonl", "--at", 2, "-q", "--model", "a.kfu").exit_code == 0
    assert kfu("path", "toy.jsonl", "--at", 2, "-q", "-o", "b.kfu").exit_code == 0
    assert (tmp_path / "a.kfu").read_bytes() == (tmp_path / "b.kfu").read_bytes()
    for arguments in ([toy, "--at", 2], ["toy.jsonl"], ["toy.jsonl", "--at", 2, "--model", "d"]):
        wrong = kfu("path", *arguments, "-o", "c.kfu")
        assert wrong.exit_code == 2
        assert "-o names the path file; name the model with --model" in wrong.stderr
    assert files_in(tmp_path) == {"toy.svm", "toy.jsonl", "toy.t", "a.kfu", "b.kfu"}


def test_at_extracts_what_train_trains(kfu, toy, toy_test, tmp_path):
    assert kfu("path", toy, "-g", 0.5, "-q").exit_code == 0
    for C in (0.3, 10):
        result = kfu("path", "toy.jsonl", "--at", C, "--model", "at.kfu")
        assert result.exit_code == 0, result.stderr
        assert f"(C {C}, support vectors" in result.stdout
        assert kfu("train", toy, "-g", 0.5, "-c", C, "-e", 1e-9, "-o", "t.kfu").exit_code == 0
        expected = decisions(kfu, "t.kfu", toy_test)
        np.testing.assert_allclose(decisions(kfu, "at.kfu", toy_test), expected, atol=1e-6)
        by_path = decisions(kfu, "toy.jsonl", toy_test, "--at", C)
        np.testing.assert_allclose(by_path, expected, atol=1e-6)
    # The default name of the model, and the same in one command.
    assert kfu("path", toy, "-g", 0.5, "--at", 10, "-o", "-", "-q").exit_code == 0
    np.testing.assert_allclose(decisions(kfu, "toy.kfu", toy_test), expected, atol=1e-6)


def test_scaling_weights_and_no_bias_go_with_the_path(kfu, toy, toy_test, tmp_path):
    np.savetxt("w.txt", np.random.default_rng(0).uniform(0.5, 2, 80))
    given = ("--scale", "standard", "--weights", "w.txt", "-w", "1=2", "--no-bias", "-g", 0.3)
    assert kfu("path", toy, *given, "-q").exit_code == 0
    assert kfu("train", toy, *given, "-c", 2, "-e", 1e-9, "-o", "t.kfu", "-q").exit_code == 0
    expected = decisions(kfu, "t.kfu", toy_test)
    np.testing.assert_allclose(
        decisions(kfu, "toy.jsonl", toy_test, "--at", 2), expected, atol=1e-6
    )


def test_rows_are_found_named_or_embedded(kfu, toy, toy_test, tmp_path):
    assert kfu("path", toy, "-q").exit_code == 0
    assert kfu("path", toy, "-q", "--embed", "-o", "whole.jsonl").exit_code == 0
    expected = decisions(kfu, "toy.jsonl", toy_test, "--at", 1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    toy.rename(elsewhere / "rows.svm")
    result = kfu("predict", "toy.jsonl", toy_test, "--at", 1)
    assert result.exit_code == 1
    assert "toy.svm, is not there; name it with --train" in result.stderr
    found = decisions(kfu, "toy.jsonl", toy_test, "--at", 1, "--train", elsewhere / "rows.svm")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(decisions(kfu, "whole.jsonl", toy_test, "--at", 1), expected)
    wrong = kfu("path", "toy.jsonl", "--at", 1, "--train", toy_test)
    assert wrong.exit_code == 1
    assert "is a path of 80 rows" in wrong.stderr
    text = (elsewhere / "rows.svm").read_text()
    (elsewhere / "rows.svm").write_text(text.replace("1:", "1:1", 1))
    wrong = kfu("path", "toy.jsonl", "--at", 1, "--train", elsewhere / "rows.svm")
    assert wrong.exit_code == 1
    assert wrong.stderr.count("\n") == 1
    assert "not the rows that toy.jsonl is a path of" in wrong.stderr


def test_rows_of_every_kind_are_read_again(kfu, kfu_process, tmp_path):
    """Tables with a label column, text labels, arrays, kernel values, stdin."""
    X, y = two_classes(40)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    names = np.where(y > 0, "yes", "no")
    Path("table.csv").write_text(
        "".join(
            f"{','.join(map(repr, row.tolist()))},{name}\n"
            for row, name in zip(X, names, strict=True)
        )
    )
    np.savez("rows.npz", X=X, y=y)
    kernel_rows = (
        f"{label} 0:{i + 1} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()))
        for i, (row, label) in enumerate(zip(K, y, strict=True))
    )
    Path("values.svm").write_text("\n".join(kernel_rows) + "\n")
    last = ("--label-column", -1)
    found = []
    for data, path_options, read in (
        ("table.csv", ("-g", 0.5, *last), last),
        ("rows.npz", ("-g", 0.5), ()),
        ("values.svm", ("-k", "precomputed"), ()),
    ):
        assert kfu("path", data, *path_options, "-o", "p.jsonl", "-q").exit_code == 0
        found.append(decisions(kfu, "p.jsonl", data, "--at", 2, *read))
    text = libsvm_text(X, y)
    Path("text.svm").write_text(text)
    given = ("path", "-", "-g", 0.5, "-o", "p.jsonl", "--embed", "-q")
    assert kfu_process(*given, input=text).returncode == 0
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    np.testing.assert_allclose(found[0], found[2], atol=1e-9)
    np.testing.assert_allclose(
        decisions(kfu, "p.jsonl", "text.svm", "--at", 2), found[0], atol=1e-4
    )  # six digits
    Path("two.svm").write_text("1 1:1\n-1 1:2\n")
    assert kfu("path", "two.svm", "-q").exit_code == 0
    assert decisions(kfu, "two.jsonl", "two.svm", "--at", 100) == pytest.approx([1.0, -1.0])


def test_csv_holds_the_same(kfu, toy):
    assert kfu("path", toy, "-q").exit_code == 0
    assert kfu("path", "toy.jsonl", "-o", "toy.csv", "-q").exit_code == 0
    assert kfu("path", "toy.csv", "-o", "back.jsonl", "-q").exit_code == 0
    assert Path("back.jsonl").read_bytes() == Path("toy.jsonl").read_bytes()
    lines = Path("toy.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    steps = lines_of(Path("toy.jsonl"))[1:]
    assert [float(row["lambda"]) for row in rows] == [step["lambda"] for step in steps]


def test_stdout_takes_the_path(kfu, toy):
    result = kfu("path", toy, "-o", "-", "--max-steps", 3)
    assert result.exit_code == 3
    assert len([json.loads(line) for line in result.stdout.splitlines()]) == 5
    assert "stopped at --max-steps" in result.stderr


# ---- validation -----------------------------------------------------------------------------


def test_select_finds_the_least_validation_error(kfu, toy, toy_test, tmp_path):
    given = ("path", toy, "-g", 0.5, "--validate", toy_test, "--report", "r.json")
    result = kfu(*given, "--select", "min", "--model", "best.kfu")
    assert result.exit_code == 0, result.stderr
    report = json.loads(Path("r.json").read_text())
    least = report["validation"]["least_error"]
    assert min(report["validation"]["errors"]) == least
    checked = kfu("predict", "best.kfu", toy_test, "-o", "out", "--report", "p.json")
    assert checked.exit_code == 0
    assert json.loads(Path("p.json").read_text())["error"] == pytest.approx(least)
    assert lines_of(tmp_path / "toy.jsonl")[0]["validation"]["n"] == 40
    assert report["choice"]["rule"] == "minimum"


def test_folds_and_bootstrap_choose(kfu, toy):
    for words in (("--folds", 4), ("--bootstrap", 5)):
        given = ("path", toy, "-g", 0.5, *words, "--select", "1se", "--report", "r.json")
        result = kfu(*given)
        assert result.exit_code == 0, result.stderr
        report = json.loads(Path("r.json").read_text())
        assert report["splits"]["count"] == words[1]
        choice = report["choice"]
        assert choice["minimum"] <= choice["error"] <= choice["bound"] + 1e-12
        assert report["model"]["lambda"] == pytest.approx(choice["lambda"])


def test_validation_rows_with_other_features(kfu, tmp_path):
    X, y = two_classes(60)
    Path("a.svm").write_text(libsvm_text(X[:, :2], y))
    Path("b.svm").write_text(libsvm_text(*two_classes(30, seed=4)))  # a third feature
    assert kfu("path", "a.svm", "-g", 0.5, "--validate", "b.svm", "-q").exit_code == 0
    last = lines_of(tmp_path / "a.jsonl")[-1]
    value = ("--at", repr(last["C"]))
    result = kfu("predict", "a.jsonl", "b.svm", *value, "-o", "o", "--report", "p.json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(Path("p.json").read_text())["error"] == pytest.approx(last["valid_error"])


def test_the_hard_margin_is_at_infinity(kfu, tmp_path):
    X, y = two_classes(40, shift=6.0)
    Path("far.svm").write_text(libsvm_text(X, y))
    assert kfu("path", "far.svm", "-k", "linear", "-q").exit_code == 0
    assert kfu("train", "far.svm", "-k", "linear", "-c", "inf", "-e", 1e-9, "-q").exit_code == 0
    expected = decisions(kfu, "far.kfu", "far.svm")
    found = decisions(kfu, "far.jsonl", "far.svm", "--at", "inf")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert kfu("path", "far.jsonl", "--at", "inf", "--model", "hard.kfu").exit_code == 0


def test_a_path_file_is_chosen_from_and_drawn(kfu, toy, toy_test):
    assert kfu("path", toy, "--validate", toy_test, "-q").exit_code == 0
    given = ("path", "toy.jsonl", "--select", "1se", "--model", "m.kfu", "--html", "p.html")
    result = kfu(*given, "--report", "r.json")
    assert result.exit_code == 0, result.stderr
    choice = json.loads(Path("r.json").read_text())["choice"]
    errors = [step["valid_error"] for step in lines_of(Path("toy.jsonl"))[1:-1]]
    assert choice["minimum"] == pytest.approx(min(errors))
    assert Path("p.html").exists()


# ---- stopping and going on ------------------------------------------------------------------


def test_the_limit_of_steps_is_said_and_resumed(kfu, toy, tmp_path):
    assert kfu("path", toy, "-g", 0.5, "--min", 0.05, "-o", "whole.jsonl", "-q").exit_code == 0
    given = ("path", toy, "-g", 0.5, "--min", 0.05, "-o", "p.jsonl")
    result = kfu(*given, "--max-steps", 20)
    assert result.exit_code == 3
    assert "stopped at --max-steps" in result.stderr
    assert "'kfu path p.jsonl --resume' goes on" in result.stderr
    assert len(read_path_file("p.jsonl").records) == 21
    assert kfu("path", "p.jsonl", "--resume", "--max-steps", 20).exit_code == 3
    assert kfu(*given, "--resume").exit_code == 0  # the same command again
    found, whole = (read_path_file(name) for name in ("p.jsonl", "whole.jsonl"))
    assert [r["items"] for r in found.records] == [r["items"] for r in whole.records]
    again = kfu("path", "p.jsonl", "--resume")
    assert again.exit_code == 0
    assert "nothing to resume" in again.stderr
    with_folds = kfu(*given, "--resume", "--folds", 3, "--select", "min", "--model", "m.kfu")
    assert with_folds.exit_code == 0, with_folds.stderr
    other = kfu("path", toy, "-g", 0.7, "-o", "p.jsonl", "--resume")
    assert other.exit_code == 2
    assert "a path of gamma 0.5, and this command says 0.7" in other.stderr


def test_another_command_does_not_resume(kfu, toy):
    np.savetxt("w.txt", np.linspace(0.5, 2, 80))
    given = ("path", toy, "-k", "poly", "-d", 2, "-r", 1, "--max-steps", 5, "-o", "p.jsonl", "-q")
    given += ("--scale", "standard", "-w", "1=2", "--min", 0.05)
    assert kfu(*given).exit_code == 3
    before = Path("p.jsonl").read_bytes()
    for words, said in [
        (("-d", 3), "degree 2, and this command says 3"),
        (("-r", 2), "coef0 1.0, and this command says 2.0"),
        (("--scale", "unit"), "scale standard, and this command says unit"),
        (("--min", 0.01), "smallest lambda 0.05, and this command says 0.01"),
        (("--max", 10), "largest lambda none, and this command says 10.0"),
        (("-w", "-1=2"), "class weights 1.0=2, and this command says -1.0=2"),
        (("--weights", "w.txt"), "other weights of the rows"),
        (("--no-bias",), "bias free, and this command says none"),
        (("--embed",), "embedded rows no, and this command says yes"),
    ]:
        option, *value = words
        kept = list(given)
        if option in given:
            kept[kept.index(option) + 1] = value[0]
        else:
            kept += words
        result = kfu(*kept, "--resume")
        assert result.exit_code == 2, (words, result.stderr)
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
        assert Path("p.jsonl").read_bytes() == before
    assert kfu(*given, "--resume").exit_code == 3  # five steps more
    assert len(Path("p.jsonl").read_bytes()) > len(before)


def test_a_cut_file_says_where_and_is_resumed(kfu, toy):
    assert kfu("path", toy, "--min", 0.05, "-q").exit_code == 0
    whole = Path("toy.jsonl").read_bytes()
    Path("toy.jsonl").write_bytes(whole[: len(whole) // 2])
    result = kfu("path", "toy.jsonl", "--at", 1e9)
    assert result.exit_code == 2
    assert "cut off while it was written" in result.stderr
    assert "not on the path" in result.stderr
    assert kfu("path", "toy.jsonl", "--resume", "-q").exit_code == 0
    found = [line["items"] for line in lines_of(Path("toy.jsonl"))[1:]]
    assert found == [json.loads(line)["items"] for line in whole.decode().splitlines()[1:]]


def test_validation_goes_on_after_a_stop(kfu, toy, toy_test):
    given = ("path", toy, "--min", 0.05, "--validate", toy_test)
    assert kfu(*given, "-o", "whole.jsonl", "-q").exit_code == 0
    assert kfu(*given, "-o", "p.jsonl", "--max-steps", 9, "-q").exit_code == 3
    assert kfu("path", "p.jsonl", "--resume", "-q").exit_code == 0
    errors = [
        [line["valid_error"] for line in lines_of(Path(name))[1:]]
        for name in ("p.jsonl", "whole.jsonl")
    ]
    assert errors[0] == errors[1]


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_killed_runs_leave_what_they_found(kfu, tmp_path, kill):
    """A path of some seconds, stopped in the middle."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = np.where(X[:, 0] + rng.normal(size=2000) > 0, 1, -1)
    Path("big.svm").write_text(libsvm_text(X, y))
    command = [*COMMAND, "path", "big.svm", "-g", "0.2", "-o", "big.jsonl"]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    part = Path("big.jsonl.part")
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 4096) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    if process.poll() is not None:
        pytest.skip("the path was done before it could be stopped")
    process.send_signal(kill)
    _, said = process.communicate(timeout=60)
    if kill == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted at lambda" in said
        assert not part.exists()
        found = read_path_file("big.jsonl")
    else:
        assert not os.path.exists("big.jsonl")
        found = read_path_file(part, warns=False)
    assert len(found.records) > 1
    assert not found.is_finished
    name = "big.jsonl" if kill == signal.SIGINT else "big.jsonl.part"
    before = len(found.records)
    result = kfu("path", name, "--resume", "--max-steps", 5)
    assert result.exit_code == 3, result.stderr
    assert len(read_path_file("big.jsonl").records) == before + 5
    assert max(record["kkt"] for record in read_path_file("big.jsonl").records) < 1e-8


# ---- other machines -------------------------------------------------------------------------


def regression_file() -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = np.round(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50), 6)
    Path("reg.svm").write_text(libsvm_text(X, y))
    return "reg.svm"


@pytest.mark.parametrize(
    ("machine", "words", "key", "at"),
    [
        ("svr", ("--epsilon", 0.2), "lambda", 3.0),
        ("svr", ("--in", "epsilon", "-c", 2), "epsilon", 0.15),
        ("one-class", (), "nu", 0.3),
        ("nu-svc", (), "nu", 0.3),
    ],
)
def test_other_machines_have_paths(kfu, toy, machine, words, key, at):
    data = regression_file() if machine == "svr" else toy
    given = ("path", data, "-m", machine, "-g", 0.5, *words, "-o", "p.jsonl")
    result = kfu(*given, "--at", at, "--model", "m.kfu")
    assert result.exit_code == 0, result.stderr
    assert list(lines_of(Path("p.jsonl"))[1])[1] == key
    options = {"lambda": ("-c", at, *words), "epsilon": ("--epsilon", at, "-c", 2)}
    trained = options.get(key, ("--nu", at))
    assert (
        kfu(
            "train", data, "-m", machine, "-g", 0.5, *trained, "-e", 1e-9, "-o", "t.kfu", "-q"
        ).exit_code
        == 0
    )
    expected = decisions(kfu, "t.kfu", data)
    np.testing.assert_allclose(decisions(kfu, "m.kfu", data), expected, atol=1e-5)
    np.testing.assert_allclose(decisions(kfu, "p.jsonl", data, "--at", at), expected, atol=1e-5)


def test_tables_of_certified_paths_and_least_squares(kfu, toy, toy_test):
    result = kfu("path", toy, "-g", 0.5, "--gap", 0.01, "--validate", toy_test, "--select", "min")
    assert result.exit_code == 0, result.stderr
    header, *steps = lines_of(Path("toy.jsonl"))
    assert header["more_columns"] == ["gap"]
    assert all(step["gap"] <= 0.01 for step in steps)
    assert Path("toy.kfu").exists()
    result = kfu("path", regression_file(), "-m", "rls", "--at", 0.01, "-o", "rls.csv")
    assert result.exit_code == 0, result.stderr
    assert kfu("train", "reg.svm", "-m", "rls", "--lambda", 0.01, "-o", "t.kfu").exit_code == 0
    expected = decisions(kfu, "t.kfu", "reg.svm")
    np.testing.assert_allclose(decisions(kfu, "reg.kfu", "reg.svm"), expected, atol=1e-8)
    assert kfu("info", "rls.csv").exit_code == 0


def test_models_from_files_of_tables_are_trained_afresh(kfu, toy, toy_test):
    np.savetxt("w.txt", np.random.default_rng(0).uniform(0.5, 2, 80))
    given = ("--scale", "standard", "--weights", "w.txt", "-w", "1=2", "-g", 0.3)
    assert kfu("path", toy, *given, "--gap", 0.01, "--validate", toy_test, "-q").exit_code == 0
    result = kfu("path", "toy.jsonl", "--at", 2, "--model", "m.kfu", "-o", "toy.csv")
    assert result.exit_code == 0, result.stderr
    assert "trained afresh" in result.stdout
    assert kfu("train", toy, *given, "-c", 2, "-o", "t.kfu", "-q").exit_code == 0
    expected = decisions(kfu, "t.kfu", toy_test)
    np.testing.assert_allclose(decisions(kfu, "m.kfu", toy_test), expected, atol=1e-9)
    by_table = decisions(kfu, "toy.csv", toy_test, "--at", 2)
    np.testing.assert_allclose(by_table, expected, atol=1e-9)
    assert kfu("path", "toy.csv", "--select", "min", "--model", "s.kfu", "-q").exit_code == 0
    assert kfu("path", toy, "-m", "rlsc", *given, "-o", "r.csv", "--at", 0.02, "-q").exit_code == 0
    same = decisions(kfu, "r.csv", toy_test, "--at", 0.02)
    np.testing.assert_allclose(same, decisions(kfu, "toy.kfu", toy_test), atol=1e-9)
    for words, said in (
        (("--plot", "x.png"), "not a whole path"),
        (("--resume",), "not a whole path"),
        (("--select", "1se"), "for exact paths"),
        (("--at", 1, "--train", toy_test), "rows"),
    ):
        refused = kfu("path", "toy.csv", *words)
        assert refused.exit_code in (1, 2)
        assert said in refused.stderr


def test_an_unfinished_path_gives_the_models_it_has(kfu, toy):
    assert kfu("path", toy, "--max-steps", 9, "-q").exit_code == 3
    last = lines_of(Path("toy.jsonl"))[-2]["C"]
    result = kfu("path", "toy.jsonl", "--at", last)
    assert result.exit_code == 0  # nothing was asked for that is not there
    assert "unfinished (--resume goes on)" in result.stdout
    refused = kfu("path", "toy.jsonl", "--at", 1e6)
    assert refused.exit_code == 2
    assert "so far: it stopped early (unfinished); resume it" in refused.stderr


def test_rescaled_folds_keep_lambda_per_row(kfu, toy):
    chosen = []
    for words in ((), ("--rescale",)):
        given = ("path", toy, "-g", 0.5, "--folds", 2, *words, "--report", "r.json", "-q")
        assert kfu(*given).exit_code == 0
        chosen.append(json.loads(Path("r.json").read_text())["choice"]["lambda"])
    assert chosen[1] == pytest.approx(2 * chosen[0])  # halves
    refused = kfu("path", toy, "--rescale")
    assert refused.exit_code == 2
    assert "--rescale is for --folds and --bootstrap" in refused.stderr


def test_a_path_in_nu_says_where_the_margin_is_gone(kfu):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.tile([1, -1], 30)
    Path("noise.svm").write_text(libsvm_text(X, y))
    result = kfu("path", "noise.svm", "-m", "nu-svc", "-k", "linear")
    assert result.exit_code == 0, result.stderr
    assert "the margin is 0" in result.stderr


def test_info_describes_a_path(kfu, toy):
    assert kfu("path", toy, "-q", "--max-steps", 4).exit_code == 3
    result = kfu("info", "toy.jsonl")
    assert result.exit_code == 0
    assert "unfinished" in result.stdout
    content = json.loads(kfu("info", "toy.jsonl", "--json").stdout)
    assert content["steps"] == 4
    assert content["kind"] == "path"
    assert kfu("info", "toy.jsonl", "-k", "rbf").exit_code == 2


def test_pictures(kfu, toy):
    pytest.importorskip("matplotlib")
    result = kfu("path", toy, "--plot", "p.svg", "--html", "p.html", "-q")
    assert result.exit_code == 0, result.stderr
    assert Path("p.svg").read_text().lstrip().startswith("<?xml")
    assert "<html" in Path("p.html").read_text()


# ---- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--min", 3, "--max", 1), 2, "no lambda lies between"),
        (("-c", "5,1"), 2, "no C lies between"),
        (("-c", "0.1,x"), 2, "is not C or LO,HI"),
        (("--min", 1e9), 2, "no part of the path"),
        (("--at", 1, "--select", "min"), 2, "give one of them"),
        (("--select", "min"), 2, "--select needs errors"),
        (("--model", "m.kfu"), 2, "say where on the path"),
        (("--in", "nu"), 2, "no path in nu; it has one in lambda"),
        (("--epsilon", 0.1), 2, "--epsilon is for the path of svr in lambda"),
        (("-m", "knn"), 2, "no machine 'knn'"),
        (("--plot", "p.gif"), 2, "not the name of a picture"),
        (("-o", "toy.svm"), 2, "would overwrite the input"),
        (("-o", "p.jsonl.gz"), 2, "path files are written plain"),
        (("--train", "x"), 2, "--train"),
        (("--folds", 3, "--bootstrap", 3), 2, "give one of them"),
        (("--gap", 0.1, "--folds", 3), 2, "--folds is for exact paths"),
        (("--validate", "none.svm"), 1, "none.svm: no such file; check the path"),
        (("-m", "rlsc", "--max-steps", 3), 2, "least squares take no steps"),
    ],
)
def test_bad_options_get_one_message(kfu, toy, tmp_path, words, code, said):
    result = kfu("path", toy, *words)
    assert result.exit_code == code, result.stderr
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == {"toy.svm"}


def test_bad_data_get_one_message(kfu, toy, three_classes, tmp_path):
    Path("one.svm").write_text("1 1:2\n1 1:3\n")
    Path("saddle.svm").write_text(
        "".join(
            f"{(-1) ** k} 0:{k + 1} "
            + " ".join(f"{j + 1}:{0 if j == k else 1 + abs(k - j) % 3}" for j in range(12))
            + "\n"
            for k in range(12)
        )
    )
    cases = {
        "one.svm": ((), "all 2 labels are 1"),
        three_classes: ((), "3 classes (ash, birch, cedar)"),
        "saddle.svm": (("-k", "precomputed"), "not positive semidefinite"),
    }
    before = files_in(tmp_path)
    for data, (words, said) in cases.items():
        result = kfu("path", data, *words)
        assert result.exit_code == 1, (data, result.stdout, result.stderr)
        assert said in result.stderr
        assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == before


def test_ends_of_the_range_do_not_overflow(kfu, toy):
    result = kfu("path", toy, "-c", "1e-300,1e300")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""


@pytest.mark.parametrize("command", ["path", "loo", "train"])
def test_features_beyond_all_kernels(kfu, command):
    X, y = two_classes(20)
    Path("huge.svm").write_text(libsvm_text(X * 1e200, y))
    result = kfu(command, "huge.svm", "-k", "linear")
    assert result.exit_code == 1
    assert "huge.svm: features so large" in result.stderr
    assert "--scale" in result.stderr
    assert result.stderr.count("\n") == 1


def test_path_files_where_there_should_be_others(kfu, toy, toy_test, toy_model):
    assert kfu("path", toy, "-q").exit_code == 0
    for words, said in [
        (("predict", "toy.jsonl", toy_test), "say which with --at C"),
        (("predict", toy_model, toy_test, "--at", 1), "are for path files"),
        (("path", "toy.jsonl", "-g", 2), "is a path file"),
        (("path", "toy.jsonl", "--select", "min"), "needs validation errors"),
        (("path", "toy.jsonl", "--resume", "-o", "x.jsonl"), "leave -o out"),
    ]:
        result = kfu(*words)
        assert result.exit_code == 2, result.stderr
        assert said in result.stderr
