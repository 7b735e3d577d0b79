"""What ``kfu cv`` says: its report, its summary, and the rows it writes."""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from kfu.data import Dataset, format_label
from kfu.io.atomic import atomic_output
from kfu.machine_kinds import CLASSIFIER, RANKER, REGRESSOR
from kfu.machines import MACHINES
from kfu.report import Confusion, figure, peak_rss_mib, print_facts, print_table
from kfu.validation import corrected_resampled_t_test
from kfu.validation.cross_validation import CrossValidation
from kfu.validation.folds import Folds

MAIN_SCORE = {CLASSIFIER: "error", REGRESSOR: "mse", RANKER: "pair_error"}
SHOWN_FOLDS = 20
COUNTERS = ("iterations", "kernel_evaluations", "rounds")


def report_of(
    found: CrossValidation, dataset: Dataset, opts: dict[str, Any], seconds: float, said: list[str]
) -> dict[str, Any]:
    kind = MACHINES[opts["machine"]].kind
    content: dict[str, Any] = {
        "status": "done",
        "machine": opts["machine"],
        "n": dataset.n,
        "n_features": dataset.n_features,
        "n_folds": len(found.folds),
        "repeats": opts["repeats"],
    }
    for name in found.score_names:
        content[name] = found.mean(name)
        content[f"{name}_std"] = found.std(name)
    if kind == CLASSIFIER:
        content |= pooled(found, dataset)
    content["folds"] = [
        {
            **fold.scores,
            "n_train": fold.info["n_train"],
            "n_test": fold.info["n_test"],
            "status": fold.info.get("status"),
            **{name: fold.info.get(name) for name in ("n_sv", "iterations")},
        }
        for fold in found.folds
    ]
    counted = [name for name in COUNTERS if found.folds[0].info.get(name) is not None]
    content |= {name: int(found.total(name)) if name in counted else None for name in COUNTERS}
    content |= {"seconds": seconds, "peak_rss_mib": peak_rss_mib(), "warnings": list(said)}
    return content


def pooled(found: CrossValidation, dataset: Dataset) -> dict[str, Any]:
    """All test predictions counted together."""
    confusion = Confusion(found.classes)
    position = {value: k for k, value in enumerate(found.classes.tolist())}
    for fold in found.folds:
        assert dataset.y is not None
        winners = np.array([position[value] for value in fold.predicted.tolist()], dtype=np.int64)
        confusion.add(dataset.y[fold.test], winners)
    summary = confusion.summary()
    return {
        "pooled_error": summary["error"],
        "n_errors": confusion.n_labelled - confusion.n_correct,
        "per_class": summary["per_class"],
        "confusion": confusion.table(),
    }


def main_score(machine: str, found: CrossValidation) -> str:
    """The score that learners are compared by; less is better."""
    return MAIN_SCORE.get(MACHINES[machine].kind, found.score_names[0])


def comparison(
    found: CrossValidation, rival: CrossValidation, folds: Folds, opts: dict[str, Any], path: str
) -> dict[str, Any]:
    score = main_score(opts["machine"], found)
    differences = np.array(
        [a.scores[score] - b.scores[score] for a, b in zip(found.folds, rival.folds, strict=True)]
    )
    differences = differences[np.isfinite(differences)]  # folds with nothing to judge
    content: dict[str, Any] = {
        "file": path,
        "score": score,
        "mean": rival.mean(score),
        "std": rival.std(score),
        "difference": float(differences.mean()) if differences.size else None,
    }
    if len(differences) > 1:
        n_test = float(np.mean([fold.info["n_test"] for fold in found.folds]))
        test = corrected_resampled_t_test(differences, folds.n - n_test, n_test)
        content |= {
            "t": test.statistic,
            "p_value": test.p_value,
            "low": test.low,
            "high": test.high,
        }
    return content


def write_rows(path: str, dataset: Dataset, found: CrossValidation) -> None:
    """One line for each tested row: fold, row (from 1), label, prediction, outputs."""
    with atomic_output(path) as stream:
        width = found.folds[0].decision.shape[1]
        names = ["fold", "row", "label", "predicted", *(f"output{k + 1}" for k in range(width))]
        stream.write(("# " + "\t".join(names) + "\n").encode())
        for number, fold in enumerate(found.folds, start=1):
            write_fold(stream, number, fold, dataset)


def write_fold(stream: IO[bytes], number: int, fold: Any, dataset: Dataset) -> None:
    for k, row in enumerate(fold.test.tolist()):
        label = "?" if dataset.y is None else format_label(dataset.y[row])
        said = format_label(fold.predicted[k])
        outputs = "\t".join(map(repr, fold.decision[k].tolist()))
        stream.write(f"{number}\t{row + 1}\t{label}\t{said}\t{outputs}\n".encode())


def unfinished_folds(every: list[CrossValidation]) -> list[str]:
    folds = [fold for found in every for fold in found.folds]
    states = [f.info.get("status") for f in folds if f.info.get("status") != "converged"]
    if not states:
        return []
    return [f"{len(states)} of {len(folds)} folds stopped before convergence ({states[0]})"]


def print_summary(content: dict[str, Any]) -> None:
    facts: list[tuple[str, Any]] = [
        ("folds", f"{content['n_folds']} of {content['n']} rows"),
    ]
    for name in ("error", "accuracy", "mse", "mae", "r2", "ndcg", "pair_error", "outliers"):
        if name in content:
            spread = content[f"{name}_std"]
            shown = figure(content[name])
            few = content["n_folds"] == content["n"] or not np.isfinite(spread)
            facts.append((name.replace("_", " "), shown if few else f"{shown} ± {figure(spread)}"))
    if "n_errors" in content:
        facts.append(("errors", content["n_errors"]))
    if content["iterations"] is not None:
        facts.append(("iterations", content["iterations"]))
    facts.append(("seconds", f"{content['seconds']:.3f}"))
    print_facts(facts)
    if content["n_folds"] <= SHOWN_FOLDS:
        names = [name for name in content["folds"][0] if name != "status"]
        rows = [
            [str(k), *(figure(fold[name]) for name in names)]
            for k, fold in enumerate(content["folds"], start=1)
        ]
        print_table(["fold", *names], rows)
    rival = content.get("against")
    if rival is not None:
        lines = [
            ("against", rival["file"]),
            (f"its {rival['score']}", f"{figure(rival['mean'])} ± {figure(rival['std'])}"),
            ("difference", rival["difference"]),
        ]
        if "p_value" in rival:
            lines.append(("p-value (corrected t)", rival["p_value"]))
        print_facts(lines)
