"""Every machine of ``kfu train -m``: trained, reported, predicted with; no options of others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_toys import files_in, libsvm_text, two_classes

from kfu.io import read_dataset
from kfu.machine_kinds import NOVELTY, RANKER, REGRESSOR
from kfu.machines import MACHINES, OPTIONS
from kfu.model import Model
from kfu.report import TRAIN_KEYS

DUAL = ("svc", "svc2", "nu-svc", "one-class", "svr", "nu-svr", "rank")
# The report of a machine holds these beside the keys of every report.
OWN_KEYS = {"nu-svc": "margin", "nu-svr": "epsilon", "rank": "n_pairs", "kpm": "dims"}
# A value of each option, as typed.
OPTION_VALUES = {
    "nu": ["--nu", "0.3"],
    "epsilon": ["--epsilon", "0.2"],
    "margins": ["--margins", "auto"],
    "graph": ["--graph", "reduced"],
    "neighbours": ["--neighbours", "3"],
    "distance_weights": ["--distance-weights", "inverse"],
    "dims": ["--dims", "3"],
    "dim_penalty": ["--dim-penalty", "0.1"],
    "prior": ["--prior", "equal"],
    "ridge": ["--ridge", "0.5"],
    "lam": ["--lambda", "0.01"],
    "lam_by": ["--lambda-by", "errors"],
    "loo": ["--loo", "always"],
    "approximation": ["--approximation", "rectangle"],
    "centres": ["--centres", "7"],
    "centres_by": ["--centres-by", "ic"],
    "method": ["--method", "cg"],
    "prune": ["--prune", "0.1", "--bias"],
}
# Of options that exclude each other, those that are left out when all are given.
EXCLUDED = {
    "svc": {"margins"},
    "rls": {"lam", "prune", "method"},
    "rlsc": {"lam", "prune", "method"},
}
# Options that keep a machine quick where its default is a search.
QUICK = {"kpm": ["--dims", "5"]}


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """60 rows with numbers as labels, and queries."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = np.round(X[:, 0] + 0.3 * rng.normal(size=60), 3)
    path = tmp_path / "numbers.svm"
    lines = libsvm_text(X, y).splitlines()
    with_queries = [line.replace(" ", f" qid:{k // 6 + 1} ", 1) for k, line in enumerate(lines)]
    path.write_text("\n".join(with_queries) + "\n")
    return path


@pytest.fixture
def data_for(toy: Path, numbers: Path):
    def choose(machine: str) -> Path:
        return numbers if MACHINES[machine].kind in (REGRESSOR, RANKER) else toy

    return choose


def trained(kfu, data, *args, name="m.kfu"):
    """The report of a training that has to go well."""
    result = kfu("train", data, *args, "-o", name, "--report", name + ".json", "-q")
    assert result.exit_code == 0, result.stderr
    return json.loads(Path(name + ".json").read_text())


@pytest.mark.parametrize("machine", MACHINES)
def test_trains_reports_and_predicts(machine, kfu, data_for):
    data = data_for(machine)
    report = trained(kfu, data, "-m", machine, "-g", 0.5, *QUICK.get(machine, []))
    assert set(TRAIN_KEYS) <= set(report)
    assert report["machine"] == machine
    assert report["status"] == "converged"
    assert report["settings"]["machine"] == machine
    assert ("cost" in report["settings"]) == MACHINES[machine].takes_cost
    if machine in DUAL:
        assert report["kkt_gap"] <= 1e-3
        assert report["duality_gap"] >= 0
    if machine in OWN_KEYS:
        assert report[OWN_KEYS[machine]] is not None

    model = Model.load("m.kfu")
    rows = read_dataset(data)
    said = kfu("predict", "m.kfu", data, "-q")
    assert said.exit_code == 0, said.stderr
    np.testing.assert_array_equal(np.array(said.stdout.split(), float), model.predict(rows.X))
    summary = kfu("predict", "m.kfu", data, "-o", "out", "--report", "-")
    found = json.loads(summary.stdout)
    kind = MACHINES[machine].kind
    if kind == REGRESSOR:
        assert found["mse"] < np.var(rows.y)
    elif kind == RANKER:
        assert found["ndcg"] is None  # some relevance is below 0
        assert "there is no NDCG of it" in found["warnings"][0]
        assert found["pair_error"] < 0.3
        assert found["n_queries"] == 10
    elif kind == NOVELTY:
        assert set(said.stdout.split()) == {"1", "-1"}
    else:
        assert found["accuracy"] > 0.75
    assert machine in kfu("info", "m.kfu").stdout


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_options_belong_to_their_machines(machine, option, kfu, data_for, tmp_path):
    """An option is taken and is in the settings, or it is refused and nothing is written."""
    data = data_for(machine)
    args = ["-m", machine, *QUICK.get(machine, []), *OPTION_VALUES[option]]
    if option in MACHINES[machine].options:
        word = OPTION_VALUES[option][0][2:].replace("-", "_")
        found = trained(kfu, data, *args)["settings"][word]
        typed = OPTION_VALUES[option][1]
        assert found == (type(found)(typed) if isinstance(found, (int, float)) else typed)
        return
    before = files_in(tmp_path)
    result = kfu("train", data, *args)
    assert result.exit_code == 2
    flag = OPTION_VALUES[option][0]
    assert f"{flag} is for the machines " in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    ("machine", "args", "words"),
    [
        ("nu-svc", ["-c", 2], "machine nu-svc has no cost"),
        ("knn", ["-c", 2], "machine knn has no cost"),
        ("svr", ["-c", "inf"], "C has to be a finite number"),
        ("rank", ["-c", "inf"], "C has to be a finite number"),
        ("nu-svc", ["--no-bias"], "machine nu-svc has no bias to choose"),
        ("one-class", ["--no-bias"], "machine one-class has no bias to choose"),
        ("nu-svr", ["--regularised-bias"], "machine nu-svr has no bias to choose"),
        ("svc", ["--no-bias", "--regularised-bias"], "contradict each other"),
        ("svr", ["--multiclass", "ova"], "machine svr takes no multiclass code"),
        ("knn", ["--multiclass", "ova"], "machine knn takes no multiclass code"),
        ("svr", ["--decoding", "dag"], "machine svr has nothing to decode"),
        ("knn", ["--decoding", "votes"], "machine knn has nothing to decode"),
        ("svr", ["-w", "1=2"], "machine svr has no classes; leave -w out"),
        ("one-class", ["-w", "balanced"], "machine one-class has no classes"),
        ("svr", ["--probability"], "machine svr has no classes"),
        ("svc2", ["--probability", "--probability-outputs", "span"], "for the machine svc"),
        ("svc", ["--probability-outputs", "span"], "without --probability"),
        ("nu-svc", ["--nu", "2"], "nu is 2.0; it has to be greater than 0 and at most 1"),
        ("svc", ["-m", "svv"], "no machine 'svv' (did you mean"),
        ("rank", ["--checkpoint", "c"], "machine rank takes no checkpoint"),
    ],
    ids=str,
)
def test_refused(machine, args, words, kfu, data_for, tmp_path):
    data = data_for(machine)
    before = files_in(tmp_path)
    result = kfu("train", data, "-m", machine, *args)
    assert result.exit_code == 2, result.stdout + result.stderr
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert files_in(tmp_path) == before


# ---- what the data do not allow -------------------------------------------------------------


def test_a_nu_that_is_not_feasible(kfu, toy):
    result = kfu("train", toy, "-m", "nu-svc", "--nu", 0.9, "-w", "1=3")
    assert result.exit_code == 1
    assert "give 0 < nu <= 0.5" in result.stderr


def test_ranking_needs_queries(kfu, toy):
    result = kfu("train", toy, "-m", "rank")
    assert result.exit_code == 1
    assert "no qid" in result.stderr
    assert "write qid:NUMBER" in result.stderr


def test_regression_needs_numbers(kfu, three_classes):
    result = kfu("train", three_classes, "-m", "svr")
    assert result.exit_code == 1
    assert "label 'ash', not a number" in result.stderr


# ---- hard margin and bias -------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["svc", "svc2"])
def test_hard_margin(machine, kfu, tmp_path):
    X, y = two_classes(shift=12.0)
    data = tmp_path / "apart.svm"
    data.write_text(libsvm_text(X, y))
    report = trained(kfu, data, "-m", machine, "-c", "inf", "-k", "linear", "-e", 1e-6)
    assert report["settings"]["cost"] == "inf"  # null would come back as the default
    assert report["warnings"] == []
    decision = Model.load("m.kfu").decision_function(read_dataset(data).X)[:, 0]
    assert np.min(y * decision) == pytest.approx(1.0, abs=1e-4)
    # Any cost above the largest α gives the same machine.
    same = trained(kfu, data, "-c", 1e6, "-k", "linear", "-e", 1e-6, name="soft.kfu")
    assert report["objective"] == pytest.approx(same["objective"], rel=1e-5)

    Path("hard.yaml").write_text(json.dumps(report["settings"]))
    trained(kfu, data, "--config", "hard.yaml", name="again.kfu")
    assert same_model("m.kfu", "again.kfu")


@pytest.mark.parametrize("machine", ["svc", "svc2"])
def test_hard_margin_of_data_that_overlap(machine, kfu, toy, tmp_path):
    before = files_in(tmp_path)
    result = kfu("train", toy, "-m", machine, "-c", "inf", "-k", "linear")
    assert result.exit_code == 1
    assert "the classes cannot be separated by this kernel" in result.stderr
    assert "give a finite --cost" in result.stderr
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("machine", ["svc", "svc2", "svr"])
def test_biases(machine, kfu, data_for):
    data = data_for(machine)
    args = ["-m", machine, "-k", "linear", "-e", 1e-6]
    free = trained(kfu, data, *args)
    none = trained(kfu, data, *args, "--no-bias", name="none.kfu")
    small = trained(kfu, data, *args, "--regularised-bias", name="small.kfu")
    assert none["bias"] == 0.0
    assert free["bias"] != 0.0
    # Each has more freedom than the one after it; the dual value is the least cost.
    assert free["objective"] < small["objective"] < none["objective"]
    # A feature that is 1 in every row, without a bias, is the regularised bias.
    rows = read_dataset(data)
    text = libsvm_text(np.column_stack([rows.X, np.ones(rows.n)]), rows.y)
    Path("ones.svm").write_text(text)
    ones = trained(kfu, "ones.svm", *args, "--no-bias", name="ones.kfu")
    assert ones["objective"] == pytest.approx(small["objective"], rel=1e-5)


# ---- weights and margins --------------------------------------------------------------------


def test_balanced_weights(kfu, tmp_path):
    X, y = two_classes()
    kept = np.flatnonzero((y == 1) | (np.arange(80) < 20))  # 40 of class 1, 10 of class -1
    data = tmp_path / "few.svm"
    data.write_text(libsvm_text(X[kept], y[kept]))
    balanced = trained(kfu, data, "-w", "balanced", "-e", 1e-6)
    by_hand = trained(kfu, data, "-w", f"1={50 / 80}", "-w", "-1=2.5", "-e", 1e-6, name="h.kfu")
    plain = trained(kfu, data, "-e", 1e-6, name="p.kfu")
    assert balanced["objective"] == pytest.approx(by_hand["objective"], rel=1e-9)
    assert balanced["objective"] != pytest.approx(plain["objective"], rel=1e-3)


@pytest.mark.parametrize("machine", ["svc", "svc2", "nu-svc", "one-class", "svr", "rank", "parzen"])
def test_row_weights_are_counts(machine, kfu, data_for):
    """A row of weight 2 counts as two rows, one of weight 0 as none."""
    data = data_for(machine)
    lines = data.read_text().splitlines(keepends=True)
    counts = [(1, 2, 0)[k % 3] for k in range(len(lines))]
    Path("weights.txt").write_text("".join(f"{count}\n" for count in counts))
    repeated = [line for line, n in zip(lines, counts, strict=True) for _ in range(n)]
    Path("repeated.svm").write_text("".join(repeated))
    args = ["-m", machine, "-g", 0.5, "-e", 1e-8]
    trained(kfu, data, *args, "--weights", "weights.txt", name="weighed.kfu")
    trained(kfu, "repeated.svm", *args, name="repeated.kfu")
    X = read_dataset(data).X
    one, two = (Model.load(f"{name}.kfu").decision_function(X) for name in ("weighed", "repeated"))
    np.testing.assert_allclose(one, two, atol=1e-5)


class TestMargins:
    def test_auto_and_a_file(self, kfu, toy):
        plain = trained(kfu, toy, "-e", 1e-6)
        auto = trained(kfu, toy, "-e", 1e-6, "--margins", "auto", name="auto.kfu")
        assert auto["settings"]["margins"] == "auto"
        assert auto["objective"] != pytest.approx(plain["objective"], rel=1e-3)
        Path("ones.txt").write_text("1\n" * 80)
        ones = trained(kfu, toy, "-e", 1e-6, "--margins", "ones.txt", name="ones.kfu")
        assert ones["objective"] == pytest.approx(plain["objective"], rel=1e-12)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("1\n" * 79, "79 margins for 80 rows"),
            ("1\n" * 79 + "0\n", "the margin of row 80 is not > 0"),
            ("1\n1\nx\n", "margins.txt:3: 'x' is not"),
            (None, "margins.txt: no such file"),
        ],
    )
    def test_bad_files(self, text, words, kfu, toy):
        if text is not None:
            Path("margins.txt").write_text(text)
        result = kfu("train", toy, "--margins", "margins.txt")
        assert result.exit_code == 1
        assert words in result.stderr


# ---- settings of a report as a config file --------------------------------------------------


def same_model(one: str, two: str) -> bool:
    """Whether two model files hold the same numbers, to the last bit."""
    first, second = Model.load(one), Model.load(two)
    return (
        np.array_equal(first.coef, second.coef)
        and np.array_equal(first.bias, second.bias)
        and np.array_equal(first.support, second.support)
        and np.array_equal(first.code, second.code)
        and first.kernel.to_dict() == second.kernel.to_dict()
        and first.decoding == second.decoding
        and first.calibration == second.calibration
        and first.machine == second.machine
    )


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("machine", MACHINES)
def test_settings_come_back(machine, suffix, kfu, data_for):
    """What differs from the defaults is in the settings, and trains the same model."""
    data = data_for(machine)
    names = [name for name in MACHINES[machine].options if name not in EXCLUDED.get(machine, ())]
    own = [word for name in names for word in OPTION_VALUES[name]]
    cost = ["-c", 3] if MACHINES[machine].takes_cost else []
    report = trained(kfu, data, "-m", machine, "-g", 0.7, "--scale", "standard", *own, *cost)
    text = (json.dumps if suffix == "json" else yaml.safe_dump)(report["settings"])
    Path(f"settings.{suffix}").write_text(text)
    again = trained(kfu, data, "--config", f"settings.{suffix}", name="again.kfu")
    assert same_model("m.kfu", "again.kfu")
    assert again["settings"] == report["settings"]


@pytest.mark.parametrize(
    "args",
    [
        ["--multiclass", "ova", "--decoding", "square"],
        ["--multiclass", "sparse", "--seed", 3],
        ["--multiclass", "code.txt"],
        ["--multiclass", "crammer-singer"],
        ["--multiclass", "weston-watkins", "--probability"],
        ["-m", "nu-svc", "--nu", 0.2, "--multiclass", "complete"],
        ["--probability", "isotonic"],
        ["--probability", "--probability-outputs", "hold-out", "--seed", 2],
        ["--regularised-bias", "-w", "ash=2"],
        ["--no-bias", "-w", "balanced", "--polish"],
    ],
    ids=str,
)
def test_settings_of_several_classes_come_back(args, kfu, three_classes):
    Path("code.txt").write_text("1 1 0\n-1 0 1\n0 -1 -1\n")
    report = trained(kfu, three_classes, "-g", 0.5, *args)
    Path("settings.json").write_text(json.dumps(report["settings"]))
    again = trained(kfu, three_classes, "--config", "settings.json", name="again.kfu")
    assert same_model("m.kfu", "again.kfu")
    assert again["settings"] == report["settings"]
