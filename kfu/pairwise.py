"""Code matrices: how the classes of a problem are dealt to binary machines and votes come back.

``code[k, m]`` is +1 where machine m takes class k as positive, -1 where as negative, 0 where it
does not see the class. A binary problem has the code ``[[-1], [1]]``; one-versus-one has a column
for each pair i < j of classes, in the order (0,1), (0,2), ..., (1,2), ..., the larger positive.

Decoding rule, everywhere in kfu: a machine votes for its positive class when f > 0 and for its
negative class when f <= 0; the class with most votes wins; equal votes are decided by the machines
between the tied classes, by the sum of their decision values in favour of each (of two classes, by
the machine that compares them); equal sums by the order of the classes.

The packed pairwise layout is the one LIBSVM's model files and scikit-learn's ``dual_coef_`` use: an
array (n_classes - 1, n_sv) in which a vector of class k keeps its coefficient against class j in
row j - 1 when j > k and in row j when j < k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "ClassPart",
    "ovo_code",
    "ovr_scores",
    "pack_pairwise",
    "pair_order",
    "pairs_of",
    "pairwise_parts",
    "support_classes",
    "tally",
    "unpack_pairwise",
    "vote",
]


def ovo_code(n_classes: int) -> np.ndarray:
    """The one-versus-one code (n_classes, n_pairs); for two classes it is the binary one."""
    first, second = np.triu_indices(n_classes, k=1)
    code = np.zeros((n_classes, first.size), dtype=np.int8)
    columns = np.arange(first.size)
    code[first, columns] = -1
    code[second, columns] = 1
    return code


def pairs_of(code: np.ndarray) -> list[tuple[int, int, int]] | None:
    """Where each pair of classes is decided: (machine, negative class, positive class).

    The list is in the order (0,1), (0,2), ..., (1,2), ... of the pairs, whatever the order and
    orientation of the columns. None when the code is not one machine for each pair.
    """
    n_classes, n_machines = code.shape
    if n_machines != n_classes * (n_classes - 1) // 2:
        return None
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for machine in range(n_machines):
        positive = np.flatnonzero(code[:, machine] > 0)
        negative = np.flatnonzero(code[:, machine] < 0)
        if positive.size != 1 or negative.size != 1:
            return None
        p, n = int(positive[0]), int(negative[0])
        found[min(p, n), max(p, n)] = (machine, n, p)
    if len(found) != n_machines:
        return None
    return [found[pair] for pair in sorted(found)]


def pair_order(code: np.ndarray, *, larger_is_positive: bool) -> tuple[np.ndarray, np.ndarray]:
    """The machines in the order of the pairs (0,1), (0,2), ..., and the sign each has to be
    multiplied by to be positive for the larger (or the smaller) class of its pair.

    Requires a one-versus-one code.
    """
    pairs = pairs_of(code)
    if pairs is None:
        raise ValueError("the code is not one-versus-one")
    is_larger = np.array([negative < positive for _, negative, positive in pairs])
    order = np.array([machine for machine, _, _ in pairs])
    return order, np.where(is_larger == larger_is_positive, 1.0, -1.0)


def support_classes(coef: np.ndarray, code: np.ndarray) -> np.ndarray:
    """The class index of each support vector, read off the signs of its coefficients.

    Coefficients are c = y α with α >= 0, so their signs are the code of the vector's class. A
    vector with no coefficient at all gets -1.
    """
    agreement = np.sign(coef).T @ code.T.astype(np.float64)
    return np.where(np.any(coef != 0, axis=0), np.argmax(agreement, axis=1), -1)


@dataclass(frozen=True)
class ClassPart:
    """The vectors of one class and the machines that see the class."""

    vectors: np.ndarray
    machines: np.ndarray


FEWEST_CLASSES = 4  # from which on it pays to evaluate a one-versus-one model class by class


def pairwise_parts(coef: np.ndarray, code: np.ndarray) -> list[ClassPart] | None:
    """The classes of a one-versus-one model, so that f needs each vector's K - 1 coefficients and
    not all K (K - 1) / 2. None where the code is another or a vector has a coefficient in a machine
    that does not see its class.
    """
    n_classes = code.shape[0]
    if n_classes < FEWEST_CLASSES or pairs_of(code) is None:
        return None
    owners = support_classes(coef, code)
    if np.any((coef != 0) & (code[owners].T == 0)):
        return None
    parts = []
    for k in range(n_classes):
        vectors = np.flatnonzero(owners == k)
        if vectors.size:
            parts.append(ClassPart(vectors, np.flatnonzero(code[k])))
    return parts


def tally(decision: np.ndarray, code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Votes for less votes against each class, and the decision values summed in its favour."""
    weights = code.T.astype(np.float64)
    return np.where(decision > 0, 1.0, -1.0) @ weights, decision @ weights


def vote(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    """The winning class index of each row of decision values (n, n_machines)."""
    if code.shape == (2, 1):
        return np.where(decision[:, 0] > 0, np.argmax(code[:, 0]), np.argmin(code[:, 0]))
    weights = code.T.astype(np.float64)
    votes = np.where(decision > 0, 1.0, -1.0) @ weights
    winners = np.argmax(votes, axis=1)
    leads = votes == votes.max(axis=1, keepdims=True)
    tied = np.flatnonzero(leads.sum(axis=1) > 1)
    if tied.size:
        sides = leads[tied].astype(np.float64)
        between = ((sides @ (weights.T > 0)) > 0) & ((sides @ (weights.T < 0)) > 0)
        favour = (decision[tied] * between) @ weights
        winners[tied] = np.argmax(np.where(leads[tied], favour, -np.inf), axis=1)
    return winners


def ovr_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    """One score per class (n, n_classes), scikit-learn's: the number of votes won, plus the summed
    decision values squeezed into (-1/3, 1/3) so that they only part equal votes. Where votes are
    equal its argmax may be another of the tied classes than `vote` finds.

    Requires a one-versus-one code.
    """
    n_classes = code.shape[0]
    votes, favour = tally(decision, code)
    return (votes + (n_classes - 1)) / 2 + favour / (3 * (np.abs(favour) + 1))


def pack_pairwise(coef: np.ndarray, code: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """One-versus-one coefficients (n_machines, n_sv) in the packed layout, signs kept.

    Requires: `code` is one-versus-one, `classes` holds the class index of each vector.
    """
    pairs = pairs_of(code)
    if pairs is None:
        raise ValueError("the code is not one-versus-one")
    packed = np.zeros((code.shape[0] - 1, coef.shape[1]))
    for machine, negative, positive in pairs:
        low, high = min(negative, positive), max(negative, positive)
        of_low, of_high = classes == low, classes == high
        packed[high - 1, of_low] = coef[machine, of_low]
        packed[low, of_high] = coef[machine, of_high]
    return packed


def unpack_pairwise(packed: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The inverse of `pack_pairwise` for the columns in the order of `ovo_code`, signs kept."""
    n_classes = packed.shape[0] + 1
    first, second = np.triu_indices(n_classes, k=1)
    coef = np.zeros((first.size, packed.shape[1]))
    for machine, (low, high) in enumerate(zip(first, second, strict=True)):
        of_low, of_high = classes == low, classes == high
        coef[machine, of_low] = packed[high - 1, of_low]
        coef[machine, of_high] = packed[low, of_high]
    return coef
