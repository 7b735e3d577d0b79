"""Kernels by name: what they are called, which parameters they take, and how they combine.

The list of kernels is read from the compiled core (csrc/kfu/kernel_list.inc), so a kernel added
there appears here, on the command line and in the documentation. A `KernelSpec` is a description
only; `kfu._gram.Gram` evaluates it.

Forms accepted by `KernelSpec.from_dict` (and so in YAML and in model files)::

    rbf
    {name: rbf, gamma: 0.5}
    {sum: [{name: rbf, gamma: 0.5}, {name: linear, weight: 0.1}]}
    {product: [{name: poly, degree: 2, coef0: 1}, {sum: [rbf, linear]}], weight: 2}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from kfu.data import check_width
from kfu.errors import DataError, SettingsError
from kfu.kernel_data import GAMMA_RULES, psd_report, suggest_gamma
from kfu.kernel_registry import (
    ALIASES,
    CHECKS,
    KERNELS,
    SHORTHANDS,
    KernelEntry,
    kernel_name,
    nearest,
    positive,
)

__all__ = [
    "ALIASES",
    "KERNELS",
    "SHORTHANDS",
    "KernelEntry",
    "KernelForm",
    "KernelSpec",
    "LeafPart",
    "kernel_name",
    "psd_report",
    "suggest_gamma",
]

COMBINATIONS = ("sum", "product")


@dataclass(frozen=True)
class LeafPart:
    """One factor of the normal form that the core evaluates."""

    name: str
    path: str  # which leaf of the specification it came from
    form: str = "value"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1
    scale: tuple[float, ...] | None = None  # factor per feature


Terms = list[tuple[float, tuple[LeafPart, ...]]]


@dataclass(frozen=True)
class KernelForm:
    """A kernel already in normal form: a sum of weighted products (derivatives are given so)."""

    terms: Terms

    def normal_form(self) -> Terms:
        return self.terms


@dataclass(frozen=True)
class KernelSpec:
    """A kernel and its parameters: a registry entry, or a sum or product of specifications."""

    name: str
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    parts: tuple[KernelSpec, ...] = ()
    weight: float = 1.0

    # -- making ---------------------------------------------------------------------------------

    @staticmethod
    def make(name: str, *, weight: float = 1.0, **params: Any) -> KernelSpec:
        """A single kernel; parameters left out or None take their defaults.

        Raises SettingsError for an unknown name or parameter or a value out of range.
        """
        name = kernel_name(name)
        entry = KERNELS[name]
        shorthands = SHORTHANDS.get(name, {})
        values = dict(entry.parameters)
        for key, value in params.items():
            if key in shorthands:
                if value is None:
                    continue
                target, convert = shorthands[key]
                if params.get(target) is not None:
                    raise SettingsError(f"kernel {name}: give either {key} or {target}, not both")
                values[target] = convert(positive(name, key, value))
            elif key not in values:
                hint = nearest(key, [*values, *shorthands])
                raise SettingsError(f"kernel {name} has no parameter {key!r}; {hint}")
            elif value is not None:
                values[key] = CHECKS[key](entry, value)
        return KernelSpec(name, values, weight=positive("weights", "weight", weight))

    @staticmethod
    def combine(kind: str, parts: Iterable[KernelSpec], weight: float = 1.0) -> KernelSpec:
        """The sum or the product (`kind`) of kernels."""
        if kind not in COMBINATIONS:
            raise SettingsError(f"unknown combination {kind!r}; {nearest(kind, COMBINATIONS)}")
        parts = tuple(parts)
        if not parts:
            raise SettingsError(f"a {kind} of kernels needs at least one part")
        spec = KernelSpec(kind, {}, parts, positive("weights", "weight", weight))
        if any(KERNELS[leaf.name].is_precomputed for leaf in spec.leaves()):
            raise SettingsError("a precomputed kernel cannot be combined with others")
        return spec

    @staticmethod
    def from_dict(form: Any) -> KernelSpec:
        """The inverse of to_dict; also accepts a bare name."""
        if isinstance(form, KernelSpec):
            return form
        if isinstance(form, str):
            return KernelSpec.make(form)
        if not isinstance(form, Mapping):
            raise SettingsError(
                f"a kernel is a name or a mapping, not {type(form).__name__}; "
                "write for example {name: rbf, gamma: 0.5}"
            )
        form = dict(form)
        combination = [kind for kind in COMBINATIONS if kind in form]
        if not combination:
            if "name" not in form:
                known = ["name", *COMBINATIONS]
                hint = nearest(next(iter(form), ""), known)
                raise SettingsError(f"a kernel needs a name, or a sum or product of parts; {hint}")
            return KernelSpec.make(str(form.pop("name")), **{str(k): v for k, v in form.items()})
        kind = combination[0]
        parts, weight = form.pop(kind), form.pop("weight", 1.0)
        if form:
            key = next(iter(form))
            raise SettingsError(f"a {kind} of kernels has no key {key!r}; known: {kind}, weight")
        if not isinstance(parts, list | tuple):
            raise SettingsError(f"{kind}: expected a list of kernels")
        return KernelSpec.combine(kind, map(KernelSpec.from_dict, parts), weight)

    def to_dict(self) -> dict[str, Any]:
        """JSON- and YAML-able; from_dict gives back an equal specification."""
        weight = {} if self.weight == 1.0 else {"weight": self.weight}
        if self.parts:
            return {self.name: [part.to_dict() for part in self.parts], **weight}
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in self.params.items()}
        return {"name": self.name, **{k: v for k, v in values.items() if v is not None}, **weight}

    def with_params(self, **params: Any) -> KernelSpec:
        """The same single kernel with some parameters replaced."""
        return KernelSpec.make(self.name, weight=self.weight, **{**self.params, **params})

    # -- looking --------------------------------------------------------------------------------

    def leaves(self) -> Iterator[KernelSpec]:
        """The single kernels it is made of."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    @property
    def is_precomputed(self) -> bool:
        return not self.parts and KERNELS[self.name].is_precomputed

    @property
    def is_psd(self) -> bool:
        """True when positive semidefinite by construction (sums and products preserve it)."""
        return all(
            KERNELS[leaf.name].is_psd and leaf.params.get("coef0", 0.0) >= 0.0
            for leaf in self.leaves()
        )

    @property
    def is_resolved(self) -> bool:
        return all(
            not isinstance(leaf.params.get("gamma", 1.0), str | None) for leaf in self.leaves()
        )

    def describe(self) -> str:
        """One line for people."""
        prefix = "" if self.weight == 1.0 else f"{self.weight:g}·"
        if self.parts:
            joint = " + " if self.name == "sum" else " × "
            return f"{prefix}({joint.join(part.describe() for part in self.parts)})"
        values = ", ".join(f"{k}={_short(v)}" for k, v in self.params.items() if v is not None)
        return f"{prefix}{self.name}({values})" if values else f"{prefix}{self.name}"

    # -- using ----------------------------------------------------------------------------------

    def resolve(self, X: Any) -> KernelSpec:
        """Fills in what depends on the data: gamma = 1 / n_features unless given.

        gamma may also be "auto" (1 / n_features), "scale" (1 / (n_features · variance of all
        entries)) or "median" (suggest_gamma). ARD kernels get one gamma per feature.
        """
        if self.parts:
            return replace(self, parts=tuple(part.resolve(X) for part in self.parts))
        if "gamma" not in self.params:
            return self
        gamma, d = self.params["gamma"], X.shape[1]
        if gamma is None or isinstance(gamma, str):
            gamma = GAMMA_RULES[gamma or "auto"](X)
        if KERNELS[self.name].is_per_feature:
            if not isinstance(gamma, tuple):
                gamma = (float(gamma),) * d
            if len(gamma) != d:
                raise SettingsError(
                    f"kernel {self.name}: {len(gamma)} values of gamma for {d} features; "
                    "give one per feature, or a single one"
                )
        return replace(self, params={**self.params, "gamma": gamma})

    def check_data(self, X: Any, *, source: str = "data", is_square: bool = True) -> None:
        """Raises DataError when the kernel is not defined on X.

        `is_square` asks precomputed kernels for one column per row (training).
        """
        check_width(X, source)
        if self.is_precomputed and is_square and X.shape[0] != X.shape[1]:
            raise DataError(
                source,
                None,
                f"{X.shape[0]} rows and {X.shape[1]} columns for a precomputed kernel",
                "training needs the square matrix K(i, j)",
            )
        for leaf in self.leaves():
            if KERNELS[leaf.name].needs_non_negative:
                row = _first_negative_row(X)
                if row is not None:
                    raise DataError(
                        source,
                        None,
                        f"a negative value in row {row + 1}, which the {leaf.name} kernel does "
                        "not accept",
                        "scale the data to be non-negative or choose another kernel",
                    )

    def normal_form(self) -> Terms:
        """Σ weight · Π leaves, sums and products multiplied out. Requires a resolved spec."""
        return [(weight, leaves) for weight, leaves in self._terms("")]

    def _terms(self, path: str) -> Terms:
        if not self.parts:
            return [(self.weight, (self._leaf(path),))]
        expanded = [part._terms(f"{path}{k}.") for k, part in enumerate(self.parts)]
        if self.name == "sum":
            return [(self.weight * w, leaves) for terms in expanded for w, leaves in terms]
        product: Terms = [(self.weight, ())]
        for terms in expanded:
            product = [(v * w, left + right) for v, left in product for w, right in terms]
        return product

    def _leaf(self, path: str) -> LeafPart:
        if not self.is_resolved:
            raise ValueError(f"kernel {self.describe()} is not resolved; call resolve(X) first")
        values = dict(self.params)
        scale = None
        if KERNELS[self.name].is_per_feature:
            scale = tuple(math.sqrt(g) for g in values.pop("gamma"))
        return LeafPart(self.name, path, scale=scale, **values)

    # -- derivatives ----------------------------------------------------------------------------

    def parameters(self) -> list[str]:
        """Names of the positive parameters that `derivative` accepts.

        "gamma", "coef0", "gamma[k]" (feature k, from 0); inside a combination preceded by the
        position of the part, as in "0.gamma" or "1.0.coef0"; "0.weight" for the parts of a sum.
        """
        return list(self._parameters(""))

    def _parameters(self, path: str) -> Iterator[str]:
        for k, part in enumerate(self.parts):
            if self.name == "sum":
                yield f"{path}{k}.weight"
            yield from part._parameters(f"{path}{k}.")
        gamma = self.params.get("gamma")
        if isinstance(gamma, tuple):
            yield from (f"{path}gamma[{k}]" for k in range(len(gamma)))
        elif "gamma" in self.params:
            yield f"{path}gamma"
        if self.params.get("coef0", 0.0) > 0.0:
            yield f"{path}coef0"

    def derivative(self, parameter: str) -> KernelForm:
        """∂K/∂log(parameter), in normal form: give it to `Gram` in place of a specification."""
        if parameter not in self.parameters():
            hint = nearest(parameter, self.parameters())
            raise SettingsError(f"kernel {self.describe()} has no parameter {parameter!r}; {hint}")
        path, _, name = parameter.rpartition(".")
        path = f"{path}." if path else ""
        terms = self.normal_form()
        if name == "weight":
            chosen = [t for t in terms if any(leaf.path.startswith(path) for leaf in t[1])]
            return KernelForm(chosen)
        derived: Terms = []
        for weight, leaves in terms:
            for k, leaf in enumerate(leaves):
                if leaf.path == path:
                    factors = _leaf_derivative(leaf, name)
                    derived.append((weight, leaves[:k] + factors + leaves[k + 1 :]))
        return KernelForm(derived)


def _leaf_derivative(leaf: LeafPart, name: str) -> tuple[LeafPart, ...]:
    """The factors whose product is the derivative of a leaf by the log of its parameter."""
    if not name.startswith("gamma["):
        return (replace(leaf, form=f"d_{name}"),)
    assert leaf.scale is not None
    feature = int(name[len("gamma[") : -1])
    only = tuple(s if k == feature else 0.0 for k, s in enumerate(leaf.scale))
    share = "linear" if leaf.name.startswith("poly") else "squared-distance"
    return (replace(leaf, form="slope"), LeafPart(share, f"{leaf.path}{name}", scale=only))


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(f"{v:g}" for v in value[:3])
        return f"[{shown}{', …' if len(value) > 3 else ''}]"
    return value if isinstance(value, str) else f"{value:g}"


def _first_negative_row(X: Any) -> int | None:
    """Number of the first row with a negative entry."""
    if scipy.sparse.issparse(X):
        negative = np.flatnonzero(X.data < 0)
        return (
            int(np.searchsorted(X.indptr, negative[0], side="right") - 1) if negative.size else None
        )
    rows = np.flatnonzero((np.asarray(X) < 0).any(axis=1))
    return int(rows[0]) if rows.size else None
