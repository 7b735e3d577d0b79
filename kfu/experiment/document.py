"""A YAML file read so that every value knows its line, and checked against a table of keys.

Scalars follow YAML 1.2's core schema rather than the older one: `1e-3` is a number, and `on`,
`yes` and `no` are words. Keys may be written with `-` or `_`. Whatever is wrong is one
SettingsError, `file:line: path: what was found; what to do`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

import yaml

from kfu.errors import SettingsError
from kfu.io.source import reason_of

Path = tuple[str | int, ...]


class Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


TAG = "tag:yaml.org,2002:"
NUMBER = r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$|^[-+]?\.inf$|^\.nan$"
for kind, pattern, first in (
    ("bool", r"^(?:true|True|false|False)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", NUMBER, "-+.0123456789"),
    ("null", r"^(?:~|null|Null|)$", ["~", "n", "N", ""]),
    ("merge", r"^<<$", "<"),
):
    Loader.add_implicit_resolver(TAG + kind, re.compile(pattern), list(first))

SCALARS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    "null": lambda text: None,
    "str": str,
}


def dotted(path: Path) -> str:
    """`("experiments", 0, "data", "train")` -> `experiments[0].data.train`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`."""
    return max(known, key=lambda other: SequenceMatcher(None, word.lower(), other).ratio())


@dataclass
class Document:
    """The plain values of a YAML file (`root`) and the line of each (`lines`)."""

    file: str
    root: Any = None
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """The line of `path`, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def error(self, path: Path, message: str) -> SettingsError:
        line = self.line(path)
        where = self.file if line is None else f"{self.file}:{line}"
        what = f"{dotted(path)}: " if path else ""
        return SettingsError(f"{where}: {what}{message}")


def read_document(file: str) -> Document:
    """Read `file`; see the head of this module."""
    document = Document(file)
    loader = None
    try:
        with open(file, encoding="utf-8") as stream:
            loader = Loader(stream.read())
        node = loader.get_single_node()
        document.root = _value(document, loader, node, (), [])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}" if mark else file
        raise SettingsError(f"{where}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError:
        raise SettingsError(f"{file}: not valid YAML; give a text file") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: not a text file; give a YAML file") from None
    except OSError as error:
        raise SettingsError(f"{file}: {reason_of(error)}; give the path of a YAML file") from None
    finally:
        if loader is not None:
            loader.dispose()
    return document


def _value(document: Document, loader: Loader, node: Any, path: Path, above: list[int]) -> Any:
    """The plain value of a YAML node; `above` holds the nodes it lies in."""
    if node is None:
        return None
    document.lines.setdefault(path, node.start_mark.line + 1)
    if id(node) in above:
        raise document.error(path, "an alias that contains itself; write the value out")
    inside = [*above, id(node)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(document, loader, node, path, inside)
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(document, loader, item, (*path, k), inside) for k, item in enumerate(node.value)
        ]
    tag = node.tag.removeprefix(TAG)
    if tag not in SCALARS:
        raise document.error(path, f"a value of type {node.tag}; use text, numbers, true or false")
    return SCALARS[tag](node.value)


def _mapping(
    document: Document, loader: Loader, node: Any, path: Path, above: list[int]
) -> dict[str, Any]:
    written: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise document.error(path, "a key that is a list or a mapping; keys are words")
        word = key.value
        if word in written and key.tag != TAG + "merge":
            document.lines[(*path, word)] = key.start_mark.line + 1
            raise document.error((*path, word), "given twice; keep one of them")
        written.add(word)
    loader.flatten_mapping(node)  # puts what `<<` merges first, so that own keys win
    result: dict[str, Any] = {}
    for key, item in node.value:
        document.lines[(*path, key.value)] = key.start_mark.line + 1
        result[key.value] = _value(document, loader, item, (*path, key.value), above)
    return result


# ---- tables of keys -------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """One key: how its value is read (a ValueError says what is wrong) and what it means."""

    read: Callable[[Any], Any]
    about: str
    required: bool = False


def read_mapping(
    document: Document, path: Path, value: Any, keys: Mapping[str, Key]
) -> dict[str, Any]:
    """`value` checked against `keys`; the result holds the keys that were given, with `_`."""
    if not isinstance(value, dict):
        raise document.error(path, f"{shown(value)} is not a mapping; write {listed(keys)}")
    result: dict[str, Any] = {}
    for word, item in value.items():
        key = word.replace("-", "_")
        here = (*path, word)
        if key not in keys:
            raise document.error(
                here,
                f"unknown key; the nearest known one is '{nearest(key, keys)}' "
                f"(keys here: {', '.join(keys)})",
            )
        if key in result:
            raise document.error(here, "given twice; keep one of them")
        try:
            result[key] = keys[key].read(item)
        except ValueError as error:
            raise document.error(here, str(error)) from None
    for key, entry in keys.items():
        if entry.required and key not in result:
            raise document.error(path, f"'{key}' is missing; it says {entry.about}")
    return result


def listed(keys: Iterable[str]) -> str:
    return ", ".join(f"'{key}: ...'" for key in keys)


def shown(value: Any) -> str:
    """A value in a message: short, and as YAML writes it."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'"


def text(value: Any) -> str:
    if isinstance(value, (dict, list)) or value is None:
        raise ValueError(f"{shown(value)} is not text; write a word or a 'quoted text'")
    return str(value)


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{shown(value)} is not a number; give a number")
    if not math.isfinite(value):
        raise ValueError(f"{value} is not finite; give a finite number")
    return float(value)


def positive(value: Any) -> float:
    result = number(value)
    if result <= 0:
        raise ValueError(f"{value} is out of range; give a number > 0")
    return result


def non_negative(value: Any) -> float:
    result = number(value)
    if result < 0:
        raise ValueError(f"{value} is out of range; give a number >= 0")
    return result


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{shown(value)} is not a count; give a whole number >= 0")
    return value


def positive_count(value: Any) -> int:
    if count(value) == 0:
        raise ValueError("0 is out of range; give a whole number >= 1")
    return int(value)


def fraction(value: Any) -> float:
    result = number(value)
    if not 0 < result < 1:
        raise ValueError(f"{value} is out of range; give a fraction between 0 and 1")
    return result


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not a switch; write true or false")
    return value


def anything(value: Any) -> Any:
    return value


def choice(what: str, known: Iterable[str]) -> Callable[[Any], str]:
    """A reader of one of `known`."""
    names = list(known)

    def read(value: Any) -> str:
        word = text(value)
        if word not in names:
            raise ValueError(
                f"no {what} '{word}'; the nearest is '{nearest(word, names)}' "
                f"(there are {', '.join(names)})"
            )
        return word

    return read
