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

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from kfu import _gram
from kfu.errors import DataError, SettingsError

COMBINATIONS = ("sum", "product")


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
    """" (did you mean ...?)" with the closest known word, or the list of them."""
    known = sorted(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"


def kernel_name(name: str) -> str:
    """The registry name of a kernel or of an alias."""
    name = ALIASES.get(name, name)
    if name not in KERNELS:
        raise SettingsError(f"unknown kernel {name!r}; {nearest(name, [*KERNELS, *ALIASES])}")
    return name


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
                values[target] = convert(_positive(name, key, value))
            elif key not in values:
                hint = nearest(key, [*values, *shorthands])
                raise SettingsError(f"kernel {name} has no parameter {key!r}; {hint}")
            elif value is not None:
                values[key] = _CHECKS[key](entry, value)
        return KernelSpec(name, values, weight=_positive("weights", "weight", weight))

    @staticmethod
    def combine(kind: str, parts: Iterable[KernelSpec], weight: float = 1.0) -> KernelSpec:
        """The sum or the product (`kind`) of kernels."""
        if kind not in COMBINATIONS:
            raise SettingsError(f"unknown combination {kind!r}; {nearest(kind, COMBINATIONS)}")
        parts = tuple(parts)
        if not parts:
            raise SettingsError(f"a {kind} of kernels needs at least one part")
        spec = KernelSpec(kind, {}, parts, _positive("weights", "weight", weight))
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
            gamma = _GAMMA_RULES[gamma or "auto"](X)
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


# -- parameter values ---------------------------------------------------------------------------


def _number(kernel: str, key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingsError(f"{kernel}: {key} is {value!r}; a number is needed") from None
    if not math.isfinite(number):
        raise SettingsError(f"{kernel}: {key} is {value!r}; a finite number is needed")
    return number


def _positive(kernel: str, key: str, value: Any) -> float:
    number = _number(kernel, key, value)
    if number <= 0.0:
        raise SettingsError(f"{kernel}: {key} is {value!r}; it must be greater than 0")
    return number


def _gamma(entry: KernelEntry, value: Any) -> float | str | tuple[float, ...]:
    if isinstance(value, str) and value in _GAMMA_RULES:
        return value
    if isinstance(value, list | tuple | np.ndarray):
        if not entry.is_per_feature:
            remedy = "choose rbf-ard or poly-ard for one gamma per feature"
            raise SettingsError(f"kernel {entry.name}: gamma is a list; {remedy}")
        return tuple(_positive(f"kernel {entry.name}", "gamma", g) for g in value)
    return _positive(f"kernel {entry.name}", "gamma", value)


def _degree(entry: KernelEntry, value: Any) -> int:
    number = _number(f"kernel {entry.name}", "degree", value)
    if number != int(number) or not 1 <= number <= 1000:
        raise SettingsError(
            f"kernel {entry.name}: degree is {value!r}; an integer from 1 to 1000 is needed"
        )
    return int(number)


def _coef0(entry: KernelEntry, value: Any) -> float:
    return _number(f"kernel {entry.name}", "coef0", value)


_CHECKS = {"gamma": _gamma, "coef0": _coef0, "degree": _degree}


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(f"{v:g}" for v in value[:3])
        return f"[{shown}{', …' if len(value) > 3 else ''}]"
    return value if isinstance(value, str) else f"{value:g}"


# -- gamma from data ----------------------------------------------------------------------------


def _sample(X: Any, size: int, seed: int) -> Any:
    if X.shape[0] <= size:
        return X
    rows = np.random.default_rng(seed).choice(X.shape[0], size, replace=False)
    return X[np.sort(rows)]


def suggest_gamma(X: Any, sample: int = 500, seed: int = 0) -> float:
    """1 / median squared distance of the points of a sample (the median heuristic).

    Pairs of equal points are left out; without any two different points, 1 / n_features.
    """
    points = _sample(X, sample, seed)
    points = points.toarray() if scipy.sparse.issparse(points) else np.asarray(points, float)
    points = np.asarray(points, dtype=np.float64) - points.mean(axis=0)
    norms = np.einsum("ij,ij->i", points, points)
    distances = norms[:, None] + norms[None, :] - 2.0 * (points @ points.T)
    pairs = distances[np.triu_indices(len(points), 1)]
    pairs = pairs[pairs > 1e-12 * max(float(norms.max(initial=0.0)), 1e-300)]
    return 1.0 / float(np.median(pairs)) if pairs.size else _gamma_auto(X)


def _gamma_auto(X: Any) -> float:
    return 1.0 / max(X.shape[1], 1)


def _gamma_scale(X: Any) -> float:
    if scipy.sparse.issparse(X):
        variance = float(X.multiply(X).mean() - X.mean() ** 2)
    else:
        variance = float(np.var(X))
    return _gamma_auto(X) / variance if variance > 0.0 else 1.0


_GAMMA_RULES = {"auto": _gamma_auto, "scale": _gamma_scale, "median": suggest_gamma}


# -- diagnostics --------------------------------------------------------------------------------


def psd_report(
    X: Any, spec: KernelSpec, sample: int = 500, seed: int = 0
) -> dict[str, float | int | bool | str]:
    """Eigenvalues of the kernel matrix on a sample: is it positive semidefinite, how rich is it?

    `effective_rank` is (Σλ)² / Σλ² over the positive eigenvalues; `is_psd` allows negative
    eigenvalues of rounding size (n · ε · largest magnitude).
    """
    if spec.is_precomputed:
        n = min(X.shape)
        rows = np.sort(np.random.default_rng(seed).permutation(n)[:sample])
        matrix = X[rows][:, rows]
        K = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
        K = K.astype(np.float64)
    else:
        points = _sample(X, sample, seed)
        K = _gram.Gram(points, spec.resolve(X), "float64").block()
    asymmetry = float(np.abs(K - K.T).max(initial=0.0))
    values = scipy.linalg.eigvalsh((K + K.T) / 2.0) if K.size else np.zeros(1)
    largest = float(np.abs(values).max())
    tolerance = len(values) * np.finfo(np.float64).eps * largest
    positive = values[values > tolerance]
    diagonal = np.diag(K)
    return {
        "kernel": spec.describe(),
        "sample": len(K),
        "min_eigenvalue": float(values.min()),
        "max_eigenvalue": float(values.max()),
        "condition": float(values.max() / values.min()) if values.min() > tolerance else math.inf,
        "effective_rank": float(positive.sum() ** 2 / (positive**2).sum()) if positive.size else 0.0,
        "rank": int(positive.size),
        "is_psd": bool(values.min() >= -tolerance),
        "is_symmetric": bool(asymmetry <= 1e-12 * max(largest, 1e-300)),
        "has_constant_diagonal": bool(np.ptp(diagonal) <= 1e-12 * max(largest, 1e-300)),
    }
