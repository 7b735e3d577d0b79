"""The codes by which a problem of many classes is dealt to binary machines.

``code[k, m]`` is +1 where machine m takes class k as positive, -1 where as negative, 0 where it
does not see the class; classes are in the order of their sorted labels. Two classes need one
machine: every named code is then [[-1], [1]].

References: Rifkin and Klautau, *In defense of one-vs-all classification*, JMLR 5 (2004); Allwein,
Schapire and Singer, *Reducing multiclass to binary*, JMLR 1 (2000); Dietterich and Bakiri, *Solving
multiclass learning problems via error-correcting output codes*, JAIR 2 (1995).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from kfu.errors import SettingsError
from kfu.multiclass.bch import bch_code
from kfu.multiclass.code_file import read_code
from kfu.multiclass.code_matrix import binary_code, check_code, code_distance
from kfu.multiclass.random_codes import complete_columns, dense_code, n_partitions, sparse_code
from kfu.pairwise import ovo_code

__all__ = [
    "CODES",
    "CODE_ALIASES",
    "Code",
    "code_distance",
    "code_name",
    "complete_code",
    "default_decoding",
    "ova_code",
    "read_code",
    "resolve_code",
]

COMPLETE_CLASSES = 15  # the complete code of more has over 16383 columns


@dataclass(frozen=True)
class Code:
    """A family of codes: one for each number of classes (and seed, if it is random)."""

    name: str
    summary: str
    build: Callable[[int, int], np.ndarray]  # (n_classes, seed) -> code
    decoding: str  # the usual one; "hinge" stands for the loss the machines are trained with
    is_random: bool = False


def ova_code(n_classes: int) -> np.ndarray:
    """Each class against the rest: 2I - 1."""
    if n_classes == 2:
        return binary_code()
    return (2 * np.eye(n_classes, dtype=np.int8) - 1).astype(np.int8)


def complete_code(n_classes: int) -> np.ndarray:
    """Every way to part the classes in two; ρ = 2^(K-2)."""
    if n_classes > COMPLETE_CLASSES:
        raise SettingsError(
            f"the complete code of {n_classes} classes has {n_partitions(n_classes)} columns, each "
            f"a machine to train; it is offered up to {COMPLETE_CLASSES} classes: take a dense code"
        )
    return complete_columns(n_classes)


def _unseeded(build: Callable[[int], np.ndarray]) -> Callable[[int, int], np.ndarray]:
    return lambda n_classes, seed: build(n_classes)


CODES: dict[str, Code] = {
    code.name: code
    for code in (
        Code("ova", "one machine per class, against all others", _unseeded(ova_code), "argmax"),
        Code("ava", "one machine for each pair of classes", _unseeded(ovo_code), "votes"),
        Code("complete", "every way to part the classes in two", _unseeded(complete_code), "hinge"),
        Code("dense", "10 log2 K random columns of +1, -1", dense_code, "hinge", True),
        Code("sparse", "15 log2 K random columns of +1, -1, 0", sparse_code, "hinge", True),
        Code("bch", "words of a BCH error-correcting code", _unseeded(bch_code), "hinge"),
        *(
            Code(
                f"bch{length}",
                f"words of a BCH code of length {length}",
                _unseeded(partial(bch_code, length=length)),
                "hinge",
            )
            for length in (15, 31, 63, 127)
        ),
    )
}

CODE_ALIASES = {
    "one-vs-all": "ova",
    "one-vs-rest": "ova",
    "ovr": "ova",
    "all-pairs": "ava",
    "one-vs-one": "ava",
    "ovo": "ava",
    "comp": "complete",
    "den": "dense",
    "spa": "sparse",
}


def code_name(name: str) -> str | None:
    """The name in CODES that is meant, None if there is none; case, _ and - do not matter."""
    plain = name.strip().lower().replace("_", "-")
    plain = CODE_ALIASES.get(plain, plain)
    return plain if plain in CODES else None


def resolve_code(
    source: str | os.PathLike[str] | np.ndarray | list[list[int]], n_classes: int, seed: int = 0
) -> tuple[np.ndarray, str]:
    """The code meant by a name, the path of a file or a matrix; and its name.

    The name of a file's code is its path, that of a matrix "custom". A file called like a code is
    reached by a path with a folder (./ova). SettingsError or, for files, DataError.
    """
    if n_classes < 2:
        raise SettingsError(f"{n_classes} class in the data; a code needs at least two")
    if isinstance(source, os.PathLike):
        return read_code(source, n_classes), os.fspath(source)
    if not isinstance(source, str):
        return check_code(source, n_classes), "custom"
    name = code_name(source)
    if name is not None:
        if seed < 0:
            raise SettingsError(f"seed {seed} is negative; use an integer from 0")
        return CODES[name].build(n_classes, seed), name
    if source == "-" or os.path.exists(source) or os.sep in source or "." in source:
        return read_code(source, n_classes), source
    raise SettingsError(
        f"unknown code {source!r}; choose {', '.join(CODES)}, or give the file of a code matrix"
    )


def default_decoding(name: str, code: np.ndarray, loss: str = "hinge") -> str:
    """The decoding to use when nobody says otherwise, for machines trained with the loss.

    One-versus-all takes the largest output, one-versus-one votes, every other code (and every code
    of the user's) the loss-based decoding with the machines' own loss. Two classes and one machine:
    its sign.
    """
    if code.shape == (2, 1):
        return "votes"
    usual = CODES[name].decoding if name in CODES else "hinge"
    return loss if usual == "hinge" else usual
