"""The step `leave_one_out`: estimates of a machine trained on the training rows (kfu.estimates).

A figure for each estimate that has a value, by its name; `difference.NAME`, its distance to exact
leave-one-out where both are errors of rows left out; the error on the training and test rows. What
is varied and repeated around the step makes the curves of span rule and test error over C.
"""

from __future__ import annotations

import time
from typing import Any

from kfu.errors import KfuError
from kfu.estimates import ESTIMATES, Options, Trained, find_estimates
from kfu.estimates.interface import test_error
from kfu.estimates.registry import LOO_ERROR
from kfu.experiment.document import Key, non_negative
from kfu.experiment.document import choice as one_of
from kfu.experiment.learner import LEARNER_KEYS, check_learner, learner_arguments, scaled_rows
from kfu.experiment.state import Options as StepOptions
from kfu.experiment.state import State, Step
from kfu.machine_kinds import RANKER
from kfu.machines.training import prepare

MORE_NAMES = ("xi-alpha-recall", "xi-alpha-precision")
# Drawn in one panel: errors, estimated and real.
ERRORS = tuple(
    name for name, entry in ESTIMATES.items() if entry.of == LOO_ERROR and name != "radius-margin"
)


def estimate_list(value: Any) -> list[str]:
    """A name or a list of names."""
    names = value if isinstance(value, list) else [value]
    if not names:
        raise ValueError("names no estimate; write [exact, span]")
    return [one_of("estimate", ESTIMATES)(name) for name in names]


def run_leave_one_out(options: StepOptions, state: State) -> dict[str, float]:
    arguments = learner_arguments(options, state)
    rows, scaler = scaled_rows(options, state)
    begin = time.perf_counter()
    task = prepare(rows, arguments.pop("y"), **arguments)
    model = task.machine.train(task)
    status = str(model.info.get("status", "converged"))
    if status == "interrupted":  # a part counts only when it is whole
        raise KeyboardInterrupt
    state.add_status(status)
    trained_at = time.perf_counter()
    test = None
    if state.test is not None and model.kind != RANKER:
        X = state.test.X if scaler is None else scaler.transform(state.test.X)
        if state.test.y is None:
            raise KfuError(f"{state.test.source}: test rows have no labels")
        from_text = state.test.from_sparse_text
        test = test_error(model, X, state.test.y, from_sparse_text=from_text)
    settings = Options(eta=float(options.get("eta", 0.1)), test=test)
    found = find_estimates(Trained(task, model), options.get("estimates"), settings)
    figures = {e.name: e.value for e in found if e.value is not None}
    if "exact" in figures:
        exact = figures["exact"]
        figures |= {
            f"difference.{e.name}": abs(e.value - exact)
            for e in found
            if e.value is not None and e.of == found["exact"].of and e.name != "exact"
        }
    figures["train_error"] = found.train_error
    if test is not None:
        figures["test_error"] = test[0]
    figures["n_sv"] = float(model.n_sv)
    figures["seconds_train"] = trained_at - begin
    return {**figures, "seconds": time.perf_counter() - trained_at}


LEAVE_ONE_OUT = Step(
    run_leave_one_out,
    {
        **LEARNER_KEYS,
        "estimates": Key(estimate_list, "the estimates (default: all that apply and are quick)"),
        "eta": Key(non_negative, "how much span-smooth is smoothed (default: 0.1)"),
    },
    figures=(
        *ESTIMATES,
        *MORE_NAMES,
        *("difference.", "train_error", "test_error", "n_sv", "seconds", "seconds_train"),
    ),
    check=check_learner,
    together=(*ERRORS, "test_error"),
)
