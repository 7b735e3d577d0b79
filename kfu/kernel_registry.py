"""The registry of kernels, read from the compiled core, and the rules for their parameters."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu import _gram
from kfu.errors import SettingsError
from kfu.kernel_data import GAMMA_RULES


@dataclass(frozen=True)
class KernelEntry:
    """One kernel of the compiled list."""

    name: str
    formula: str
    parameters: dict[str, Any]  # name -> default; None = derived from the data
    is_per_feature: bool  # gamma is one value per feature
    needs_non_negative: bool
    is_psd: bool  # positive semidefinite whenever coef0 >= 0
    aliases: tuple[str, ...] = ()

    @property
    def is_precomputed(self) -> bool:
        return self.name == "precomputed"


ALIASES = {
    "polynomial": "poly",
    "gaussian": "rbf",
    "laplace": "laplacian",
    "tanh": "sigmoid",
    "rational-quadratic": "rational",
    "chi-squared": "chi2",
    "histogram": "intersection",
    "histogram-intersection": "intersection",
    "ard": "rbf-ard",
}

DEFAULTS = {"gamma": None, "coef0": 0.0, "degree": 3}

# Shorthands that become parameters: kernel -> {shorthand: (parameter, conversion)}.
SHORTHANDS = {"rbf": {"sigma": ("gamma", lambda sigma: 1.0 / (2.0 * sigma * sigma))}}


def _read_table() -> dict[str, KernelEntry]:
    kernels = {}
    for row in _gram.kernel_table():
        if row["is_internal"]:
            continue
        names = [name for name in ("gamma", "coef0", "degree") if row[f"has_{name}"]]
        kernels[row["name"]] = KernelEntry(
            name=row["name"],
            formula=row["formula"],
            parameters={name: DEFAULTS[name] for name in names},
            is_per_feature=row["is_per_feature"],
            needs_non_negative=row["needs_non_negative"],
            is_psd=row["is_psd"],
            aliases=tuple(alias for alias, name in ALIASES.items() if name == row["name"]),
        )
    return kernels


KERNELS: dict[str, KernelEntry] = _read_table()


def nearest(word: str, known: Iterable[str]) -> str:
    """ " (did you mean ...?)" with the closest known word, or the list of them."""
    known = sorted(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"


def kernel_name(name: str) -> str:
    """The registry name of a kernel or of an alias."""
    name = ALIASES.get(name, name)
    if name not in KERNELS:
        raise SettingsError(f"unknown kernel {name!r}; {nearest(name, [*KERNELS, *ALIASES])}")
    return name


def _number(kernel: str, key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingsError(f"{kernel}: {key} is {value!r}; a number is needed") from None
    if not math.isfinite(number):
        raise SettingsError(f"{kernel}: {key} is {value!r}; a finite number is needed")
    return number


def positive(kernel: str, key: str, value: Any) -> float:
    number = _number(kernel, key, value)
    if number <= 0.0:
        raise SettingsError(f"{kernel}: {key} is {value!r}; it must be greater than 0")
    return number


def _gamma(entry: KernelEntry, value: Any) -> float | str | tuple[float, ...]:
    if isinstance(value, str) and value in GAMMA_RULES:
        return value
    if isinstance(value, list | tuple | np.ndarray):
        if not entry.is_per_feature:
            remedy = "choose rbf-ard or poly-ard for one gamma per feature"
            raise SettingsError(f"kernel {entry.name}: gamma is a list; {remedy}")
        return tuple(positive(f"kernel {entry.name}", "gamma", g) for g in value)
    return positive(f"kernel {entry.name}", "gamma", value)


def _degree(entry: KernelEntry, value: Any) -> int:
    number = _number(f"kernel {entry.name}", "degree", value)
    if number != int(number) or not 1 <= number <= 1000:
        raise SettingsError(
            f"kernel {entry.name}: degree is {value!r}; an integer from 1 to 1000 is needed"
        )
    return int(number)


def _coef0(entry: KernelEntry, value: Any) -> float:
    return _number(f"kernel {entry.name}", "coef0", value)


CHECKS = {"gamma": _gamma, "coef0": _coef0, "degree": _degree}
