"""The types of option values: what is accepted, and what a refusal says.

A value that cannot be read is always an error (exit 2), never a silent default, and where the
value looks like the habit of another program the message names kfu's spelling.
"""

from __future__ import annotations

import math
import os
from typing import Any

import click

from kfu.cli.main import nearest
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec

# svm-train -t N and svm_learn -t N number the kernels.
NUMBERED_KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
GAMMA_RULES = ("auto", "scale", "median")


class Number(click.ParamType):
    """A finite number, at least ``minimum`` (above it when ``strict``), or inf where it may be."""

    def __init__(
        self,
        minimum: float | None = None,
        *,
        strict: bool = False,
        integer: bool = False,
        infinite: bool = False,
    ) -> None:
        self.minimum = minimum
        self.strict = strict
        self.integer = integer
        self.infinite = infinite
        self.name = "integer" if integer else "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = self.parse(value)
        if number is None:
            what = "a whole number" if self.integer else "a number"
            self.fail(f"'{value}' is not {what}; give {self.wanted()}", param, ctx)
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            self.fail(f"'{value}' is not finite; give {self.wanted()}", param, ctx)
        low = self.minimum
        if low is not None and (number < low or (self.strict and number == low)):
            self.fail(f"{value} is out of range; give {self.wanted()}", param, ctx)
        return number

    def parse(self, value: Any) -> float | int | None:
        if isinstance(value, bool):
            return None
        try:
            if not self.integer:
                return float(value)
            if isinstance(value, float):
                return int(value) if value == int(value) else None
            return int(value)
        except (TypeError, ValueError, OverflowError):
            return None

    def wanted(self) -> str:
        what = "a whole number" if self.integer else "a number"
        if self.minimum is None:
            return what
        return f"{what} {'>' if self.strict else '>='} {self.minimum:g}"


POSITIVE = Number(0, strict=True)
COST = Number(0, strict=True, infinite=True)
NON_NEGATIVE = Number(0)
PATH_VALUE = Number(0, infinite=True)
COUNT = Number(0, integer=True)
POSITIVE_COUNT = Number(1, integer=True)


class Threads(Number):
    """A number of threads, or a hint for who means LIBSVM's ``-t`` (the kernel)."""

    def __init__(self) -> None:
        super().__init__(0, integer=True)
        self.name = "threads"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self.parse(value) is None:
            self.fail(
                f"'{value}' is not a whole number: -t is --threads; kernels are chosen with -k",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


class Gamma(click.ParamType):
    """A positive number, or a rule that finds one in the data."""

    name = "gamma"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        if isinstance(value, str) and value.lower() in GAMMA_RULES:
            return value.lower()
        number = POSITIVE.parse(value)
        if number is None or not math.isfinite(number) or number <= 0:
            self.fail(
                f"'{value}' is not a gamma; give a number > 0, or one of the rules "
                f"auto (1/features), scale (1/(features x variance)), "
                f"median (1/median squared distance)",
                param,
                ctx,
            )
        return float(number)


class Name(click.ParamType):
    """One name of a registry (aliases included); a stranger is answered with the nearest."""

    def __init__(self, what: str, known: list[str], aliases: dict[str, str] | None = None) -> None:
        self.name = what
        self.known = known
        self.aliases = aliases or {}

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.name.upper()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value)
        word = self.aliases.get(word.lower(), word.lower())
        if word not in self.known:
            guess = self.hint(word) or nearest(word, [*self.known, *self.aliases])
            self.fail(
                f"no {self.name} '{value}'{guess}; choose from {', '.join(self.known)}",
                param,
                ctx,
            )
        return word

    def hint(self, word: str) -> str:
        return ""


class KernelName(Name):
    """A kernel of the registry, or the path of a YAML file that composes one.

    In a config file it may also be the mapping that such a YAML file holds, which is what the
    settings in a report say.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, (dict, KernelSpec)):
            try:
                return value if isinstance(value, KernelSpec) else KernelSpec.from_dict(value)
            except SettingsError as error:
                self.fail(str(error), param, ctx)
        if str(value).lower().endswith((".yaml", ".yml")):
            return str(value)
        return super().convert(value, param, ctx)

    def hint(self, word: str) -> str:
        numbered = NUMBERED_KERNELS.get(word)
        return f": kernels have names here, use -k {numbered}" if numbered else ""


class MachineName(Name):
    def hint(self, word: str) -> str:
        return ": -m is --machine; the cache is set with --cache-mib" if word.isdigit() else ""


class PositiveOrAuto(Number):
    """A number > 0, or the word auto."""

    def __init__(self) -> None:
        super().__init__(0, strict=True)
        self.name = "number|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)


class Multiclass(click.ParamType):
    """A code of kfu.multiclass, a single-machine formulation, or the path of a code matrix."""

    name = "code"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from kfu.machines.single_machine import SINGLE_MACHINES
        from kfu.multiclass import CODES, code_name

        word = str(value)
        if word.lower() in SINGLE_MACHINES:
            return word.lower()
        known = code_name(word)
        if known is not None:
            return known
        if os.path.exists(word) or os.sep in word or "." in word:
            return word
        choices = [*CODES, *SINGLE_MACHINES]
        self.fail(
            f"no multiclass code '{value}'{nearest(word, choices)}; choose from "
            f"{', '.join(choices)}, or give the file of a code matrix",
            param,
            ctx,
        )


class LabelColumn(click.ParamType):
    """A column by its number (1 is the first, -1 the last) or by its name in the header.

    Converted to what the readers take: an index from 0 (or negative, from the end), or a name.
    """

    name = "column"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        try:
            number = int(value)
        except (TypeError, ValueError):
            return str(value)
        if number == 0:
            self.fail("columns count from 1 (the first) or from -1 (the last), not 0", param, ctx)
        return number - 1 if number > 0 else number


class ClassWeight(click.ParamType):
    """``LABEL=WEIGHT``, or the word ``balanced``."""

    name = "label=weight"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | tuple[str, float]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text == "balanced":
            return text
        label, equals, weight = text.rpartition("=")
        number = POSITIVE.parse(weight) if equals and label else None
        if number is None or not math.isfinite(number) or number <= 0:
            self.fail(
                f"'{text}' is not LABEL=WEIGHT with a weight > 0; write for example "
                f"-w {label or text or '1'}=2, or -w balanced",
                param,
                ctx,
            )
        return label, float(number)


class Interval(click.ParamType):
    """``LO,HI`` with LO < HI."""

    name = "lo,hi"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        parts = list(value) if isinstance(value, (list, tuple)) else str(value).split(",")
        numbers = [POSITIVE.parse(part) for part in parts]
        if len(numbers) == 2:
            low, high = numbers
            if low is not None and high is not None and -math.inf < low < high < math.inf:
                return float(low), float(high)
        self.fail(f"'{value}' is not LO,HI with LO < HI; write for example 0,1", param, ctx)


class FeaturePair(click.ParamType):
    """``I,J``: two different feature numbers, counted from 1. Converted to indices from 0."""

    name = "i,j"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        try:
            first, second = (int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"'{value}' is not I,J; write for example 1,2", param, ctx)
        if first < 1 or second < 1 or first == second:
            self.fail(f"'{value}': features count from 1 and must differ", param, ctx)
        return first - 1, second - 1


class Several(click.ParamType):
    """One value of a type, or several with commas between them, to be tried in turn: a tuple."""

    def __init__(self, inner: click.ParamType) -> None:
        self.inner = inner
        self.name = f"{inner.name}[,...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):  # converted before
            return value
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or len(parts) == 1:
            single = parts[0] if isinstance(parts, list) else parts
            return self.inner.convert(single, param, ctx)
        if any(isinstance(part, str) and not part.strip() for part in parts):
            self.fail(f"'{value}' has an empty place; write for example 0.1,1,10", param, ctx)
        found = tuple(
            self.inner.convert(part.strip() if isinstance(part, str) else part, param, ctx)
            for part in parts
        )
        if len(set(found)) < len(found):
            self.fail(f"'{value}' names a value twice; keep one of them", param, ctx)
        return found
