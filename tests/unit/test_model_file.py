"""The model file: exact, deterministic, and never silently another model."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kfu.errors import DataError, ModelError
from kfu.io.model_file import VERSION, load_model, plain, save_model
from kfu.kernels import KernelSpec
from kfu.model import Model
from kfu.pairwise import ovo_code
from kfu.scale import Scaler

LAYOUTS = ("dense", "dense32", "csr", "precomputed")
N_FEATURES = 5


def make_model(
    layout: str = "dense", n_classes: int = 2, scaled: bool = False, seed: int = 0, n_sv: int = 9
) -> Model:
    rng = np.random.default_rng(seed)
    code = ovo_code(n_classes)
    owner = np.arange(n_sv) % n_classes
    alpha = rng.random((code.shape[1], n_sv))
    vectors = rng.normal(size=(n_sv, N_FEATURES)) * (rng.random((n_sv, N_FEATURES)) < 0.5)
    forms = {
        "dense": vectors,
        "dense32": vectors.astype(np.float32),
        "csr": sp.csr_matrix(vectors),
        "precomputed": None,
    }
    is_precomputed = layout == "precomputed"
    scaler = Scaler.fit(rng.normal(size=(20, N_FEATURES)), "standard") if scaled else None
    return Model(
        machine="svc",
        kernel=KernelSpec.make("precomputed" if is_precomputed else "rbf")
        if is_precomputed
        else KernelSpec.make("rbf", gamma=0.1 + 1 / 3),
        classes=np.arange(n_classes) - 0.1 if seed % 2 else np.array(list("bcdefgh"))[:n_classes],
        n_features=3 * n_sv if is_precomputed else N_FEATURES,
        support=np.sort(rng.permutation(3 * n_sv)[:n_sv]),
        support_vectors=forms[layout],
        coef=alpha * code[owner].T,
        bias=rng.normal(size=code.shape[1]),
        code=code,
        scaler=scaler,
        settings={"cost": 1.0, "tolerance": 1e-3, "solver": "svmfu"},
        info={"status": "converged", "duality_gap": 1e-9, "warnings": ["one", "two"]},
    )


def points(model: Model, n: int = 30) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(n, model.n_features))


def content(model: Model, folder: Path) -> bytes:
    path = folder / "model.kfu"
    save_model(path, model)
    return path.read_bytes()


def assert_same_model(a: Model, b: Model) -> None:
    for name in ("machine", "kernel", "n_features", "settings", "info", "layout"):
        assert getattr(a, name) == getattr(b, name), name
    for name in ("classes", "support", "coef", "bias", "code", "n_support"):
        x, y = getattr(a, name), getattr(b, name)
        assert x.dtype == y.dtype, name
        np.testing.assert_array_equal(x, y)
    if a.support_vectors is not None:
        assert a.support_vectors.dtype == b.support_vectors.dtype
        difference = a.support_vectors != b.support_vectors
        assert not (difference.nnz if sp.issparse(difference) else difference.any())
    scalers = [None if m.scaler is None else m.scaler.to_dict() for m in (a, b)]
    assert scalers[0] == scalers[1]


# ---- round trips -----------------------------------------------------------------------------


def test_facts_of_the_run_are_left_out(tmp_path):
    model = make_model("dense", 2, False)
    plain = content(model, tmp_path)
    settings = dict(model.settings)
    model.info = {
        **model.info,
        **{"seconds": {"train": 0.25}, "phases": {"block": 0.1}},
        **{"peak_rss_mib": 99.0, "threads": 2},
    }
    model.settings = {**settings, "threads": 2}
    assert content(model, tmp_path) == plain
    weights = {"threads": 2.0, "seconds": 3.0}  # classes may have any name
    model.settings = {**settings, "class_weight": weights}
    content(model, tmp_path)
    assert Model.load(tmp_path / "model.kfu").settings["class_weight"] == weights


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_loaded_model_is_the_same_bit_for_bit(tmp_path, layout, n_classes, scaled):
    model = make_model(layout, n_classes, scaled and layout != "precomputed")
    path = tmp_path / "model.kfu"
    model.save(path)
    loaded = Model.load(path)
    assert_same_model(model, loaded)
    Z = points(model)
    np.testing.assert_array_equal(model.decision_function(Z), loaded.decision_function(Z))
    np.testing.assert_array_equal(model.predict(Z), loaded.predict(Z))
    assert content(loaded, tmp_path) == path.read_bytes()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    layout=st.sampled_from(LAYOUTS),
    n_classes=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    n_sv=st.integers(5, 12),
)
def test_equal_models_are_equal_bytes(tmp_path, layout, n_classes, seed, n_sv):
    one = make_model(layout, n_classes, seed=seed, n_sv=n_sv)
    two = make_model(layout, n_classes, seed=seed, n_sv=n_sv)
    first = content(one, tmp_path)
    assert first == content(two, tmp_path)
    two.coef[0, 0] = np.nextafter(two.coef[0, 0], np.inf)
    assert first != content(two, tmp_path)


def test_the_order_of_dictionaries_does_not_show(tmp_path):
    one, two = make_model(), make_model()
    two.info = dict(reversed(list(two.info.items())))
    assert content(one, tmp_path) == content(two, tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.kfu"
    make_model().save(path)
    before = path.read_bytes()
    broken = make_model()
    broken.coef = np.array([[object()]])
    with pytest.raises(ValueError):
        broken.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.kfu"]


def test_settings_become_plain():
    given_settings = {"a": np.float64(0.5), "b": np.arange(2), "c": float("nan"), 3: (1, None)}
    assert plain(given_settings) == {"a": 0.5, "b": [0, 1], "c": None, "3": [1, None]}


def test_a_model_can_be_pickled_after_use():
    model = make_model()
    Z = points(model)
    expected = model.decision_function(Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(Z), expected)


# ---- damage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_flipped_bit_is_noticed_or_harmless(tmp_path, layout):
    model = make_model(layout, n_sv=4)
    original = content(model, tmp_path)
    path = tmp_path / "flipped.kfu"
    noticed = 0
    harmless = 0
    positions = range(0, len(original), 3)
    for position in positions:
        damaged = bytearray(original)
        damaged[position] ^= 1 << (position * 5 % 8)
        path.write_bytes(damaged)
        try:
            loaded = load_model(path)
        except ModelError as error:
            message = str(error)
            noticed += message.startswith(f"{path}: ") and "; " in message
        else:
            assert_same_model(model, loaded)
            harmless += 1
    assert noticed + harmless == len(positions)
    assert noticed > harmless


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_damage_is_noticed_or_harmless(tmp_path, data):
    model = make_model("csr", n_classes=3)
    damaged = bytearray(content(model, tmp_path))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.kfu"
    path.write_bytes(damaged)
    try:
        loaded = load_model(path)
    except ModelError:
        return
    assert_same_model(model, loaded)


def test_a_file_cut_anywhere_is_refused(tmp_path):
    original = content(make_model(n_sv=3), tmp_path)
    path = tmp_path / "cut.kfu"
    for end in range(0, len(original), 7):
        path.write_bytes(original[:end])
        with pytest.raises(ModelError):
            load_model(path)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (b"", "an empty file"),
        (b"svm_type c_svc\n", "a LIBSVM model, not a kfu model; convert it"),
        (b"\x80\x04\x95", "not a kfu model"),
        (b"+1 1:0.5\n", "not a kfu model"),
        (b"PK\x03\x04 and no more", "damaged"),
    ],
)
def test_other_files_are_refused(tmp_path, start, message):
    path = tmp_path / "other"
    path.write_bytes(start)
    with pytest.raises(ModelError, match=message):
        load_model(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        load_model(tmp_path / "none")
    with pytest.raises(ModelError, match="is a directory"):
        load_model(tmp_path)


def rewritten(model: Model, folder: Path, edit) -> Path:  # type: ignore[no-untyped-def]
    """The model's file with its header and members passed through `edit(header, members)`."""
    with zipfile.ZipFile(io.BytesIO(content(model, folder))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members.pop("header.json"))
    edit(header, members)
    path = folder / "edited.kfu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def set_header(**values):  # type: ignore[no-untyped-def]
    return lambda header, members: header.update(values)


def npy(array: np.ndarray, **options) -> bytes:  # type: ignore[no-untyped-def]
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **options)
    return out.getvalue()


def set_array(name: str, array: np.ndarray):  # type: ignore[no-untyped-def]
    """Replace an array and its line in the manifest."""

    def edit(header, members):  # type: ignore[no-untyped-def]
        members[f"{name}.npy"] = npy(array)
        header["arrays"][name] = {"dtype": array.dtype.str, "shape": list(array.shape)}

    return edit


COEF = make_model().coef
EDITS = {
    "future": (set_header(version=VERSION + 1), rf"format version {VERSION + 1}.*upgrade kfu"),
    "version": (set_header(version="1"), "format version '1'"),
    "format": (set_header(format="other"), "not a kfu model"),
    "kernel": (set_header(kernel={"name": "wavelet"}), r"wavelet.*upgrade kfu"),
    "kernel type": (set_header(kernel="rbf"), "no proper 'kernel'"),
    "scaler": (set_header(scaler={"kind": "magic"}), "scaler.*upgrade kfu"),
    "classes": (set_header(classes=["b"]), "fewer than two classes"),
    "twice": (set_header(classes=["b", "b"]), "a class appears twice"),
    "order": (set_header(classes=["c", "b"]), "classes are not in order"),
    "label": (set_header(classes=["b", 1.0]), "a class label is not of the label type"),
    "label type": (set_header(label_type="bytes"), "label type 'bytes' is not known"),
    "features": (set_header(n_features=6), "support vectors and coef do not fit"),
    "features type": (set_header(n_features=True), "no proper 'n_features'"),
    "vectors": (set_header(vectors="hologram"), "vectors 'hologram' are not known"),
    "no info": (lambda header, members: header.pop("info"), "no proper 'info'"),
    "missing": (lambda header, members: members.pop("coef.npy"), "members are missing"),
    "extra": (lambda header, members: members.update(extra=b""), "members are missing or too many"),
    "manifest": (
        lambda header, members: header["arrays"]["coef"].update(shape=[9, 1]),
        "array 'coef' is not as the header says",
    ),
    "nan": (set_array("coef", COEF * np.nan), "a coefficient is not a finite number"),
    "bias": (set_array("bias", np.array([np.inf])), "a bias is not a finite number"),
    "type": (set_array("coef", COEF.astype(np.float32)), "array 'coef' cannot be read"),
    "shape": (set_array("coef", COEF[:, :-1]), "do not fit"),
    "code": (set_array("code", np.array([[-1], [2]], dtype=np.int8)), "code has entries beyond"),
    "support": (set_array("support", np.arange(3)), "support and coef do not fit"),
    "counts": (set_array("n_support", np.arange(3)), "n_support and classes do not fit"),
    "pickle": (
        lambda header, members: members.update(
            {"coef.npy": npy(np.array([[None]]), allow_pickle=True)}
        ),
        "array 'coef' cannot be read",
    ),
    "large": (
        lambda header, members: members.update(
            {"coef.npy": members["coef.npy"].replace(b"(1, 9)", b"(1, 999999999)")}
        ),
        "array 'coef' cannot be read",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_does_not_fit_is_refused(tmp_path, name):
    edit, message = EDITS[name]
    path = rewritten(make_model(), tmp_path, edit)
    with pytest.raises(ModelError, match=message):
        load_model(path)


def test_an_edit_that_changes_nothing_is_accepted(tmp_path):
    """The harness above does not refuse by itself."""
    model = make_model()
    assert_same_model(model, load_model(rewritten(model, tmp_path, lambda *parts: None)))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vectors.indices", lambda a: a + N_FEATURES, "beyond n_features"),
        ("vectors.indices", lambda a: a - N_FEATURES, "beyond n_features"),
        ("vectors.indices", lambda a: a * 0, "increasing order"),
        ("vectors.indptr", lambda a: a + 1, "row starts are wrong"),
        ("vectors.indptr", lambda a: a[::-1].copy(), "row starts are wrong"),
        ("vectors.indptr", lambda a: a[:-1], "do not fit together"),
        ("vectors.data", lambda a: a * np.nan, "a support vector has a value"),
    ],
)
def test_broken_sparse_vectors_are_refused(tmp_path, name, change, message):
    model = make_model("csr")
    pieces = {"data": "data", "indices": "indices", "indptr": "indptr"}
    array = getattr(model.support_vectors, pieces[name.removeprefix("vectors.")])
    if name == "vectors.indptr":
        array = array.astype(np.int64)
    path = rewritten(model, tmp_path, set_array(name, np.ascontiguousarray(change(array))))
    with pytest.raises(ModelError, match=message):
        load_model(path)


# ---- prediction ------------------------------------------------------------------------------


def expected_decision(model: Model, Z: np.ndarray) -> np.ndarray:
    """The definition, in NumPy, for the rbf kernel."""
    S = model.support_vectors
    S = (S.toarray() if sp.issparse(S) else S).astype(float)
    if model.scaler is not None:
        Z = model.scaler.transform(Z)
    distances = ((Z[:, None, :] - S[None]) ** 2).sum(axis=2)
    return np.exp(-model.kernel.params["gamma"] * distances) @ model.coef.T + model.bias


@pytest.mark.parametrize("layout", ["dense", "dense32", "csr"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("sparse_input", [False, True])
def test_decision_values_follow_the_definition(layout, scaled, sparse_input):
    model = make_model(layout, 3, scaled)
    Z = points(model)
    X = sp.csr_matrix(Z) if sparse_input else Z
    expected = expected_decision(model, Z)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=0, atol=1e-12)
    single = model.decision_function(X, precision="float32")
    np.testing.assert_allclose(single, expected, rtol=0, atol=1e-4)
    one_thread = model.decision_function(X, threads=1)
    np.testing.assert_array_equal(one_thread, model.decision_function(X))


def test_a_precomputed_kernel_takes_the_columns_of_the_support():
    model = make_model("precomputed", 3)
    K = points(model)
    expected = K[:, model.support] @ model.coef.T + model.bias
    np.testing.assert_allclose(model.decision_function(K), expected, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(sp.csr_matrix(K)), expected, atol=1e-12)
    with pytest.raises(DataError, match="26 kernel values a row where the model has 27"):
        model.decision_function(K[:, :-1])


@pytest.mark.parametrize("layout", ["dense", "csr", "precomputed"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_do_not_depend_on_their_company(monkeypatch, layout, kernel):
    model = make_model(layout, 3, n_sv=30)
    if layout != "precomputed":
        model.kernel = KernelSpec.make(kernel, **model.kernel.params if kernel == "rbf" else {})
    Z = points(model, 200)
    whole = model.decision_function(Z)
    monkeypatch.setattr("kfu.model.BLOCK_BYTES", 1)
    np.testing.assert_array_equal(model.decision_function(Z), whole)
    parts = [model.decision_function(Z[i : i + 7]) for i in range(0, 200, 7)]
    np.testing.assert_array_equal(np.vstack(parts), whole)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("sparse_input", [False, True])
def test_a_linear_kernel_is_its_weights(layout, sparse_input):
    model = make_model(layout, 3, n_sv=40)
    model.kernel = KernelSpec.make("linear")
    Z = points(model)
    S = sp.csr_matrix(model.support_vectors).toarray()
    expected = Z @ S.T @ model.coef.T + model.bias
    X = sp.csr_matrix(Z) if sparse_input else Z
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)
    np.testing.assert_allclose(Z @ model.linear_weights().T + model.bias, expected, atol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_missing_features_of_sparse_rows_are_zero(layout):
    model = make_model(layout)
    Z = points(model)
    Z[:, 3:] = 0
    narrow = sp.csr_matrix(Z[:, :3])
    np.testing.assert_array_equal(
        model.decision_function(narrow), model.decision_function(sp.csr_matrix(Z))
    )
    np.testing.assert_array_equal(
        model.decision_function(Z[:, :3], from_sparse_text=True), model.decision_function(Z)
    )


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("extra", [1, 5000])
def test_unknown_features_of_sparse_rows_count_in_the_distance(layout, extra):
    model = make_model(layout)
    Z = points(model)
    last = np.linspace(0, 1, len(Z))[:, None]
    wide = sp.csr_matrix(np.hstack([Z, np.zeros((len(Z), extra - 1)), last]))
    with pytest.warns(UserWarning, match="count as zero in every support vector"):
        decision = model.decision_function(wide)
    factor = np.exp(-model.kernel.params["gamma"] * last**2)
    expected = (expected_decision(model, Z) - model.bias) * factor + model.bias
    np.testing.assert_allclose(decision, expected, atol=1e-12)


def test_unknown_features_are_ignored_when_scaling_is_by_feature():
    model = make_model("dense", scaled=True)
    Z = points(model)
    wide = np.hstack([Z, np.ones((len(Z), 1))])
    with pytest.warns(UserWarning, match="are ignored"):
        decision = model.decision_function(wide, from_sparse_text=True)
    np.testing.assert_array_equal(decision, model.decision_function(Z))


def test_dense_rows_have_to_have_the_features_of_the_model():
    model = make_model()
    Z = points(model)
    for bad in (Z[:, :-1], np.hstack([Z, Z])):
        with pytest.raises(DataError, match=r"data\.csv: \d+ features where the model has 5; give"):
            model.decision_function(bad, source="data.csv")
    with pytest.raises(DataError, match="expected a 2-D array"):
        model.decision_function(Z[0])


def test_values_that_are_not_finite_are_refused():
    model = make_model()
    Z = points(model)
    Z[17, 2] = np.nan
    for X in (Z, sp.csr_matrix(Z)):
        with pytest.raises(DataError, match="X contains NaN in row 17, column 2"):
            model.predict(X)


def test_votes_and_ties():
    model = make_model("dense", 3)
    labels = model.classes[model.decide(np.array([[1.0, 2, 3], [-1, -2, 3], [1, -2, 0.5]]))]
    # Pairs (b,c), (b,d), (c,d); positive is the later class. The last row is a tie of one vote
    # each: c has 1 - 0.5, b has 2 - 1, d has 0.5 - 2 in its favour.
    assert labels.tolist() == ["d", "b", "b"]
    assert model.decide(np.array([[1.0, -1.0, 1.0]])).tolist() == [0]  # all equal: class order
    two = make_model("dense", 2)
    assert two.decide(np.array([[0.0], [1e-300], [-1.0]])).tolist() == [0, 1, 0]


def test_no_support_vectors_is_a_constant():
    model = make_model(n_sv=5)
    empty = Model(
        machine="svc",
        kernel=model.kernel,
        classes=model.classes,
        n_features=N_FEATURES,
        support=np.zeros(0),
        support_vectors=np.zeros((0, N_FEATURES)),
        coef=np.zeros((1, 0)),
        bias=np.array([0.5]),
        code=model.code,
    )
    assert empty.decision_function(points(model, 3)).tolist() == [[0.5]] * 3
    assert empty.n_support.tolist() == [0, 0]


def test_describe_is_plain(tmp_path):
    for layout in LAYOUTS:
        described = make_model(layout, 3).describe()
        assert described["n_sv"] == 9
        assert described["n_support"] == [3, 3, 3]
        assert described["layout"] == layout.removesuffix("32")
        json.dumps(described)
