"""From the probabilities of binary machines to those of classes.

r_m is the probability machine m gives its positive side, of code column m (kfu.pairwise).

**Pairs** (one-versus-one). With r_ij the probability of class i against j,

    min over p of Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²  subject to  Σ p = 1,

the second method of Wu, Lin and Weng. It is a linear system: with Q_ii = Σ_{j≠i} r_ji² and
Q_ij = −r_ji r_ij, [Q 1; 1ᵀ 0] [p; b] = [0; 1], whose p is nonnegative. Rows are solved in batches;
a row whose system is too near to singular for that is left to the authors' iteration, which keeps
p ≥ 0 in any arithmetic.

**One versus all.** p_k = r_k / Σ r.

**Any other code.** The generalised Bradley–Terry model: q_m⁺ and q_m⁻ the sums of p over the two
sides of machine m,

    max over p of Σ_m r_m log(q_m⁺/(q_m⁺ + q_m⁻)) + (1 − r_m) log(q_m⁻/(q_m⁺ + q_m⁻)),

least total Kullback–Leibler divergence between the machines and p. Each step of

    p_k ← p_k · (Σ_{k in +} r_m/q_m⁺ + Σ_{k in −} (1 − r_m)/q_m⁻) / Σ_{k seen} 1/q_m,

with q_m = q_m⁺ + q_m⁻, maximises a lower bound that touches at p, so the likelihood never falls. It
starts from equal p; classes that no machine tells apart share equally.

Every r_m is first kept within [R_MIN, 1 − R_MIN]: certainty of one machine would otherwise outvote
all others, and two that contradict each other would leave no solution.

Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, JMLR 5
(2004); Huang, Weng and Lin, Generalized Bradley–Terry models and multi-class probability estimates,
JMLR 7 (2006); Hunter, MM algorithms for generalized Bradley–Terry models, Ann. Stat. 32 (2004).
"""

from __future__ import annotations

import numpy as np

__all__ = ["bradley_terry", "couple_pairs", "normalised_ova", "pair_matrix"]

R_MIN = 1e-7
# Keeps the quotients of the Bradley–Terry iteration finite where a class has vanished.
P_MIN = 1e-200
BLOCK_BYTES = 32 << 20
MOST_STEPS = 2000
# Entries below −NEGATIVE cannot be rounding of a zero: that row goes to the iteration.
NEGATIVE = 1e-9


def bounded(r: np.ndarray) -> np.ndarray:
    return np.clip(r, R_MIN, 1 - R_MIN)


def pair_matrix(r: np.ndarray, pairs: list[tuple[int, int, int]], n_classes: int) -> np.ndarray:
    """r_ij (n, K, K) of machines' probabilities (n, M); `pairs` as `kfu.pairwise.pairs_of`."""
    machine, negative, positive = np.array(pairs).T
    R = np.zeros((r.shape[0], n_classes, n_classes))
    R[:, positive, negative] = r[:, machine]
    R[:, negative, positive] = 1 - r[:, machine]
    return R


def couple_pairs(r: np.ndarray, pairs: list[tuple[int, int, int]], n_classes: int) -> np.ndarray:
    """Class probabilities (n, K) of one-versus-one machines (n, M); see the head of the file."""
    r = bounded(r)
    p = np.empty((r.shape[0], n_classes))
    block = max(1, BLOCK_BYTES // (8 * 3 * (n_classes + 1) ** 2))
    for start in range(0, len(r), block):
        rows = slice(start, start + block)
        p[rows] = _solve_pairs(pair_matrix(r[rows], pairs, n_classes))
    return p


def _quadratic(R: np.ndarray) -> np.ndarray:
    Q = -R * R.transpose(0, 2, 1)
    diagonal = np.arange(R.shape[1])
    Q[:, diagonal, diagonal] = (R**2).sum(axis=1)
    return Q


def _solve_pairs(R: np.ndarray) -> np.ndarray:
    n, n_classes, _ = R.shape
    Q = _quadratic(R)
    system = np.ones((n, n_classes + 1, n_classes + 1))
    system[:, :-1, :-1] = Q
    system[:, -1, -1] = 0.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, -1] = 1.0
    try:
        p = np.linalg.solve(system, right)[:, :-1, 0]
    except np.linalg.LinAlgError:
        p = np.full((n, n_classes), np.nan)
    failed = ~(p >= -NEGATIVE).all(axis=1)
    if failed.any():
        p[failed] = _iterate_pairs(Q[failed])
    p = np.maximum(p, 0.0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _iterate_pairs(Q: np.ndarray) -> np.ndarray:
    """The same minimum by cyclic steps p_t ← (pᵀQp − Σ_{j≠t} Q_tj p_j) / Q_tt, normalised."""
    n, n_classes, _ = Q.shape
    p = np.full((n, n_classes), 1 / n_classes)
    active = np.arange(n)
    for _ in range(MOST_STEPS):
        q, x = Q[active], p[active]
        before = x.copy()
        for t in range(n_classes):
            image = np.einsum("nij,nj->ni", q, x)
            value = np.einsum("ni,ni->n", image, x)
            x[:, t] += (value - image[:, t]) / q[:, t, t]
            np.maximum(x, 0.0, out=x)
            x /= x.sum(axis=1, keepdims=True)
        p[active] = x
        active = active[np.abs(x - before).max(axis=1) > 1e-13]
        if active.size == 0:
            break
    return p


def normalised_ova(r: np.ndarray) -> np.ndarray:
    """p_k = r_k / Σ r of the probabilities (n, K) of the classes against all others."""
    r = bounded(r)
    return np.asarray(r / r.sum(axis=1, keepdims=True))


def bradley_terry(r: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Class probabilities (n, K) of the machines (n, M) of any code (K, M).

    Requires that every class is seen by some machine, and every machine has both sides.
    """
    positive, negative = (code > 0).astype(np.float64), (code < 0).astype(np.float64)
    r = bounded(r)
    n_classes = code.shape[0]
    p = np.full((r.shape[0], n_classes), 1 / n_classes)
    block = max(1, BLOCK_BYTES // (8 * 6 * max(code.shape)))
    for start in range(0, len(r), block):
        _climb(p[start : start + block], r[start : start + block], positive, negative)
    return p


def _climb(p: np.ndarray, r: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> None:
    """The iteration of the head of the file, in place, each row until it stands still."""
    active = np.arange(len(r))
    seen = positive + negative
    for _ in range(MOST_STEPS):
        x, share = p[active], r[active]
        above, below = x @ positive, x @ negative
        gain = (share / above) @ positive.T + ((1 - share) / below) @ negative.T
        new = np.maximum(x * gain / ((1 / (above + below)) @ seen.T), P_MIN)
        new /= new.sum(axis=1, keepdims=True)
        p[active] = new
        active = active[np.abs(new - x).max(axis=1) > 1e-10]
        if active.size == 0:
            break
