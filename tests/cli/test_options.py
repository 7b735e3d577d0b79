"""Option values: what is refused, with which words, always exit 2 and nothing written."""

from __future__ import annotations

import pytest
from cli_toys import files_in

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
    (["-m", "svk"], "did you mean 'svc'?"),
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
    (["--config", "missing.yaml"], "missing.yaml: No such file"),
    (["--kernel-file", "missing.yaml"], "missing.yaml: No such file"),
    (["-k", "missing.yaml"], "missing.yaml: No such file"),
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
