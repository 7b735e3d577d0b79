"""What the machines of a code tell about the whole: bounds on its errors, and who agrees with whom.

Bounds (Allwein, Schapire and Singer, JMLR 1, 2000; Rifkin 2002, section 4.2.2). With ℓ training
rows, F machines and the mean loss

    ε = 1/(Fℓ) Σ_m Σ_j L(M_{y_j m} f_m(x_j))

over all machines and all rows (a machine that does not see the class of a row counts L(0) for it),
the training mistakes are at most ℓFε / (ρ L(0)) with loss-based decoding by L, and at most twice
that with Hamming decoding or votes. They hold for each loss here: a mistake means that the losses
of the true row of the code are not below those of another row; where the two rows have opposite
signs the two losses add up to 2L(0) or more, where one has a zero to L(0) or more, and so the true
row bears ρL(0) or more. One-versus-all decoded by the largest output is loss-based.

Agreement (Rifkin 2002, section 4.3.3): the fraction of rows on which two schemes predict the same
class; and, for each mistake (true class i, predicted j), the fraction of wrong ones among the
machines that put i and j on opposite sides. Where this fraction is mostly near 1 the machines fail
together, and no code corrects them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.errors import KfuError, SettingsError
from kfu.io.atomic import atomic_output
from kfu.multiclass.code_matrix import code_distance
from kfu.multiclass.losses import loss_named

__all__ = [
    "ReverseCdf",
    "TrainingErrorBounds",
    "agreement_table",
    "machine_losses",
    "plot_reverse_cdf",
    "reverse_cdf",
    "training_error_bounds",
    "unanimous_fraction",
]

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class TrainingErrorBounds:
    """Bounds on the number of training mistakes; they may exceed the number of rows."""

    mean_loss: float  # ε
    distance: float  # ρ
    n_rows: int
    loss_based: float
    hamming: float


def machine_losses(
    decision: np.ndarray, code: np.ndarray, true: np.ndarray, loss: str = "hinge"
) -> np.ndarray:
    """The mean loss of each machine over all rows; rows whose class it does not see count L(0).

    `true` holds the class index of each row. Mind that an SVM's slacks are these losses only for
    the rows a machine was trained on.
    """
    function = loss_named(loss)
    values = _outputs(decision, code)
    signs = code[np.asarray(true)]
    with np.errstate(over="ignore"):  # an exponential loss may be infinite; so is the bound then
        return function.of(signs * values).mean(axis=0)


def training_error_bounds(
    losses: np.ndarray, code: np.ndarray, n_rows: int, rule: str = "hinge"
) -> TrainingErrorBounds:
    """The bounds from the mean loss of each machine (`machine_losses` with the loss `rule`)."""
    means = np.asarray(losses, dtype=np.float64)
    if means.shape != (code.shape[1],):
        raise ValueError(f"losses of shape {means.shape} for a code of {code.shape[1]} machines")
    if (means < 0).any() or np.isnan(means).any():
        raise ValueError("losses have to be non-negative numbers")
    distance = code_distance(code)
    bound = float(n_rows * means.sum() / (distance * loss_named(rule).at_zero))
    return TrainingErrorBounds(float(means.mean()), distance, n_rows, bound, 2 * bound)


def _label_columns(predictions: Mapping[str, Any]) -> list[np.ndarray]:
    columns = [np.asarray(labels) for labels in predictions.values()]
    lengths = {column.shape for column in columns}
    if len(lengths) != 1 or columns[0].ndim != 1 or columns[0].size == 0:
        raise ValueError("give each scheme's predictions of the same rows, at least one row")
    return columns


def agreement_table(predictions: Mapping[str, Any]) -> tuple[list[str], np.ndarray]:
    """The names of the schemes, and for each two the fraction of rows they predict alike."""
    columns = _label_columns(predictions)
    table = np.array([[np.mean(a == b) for b in columns] for a in columns])
    return list(predictions), table


def unanimous_fraction(predictions: Mapping[str, Any]) -> float:
    """The fraction of rows that all schemes predict alike."""
    columns = _label_columns(predictions)
    return float(np.mean(np.all([columns[0] == column for column in columns], axis=0)))


@dataclass(frozen=True)
class ReverseCdf:
    """Ascending fractions of wrong machines, one for each mistake, and the share of mistakes with
    a fraction at least so large."""

    fraction: np.ndarray
    share: np.ndarray

    def share_at(self, fraction: float) -> float:
        """The share of mistakes on which at least this fraction of machines is wrong; NaN if there
        are no mistakes."""
        if not self.fraction.size:
            return float("nan")
        below = np.searchsorted(self.fraction, fraction, side="left")
        return float(1.0 - below / self.fraction.size)


def reverse_cdf(
    decision: np.ndarray, code: np.ndarray, true: np.ndarray, predicted: np.ndarray
) -> ReverseCdf:
    """How many of the machines that part true and predicted class are wrong, mistake by mistake.

    `true` and `predicted` are class indices; the predictions may be those of another scheme, whose
    mistakes are then looked at through the machines of this code. A machine says +1 when f > 0 and
    -1 otherwise. Mistakes between classes that no machine parts are left out.
    """
    values = _outputs(decision, code)
    true, predicted = np.asarray(true), np.asarray(predicted)
    mistakes = np.flatnonzero(true != predicted)
    own = code[true[mistakes]]
    parts = own * code[predicted[mistakes]] < 0
    wrong = parts & (np.where(values[mistakes] > 0, 1, -1) != own)
    asked = parts.sum(axis=1)
    fraction = np.sort(wrong.sum(axis=1)[asked > 0] / asked[asked > 0])
    below = np.searchsorted(fraction, fraction, side="left")
    return ReverseCdf(fraction, 1.0 - below / max(fraction.size, 1))


def _outputs(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    values = np.asarray(decision, dtype=np.float64)
    if values.ndim == 1 and code.shape[1] == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != code.shape[1]:
        raise ValueError(
            f"decision values of shape {values.shape} for a code of {code.shape[1]} machines"
        )
    return values


def plot_reverse_cdf(path: str | os.PathLike[str], curves: Mapping[str, ReverseCdf]) -> None:
    """Draw the curves of some schemes into a .png, .pdf or .svg file; needs matplotlib."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in PICTURE_SUFFIXES:
        raise SettingsError(
            f"{os.fspath(path)}: not the name of a picture; end it in .png, .pdf or .svg"
        )
    try:
        from matplotlib.figure import Figure  # without pyplot: no window, no global state
    except ImportError:
        raise KfuError("pictures need matplotlib; pip install 'kfu[plot]'") from None
    picture = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = picture.add_subplot()
    for name, curve in curves.items():
        x = np.concatenate([[0.0], curve.fraction, [1.0]])
        at_one = curve.share_at(1.0) if curve.fraction.size else 0.0
        y = np.concatenate([[1.0 if curve.fraction.size else 0.0], curve.share, [at_one]])
        axes.step(x, y, where="pre", label=f"{name} ({curve.fraction.size} mistakes)")
    axes.set_xlabel("fraction of wrong machines, of those that part the two classes")
    axes.set_ylabel("share of mistakes with at least so many")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    if curves:
        axes.legend(fontsize=8)
    metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(ending)
    with atomic_output(path, "wb") as stream:
        picture.savefig(stream, format=ending[1:], dpi=130, metadata=metadata)
