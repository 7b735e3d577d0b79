"""Exchange with LIBSVM of ν-SVC, one-class, the regressions, and probabilities, both ways."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from kfu import KernelSpec, train
from kfu.calibration import Calibrator, fit_calibrator
from kfu.errors import ModelError
from kfu.io.libsvm_model import read_libsvm_model, write_libsvm_model
from kfu.io.libsvm_model_types import SVM_TYPES, WRITTEN_AS
from kfu.solvers import SolverSettings

svmutil = pytest.importorskip("libsvm.svmutil", reason="needs libsvm-official")

KERNELS = {
    "linear": ("-t 0", {}),
    "poly": ("-t 1 -g 0.3 -r 0.7 -d 2", {"gamma": 0.3, "coef0": 0.7, "degree": 2}),
    "rbf": ("-t 2 -g 0.4", {"gamma": 0.4}),
    "sigmoid": ("-t 3 -g 0.05 -r 0.1", {"gamma": 0.05, "coef0": 0.1}),
    "precomputed": ("-t 4", {}),
}
NUMBERS = ("epsilon_svr", "nu_svr")
TYPES = list(SVM_TYPES)  # svm_type's number is its position
OTHER_TYPES = [name for name in TYPES if name != "c_svc"]


def rows_for(kernel, X):
    if kernel == "precomputed":
        return [{0: i + 1, **dict(enumerate(row, start=1))} for i, row in enumerate(X.tolist())]
    return [{j + 1: v for j, v in enumerate(row) if v} for row in X.tolist()]


def problem(kernel, n=60, k=2):
    """Training matrix, labels, numbers, test matrix; kernel values where it is precomputed."""
    rng = np.random.default_rng(5)
    y = np.arange(n) % k
    X = rng.normal(size=(n, 4)) + 1.3 * rng.normal(size=(k, 4))[y]
    X[rng.random(X.shape) < 0.3] = 0.0
    t = 2.0 * X[:, 0] + np.sin(X[:, 1]) + 0.2 * rng.normal(size=n)
    Z = rng.normal(size=(25, 4))
    if kernel == "precomputed":
        return np.tanh(0.2 * X @ X.T) + 3 * np.eye(n), y, t, np.tanh(0.2 * Z @ X.T)
    return X, y, t, Z


def by_libsvm(path, kernel, Z, options="-q"):
    """(labels or numbers, values) of LIBSVM for the model it reads from the file."""
    model = svmutil.svm_load_model(str(path))
    rows = rows_for(kernel, Z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its correlation of constant targets
        found = svmutil.svm_predict([0] * len(Z), rows, model, options)
    return np.asarray(found[0]), np.asarray(found[2])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("svm_type", OTHER_TYPES)
def test_a_model_of_libsvm_is_the_same_function_here(tmp_path, svm_type, kernel):
    X, y, t, Z = problem(kernel)
    targets = t if svm_type in NUMBERS else np.where(y > 0, 3, 8)  # the first label is the larger
    options = f"-q -s {TYPES.index(svm_type)} -n 0.3 -p 0.2 -c 2 {KERNELS[kernel][0]}"
    theirs = svmutil.svm_train(targets, rows_for(kernel, X), options)
    path = tmp_path / "libsvm.model"
    svmutil.svm_save_model(str(path), theirs)
    ours = read_libsvm_model(path)
    assert ours.machine == SVM_TYPES[svm_type]
    assert ours.n_sv == theirs.get_nr_sv()
    predicted, values = by_libsvm(path, kernel, Z)
    data = Z if kernel == "precomputed" else sp.csr_matrix(Z)
    decision = ours.decision_function(data)[:, 0]
    if svm_type in NUMBERS:
        np.testing.assert_allclose(ours.predict(data), predicted, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(ours.predict(data), decision)
    else:
        np.testing.assert_allclose(decision, values[:, 0], rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(ours.predict(data), predicted)
        assert len(set(predicted)) == 2
    again = tmp_path / "again.model"
    write_libsvm_model(again, ours)
    assert again.read_text().startswith(f"svm_type {svm_type}\n")
    assert again.read_text().count("label") == (svm_type == "nu_svc")
    back = read_libsvm_model(again)
    np.testing.assert_allclose(back.decision_function(data)[:, 0], decision, atol=1e-12)


def trained(machine, kernel, X, y, t, **more):
    options = {"nu": 0.3} if machine in ("nu-svc", "one-class", "nu-svr") else {}
    return train(
        X,
        None if machine == "one-class" else t if machine in ("svr", "nu-svr") else y,
        machine=machine,
        kernel=KernelSpec.make(kernel, **KERNELS[kernel][1]),
        settings=SolverSettings(threads=1),
        **options,
        **more,
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", sorted(WRITTEN_AS))
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_model_of_kfu_is_predicted_by_libsvm(tmp_path, machine, kernel, layout):
    X, y, t, Z = problem(kernel)
    data = sp.csr_matrix(X) if layout == "csr" and kernel != "precomputed" else X
    model = trained(machine, kernel, data, y, t)
    path = tmp_path / "kfu.model"
    write_libsvm_model(path, model)
    predicted, values = by_libsvm(path, kernel, Z)
    np.testing.assert_allclose(
        model.predict(Z), predicted, rtol=1e-9, atol=1e-9 * np.abs(predicted).max()
    )
    if machine not in ("svr", "nu-svr"):
        decision = model.decision_function(Z)[:, 0]
        np.testing.assert_allclose(values[:, 0], decision, atol=1e-9 * np.abs(decision).max())
    read = read_libsvm_model(path)
    assert read.machine == ("svc" if machine == "svc2" else machine)
    width = {"from_sparse_text": True} if kernel != "precomputed" else {}
    np.testing.assert_allclose(
        read.decision_function(Z, **width), model.decision_function(Z), atol=1e-9
    )
    second = tmp_path / "second.model"
    write_libsvm_model(second, read)
    assert second.read_bytes() == path.read_bytes()
    # And kfu's own file takes what came from LIBSVM.
    read.save(tmp_path / "m.kfu")
    kept = type(read).load(tmp_path / "m.kfu")
    np.testing.assert_array_equal(
        kept.decision_function(Z, **width), read.decision_function(Z, **width)
    )
    assert kept.machine == read.machine
    assert kept.kind == model.kind


REGRESSION = """svm_type epsilon_svr
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho -0.25
SV
1.5 1:0.5 3:1
-0.5 2:1
"""


@pytest.mark.parametrize("svm_type", ["one_class", "epsilon_svr", "nu_svr"])
def test_a_model_by_hand(tmp_path, svm_type):
    path = tmp_path / "m"
    text = REGRESSION.replace("epsilon_svr", svm_type)
    path.write_text(text)
    model = read_libsvm_model(path)
    f = 1.5 * np.exp(-0.5 * 1.25) - 0.5 * np.exp(-0.5) + 0.25
    assert model.decision_function(np.zeros((1, 3)))[0, 0] == pytest.approx(f, abs=1e-15)
    assert model.predict(np.zeros((1, 3)))[0] == (1.0 if svm_type == "one_class" else f)
    assert model.classes.tolist() == ([-1.0, 1.0] if svm_type == "one_class" else [])
    assert model.code.shape == ((2, 1) if svm_type == "one_class" else (0, 1))
    write_libsvm_model(path, model)
    assert path.read_text() == text


def test_a_model_without_vectors(tmp_path):
    X, _, t, Z = problem("rbf")
    model = train(X, t, machine="svr", epsilon=100.0, kernel=KernelSpec.make("rbf", gamma=0.4))
    path = tmp_path / "m"
    write_libsvm_model(path, model)
    predicted, _ = by_libsvm(path, "rbf", Z)
    np.testing.assert_allclose(predicted, model.bias[0])
    with pytest.warns(UserWarning, match="not trained on"):  # the text tells of no feature
        read = read_libsvm_model(path).predict(sp.csr_matrix(Z))
    np.testing.assert_allclose(read, model.bias[0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nr_class 2", "nr_class 3", r"nr_class 3 where svm_type epsilon_svr has 2"),
        ("rho -0.25", "rho 1 2", r"2 values of 'rho' where 1 belong"),
        ("total_sv 2", "total_sv -1", r"total_sv -1"),
        ("total_sv 2", "total_sv 3", r"2 support vectors where 'total_sv' says 3"),
        ("rho -0.25\n", "", r"no 'rho' before 'SV'"),
        ("SV\n1.5", "SV\nx", r"m:8: fewer than 1 coefficients"),
    ],
)
def test_bad_text_is_one_clear_message(tmp_path, old, new, message):
    assert old in REGRESSION
    path = tmp_path / "m"
    path.write_text(REGRESSION.replace(old, new))
    with pytest.raises(ModelError, match=message):
        read_libsvm_model(path)


# ---- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[3, 8], [8, 3], [5, 2, 9], [2, 9, 5, 1]], ids=str)
def test_probabilities_of_libsvm_are_those_here(tmp_path, labels):
    k = len(labels)
    X, y, _, Z = problem("rbf", n=90, k=k)
    theirs = svmutil.svm_train(np.asarray(labels)[y], rows_for("rbf", X), "-q -t 2 -g 0.4 -b 1")
    path = tmp_path / "libsvm.model"
    svmutil.svm_save_model(str(path), theirs)
    _, expected = by_libsvm(path, "rbf", Z, "-q -b 1")
    in_our_order = expected[:, np.argsort(theirs.get_labels())]
    model = read_libsvm_model(path)
    assert model.calibration is not None
    decision = model.decision_function(sp.csr_matrix(Z))
    calibrator = Calibrator.from_dict(model.calibration)
    found = calibrator.probabilities(decision, consistent=False)
    # LIBSVM stops its iteration of the pairwise coupling at 0.005 / k.
    np.testing.assert_allclose(found, in_our_order, atol=1e-9 if k == 2 else 0.01)
    again = tmp_path / "again.model"
    write_libsvm_model(again, model)
    assert "probA" in again.read_text()
    reread = svmutil.svm_load_model(str(again))
    _, back = by_libsvm(again, "rbf", Z, "-q -b 1")
    np.testing.assert_allclose(
        back[:, np.argsort(reread.get_labels())], in_our_order, atol=1e-9 if k == 2 else 0.01
    )
    twice = read_libsvm_model(again)
    np.testing.assert_allclose(
        Calibrator.from_dict(twice.calibration).machine_probabilities(decision),
        calibrator.machine_probabilities(decision),
        rtol=1e-12,
    )


def calibrated(method, k=2):
    X, y, t, Z = problem("rbf", n=90, k=k)
    model = trained("svc", "rbf", X, y, t)
    calibrator = fit_calibrator(model.decision_function(X), y, model.code, method)
    model.calibration = calibrator.to_dict()
    return model, Z


@pytest.mark.parametrize("k", [2, 3])
def test_sigmoids_of_kfu_are_read_by_libsvm(tmp_path, k):
    model, Z = calibrated("sigmoid", k)
    path = tmp_path / "m"
    write_libsvm_model(path, model)
    labels, found = by_libsvm(path, "rbf", Z, "-q -b 1")
    expected = Calibrator.from_dict(model.calibration).probabilities(
        model.decision_function(Z), consistent=False
    )
    np.testing.assert_allclose(found[:, ::-1], expected, atol=1e-9 if k == 2 else 0.01)
    if k == 2:
        np.testing.assert_array_equal(labels, np.argmax(expected, axis=1))


def test_an_isotonic_calibration_is_left_out_with_a_warning(tmp_path):
    model, Z = calibrated("isotonic")
    path = tmp_path / "m"
    with pytest.warns(UserWarning, match="the isotonic calibration is left out"):
        write_libsvm_model(path, model)
    assert "prob" not in path.read_text()
    predicted, _ = by_libsvm(path, "rbf", Z)
    np.testing.assert_array_equal(predicted, model.predict(Z))


@pytest.mark.parametrize(
    ("svm_type", "keyword"), [("one_class", "prob_density_marks"), ("epsilon_svr", "probA")]
)
def test_what_kfu_has_no_place_for_is_left_out_with_a_warning(tmp_path, svm_type, keyword):
    X, _, t, _ = problem("rbf")
    options = f"-q -s {TYPES.index(svm_type)} -n 0.3 -b 1"
    theirs = svmutil.svm_train(t, rows_for("rbf", X), options)
    path = tmp_path / "m"
    svmutil.svm_save_model(str(path), theirs)
    assert keyword in path.read_text()
    with pytest.warns(UserWarning, match=f"'{keyword}'.*is left out"):
        model = read_libsvm_model(path)
    assert model.calibration is None


# ---- what is refused -----------------------------------------------------------------------------


def ranked():
    X, _, t, _ = problem("rbf")
    qid = np.repeat(np.arange(6), 10)
    return train(X, t, machine="rank", qid=qid, kernel=KernelSpec.make("rbf", gamma=0.4))


def of_three(**options):
    X, y, _, _ = problem("rbf", k=3)
    return train(X, y, kernel=KernelSpec.make("rbf", gamma=0.4), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ranked, "LIBSVM has no machine like rank; train one of svc, "),
        (lambda: of_three(machine="knn", neighbours=3), "LIBSVM has no machine like knn"),
        (lambda: of_three(machine="centroid"), "LIBSVM has no machine like centroid"),
        (lambda: of_three(multiclass="ova"), "one for each pair.*--multiclass ava"),
        (lambda: of_three(multiclass="crammer-singer"), "one for each pair.*--multiclass ava"),
        (lambda: of_three(decoding="hinge"), "decodes by hinge.*--decoding votes"),
    ],
    ids=["rank", "knn", "centroid", "ova", "crammer-singer", "decoding"],
)
def test_what_libsvm_does_not_have_is_refused(tmp_path, make, message):
    path = tmp_path / "m"
    with pytest.raises(ModelError, match=message):
        write_libsvm_model(path, make())
    assert not path.exists()


def test_svc2_of_three_classes_votes_as_c_svc(tmp_path):
    X, y, _, Z = problem("rbf", n=90, k=3)
    model = trained("svc2", "rbf", X, y, None)
    path = tmp_path / "m"
    write_libsvm_model(path, model)
    assert path.read_text().startswith("svm_type c_svc\n")
    read = read_libsvm_model(path)
    np.testing.assert_allclose(
        read.decision_function(Z, from_sparse_text=True), model.decision_function(Z), atol=1e-12
    )
    np.testing.assert_array_equal(read.predict(Z, from_sparse_text=True), model.predict(Z))
