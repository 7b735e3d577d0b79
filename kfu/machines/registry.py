"""The registry of machines and of the options that some of them have.

A machine is added by an entry here, the function that trains it and its kind in kfu.machine_kinds;
the command line, the estimators and the documentation take it from there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kfu.errors import SettingsError
from kfu.kernel_registry import nearest
from kfu.machine_kinds import kind_of_machine

if TYPE_CHECKING:
    from kfu.machines.task import TrainingTask
    from kfu.model import Model


INFINITY = float("inf")


@dataclass(frozen=True)
class Option:
    """A setting that only some machines have. `check` returns the value or raises SettingsError."""

    default: Any
    check: Callable[[str, Any], Any]
    help: str
    word: str = ""  # on the command line, where it is not the name


def _number(low: float, high: float, includes: str = "neither") -> Callable[[str, Any], float]:
    """A check that the value is a number between low and high; `includes` names allowed ends."""

    def check(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise SettingsError(f"{name} is {value!r}; a number is needed") from None
        low_is_in, high_is_in = includes in ("low", "both"), includes in ("high", "both")
        above = number >= low if low_is_in else number > low
        below = number <= high if high_is_in else number < high
        if not (above and below):
            parts = []
            if low > -float("inf"):
                parts.append(f"{'at least' if low_is_in else 'greater than'} {low:g}")
            if high < float("inf"):
                parts.append(f"{'at most' if high_is_in else 'less than'} {high:g}")
            raise SettingsError(f"{name} is {value!r}; it has to be {' and '.join(parts)}")
        return number

    return check


def _count(least: int) -> Callable[[str, Any], int]:
    def check(name: str, value: Any) -> int:
        is_whole = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_whole or int(value) != value or value < least:
            raise SettingsError(f"{name} is {value!r}; a whole number from {least} on is needed")
        return int(value)

    return check


def _choice(*allowed: str) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if value not in allowed:
            raise SettingsError(f"{name} is {value!r}; {nearest(str(value), allowed)}")
        return str(value)

    return check


def _positive_or_auto(name: str, value: Any) -> Any:
    return value if value is None or value == "auto" else _number(0.0, INFINITY)(name, value)


def _anything(name: str, value: Any) -> Any:
    return value


OPTIONS: dict[str, Option] = {
    "nu": Option(
        0.5,
        _number(0.0, 1.0, "high"),
        "Upper bound on the share of margin errors (or outliers), lower bound on that of support "
        "vectors.",
    ),
    "epsilon": Option(
        0.1, _number(0.0, INFINITY, "low"), "Half width of the tube without loss of regression."
    ),
    "margins": Option(
        None,
        _anything,
        "Target of the margin of each row (1 without it): one number a line, or auto (the width of "
        "its neighbourhood); its cost is divided by it.",
    ),
    "graph": Option(
        "complete",
        _choice("complete", "reduced"),
        "Pairs of a query to rank: all (complete), or Zapien's reduced graph of fewer than two a "
        "row (reduced).",
    ),
    "neighbours": Option(
        None,
        lambda name, v: v if v is None else _count(1)(name, v),
        "Neighbours that vote; by default the number with the least leave-one-out error.",
    ),
    "distance_weights": Option(
        "none",
        _choice("none", "inverse", "inverse-squared"),
        "How neighbours vote: alike, or by inverse distance.",
    ),
    "dims": Option(
        None,
        lambda name, v: v if v is None else _count(1)(name, v),
        "Dimensions of the kernel projection machine; by default chosen by cross-validation.",
    ),
    "dim_penalty": Option(
        None,
        lambda name, v: v if v is None else _number(0.0, INFINITY, "low")(name, v),
        "Choose the dimension by the mean hinge loss plus this times dimension / rows, instead of "
        "cross-validation.",
    ),
    "ridge": Option(
        None,
        _positive_or_auto,
        "The regularisation as the product of lambda and the number of "
        "rows, or auto: chosen by exact leave-one-out.",
    ),
    "lam": Option(None, _positive_or_auto, "The regularisation lambda, or auto.", "lambda"),
    "lam_by": Option(
        "squares",
        _choice("squares", "errors"),
        "What auto makes least, exactly by leave-one-out: the mean square of the residuals "
        "(squares), or the number of rows put into a wrong class, of equal ones the least mean "
        "square (errors).",
        "lambda-by",
    ),
    "loo": Option(
        "auto",
        _choice("auto", "always", "never"),
        "Exact leave-one-out figures: always or never, or auto: of --approximation rectangle where "
        "they cost little beside the training or the ridge is chosen by them, of the full and the "
        "linear kernel always.",
    ),
    "approximation": Option(
        "none",
        _choice("none", "rectangle", "subset", "nystrom", "falkon", "bagging"),
        "Low rank in place of the full kernel matrix (svc: rectangle or nystrom).",
    ),
    "centres": Option(
        None,
        lambda name, v: v if v is None else _count(1)(name, v),
        "Centres of an approximation (rows of a bag); 1000 without it.",
    ),
    "method": Option(
        "auto",
        _choice("auto", "cholesky", "cg", "primal", "dual", "eig", "svd"),
        "How the equations of the full kernel are solved: by a factor (cholesky), by conjugate "
        "gradients that store no matrix (cg), or auto: cg where the matrix does not fit into "
        "memory. With the linear kernel also primal, dual, eig, svd.",
    ),
    "prune": Option(
        None,
        lambda name, v: v if v is None else _number(0.0, 1.0)(name, v),
        "With --bias: drop this share of the rows, those of the smallest coefficients, and train "
        "again, as long as the leave-one-out error does not grow.",
    ),
    "centres_by": Option(
        "random",
        _choice("random", "kmeans++", "leverage", "ic", "kmeans"),
        "How centres are chosen from the rows; kmeans takes means of the rows of each class.",
    ),
    "prior": Option(
        "data",
        _choice("data", "equal"),
        "Weight of the classes in a Parzen classifier: their share of the data, or equal.",
    ),
}


def option_word(name: str) -> str:
    """An option's word on the command line, without the dashes."""
    return OPTIONS[name].word or name.replace("_", "-")


@dataclass(frozen=True)
class Machine:
    """A kind of machine: what it is, the function that trains it, and the options it has."""

    name: str
    summary: str
    trainer: str  # "module:function"
    options: tuple[str, ...] = ()
    takes_cost: bool = True
    takes_bias: bool = True
    takes_codes: bool = False  # binary machines under any multiclass code
    needs_labels: bool = True
    default_bias: str = "free"
    default_code: str = "ava"

    @property
    def kind(self) -> str:
        return kind_of_machine(self.name)

    def train(self, task: TrainingTask) -> Model:
        module, _, name = self.trainer.partition(":")
        trained: Model = getattr(importlib.import_module(module), name)(task)
        return trained

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Every option of this machine with its value; SettingsError for one it does not have."""
        for name in given:
            if name not in self.options:
                has = ", ".join(self.options) or "no options"
                raise SettingsError(f"machine {self.name} takes no {name} (it has: {has})")
        return {
            name: OPTIONS[name].check(name, given.get(name, OPTIONS[name].default))
            for name in self.options
        }


def _coded(name: str, summary: str, *options: str, **facts: Any) -> Machine:
    trainer = "kfu.machines.coded:train_coded"
    return Machine(name, summary, trainer, options, takes_codes=True, **facts)


LOW_RANK = ("approximation", "centres", "centres_by")
REGULARISATION = ("ridge", "lam")
SOLUTION = ("loo", "method", "prune", *LOW_RANK)  # of least squares

MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine(
            "svc",
            "support vector classifier, hinge loss (C-SVC)",
            "kfu.machines.svc:train_svc",
            ("margins", *LOW_RANK),
            takes_codes=True,
        ),
        _coded("svc2", "support vector classifier, squared hinge loss", "margins"),
        _coded("nu-svc", "classifier with nu in place of C", "nu", takes_cost=False),
        Machine(
            "one-class",
            "novelty detection: the support of a distribution",
            "kfu.machines.novelty:train_one_class",
            ("nu",),
            takes_cost=False,
            takes_bias=False,
            needs_labels=False,
        ),
        Machine(
            "svr",
            "support vector regression, epsilon-insensitive loss",
            "kfu.machines.regression:train_svr",
            ("epsilon",),
        ),
        Machine(
            "nu-svr",
            "regression with nu in place of epsilon",
            "kfu.machines.regression:train_nu_svr",
            ("nu",),
            takes_bias=False,
        ),
        Machine(
            "rank",
            "ranking within queries, pairwise hinge loss",
            "kfu.machines.ranking:train_rank",
            ("graph",),
            takes_bias=False,
        ),
        Machine(
            "rls",
            "regularised least squares regression",
            "kfu.machines.least_squares:train_rls",
            (*REGULARISATION, *SOLUTION),
            takes_cost=False,
            default_bias="none",
        ),
        Machine(
            "rlsc",
            "regularised least squares classification",
            "kfu.machines.least_squares:train_rlsc",
            (*REGULARISATION, "lam_by", *SOLUTION),
            takes_cost=False,
            takes_codes=True,
            default_bias="none",
            default_code="ova",
        ),
        Machine(
            "kpm",
            "kernel projection machine: hinge loss on leading eigenvectors",
            "kfu.machines.baselines:train_kpm",
            ("dims", "dim_penalty"),
            takes_cost=False,
            takes_bias=False,
            takes_codes=True,
        ),
        Machine(
            "centroid",
            "nearest class mean in feature space",
            "kfu.machines.baselines:train_centroid",
            takes_cost=False,
            takes_bias=False,
        ),
        Machine(
            "parzen",
            "Parzen windows: the class of the highest density",
            "kfu.machines.baselines:train_parzen",
            ("prior",),
            takes_cost=False,
            takes_bias=False,
        ),
        Machine(
            "nadaraya-watson",
            "shares of the classes among the neighbours, weighed by the kernel",
            "kfu.machines.baselines:train_nadaraya_watson",
            takes_cost=False,
            takes_bias=False,
        ),
        Machine(
            "knn",
            "nearest neighbours in feature space",
            "kfu.machines.baselines:train_knn",
            ("neighbours", "distance_weights"),
            takes_cost=False,
            takes_bias=False,
        ),
    )
}


def machine_named(name: str) -> Machine:
    if name not in MACHINES:
        raise SettingsError(f"no machine {name!r}; {nearest(name, MACHINES)}")
    return MACHINES[name]
