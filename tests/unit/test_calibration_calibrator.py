"""Calibrator: codes, missing outputs, agreement with labels, the dict form."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from kfu.calibration import METHODS, Calibrator, Sigmoid, fit_calibrator, fit_isotonic, fit_sigmoid
from kfu.calibration.calibrator import ova_machines
from kfu.calibration.coupling import bradley_terry, couple_pairs, normalised_ova
from kfu.errors import DataError, SettingsError
from kfu.pairwise import ovo_code, pairs_of, vote

FIT = {"sigmoid": fit_sigmoid, "isotonic": fit_isotonic}
OTHER = np.array([[1, -1, 1, 0], [-1, 1, 1, -1], [1, 1, -1, 1]])
CODES = {
    "binary": ovo_code(2),
    "reversed": -ovo_code(2),
    "pairs": ovo_code(3),
    "pairs, reversed": -ovo_code(3)[:, [2, 0, 1]],
    "one versus all": 2 * np.eye(3, dtype=int) - 1,
    "all versus one": (1 - 2 * np.eye(3, dtype=int))[:, [1, 2, 0]],
    "two, both ways": np.array([[1, -1], [-1, 1]]),
    "other": OTHER,
}


def outputs(code, seed=0, n=300, shift=0.3):
    """Labels, and outputs that follow the code with noise and an offset."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(code.shape[0], size=n)
    noise = rng.normal(size=(n, code.shape[1]))
    return code[labels] + noise + shift, labels


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CODES)
def test_probabilities_of_every_code(name, method):
    code = CODES[name]
    decision, labels = outputs(code)
    calibrator = fit_calibrator(decision, labels, code, method)
    new, truth = outputs(code, seed=1)
    p, count = calibrator.probabilities_and_count(new)
    assert p.shape == (300, code.shape[0])
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.argmax(p, axis=1).tolist() == vote(new, code).tolist()
    pure = calibrator.probabilities(new, consistent=False)
    assert count == np.count_nonzero(np.argmax(pure, axis=1) != vote(new, code))
    assert count > 0  # the offset moves the boundary
    # Better than the prior on fresh rows, so the classes are not mixed up.
    gain = np.log(pure[np.arange(300), truth]).mean() - math.log(1 / code.shape[0])
    assert gain > 0.25


@pytest.mark.parametrize("method", METHODS)
def test_each_decoding_is_chosen_by_the_code(method):
    rng = np.random.default_rng(3)
    for name, decode in {
        "pairs": lambda r, code: couple_pairs(r, pairs_of(code), 3),
        "one versus all": lambda r, code: normalised_ova(r),
        "all versus one": lambda r, code: normalised_ova(1 - r[:, [2, 0, 1]]),
        "other": bradley_terry,
    }.items():
        code = CODES[name]
        calibrator = fit_calibrator(*outputs(code), code, method)
        f = rng.normal(size=(20, code.shape[1]))
        expected = decode(calibrator.machine_probabilities(f), code)
        np.testing.assert_array_equal(calibrator.probabilities(f, consistent=False), expected)


@pytest.mark.parametrize("method", METHODS)
def test_machines_see_their_rows_only(method):
    code = ovo_code(3)
    decision, labels = outputs(code)
    decision[::7, 1] = np.nan
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=labels.size)
    calibrator = fit_calibrator(decision, labels, code, method, weight)
    f = np.linspace(-3, 3, 50)
    for machine, (low, high) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.isin(labels, (low, high)) & ~np.isnan(decision[:, machine])
        expected = FIT[method](decision[rows, machine], labels[rows] == high, weight[rows])
        np.testing.assert_allclose(calibrator.links[machine](f), expected(f), rtol=1e-12)


def test_two_classes_are_the_link():
    decision, labels = outputs(ovo_code(2))
    calibrator = fit_calibrator(decision[:, 0], labels, ovo_code(2))
    link = fit_sigmoid(decision[:, 0], labels == 1)
    f = np.linspace(-3, 3, 101)
    p = calibrator.probabilities(f, consistent=False)
    np.testing.assert_array_equal(p[:, 1], link(f))
    np.testing.assert_array_equal(p[:, 0], 1 - link(f))
    # Consistent: only rows between 0 and the threshold differ, they are at ½, P stays monotone.
    q, count = calibrator.probabilities_and_count(f)
    between = (f > 0) & (f <= link.threshold)
    assert count == between.sum() > 0
    np.testing.assert_array_equal(q[~between], p[~between])
    assert np.abs(q[between] - 0.5).max() < 1e-5
    assert (q[f > 0, 1] > 0.5).all()
    assert (q[f <= 0, 1] < 0.5).all()
    assert (np.diff(q[:, 1]) >= 0).all()


def test_winners_may_come_from_elsewhere():
    code = ovo_code(3)
    decision, labels = outputs(code)
    calibrator = fit_calibrator(decision, labels, code)
    winners = np.random.default_rng(9).integers(3, size=labels.size)
    p, count = calibrator.probabilities_and_count(decision, winners)
    assert np.argmax(p, axis=1).tolist() == winners.tolist()
    assert count > labels.size / 3
    for bad in (winners[:-1], winners + 1, winners - 1, winners.astype(float)):
        with pytest.raises(ValueError, match="winners"):
            calibrator.probabilities(decision, bad)


def test_an_inverted_link_is_never_surer_than_a_coin():
    calibrator = Calibrator("sigmoid", ovo_code(2), (Sigmoid(2.0, 0.0),))
    p, count = calibrator.probabilities_and_count(np.array([-2.0, -0.1, 0.1, 2.0]))
    assert count == 4
    assert np.abs(p - 0.5).max() < 1e-5
    assert np.argmax(p, axis=1).tolist() == [0, 0, 1, 1]


def test_no_rows_and_one_row():
    calibrator = fit_calibrator(*outputs(ovo_code(3)), ovo_code(3))
    assert calibrator.probabilities(np.empty((0, 3))).shape == (0, 3)
    assert calibrator.probabilities(np.zeros((1, 3))).shape == (1, 3)


def test_extreme_outputs():
    for code in CODES.values():
        calibrator = fit_calibrator(*outputs(code), code)
        f = np.random.default_rng(0).choice([-1e300, -50.0, 50.0, 1e300], size=(40, code.shape[1]))
        p = calibrator.probabilities(f)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert np.argmax(p, axis=1).tolist() == vote(f, code).tolist()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CODES)
def test_the_dict_form_survives_json(name, method):
    code = CODES[name]
    decision, labels = outputs(code)
    calibrator = fit_calibrator(decision, labels, code, method)
    again = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(again.probabilities(decision), calibrator.probabilities(decision))
    assert again.to_dict() == calibrator.to_dict()


GOOD = {"method": "sigmoid", "code": [[-1], [1]], "links": [{"A": -1.0, "B": 0.0}]}
BAD = {
    "entries": [{}, [], {**GOOD, "more": 1}],
    "no calibration": [{**GOOD, "method": "beta"}, {**GOOD, "method": ["sigmoid"]}],
    "list": [{**GOOD, "links": {"A": 1, "B": 2}}],
    "links for": [{**GOOD, "links": []}],
    "sigmoid": [{**GOOD, "links": [{"A": None, "B": 0.0}]}],
    "isotonic": [{**GOOD, "method": "isotonic"}],
    "-1, 0 and 1": [{**GOOD, "code": [[-1], [2]]}, {**GOOD, "code": [[-1], ["x"]]}],
    "one side": [{**GOOD, "code": [[1], [1]]}],
    "no machine": [{**GOOD, "code": [[1], [-1], [0]]}],
    "shape": [{**GOOD, "code": [-1, 1]}, {**GOOD, "code": []}],
}


@pytest.mark.parametrize(
    ("match", "values"), [(match, v) for match, cases in BAD.items() for v in cases]
)
def test_bad_dicts_are_refused(match, values):
    Calibrator.from_dict(GOOD)
    with pytest.raises(ValueError, match=match):
        Calibrator.from_dict(values)


def test_bad_fits():
    code = ovo_code(3)
    decision, labels = outputs(code)
    with pytest.raises(SettingsError, match="sigmoid, isotonic"):
        fit_calibrator(decision, labels, code, "beta")
    with pytest.raises(DataError, match="machine 3 of 3"):
        fit_calibrator(decision[labels == 0], labels[labels == 0], code)
    with pytest.raises(DataError, match="machine 2 of 3"):
        fit_calibrator(np.where([False, True, False], np.nan, decision), labels, code)
    with pytest.raises(DataError, match="infinite"):
        fit_calibrator(decision * np.inf, labels, code)
    with pytest.raises(ValueError, match="labels"):
        fit_calibrator(decision, labels + 1, code)
    with pytest.raises(ValueError, match="3 machines"):
        fit_calibrator(decision[:, :2], labels, code)
    calibrator = fit_calibrator(decision, labels, code)
    with pytest.raises(DataError, match="not finite"):
        calibrator.probabilities(np.full((1, 3), np.nan))


def test_one_versus_all_codes_are_recognised():
    assert ova_machines(ovo_code(4)) is None
    assert ova_machines(OTHER) is None
    assert ova_machines(np.array([[1, 1, -1], [-1, -1, 1], [-1, -1, -1]])) is None
    machines, is_positive = ova_machines(CODES["all versus one"])
    assert machines.tolist() == [2, 0, 1]
    assert not is_positive.any()


def test_probabilities_are_those_of_libsvm():
    """Its sigmoids and outputs give its probabilities; it stops at an error of 0.005/K in Q p."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    X = rng.normal(size=(150, 2)) + 1.5 * np.eye(3)[labels][:, :2]
    theirs = svmutil.svm_train(labels, X, "-c 1 -g 0.5 -b 1 -q")
    links = [Sigmoid(theirs.probA[m], theirs.probB[m]) for m in range(3)]
    # LIBSVM takes the class it met first as positive, here the smaller.
    calibrator = Calibrator("sigmoid", -ovo_code(3), links)
    _, _, decision = svmutil.svm_predict(labels, X, theirs, "-q")
    _, _, expected = svmutil.svm_predict(labels, X, theirs, "-b 1 -q")
    found = calibrator.probabilities(np.array(decision), consistent=False)
    np.testing.assert_allclose(found, np.array(expected), atol=6e-3)
