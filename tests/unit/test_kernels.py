"""KernelSpec: making, checking, combining, differentiating; what data say about gamma."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from kfu._gram import Gram

from kfu.errors import DataError, SettingsError
from kfu.kernels import ALIASES, KERNELS, KernelSpec, psd_report, suggest_gamma
from tests.oracles.kernels import ORACLES, laplacian, linear, log_derivative, poly, rbf
from tests.unit.kernel_cases import (
    EVALUATED,
    LAYOUTS,
    PRECISIONS,
    laid_out,
    parameters_of,
    points,
    spec_of,
)

MIXED = {
    "sum": [
        {"name": "rbf", "gamma": 0.4, "weight": 2.0},
        {
            "product": [
                {"name": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2},
                {"sum": ["linear", {"name": "laplacian", "gamma": 0.2, "weight": 0.5}]},
            ],
            "weight": 0.1,
        },
    ]
}


def mixed_oracle(X: np.ndarray, Z: np.ndarray, **changed: float) -> np.ndarray:
    p = {"rbf": 0.4, "poly": 0.3, "coef0": 1.0, "laplacian": 0.2, "weight": 0.5, **changed}
    inner = linear(X, Z) + p["weight"] * laplacian(X, Z, p["laplacian"])
    outer = poly(X, Z, p["poly"], p["coef0"], 2)
    return 2.0 * rbf(X, Z, p["rbf"]) + 0.1 * outer * inner


def test_defaults_are_those_of_libsvm() -> None:
    X = points(10, 8)
    assert KernelSpec.make("rbf").resolve(X).params == {"gamma": 1 / 8}
    assert KernelSpec.make("poly").resolve(X).params == {"gamma": 1 / 8, "coef0": 0.0, "degree": 3}
    assert KernelSpec.make("rbf", gamma=None).resolve(X).params == {"gamma": 1 / 8}
    assert KernelSpec.make("linear").resolve(X).params == {}
    assert KernelSpec.make("rbf-ard").resolve(X).params == {"gamma": (1 / 8,) * 8}
    assert not KernelSpec.make("rbf").is_resolved
    assert KernelSpec.make("rbf").resolve(X).is_resolved


def test_gamma_rules() -> None:
    X = points(50, 4)
    scale = KernelSpec.make("rbf", gamma="scale")
    assert scale.resolve(X).params["gamma"] == pytest.approx(1 / (4 * X.var()))
    assert scale.resolve(scipy.sparse.csr_matrix(X)).params["gamma"] == pytest.approx(
        1 / (4 * X.var())
    )
    assert KernelSpec.make("rbf", gamma="auto").resolve(X).params["gamma"] == 0.25
    median = KernelSpec.make("rbf", gamma="median").resolve(X).params["gamma"]
    assert median == suggest_gamma(X)


def test_sigma_is_a_shorthand_of_the_rbf_kernel() -> None:
    assert KernelSpec.make("rbf", sigma=2.0) == KernelSpec.make("rbf", gamma=0.125)
    assert KernelSpec.make("rbf", sigma=None).params == {"gamma": None}
    with pytest.raises(SettingsError, match="either sigma or gamma"):
        KernelSpec.make("rbf", sigma=1.0, gamma=1.0)
    with pytest.raises(SettingsError, match="no parameter 'sigma'"):
        KernelSpec.make("poly", sigma=1.0)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_aliases(alias: str, name: str) -> None:
    assert KernelSpec.make(alias).name == name
    assert alias in KERNELS[name].aliases


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KernelSpec.make("rfb"), "did you mean 'rbf'"),
        (lambda: KernelSpec.make("rbf", gama=1), "did you mean 'gamma'"),
        (lambda: KernelSpec.make("linear", gamma=1), "linear has no parameter 'gamma'"),
        (lambda: KernelSpec.make("rbf", gamma=0), "greater than 0"),
        (lambda: KernelSpec.make("rbf", gamma="abc"), "'abc'; a number"),
        (lambda: KernelSpec.make("rbf", gamma=float("nan")), "finite"),
        (lambda: KernelSpec.make("rbf", gamma=[1.0, 2.0]), "rbf-ard"),
        (lambda: KernelSpec.make("rbf-ard", gamma=[1.0, -2.0]), "greater than 0"),
        (lambda: KernelSpec.make("poly", degree=2.5), "integer"),
        (lambda: KernelSpec.make("poly", degree=0), "integer from 1"),
        (lambda: KernelSpec.make("poly", coef0="inf"), "finite"),
        (lambda: KernelSpec.make("rbf", weight=-1), "greater than 0"),
        (lambda: KernelSpec.from_dict({"gamma": 1}), "needs a name"),
        (lambda: KernelSpec.from_dict({"sum": []}), "at least one"),
        (lambda: KernelSpec.from_dict({"sum": "rbf"}), "list of kernels"),
        (lambda: KernelSpec.from_dict({"sum": ["rbf"], "gamma": 1}), "no key 'gamma'"),
        (lambda: KernelSpec.from_dict(3), "name or a mapping"),
        (lambda: KernelSpec.from_dict({"sum": ["rbf", "precomputed"]}), "cannot be combined"),
        (lambda: KernelSpec.combine("mean", []), "unknown combination"),
    ],
)
def test_bad_settings_are_explained(make: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make()


def test_wrong_number_of_gammas() -> None:
    with pytest.raises(SettingsError, match="2 values of gamma for 3 features"):
        KernelSpec.make("rbf-ard", gamma=[1.0, 2.0]).resolve(points(4, 3))


@pytest.mark.parametrize("form", [*EVALUATED, "precomputed", MIXED], ids=str)
def test_dictionaries_survive_json(form: Any) -> None:
    spec = KernelSpec.from_dict(form)
    resolved = spec.resolve(points(6, 5))
    for one in (spec, resolved):
        assert KernelSpec.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert isinstance(hash(resolved), int)
    assert "\n" not in resolved.describe()


def test_describe_names_everything() -> None:
    assert KernelSpec.make("rbf", gamma=0.5).describe() == "rbf(gamma=0.5)"
    assert KernelSpec.make("linear").describe() == "linear"
    text = KernelSpec.from_dict(MIXED).describe()
    assert text.startswith("(2·rbf(gamma=0.4) + 0.1·(poly(")
    assert "[1, 2, 3, …]" in KernelSpec.make("rbf-ard", gamma=[1, 2, 3, 4]).describe()


def test_data_a_kernel_is_not_defined_on() -> None:
    X = points(6, 3)
    X[3, 1] = -0.5
    for name in ("chi2", "intersection"):
        for layout in LAYOUTS:
            with pytest.raises(DataError, match=r"train\.svm: a negative value in row 4"):
                KernelSpec.make(name).check_data(laid_out(X, layout), source="train.svm")
        KernelSpec.make(name).check_data(np.abs(X))
    with pytest.raises(DataError, match="6 rows and 3 columns"):
        KernelSpec.make("precomputed").check_data(X)
    KernelSpec.make("precomputed").check_data(X, is_square=False)
    KernelSpec.make("rbf").check_data(X)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_sums_and_products(layout: str, precision: str) -> None:
    X = points(40, 6)
    spec = KernelSpec.from_dict(MIXED).resolve(X)
    gram = Gram(laid_out(X, layout), spec, precision)
    K, exact = gram.block(), mixed_oracle(X, X)
    np.testing.assert_allclose(K, exact, rtol=2e-5 if precision == "float32" else 1e-13)
    np.testing.assert_array_equal(gram.diagonal(), np.diag(K))
    np.testing.assert_array_equal(gram.block([3], [7, 9])[0], K[3, [7, 9]])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", EVALUATED)
def test_derivatives_agree_with_finite_differences(name: str, layout: str) -> None:
    X, d = points(20, 5), 5
    spec, given = spec_of(name, d), parameters_of(name, d)
    for precision, tolerance in (("float64", 1e-8), ("float32", 1e-5)):
        gram = Gram(laid_out(X, layout), spec, precision)
        for parameter in spec.parameters():

            def evaluate(value: float, parameter: str = parameter) -> np.ndarray:
                changed = dict(given)
                if parameter.startswith("gamma["):
                    changed["gamma"] = np.array(given["gamma"])
                    changed["gamma"][int(parameter[6:-1])] = value
                else:
                    changed[parameter] = value
                return ORACLES[name](X, X, **changed)

            if parameter.startswith("gamma["):
                value = given["gamma"][int(parameter[6:-1])]
            else:
                value = given[parameter]
            exact = log_derivative(evaluate, float(value))
            found = gram.derivative(None, None, parameter)
            np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance * np.abs(exact).max())
    if KERNELS[name].parameters:
        assert spec.parameters()
    with pytest.raises(SettingsError, match="no parameter 'nothing'"):
        spec.derivative("nothing")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_derivatives_of_a_combination(layout: str) -> None:
    X = points(15, 4)
    spec = KernelSpec.from_dict(MIXED)
    gram = Gram(laid_out(X, layout), spec, "float64")
    names = {
        "0.gamma": ("rbf", 0.4),
        "1.0.gamma": ("poly", 0.3),
        "1.0.coef0": ("coef0", 1.0),
        "1.1.1.gamma": ("laplacian", 0.2),
        "1.1.1.weight": ("weight", 0.5),
    }
    assert set(names) <= set(spec.parameters())
    for parameter, (key, value) in names.items():
        exact = log_derivative(lambda v, key=key: mixed_oracle(X, X, **{key: v}), value)
        found = gram.derivative(None, None, parameter)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-8 * np.abs(exact).max())


def test_weight_of_a_single_kernel() -> None:
    X = points(9, 3)
    spec = replace(KernelSpec.make("rbf", gamma=0.3), weight=2.5)
    np.testing.assert_allclose(Gram(X, spec, "float64").block(), 2.5 * rbf(X, X, 0.3), rtol=1e-13)


def test_suggested_gamma_is_the_median_heuristic() -> None:
    X = np.random.default_rng(0).standard_normal((200, 3))
    distances = [((a - b) ** 2).sum() for k, a in enumerate(X) for b in X[:k]]
    assert suggest_gamma(X) == pytest.approx(1 / np.median(distances))
    assert suggest_gamma(scipy.sparse.csr_matrix(X)) == pytest.approx(suggest_gamma(X))
    assert suggest_gamma(X, sample=50) == suggest_gamma(X, sample=50)
    assert suggest_gamma(np.ones((5, 4))) == 0.25


def test_psd_report() -> None:
    X = np.random.default_rng(1).standard_normal((60, 3))
    good = psd_report(X, KernelSpec.make("rbf"))
    assert good["is_psd"]
    assert good["has_constant_diagonal"]
    assert 1 < good["effective_rank"] <= 60
    assert KernelSpec.make("rbf").is_psd
    bad = psd_report(X, KernelSpec.make("sigmoid", gamma=2.0, coef0=-1.0))
    assert not bad["is_psd"]
    assert bad["min_eigenvalue"] < 0
    line = psd_report(X, KernelSpec.make("linear"), sample=40)
    assert (line["sample"], line["rank"]) == (40, 3)
    assert psd_report(X @ X.T, KernelSpec.make("precomputed"))["rank"] == 3
    assert not psd_report(np.triu(X @ X.T), KernelSpec.make("precomputed"))["is_symmetric"]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("gamma", [1e30, 3e38, 1e300])
def test_a_gamma_beyond_float32_leaves_the_identity(precision, gamma):
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0]])
    K = Gram(X, KernelSpec.make("rbf", gamma=gamma), precision).block(None, None)
    np.testing.assert_array_equal(K, [[1, 1, 0], [1, 1, 0], [0, 0, 1]])
