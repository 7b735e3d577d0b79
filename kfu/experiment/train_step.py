"""The step `train`: a machine on the training rows, left behind for `predict`."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from kfu.experiment.learner import (
    LEARNER_KEYS,
    PROBABILITY_KEYS,
    check_learner,
    learner_arguments,
    scaled_rows,
)
from kfu.experiment.state import Options, State, Step
from kfu.machines import train
from kfu.multiclass import code_distance

TRAIN_FIGURES = (
    *("objective", "duality_gap", "kkt_gap", "kkt_violation", "bias", "bias_std"),
    *("iterations", "rounds", "kernel_evaluations", "cache_hits", "cache_misses"),
    *("n_sv", "n_usv", "n", "n_features", "n_machines", "code_distance", "seconds", "converged"),
    *("margin", "epsilon", "n_pairs", "dims", "neighbours", "loo_error", "loo_error_bound"),
    *("ridge", "lambda", "loo_mse", "gcv", "degrees_of_freedom", "trace_portion"),
)


def run_train(options: Options, state: State) -> dict[str, float]:
    arguments = learner_arguments(options, state)
    rows, scaler = scaled_rows(options, state)
    begin = time.perf_counter()
    model = train(rows, **arguments)
    seconds = time.perf_counter() - begin
    model.scaler = scaler
    state.model = model
    status = str(model.info.get("status", "converged"))
    if status == "interrupted":  # a part counts only when it is whole
        raise KeyboardInterrupt
    state.add_status(status)
    figures = {**numbers_of(model.info), "n_sv": float(model.n_sv)}
    figures |= {"n": float(state.train.n), "n_features": float(model.n_features)}
    figures["n_machines"] = float(model.n_machines)
    if model.has_classes and model.n_machines > 1:
        figures["code_distance"] = float(code_distance(model.code))
    figures |= {"seconds": seconds, "converged": float(status == "converged")}
    return {name: value for name, value in figures.items() if name in TRAIN_FIGURES}


def numbers_of(info: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers among the values of `info`."""
    return {
        name: float(value)
        for name, value in info.items()
        if isinstance(value, (int, float, np.number))
        and not isinstance(value, bool)
        and math.isfinite(value)
    }


TRAIN = Step(
    run_train, {**LEARNER_KEYS, **PROBABILITY_KEYS}, figures=TRAIN_FIGURES, check=check_learner
)
