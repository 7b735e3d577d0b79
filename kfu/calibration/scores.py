"""How good probabilities are: proper scores, accuracy, calibration error and reliability diagrams.

Probabilities of two classes are given as P(+) (n,) with outcomes that are boolean, 0/1 or ±1; those
of several classes as a table (n, K) with outcomes that are positions of classes, from 0. A row of
weight w counts as w rows.

    Brier score    two: mean (P − o)²             several: mean Σ_k (p_k − [k is the class])²
    log loss       mean −log(probability of what happened)
    ECE            Σ_bins (share of rows) · |mean P − share of outcomes|

A table of two columns scores twice the Brier score of its P(+). The calibration error and the
reliability of a table (n, K) are those of the most probable class: P its probability, o whether it
was right. Uniform bins divide [0, 1] equally; quantile bins hold about equal weights. A bin
contains its upper edge, the first one its lower edge too; bins without rows are left out.

Brier, Verification of forecasts expressed in terms of probability, Mon. Weather Rev. 78 (1950);
Niculescu-Mizil and Caruana, Predicting good probabilities with supervised learning (ICML 2005).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.calibration.sample import SOURCE, checked_weight, make_sample
from kfu.errors import DataError, KfuError, SettingsError
from kfu.io.atomic import atomic_output

__all__ = [
    "Reliability",
    "accuracy",
    "brier_score",
    "expected_calibration_error",
    "log_loss",
    "plot_reliability",
    "reliability",
]

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
# Colour-blind safe (Okabe and Ito), one per curve in turn.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True, eq=False)
class _Scored:
    """Checked probabilities: of the outcome (n,), or of all classes (n, K) with positions."""

    p: np.ndarray
    outcome: np.ndarray  # bool (n,) for p (n,); int64 (n,) for p (n, K)
    share: np.ndarray  # weights, summing to 1

    @property
    def is_table(self) -> bool:
        return self.p.ndim == 2


def _checked(probability: Any, outcome: Any, weight: Any) -> _Scored:
    p = np.asarray(probability, dtype=np.float64)
    if p.ndim not in (1, 2) or (p.ndim == 2 and p.shape[1] < 2):
        raise ValueError(f"probabilities of shape {p.shape}; give (n,) or (n, classes)")
    if not ((p >= 0).all() and (p <= 1).all()):  # NaN too
        raise DataError(SOURCE, None, "a probability is not in [0, 1]", "give probabilities")
    w = checked_weight(weight, len(p))
    if not w.sum() > 0:
        raise DataError(SOURCE, None, "no row to score", "give at least one row of weight > 0")
    if p.ndim == 1:
        happened = make_sample(p, outcome).positive
    else:
        if np.abs(p.sum(axis=1) - 1).max() > 1e-6:
            raise DataError(SOURCE, None, "a row does not sum to 1", "give probabilities")
        happened = np.asarray(outcome)
        if happened.shape != (len(p),) or happened.dtype.kind not in "iu":
            raise ValueError("outcomes have to be one position of a class for each row")
        if happened.min() < 0 or happened.max() >= p.shape[1]:
            raise ValueError(f"outcomes have to be positions of classes, 0 to {p.shape[1] - 1}")
    return _Scored(p, happened, w / w.sum())


def brier_score(probability: Any, outcome: Any, weight: Any = None) -> float:
    """Mean squared distance to the outcome; 0 is best, 1 (two classes) or 2 (several) worst."""
    s = _checked(probability, outcome, weight)
    if not s.is_table:
        return float(s.share @ (s.p - s.outcome) ** 2)
    own = s.p[np.arange(len(s.p)), s.outcome]
    return float(s.share @ ((s.p**2).sum(axis=1) - 2 * own + 1))


def log_loss(probability: Any, outcome: Any, weight: Any = None, *, floor: float = 1e-15) -> float:
    """Mean −log of the probability of what happened, never taken below `floor`."""
    if not 0 < floor < 0.5:
        raise SettingsError(f"the floor of the log loss is in (0, 1/2), not {floor}")
    s = _checked(probability, outcome, weight)
    if s.is_table:
        own = s.p[np.arange(len(s.p)), s.outcome]
    else:
        own = np.where(s.outcome, s.p, 1 - s.p)
    return float(-(s.share @ np.log(np.clip(own, floor, 1 - floor))))


def accuracy(probability: Any, outcome: Any, weight: Any = None) -> float:
    """Share of rows whose most probable class happened; two classes: + where P(+) > ½."""
    s = _checked(probability, outcome, weight)
    predicted = np.argmax(s.p, axis=1) if s.is_table else s.p > 0.5
    return float(s.share @ (predicted == s.outcome))


@dataclass(frozen=True, eq=False)
class Reliability:
    """One entry for each bin that holds rows; arrays of equal length."""

    low: np.ndarray  #: lower edge of the bin
    high: np.ndarray  #: upper edge, which belongs to it
    share: np.ndarray  #: share of all rows (of their weight)
    probability: np.ndarray  #: mean probability given to its rows
    frequency: np.ndarray  #: share of its rows in which it happened

    @property
    def error(self) -> float:
        """The expected calibration error over these bins."""
        return float(self.share @ np.abs(self.probability - self.frequency))

    def rows(self) -> list[dict[str, float]]:
        """Plain values, one dict for each bin."""
        names = ("low", "high", "share", "probability", "frequency")
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def reliability(
    probability: Any,
    outcome: Any,
    bins: int = 10,
    strategy: str = "uniform",
    weight: Any = None,
) -> Reliability:
    """Mean probability and observed frequency by bins of the probability."""
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise SettingsError(f"the number of bins has to be an integer from 1, not {bins!r}")
    if strategy not in EDGES:
        raise SettingsError(f"'{strategy}' is no way to bin; there are: {', '.join(EDGES)}")
    s = _checked(probability, outcome, weight)
    p, happened = s.p, s.outcome
    if s.is_table:
        best = np.argmax(s.p, axis=1)
        p, happened = s.p[np.arange(len(s.p)), best], best == s.outcome
    edges = EDGES[strategy](p, s.share, int(bins))
    place = np.searchsorted(edges[1:-1], p, side="left")
    n_bins = len(edges) - 1
    share = np.bincount(place, weights=s.share, minlength=n_bins)
    mean = np.bincount(place, weights=s.share * p, minlength=n_bins)
    hits = np.bincount(place, weights=s.share * happened, minlength=n_bins)
    filled = share > 0
    return Reliability(
        low=edges[:-1][filled],
        high=edges[1:][filled],
        share=share[filled],
        probability=mean[filled] / share[filled],
        frequency=hits[filled] / share[filled],
    )


def _uniform_edges(p: np.ndarray, share: np.ndarray, bins: int) -> np.ndarray:
    return np.linspace(0.0, 1.0, bins + 1)


def _quantile_edges(p: np.ndarray, share: np.ndarray, bins: int) -> np.ndarray:
    """The values at which the weights reach j/bins of the total; equal ones once."""
    order = np.argsort(p, kind="stable")
    order = order[share[order] > 0]
    reached = np.cumsum(share[order])
    wanted = np.arange(1, bins) / bins * reached[-1]
    # Sums that reach a bound up to rounding reach it.
    found = np.searchsorted(reached, wanted * (1 - 1e-12), side="left")
    inner = np.unique(p[order][np.minimum(found, order.size - 1)])
    low, high = p[order[0]], p[order[-1]]
    return np.concatenate(([low], inner[inner < high], [high]))


EDGES = {"uniform": _uniform_edges, "quantile": _quantile_edges}


def expected_calibration_error(
    probability: Any,
    outcome: Any,
    bins: int = 10,
    strategy: str = "uniform",
    weight: Any = None,
) -> float:
    """Mean distance of probability and observed frequency over the bins of `reliability`."""
    return reliability(probability, outcome, bins, strategy, weight).error


def plot_reliability(
    path: str | os.PathLike[str],
    tables: Reliability | Mapping[str, Reliability],
    *,
    title: str | None = None,
    dpi: int = 150,
) -> None:
    """Draw the reliability diagram of one table, or of several by name (.png, .pdf, .svg)."""
    name = os.fspath(path)
    ending = os.path.splitext(name)[1].lower()
    if ending not in PICTURE_SUFFIXES:
        raise SettingsError(f"{name}: not the name of a picture; end it in .png, .pdf or .svg")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise KfuError("a reliability diagram needs matplotlib; pip install 'kfu[plot]'") from None
    curves = {"": tables} if isinstance(tables, Reliability) else dict(tables)
    picture = Figure(figsize=(5.6, 6.4), layout="constrained")
    upper, lower = picture.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    upper.plot([0, 1], [0, 1], color="#777777", linestyle="dashed", linewidth=1)
    for k, (label, table) in enumerate(curves.items()):
        colour = COLOURS[k % len(COLOURS)]
        text = f"{label}: {table.error:.3f}" if label else f"calibration error {table.error:.3f}"
        upper.plot(table.probability, table.frequency, "o-", color=colour, markersize=4, label=text)
        lower.plot(table.probability, table.share, "o-", color=colour, markersize=3, linewidth=1)
    upper.set(xlim=(0, 1), ylim=(0, 1), ylabel="observed frequency")
    upper.legend(fontsize=8, title="calibration error" if len(curves) > 1 else None)
    lower.set(xlabel="mean probability of the bin", ylabel="share of rows", ylim=(0, None))
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    if title:
        picture.suptitle(title)
    # No dates, so that equal pictures are equal files.
    dates: dict[str, dict[str, Any]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    with atomic_output(name) as stream:
        picture.savefig(stream, format=ending[1:], dpi=dpi, metadata=dates.get(ending, {}))
