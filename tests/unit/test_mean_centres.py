"""Centres that are means: against a Lloyd's algorithm of loops, classes, weights, sparse rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from kfu.data import Dataset
from kfu.engine import train_rectangle_partitioned
from kfu.errors import SettingsError
from kfu.io import write_dataset
from kfu.kernels import KernelSpec
from kfu.least_squares.centres import choose_centres
from kfu.least_squares.mean_centres import class_means
from kfu.machines import train
from kfu.model import Model

RBF = KernelSpec.make("rbf", gamma=0.3)


def clusters(n=240, k=6, d=3, seed=0):
    rng = np.random.default_rng(seed)
    middle = 4.0 * rng.normal(size=(k, d))
    of = rng.integers(0, k, n)
    return middle[of] + rng.normal(size=(n, d)), of


def lloyd(X, centres, w, steps):
    for _ in range(steps):
        nearest = [int(np.argmin([np.sum((x - c) ** 2) for c in centres])) for x in X]
        for j in range(len(centres)):
            rows = [i for i in range(len(X)) if nearest[i] == j]
            if rows:
                centres[j] = sum(w[i] * X[i] for i in rows) / sum(w[i] for i in rows)
    return centres, np.mean([min(np.sum((x - c) ** 2) for c in centres) for x in X])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_means_are_those_of_lloyds_algorithm(layout):
    X, _ = clusters()
    starts = np.arange(9)
    expected, distortion = lloyd(X, X[starts].copy(), np.ones(len(X)), 3)
    means, info = class_means(layout(X), starts, steps=3)
    np.testing.assert_allclose(means, expected, rtol=1e-10)
    assert info["distortion"] == pytest.approx(distortion, rel=1e-4)  # products in float32


def test_a_weight_of_three_is_a_row_given_three_times():
    X, _ = clusters(80)
    weight = np.where(np.arange(80) % 4 == 0, 3.0, 1.0)
    thrice = np.repeat(X, weight.astype(int), axis=0)
    firsts = np.concatenate([[0], np.cumsum(weight.astype(int))[:-1]])
    starts = np.array([1, 5, 40])
    means, info = class_means(X, starts, weight=weight)
    again, other = class_means(thrice, firsts[starts])
    np.testing.assert_allclose(means, again, rtol=1e-10)
    assert info["distortion"] == pytest.approx(other["distortion"], rel=1e-6)


def test_rows_of_weight_0_do_not_count():
    X, _ = clusters(80)
    weight = np.where(np.arange(80) < 60, 1.0, 0.0)
    starts = np.array([1, 5, 40])
    means, _ = class_means(X, starts, weight=weight)
    np.testing.assert_allclose(means, class_means(X[:60], starts)[0], rtol=1e-12)


def test_a_class_has_means_of_its_own_rows():
    X, of = clusters()
    labels = np.array(["a", "b", "c"])[of % 3]
    chosen = choose_centres("kmeans", X, RBF, 12, seed=1, labels=labels)
    assert chosen.means.shape == (12, 3)
    started = labels[chosen.rows]
    assert set(started) == {"a", "b", "c"}
    assert np.array_equal(chosen.rows, choose_centres("kmeans++", X, RBF, 12, seed=1).rows)
    for name in "abc":
        own, _ = class_means(X[labels == name], _places(labels == name, chosen.rows))
        np.testing.assert_allclose(chosen.means[started == name], own, rtol=1e-12)


def _places(mask, rows):
    place = np.cumsum(mask) - 1
    return np.array([place[row] for row in rows if mask[row]])


def test_steps_lower_the_distances_until_nothing_moves():
    X, _ = clusters()
    starts = np.arange(12)
    values = [class_means(X, starts, steps=k)[1]["distortion"] for k in range(5)]
    assert all(b < a for a, b in pairwise(values))
    assert class_means(X, starts, steps=200)[1]["moved"] == 0.0


def test_a_centre_without_rows_stays():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])  # two rows alike: the second centre gets none
    means, _ = class_means(X, np.array([0, 1, 2]))
    assert means.tolist() == [[0.0], [0.0], [1.0]]


def test_kernel_values_have_no_means():
    with pytest.raises(SettingsError, match="no means of rows"):
        choose_centres("kmeans", np.eye(5), KernelSpec.make("precomputed"), 2)


def test_they_span_more_than_as_many_rows():
    from kfu.least_squares.whitening import Whitening

    X, _ = clusters(600, 12, 5)
    portions = {}
    for name in ("random", "kmeans"):
        centres = choose_centres(name, X, RBF, 40, seed=0).of(X)
        features = Whitening(centres, RBF).features(X)
        portions[name] = float(np.square(features).sum()) / len(X)  # K(x, x) = 1
    assert portions["kmeans"] > portions["random"] + 0.05


@pytest.mark.parametrize("machine", ["rlsc", "rls"])
def test_a_machine_on_means_is_the_ridge_problem_of_its_features(machine, tmp_path):
    X, of = clusters()
    y = of % 3 if machine == "rlsc" else np.sin(X[:, 0])
    labels = y if machine == "rlsc" else None
    options = {"approximation": "rectangle", "centres": 30, "centres_by": "kmeans", "ridge": 0.3}
    model = train(X, y, machine=machine, kernel=RBF, seed=4, **options)
    Z = choose_centres("kmeans", X, RBF, 30, seed=4, labels=labels).means
    assert (model.support == -1).all()
    assert np.allclose(np.sort(model.support_vectors[:, 0]), np.sort(Z[:, 0]))
    K, Kmm = gauss(X, Z), gauss(Z, Z)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0) if machine == "rlsc" else y[:, None]
    c = np.linalg.solve(K.T @ K + 0.3 * Kmm, K.T @ Y)
    np.testing.assert_allclose(model.decision_function(X), K @ c, atol=1e-6)
    if machine == "rlsc":
        starts = choose_centres("kmeans++", X, RBF, 30, seed=4).rows
        assert model.n_support.tolist() == np.bincount(y[starts]).tolist()
    file = str(tmp_path / "m.kfu")
    model.save(file)
    np.testing.assert_allclose(Model.load(file).decision_function(X[:9]), (K @ c)[:9], atol=1e-6)


def gauss(A, B):
    return np.exp(-0.3 * np.square(A[:, None] - B[None]).sum(-1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"machine": "rlsc", "approximation": "nystrom"}, "nystrom needs rows"),
        ({"machine": "rlsc", "approximation": "subset", "ridge": 1.0}, "subset needs rows"),
        ({"machine": "svc", "approximation": "rectangle"}, "takes no --centres-by kmeans"),
    ],
)
def test_methods_that_need_rows_say_so(options, words):
    X, of = clusters(60)
    with pytest.raises(SettingsError, match=words):
        train(X, of % 2, kernel=RBF, centres=5, centres_by="kmeans", **options)


def test_partitions_take_means_of_their_sample(tmp_path):
    X, of = clusters()
    path = tmp_path / "rows.svm"
    write_dataset(path, Dataset(X, (of % 3).astype(float)))
    fit = train_rectangle_partitioned(
        path, kernel=RBF, ridge=1.0, n_centres=12, selection="kmeans", partition_bytes=2000
    )
    rows = {tuple(row) for row in np.round(X, 9)}
    assert fit.centres.shape == (12, 3)
    assert not any(tuple(row) in rows for row in np.round(fit.centres, 9))
