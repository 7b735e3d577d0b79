"""The steps of an experiment: what they refuse, and figures against those computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfu.data import Dataset
from kfu.errors import DataError, SettingsError
from kfu.experiment import ExperimentResult, Runner, read_plan
from kfu.experiment.data import load_rows
from kfu.experiment.learner import LEARNER_KEYS
from kfu.kernels import KernelSpec
from kfu.machine_kinds import CLASSIFIER, NOVELTY, RANKER, REGRESSOR
from kfu.machines import MACHINES, OPTIONS, train
from kfu.multiclass import resolve_code
from kfu.validation.folds import make_folds

THREE = "data: {toy: three-gaussians, n_train: 90, n_test: 120}\n"
TOY_OF_KIND = {
    CLASSIFIER: THREE,
    NOVELTY: "data: {toy: gaussians, n_train: 60, n_test: 80}\n",
    REGRESSOR: "data: {toy: sinc, n_train: 60, n_test: 80}\n",
    RANKER: "data: {toy: ranking, n_train: 60, n_test: 80}\n",
}
FIGURE_OF_KIND = {
    CLASSIFIER: "error",
    NOVELTY: "outliers",
    REGRESSOR: "mse",
    RANKER: "pair_error",
}


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "experiment.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def run(tmp_path: Path, text: str) -> ExperimentResult:
    (plan,) = read_plan(write(tmp_path, text))
    return Runner(tmp_path / "out", force=True).run(plan)


def values(result: ExperimentResult) -> dict[str, float]:
    return {name: summary.mean for name, summary in result.figures[0].items()}


def rows_of(tmp_path: Path, text: str) -> tuple[Dataset, Dataset]:
    (plan,) = read_plan(write(tmp_path, text))
    rows = load_rows(plan.data, [plan.seed, 0])
    assert rows.test is not None
    return rows.train, rows.test


def model_of(data: Dataset, gamma: float = 1.0, **options: Any) -> Any:
    kernel = KernelSpec.make("rbf", gamma=gamma)
    return train(data.X, data.y, kernel=kernel, qid=data.qid, **options)


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("train: {machine: svm}", ":3: steps[0].train.machine: no machine 'svm'; the nearest"),
        ("train: {nu: 0.5}", "steps[0].train.nu: is for the machines nu-svc, one-class, nu-svr"),
        ("train: {machine: nu-svc, nu: 2}", "nu is 2; it has to be greater than 0 and at most 1"),
        ("train: {machine: nu-svc, nu: many}", "train.nu: nu is 'many'; a number is needed"),
        ("train: {machine: nu-svc, cost: 1}", "train.cost: machine nu-svc has no cost"),
        ("train: {machine: knn, neighbours: 0}", "neighbours is 0; a whole number from 1 on"),
        ("train: {machine: knn, neighbours: few}", "a whole number from 1 on is needed"),
        ("train: {machine: knn, neighbours: [1]}", "train.neighbours: not a number or a word"),
        ("train: {machine: knn, multiclass: ova}", "machine knn takes no multiclass code"),
        ("train: {machine: knn, decoding: votes}", "machine knn takes no multiclass code"),
        ("train: {machine: centroid, bias: false}", "machine centroid has no bias to choose"),
        ("train: {machine: svr, class_weight: balanced}", "machine svr has no classes"),
        ("train: {machine: svr, probability: sigmoid}", "machine svr has no classes"),
        ("train: {probability: logistic}", "no calibration 'logistic'"),
        ("train: {probability_outputs: cv}", "belongs to 'probability'; give that too"),
        ("train: {machine: rank, graph: tree}", "graph is 'tree'"),
        ("train: {machine: parzen, prior: flat}", "prior is 'flat'"),
        ("train: {machine: svc, margins: wide}", "no margins 'wide'"),
        ("train: {bias: some}", "no bias 'some'; the nearest is 'regularised'"),
        ("train: {cost: -.inf}", "train.cost: -inf is not finite"),
        ("train: {multiclass: ovaa}", "no code 'ovaa'; the nearest is 'ova'"),
        ("train: {multiclass: [[1, 2], [0, 1]]}", "not a code matrix"),
        ("train: {multiclass: [1, -1]}", "not a code matrix"),
        ("train: {decoding: votess}", "no decoding 'votess'; the nearest is 'votes'"),
        ("train: {kernel: linear, gamma: 1}", ":3: steps[0].train: "),
        ("train: {kernel: lineer}", "steps[0].train: "),
        ("scale: {method: minmax, divisor: 2}", "scale.divisor: belongs to method divide"),
        ("scale: {method: divide}", "method divide needs its constant"),
        ("cross_validate: {folds: 1}", "cross_validate.folds: 1 is out of range"),
        ("cross_validate: {by: loo, folds: 5}", "cross_validate.folds: leaving one out has"),
        ("cross_validate: {by: loo, repeats: 2}", "loo folds are the same every time"),
        ("cross_validate: {by: hold-out}", "no kind of folds 'hold-out'"),
        ("cross_validate: {machine: svr, by: stratified}", "svr has no classes to stratify"),
        ("cross_validate: {probability: sigmoid}", "probability: unknown key"),
        ("cross_validate: {epsilon: 1}", "epsilon: is for the machines svr, not for svc"),
        ("agreement", "needs the step 'predict' or 'cross_validate' before it"),
    ],
)
def test_what_does_not_go_together_is_said_when_the_file_is_read(
    tmp_path: Path, step: str, message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        read_plan(write(tmp_path, f"{THREE}steps:\n  - {step}\n"))
    assert message in str(caught.value)
    assert "experiment.yaml:3: " in str(caught.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("- agreement", "needs the predictions of two steps"),
        ("- predict: {rows: train}\n  - agreement", "of different rows; choose"),
        ("- predict: {as: a}\n  - agreement: {of: [test, b]}", "no predictions 'b' before"),
        ("- predict: {as: a}\n  - agreement: {of: [a]}", "not a list of steps"),
        ("- predict: {as: a}\n  - agreement: {of: [a, a]}", "names a step twice"),
        ("- cross_validate: {as: test}\n  - agreement", "two steps are called 'test'"),
        (
            "- train: {machine: svr, as: b}\n  - predict: {as: a}\n  - agreement",
            "'a' predicts numbers (regressor)",
        ),
    ],
)
def test_agreement_needs_classes_of_the_same_rows(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_plan(write(tmp_path, f"{THREE}steps:\n  - train\n  - predict\n  {more}\n"))
    assert message in str(caught.value)


def test_every_variant_is_checked(tmp_path: Path) -> None:
    text = THREE + "steps:\n  - train: {cost: 2}\n"
    read_plan(write(tmp_path, text + "vary: {train.machine: [svc, svc2]}\n"))
    with pytest.raises(SettingsError, match="machine nu-svc has no cost"):
        read_plan(write(tmp_path, text + "vary: {train.machine: [svc, nu-svc]}\n"))


def test_expecting_an_agreement_that_no_step_yields(tmp_path: Path) -> None:
    steps = "steps:\n  - train\n  - predict: {as: a}\n  - predict: {as: b}\n  - agreement\n"
    read_plan(write(tmp_path, f"{THREE}{steps}expect: [{{figure: agreement.a.b, at_least: 1}}]\n"))
    with pytest.raises(SettingsError, match=r"nearest figure is 'agreement\.a\.b'"):
        read_plan(
            write(tmp_path, f"{THREE}{steps}expect: [{{figure: agreement.a.c, at_least: 1}}]\n")
        )


def test_every_option_of_a_machine_is_a_key() -> None:
    assert set(OPTIONS) <= set(LEARNER_KEYS)


# ---- figures --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MACHINES))
def test_every_machine_can_be_trained_and_cross_validated(tmp_path: Path, name: str) -> None:
    kind = MACHINES[name].kind
    options = f"machine: {name}, gamma: 1" + (", nu: 0.3" if name.startswith("nu-") else "")
    result = run(
        tmp_path,
        TOY_OF_KIND[kind]
        + f"steps:\n  - train: {{{options}}}\n  - predict\n"
        + f"  - cross_validate: {{{options}, folds: 3, as: cv}}\n",
    )
    found = values(result)
    figure = FIGURE_OF_KIND[kind]
    assert np.isfinite(found[f"test.{figure}"])
    assert np.isfinite(found[f"cv.{figure}"])
    assert found["cv.n"] == 60 or kind == CLASSIFIER
    assert result.plan.steps[1].yields(f"test.{figure}")
    assert all(any(step.yields(key) for step in result.plan.steps) for key in found), found


def test_a_regression_is_measured_by_its_errors(tmp_path: Path) -> None:
    data = TOY_OF_KIND[REGRESSOR]
    steps = "steps:\n  - train: {machine: svr, gamma: 1, cost: 2, epsilon: 0.05}\n  - predict\n"
    found = values(run(tmp_path, data + steps))
    train_rows, test_rows = rows_of(tmp_path, data + steps)
    model = model_of(train_rows, machine="svr", cost=2.0, epsilon=0.05)
    residual = test_rows.y - model.predict(test_rows.X)
    assert found["test.mse"] == pytest.approx(np.mean(residual**2))
    assert found["test.mae"] == pytest.approx(np.mean(np.abs(residual)))
    spread = np.sum((test_rows.y - test_rows.y.mean()) ** 2)
    assert found["test.r2"] == pytest.approx(1 - residual @ residual / spread)
    assert "test.error" not in found


def test_a_classifier_does_not_take_numbers_as_classes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="like a regression target"):
        run(tmp_path, TOY_OF_KIND[REGRESSOR] + "steps: [train]\n")
    with pytest.raises(DataError, match="no qid"):
        run(tmp_path, TOY_OF_KIND[REGRESSOR] + "steps: [train: {machine: rank}]\n")
    with pytest.raises(DataError, match="folds by group need"):
        run(tmp_path, THREE + "steps: [cross_validate: {by: group}]\n")


def test_probabilities_are_scored(tmp_path: Path) -> None:
    text = THREE + "steps:\n  - train: {gamma: 1, probability: sigmoid, seed: 3}\n  - predict\n"
    found = values(run(tmp_path, text))
    train_rows, test_rows = rows_of(tmp_path, text)
    model = model_of(train_rows, probability="sigmoid", seed=3)
    p = model.probabilities(test_rows.X)
    truth = np.searchsorted(model.classes, test_rows.y)
    mine = p[np.arange(test_rows.n), truth]
    assert found["test.log_loss"] == pytest.approx(-np.mean(np.log(mine)))
    indicator = np.eye(3)[truth]
    assert found["test.brier_score"] == pytest.approx(np.mean(np.sum((p - indicator) ** 2, axis=1)))
    again = values(
        run(tmp_path, text.replace("sigmoid", "isotonic, probability_outputs: hold-out"))
    )
    assert again["test.log_loss"] != found["test.log_loss"]


def test_options_reach_the_machine(tmp_path: Path) -> None:
    text = (
        THREE
        + "steps:\n  - train: {gamma: 1, cost: .inf, multiclass: one-vs-rest, as: a}\n"
        + "  - train: {gamma: 1, bias: regularised, margins: auto, decoding: hinge, as: b}\n"
        + "  - train: {gamma: 1, multiclass: [[1, 1], [1, -1], [-1, 0]], machine: svc2, as: c}\n"
        + "  - train: {machine: knn, neighbours: 3, distance_weights: inverse, as: d}\n"
        + "  - predict\n"
    )
    found = values(run(tmp_path, text))
    data, test_rows = rows_of(tmp_path, text)
    hard = model_of(data, cost=np.inf, multiclass="ova")
    assert found["a.objective"] == pytest.approx(hard.info["objective"], rel=1e-9)
    assert found["a.n_machines"] == 3
    assert found["a.code_distance"] == 2
    soft = model_of(data, bias="regularised", margins="auto", decoding="hinge")
    assert found["b.objective"] == pytest.approx(soft.info["objective"], rel=1e-9)
    code = np.array([[1, 1], [1, -1], [-1, 0]])
    coded = model_of(data, machine="svc2", multiclass=code)
    assert found["c.objective"] == pytest.approx(coded.info["objective"], rel=1e-9)
    neighbours = train(data.X, data.y, machine="knn", neighbours=3, distance_weights="inverse")
    assert found["test.error"] == np.mean(neighbours.predict(test_rows.X) != test_rows.y)


def test_each_predict_uses_the_last_model_and_agreement_compares_them(tmp_path: Path) -> None:
    text = (
        THREE.replace("n_train: 90", "n_train: 30")
        + "steps:\n  - train: {gamma: 1, as: fit-a}\n  - predict: {as: a}\n"
        + "  - train: {gamma: 50, as: fit-b}\n  - predict: {as: b}\n"
        + "  - train: {machine: centroid, gamma: 1, as: fit-c}\n  - predict: {as: c}\n"
        + "  - agreement\n  - agreement: {of: [a, c], as: two}\n"
    )
    found = values(run(tmp_path, text))
    data, test_rows = rows_of(tmp_path, text)
    predicted = {
        "a": model_of(data).predict(test_rows.X),
        "b": model_of(data, gamma=50.0).predict(test_rows.X),
        "c": model_of(data, machine="centroid").predict(test_rows.X),
    }
    assert len({labels.tobytes() for labels in predicted.values()}) == 3
    for name, labels in predicted.items():
        assert found[f"{name}.error"] == np.mean(labels != test_rows.y)
        assert found[f"{name}.n_errors"] == np.sum(labels != test_rows.y)
    for pair in ("a.b", "a.c", "b.c"):
        left, right = pair.split(".")
        assert found[f"agreement.{pair}"] == np.mean(predicted[left] == predicted[right])
    same = (predicted["a"] == predicted["b"]) & (predicted["b"] == predicted["c"])
    assert found["agreement.all"] == np.mean(same)
    assert {name for name in found if name.startswith("two.")} == {"two.a.c", "two.all"}
    assert found["two.a.c"] == found["agreement.a.c"]


def test_cross_validation_counts_left_out_rows(tmp_path: Path) -> None:
    text = (
        THREE
        + "steps:\n  - cross_validate: {gamma: 1, cost: 3, folds: 4, repeats: 2, as: few}\n"
        + "  - cross_validate: {gamma: 1, cost: 3, by: loo, as: one}\n  - agreement\n"
    )
    result = run(tmp_path, text)
    found = values(result)
    data, _ = rows_of(tmp_path, text)

    def labels_of(folds: Any) -> np.ndarray:
        predicted = np.zeros(data.n)
        for rows, tested in folds:
            model = train(
                data.X[rows], data.y[rows], kernel=KernelSpec.make("rbf", gamma=1), cost=3
            )
            predicted[tested] = model.predict(data.X[tested])
        return predicted

    folds = make_folds("stratified", data.n, k=4, labels=data.y, seed=0, repeats=2)
    first, second = labels_of(folds[:4]), labels_of(folds[4:])
    errors = [np.mean(labels != data.y) for labels in (first, second)]
    assert found["few.error"] == pytest.approx(np.mean(errors))
    assert found["few.n_errors"] == pytest.approx(data.n * np.mean(errors))
    assert found["few.n_folds"] == 8
    alone = labels_of(make_folds("loo", data.n))
    assert found["one.error"] == pytest.approx(np.mean(alone != data.y))
    assert "one.error_std" not in found
    assert found["few.error_std"] > 0
    assert found["agreement.few.one"] == np.mean(first == alone)
    assert result.converged


def test_repetitions_draw_their_own_codes_unless_a_seed_is_given(tmp_path: Path) -> None:
    six = np.repeat(np.arange(6), 8)
    noise = np.random.default_rng(0).normal(scale=0.8, size=(48, 2))
    places = np.column_stack([np.cos(six), np.sin(six)]) + noise
    lines = [f"{y} 1:{a!r} 2:{b!r}" for y, (a, b) in zip(six, places.tolist(), strict=True)]
    (tmp_path / "six.svm").write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = (
        "data: {train: six.svm}\nrepetitions: 2\nseed: 4\n"
        "steps:\n  - train: {gamma: 1, multiclass: sparse}\n"
    )
    objectives = run(tmp_path, text).figures[0]["train.objective"].values
    for value, seed in zip(objectives, (4, 5), strict=True):
        code, _ = resolve_code("sparse", 6, seed)
        model = train(
            places, six, kernel=KernelSpec.make("rbf", gamma=1), multiclass=code, seed=seed
        )
        assert value == pytest.approx(model.info["objective"], rel=1e-6)
    assert objectives[0] != objectives[1]
    fixed = run(tmp_path, text.replace("sparse}", "sparse, seed: 5}"))
    assert fixed.figures[0]["train.objective"].values == [objectives[1]] * 2


def test_one_training_that_stopped_early_marks_the_part(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        THREE + "steps:\n  - train: {gamma: 1, max_iterations: 1, as: a}\n"
        "  - train: {gamma: 1, as: b}\n",
    )
    assert not result.converged
    assert values(result)["a.converged"] == 0
    assert values(result)["b.converged"] == 1
