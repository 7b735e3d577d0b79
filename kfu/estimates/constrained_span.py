"""Spans with their constraints: one quadratic programme for each support vector; and the bound.

S_p² = min ‖Φ_p − Σ λ_i Φ_i‖² over unbounded i ≠ p with Σλ = 1 (with a free bias) and
0 ≤ α_i + y_i y_p α_p λ_i ≤ U_i: α without p, its share dealt to the unbounded within their boxes.
Where the λ of the closed form keep the boxes they are the answer; the other programmes are solved
by the dual solver. Where the boxes have no room for α_p there is none, and S_p = ∞.

span-exact is the span rule with these S_p. It is never below the rule for unbounded vectors.

span-bound. Let W be the optimum of the dual and W_p that without row p. Dealing α_p to the others
costs at most W − W_p ≤ α_p ξ_p + ½ α_p² S_p². Taking p up again with t of its own gains at least
W − W_p ≥ max over 0 ≤ t ≤ U_p of g t − ½ t² d², if p is an error without itself (y f^p ≤ 0).
Without bias d² = K(p, p), for p enters alone; with one, what p takes is dealt to unbounded vectors
of the machine without p, whose rooms add up to at least U if all boxes are alike (the sum of α at
bounds is a multiple of U, and Σyα = 0), and d is at most the largest distance to another row. So p
can be an error only if

    α_p ξ_p + ½ α_p² S_p² ≥ max_t (g t − ½ t² d²)  =  ½ g²/d²,  or  gU − ½U²d² if U < g/d²

For hard margins and unbounded vectors this is the theorem of Vapnik and Chapelle (2000),
α_p S_p max(D, 1/√C) ≥ 1, but for D: the distance that matters in place of the sphere's diameter;
bounded vectors, which they count as errors, need not be. With a bias both need an unbounded vector
in every machine that is trained without a row.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kfu.calibration.span_matrix import SpanMatrix
from kfu.estimates.conditions import all_of, equal_costs, signs_decide, stays_unbounded
from kfu.estimates.registry import LOO_ERROR, SVC, Entry, Found, Options
from kfu.estimates.trained import BinaryMachine, Trained
from kfu.kernels import KernelSpec
from kfu.solvers import DualProblem, SolverSettings
from kfu.solvers.dual import make_store, solve

WITHIN = 1e-9  # by how much λ of the closed form may leave its box, relative
BLOCK_ROWS = 256
ACCURACY = 1e-7  # of the programmes, relative to the mean of K(x, x)


def constrained_spans(machine: BinaryMachine) -> np.ndarray:
    """S² (rows,); ∞ where there is no λ, 0 for rows that are no support vectors."""
    if "constrained" not in machine.kept:
        machine.kept["constrained"] = _Programmes(machine).spans()
    return np.asarray(machine.kept["constrained"])


class _Programmes:
    def __init__(self, machine: BinaryMachine) -> None:
        self.machine = machine
        self.free, self.bounded = machine.categories
        self.K = machine.block(self.free, self.free)
        self.K[np.diag_indices(self.free.size)] += machine.ridge[self.free]

    def spans(self) -> np.ndarray:
        machine, found = self.machine, np.zeros(self.machine.rows.size)
        if self.free.size == 0:
            nothing = np.inf if machine.has_bias else machine.diagonal[self.bounded]
            found[self.bounded] = nothing
            return found
        self.unit = float(np.abs(np.diagonal(self.K)).mean()) or 1.0
        self.settings = SolverSettings(
            tolerance=ACCURACY * self.unit, precision="float64", threads=1, polish=False
        )
        self.store = make_store(self.K, KernelSpec.make("precomputed"), self.settings)
        matrix = SpanMatrix(self.K.copy(), machine.has_bias)
        inverse = matrix.full()
        with np.errstate(divide="ignore", invalid="ignore"):
            own = -inverse / np.diagonal(inverse)  # column p: λ of p
        own[np.diag_indices(self.free.size)] = 0.0
        own = np.nan_to_num(own, posinf=0.0, neginf=0.0)
        with ThreadPoolExecutor(machine.kernel.task.settings.n_threads) as pool:
            places = range(self.free.size)
            found[self.free] = list(pool.map(self.span, self.free, self.K, own.T, places))
            for start in range(0, self.bounded.size, BLOCK_ROWS):
                rows = self.bounded[start : start + BLOCK_ROWS]
                values = machine.block(rows, self.free)
                weights = matrix.weights_of(values)
                found[rows] = list(pool.map(self.span, rows, values, weights))
        return found

    def span(self, row: int, k: np.ndarray, weights: np.ndarray, place: int | None = None) -> float:
        """S² of a row with kernel values k to the unbounded, itself at `place` among these."""
        machine, own = self.machine, self.machine.alpha[row]
        signs = machine.y[self.free] * machine.y[row]
        lower = -machine.alpha[self.free] / own  # of signs · λ
        upper = (machine.upper[self.free] - machine.alpha[self.free]) / own
        if place is not None:
            lower[place] = upper[place] = 0.0
        moved = signs * weights
        slack = WITHIN * (1.0 + np.abs(moved))
        sums = abs(weights.sum() - 1.0) < 1e-6 if machine.has_bias else True
        if sums and np.all(moved >= lower - slack) and np.all(moved <= upper + slack):
            square = weights @ self.K @ weights - 2.0 * (k @ weights)
            return max(0.0, float(machine.diagonal[row] + square))
        ends = np.where(signs > 0, lower, -upper), np.where(signs > 0, upper, -lower)
        start = np.clip(weights, *ends)
        if machine.has_bias:
            dealt = with_sum(start, *ends, total=1.0)
            if dealt is None:
                return np.inf
            start = dealt
        problem = DualProblem(
            signs=signs,
            linear=-signs * k,
            lower=lower,
            upper=upper,
            points=np.arange(self.free.size),
            has_equality=machine.has_bias,
        )
        kernel = KernelSpec.make("precomputed")
        solution = solve(problem, self.K, kernel, self.settings, start=start, store=self.store)
        return max(0.0, float(machine.diagonal[row] - 2.0 * solution.info.objective))


def with_sum(
    x: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float
) -> np.ndarray | None:
    """x within the box moved to the given sum; None where the box does not hold it."""
    missing = total - float(x.sum())
    ends = upper if missing > 0 else lower
    room = np.abs(ends - x)
    endless = np.isinf(room)
    if endless.any():
        room = np.where(endless, 1.0, 0.0) * abs(missing)
    space = float(room.sum())
    if abs(missing) > space * (1 + 1e-12):
        return None
    return x if space == 0.0 else x + np.sign(missing) * room * (abs(missing) / space)


def span_exact(trained: Trained, options: Options) -> Found:
    outputs, without = [], 0
    for machine in trained.binary:
        squares = constrained_spans(machine)
        without += int(np.isinf(squares).sum())
        # No λ: the row cannot be left out within the categories; its output is put on the far side.
        far = -machine.y * np.maximum(1.0, np.abs(machine.outputs))
        fall = machine.alpha * np.where(np.isinf(squares), 0.0, squares)
        fallen = machine.outputs - machine.y * fall
        outputs.append(np.where(np.isinf(squares), far, fallen))
    found = trained.all_machines(outputs)
    note = ""
    if without:
        note = f"{without} rows cannot be dealt to the unbounded vectors and count as errors"
    return Found(trained.score(found), note, outputs=found, flags=trained.wrong(found))


def span_bound(trained: Trained, options: Options) -> Found:
    flags = trained.any_machine([possible_errors(machine) for machine in trained.binary])
    flags |= trained.wrong(trained.decision)
    return Found(trained.share(flags), flags=flags)


def possible_errors(machine: BinaryMachine) -> np.ndarray:
    """Rows (of the machine) that the bound does not prove to be right without themselves."""
    found = np.zeros(machine.rows.size, dtype=bool)
    support = machine.support
    alpha, slack = machine.alpha[support], machine.slack[support]
    cost = alpha * slack + 0.5 * alpha**2 * constrained_spans(machine)[support]
    square = machine.farthest if machine.has_bias else machine.diagonal[support]
    target, upper = machine.target[support], machine.upper[support]
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.minimum(upper, np.where(square > 0, target / square, np.inf))
        gain = target * best - 0.5 * best**2 * square
    found[support] = ~(cost < gain * (1 - 1e-6))
    return found


def work(trained: Trained) -> float:
    total = 0.0
    for machine in trained.binary:
        size, free = machine.support.size, machine.categories[0].size
        total += 0.1 * size + 1e-9 * size * (20 * free**2 + machine.rows.size)
    return total


SPAN_EXACT = Entry(
    "span-exact",
    "span rule with the constraints kept, one QP a support vector",
    "estimate",
    LOO_ERROR,
    "Vapnik and Chapelle 2000",
    SVC,
    span_exact,
    size=work,
)
SPAN_BOUND = Entry(
    "span-bound",
    "bound by constrained spans",
    "bound",
    LOO_ERROR,
    "Vapnik and Chapelle 2000",
    SVC,
    span_bound,
    all_of(equal_costs, stays_unbounded, signs_decide),
    size=work,
)
