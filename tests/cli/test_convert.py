"""kfu convert: models with LIBSVM, data between formats."""

from __future__ import annotations

import numpy as np
import pytest
from cli_toys import files_in

from kfu.io import read_dataset


def test_model_there_and_back(kfu, toy_model, toy_test):
    assert kfu("convert", toy_model, "m.model").exit_code == 0
    with open("m.model") as stream:
        assert stream.readline().startswith("svm_type c_svc")
    assert kfu("convert", "m.model", "back.kfu").exit_code == 0
    direct = kfu("predict", toy_model, toy_test, "--output", "decision", "-q").stdout
    back = kfu("predict", "back.kfu", toy_test, "--output", "decision", "-q").stdout
    assert direct.splitlines()[0] == back.splitlines()[0]
    one, two = (np.loadtxt(text.splitlines()) for text in (direct, back))
    np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def test_libsvm_predicts_the_same(kfu, toy_model, toy_test):
    svmutil = pytest.importorskip("libsvm.svmutil")
    assert kfu("convert", toy_model, "m.model", "--to", "libsvm").exit_code == 0
    y, x = svmutil.svm_read_problem(str(toy_test))
    labels, _, values = svmutil.svm_predict(y, x, svmutil.svm_load_model("m.model"), "-q")
    lines = kfu("predict", toy_model, toy_test, "--output", "both", "-q").stdout.splitlines()[1:]
    assert [float(line.split("\t")[0]) for line in lines] == labels
    ours = [float(line.split("\t")[1]) for line in lines]
    np.testing.assert_allclose(ours, [value[0] for value in values], atol=1e-6)


REGRESSION = """svm_type epsilon_svr
kernel_type linear
nr_class 2
total_sv 1
rho -0.25
probA 0.5
SV
2 1:1
"""


def test_a_regression_of_libsvm_is_converted_and_predicts(kfu, tmp_path):
    (tmp_path / "r.model").write_text(REGRESSION)
    (tmp_path / "r.svm").write_text("1 1:1\n4 1:2\n")
    found = kfu("convert", "r.model", "r.kfu")
    assert found.exit_code == 0
    assert found.stderr.startswith("kfu: warning: r.model: 'probA' (")
    assert found.stderr.count("\n") == 1
    predicted = kfu("predict", "r.kfu", "r.svm", "-q").stdout
    assert predicted.split() == ["2.25", "4.25"]
    assert kfu("convert", "r.kfu", "back.model").exit_code == 0
    assert (tmp_path / "back.model").read_text() == REGRESSION.replace("probA 0.5\n", "")


def test_a_machine_that_libsvm_does_not_have_is_refused(kfu, toy, tmp_path):
    assert kfu("train", toy, "-m", "knn", "-o", "n.kfu", "-q").exit_code == 0
    found = kfu("convert", "n.kfu", "n.model")
    assert found.exit_code == 1
    assert "LIBSVM has no machine like knn" in found.stderr
    assert not (tmp_path / "n.model").exists()


@pytest.mark.parametrize("ending", ["csv", "tsv", "npz", "svm.gz"])
def test_data_there_and_back(ending, kfu, toy):
    assert kfu("convert", toy, f"d.{ending}").exit_code == 0
    assert kfu("convert", f"d.{ending}", "back.svm").exit_code == 0
    one, two = read_dataset(toy, dense=True), read_dataset("back.svm", dense=True)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)


def test_label_column(kfu, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,kind\n1,2,yes\n3,4,no\n")
    assert kfu("convert", "t.csv", "t.svm", "--label-column", "-1").exit_code == 0
    assert (tmp_path / "t.svm").read_text() == "yes 1:1 2:2\nno 1:3 2:4\n"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["toy.svm", "out.kfu", "--to", "kfu"], 2, "--to kfu is for models"),
        (["toy-fixture.kfu", "out.csv", "--to", "csv"], 2, "is a model"),
        (["no.svm", "out.csv"], 1, "no.svm: "),
        (["toy.svm", "absent/out.csv"], 1, "no directory 'absent'"),
        (["toy.svm"], 2, "Missing argument 'OUT'"),
    ],
)
def test_refused(args, code, words, kfu, toy_model, tmp_path):
    before = files_in(tmp_path)
    result = kfu("convert", *args)
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert files_in(tmp_path) == before


def test_scaled_model_is_refused(kfu, toy, tmp_path):
    assert kfu("train", toy, "--scale", "standard", "-q").exit_code == 0
    result = kfu("convert", "toy.kfu", "m.model")
    assert result.exit_code == 1
    assert "scaler" in result.stderr
    assert not (tmp_path / "m.model").exists()
