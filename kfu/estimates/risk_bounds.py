"""Bounds on the risk itself, with probability 1 − δ: VC dimension, stability, validation.

vc          R ≤ R_emp + √((h (ln(2n/h) + 1) − ln(δ/4)) / n) + 1/n. h is the dimension of the feature
            space (linear and polynomial kernels; one more with a bias). Other kernels have none
            that is fixed beforehand; R²‖w‖² + 1 stands in its place and the value is marked as not
            valid, for the margin was found on the same rows.
stability   R ≤ R̂ + 2β + (4nβ + M) √(ln(1/δ)/2n) (kfu.least_squares.bounds) for regularised machines
            without a free bias: hinge loss and the tube with ridge = 1/(2C), squared slack with the
            constants of the square loss (which is above it) and ridge = 1/C, least squares. Many
            classes: of the ramp loss (γ = 1) for least squares by codes without zeros.
validation  R ≤ R_test + √((ln m − ln(δ/2)) / 2n'), for one of m machines chosen on n' rows that
            none of them was trained on.

All need rows drawn independently from one distribution, and kernel and C chosen without them. The
first two are far above 1 on any usual data.

Vapnik 1998; Bousquet and Elisseeff 2002; Rifkin 2002, chapter 5; Chapelle 2002, 1.1.3 to 1.2.2.
"""

from __future__ import annotations

import math

import numpy as np

from kfu.estimates.conditions import all_of, two_classes, without_bias
from kfu.estimates.least_squares import all_rows, targets_of
from kfu.estimates.registry import SVC, Entry, Found, Options
from kfu.estimates.sphere import enclosing_sphere
from kfu.estimates.trained import Trained
from kfu.least_squares.bounds import multiclass_stability, ramp_loss, stability_bound
from kfu.machine_kinds import CLASSIFIER, REGRESSOR
from kfu.machines.registry import MACHINES
from kfu.machines.single_machine import SINGLE_MACHINES

VACUOUS = "says nothing (1 or more)"


# ---- VC dimension --------------------------------------------------------------------------------


def vc_bound(error: float, dimension: float, n: int, delta: float) -> float:
    """The bound of n rows; 1 or more where the dimension is above them."""
    if dimension >= n:
        return max(1.0, error + 1.0)
    grown = dimension * (math.log(2.0 * n / dimension) + 1.0)
    return error + math.sqrt((grown - math.log(delta / 4.0)) / n) + 1.0 / n


def feature_dimension(trained: Trained) -> int | None:
    """The dimension of the feature space, bias included; None where it has no end."""
    kernel, d = trained.task.kernel, trained.task.X.shape[1]
    free = 0 if trained.task.bias == "none" else 1
    if kernel.name == "linear":
        return d + free
    if kernel.name == "poly":
        degree = int(kernel.params["degree"])
        if kernel.params["coef0"] > 0:
            return math.comb(d + degree, degree)
        return math.comb(d + degree - 1, degree) + free
    return None


def vc(trained: Trained, options: Options) -> Found:
    n = trained.counted.size
    error = trained.share(trained.wrong(trained.decision))
    known = feature_dimension(trained)
    if known is not None:
        value = vc_bound(error, known, n, options.delta)
        note = f"h = {known}"
    elif trained.machine == "rlsc" or trained.indefinite is not None:
        return Found(None, "the feature space has no finite dimension", valid=False)
    else:
        (machine,) = trained.binary
        square = enclosing_sphere(trained, machine).squared_radius
        dimension = square * machine.squared_norm + 1.0
        value = vc_bound(error, dimension, n, options.delta)
        note = f"h = {dimension:.4g} by the margin, which was not fixed beforehand"
    if value >= 1.0:
        note += f"; {VACUOUS}"
    return Found(value, note, valid=known is not None)


# ---- stability -----------------------------------------------------------------------------------


def alike_rows(trained: Trained) -> str | None:
    return None if np.all(trained.task.weights == 1.0) else "holds without weights"


def finite_cost(trained: Trained) -> str | None:
    return "needs a finite cost" if np.isinf(trained.task.cost) else None


def one_or_squares(trained: Trained) -> str | None:
    if trained.machine != "rlsc" or trained.is_binary:
        return two_classes(trained)
    if trained.model.decoding not in ("square", "argmax"):
        return "many classes: known for the decoding by squared loss"
    return all_rows(trained)


def fixed_machine(trained: Trained) -> str | None:
    """Of least squares: a ridge that was given."""
    if trained.machine not in ("rls", "rlsc"):
        return None
    given = [trained.task.options[name] for name in ("ridge", "lam")]
    if all(value is None or value == "auto" for value in given):
        return "the ridge was chosen on these rows; give --ridge or --lambda"
    return None


def stability(trained: Trained, options: Options) -> Found:
    task, n = trained.task, trained.counted.size
    largest = float(trained.kernel.diagonal().max(initial=0.0))
    kappa = math.sqrt(max(largest, 0.0))
    if kappa == 0.0:
        return Found(None, "every row is 0 in feature space", valid=False)
    if trained.machine == "rlsc" and not trained.is_binary:
        return _stability_of_code(trained, options, kappa)
    outputs = trained.decision[:, 0]
    bound = 1.0
    if trained.kind == REGRESSOR:
        assert task.targets is not None
        bound = float(np.abs(task.targets).max(initial=0.0)) or 1.0
    if trained.machine in ("rls", "rlsc"):
        loss, of, ridge = "square", "squared loss", float(trained.model.info["ridge"])
        losses = (targets_of(trained)[:, 0] - outputs) ** 2
    elif trained.machine == "svr":
        loss, of, ridge = "epsilon-insensitive", "loss outside the tube", 0.5 / task.cost
        assert task.targets is not None
        losses = np.maximum(0.0, np.abs(outputs - task.targets) - float(task.options["epsilon"]))
    else:
        slack = np.maximum(0.0, 1.0 - trained.binary[0].y * outputs)
        is_square = trained.machine == "svc2"
        loss, of = ("square", "squared slack") if is_square else ("hinge", "hinge loss")
        ridge = (1.0 if is_square else 0.5) / task.cost
        losses = slack**2 if is_square else slack
    found = stability_bound(
        float(losses.mean()), ridge, n, kappa, target_bound=bound, loss=loss, delta=options.delta
    )
    note = f"beta = {found.beta:.4g}, K(x, x) at most {largest:.4g} (of these rows)"
    if found.is_vacuous:
        note += "; says nothing (above the largest loss)"
    return Found(found.value, note, of=f"mean {of} on new rows")


def _stability_of_code(trained: Trained, options: Options, kappa: float) -> Found:
    ridge, n = float(trained.model.info["ridge"]), trained.counted.size
    one = stability_bound(0.0, ridge, n, kappa, delta=options.delta)
    labels = trained.task.labels
    assert labels is not None
    code = trained.model.code
    ramp = float(ramp_loss(trained.decision, labels, code, 1.0).mean())
    found = multiclass_stability(ramp, one.beta, code, n, 1.0, options.delta)
    note = f"ramp loss of width 1, beta = {found.beta:.4g}"
    return Found(found.value, note + f"; {VACUOUS}" * (found.value >= 1.0))


# ---- validation ----------------------------------------------------------------------------------


def validation(trained: Trained, options: Options) -> Found:
    if options.test is None:
        return Found(None, "needs rows that were not trained on (--against)", valid=False)
    error, n = options.test
    deviation = math.sqrt((math.log(options.n_models) - math.log(options.delta / 2.0)) / (2.0 * n))
    note = f"test error {error:.6g} of {n} rows"
    if options.n_models > 1:
        note += f", one of {options.n_models} machines"
    return Found(error + deviation, note)


VC = Entry(
    "vc",
    "VC dimension",
    "bound",
    "error on new rows",
    "Vapnik 1998",
    (*SVC, "rlsc"),
    vc,
    all_of(two_classes),
    needs_psd=False,
    size=lambda trained: 20.0 * 1e-9 * trained.task.n**2,
)
STABILITY = Entry(
    "stability",
    "stability of regularised machines",
    "bound",
    "error on new rows",
    "Bousquet and Elisseeff 2002",
    (*SVC, "svr", "rls", "rlsc"),
    stability,
    all_of(without_bias, alike_rows, finite_cost, fixed_machine, one_or_squares),
)
VALIDATION = Entry(
    "validation",
    "error on rows not trained on, and its deviation",
    "bound",
    "error on new rows",
    "Chapelle 2002, 1.2",
    (*(name for name in MACHINES if MACHINES[name].kind == CLASSIFIER), *SINGLE_MACHINES),
    validation,
    needs_psd=False,
    needs_full_kernel=False,
    needs_test=True,
)
