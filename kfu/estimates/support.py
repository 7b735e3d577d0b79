"""Bounds and estimates from α and K alone: support vectors, Jaakkola–Haussler, Opper–Winther.

sv-count. A row that is no support vector does not shape the machine, so that it is classified
without itself as with itself: errors ≤ support vectors (and rows that training gets wrong). For
regression: left-out rows outside the tube ≤ support vectors.

jaakkola-haussler, without a free bias: y_p f^p(x_p) ≥ y_p f(x_p) − α_p K(p, p), so that errors are
among the rows with y_p f(x_p) − α_p K(p, p) ≤ 0, for hinge loss and squared slack alike (K without
ridge). For many classes outputs lie between f and f − yαK(p, p), and a row counts if some outputs
within decode to another class. (The form α_p K(p, p) ≥ 1 is that of hard margins.)

opper-winther, without a free bias and with a hard margin: α_p / (K_SV⁻¹)_pp ≥ 1, exact if the
support vectors stay the same.

Vapnik 1998; Jaakkola and Haussler 1999; Opper and Winther 2000; Rifkin 2002, 3.3 and 4.4.1.
"""

from __future__ import annotations

import numpy as np

from kfu.estimates.conditions import all_of, hard_margin, two_classes, unit_margins, without_bias
from kfu.estimates.registry import LOO_ERROR, SVC, Entry, Found, Options
from kfu.estimates.trained import Trained
from kfu.least_squares.bounds import binary_loo_bound, code_loo_bound
from kfu.machine_kinds import CLASSIFIER


def sv_count(trained: Trained, options: Options) -> Found:
    flags = trained.any_machine([machine.alpha > 0 for machine in trained.binary])
    if trained.kind != CLASSIFIER:
        of = "share of left-out rows outside the tube"
        return Found(trained.share(flags), of=of, flags=flags)
    flags |= trained.wrong(trained.decision)
    return Found(trained.share(flags), flags=flags)


# Equal votes and equal Hamming distances count as possible errors, so that one bounds the other.
BOUNDED_BY = {"votes": "hamming"}


def known_decoding(trained: Trained) -> str | None:
    if trained.model.decoding == "dag" and not trained.is_binary:
        return "not known for the decoding dag"
    return None


def jaakkola_haussler(trained: Trained, options: Options) -> Found:
    task, model = trained.task, trained.model
    coef = np.zeros((task.n, model.n_machines))
    coef[model.support] = model.coef.T
    labels = task.labels
    assert labels is not None
    diagonal = trained.kernel.diagonal()
    if trained.is_binary:
        signs = model.code[labels, 0].astype(np.float64)
        flags = binary_loo_bound(signs, trained.decision[:, 0], coef[:, 0], diagonal)
        return Found(trained.share(flags), flags=flags)
    decoding = BOUNDED_BY.get(model.decoding, model.decoding)
    flags = code_loo_bound(labels, model.code, trained.decision, coef, diagonal, decoding)
    return Found(trained.share(flags), flags=flags)


def opper_winther(trained: Trained, options: Options) -> Found:
    (machine,) = trained.binary
    flags = machine.alpha * machine.spans.squared >= 1.0
    is_singular = machine.spans.is_singular
    note = "the kernel matrix of the support vectors is singular" if is_singular else ""
    every = trained.any_machine([flags])
    return Found(trained.share(every), note, flags=every)


SV_COUNT = Entry(
    "sv-count",
    "share of support vectors",
    "bound",
    LOO_ERROR,
    "Vapnik 1998",
    (*SVC, "svr"),
    sv_count,
)
JAAKKOLA_HAUSSLER = Entry(
    "jaakkola-haussler",
    "rows whose own term decides",
    "bound",
    LOO_ERROR,
    "Jaakkola and Haussler 1999",
    SVC,
    jaakkola_haussler,
    all_of(without_bias, known_decoding),
)
OPPER_WINTHER = Entry(
    "opper-winther",
    "fixed support vectors, hard margin without bias",
    "estimate",
    LOO_ERROR,
    "Opper and Winther 2000",
    SVC,
    opper_winther,
    all_of(two_classes, without_bias, hard_margin, unit_margins),
)
