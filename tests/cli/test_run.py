"""``kfu run``: tables, results, resuming, pictures and exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_toys import COMMAND, ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
Runner = Callable[..., Any]

TEXT = """\
name: small
about: a small one
data: {toy: moons, n_train: 60, n_test: 200}
repetitions: 3
seed: 5
steps:
  - train: {kernel: rbf, gamma: 2, cost: 1}
  - predict
  - predict: {rows: train, as: fit}
expect:
  - {figure: test.accuracy, at_least: 0.9, note: moons are easy}
  - {figure: train.kkt_gap, at_most: 1e-3, statistic: max}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(TEXT, encoding="utf-8")
    return file


def results_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return content


def test_a_run_prints_expected_beside_obtained_and_writes_results(
    config: Path, kfu: Runner, tmp_path: Path
) -> None:
    result = kfu("run", config, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    line = next(line for line in result.stdout.splitlines() if line.startswith("test.accuracy"))
    assert ">= 0.9" in line
    assert "ok" in line.split()
    assert "(3)" in line
    assert "moons are easy" in line
    content = results_of(tmp_path / "out")
    assert content["holds"] is True
    (experiment,) = content["experiments"]
    assert experiment["name"] == "small"
    assert len(experiment["parts"]) == 3
    figures = experiment["variants"][0]["figures"]
    values = [part["figures"]["test.accuracy"] for part in experiment["parts"]]
    assert figures["test.accuracy"]["values"] == values
    assert figures["test.accuracy"]["mean"] == pytest.approx(sum(values) / 3)
    assert len(set(values)) > 1, "repetitions draw different rows"
    assert figures["fit.accuracy"]["n"] == 3
    assert figures["train.n"]["mean"] == 60


def test_the_default_folder_is_named_after_the_file(config: Path, kfu: Runner) -> None:
    assert kfu("run", config).exit_code == 0
    assert Path("runs/small/results.json").is_file()


def test_pictures_are_drawn_where_they_fit(config: Path, kfu: Runner, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert kfu("run", config, "-o", tmp_path / "out").exit_code == 0
    for name in ("decision.png", "figures.png"):
        assert (tmp_path / "out/small" / name).read_bytes().startswith(b"\x89PNG")
    config.write_text(TEXT + "pictures: false\n", encoding="utf-8")
    assert kfu("run", config, "-o", tmp_path / "none").exit_code == 0
    assert not list((tmp_path / "none").rglob("*.png"))


def test_a_figure_outside_is_exit_1_and_named(config: Path, kfu: Runner, tmp_path: Path) -> None:
    config.write_text(TEXT.replace("at_least: 0.9", "value: 0.5, tolerance: 0.01"))
    result = kfu("run", config, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "small: test.accuracy is " in result.stderr
    assert "expected 0.5 ± 0.01" in result.stderr
    assert "OUTSIDE" in result.stdout
    assert results_of(tmp_path / "out")["holds"] is False


def test_what_is_done_is_not_done_again(config: Path, kfu: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert kfu("run", config, "-o", out).exit_code == 0
    before = results_of(out)
    times = {file: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}
    result = kfu("run", config, "-o", out)
    assert "3 of them from an earlier run" in result.stdout
    assert times == {file: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}
    assert results_of(out) == before

    config.write_text(TEXT.replace("repetitions: 3", "repetitions: 4"))
    assert "[4 parts, 3 of them from an earlier run]" in kfu("run", config, "-o", out).stdout

    assert "earlier" not in kfu("run", config, "-o", out, "--force").stdout
    config.write_text(TEXT.replace("cost: 1", "cost: 2"))
    assert "earlier" not in kfu("run", config, "-o", out).stdout


def test_a_stopped_run_goes_on(config: Path, kfu: Runner, tmp_path: Path) -> None:
    """A part that is missing or damaged (a kill during writing, a full disk) is computed again."""
    out = tmp_path / "out"
    assert kfu("run", config, "-o", out).exit_code == 0
    before = results_of(out)
    parts = sorted((out / "parts").glob("*.json"))
    parts[0].unlink()
    parts[1].write_text('{"figures": {"test.acc')
    (out / "results.json").unlink()
    result = kfu("run", config, "-o", out)
    assert "1 of them from an earlier run" in result.stdout
    after = results_of(out)
    for old, new in zip(
        before["experiments"][0]["parts"], after["experiments"][0]["parts"], strict=True
    ):
        assert old["figures"]["test.accuracy"] == new["figures"]["test.accuracy"]


def test_a_killed_run_keeps_what_it_has_done(kfu: Runner, tmp_path: Path) -> None:
    config, out = tmp_path / "long.yaml", tmp_path / "out"
    config.write_text(
        "data: {toy: banana, n_train: 400, n_test: 400}\nrepetitions: 100\npictures: false\n"
        "steps:\n  - train: {gamma: 1, cost: 10, tolerance: 1e-6}\n  - predict\n"
    )
    process = subprocess.Popen(
        [*COMMAND, "run", str(config), "-o", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    deadline = time.monotonic() + 60
    while len(list((out / "parts").glob("*.json"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not (out / "results.json").exists(), "it ended before it was killed"
    result = kfu("run", config, "-o", out)
    assert result.exit_code == 0, result.stderr
    stored = re.search(r"100 parts, (\d+) of them from an earlier run", result.stdout)
    assert stored is not None
    assert int(stored[1]) >= 5


def test_changed_data_are_noticed(kfu: Runner, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "datasets", tmp_path / "datasets")
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    config, out = tmp_path / "configs/demo.yaml", tmp_path / "out"
    assert kfu("run", config, "-o", out).exit_code == 0
    assert "earlier" in kfu("run", config, "-o", out).stdout
    with open(tmp_path / "datasets/banana-test.svm", "a", encoding="ascii") as stream:
        stream.write("1 1:0 2:-2\n")
    assert "earlier" not in kfu("run", config, "-o", out).stdout
    assert results_of(out)["experiments"][0]["variants"][0]["figures"]["test.n"]["mean"] == 801


def test_varied_options_give_a_row_each(config: Path, kfu: Runner, tmp_path: Path) -> None:
    text = TEXT.replace("cost: 1", "tolerance: 1e-3").replace("at_least: 0.9", "at_least: 0.3")
    config.write_text(text + "vary: {train.cost: [0.01, 1, 100]}\n")
    result = kfu("run", config, "-o", tmp_path / "out")
    shown = [line for line in result.stdout.splitlines() if line.startswith("test.accuracy")]
    assert len(shown) == 3
    assert "[train.cost=0.01]" in shown[0]
    variants = results_of(tmp_path / "out")["experiments"][0]["variants"]
    means = [variant["figures"]["train.objective"]["mean"] for variant in variants]
    assert means[0] < means[1] < means[2]  # the dual grows with C


def test_folds_and_files(kfu: Runner, tmp_path: Path) -> None:
    shutil.copy(ROOT / "datasets/ring-train.svm", tmp_path / "ring.svm")
    config = tmp_path / "ring.yaml"
    config.write_text(
        "data: {train: ring.svm}\n"
        "split: {kind: folds, folds: 4}\n"
        "repetitions: 2\n"
        "steps:\n  - scale: {method: standard}\n  - train: {gamma: 1, cost: 10}\n  - predict\n"
        "expect: [{figure: test.error, at_most: 0.1}]\n"
    )
    result = kfu("run", config, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    parts = results_of(tmp_path / "out")["experiments"][0]["parts"]
    assert len(parts) == 8
    assert sum(part["figures"]["test.n"] for part in parts) == 2 * 200


def test_the_kept_model_takes_rows_as_the_file_has_them(kfu: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert kfu("run", ROOT / "configs/demo.yaml", "-o", out).exit_code == 0
    accuracy = results_of(out)["experiments"][0]["parts"][0]["figures"]["test.accuracy"]
    (model,) = (out / "parts").glob("*.kfu")
    predicted = kfu(
        "predict", model, ROOT / "datasets/banana-test.svm", "-o", "out.txt", "--report", "-"
    )
    assert json.loads(predicted.stdout)["accuracy"] == accuracy


def test_only_and_list(kfu: Runner, tmp_path: Path) -> None:
    toys = ROOT / "configs/toys.yaml"
    listed = kfu("run", toys, "--list")
    assert listed.exit_code == 0
    assert "spiral" in listed.stdout
    assert not Path("runs").exists()
    result = kfu("run", toys, "--only", "moons", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert [e["name"] for e in results_of(tmp_path / "out")["experiments"]] == ["moons"]
    wrong = kfu("run", toys, "--only", "mons")
    assert wrong.exit_code == 2
    assert "did you mean 'moons'?" in wrong.stderr


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("gamma", "gama", 2, "small.yaml:7: steps[0].train.gama: unknown key; the nearest"),
        ("toy: moons", "train: none.svm, test: x", 2, "data.n_train: belongs to a toy"),
        ("seed: 5", "sed: 5", 2, "small.yaml:5: sed: unknown key; the nearest known one is 'seed'"),
        ("kernel: rbf", "kernel: rbff", 2, "rbff"),
        ("rows: train, as: fit", "rows: train, as: data", 2, "cannot have this name"),
    ],
)
def test_wrong_files_are_one_message_and_write_nothing(
    config: Path, kfu: Runner, old: str, new: str, code: int, message: str
) -> None:
    assert old in TEXT
    config.write_text(TEXT.replace(old, new))
    result = kfu("run", config)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not Path("runs/small/results.json").exists()


def test_missing_data_are_exit_1_and_say_where_to_get_them(
    kfu: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KFU_DATA", raising=False)
    result = kfu("run", ROOT / "configs/svmguide1.yaml")
    assert result.exit_code == 1
    assert "svmguide1.yaml:" in result.stderr
    assert "set KFU_DATA" in result.stderr
    assert "https://www.csie.ntu.edu.tw/" in result.stderr


def test_stopping_before_convergence_is_exit_3(config: Path, kfu: Runner, tmp_path: Path) -> None:
    text = TEXT.replace("cost: 1", "cost: 100, max_iterations: 2")
    config.write_text(text[: text.index("expect:")])
    result = kfu("run", config, "-o", tmp_path / "out")
    assert result.exit_code == 3
    assert "before convergence" in result.stderr
    assert results_of(tmp_path / "out")["experiments"][0]["converged"] is False


def test_the_output_has_to_be_a_folder(config: Path, kfu: Runner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = kfu("run", config, "-o", tmp_path / "file")
    assert result.exit_code == 2
    assert "not a folder" in result.stderr


def test_results_do_not_depend_on_threads(config: Path, kfu: Runner, tmp_path: Path) -> None:
    for threads in (1, 2):
        assert kfu("run", config, "-t", threads, "-o", tmp_path / str(threads)).exit_code == 0
    one, two = (
        results_of(tmp_path / str(k))["experiments"][0]["parts"][0]["figures"] for k in (1, 2)
    )
    assert one["train.objective"] == pytest.approx(two["train.objective"], rel=1e-6)
    assert one["test.accuracy"] == two["test.accuracy"]


def test_the_toys_come_out(kfu: Runner, tmp_path: Path) -> None:
    result = kfu("run", ROOT / "configs/toys.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stdout + result.stderr


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("KFU_DATA"), reason="KFU_DATA is not set")
@pytest.mark.parametrize("name", ["svmguide1", "a1a", "heart_scale"])
def test_published_figures_come_out(name: str, kfu: Runner, tmp_path: Path) -> None:
    result = kfu("run", ROOT / f"configs/{name}.yaml", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.stdout + result.stderr
