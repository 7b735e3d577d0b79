"""Every estimate of a trained machine, in one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu.data import format_label
from kfu.errors import SettingsError
from kfu.estimates.constrained_span import SPAN_BOUND, SPAN_EXACT
from kfu.estimates.exact import EXACT
from kfu.estimates.gacv import GACV
from kfu.estimates.least_squares import GCV, RLSC_BOUND
from kfu.estimates.radius_margin import RADIUS_MARGIN, RADIUS_VARIANCE
from kfu.estimates.registry import MOST_WORK, Entry, Estimate, Found, Options
from kfu.estimates.risk_bounds import STABILITY, VALIDATION, VC
from kfu.estimates.span import SPAN, SPAN_SMOOTH
from kfu.estimates.support import JAAKKOLA_HAUSSLER, OPPER_WINTHER, SV_COUNT
from kfu.estimates.trained import Trained
from kfu.estimates.xi_alpha import XI_ALPHA
from kfu.kernel_registry import nearest
from kfu.report import figure

ESTIMATES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        EXACT,
        SPAN,
        SPAN_EXACT,
        SPAN_SMOOTH,
        SPAN_BOUND,
        SV_COUNT,
        JAAKKOLA_HAUSSLER,
        OPPER_WINTHER,
        XI_ALPHA,
        RADIUS_MARGIN,
        RADIUS_VARIANCE,
        GACV,
        RLSC_BOUND,
        GCV,
        VC,
        STABILITY,
        VALIDATION,
    )
}
NEW_ROWS = "error on new rows"  # of bounds that leave no row out
FEW_ROWS = 3  # of a class, below which estimates hang on single rows


@dataclass
class LeaveOneOut:
    """The estimates of one machine, in the order of ESTIMATES, and what is to be said of them."""

    machine: str
    n: int
    estimates: list[Estimate]
    train_error: float
    warnings: list[str] = field(default_factory=list)
    test_error: float | None = None

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise KeyError(name)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __contains__(self, name: object) -> bool:
        return any(estimate.name == name for estimate in self.estimates)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and cells; notes last."""
        rows = [
            [e.name, figure(e.value), e.what, f"{e.seconds:.3f}", "" if e.valid else "no", e.note]
            for e in self.estimates
        ]
        return ["estimate", "value", "what", "seconds", "holds", "note"], rows

    def __str__(self) -> str:
        header, rows = self.table()
        body = [header, *rows]
        widths = [max(len(row[k]) for row in body) for k in range(len(header))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in body]
        return "\n".join(line.rstrip() for line in lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "estimates": [estimate.to_dict() for estimate in self.estimates],
            "train_error": self.train_error,
            "test_error": self.test_error,
        }


def chosen_entries(trained: Trained, names: Iterable[str] | None, options: Options) -> list[Entry]:
    """The entries asked for (SettingsError for one there is not), or those that apply."""
    if names is not None:
        wanted = list(names)
        for name in wanted:
            if name not in ESTIMATES:
                raise SettingsError(f"no estimate {name!r}; {nearest(name, ESTIMATES)}")
        return [entry for entry in ESTIMATES.values() if entry.name in wanted]
    return [
        entry
        for entry in ESTIMATES.values()
        if trained.machine in entry.machines and (options.test is not None or not entry.needs_test)
    ]


def find_estimates(
    trained: Trained,
    names: Iterable[str] | None = None,
    options: Options | None = None,
    on_start: Callable[[str], Any] | None = None,
) -> LeaveOneOut:
    """The estimates `names` (None: all that apply and do not take long) of a trained machine."""
    options = options or Options()
    asked = names is not None
    found: list[Estimate] = []
    for entry in chosen_entries(trained, names, options):
        if on_start is not None:
            on_start(entry.name)
        found += _estimated(entry, trained, options, asked)
    return LeaveOneOut(
        trained.machine,
        trained.task.n,
        found,
        trained.score(trained.decision),
        _warnings(trained),
        None if options.test is None else options.test[0],
    )


def _estimated(entry: Entry, trained: Trained, options: Options, asked: bool) -> list[Estimate]:
    begin = time.perf_counter()
    parts = _computed(entry, trained, options, asked)
    seconds = time.perf_counter() - begin
    return [
        Estimate(
            name=f"{entry.name}-{part.suffix}" if part.suffix else entry.name,
            value=_finite(part.value),
            of=part.of or entry.of,
            kind=entry.kind,
            valid=part.valid and part.value is not None and bool(np.isfinite(part.value)),
            seconds=seconds if number == 0 else 0.0,
            note=part.note,
            outputs=part.outputs,
            flags=part.flags,
        )
        for number, part in enumerate(parts)
    ]


def _computed(entry: Entry, trained: Trained, options: Options, asked: bool) -> list[Found]:
    if trained.machine not in entry.machines:
        owners = ", ".join(entry.machines)
        return [Found(None, f"is for the machines {owners}, not for {trained.machine}", False)]
    method = trained.task.options.get("approximation", "none")
    reason = None
    if entry.needs_full_kernel and method != "none":
        reason = f"known for the full kernel, not for {method}"
    if trained.counted.size < 2 and entry.of != NEW_ROWS:
        reason = "one row: without it there is nothing to train on"
    reason = reason or entry.refuses(trained)
    if reason is None and entry.needs_psd and trained.indefinite is not None:
        reason = f"{trained.indefinite}, which the theorem needs"
    if reason is not None:
        return [Found(None, reason, False)]
    if not asked and entry.size(trained) > MOST_WORK:
        return [
            Found(None, f"left out, it would take long: ask with --estimate {entry.name}", False)
        ]
    parts = entry.compute(trained, options)
    return parts if isinstance(parts, list) else [parts]


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _warnings(trained: Trained) -> list[str]:
    found = []
    task = trained.task
    if task.labels is not None:
        counts = np.bincount(task.labels[trained.counted], minlength=len(task.classes))
        for label, count in zip(task.classes, counts, strict=True):
            if count < FEW_ROWS:
                rows = "1 row" if count == 1 else f"{count} rows"
                found.append(
                    f"class {format_label(label)} has {rows}: without one of them it is hardly "
                    "there, and estimates hang on single rows"
                )
    if trained.indefinite is not None:
        found.append(f"{trained.indefinite}: theorems do not hold; exact leave-one-out does")
    status = trained.model.info.get("status", "converged")
    if status != "converged":
        found.append(
            f"training stopped before convergence ({status}); estimates are of what it had"
        )
    return found
