"""The proximal point method with semismooth Newton steps in w, for the plain linear kernel.

Coordinate descent slows down when C is large, features differ in scale or rows are many and short.
The proximal point method (Rockafellar 1976) replaces the dual problem of csrc/kfu/dual.h by

    min_β  ½‖Xᵀβ‖² + ½ Σ ridge β² + linearᵀβ + kinkᵀ|β| + ‖β − centre‖² / (2σ),   box, Σβ = c,

again and again with the last β as the centre. Its optimality conditions are those of the problem
but for (β − centre)/σ, so few values of a growing σ suffice. By duality each is the minimisation of
a convex, piecewise quadratic function of w and θ alone (d + 1 unknowns). With everything counted
from the centre, F the gradient there and w = Xᵀcentre + v, its gradient is

    ∇_v = v − Xᵀ(β − centre),   ∇_θ = Σβ − c,   β(s) = clip(soft(centre − weight·s)),
    s = F − θ + Xv,   weight = 1 / (ridge + 1/σ),   soft() the threshold weight·kink.

With J the variables on no bound and not on their kink, a Newton step solves
    (I + Σ_J weight (x − x̄)(x − x̄)ᵀ) dv = −∇_v − x̄ ∇_θ,   dθ = x̄·dv − ∇_θ / Σ_J weight,
x̄ the weighted mean over J (x̄ = 0 and dθ = 0 without equality), followed by an exact line search,
which costs no pass over X. Where the pieces no longer change the step is the solution: a subproblem
takes a handful. Only rows of J enter the matrix; β lies on its bounds exactly. Counting from the
centre keeps rounding errors of the size of what is still to be done, not of the solution: features
in the millions do no harm. (Yan and Li, SIAM J. Optim. 2020, do the same on the primal side.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kfu.solvers.blas_threads import one_blas_thread

MOST_DIRECT = 2500  # unknowns of a system that is factorised; larger ones: conjugate gradients
FEW_FEATURES = 128  # of dense rows, below which threads of BLAS do not pay
BLOCK_BYTES = 2.0**23  # of rows gathered at a time
LARGEST_CONDITION = 1e14  # of a Newton system, by σ
FEW_STEPS = 3  # of a subproblem that was too easy
GROWTH = 8.0  # of σ from one subproblem to the next
INNER = 0.1  # residual of a subproblem, as a part of what its centre leaves or of the tolerance
BALANCED = 1e-8  # Σβ − c of a solved subproblem, relative to Σ|β|
SAMPLE_PER_FEATURE = 20  # rows of J in the matrix where there are far more
LEAST_SAMPLE = 2000
MOST_SAMPLED_STEPS = 12  # of a subproblem; after that all rows
MOST_SUBPROBLEM_STEPS = 150  # then the point reached is the next centre
MOST_NOISY_STEPS = 3  # whose slope is of the size of its rounding error
NOISE = 1e-11
SHORT_STEP = 0.01  # part of a Newton step
FLAT = 0.1  # part of the first slope at which a line search ends
MOST_LINE_STEPS = 50
MOST_CONJUGATE_STEPS = 250
CONJUGATE_GOAL = 0.01  # of the residual


class ProximalNewton:
    """The state of a run: (w, θ), the scores u, the centre and σ; one Newton step per `step()`.

    `rows` is a kfu._linear.LinearProblem over X and `arrays`; `target_sum` is c.
    """

    def __init__(
        self, rows: Any, X: Any, arrays: dict[str, Any], target_sum: float, tolerance: float
    ) -> None:
        self.rows = rows
        self.X = X
        self.points = np.asarray(arrays["points"], dtype=np.int64)
        self.linear = np.ascontiguousarray(arrays["linear"], dtype=np.float64)
        self.lower = np.ascontiguousarray(arrays["lower"], dtype=np.float64)
        self.upper = np.ascontiguousarray(arrays["upper"], dtype=np.float64)
        ridge = arrays["ridge"]
        self.ridge = np.zeros(len(self.linear)) if ridge is None else np.asarray(ridge, float)
        kink = arrays.get("kink")
        self.kink = np.zeros(len(self.linear)) if kink is None else np.asarray(kink, float)
        self.has_equality = bool(arrays["has_equality"])
        self.target_sum = target_sum
        self.tolerance = tolerance
        squares = rows.squares()
        self.mean_square = float(squares.mean()) if len(squares) else 0.0
        self.longest = float(np.sqrt(squares.max(initial=0.0)))
        self.sigma = 1.0
        self.theta = 0.0
        self.steps = 0
        self.largest_sigma = LARGEST_CONDITION / max(self.longest, 1e-150) ** 2
        self.squared: Any = None  # X∘X, when conjugate gradients are used

    def start(self, beta: np.ndarray, theta: float, width: float) -> None:
        """Begin at β and θ; `width` is how far the first centre may leave F from its conditions."""
        self.theta = theta if self.has_equality else 0.0
        self.sigma = self._typical_box(beta) / width
        self.largest_sigma = max(self.largest_sigma, self.sigma)
        self._recentre(beta)

    def _typical_box(self, beta: np.ndarray) -> float:
        """A length of β: the mean finite width of a box, or what β or the rows suggest."""
        widths = self.upper - self.lower
        finite = widths[np.isfinite(widths) & (widths > 0)]
        used = np.abs(beta[beta != 0.0])
        natural = 1.0 / self.mean_square if self.mean_square > 0 else 1.0
        if len(finite) == 0:
            return float(used.mean()) if len(used) else natural
        # A box that nothing fills says nothing: with a huge C, β is of the size the rows give it.
        return float(min(finite.mean(), max(natural, used.mean() if len(used) else 0.0) * 100.0))

    def _recentre(self, beta: np.ndarray) -> None:
        self.centre = self.last_beta = beta
        self.F = self.rows.gradient(beta)
        self.excess = math.fsum(beta) - self.target_sum if self.has_equality else 0.0
        self.v = np.zeros(self.rows.n_features)
        self.image = np.zeros(self.rows.n_features)  # Xᵀ(last_beta − centre)
        self.score = self.F - self.theta
        self.weight = 1.0 / (self.ridge + 1.0 / self.sigma)
        inside = (beta > self.lower) & (beta < self.upper) & ((beta != 0.0) | (self.kink == 0.0))
        self.centre_inside = int(np.count_nonzero(inside))
        self.subproblem_steps = self.noisy_steps = 0
        self.last_t = 1.0

    def current(self) -> np.ndarray:
        """β of the present (w, θ)."""
        return self._point()[0]

    def _point(self) -> tuple[np.ndarray, np.ndarray]:
        return self.rows.proximal_point(self.centre, self.weight, self.score)

    def step(self) -> np.ndarray | None:
        """One Newton step; β when the subproblem was solved instead (it is then the centre)."""
        beta, inside = self._point()
        self.image += self.rows.add(beta - self.last_beta)  # few change, towards the end
        self.last_beta = beta
        residual = self.v - self.image
        moves = beta - self.centre
        imbalance = float(moves.sum()) + self.excess if self.has_equality else 0.0
        error = self.longest * float(np.linalg.norm(residual))
        error = max(error, abs(imbalance) * self.mean_square)
        moved = float(np.abs(moves).max(initial=0.0)) / self.sigma
        is_solved = error <= INNER * max(moved, self.tolerance)
        is_solved &= abs(imbalance) <= BALANCED * float(np.abs(beta).sum() + abs(self.target_sum))
        if is_solved or self._is_stuck():
            self._adapt(is_solved)
            self._recentre(beta)
            return beta
        if self.last_t < SHORT_STEP:
            inside = self._widened(inside)
        dv, dtheta = self._direction(inside, residual, imbalance)
        direction = self.rows.apply(dv)
        direction -= dtheta
        t = self.last_t = self._line_search(dv, dtheta, direction)
        self.v += t * dv
        self.theta += t * dtheta
        self.score += t * direction
        self.steps += 1
        self.subproblem_steps += 1
        return None

    def _is_stuck(self) -> bool:
        return self.noisy_steps > MOST_NOISY_STEPS or self.subproblem_steps >= MOST_SUBPROBLEM_STEPS

    def _adapt(self, is_solved: bool) -> None:
        """The next σ: larger, or smaller where rounding or too many pieces defeated the last."""
        steps = self.subproblem_steps
        if is_solved:
            if steps <= FEW_STEPS:
                self.largest_sigma *= 2.0
            factor = GROWTH if steps > FEW_STEPS else GROWTH**2
            next_sigma = min(factor * self.sigma, max(self.largest_sigma, self.sigma))
        else:
            next_sigma = self.largest_sigma = self.sigma / GROWTH
        self.sigma = next_sigma

    # -- the Newton system ------------------------------------------------------------------------

    def _widened(self, inside: np.ndarray) -> np.ndarray:
        """J, or with few in it (the last step was blind in most directions) also the variables
        that will be the next to enter it."""
        wanted = min(len(self.v) + 1, self.centre_inside)
        if len(inside) >= 0.5 * wanted:
            return inside
        value = self.centre - self.weight * self.score
        threshold = self.weight * self.kink
        on_kink = threshold - np.abs(value)
        value = np.copysign(np.maximum(-on_kink, 0.0), value)
        beyond = np.maximum(self.lower - value, value - self.upper)
        beyond = np.where(threshold > 0.0, np.maximum(beyond, on_kink), beyond) / self.weight
        beyond[self.lower >= self.upper] = np.inf
        return np.sort(np.argpartition(beyond, wanted - 1)[:wanted])

    def _direction(
        self, inside: np.ndarray, residual: np.ndarray, imbalance: float
    ) -> tuple[np.ndarray, float]:
        weight = self.weight[inside]
        total = float(weight.sum())
        if not self.has_equality or total == 0.0:
            mean = np.zeros(len(residual))
            dv = -residual if total == 0.0 else self._solve(inside, weight, mean, -residual)
            # With nothing inside, Φ is linear in θ: downhill by any amount, the line search knows.
            return dv, -imbalance / max(float(self.weight.sum()), 1e-300)
        mean = self.rows.add(weight, inside) / total
        dv = self._solve(inside, weight, mean, -residual - imbalance * mean)
        return dv, float(mean @ dv) - imbalance / total

    def _solve(
        self, inside: np.ndarray, weight: np.ndarray, mean: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """(I + Σ weight (x − mean)(x − mean)ᵀ)⁻¹ right, over the variables inside."""
        if min(len(right), len(inside)) > MOST_DIRECT:
            return self._conjugate_gradients(inside, weight, mean, right)
        with one_blas_thread():
            return self._solve_directly(inside, weight, mean, right)

    def _solve_directly(
        self, inside: np.ndarray, weight: np.ndarray, mean: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        d = len(right)
        if d <= max(len(inside), 64):
            chosen, part = self._sample(inside, weight, d)
            if len(chosen) < len(inside) and self.has_equality:
                mean = self.rows.add(part, chosen) / part.sum()
            return _solve_scaled(self._normal_matrix(chosen, part, mean), right)
        # Fewer rows than features: (I + BᵀB)⁻¹ = I − Bᵀ(I + BBᵀ)⁻¹B.
        root = np.sqrt(weight)
        X = self.X[self.points[inside]].astype(np.float64)
        along = self.rows.apply(mean, inside)
        gram = (X @ X.T).toarray() if sp.issparse(X) else X @ X.T
        gram = gram - along[:, None] - along[None, :] + float(mean @ mean)
        gram *= root[:, None] * root[None, :]
        gram[np.diag_indices(len(root))] += 1.0
        coef = root * (self.rows.apply(right, inside) - float(mean @ right))
        coef = root * _solve_scaled(gram, coef)
        return right - self.rows.add(coef, inside) + float(coef.sum()) * mean

    def _sample(
        self, inside: np.ndarray, weight: np.ndarray, d: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some of many rows: their matrix is near enough for a step towards a distant solution."""
        most = max(SAMPLE_PER_FEATURE * d, LEAST_SAMPLE)
        if len(inside) <= 2 * most or self.subproblem_steps >= MOST_SAMPLED_STEPS:
            return inside, weight
        stride = len(inside) // most
        chosen = slice(self.steps % stride, None, stride)
        part = weight[chosen]
        return inside[chosen].copy(), part * (weight.sum() / part.sum())

    def _normal_matrix(
        self, inside: np.ndarray, weight: np.ndarray, mean: np.ndarray
    ) -> np.ndarray:
        d = len(mean)
        H = np.zeros((d, d))
        if self.rows.layout == "csr" or d <= FEW_FEATURES:
            self.rows.add_outer(inside, weight, mean, H)
        else:
            root = np.sqrt(weight)
            length = max(16, int(BLOCK_BYTES / (8 * d)))
            for first in range(0, len(inside), length):
                block = slice(first, first + length)
                B = self.X[self.points[inside[block]]] - mean
                B *= root[block, None]
                H += B.T @ B
        H[np.diag_indices(d)] += 1.0
        return H

    def _conjugate_gradients(
        self, inside: np.ndarray, weight: np.ndarray, mean: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """To a part of the residual, which is all a Newton step needs; scaled by the diagonal."""

        def times(v: np.ndarray) -> np.ndarray:
            along = weight * (self.rows.apply(v, inside) - float(mean @ v))
            return v + self.rows.add(along, inside) - float(along.sum()) * mean

        scale = 1.0 / self._diagonal(inside, weight, mean)
        x = np.zeros_like(right)
        r = right.copy()
        p = scale * r
        square = float(r @ p)
        goal = CONJUGATE_GOAL**2 * square
        for _ in range(MOST_CONJUGATE_STEPS):
            if square <= goal:
                break
            Ap = times(p)
            step = square / float(p @ Ap)
            x += step * p
            r -= step * Ap
            z = scale * r
            last, square = square, float(r @ z)
            p = z + (square / last) * p
        return x

    def _diagonal(self, inside: np.ndarray, weight: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Of the Newton matrix: by feature, 1 + Σ weight (x − mean)²."""
        by_row = np.bincount(self.points[inside], weights=weight, minlength=self.X.shape[0])
        if sp.issparse(self.X):
            if self.squared is None:
                self.squared = self.X.astype(np.float64).power(2)
            sums = self.squared.T @ by_row
        else:
            sums = np.einsum("ij,ij,i->j", self.X, self.X, by_row)
        return 1.0 + np.maximum(sums - float(weight.sum()) * mean**2, 0.0)

    def _line_search(self, dv: np.ndarray, dtheta: float, direction: np.ndarray) -> float:
        """A zero of the slope along the step: nondecreasing, piecewise linear."""
        constant = float(self.v @ dv) + self.excess * dtheta
        square = float(dv @ dv)

        def slope(t: float) -> tuple[float, float]:
            first, second = self.rows.proximal_slope(
                self.centre, self.weight, self.score, direction, t
            )
            return constant + t * square - first, square + second

        start = slope(0.0)[0]
        self.noisy_steps += start > -NOISE * (2.0 * abs(constant) + abs(start))
        goal = FLAT * abs(start)
        low, high, t = 0.0, np.inf, 1.0
        for _ in range(MOST_LINE_STEPS):
            value, rise = slope(t)
            if abs(value) <= goal:
                return t
            low, high = (t, high) if value < 0.0 else (low, t)
            newton = t - value / rise if rise > 0.0 else np.inf
            if high == np.inf:
                middle = 4.0 * t
            elif low > 0.01 * high:
                middle = 0.5 * (low + high)
            else:  # by orders of magnitude
                middle = math.sqrt(low * high) if low > 0.0 else 1e-3 * high
            t = newton if low < newton < min(high, 10.0 * t) else middle
        return low if low > 0.0 else t


def _solve_scaled(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    """H⁻¹ right for H symmetric positive definite (lower triangle), scaled to a unit diagonal."""
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), 1e-300))
    scaled = H * scale[:, None] * scale[None, :]
    shift = 0.0
    while True:
        try:
            if shift:
                scaled[np.diag_indices(len(scale))] += shift
            factor = scipy.linalg.cho_factor(scaled, lower=True, check_finite=False)
            return scale * scipy.linalg.cho_solve(factor, scale * right, check_finite=False)
        except scipy.linalg.LinAlgError:
            shift = max(100.0 * shift, 1e-14)
