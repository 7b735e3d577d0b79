"""Several values of an option, tried in turn: ``kfu cv -c 0.1,1,10 -g 0.01,0.1``.

Every combination is a learner. All of them see the same folds; the best has the least mean score,
the first one of equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import click

from kfu.cli.parameters import Several
from kfu.errors import SettingsError
from kfu.machines import option_word
from kfu.report import figure, print_table
from kfu.validation.cross_validation import CrossValidation

KERNEL_OPTIONS = ("gamma", "sigma", "degree", "coef0")
TRIED = (
    *("cost", *KERNEL_OPTIONS, "nu", "epsilon", "ridge", "lam", "centres"),
    *("neighbours", "dims", "dim_penalty"),
)
MOST = 10_000  # combinations


def takes_several(command: click.Command) -> click.Command:
    """`command` with options that take several values."""
    for parameter in command.params:
        if parameter.name in TRIED:
            parameter.type = Several(parameter.type)
            if parameter.metavar is not None:
                parameter.metavar += "[,...]"
    return command


def varied(opts: dict[str, Any]) -> list[str]:
    """The options that were given several values, in the order of TRIED."""
    return [name for name in TRIED if isinstance(opts.get(name), tuple)]


def learners(opts: dict[str, Any]) -> list[dict[str, Any]]:
    """The options of each combination; those given alone when nothing is varied."""
    names = varied(opts)
    count = 1
    for name in names:
        count *= len(opts[name])
    if count > MOST:
        raise SettingsError(f"{count} combinations of values; give at most {MOST}")
    combinations = product(*(opts[name] for name in names))
    return [{**opts, **dict(zip(names, values, strict=True))} for values in combinations]


def values_of(learner: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The varied values by the words of the command line."""
    return {word_of(name): learner[name] for name in names}


def word_of(name: str) -> str:
    plain = name in ("cost", *KERNEL_OPTIONS)
    return name if plain else option_word(name).replace("-", "_")


def best_of(found: Sequence[CrossValidation], score: str) -> int:
    """The number of the best learner."""
    means = [one.mean(score) for one in found]
    order = sorted(range(len(means)), key=lambda k: (means[k] != means[k], means[k]))  # NaN last
    return order[0]


def grid_report(
    tried: Sequence[dict[str, Any]],
    names: Sequence[str],
    found: Sequence[CrossValidation],
    score: str,
    best: int,
) -> dict[str, Any]:
    """What the report of the best says of the others."""
    entries = []
    for k, (learner, one) in enumerate(zip(tried, found, strict=True)):
        scores: dict[str, Any] = {name: one.mean(name) for name in one.score_names}
        scores |= {f"{name}_std": one.std(name) for name in one.score_names}
        scores["folds"] = [fold.scores[score] for fold in one.folds]
        scores["iterations"] = int(one.total("iterations"))
        unfinished = sum(fold.info.get("status") != "converged" for fold in one.folds)
        entries.append(
            {**values_of(learner, names), **scores, "unfinished": unfinished, "is_best": k == best}
        )
    return {"score": score, "best": values_of(tried[best], names), "grid": entries}


def print_grid(content: dict[str, Any]) -> None:
    """The table of all combinations, the best marked."""
    score = content["score"]
    words = list(content["best"])
    rows = []
    for entry in content["grid"]:
        spread = entry[f"{score}_std"]
        shown = [figure(entry[score]), figure(spread) if spread == spread else "-"]
        mark = "best" if entry["is_best"] else ""
        rows.append([*(figure(entry[word]) for word in words), *shown, mark])
    print_table([*words, score.replace("_", " "), "std", ""], rows)
