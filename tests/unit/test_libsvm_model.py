"""Exchange of models with LIBSVM, in both directions, against LIBSVM itself."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kfu.errors import ModelError
from kfu.io.libsvm_model import read_libsvm_model, write_libsvm_model
from kfu.kernels import KernelSpec
from kfu.model import Model
from kfu.pairwise import ovo_code
from kfu.scale import Scaler

svmutil = pytest.importorskip("libsvm.svmutil", reason="needs libsvm-official")

KERNEL_OPTIONS = {
    "linear": "-t 0",
    "poly": "-t 1 -g 0.3 -r 0.7 -d 3",
    "rbf": "-t 2 -g 0.4",
    "sigmoid": "-t 3 -g 0.05 -r 0.1",
    "precomputed": "-t 4",
}
LABELS = {
    "binary": [-1, 1],
    "binary-falling": [7, 2],
    "three": [3, 1, 2],
    "five": [10, -4, 0, 8, 5],
}


def problem(labels: list[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes in a fixed order of first appearance (LIBSVM's order of labels)."""
    rng = np.random.default_rng(seed)
    which = np.concatenate([np.arange(len(labels)), rng.integers(len(labels), size=70)])
    X = rng.normal(size=(which.size, 6)) + 1.2 * rng.normal(size=(len(labels), 6))[which]
    X[rng.random(X.shape) < 0.3] = 0
    X[:, 5] = 0  # a feature that no support vector has
    return X, np.asarray(labels, dtype=float)[which]


def libsvm_rows(X: np.ndarray, kernel: str) -> list[dict[int, float]]:
    if kernel == "precomputed":
        return [{0: i + 1, **dict(enumerate(row, start=1))} for i, row in enumerate(X.tolist())]
    return [{j + 1: v for j, v in enumerate(row) if v} for row in X.tolist()]


def data_for(kernel: str, labels: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training matrix, labels, test matrix: features, or kernel values when precomputed."""
    X, y = problem(labels)
    Z, _ = problem(labels, seed=1)
    if kernel == "precomputed":
        return np.tanh(X @ X.T) + 3 * np.eye(len(X)), y, np.tanh(Z @ X.T)
    return X, y, Z


def libsvm_decision(model: object, Z: np.ndarray, kernel: str) -> tuple[np.ndarray, np.ndarray]:
    labels, _, values = svmutil.svm_predict([0] * len(Z), libsvm_rows(Z, kernel), model, "-q")
    return np.asarray(labels), np.asarray(values)


def by_pair(values: np.ndarray, labels: list[int]) -> np.ndarray:
    """LIBSVM's decision values in kfu's order of pairs, positive for the larger label."""
    columns = {}
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
    for column, (first, second) in enumerate(pairs):
        sign = 1 if first > second else -1
        columns[min(first, second), max(first, second)] = sign * values[:, column]
    return np.column_stack([columns[pair] for pair in sorted(columns)])


def has_tied_votes(decision: np.ndarray, model: Model) -> np.ndarray:
    votes = np.where(decision > 0, 1, -1) @ model.code.T
    return (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1


@pytest.mark.parametrize("kernel", KERNEL_OPTIONS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_a_model_of_libsvm_gives_its_decisions_here(tmp_path, kernel, labels):
    X, y, Z = data_for(kernel, labels)
    theirs = svmutil.svm_train(y, libsvm_rows(X, kernel), f"-q -c 2 {KERNEL_OPTIONS[kernel]}")
    path = tmp_path / "libsvm.model"
    svmutil.svm_save_model(str(path), theirs)
    ours = read_libsvm_model(path)
    # LIBSVM writes support vectors with the digits it chooses: compare with what it reads back.
    reread = svmutil.svm_load_model(str(path))
    predicted, values = libsvm_decision(reread, Z, kernel)
    decision = ours.decision_function(Z if kernel == "precomputed" else sp.csr_matrix(Z))
    np.testing.assert_allclose(decision, by_pair(values, theirs.get_labels()), atol=1e-10)
    decided = ~has_tied_votes(decision, ours)
    np.testing.assert_array_equal(ours.classes[ours.decide(decision)][decided], predicted[decided])
    assert decided.mean() > 0.6
    assert ours.n_support.sum() == theirs.get_nr_sv()


@pytest.mark.parametrize("kernel", KERNEL_OPTIONS)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_model_of_kfu_gives_its_decisions_in_libsvm(tmp_path, kernel, labels, sparse):
    X, y, Z = data_for(kernel, labels)
    theirs = svmutil.svm_train(y, libsvm_rows(X, kernel), f"-q -c 2 {KERNEL_OPTIONS[kernel]}")
    first = tmp_path / "first.model"
    svmutil.svm_save_model(str(first), theirs)
    original = read_libsvm_model(first)
    ours = shuffled(original, sparse)
    path = tmp_path / "kfu.model"
    write_libsvm_model(path, ours)
    back = svmutil.svm_load_model(str(path))
    assert back.get_labels() == sorted(labels, reverse=True)
    predicted, values = libsvm_decision(back, Z, kernel)
    decision = original.decision_function(Z, from_sparse_text=True)
    np.testing.assert_allclose(by_pair(values, back.get_labels()), decision, atol=1e-10)
    decided = ~has_tied_votes(decision, original)
    labels_here = ours.predict(Z, from_sparse_text=True)
    np.testing.assert_array_equal(labels_here, original.classes[original.decide(decision)])
    np.testing.assert_array_equal(labels_here[decided], predicted[decided])
    # And reading it back is the identity on decision values.
    again = read_libsvm_model(path)
    assert again.n_sv == original.n_sv
    again_decision = again.decision_function(Z, from_sparse_text=True)
    np.testing.assert_allclose(again_decision, decision, rtol=0, atol=1e-12)


def shuffled(model: Model, sparse: bool) -> Model:
    """The same function: vectors and machines in another order and sign, one vector unused."""
    rng = np.random.default_rng(3)
    order = rng.permutation(model.n_sv)
    order = np.append(order, order[0])
    coef = model.coef[:, order] * 2  # and half the kernel
    coef[:, -1] = 0
    vectors = model.support_vectors
    if vectors is not None:
        rows = sp.csr_matrix(vectors)[order]
        vectors = rows if sparse else rows.toarray()
    machines = rng.permutation(model.n_machines)
    sign = rng.choice([-1, 1], size=model.n_machines)
    return Model(
        machine=model.machine,
        kernel=replace(model.kernel, weight=0.5),
        classes=model.classes,
        n_features=model.n_features,
        support=model.support[order],
        support_vectors=vectors,
        coef=coef[machines] * sign[:, None],
        bias=model.bias[machines] * sign,
        code=model.code[:, machines] * sign,
        settings=model.settings,
    )


def test_probability_lines_and_nu_svc_are_read(tmp_path):
    X, y, Z = data_for("rbf", [1, 2, 3])
    theirs = svmutil.svm_train(y, libsvm_rows(X, "rbf"), "-q -s 1 -n 0.3 -b 1")
    path = tmp_path / "nu.model"
    svmutil.svm_save_model(str(path), theirs)
    assert "probA" in path.read_text()
    ours = read_libsvm_model(path)
    # The same function under the name c_svc: libsvm's Python wrapper reserves one decision value
    # for nu_svc, whatever the number of classes, and crashes.
    path.write_text(path.read_text().replace("nu_svc", "c_svc"))
    reread = svmutil.svm_load_model(str(path))
    _, values = libsvm_decision(reread, Z, "rbf")
    decision = ours.decision_function(Z, from_sparse_text=True)
    np.testing.assert_allclose(decision, by_pair(values, theirs.get_labels()), atol=1e-10)


def test_test_rows_with_features_beyond_the_support_vectors_agree_with_libsvm(tmp_path):
    """The text does not say how many features there were; the kernel has to count all of them."""
    X, y, Z = data_for("rbf", [-1, 1])
    Z = np.hstack([Z, np.arange(len(Z))[:, None] % 3])
    path = tmp_path / "libsvm.model"
    theirs = svmutil.svm_train(y, libsvm_rows(X, "rbf"), "-q -g 0.1")
    svmutil.svm_save_model(str(path), theirs)
    reread = svmutil.svm_load_model(str(path))
    _, values = libsvm_decision(reread, Z, "rbf")
    ours = read_libsvm_model(path)
    with pytest.warns(UserWarning, match="not trained on count as zero"):
        decision = ours.decision_function(sp.csr_matrix(Z))
    np.testing.assert_allclose(decision, by_pair(values, theirs.get_labels()), atol=1e-10)


SMALL = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:1
-1 2:1
"""


def test_a_model_by_hand(tmp_path):
    path = tmp_path / "m"
    path.write_text(SMALL)
    model = read_libsvm_model(path)
    assert model.classes.tolist() == [-1.0, 1.0]
    assert model.n_features == 3
    expected = np.exp(-0.5 * (0.25 + 1)) - np.exp(-0.5 * 1) - 0.25
    assert model.decision_function(np.zeros((1, 3)))[0, 0] == pytest.approx(expected, abs=1e-15)
    write_libsvm_model(path, model)
    assert path.read_text() == SMALL


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nr_class 2", "nr_class 2\nprobA 1", r"one of 'probA' and 'probB' without the other"),
        ("nr_class 2", "nr_class 2\nprobA 1 2\nprobB 1", r"2 values of 'probA' where 1 belong"),
        ("svm_type c_svc", "svm_type foo", r"m:1: svm_type 'foo' is not known"),
        ("svm_type c_svc\n", "", r"m:1: not a LIBSVM model"),
        ("svm_type c_svc", "SV", r"m:1: not a LIBSVM model"),
        ("kernel_type rbf", "kernel_type precomputed", r"m:10: '1:0.5' where 0:serial belongs"),
        ("kernel_type rbf", "kernel_type wave", r"m:2: kernel_type 'wave' is not known"),
        ("gamma 0.5\n", "", r"no 'gamma' for kernel_type rbf"),
        ("gamma 0.5", "gamma abc", r"m:3: 'abc' after 'gamma'"),
        ("gamma 0.5", "gamma nan", r"m:3: a value of 'gamma' is not finite"),
        ("gamma 0.5", "gamma 1 2", r"m:3: 2 values after 'gamma'"),
        ("gamma 0.5", "gamma 0.5\ngamma 1", r"m:4: 'gamma' for the second time"),
        ("gamma 0.5", "gamme 0.5", r"m:3: keyword 'gamme' is not known"),
        ("nr_class 2", "nr_class 1", r"nr_class 1; train on data"),
        ("nr_class 2", "nr_class 3", r"1 values of 'rho' where 3 belong"),
        ("label 1 -1", "label 1 1", r"a label appears twice"),
        ("nr_sv 1 1", "nr_sv 1 2", r"nr_sv does not add up"),
        ("rho 0.25\n", "", r"no 'rho' before 'SV'"),
        ("SV\n1 1:0.5 3:1\n-1 2:1\n", "", r"no 'SV' line; the file is not complete"),
        ("-1 2:1\n", "", r"1 support vectors where 'total_sv' says 2"),
        ("-1 2:1\n", "-1 2:1\n-1 1:1\n", r"m:12: more than the 2 support vectors"),
        ("-1 2:1", "-1 2:x", r"m:11: '2:x' where index:value belongs"),
        ("-1 2:1", "-1 0:1", r"m:11: index 0 after 0"),
        ("-1 2:1", "x 2:1", r"m:11: fewer than 1 coefficients"),
        ("1:0.5 3:1", "3:0.5 3:1", r"m:10: index 3 after 3"),
        ("-1 2:1", "nan 2:1", r"not finite"),
        ("-1 2:1", "-1 2:1_0", r"m:11: '_' in a number"),
    ],
)
def test_bad_text_is_one_clear_message(tmp_path, old, new, message):
    assert old in SMALL
    path = tmp_path / "m"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ModelError, match=message):
        read_libsvm_model(path)


def test_text_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "m"
    for end in range(len(SMALL)):
        path.write_text(SMALL[:end])
        with pytest.raises(ModelError):
            read_libsvm_model(path)


STRANGE_WORDS = [
    *("", "nan", "-inf", "1e999", "9" * 25, "-1", "0", "-0", "2.5", "1_0", "1:", ":1", "1:1:1"),
    *("SV", "rbf", "polynomial", "precomputed", "label", "0:1", "0:1e300", "99999999999:1"),
]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_edited_text_is_a_model_or_a_clear_error(tmp_path_factory, data):
    """Words replaced, dropped and repeated: never another exception."""
    path = tmp_path_factory.getbasetemp() / "edited.model"
    words = re.split(r"(\s)", SMALL)
    strange = st.sampled_from(STRANGE_WORDS)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(words) - 1))
        words[position] = data.draw(strange)
    path.write_text("".join(words))
    try:
        model = read_libsvm_model(path)
    except ModelError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
        return
    assert model.decision_function(np.zeros((1, model.n_features))).shape == (1, 1)


def test_gzip_is_read(tmp_path):
    path = tmp_path / "m.gz"
    path.write_bytes(gzip.compress(SMALL.encode()))
    assert read_libsvm_model(path).n_sv == 2
    path.write_bytes(gzip.compress(SMALL.encode())[:-9])
    with pytest.raises(ModelError, match="damaged gzip file"):
        read_libsvm_model(path)


def test_carriage_returns_are_read(tmp_path):
    path = tmp_path / "m"
    path.write_bytes(SMALL.replace("\n", "\r\n").encode())
    assert read_libsvm_model(path).n_sv == 2


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PK\x03\x04", b"0 1:2\n"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "m"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=re.escape(str(path))):
        read_libsvm_model(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        read_libsvm_model(tmp_path / "none")


def small_model(**changes: object) -> Model:
    parts: dict[str, object] = {
        "machine": "svc",
        "kernel": KernelSpec.make("rbf", gamma=0.5),
        "classes": np.array([-1.0, 1.0]),
        "n_features": 2,
        "support": np.array([0, 3]),
        "support_vectors": np.eye(2),
        "coef": np.array([[-1.0, 1.0]]),
        "bias": np.array([0.5]),
        "code": ovo_code(2),
    }
    return Model(**{**parts, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": np.array(["a", "b"])}, r"label 'a' is not a 32-bit integer"),
        ({"classes": np.array([0.5, 1.0])}, r"label 0.5 is not a 32-bit integer"),
        ({"classes": np.array([0.0, 1e12])}, r"label 1000000000000.0 is not a 32-bit"),
        (
            {"kernel": KernelSpec.make("laplacian", gamma=0.5)},
            r"LIBSVM has no laplacian kernel; train with one of linear, poly",
        ),
        ({"scaler": Scaler.fit(np.eye(2), "unit")}, r"holds a scaler.*kfu scale"),
    ],
)
def test_what_the_text_cannot_hold_is_refused_and_nothing_written(tmp_path, changes, message):
    path = tmp_path / "m"
    with pytest.raises(ModelError, match=message):
        write_libsvm_model(path, small_model(**changes))
    assert not path.exists()
