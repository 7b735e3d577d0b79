"""Executing experiments: parts, resuming, results.

A *part* is one variant, repetition and fold: the unit that is computed and stored. Its result goes
to `OUTPUT/parts/KEY.json`, KEY being a hash of everything the result depends on (the rows'
contents, split, steps, seed, kfu's version). A run therefore continues where an earlier one was
stopped or killed, repeats only what a changed description changes, and never mixes results of two
descriptions. `results.json` holds everything and is rewritten at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from kfu._version import __version__
from kfu.errors import SettingsError
from kfu.experiment.data import SPLITS, Rows, load_rows
from kfu.experiment.expect import Summary, Verdict, judge
from kfu.experiment.plan import Experiment
from kfu.experiment.steps import STEPS, State
from kfu.io.json_values import plain
from kfu.report import write_json

RESULTS_FORMAT = "kfu-run"
RESULTS_VERSION = 1


@dataclass(frozen=True)
class Part:
    """One unit of work: which variant, repetition and fold."""

    variant: int
    repetition: int
    fold: int


@dataclass
class PartResult:
    """The figures of a part, and whether training converged."""

    figures: dict[str, float]
    status: str | None = None
    warnings: list[str] = field(default_factory=list)
    has_model: bool | None = None  # whether the model was kept; None: it was not asked for
    is_stored: bool = False  # read from an earlier run
    curves: dict[str, list[float]] = field(default_factory=dict)  # by roc step


@dataclass
class ExperimentResult:
    """What came out: for each variant its figures, and a verdict for each expectation."""

    plan: Experiment
    parts: dict[Part, PartResult]
    figures: list[dict[str, Summary]]
    verdicts: list[Verdict]
    model_file: Path | None = None  # the model of the first part

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)

    @property
    def converged(self) -> bool:
        return all(part.status in (None, "converged") for part in self.parts.values())

    @property
    def n_stored(self) -> int:
        return sum(part.is_stored for part in self.parts.values())

    def warnings(self) -> list[str]:
        """Each message once, in the order of the parts."""
        return list(dict.fromkeys(text for part in self.parts.values() for text in part.warnings))

    def to_dict(self) -> dict[str, Any]:
        variants = self.plan.variants()
        return {
            "name": self.plan.name,
            "about": self.plan.about,
            "description": description_of(self.plan),
            "source": self.plan.data.source,
            "holds": self.holds,
            "converged": self.converged,
            "expect": [verdict.to_dict() for verdict in self.verdicts],
            "variants": [
                {"vary": variant, "figures": {name: item.to_dict() for name, item in group.items()}}
                for variant, group in zip(variants, self.figures, strict=True)
            ],
            "parts": [
                {
                    "vary": variants[part.variant],
                    "repetition": part.repetition,
                    "fold": part.fold,
                    "status": result.status,
                    "figures": result.figures,
                }
                for part, result in self.parts.items()
            ],
            "warnings": self.warnings(),
        }


# Called before each part with (experiment, how many parts are done, how many there are).
Progress = Callable[[Experiment, int, int], None]


def parts_of(plan: Experiment) -> list[Part]:
    n_folds = SPLITS[plan.split.kind].n_parts(plan.split.options)
    return [
        Part(v, r, k)
        for v in range(len(plan.variants()))
        for r in range(plan.repetitions)
        for k in range(n_folds)
    ]


def description_of(plan: Experiment) -> dict[str, Any]:
    """What the results depend on, apart from the rows themselves; plain values."""
    return {
        "split": {"kind": plan.split.kind, **plan.split.options},
        "steps": [{step.name: step.options, "label": step.label} for step in plan.steps],
        "seed": plan.seed,
        "repetitions": plan.repetitions,
        "vary": plan.vary,
    }


def key_of(plan: Experiment, part: Part, fingerprint: dict[str, Any]) -> str:
    """The name under which the result of a part is stored."""
    at = plan.at(plan.variants()[part.variant])
    content = {
        "kfu": __version__,
        "format": RESULTS_VERSION,
        "data": fingerprint,
        "split": [at.split.kind, at.split.options],
        "steps": [[step.name, step.label, step.options] for step in at.steps],
        "seed": [at.seed, part.repetition, part.fold],
    }
    text = json.dumps(plain(content), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Runner:
    """Runs experiments into one output folder."""

    def __init__(
        self,
        output: Path,
        *,
        threads: int = 0,
        force: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.output = output
        self.threads = threads
        self.force = force
        self.progress = progress
        # Files are the same for every part; toys differ by repetition and are small.
        self._files: tuple[str, Rows] | None = None

    def run(self, plan: Experiment) -> ExperimentResult:
        """Compute or fetch every part of `plan` and judge its expectations."""
        parts_folder = self.output / "parts"
        parts_folder.mkdir(parents=True, exist_ok=True)
        results: dict[Part, PartResult] = {}
        first_model: Path | None = None
        parts = parts_of(plan)
        prints = [plan.at(variant).data.fingerprint() for variant in plan.variants()]
        for done, part in enumerate(parts):
            if self.progress is not None:
                self.progress(plan, done, len(parts))
            file = parts_folder / f"{key_of(plan, part, prints[part.variant])}.json"
            model_file = file.with_suffix(".kfu") if done == 0 else None
            stored = None if self.force else read_part(file, model_file)
            if stored is None:
                stored = self.run_part(plan, part, prints[part.variant], model_file)
                write_json(str(file), part_to_dict(stored))
            results[part] = stored
            if model_file is not None and stored.has_model:
                first_model = model_file
        if self.progress is not None:
            self.progress(plan, len(parts), len(parts))
        return conclude(plan, results, first_model)

    def first_rows(self, plan: Experiment) -> Rows:
        """The rows of the first part, which its model was trained on."""
        at = plan.at(plan.variants()[0])
        return self.rows_of(at, Part(0, 0, 0), at.data.fingerprint())

    def run_part(
        self, plan: Experiment, part: Part, fingerprint: dict[str, Any], model_file: Path | None
    ) -> PartResult:
        """Compute a part; its model goes to `model_file` when one is named."""
        at = plan.at(plan.variants()[part.variant])
        rows = self.rows_of(at, part, fingerprint)
        state = State(rows.train, rows.test, seed=[at.seed, part.repetition], threads=self.threads)
        figures: dict[str, float] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for step in at.steps:
                state.label = step.label
                try:
                    found = STEPS[step.name].run(dict(step.options), state)
                except SettingsError as error:
                    where = f"experiment {plan.name}, step {step.name}"
                    raise SettingsError(f"{where}: {error}") from None
                figures |= {f"{step.label}.{name}": value for name, value in found.items()}
                state.figures = figures
        state.warnings += [str(item.message) for item in caught]
        result = PartResult(figures, state.status, state.warnings, curves=state.curves)
        if model_file is not None:
            result.has_model = keep_model(model_file, state)
        return result

    def rows_of(self, at: Experiment, part: Part, fingerprint: dict[str, Any]) -> Rows:
        """The training and test rows of a part."""
        seed = [at.seed, part.repetition]
        if at.data.toy is not None:
            rows = load_rows(at.data, seed)
        else:
            key = json.dumps(plain(fingerprint), sort_keys=True)
            if self._files is None or self._files[0] != key:
                self._files = (key, load_rows(at.data, seed))
            rows = self._files[1]
        return SPLITS[at.split.kind].rows_of(rows, at.split.options, part.fold, seed)


def keep_model(file: Path, state: State) -> bool:
    """Save the model so that it takes rows as the files have them; False when there is none.

    A model trained behind a `scale` step gets that scaler; with two scalings one after the other
    no single scaler says it, and the model is not kept.
    """
    model = state.model
    if model is None or (state.scaler is not None and model.scaler is not None):
        return False
    if state.scaler is not None:
        model = replace(model, scaler=state.scaler)
    model.save(str(file))
    return True


def conclude(
    plan: Experiment, parts: dict[Part, PartResult], model_file: Path | None
) -> ExperimentResult:
    """Summaries and verdicts of finished parts."""
    variants = plan.variants()
    figures: list[dict[str, Summary]] = [
        {
            name: Summary([part.figures[name] for part in group if name in part.figures])
            for name in dict.fromkeys(name for part in group for name in part.figures)
        }
        for v in range(len(variants))
        for group in [[result for part, result in parts.items() if part.variant == v]]
    ]
    verdicts = [
        verdict
        for expectation in plan.expect
        for variant, group in zip(variants, figures, strict=True)
        if (verdict := judge(expectation, variant, group)) is not None
    ]
    return ExperimentResult(plan, parts, figures, verdicts, model_file)


def part_to_dict(result: PartResult) -> dict[str, Any]:
    return {
        "figures": result.figures,
        "status": result.status,
        "warnings": result.warnings,
        "has_model": result.has_model,
        "curves": result.curves,
    }


def read_part(file: Path, model_file: Path | None) -> PartResult | None:
    """A stored part; None when there is none, or what is there is not one or lacks its model."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        figures = {str(name): float(value) for name, value in content["figures"].items()}
        result = PartResult(
            figures, content["status"], list(content["warnings"]), content["has_model"], True
        )
        result.curves = {name: list(map(float, v)) for name, v in content["curves"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if model_file is not None and result.has_model is not False:
        return result if result.has_model and model_file.is_file() else None
    return result


def write_results(output: Path, config: str, results: list[ExperimentResult]) -> Path:
    """Write OUTPUT/results.json, atomically."""
    file = output / "results.json"
    content = {
        "format": RESULTS_FORMAT,
        "version": RESULTS_VERSION,
        "config": os.path.basename(config),
        "versions": {"kfu": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
        "holds": all(result.holds for result in results),
        "experiments": [result.to_dict() for result in results],
    }
    write_json(str(file), content)
    return file


def check_output(output: Path) -> None:
    """Fail before the work when the folder cannot be made or written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SettingsError(f"{output}: is not a folder; choose another with -o") from None
    if not os.access(output, os.W_OK):
        raise SettingsError(f"{output}: not writable; choose another with -o")
