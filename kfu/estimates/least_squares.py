"""Least squares: bounds on leave-one-out errors without the inverse, and GCV.

rlsc-bound. Without bias the output of a row left out lies between f and f − cK(p, p) (the interval
of kfu.least_squares.bounds), where c = w (y − f)/ridge; a row counts if some outputs within their
intervals decode to another class, for one machine iff y f ≤ K(p, p)/(K(p, p) + ridge).

gcv. (1/n) Σ (y − f)² / (1 − tr H/n)², H = K (K + ridge)⁻¹ the hat matrix (not the inverse, as the
thesis prints): leave-one-out with every H_ii replaced by their mean. Summed over binary machines.

Rifkin 2002, 3.3 and 4.4.1; Craven and Wahba 1979.
"""

from __future__ import annotations

import numpy as np

from kfu.estimates.conditions import all_of, without_bias
from kfu.estimates.registry import LOO_ERROR, Entry, Found, Options
from kfu.estimates.trained import Trained
from kfu.least_squares.bounds import code_loo_bound, generalised_cross_validation
from kfu.least_squares.spectrum import Spectrum

# Votes and Hamming distance differ in ties only, which count as possible errors.
BOUNDED_DECODINGS = ("argmax", "hinge", "square", "exponential", "hamming", "votes")
LARGEST_SPECTRUM = 5000  # rows


def targets_of(trained: Trained) -> np.ndarray:
    """Y (n, n_machines): numbers, or ±1 and 0 by the code."""
    task = trained.task
    if task.labels is None:
        assert task.targets is not None
        return task.targets[:, None]
    assert task.code is not None
    return task.code[task.labels].astype(np.float64)


def known_decoding(trained: Trained) -> str | None:
    if trained.is_binary or trained.model.decoding in BOUNDED_DECODINGS:
        return None
    return f"not known for the decoding {trained.model.decoding}"


def all_rows(trained: Trained) -> str | None:
    code = trained.task.code
    if code is not None and not np.all(code):
        return "known for codes without zeros, whose machines share one matrix"
    return None


def rlsc_bound(trained: Trained, options: Options) -> Found:
    task, model = trained.task, trained.model
    targets = targets_of(trained)
    ridge = float(model.info["ridge"])
    residual = np.where(targets != 0.0, targets - trained.decision, 0.0)
    coef = task.weights[:, None] * residual / ridge
    assert task.labels is not None
    decoding = "hamming" if model.decoding == "votes" else model.decoding
    if trained.is_binary:
        decoding = "argmax"
    diagonal = trained.kernel.diagonal()
    flags = code_loo_bound(task.labels, model.code, trained.decision, coef, diagonal, decoding)
    return Found(trained.share(flags), flags=flags)


def gcv(trained: Trained, options: Options) -> Found:
    task, model = trained.task, trained.model
    degrees = model.info.get("degrees_of_freedom")
    if degrees is None:
        weight = None if np.all(task.weights == 1.0) else task.weights
        spectrum = Spectrum(
            task.X,
            task.kernel,
            weight=weight,
            bias=task.has_free_bias,
            threads=task.settings.n_threads,
        )
        degrees = float(spectrum.degrees_of_freedom([float(model.info["ridge"])])[0])
    residual = targets_of(trained) - trained.decision
    value = generalised_cross_validation(residual, float(degrees), task.weights)
    return Found(value, f"{degrees:.4g} degrees of freedom")


def spectrum_work(trained: Trained) -> float:
    if trained.model.info.get("degrees_of_freedom") is not None:
        return 0.0
    return np.inf if trained.task.n > LARGEST_SPECTRUM else 10.0 * (trained.task.n / 1000.0) ** 3


RLSC_BOUND = Entry(
    "rlsc-bound",
    "rows whose own term may decide",
    "bound",
    LOO_ERROR,
    "Rifkin 2002",
    ("rlsc",),
    rlsc_bound,
    all_of(without_bias, known_decoding),
)
GCV = Entry(
    "gcv",
    "generalised cross-validation",
    "estimate",
    "leave-one-out mean squared error",
    "Craven and Wahba 1979",
    ("rls", "rlsc"),
    gcv,
    all_rows,
    needs_psd=False,
    size=spectrum_work,
)
