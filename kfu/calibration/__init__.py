"""Probabilities: links from outputs to probabilities, their combination over classes, and scores.

    fit_calibrator(decision, labels, code) -> Calibrator
    Calibrator.probabilities(decision) -> (n, n_classes)

`decision` are out-of-sample outputs of the binary machines; see docs/probabilities.md.
"""

from __future__ import annotations

from kfu.calibration.calibrator import METHODS, Calibrator, fit_calibrator
from kfu.calibration.isotonic import Isotonic, fit_isotonic
from kfu.calibration.scores import (
    Reliability,
    accuracy,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_reliability,
    reliability,
)
from kfu.calibration.sigmoid import Sigmoid, fit_sigmoid
from kfu.calibration.span_outputs import span_corrected_outputs, squared_spans

__all__ = [
    "METHODS",
    "Calibrator",
    "Isotonic",
    "Reliability",
    "Sigmoid",
    "accuracy",
    "brier_score",
    "expected_calibration_error",
    "fit_calibrator",
    "fit_isotonic",
    "fit_sigmoid",
    "log_loss",
    "plot_reliability",
    "reliability",
    "span_corrected_outputs",
    "squared_spans",
]
