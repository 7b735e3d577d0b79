"""Kernel projection machine: least hinge loss on the leading eigenfunctions of the kernel.

The dimension D, not a norm, regularises. With λ_1 ≥ λ_2 ≥ ... and V_j the eigenvalues and unit
eigenvectors of the uncentred kernel matrix of the training rows, each D is the linear programme

    min_{β, b, ξ ≥ 0} Σ w_i ξ_i,   y_i (Σ_{j≤D} β_j V_j^(i) + b) ≥ 1 − ξ_i

and f(x) = Σ_i c_i K(x_i, x) + b with c = Σ_{j≤D} (β_j/λ_j) V_j, which has the fitted values at the
training rows. Directions with λ_D ≤ ε λ_1 are not used: c grows like 1/λ_D. Once the loss is 0 the
path stops, since every larger D has that minimiser as well; where the cross-validation of a larger
D meets a fold that has stopped, it therefore takes the machine the fold stopped with.

D is chosen by cross-validation (smallest error, the smallest such D), or as the minimiser of
hinge/W + c·D/W for a penalty c, W = Σ w_i (n without weights). A penalty proportional to D is
justified where the noise is low, |P(y=1|x) − ½| > ρ > 0; no value of c is right in general.

The weights are those of the loss. Rows of weight 0 are left out altogether, of the matrix too.

Blanchard, Massart, Vert and Zwald, Kernel projection machine: a new tool for pattern recognition
(NIPS 2004).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kfu._gram import Gram
from kfu.baselines.folds import checked_folds
from kfu.baselines.hinge_program import HingeFit, least_hinge
from kfu.baselines.rows import checked_labels, checked_rows, checked_weights, weighted_error
from kfu.baselines.spectrum import Eigenpairs, Spectra
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec

__all__ = [
    "KpmMachines",
    "KpmPath",
    "default_dims",
    "kernel_projection",
    "kernel_projection_code",
]

EIGEN_FLOOR = 1e-10
MAX_DIM = 200
SEPARATED = 1e-9  # hinge loss below this share of the weight is 0


@dataclass
class KpmPath:
    """The machines of all dimensions D, and the one chosen."""

    dims: np.ndarray  #: D, ascending
    hinge: np.ndarray  #: Σ w ξ at the minimum
    gap: np.ndarray  #: hinge less the value of the dual programme
    train_error: np.ndarray
    cv_error: np.ndarray  #: NaN where D was not chosen by cross-validation
    cv_std_error: np.ndarray  #: standard error of cv_error over the folds
    coef: np.ndarray  #: (number of D, n); 0 for rows that take no part
    bias: np.ndarray
    eigenvalues: np.ndarray  #: λ_1 ... of the largest D
    stopped: str  #: why there is no larger D: "separated", "rank" or "max_dim"
    chosen: int = 0  #: position of the chosen D in dims
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """The chosen D."""
        return int(self.dims[self.chosen])

    @property
    def max_coef(self) -> np.ndarray:
        """max_i |c_i| for each D."""
        return np.asarray(np.abs(self.coef).max(axis=1))

    def table(self) -> list[dict[str, float]]:
        """One plain row for each D, for reports."""
        names = ("hinge", "gap", "train_error", "cv_error", "cv_std_error", "bias", "max_coef")
        return [
            {"dim": int(dim), **{name: float(getattr(self, name)[k]) for name in names}}
            for k, dim in enumerate(self.dims)
        ]


@dataclass
class KpmMachines:
    """One path for each column of a code; coef (n_machines, n) and bias of the chosen D."""

    paths: list[KpmPath]
    coef: np.ndarray
    bias: np.ndarray
    info: dict[str, Any]


@dataclass(frozen=True)
class _Settings:
    dims: np.ndarray
    dim_penalty: float | None
    threads: int


def default_dims(max_dim: int) -> np.ndarray:
    """1, 2, ..., 20, then steps of about a seventh, up to and with max_dim."""
    steps = 20.0 * 1.15 ** np.arange(1, 150)
    dims = np.concatenate([np.arange(1, 21), np.round(steps[steps < max_dim]), [max_dim]])
    return np.unique(dims[dims <= max_dim]).astype(np.int64)


def kernel_projection(
    X: Any,
    labels: Any,
    kernel: KernelSpec,
    *,
    weight: np.ndarray | None = None,
    dims: Sequence[int] | None = None,
    max_dim: int | None = None,
    dim_penalty: float | None = None,
    folds: int | np.ndarray = 5,
    seed: int = 0,
    eigen_floor: float = EIGEN_FLOOR,
    threads: int = 0,
    source: str = "data",
) -> KpmPath:
    """The path of kernel projection machines over D for labels ±1.

    `dims` lists the dimensions, by default those of `default_dims` up to max_dim, which is at most
    the number of rows and 200 unless given. With `dim_penalty` D is chosen by the penalised loss,
    otherwise by cross-validation over `folds`, their number or the fold of each row.
    """
    signs = np.asarray(labels)
    if signs.dtype.kind not in "iuf" or not np.all(np.isin(signs, (-1, 1))):
        raise SettingsError("the labels of a kernel projection machine are -1 and 1")
    machines = kernel_projection_code(
        X,
        (signs > 0).astype(np.int64),
        np.array([[-1], [1]]),
        kernel,
        weight=weight,
        dims=dims,
        max_dim=max_dim,
        dim_penalty=dim_penalty,
        folds=folds,
        seed=seed,
        eigen_floor=eigen_floor,
        threads=threads,
        source=source,
    )
    path = machines.paths[0]
    path.info |= {key: machines.info[key] for key in ("decompositions", "warnings")}
    return path


def kernel_projection_code(
    X: Any,
    labels: Any,
    code: np.ndarray,
    kernel: KernelSpec,
    *,
    weight: np.ndarray | None = None,
    dims: Sequence[int] | None = None,
    max_dim: int | None = None,
    dim_penalty: float | None = None,
    folds: int | np.ndarray = 5,
    seed: int = 0,
    eigen_floor: float = EIGEN_FLOOR,
    threads: int = 0,
    source: str = "data",
) -> KpmMachines:
    """A machine for each column of the code (kfu.pairwise): class indices → ±1, 0 left out.

    Columns in which all rows take part share eigenvectors, in the folds too: the folds are dealt
    once, by class, for all columns. Other options as for `kernel_projection`.
    """
    X = checked_rows(X, kernel, source)
    n = X.shape[0]
    labels = checked_labels(labels, n, source)
    weights = checked_weights(weight, n, source)
    code = np.asarray(code)
    if labels.max() >= code.shape[0]:
        raise SettingsError(f"a label is {labels.max()} where the code has {code.shape[0]} classes")
    if not 0.0 <= eigen_floor < 1.0:
        raise SettingsError(f"eigen_floor is {eigen_floor!r}; give a number from 0 to below 1")
    if dim_penalty is not None and not (np.isfinite(dim_penalty) and dim_penalty >= 0.0):
        raise SettingsError(f"dim_penalty is {dim_penalty!r}; give a finite number, at least 0")
    settings = _Settings(
        _checked_dims(dims, max_dim, int(np.count_nonzero(weights))),
        dim_penalty,
        threads if threads > 0 else os.cpu_count() or 1,
    )
    fold_of = None
    if dim_penalty is None:
        fold_of = checked_folds(folds, labels, weights, seed)
    K = Gram(X, kernel, precision="float64", threads=threads).block()
    spectra = Spectra(K, int(settings.dims[-1]), eigen_floor, source)
    paths = []
    for machine in range(code.shape[1]):
        signs = code[labels, machine].astype(np.float64)
        signs[weights <= 0.0] = 0.0
        if not (np.any(signs > 0) and np.any(signs < 0)):
            raise DataError(
                source,
                None,
                "a machine has rows of one class only",
                "give rows of two classes a positive weight",
            )
        paths.append(_machine(spectra, signs, weights, fold_of, settings))
    return KpmMachines(
        paths,
        np.array([path.coef[path.chosen] for path in paths]),
        np.array([path.bias[path.chosen] for path in paths]),
        {
            "dim": [path.dim for path in paths],
            "selection": "cv" if dim_penalty is None else "penalty",
            "eigenpairs": [path.info["eigenpairs"] for path in paths],
            "decompositions": spectra.decompositions,
            "programmes": sum(path.info["programmes"] for path in paths),
            "warnings": _warnings(kernel, paths),
        },
    )


def _warnings(kernel: KernelSpec, paths: list[KpmPath]) -> list[str]:
    found = []
    if not (kernel.is_psd or kernel.is_precomputed):
        found.append(
            f"kernel {kernel.describe()} need not be positive semidefinite: directions with "
            "negative eigenvalues are left out"
        )
    at_end = sum(p.chosen == p.dims.size - 1 and p.stopped == "max_dim" for p in paths)
    if at_end:
        found.append(
            f"the chosen dimension is the largest tried in {at_end} of {len(paths)} machines; "
            "raise max_dim"
        )
    return found


def _machine(
    spectra: Spectra,
    signs: np.ndarray,
    weights: np.ndarray,
    fold_of: np.ndarray | None,
    settings: _Settings,
) -> KpmPath:
    rows = np.flatnonzero(signs)
    pairs = spectra.of(rows)
    if pairs.count < settings.dims[0]:
        raise SettingsError(
            f"the kernel matrix has {pairs.count} eigenvalues above the floor, fewer than the "
            f"smallest dimension {settings.dims[0]}"
        )
    fits = _fit_dims(pairs, signs[rows], weights[rows], settings)
    dims = settings.dims[: len(fits)]
    total = weights[rows].sum()
    coef = np.zeros((len(fits), signs.size))
    coef[:, rows] = _coefficients(pairs, fits)
    bias = np.array([fit.bias for fit in fits])
    hinge = np.array([fit.hinge for fit in fits])
    fitted = _fitted(pairs, fits)
    is_wrong = np.where(fitted > 0.0, 1.0, -1.0) != signs[rows]
    path = KpmPath(
        dims=dims,
        hinge=hinge,
        gap=np.array([fit.gap for fit in fits]),
        train_error=np.array([weighted_error(line, weights[rows]) for line in is_wrong]),
        cv_error=np.full(dims.size, np.nan),
        cv_std_error=np.full(dims.size, np.nan),
        coef=coef,
        bias=bias,
        eigenvalues=pairs.values[: dims[-1]],
        stopped=_reason(hinge[-1] <= SEPARATED * total, len(fits) < settings.dims.size),
        info={
            "selection": "cv" if settings.dim_penalty is None else "penalty",
            "programmes": len(fits),
            "eigenpairs": pairs.count,
        },
    )
    if settings.dim_penalty is not None:
        path.chosen = int(np.argmin((hinge + settings.dim_penalty * dims) / total))
        return path
    assert fold_of is not None
    _cross_validate(path, spectra, signs, weights, fold_of, settings)
    path.chosen = int(np.argmin(path.cv_error))
    return path


def _reason(is_separated: bool, is_short: bool) -> str:
    if is_separated:
        return "separated"
    return "rank" if is_short else "max_dim"


def _fit_dims(
    pairs: Eigenpairs, signs: np.ndarray, weights: np.ndarray, settings: _Settings
) -> list[HingeFit]:
    """The fits of all D the eigenpairs allow, up to the first without loss.

    As many D at a time as there are threads; which fits are returned does not depend on that.
    """
    features = np.sqrt(len(signs)) * pairs.vectors  # entries of size 1, like eigenfunctions
    dims = settings.dims[settings.dims <= pairs.count]
    if dims.size == 0:
        dims = np.array([pairs.count])  # a fold of lower rank: what it has
    enough = SEPARATED * weights.sum()
    fits: list[HingeFit] = []
    with ThreadPoolExecutor(settings.threads) as pool:
        for begin in range(0, dims.size, settings.threads):
            wave = dims[begin : begin + settings.threads]
            for fit in pool.map(lambda d: least_hinge(features[:, :d], signs, weights), wave):
                fits.append(fit)
                if fit.hinge <= enough:
                    return fits
    return fits


def _coefficients(pairs: Eigenpairs, fits: list[HingeFit]) -> np.ndarray:
    """c = Σ_j (β_j/λ_j) V_j of each fit: (fits, rows)."""
    scale = np.sqrt(pairs.vectors.shape[0])
    return np.array(
        [
            pairs.vectors[:, : fit.beta.size] @ (scale * fit.beta / pairs.values[: fit.beta.size])
            for fit in fits
        ]
    )


def _fitted(pairs: Eigenpairs, fits: list[HingeFit]) -> np.ndarray:
    """f at the training rows: (fits, rows)."""
    scale = np.sqrt(pairs.vectors.shape[0])
    return np.array(
        [pairs.vectors[:, : fit.beta.size] @ (scale * fit.beta) + fit.bias for fit in fits]
    )


# ---- cross-validation --------------------------------------------------------------------------


def _cross_validate(
    path: KpmPath,
    spectra: Spectra,
    signs: np.ndarray,
    weights: np.ndarray,
    fold_of: np.ndarray,
    settings: _Settings,
) -> None:
    """Fills in the errors of the path's D on the rows each fold leaves out."""
    limited = _Settings(path.dims, None, settings.threads)
    errors, shares = [], []
    for fold in np.unique(fold_of[signs != 0.0]):
        train = np.flatnonzero((signs != 0.0) & (fold_of != fold))
        held = np.flatnonzero((signs != 0.0) & (fold_of == fold))
        pairs = spectra.of(train)
        fits = _fit_dims(pairs, signs[train], weights[train], limited)
        path.info["programmes"] += len(fits)
        coef = _coefficients(pairs, fits)
        values = coef @ spectra.K[np.ix_(train, held)]
        values += np.array([fit.bias for fit in fits])[:, None]
        is_wrong = np.where(values > 0.0, 1.0, -1.0) != signs[held]
        line = is_wrong @ weights[held] / weights[held].sum()
        # A fold that stopped keeps its last machine, a minimiser for every larger D as well.
        errors.append(np.concatenate([line, np.full(path.dims.size - line.size, line[-1])]))
        shares.append(weights[held].sum())
    table, share = np.array(errors), np.array(shares) / np.sum(shares)
    path.cv_error = share @ table
    spread = share @ (table - path.cv_error) ** 2
    path.cv_std_error = np.sqrt(spread / max(len(shares) - 1, 1))


def _checked_dims(dims: Sequence[int] | None, max_dim: int | None, n: int) -> np.ndarray:
    if max_dim is not None and max_dim < 1:
        raise SettingsError(f"max_dim is {max_dim}; at least 1 is needed")
    if dims is None:
        return default_dims(max(1, min(n, MAX_DIM if max_dim is None else max_dim)))
    wanted = np.asarray(dims)
    if wanted.size == 0 or np.any(wanted != np.round(wanted)) or wanted.min() < 1:
        raise SettingsError("dims are integers from 1 on")
    kept = np.unique(wanted.astype(np.int64))
    kept = kept[kept <= min(n, max_dim or n)]
    if kept.size == 0:
        raise SettingsError(f"every dimension is larger than {min(n, max_dim or n)}, the largest")
    return kept
