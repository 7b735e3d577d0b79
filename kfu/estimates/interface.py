"""`kfu.loo`: estimates of a model or estimator and the rows it was trained on."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import encode_labels
from kfu.errors import DataError, SettingsError
from kfu.estimates.registry import Options
from kfu.estimates.table import LeaveOneOut, find_estimates
from kfu.estimates.trained import Trained
from kfu.machine_kinds import CLASSIFIER
from kfu.machines.registry import MACHINES, option_word
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.training import prepare
from kfu.model import Model
from kfu.solvers import SolverSettings

__all__ = ["loo", "test_error"]


def loo(
    model: Any,
    X: Any,
    y: Any = None,
    estimates: Iterable[str] | str | None = None,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    margins: Any = None,
    test: tuple[Any, Any] | None = None,
    eta: float = 0.1,
    delta: float = 0.05,
    threads: int | None = None,
) -> LeaveOneOut:
    """Exact leave-one-out, its estimates and its bounds, without a test set.

    `model` is a Model trained by kfu on the rows X (as they were given to it, before its scaling)
    and labels y, or an estimator of kfu; one that is not fitted is fitted to them (a copy of it).
    estimates: names of kfu.estimates.ESTIMATES, or None for all that apply and do not take long.
    sample_weight, qid, margins: those of the training of a Model. test: rows and labels that were
    not trained on. eta: of span-smooth; delta: 1 − the confidence of bounds on the risk.

    Returns a LeaveOneOut: `result["span"].value`, `.valid`, `.note`, `.outputs`; print it for a
    table. An estimate whose theorem does not hold for the machine has valid=False and says why.
    """
    if isinstance(estimates, str):
        estimates = [name.strip() for name in estimates.split(",")]
    if not isinstance(model, Model):
        trained = _of_estimator(model, X, y, sample_weight, qid)
    else:
        trained = _of_model(model, X, y, sample_weight, qid, margins, threads)
    check_eta_and_delta(eta, delta)
    options = Options(
        eta=eta,
        delta=delta,
        test=None if test is None else _test_error(model, trained.model, *test),
    )
    return find_estimates(trained, estimates, options)


def _test_error(given: Any, model: Model, X: Any, y: Any) -> tuple[float, int]:
    """Of a Model, by itself; of an estimator, which may have a kernel function, by its predict."""
    if isinstance(given, Model):
        return test_error(given, X, y)
    if not hasattr(given, "model_"):
        return test_error(model, X, model_targets(model, y))
    predicted, values = given.predict(X), np.asarray(y)
    wrong = predicted != values if model.has_classes else (predicted - values) ** 2
    return float(np.mean(wrong)), values.size


def model_targets(model: Model, y: Any) -> np.ndarray:
    """Labels as a model has them."""
    return np.asarray(y, dtype=np.str_ if model.classes.dtype.kind == "U" else np.float64)


def check_eta_and_delta(eta: float, delta: float) -> None:
    if not (math.isfinite(eta) and eta >= 0):
        raise SettingsError(f"eta is {eta!r}; give a finite number of at least 0")
    if not 0.0 < delta < 1.0:
        raise SettingsError(f"delta is {delta!r}; give a probability between 0 and 1")


def test_error(model: Model, X: Any, y: Any, **options: Any) -> tuple[float, int]:
    """The error of a classifier (mean squared error of a regression) on rows X, y; their number.

    A label that is no class of the model is an error.
    """
    source = options.get("source", "test data")
    values = np.asarray(y)
    predicted = model.predict(X, **options)
    if values.shape != predicted.shape or values.size == 0:
        found = f"{values.size} labels for {predicted.size} test rows"
        raise DataError(source, None, found, "give one label for each row")
    if model.has_classes:
        codes = encode_labels(values, model.classes)
        return float(np.mean(encode_labels(predicted, model.classes) != codes)), values.size
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            source, None, "labels that are not numbers", "this machine has numbers as labels"
        ) from None
    return float(np.mean((predicted - numbers) ** 2)), values.size


def _of_model(
    model: Model, X: Any, y: Any, sample_weight: Any, qid: Any, margins: Any, threads: int | None
) -> Trained:
    known = {item.name for item in fields(SolverSettings)}
    settings = {name: value for name, value in model.settings.items() if name in known}
    if threads is not None:
        settings["threads"] = threads
    machine = MACHINES[model.machine]
    words = {name: option_word(name).replace("-", "_") for name in machine.options}
    given = {name: model.settings.get(word) for name, word in words.items()}
    given = {name: value for name, value in given.items() if value is not None}
    if margins is not None:
        given["margins"] = margins
    rows = model.match_features(X)
    if model.scaler is not None:
        rows = model.scaler.transform(rows)
    arguments: dict[str, Any] = {
        **given,
        "machine": model.machine,
        "kernel": model.kernel,
        "sample_weight": sample_weight,
        "settings": SolverSettings(**settings),
        "qid": qid,
    }
    if machine.takes_cost:
        cost = model.settings.get("cost", 1.0)
        arguments["cost"] = math.inf if cost is None else float(cost)  # files have no infinity
    if machine.takes_bias and machine.name != "nu-svc":
        arguments["bias"] = _bias_of(model)
    if machine.kind == CLASSIFIER:
        arguments["class_weight"] = _class_weight_of(model, y)
        if machine.takes_codes:
            name = model.settings.get("multiclass")
            arguments["multiclass"] = name if name in SINGLE_MACHINES else model.code
            arguments["decoding"] = model.decoding
    task = prepare(rows, y, **arguments)
    _check_rows(model, task.X)
    return Trained(task, model)


def _bias_of(model: Model) -> str:
    bias = model.settings.get("bias", "free")
    if model.settings.get("regularised_bias"):
        return "regularised"
    if isinstance(bias, bool):
        return "free" if bias else "none"
    return str(bias)


def _class_weight_of(model: Model, y: Any) -> Any:
    weight = model.settings.get("class_weight")
    if not isinstance(weight, Mapping):
        return weight
    labels = {str(label): label for label in np.unique(np.asarray(y)).tolist()}
    numbers = {}
    for text, value in weight.items():
        key = labels.get(str(text))
        if key is None:
            key = next((label for label in labels.values() if _same(label, text)), text)
        numbers[key] = float(value)
    return numbers


def _same(label: Any, text: Any) -> bool:
    try:
        return float(label) == float(text)
    except (TypeError, ValueError):
        return False


def _check_rows(model: Model, X: Any) -> None:
    """SettingsError when the support vectors are not rows of X."""
    if model.support.size == 0 or (model.support < 0).all() or model.support_vectors is None:
        return
    inside = model.support.min() >= 0 and model.support.max() < X.shape[0]
    if inside:
        mine = X[model.support]
        theirs = model.support_vectors
        mine = mine.toarray() if sp.issparse(mine) else np.asarray(mine)
        theirs = theirs.toarray() if sp.issparse(theirs) else np.asarray(theirs)
        inside = mine.shape == theirs.shape and np.allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    if not inside:
        raise SettingsError(
            "X does not hold the support vectors of the model at their rows; give the rows it was "
            "trained on, in their order"
        )


def _of_estimator(estimator: Any, X: Any, y: Any, sample_weight: Any, qid: Any) -> Trained:
    from kfu.estimators.base import KernelEstimator
    from kfu.estimators.rows import model_labels

    if not isinstance(estimator, KernelEstimator):
        raise SettingsError(
            f"{type(estimator).__name__} is neither a Model nor an estimator of kfu"
        )
    if not hasattr(estimator, "model_"):
        estimator = copy.copy(estimator)
        if qid is not None:
            estimator.fit(X, y, qid)
        elif sample_weight is not None:
            estimator.fit(X, y, sample_weight=sample_weight)
        else:
            estimator.fit(X, y)
    model: Model = estimator.model_
    rows = estimator._checked(X)
    weights = None if sample_weight is None else np.maximum(np.asarray(sample_weight, float), 0.0)
    labels = y
    if model.kind == CLASSIFIER:
        classes, index = np.unique(np.asarray(y), return_inverse=True)
        labels = model_labels(classes)[index]
    margins = getattr(estimator, "margins", None)
    return _of_model(model, rows, labels, weights, qid, margins, estimator.threads)
