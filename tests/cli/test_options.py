"""Option values: what is refused, with which words, always exit 2 and nothing written."""

from __future__ import annotations

import dataclasses
import json

import pytest
import yaml
from cli_toys import files_in

from kfu.solvers import SolverSettings

REFUSED = [
    (["-g", "abc"], "'abc' is not a gamma; give a number > 0"),
    (["-g", "nan"], "'nan' is not a gamma"),
    (["-g", "-1"], "'-1' is not a gamma"),
    (["-g", "0"], "'0' is not a gamma"),
    (["-g", "inf"], "'inf' is not a gamma"),
    (["-c", "0"], "0 is out of range; give a number > 0"),
    (["-c", "-1"], "-1 is out of range"),
    (["-c", "nan"], "'nan' is not finite"),
    (["-c", "one"], "'one' is not a number"),
    (["-k", "2"], "kernels have names here, use -k rbf"),
    (["-k", "0"], "use -k linear"),
    (["-k", "rfb"], "no kernel 'rfb' (did you mean 'rbf'?)"),
    (["-t", "rbf"], "-t is --threads; kernels are chosen with -k"),
    (["-t", "-1"], "-1 is out of range"),
    (["-t", "1.5"], "'1.5' is not a whole number"),
    (["-m", "100"], "the cache is set with --cache-mib"),
    (["-m", "svcc"], "did you mean 'svc'?"),
    (["-w", "1"], "'1' is not LABEL=WEIGHT"),
    (["-w", "1=-2"], "'1=-2' is not LABEL=WEIGHT with a weight > 0"),
    (["-w", "1=x"], "is not LABEL=WEIGHT"),
    (["-w", "1=2", "-w", "1=3"], "-w gives class '1' twice"),
    (["-w", "balanced", "-w", "1=3"], "-w balanced sets every class"),
    (["-w", "7=2"], "no class '7' in"),
    (["-e", "0"], "0 is out of range"),
    (["-e", "nan"], "'nan' is not finite"),
    (["-d", "0", "-k", "poly"], "0 is out of range; give a whole number >= 1"),
    (["-d", "2.5", "-k", "poly"], "'2.5' is not a whole number"),
    (["-d", "3"], "-d does not apply to kernel rbf"),
    (["-g", "1", "-k", "linear"], "-g does not apply to kernel linear"),
    (["-g", "1", "--sigma", "1"], "-g and --sigma both set gamma"),
    (["--solver", "smoo"], "no solver 'smoo' (did you mean 'smo'?)"),
    (["--scale", "standart"], "did you mean 'standard'?"),
    (["--cache-mib", "0"], "0 is out of range"),
    (["--precision", "float16"], "choose from auto, float32, float64"),
    (["--max-seconds", "-1"], "-1 is out of range"),
    (["--format", "arff"], "no format 'arff'"),
    (["--label-column", "0"], "columns count from 1"),
    (["--config", "missing.yaml"], "missing.yaml: no such file"),
    (["--kernel-file", "missing.yaml"], "missing.yaml: no such file"),
    (["-k", "missing.yaml"], "missing.yaml: no such file"),
]


@pytest.mark.parametrize(("args", "words"), REFUSED, ids=lambda value: str(value))
def test_refused(args, words, kfu, toy, tmp_path):
    before = files_in(tmp_path)
    result = kfu("train", toy, *args)
    assert result.exit_code == 2, result.stderr
    assert words in result.stderr
    assert result.stderr.startswith("kfu: error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("gamma", ["auto", "scale", "median", "0.25"])
def test_gamma_rules(gamma, kfu, toy):
    assert kfu("train", toy, "-g", gamma, "-q").exit_code == 0


def test_sigma_is_a_gamma(kfu, toy):
    one = kfu("train", toy, "--sigma", 2, "-o", "a.kfu")
    two = kfu("train", toy, "-g", 0.125, "-o", "b.kfu")
    line = [text for text in one.stdout.splitlines() if text.startswith("objective")]
    assert line
    assert line[0] in two.stdout
    assert "0.125" in one.stdout


class TestConfig:
    def test_values_are_taken_and_flags_win(self, kfu, toy):
        with open("c.yaml", "w") as stream:
            stream.write("cost: 10\ngamma: 0.5\nno-bias: true\nclass-weight: {1: 2.0}\n")
        both = kfu("train", toy, "--config", "c.yaml", "-c", 4, "-o", "a.kfu")
        flags = kfu("train", toy, "-c4", "-g.5", "--no-bias", "-w1=2", "-o", "a.kfu")
        assert both.exit_code == 0, both.stderr
        assert both.stdout.split("seconds")[0] == flags.stdout.split("seconds")[0]

    def test_data_and_underscores_are_read(self, kfu, toy):
        with open("c.yaml", "w") as stream:
            stream.write(f"data: {toy}\ncache_mib: 1\nquiet: true\nbias: false\noutput: out.kfu\n")
        result = kfu("train", "--config", "c.yaml")
        assert result.exit_code == 0, result.stderr
        assert (toy.parent / "out.kfu").exists()

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("gama: 1\n", "c.yaml: unknown key 'gama' (did you mean 'gamma'?)"),
            ("cost: -1\n", "c.yaml: cost: -1 is out of range"),
            ("gamma: abc\n", "c.yaml: gamma: 'abc' is not a gamma"),
            ("shrinking: perhaps\n", "c.yaml: shrinking: "),
            ("no-bias: 3\n", "c.yaml: no-bias: is a switch; write true or false"),
            ("- a\n- b\n", "c.yaml: holds a list, not 'key: value' lines"),
            ("a: [1\n", "c.yaml:2: "),
            ("cost: true\n", "c.yaml: cost: 'True' is not a number"),
        ],
    )
    def test_bad_config(self, text, words, kfu, toy, tmp_path):
        (tmp_path / "c.yaml").write_text(text)
        before = files_in(tmp_path)
        result = kfu("train", toy, "--config", "c.yaml")
        assert result.exit_code == 2
        assert words in result.stderr
        assert files_in(tmp_path) == before

    def test_empty_config(self, kfu, toy, tmp_path):
        (tmp_path / "c.yaml").write_text("# nothing\n")
        assert kfu("train", toy, "--config", "c.yaml", "-q").exit_code == 0


class TestKernelFile:
    def test_sum_of_kernels(self, kfu, toy, tmp_path):
        (tmp_path / "k.yaml").write_text(
            "sum:\n  - {name: rbf, gamma: 0.5}\n  - {name: linear, weight: 0.1}\n"
        )
        for flag in ("-k", "--kernel-file"):
            result = kfu("train", toy, flag, "k.yaml", "-o", "m.kfu")
            assert result.exit_code == 0, result.stderr
            assert "rbf" in result.stdout
            assert "linear" in result.stdout
        assert kfu("predict", "m.kfu", toy, "-q").exit_code == 0

    def test_wrong_kernel_file(self, kfu, toy, tmp_path):
        (tmp_path / "k.yaml").write_text("sum:\n  - {name: rbff}\n")
        result = kfu("train", toy, "-k", "k.yaml")
        assert result.exit_code == 2
        assert "k.yaml" in result.stderr
        assert "rbff" in result.stderr

    def test_flags_beside_a_kernel_file(self, kfu, toy, tmp_path):
        (tmp_path / "k.yaml").write_text("name: linear\n")
        result = kfu("train", toy, "-k", "k.yaml", "-g", "1")
        assert result.exit_code == 2
        assert "k.yaml holds the parameters" in result.stderr


def test_kernel_beside_a_kernel_file(kfu, toy, tmp_path):
    (tmp_path / "k.yaml").write_text("name: linear\n")
    for command in ("train", "info"):
        result = kfu(command, toy, "--kernel-file", "k.yaml", "-k", "poly")
        assert result.exit_code == 2
        assert "-k poly and --kernel-file k.yaml: give one of them" in result.stderr


def test_every_setting_of_the_solver_is_an_option():
    from kfu.cli.train import SOLVER_NAMES, train

    fields = {field.name for field in dataclasses.fields(SolverSettings)}
    assert set(SOLVER_NAMES) == fields <= {parameter.name for parameter in train.params}


def test_instruction_set_the_processor_lacks(kfu, toy, monkeypatch):
    from kfu import _gram

    monkeypatch.setattr(_gram, "available_simd", lambda: ["baseline"])
    result = kfu("train", toy, "--simd", "avx2")
    assert result.exit_code == 2
    assert "this processor does not have it; choose from best, baseline" in result.stderr


class TestReportAsConfig:
    """The settings of a report are a config file that trains the same machine."""

    FLAGS = (
        [
            "-g",
            0.3,
            "-c",
            2,
            "-w",
            "1=3",
            "--no-bias",
            "--scale",
            "standard",
            "--simd",
            "baseline",
            "--polish",
        ],
        ["-k", "poly", "-d", 2, "-r", 1, "-w", "balanced", "-e", 1e-4, "--selection", "first"],
        ["-k", "k.yaml"],
    )

    def trained(self, kfu, *args):
        result = kfu("train", *args, "--report", "-")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    @pytest.mark.parametrize("flags", FLAGS, ids=["rbf", "poly", "sum"])
    def test_same_machine(self, flags, kfu, toy, tmp_path):
        (tmp_path / "k.yaml").write_text("sum: [{name: rbf, gamma: 0.5}, {name: linear}]\n")
        first = self.trained(kfu, toy, *flags)
        (tmp_path / "again.yaml").write_text(yaml.safe_dump(first["settings"]))
        second = self.trained(kfu, toy, "--config", "again.yaml")
        assert second["objective"] == first["objective"]
        assert second["settings"] == first["settings"]

    def test_flags_win(self, kfu, toy, tmp_path):
        (tmp_path / "k.yaml").write_text("name: linear\n")
        (tmp_path / "c.yaml").write_text("kernel: {name: poly, gamma: 0.5, degree: 2}\n")
        for flags, kernel in (
            (["-d", 4], "poly(gamma=0.5, coef0=0, degree=4)"),
            (["-k", "linear"], "linear"),
            (["--kernel-file", "k.yaml"], "linear"),
        ):
            assert self.trained(kfu, toy, "--config", "c.yaml", *flags)["kernel"] == kernel

    def test_wrong_kernel(self, kfu, toy, tmp_path):
        (tmp_path / "c.yaml").write_text("kernel: {name: rbff}\n")
        result = kfu("train", toy, "--config", "c.yaml")
        assert result.exit_code == 2
        assert "c.yaml: kernel: " in result.stderr


@pytest.mark.parametrize("name", ["t.svm", "t.npz"])
@pytest.mark.parametrize("flags", [["--label-column", 2], ["--header"], ["--no-header"]])
def test_table_options_for_other_formats(name, flags, kfu, toy, toy_model):
    assert kfu("convert", toy, name).exit_code == 0
    for args in (
        ["train", name],
        ["predict", toy_model, name, "--output", "both"],
        ["scale", name],
    ):
        result = kfu(*args, *flags)
        assert result.exit_code == 2, result.stderr
        assert f"is for tables, and {name} is " in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize("name", ["t.csv", "t.npy"])
def test_label_column_messages_count_as_the_option_does(name, kfu, toy):
    assert kfu("convert", toy, name).exit_code == 0
    for column in (9, -9):
        result = kfu("train", name, "--label-column", column)
        assert result.exit_code == 1
        assert f"label column {column} of " in result.stderr
        assert "columns 1 (the first) to 4, or -1 (the last) to -4" in result.stderr


class TestPlaces:
    """No output may be a file that is read; a model or a checkpoint is no text for stdout."""

    @pytest.mark.parametrize(
        "args",
        [
            ["train", "toy.svm", "-o", "toy.svm"],
            ["train", "toy.svm", "-o", "link.svm"],
            ["train", "toy.svm", "-o", "./toy.svm"],
            ["train", "toy.svm", "--report", "toy.svm"],
            ["train", "toy.svm", "--checkpoint", "toy.svm"],
            ["train", "toy.svm", "--config", "c.yaml", "-o", "c.yaml"],
            ["train", "toy.svm", "--start", "toy-fixture.kfu", "--report", "toy-fixture.kfu"],
            ["predict", "toy-fixture.kfu", "toy.svm", "-o", "toy.svm"],
            ["predict", "toy-fixture.kfu", "toy.svm", "-o", "toy-fixture.kfu"],
            ["predict", "toy-fixture.kfu", "toy.svm", "--report", "toy.svm"],
            ["scale", "toy.svm", "-o", "toy.svm"],
            ["scale", "toy.svm", "--save", "toy.svm"],
            ["convert", "toy.svm", "link.svm"],
            ["convert", "toy-fixture.kfu", "toy-fixture.kfu"],
        ],
        ids=" ".join,
    )
    def test_inputs_are_not_overwritten(self, args, kfu, toy, toy_model, tmp_path):
        (tmp_path / "link.svm").symlink_to("toy.svm")
        (tmp_path / "c.yaml").write_text("cost: 2\n")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        result = kfu(*args)
        assert result.exit_code == 2, result.stderr
        assert "would overwrite the input; give another name" in result.stderr
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    def test_two_outputs_need_two_names(self, kfu, toy):
        result = kfu("train", toy, "-o", "m", "--report", "m")
        assert result.exit_code == 2
        assert "-o and --report both write m" in result.stderr

    def test_the_start_model_may_be_replaced(self, kfu, toy, toy_model):
        result = kfu("train", toy, "-g", 0.5, "--start", toy_model, "-o", toy_model)
        assert result.exit_code == 0, result.stderr

    def test_devices_are_no_files(self, kfu, toy):
        result = kfu("scale", toy, "-o", "/dev/null", "--save", "/dev/null")
        assert result.exit_code == 0, result.stderr

    @pytest.mark.parametrize("flags", [["-o", "-"], ["-o", "m.kfu", "--checkpoint", "-"]])
    def test_stdout_is_no_model(self, flags, kfu, toy, tmp_path):
        before = files_in(tmp_path)
        result = kfu("train", toy, *flags)
        assert result.exit_code == 2
        assert "cannot go to stdout; give the name of a file" in result.stderr
        assert files_in(tmp_path) == before
