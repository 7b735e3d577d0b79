"""kfu info: what it says of data and models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_toys import libsvm_text, two_classes


def described(kfu, *args) -> dict:
    result = kfu("info", *args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_data(kfu, toy):
    content = described(kfu, toy)
    assert (content["n"], content["n_features"], content["layout"]) == (80, 3, "dense")
    assert content["density"] == 1.0
    assert content["classes"] == [{"label": "-1", "n": 40}, {"label": "1", "n": 40}]
    assert content["label_type"] == "integer"
    assert content["constant_features"] == []
    assert content["duplicate_rows"] == content["contradictory_rows"] == 0
    assert content["suggested_gamma"]["auto"] == pytest.approx(1 / 3)
    X, _ = two_classes()
    from scipy.spatial.distance import pdist

    median = np.median(pdist(X, "sqeuclidean"))
    assert content["suggested_gamma"]["median"] == pytest.approx(1 / median, rel=0.3)
    assert content["warnings"] == []


def test_data_as_text(kfu, toy):
    result = kfu("info", toy)
    assert result.exit_code == 0
    for words in ("rows", "80", "features", "class", "suggested gamma"):
        assert words in result.stdout


def test_faults_of_the_data_are_named(kfu, tmp_path):
    X, y = two_classes(n=20)
    X[:, 1] *= 1e5
    X[:, 2] = 7.0
    text = libsvm_text(X, y)
    (tmp_path / "f.svm").write_text(text + libsvm_text(X[:1], -y[:1]) + text.splitlines()[2] + "\n")
    content = described(kfu, "f.svm")
    assert content["constant_features"] == [3]
    assert content["duplicate_rows"] == 2
    assert content["contradictory_rows"] == 2
    words = " ".join(content["warnings"])
    assert "feature ranges differ" in words
    assert "rows 1 and 21" in words
    result = kfu("info", "f.svm")
    assert "feature ranges differ" in result.stderr


def test_sparse_data_with_queries_and_weights(kfu, tmp_path):
    (tmp_path / "q.svm").write_text(
        "1 qid:1 cost:2 1:1\n2 qid:1 cost:0.5 9:1\n0 qid:2 cost:1 20:1\n"
    )
    content = described(kfu, "q.svm")
    assert content["layout"] == "sparse"
    assert content["n_queries"] == 2
    assert content["weights"] == {"min": 0.5, "max": 2.0}
    assert content["density"] == pytest.approx(3 / 60)


def test_regression_targets_are_not_classes(kfu, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "r.svm").write_text(libsvm_text(rng.normal(size=(60, 2)), rng.normal(size=60)))
    content = described(kfu, "r.svm")
    assert content["label_type"] == "real"
    assert content["classes"] is None
    assert content["n_labels"] == 60


def test_text_labels(kfu, three_classes):
    content = described(kfu, three_classes)
    assert content["label_type"] == "text"
    assert [entry["label"] for entry in content["classes"]] == ["ash", "birch", "cedar"]


def test_kernel_diagnostics(kfu, toy):
    good = described(kfu, toy, "--kernel", "-g", "0.5")["kernel"]
    bad = described(kfu, toy, "--kernel", "-k", "sigmoid", "-g", "1", "-r", "-1")["kernel"]
    assert good["is_psd"] is True
    assert bad["is_psd"] is False
    result = kfu("info", toy, "--kernel", "--sample", 20)
    assert "kernel on a sample" in result.stdout


def test_model(kfu, toy_model):
    content = described(kfu, toy_model)
    assert content["kind"] == "model"
    assert content["status"] == "converged"
    assert content["classes"] == ["-1", "1"]
    assert content["n_features"] == 3
    text = kfu("info", toy_model).stdout
    for words in ("kfu model", "rbf", "converged", "support vectors", "objective"):
        assert words in text


def test_libsvm_model(kfu, toy_model):
    assert kfu("convert", toy_model, "m.model").exit_code == 0
    assert described(kfu, "m.model")["kind"] == "libsvm-model"
    assert "LIBSVM model" in kfu("info", "m.model").stdout


def test_kernel_of_a_model_is_refused(kfu, toy_model):
    result = kfu("info", toy_model, "--kernel")
    assert result.exit_code == 2
    assert "is a model" in result.stderr


def test_stdin(kfu, kfu_process, toy):
    piped = kfu_process("info", "-", "--json", input=toy.read_text())
    assert json.loads(piped.stdout)["n"] == 80


def test_missing_file(kfu):
    result = kfu("info", "no.svm")
    assert result.exit_code == 1
    assert result.stderr.startswith("kfu: error: no.svm: ")


@pytest.mark.parametrize(
    "flags",
    [
        ["-k", "sigmoid", "-g", "1"],
        ["--kernel", "sigmoid", "-g", "1"],
        ["--kernel=sigmoid", "-g", "1"],
        ["--kernel", "tanh", "-g1"],
    ],
)
def test_naming_a_kernel_examines_it(flags, kfu, toy):
    assert described(kfu, toy, *flags)["kernel"]["kernel"].startswith("sigmoid(gamma=1")


def test_a_parameter_alone_examines_rbf(kfu, toy):
    assert described(kfu, toy, "-g", 2)["kernel"]["kernel"] == "rbf(gamma=2)"
    assert "kernel" not in described(kfu, toy)


def test_kernel_flag_may_stand_before_the_file(kfu, toy):
    assert described(kfu, "--kernel", toy)["kernel"]["kernel"].startswith("rbf")


def test_parameters_of_a_model_are_refused(kfu, toy_model):
    result = kfu("info", toy_model, "-g", 1)
    assert result.exit_code == 2
    assert "is a model" in result.stderr
