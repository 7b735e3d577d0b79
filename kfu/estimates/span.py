"""The span rule: outputs f̃ − yαS² and the error they make; smoothed by η.

If no other row changes its category (none, unbounded, bounded) when row p is left out, its output
falls by exactly y_p (f̃(x_p) − f^p(x_p)) = α_p S_p² (kfu.calibration.span_outputs has S_p in closed
form). Hinge loss, squared slack (f̃ and the spans of K + diag(1/C)), with a free bias, without and
regularised; regression with β in place of yα. Not a bound: categories do change, and the rule has
been found close to exact leave-one-out nevertheless.

With η > 0 the squared distance is min over λ of ‖Φ_p − Σ λ_i Φ_i‖² + η Σ λ_i²/α_i, which does not
jump where a vector joins or leaves; η = 0 is the span rule, without bias Opper and Winther's, and
η = ∞ without bias Jaakkola and Haussler's.

Vapnik and Chapelle 2000; Chapelle 2002, sections 3.2.3 and 4.4.4.
"""

from __future__ import annotations

import numpy as np

from kfu.calibration.span_outputs import Spans
from kfu.estimates.registry import LOO_ERROR, SVC, Entry, Found, Options
from kfu.estimates.trained import BinaryMachine, Trained
from kfu.machine_kinds import CLASSIFIER

REGRESSION_ERROR = "leave-one-out mean squared error"


def corrected_outputs(machine: BinaryMachine, spans: Spans) -> np.ndarray:
    return np.asarray(machine.outputs - machine.y * machine.alpha * spans.squared)


def span(trained: Trained, options: Options) -> Found:
    return _found(trained, [machine.spans for machine in trained.binary])


def smooth_span(trained: Trained, options: Options) -> Found:
    return _found(
        trained,
        [machine.find_spans(options.eta) for machine in trained.binary],
        [f"eta {options.eta:g}"],
    )


def _found(trained: Trained, spans: list[Spans], notes: list[str] | None = None) -> Found:
    outputs = trained.all_machines(
        [corrected_outputs(m, s) for m, s in zip(trained.binary, spans, strict=True)]
    )
    notes = [*(notes or [])]
    valid = True
    lost = [
        s.unbounded.size == 0 and s.bounded.size > 0 and m.has_bias
        for m, s in zip(trained.binary, spans, strict=True)
    ]
    if any(lost):
        valid = False
        where = "" if len(spans) == 1 else f" in {sum(lost)} of {len(spans)} machines"
        notes.append(f"no unbounded support vector{where}: outputs of training are taken")
    alone = sum(
        s.unbounded.size == 1 and m.has_bias for m, s in zip(trained.binary, spans, strict=True)
    )
    if alone:
        notes.append("the only unbounded support vector keeps its output")
    if trained.indefinite is not None or any(s.is_indefinite for s in spans):
        valid = False
        notes.append(trained.indefinite or "the kernel has negative eigenvalues")
        notes[-1] += ": spans are no distances"
    elif any(s.is_singular for s in spans):
        notes.append("the span matrix is singular: vectors in the span of others have S = 0")
    is_classifier = trained.kind == CLASSIFIER
    return Found(
        trained.score(outputs),
        "; ".join(notes),
        valid,
        of=None if is_classifier else REGRESSION_ERROR,
        outputs=outputs,
        flags=trained.wrong(outputs) if is_classifier else None,
    )


def work(trained: Trained) -> float:
    total = 0.0
    for machine in trained.binary:
        free, bounded = (places.size for places in machine.categories)
        total += 1e-9 * free**2 * (free + 2 * bounded)
    return total


SPAN = Entry(
    "span",
    "span rule, closed form",
    "estimate",
    LOO_ERROR,
    "Vapnik and Chapelle 2000",
    (*SVC, "svr"),
    span,
    needs_psd=False,
    size=work,
)
SPAN_SMOOTH = Entry(
    "span-smooth",
    "span rule smoothed by eta",
    "estimate",
    LOO_ERROR,
    "Chapelle 2002, 4.4.4",
    (*SVC, "svr"),
    smooth_span,
    needs_psd=False,
    size=work,
)
