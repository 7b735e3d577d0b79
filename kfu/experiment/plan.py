"""From a YAML file to Experiments: what is to be done, checked before anything is done.

    name, about          what it is called (the folder of its results), one line about it
    data                 files (`train`, `test`) or a `toy`; see kfu/experiment/data.py
    split                how rows become training and test rows; see SPLITS there
    steps                a list of steps; see kfu/experiment/steps.py
    repetitions, seed    how often, and from which seed the splits and toys are drawn
    vary                 values of options to go through: {train.cost: [0.1, 1, 10]}
    expect               figures that should come out; see kfu/experiment/expect.py
    pictures             whether figures are drawn

A file holds one experiment, or several under `experiments:`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path as FilePath
from typing import Any

from kfu.errors import SettingsError
from kfu.experiment.data import DATA_KEYS, SPLITS, DataPlan, SplitPlan
from kfu.experiment.document import (
    Document,
    Key,
    Path,
    anything,
    choice,
    count,
    flag,
    nearest,
    positive_count,
    read_document,
    read_mapping,
    shown,
    text,
)
from kfu.experiment.expect import EXPECT_KEYS, Expectation
from kfu.experiment.steps import STEPS, StepPlan, label_of


@dataclass(frozen=True)
class Experiment:
    """One experiment; `vary` maps `label.option` or `data.option` to the values it takes."""

    name: str
    about: str
    data: DataPlan
    split: SplitPlan
    steps: tuple[StepPlan, ...]
    repetitions: int = 1
    seed: int = 0
    vary: dict[str, list[Any]] = field(default_factory=dict)
    expect: tuple[Expectation, ...] = ()
    pictures: bool = True

    def variants(self) -> list[dict[str, Any]]:
        """Every combination of the varied values; one empty one when nothing is varied."""
        return [
            dict(zip(self.vary, values, strict=True)) for values in product(*self.vary.values())
        ]

    def at(self, variant: dict[str, Any]) -> Experiment:
        """The experiment with the values of `variant` in place."""
        data, steps = self.data, list(self.steps)
        for target, value in variant.items():
            owner, _, option = target.partition(".")
            if owner == "data":
                data = replace(data, **{option: value})
                continue
            for k, step in enumerate(steps):
                if step.label == owner:
                    steps[k] = replace(step, options={**step.options, option: value})
        return replace(self, data=data, steps=tuple(steps))


EXPERIMENT_KEYS: dict[str, Key] = {
    "name": Key(text, "what the experiment is called"),
    "about": Key(text, "one line about it"),
    "data": Key(anything, "where the rows come from", required=True),
    "split": Key(anything, "how rows become training and test rows"),
    "steps": Key(anything, "what is done", required=True),
    "repetitions": Key(positive_count, "how often it is repeated"),
    "seed": Key(count, "the seed of splits and toys"),
    "vary": Key(anything, "options and the values they take"),
    "expect": Key(anything, "figures that should come out"),
    "pictures": Key(flag, "whether figures are drawn"),
}
FILE_KEYS: dict[str, Key] = {
    "about": Key(text, "one line about the file"),
    "experiments": Key(anything, "a list of experiments", required=True),
}
# Toy sizes are the only things of `data` that a curve can go over.
VARIABLE_DATA = ("n_train", "n_test")


def read_plan(file: str) -> list[Experiment]:
    """The experiments of a YAML file. Raises SettingsError (exit 2) for whatever is wrong."""
    document = read_document(file)
    root = document.root
    if root is None:
        raise document.error((), "the file is empty; describe an experiment")
    if isinstance(root, dict) and "experiments" in root:
        read_mapping(document, (), root, FILE_KEYS)
        entries = root["experiments"]
        if not isinstance(entries, list) or not entries:
            raise document.error(("experiments",), "not a list of experiments")
        plans = [
            _experiment(document, ("experiments", k), entry, f"{FilePath(file).stem}-{k + 1}")
            for k, entry in enumerate(entries)
        ]
    else:
        plans = [_experiment(document, (), root, FilePath(file).stem)]
    names: set[str] = set()
    for k, plan in enumerate(plans):
        if plan.name in names:
            raise document.error(
                ("experiments", k, "name"), f"'{plan.name}' is the name of an earlier experiment"
            )
        names.add(plan.name)
    return plans


def _experiment(document: Document, path: Path, value: Any, name: str) -> Experiment:
    known = EXPERIMENT_KEYS if path else {**EXPERIMENT_KEYS, "experiments": Key(anything, "")}
    given = read_mapping(document, path, value, known)
    name = given.get("name", name)
    if not re.fullmatch(r"[\w][\w.+-]*", name):
        raise document.error(
            (*path, "name"), f"'{name}' cannot name a folder; use letters, digits, '-' and '.'"
        )
    data = _data(document, (*path, "data"), given["data"])
    steps = _steps(document, (*path, "steps"), given["steps"])
    plan = Experiment(
        name=name,
        about=given.get("about", ""),
        data=data,
        split=_split(document, (*path, "split"), given.get("split"), data),
        steps=steps,
        repetitions=given.get("repetitions", 1),
        seed=given.get("seed", 0),
        vary=_vary(document, (*path, "vary"), given.get("vary", {}), steps, data),
        pictures=given.get("pictures", True),
    )
    _check_steps(document, path, plan)
    _check_rows(document, path, plan)
    return replace(plan, expect=_expectations(document, path, given.get("expect", []), plan))


def _data(document: Document, path: Path, value: Any) -> DataPlan:
    given = read_mapping(document, path, value, DATA_KEYS)
    if ("toy" in given) == ("train" in given):
        raise document.error(path, "give either 'train' (a file) or 'toy' (a generator)")
    of_files = ("test", "format", "zero_based", "train_arrays", "test_arrays")
    for key in ("n_train", "n_test") if "train" in given else of_files:
        if key in given:
            other = "a toy" if "train" in given else "files"
            raise document.error((*path, key), f"belongs to {other}; leave it out")
    lines = {key: document.line((*path, key)) for key in given}
    folder = FilePath(document.file).resolve().parent
    return DataPlan(file=document.file, folder=folder, lines=lines, **given)


def _split(document: Document, path: Path, value: Any, data: DataPlan) -> SplitPlan:
    if value is None:
        return SplitPlan("given", {})
    if not isinstance(value, dict) or "kind" not in value:
        raise document.error(path, f"'kind' is missing; it is one of {', '.join(SPLITS)}")
    try:
        kind = choice("kind of split", SPLITS)(value["kind"])
    except ValueError as error:
        raise document.error((*path, "kind"), str(error)) from None
    options = read_mapping(document, path, value, {"kind": Key(text, ""), **SPLITS[kind].keys})
    del options["kind"]
    if kind != "given" and (data.test is not None or data.toy is not None):
        raise document.error(path, "the data have test rows of their own; leave the split out")
    return SplitPlan(kind, options)


def _steps(document: Document, path: Path, value: Any) -> tuple[StepPlan, ...]:
    if not isinstance(value, list) or not value:
        raise document.error(path, f"not a list of steps; the steps are {', '.join(STEPS)}")
    plans: list[StepPlan] = []
    for k, entry in enumerate(value):
        here = (*path, k)
        item = {entry: {}} if isinstance(entry, str) else entry
        if not isinstance(item, dict) or len(item) != 1:
            raise document.error(here, "not 'step: {options}'; write one step in each entry")
        ((name, options),) = item.items()
        if name not in STEPS:
            raise document.error(
                (*here, name),
                f"unknown step; the nearest known one is '{nearest(name, STEPS)}' "
                f"(steps: {', '.join(STEPS)})",
            )
        keys = {**STEPS[name].keys, "as": Key(text, "a name for its figures")}
        read = read_mapping(document, (*here, name), options or {}, keys)
        after = STEPS[name].after
        if after and all(plan.name not in after for plan in plans):
            words = "' or '".join(after)
            raise document.error((*here, name), f"needs the step '{words}' before it")
        label = label_of(name, read)
        if label == "data" or "." in label:
            raise document.error((*here, name, "as"), "a step cannot have this name")
        if any(plan.label == label and plan.name == name for plan in plans):
            raise document.error(
                (*here, name), f"a second '{label}'; give it another name with 'as: NAME'"
            )
        chosen = {key: item for key, item in read.items() if key != "as"}
        figures = (*STEPS[name].figures, *STEPS[name].names(chosen, plans))
        plans.append(StepPlan(name, label, chosen, figures))
    return tuple(plans)


def _check_steps(document: Document, path: Path, plan: Experiment) -> None:
    """Options that are right one by one have to go together, whatever is varied."""
    for variant in plan.variants():
        steps = plan.at(variant).steps
        for k, step in enumerate(steps):
            for key, message in STEPS[step.name].check(step.options, steps[:k]):
                where = (*path, "steps", k, step.name, *([key] if key else []))
                raise document.error(where, message)


def _vary(
    document: Document, path: Path, value: Any, steps: tuple[StepPlan, ...], data: DataPlan
) -> dict[str, list[Any]]:
    if not isinstance(value, dict):
        raise document.error(path, f"{shown(value)} is not a mapping; write 'train.cost: [1, 10]'")
    known = {
        f"{step.label}.{key}": entry
        for step in steps
        for key, entry in STEPS[step.name].keys.items()
    }
    if data.toy is not None:
        known |= {f"data.{key}": DATA_KEYS[key] for key in VARIABLE_DATA}
    result = {}
    for word, values in value.items():
        key = word.replace("-", "_")
        here = (*path, word)
        if key not in known:
            raise document.error(
                here, f"no such option; the nearest known one is '{nearest(key, known)}'"
            )
        if not isinstance(values, list) or not values:
            raise document.error(here, "not a list of values; write for example [0.1, 1, 10]")
        try:
            result[key] = [known[key].read(item) for item in values]
        except ValueError as error:
            raise document.error(here, str(error)) from None
    return result


def _check_rows(document: Document, path: Path, plan: Experiment) -> None:
    """A step that wants test rows must be able to get some."""
    has_test = plan.split.kind != "given" or plan.data.test is not None or plan.data.toy is not None
    for k, step in enumerate(plan.steps):
        if step.name == "predict" and step.options.get("rows", "test") == "test" and not has_test:
            raise document.error(
                (*path, "steps", k),
                "no test rows to predict; give 'data.test', a 'split', or 'rows: train'",
            )


def _expectations(
    document: Document, path: Path, value: Any, plan: Experiment
) -> tuple[Expectation, ...]:
    here = (*path, "expect")
    if not isinstance(value, list):
        raise document.error(
            here, "not a list; write '- {figure: ..., value: ..., tolerance: ...}'"
        )
    known = [f"{step.label}.{name}" for step in plan.steps for name in step.figures]
    result = []
    for k, entry in enumerate(value):
        given = read_mapping(document, (*here, k), entry, EXPECT_KEYS)
        figure = given["figure"]
        if not any(step.yields(figure) for step in plan.steps):
            raise document.error(
                (*here, k, "figure"),
                f"no step yields '{figure}'; the nearest figure is '{nearest(figure, known)}'",
            )
        for target, item in given.get("where", {}).items():
            if item not in plan.vary.get(target, []):
                raise document.error(
                    (*here, k, "where"), f"{target} = {shown(item)} is not among the varied values"
                )
        try:
            result.append(Expectation.make(**given))
        except SettingsError as error:
            raise document.error((*here, k), str(error)) from None
    return tuple(result)
