"""What ``kfu predict`` keeps of its outputs for figures that need all rows: scores of
probabilities, losses and errors of the binary machines, agreement between models."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.calibration import (
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_reliability,
    reliability,
)
from kfu.data import Dataset, encode_labels
from kfu.errors import DataError, SettingsError
from kfu.machine_kinds import CLASSIFIER
from kfu.machines import MACHINES
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.machines.training import LOSSES
from kfu.model import Model
from kfu.multiclass import (
    agreement_table,
    code_distance,
    machine_losses,
    plot_reverse_cdf,
    reverse_cdf,
    training_error_bounds,
    unanimous_fraction,
)


def has_binary_machines(model: Model) -> bool:
    """Whether several binary machines of a code stand behind the model's answers."""
    takes_codes = model.machine in MACHINES and MACHINES[model.machine].takes_codes
    is_single = model.settings.get("multiclass") in SINGLE_MACHINES
    return model.n_machines > 1 and takes_codes and not is_single


class Keeper:
    """Keeps outputs block by block; memory is that of the decision values of all rows."""

    def __init__(self, model: Model, keeps_outputs: bool) -> None:
        self.model = model
        self.has_machines = has_binary_machines(model)
        has_more = model.calibration is not None or self.has_machines
        self.needs_outputs = keeps_outputs and model.kind == CLASSIFIER and has_more
        self.decisions: list[np.ndarray] = []
        self.probabilities: list[np.ndarray] = []
        self.winners: list[np.ndarray] = []
        self.truths: list[np.ndarray] = []
        self.rivals: list[tuple[str, Model]] = []
        self.labels: dict[str, list[np.ndarray]] = {}

    def add_rivals(self, rivals: list[tuple[str, Model]], own_name: str) -> None:
        for path, rival in rivals:
            if rival.classes.tolist() != self.model.classes.tolist() or not rival.has_classes:
                raise SettingsError(f"--with {path}: its classes are others than {own_name}'s")
        rivals = list({path: rival for path, rival in rivals if path != own_name}.items())
        self.rivals = rivals
        if rivals:
            self.labels = {name: [] for name in dict.fromkeys([own_name, *(r[0] for r in rivals)])}
            self.own_name = own_name

    def add(
        self,
        block: Dataset,
        decision: np.ndarray | None,
        probabilities: np.ndarray | None,
        winners: np.ndarray,
        options: dict[str, Any],
    ) -> None:
        if self.rivals:
            self.labels[self.own_name].append(winners)
            for path, rival in self.rivals:
                self.labels[path].append(rival.classify(block.X, **options))
        if not self.needs_outputs or decision is None:
            return
        self.decisions.append(decision)
        self.winners.append(winners)
        if probabilities is not None:
            self.probabilities.append(probabilities)
        known = np.full(len(winners), -1)
        if block.y is not None:
            known = encode_labels(block.y, self.model.classes)
        self.truths.append(known)

    def figures(self) -> dict[str, Any]:
        """The keys of the report that these outputs give."""
        found: dict[str, Any] = {}
        if self.rivals:
            stacked = {name: np.concatenate(parts) for name, parts in self.labels.items()}
            names, shares = agreement_table(stacked)
            found["agreement"] = {
                "models": names,
                "shares": shares.tolist(),
                "unanimous": unanimous_fraction(stacked),
            }
        if self.decisions and self.has_machines:
            found["code_distance"] = code_distance(self.model.code)
        rows, truth = self.labelled()
        if rows.size == 0:
            return found
        if self.probabilities:
            p = self.judged_probabilities(rows)
            found["log_loss"] = log_loss(p, truth)
            found["brier_score"] = brier_score(p, truth)
            found["calibration_error"] = expected_calibration_error(p, truth)
        if self.has_machines:
            found |= self.machine_figures(rows, truth)
        return found

    def labelled(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.truths:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        truth = np.concatenate(self.truths)
        rows = np.flatnonzero(truth >= 0)
        return rows, truth[rows]

    def judged_probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Of two classes the probability of the larger, of more the whole table."""
        p = np.concatenate(self.probabilities)[rows]
        return p[:, 1] if p.shape[1] == 2 else p

    def machine_figures(self, rows: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
        """Losses of the binary machines on these rows, the bounds on mistakes they imply, and how
        many of the machines that part true and predicted class were wrong at each error."""
        model = self.model
        decision = np.concatenate(self.decisions)[rows]
        winners = np.concatenate(self.winners)[rows]
        loss = LOSSES.get(model.machine, "hinge")
        losses = machine_losses(decision, model.code, truth, loss)
        bounds = training_error_bounds(losses, model.code, rows.size, loss)
        curve = reverse_cdf(decision, model.code, truth, winners)
        return {
            "mean_loss": float(bounds.mean_loss),
            "error_bound": float(bounds.loss_based) / rows.size,
            "hamming_error_bound": float(bounds.hamming) / rows.size,
            "machine_losses": losses.tolist(),
            "wrong_machines": {
                "fraction": curve.fraction.tolist(),
                "share": curve.share.tolist(),
            },
        }

    def draw(self, path: str) -> None:
        rows, truth = self.labelled()
        if rows.size == 0:
            raise DataError("the data", None, "no labels to draw with", "leave --plot out")
        if self.probabilities:
            p = self.judged_probabilities(rows)
            plot_reliability(path, reliability(p, truth))
            return
        decision = np.concatenate(self.decisions)[rows]
        winners = np.concatenate(self.winners)[rows]
        curve = reverse_cdf(decision, self.model.code, truth, winners)
        plot_reverse_cdf(path, {"errors": curve})
