"""`rectangle` as sums over blocks of rows: the rows may be more than memory holds.

    (K_mℓ W K_ℓm + ridge K_mm) c = K_mℓ W Y                    (Rifkin 2002, section 3.7.2)

minimises Σ w_i (f(x_i) − y_i)² + ridge ‖f‖² over f = Σ c_j K(z_j, ·), z the m centres. It is
solved as (B + ridge I) u = G in the features of the centres (kfu.least_squares.whitening), where
its smallest eigenvalue is the ridge, whatever K_mm is. Memory: m² and a block. Two ways to add up:

plain      A = Σ w k kᵀ by products in float64. Half the arithmetic. Rounding of A comes back
           multiplied by the condition of K_mm. For leave-one-out outputs and for many ridges A is
           whitened at the end, B = L⁻¹AL⁻ᵀ; for one ridge, and a K_mm that is well conditioned,
           the equations are solved as they stand (kfu.least_squares.plain_system).
whitened   φ = L⁻¹k block by block, B = Σ w φφᵀ: rounding is multiplied by the square root of that
           condition only. In float32 the products run in slices of 2048 rows whose sums are added
           in float64, at two to three times the speed: no more time than the plain form takes.

A plain sum of float32 products is not offered: with 2500 centres on 16,000 digits its rounding, of
norm 0.0018, is as large as the smallest eigenvalue of A + ridge K_mm, 0.0015, and it grows with
both numbers until that matrix is indefinite.
`auto` takes whitened for float32 values, plain for float64 where K_mm is well conditioned, and
whitened where it is not. Sums of blocks are added in the order given; another order, other blocks
or another number of BLAS threads change the last bits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from scipy.linalg import blas

from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.low_rank_fit import (
    LowRankFit,
    checked_ridges,
    checked_targets,
    checked_weight,
)
from kfu.least_squares.memory import require_memory
from kfu.least_squares.plain_system import PlainSolution, solve_plain
from kfu.least_squares.ridge_system import LeftOut, RidgeSystem, Sums
from kfu.least_squares.whitening import Whitening
from kfu.solvers.blas_threads import blas_threads

FORMS = ("auto", "plain", "whitened")
PLAIN_CONDITION = 1e-9  # of K_mm (reciprocal), at least, for the plain form
SLICE = 2048  # rows whose float32 products are added up in float32


class NormalEquations:
    """Sums over the rows of a least-squares problem with given centres and t outputs.

    `centres` is a matrix of m rows (dense or CSR), K_mm for a precomputed kernel, or a Whitening to
    be shared. Blocks of rows go to `add`; sums of the same centres made elsewhere, in other threads
    or on other machines, to `merge` (the object can be pickled). `solve` may be called at any time,
    and more rows added afterwards.
    """

    def __init__(
        self,
        centres: Any,
        kernel: KernelSpec,
        t: int = 1,
        precision: str = "float64",
        threads: int = 0,
        *,
        form: str = "auto",
    ) -> None:
        if form not in FORMS:
            raise SettingsError(f"form is {form!r}; known: {', '.join(FORMS)}")
        if t < 1:
            raise SettingsError(f"{t} outputs; at least one is needed")
        begin = time.perf_counter()
        is_made = isinstance(centres, Whitening)
        m = centres.m if is_made else int(centres.shape[0])
        require_memory(
            predicted_bytes(m), f"the system of {m} centres", "take fewer centres, or falkon"
        )
        self.whitening = centres if is_made else Whitening(centres, kernel, precision, threads)
        self.threads = threads
        if form == "auto":
            is_plain = (
                self.whitening.precision == "float64"
                and self.whitening.reciprocal_condition >= PLAIN_CONDITION
            )
            form = "plain" if is_plain else "whitened"
        self.form = form
        r = self.whitening.rank
        self.seconds = {"centres": time.perf_counter() - begin, "kernel": 0.0, "products": 0.0}
        self.seconds["memory"] = 0.0  # handed out by the system as it is touched first
        self.B = self._touched((r, r), np.float64)
        self.G = np.zeros((r, t))
        self.s = np.zeros(r)
        self.q = np.zeros(t)
        self.squares = np.zeros(t)  # Σ w y²
        self.total = 0.0  # Σ w
        self.n = 0  # rows of positive weight
        self._systems: dict[tuple[Any, ...], RidgeSystem] = {}
        self._sums: Sums | None = None
        self._trace: float | None = None
        self._products: np.ndarray | None = None  # room for those of a slice
        self._room: np.ndarray | None = None  # for the kernel values of a block

    @property
    def outputs(self) -> int:
        return self.G.shape[1]

    # -- adding up --------------------------------------------------------------------------------

    def add(self, X: Any, Y: Any, weight: Any = None) -> NormalEquations:
        """Add the rows of X with targets Y (rows, t) and weights (1 each if None)."""
        Y, weight = self._checked(X, Y, weight)
        if weight is not None and not (weight > 0.0).all():
            used = np.flatnonzero(weight > 0.0)
            X, Y, weight = X[used], Y[used], weight[used]
        if X.shape[0] == 0:
            return self
        self._changed()
        room = self._room_for(X.shape[0])
        begin = time.perf_counter()
        values = self.whitening.values(X, room)
        middle = time.perf_counter()
        self.seconds["kernel"] += middle - begin
        if self.form == "whitened":
            values = self.whitening.whiten(values)
        else:
            values = values.astype(np.float64, order="F", copy=False)
        w = np.ones(len(Y)) if weight is None else weight
        with blas_threads(self.whitening.rank, self.threads):
            WY = w[:, None] * Y
            self._add_targets(values, np.column_stack([WY, w]))
            if weight is not None:
                values *= np.sqrt(w).astype(values.dtype)[:, None]
            self._add_products(values)
        self.q += WY.sum(axis=0)
        self.squares += (WY * Y).sum(axis=0)
        self.total += float(w.sum())
        self.n += len(Y)
        self.seconds["products"] += time.perf_counter() - middle
        return self

    def _room_for(self, rows: int) -> np.ndarray:
        """Memory for the kernel values of a block, the same for all: fresh pages cost as much as a
        third of the values."""
        size = rows * self.whitening.rank
        if self._room is None or self._room.size < size:
            self._room = self._touched((size,), self.whitening.precision)
        return self._room

    def _touched(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Zeros, whose pages are there: what that takes is not the time of a phase that uses
        them, as forecasts need it."""
        begin = time.perf_counter()
        zeros = np.empty(shape, dtype=dtype, order="F")
        zeros.fill(0.0)
        self.seconds["memory"] += time.perf_counter() - begin
        return zeros

    def _add_targets(self, values: np.ndarray, WY1: np.ndarray) -> None:
        """Also tells values that are not finite: one of them spoils the sum over its column."""
        step = len(values) if values.dtype == np.float64 else SLICE
        for start in range(0, len(values), step):
            part = values[start : start + step].astype(np.float64, copy=False)
            # By SciPy, as the products: the threads of a second library would spin beside them.
            sums = blas.dgemm(1.0, part, WY1[start : start + step], trans_a=1)
            if not np.isfinite(sums).all():
                found = "kernel values are not finite"
                raise DataError("data", None, found, "mend or scale the features")
            self.G += sums[:, :-1]
            self.s += sums[:, -1]

    def _add_products(self, values: np.ndarray) -> None:
        if values.dtype == np.float64:
            blas.dsyrk(1.0, values, beta=1.0, c=self.B, trans=1, lower=1, overwrite_c=1)
            return
        if self._products is None:
            self._products = np.zeros(self.B.shape, dtype=np.float32, order="F")
        for start in range(0, len(values), SLICE):
            part, out = values[start : start + SLICE], self._products
            self.B += blas.ssyrk(1.0, part, beta=0.0, c=out, trans=1, lower=1, overwrite_c=1)

    def merge(self, other: NormalEquations) -> NormalEquations:
        """Add the sums of `other`, which has the same centres, kernel, precision and form."""
        if self.form != other.form or not self.whitening.is_same(other.whitening):
            raise SettingsError("sums of different centres, kernels, precisions or forms")
        if self.outputs != other.outputs:
            raise SettingsError(f"sums of {self.outputs} and of {other.outputs} outputs")
        self._changed()
        self.B += other.B
        self.G += other.G
        self.s += other.s
        self.q += other.q
        self.squares += other.squares
        self.total += other.total
        self.n += other.n
        for phase, seconds in other.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        return self

    def _changed(self) -> None:
        self._systems.clear()
        self._sums = self._trace = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "_systems": {},
            "_sums": None,
            "_trace": None,
            "_products": None,
            "_room": None,
        }

    # -- solving ----------------------------------------------------------------------------------

    @overload
    def solve(self, ridge: float, *, bias: bool = False) -> LowRankFit: ...

    @overload
    def solve(self, ridge: Sequence[float], *, bias: bool = False) -> list[LowRankFit]: ...

    def solve(
        self, ridge: float | Sequence[float], *, bias: bool = False
    ) -> LowRankFit | list[LowRankFit]:
        """The fit for a ridge, or the fits for a list of them (at little more cost).

        Figures of a fit: `residual`, the weighted sum of squares Σ w (f − y)² of each output;
        `norm`, ‖f‖² of each; conditions; seconds by phase.
        """
        ridges = checked_ridges(ridge)
        begin = time.perf_counter()
        plain = self._plain(ridges, bias=bias)
        if plain is None:
            self.system(ridges, bias=bias)
        self.seconds["solve"] = self.seconds.get("solve", 0.0) + time.perf_counter() - begin
        if plain is not None:
            fits = [self._plain_fit(plain, ridges[0], bias=bias)]
        else:
            system = self.system(ridges, bias=bias)  # kept from above
            fits = [self._whitened_fit(system, k) for k in range(len(ridges))]
        return fits[0] if np.isscalar(ridge) else fits

    def _plain(self, ridges: list[float], *, bias: bool) -> PlainSolution | None:
        """The equations solved as they stand, where that is cheaper and safe."""
        self._check_rows()
        is_worthwhile = len(ridges) == 1 and (tuple(ridges), bias) not in self._systems
        if not (is_worthwhile and self.form == "plain" and self._is_well_conditioned):
            return None
        sums = Sums(self.B, self.G, self.s, self.q, self.total)
        found = solve_plain(sums, self.whitening, ridges[0], bias=bias, threads=self.threads)
        if found is None or not np.isfinite(found.coef).all():
            return None
        self._trace = found.trace
        return found

    @property
    def _is_well_conditioned(self) -> bool:
        return self.whitening.reciprocal_condition >= PLAIN_CONDITION

    def _plain_fit(self, found: PlainSolution, ridge: float, *, bias: bool) -> LowRankFit:
        info = {
            **self._figures(ridge, found.norm, found.product, bias=bias),
            "solved_by": "cholesky",
            "equations_residual": found.residual,
            "reciprocal_condition": found.reciprocal_condition,
            "clipped_eigenvalues": 0,
        }
        coef = self.whitening.spread(found.coef)
        return LowRankFit(None, coef, found.offset, ridge, info, self.whitening.kernel)

    def _whitened_fit(self, system: RidgeSystem, k: int) -> LowRankFit:
        u, ridge = system.u[k], system.ridges[k]
        norm, product = np.square(u).sum(axis=0), (u * system.G).sum(axis=0)
        info = {
            **self._figures(ridge, norm, product, bias=system.bias),
            "solved_by": system.method,
            "reciprocal_condition": system.reciprocal_condition(k),
            "clipped_eigenvalues": system.clipped,
        }
        coef = self.whitening.coefficients(u)
        return LowRankFit(None, coef, system.offset(k), ridge, info, self.whitening.kernel)

    def _figures(
        self, ridge: float, norm: np.ndarray, product: np.ndarray, *, bias: bool
    ) -> dict[str, Any]:
        """What all fits tell; `product` is uᵀG or cᵀb of each output."""
        # From (B + ridge I)u = G about the means: Σ w (f − y)² = yᵀWy − uᵀG − ridge ‖u‖².
        squares = self.squares - (self.q**2 / self.total if bias else 0.0)
        residual = np.maximum(squares - product - ridge * norm, 0.0)
        return {
            "method": "rectangle",
            "form": self.form,
            "precision": self.whitening.precision,
            "n": self.n,
            "m": self.whitening.m,
            "rank": self.whitening.rank,
            "ridge": ridge,
            "residual": residual.tolist(),
            "norm": norm.tolist(),
            "reciprocal_condition_centres": self.whitening.reciprocal_condition,
            "bytes": predicted_bytes(self.whitening.m),
            "seconds": dict(self.seconds),
        }

    def _check_rows(self) -> None:
        if self.total == 0.0:
            found = "no row of positive weight was added"
            raise DataError("data", None, found, "add rows before solving")

    def system(self, ridges: list[float], *, bias: bool = False) -> RidgeSystem:
        """The factored system, kept until rows are added."""
        self._check_rows()
        key = (tuple(ridges), bias)
        if key not in self._systems:
            self._systems = {key: RidgeSystem(self.sums(), ridges, bias=bias, threads=self.threads)}
        return self._systems[key]

    def sums(self) -> Sums:
        """The sums in terms of the features."""
        if self._sums is None:
            B, G, s = self.B, self.G, self.s
            if self.form == "plain":
                factor = self.whitening.factor
                with blas_threads(len(B), self.threads):
                    B = np.asfortranarray(np.tril(B))
                    B += np.tril(B, -1).T  # two trsm take less time than sygst
                    B = blas.dtrsm(1.0, factor, B, lower=1, overwrite_b=1)
                    B = blas.dtrsm(1.0, factor, B, side=1, lower=1, trans_a=1, overwrite_b=1)
                    stacked = np.asfortranarray(np.column_stack([G, s]))
                    stacked = blas.dtrsm(1.0, factor, stacked, lower=1, overwrite_b=1)
                G, s = stacked[:, :-1], stacked[:, -1]
            self._sums = Sums(B, G, s, self.q, self.total)
        return self._sums

    def loo_pass(
        self,
        X: Any,
        Y: Any,
        ridge: float | Sequence[float],
        weight: Any = None,
        *,
        bias: bool = False,
    ) -> np.ndarray:
        """Leave-one-out outputs of rows that were added: (rows, t), (ridges, rows, t) for a list.

        The second pass over the rows: each is left out of the sums, the centres and the ridge
        staying as they are. Rows of weight 0 get the plain output.
        """
        left = self.left_out(X, Y, checked_ridges(ridge), weight, bias=bias).outputs
        return left[0] if np.isscalar(ridge) else left

    def left_out(
        self, X: Any, Y: Any, ridges: list[float], weight: Any = None, *, bias: bool = False
    ) -> LeftOut:
        """What `loo_pass` gives, with the leverages and what they come from."""
        Y, weight = self._checked(X, Y, weight)
        features = self.whitening.features(X)
        return self.system(ridges, bias=bias).left_out(features, Y, weight)

    def trace(self) -> float:
        """Σ w K̃(x, x) over the rows added."""
        if self._trace is None:
            self._trace = float(self.sums().B.diagonal().sum())
        return self._trace

    def _checked(self, X: Any, Y: Any, weight: Any) -> tuple[np.ndarray, np.ndarray | None]:
        Y = checked_targets(Y, X.shape[0])
        if Y.shape[1] != self.outputs:
            found = f"targets of {Y.shape[1]} outputs"
            raise DataError("data", None, found, f"these sums have {self.outputs}")
        return Y, checked_weight(weight, X.shape[0])


def predicted_bytes(m: int) -> int:
    """Memory of the sums, the factor of K_mm, a factored system and copies in passing."""
    return 6 * 8 * m * m
