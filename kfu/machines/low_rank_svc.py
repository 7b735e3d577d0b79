"""svc with low rank: the hinge loss under K̃ of m centres.

`rectangle` is trained and tested with K̃: the model holds the centres. `nystrom` is trained with K̃
and tested with K: the model holds the support vectors of the low-rank problem
(kfu.least_squares.low_rank_hinge). The certificate of the report is that of the low-rank problem.
"""

from __future__ import annotations

import numpy as np

from kfu.errors import DataError, SettingsError
from kfu.least_squares.centres import choose_centres
from kfu.least_squares.low_rank_hinge import HingeMachines, hinge_machines
from kfu.machines.combined import combined_info
from kfu.machines.reductions import box_of
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.square_loss.run import USUAL_CENTRES
from kfu.machines.task import TrainingTask
from kfu.model import Model

FORMS = ("rectangle", "nystrom")


def checked_centres(task: TrainingTask) -> int:
    """The number of centres; SettingsError for what cannot be had with low rank."""
    form = task.options["approximation"]
    if form not in FORMS:
        raise SettingsError(
            f"--approximation {form} is for least squares; svc takes {' or '.join(FORMS)}"
        )
    refused = {
        "--margins": task.options["margins"] is not None,
        "--regularised-bias": task.bias == "regularised",
        "--checkpoint": task.checkpoint is not None,
        "--start": task.start is not None,
        f"--multiclass {task.code_name}": task.code_name in SINGLE_MACHINES,
        "-c inf": np.isinf(task.cost),
        "--centres-by kmeans": task.options["centres_by"] == "kmeans",
    }
    for option, is_asked in refused.items():
        if is_asked:
            raise SettingsError(f"--approximation takes no {option}; leave it out")
    n_rows = int(np.count_nonzero(task.weights > 0))
    m = task.options["centres"] or min(USUAL_CENTRES, n_rows)
    if m > n_rows:
        raise SettingsError(f"{m} centres of {n_rows} rows; give at most that many")
    return int(m)


def train_low_rank(task: TrainingTask) -> Model:
    m = checked_centres(task)
    assert task.labels is not None
    assert task.code is not None
    weight = None if np.all(task.weights == 1.0) else task.weights
    try:
        centres = choose_centres(
            task.options["centres_by"],
            task.X,
            task.kernel,
            m,
            seed=task.seed,
            ridge=0.5 / task.cost,
            weight=weight,
            threads=task.settings.n_threads,
        )
        found = hinge_machines(
            task.X,
            task.code[task.labels].astype(np.float64),
            task.kernel,
            centres.rows,
            task.cost,
            weight=weight,
            bias=task.has_free_bias,
            settings=task.settings,
        )
    except DataError as error:
        if error.source != "data":
            raise
        raise DataError(task.source, error.line, error.found, error.remedy) from None
    return model_of(task, found)


def model_of(task: TrainingTask, found: HingeMachines) -> Model:
    assert task.labels is not None
    assert task.code is not None
    fit, over_rows = found.fit, found.over_rows()
    assert fit.rows is not None
    rows, coef = fit.rows, fit.coef
    if task.options["approximation"] == "nystrom":
        rows, coef = np.arange(task.n), over_rows
    used = np.flatnonzero(np.any(coef != 0.0, axis=1))
    order = used[np.argsort(task.labels[rows[used]], kind="stable")]
    support = rows[order]
    info = combined_info(found.solutions, over_rows.T, box_of(task.cost, task.weights))
    info |= {
        "method": f"hinge loss, {task.options['approximation']}",
        "centres": fit.info["m"],
        "rank": fit.info["rank"],
        "n_sv": int(support.size),
    }
    return Model(
        machine=task.machine.name,
        kernel=task.kernel,
        classes=task.classes,
        n_features=task.X.shape[1],
        support=support,
        support_vectors=task.support_vectors(support),
        coef=np.ascontiguousarray(coef[order].T),
        bias=fit.bias,
        code=task.code,
        decoding=task.decoding,
        settings=task.described(),
        info=info,
        n_support=np.bincount(task.labels[support], minlength=len(task.classes)),
    )
