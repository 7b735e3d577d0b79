"""Decoding: from the outputs f_1(x), ..., f_M(x) of the machines of a code back to a class.

Every decoding gives each class a score, and the class of largest score wins, the first of equals.

votes        a machine votes for its positive classes when f > 0, for its negative ones when f <= 0;
             most votes win, then the machines between the tied classes decide, then the order of
             the classes: the rule of kfu.pairwise.vote, exactly
hamming      the row of the code that differs least from the signs of f:
             -Σ (1 - sign(M_rm f_m)) / 2, where a zero, of the code or of f, adds ½
hinge        loss-based: -Σ L(M_rm f_m) with the loss the machines were trained with; (1-z)_+ for
square       support vector machines, (1-z)² for least squares,
exponential  e^(-z); the score is -log Σ e^(-M_rm f_m), which orders the classes alike and does not
             overflow
argmax       the largest f, when each machine has one positive class (one-versus-all). Loss-based
             decoding of one-versus-all comes to the same with all three losses
dag          the decision graph of Platt, Cristianini and Shawe-Taylor (NIPS 1999): from the list of
             classes, the machine of the first and the last decides, the loser leaves, until one is
             left. K-1 machines are asked. Scores: the round in which a class left, from 0

Allwein, Schapire and Singer, JMLR 1 (2000); Rifkin (2002), section 4.2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kfu.errors import SettingsError
from kfu.multiclass.losses import LOSSES, Loss
from kfu.pairwise import ovr_scores, tally, vote

__all__ = [
    "DECODINGS",
    "DECODING_ALIASES",
    "Decoding",
    "check_decoding",
    "class_scores",
    "decode",
    "decoding_name",
]

LARGEST_OUTPUT = 1e150  # losses cut outputs off here, so that their sums stay finite


@dataclass(frozen=True)
class Decoding:
    """A rule: scores (n, K) of outputs (n, M) and a code it accepts."""

    name: str
    summary: str
    scores: Callable[[np.ndarray, np.ndarray], np.ndarray]
    refusal: Callable[[np.ndarray], str | None] = lambda code: None  # why a code cannot be decoded
    loss: Loss | None = None  # of loss-based decodings


def vote_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Votes, plus the decision values in favour squeezed into (-1/3, 1/3) to part equal votes.

    One-versus-one has the number of votes won (kfu.pairwise.ovr_scores), other codes the votes for
    less the votes against. Where rounding would hide who wins, the winner is put on top.
    """
    if _not_pairwise(code) is None:
        scores = ovr_scores(decision, code)
    else:
        votes, favour = tally(decision, code)
        scores = votes + favour / (3 * (np.abs(favour) + 1))
    winners = vote(decision, code)
    hidden = np.flatnonzero(np.argmax(scores, axis=1) != winners)
    scores[hidden, winners[hidden]] = np.nextafter(scores[hidden].max(axis=1), np.inf)
    return scores


def hamming_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    return (np.sign(decision) @ code.T.astype(np.float64) - code.shape[1]) / 2


def loss_scores(loss: Loss) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """-Σ L(M_rm f_m), by even and odd parts: L(Mf) = even(f) + M odd(f) for M = ±1, so that two
    matrix products do instead of an array (n, K, M)."""

    def scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
        f = np.clip(decision, -LARGEST_OUTPUT, LARGEST_OUTPUT)
        losses = loss.odd(f) @ code.T.astype(np.float64)
        seen = code != 0
        if seen.all():  # the same for every class
            losses += loss.even(f).sum(axis=1, keepdims=True)
        else:
            losses += loss.even(f) @ seen.T.astype(np.float64)
            losses += loss.at_zero * (~seen).sum(axis=1)
        return -losses

    return scores


def exponential_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    from scipy.special import logsumexp  # here, for it takes as long to load as all of kfu

    f = np.clip(decision, -LARGEST_OUTPUT, LARGEST_OUTPUT)
    scores = np.empty((f.shape[0], code.shape[0]))
    for k, row in enumerate(code):
        scores[:, k] = -logsumexp(-f * row, axis=1)
    return scores


def largest_output_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    if code.shape == (2, 1):
        return decision * code[:, 0].astype(np.float64)
    scores = np.empty_like(decision)
    scores[:, np.argmax(code, axis=0)] = decision
    return scores


def dag_scores(decision: np.ndarray, code: np.ndarray) -> np.ndarray:
    n, n_classes = decision.shape[0], code.shape[0]
    positive, negative = np.argmax(code, axis=0), np.argmin(code, axis=0)
    pair = np.minimum(positive, negative), np.maximum(positive, negative)
    machine_of = np.zeros((n_classes, n_classes), dtype=np.intp)
    machine_of[pair] = np.arange(code.shape[1])
    larger_is_positive = np.zeros((n_classes, n_classes), dtype=bool)
    larger_is_positive[pair] = positive > negative
    rows = np.arange(n)
    first, last = np.zeros(n, dtype=np.intp), np.full(n, n_classes - 1)
    scores = np.full((n, n_classes), n_classes - 1.0)
    for step in range(n_classes - 1):
        is_positive = decision[rows, machine_of[first, last]] > 0
        last_wins = is_positive == larger_is_positive[first, last]
        scores[rows, np.where(last_wins, first, last)] = step
        first += last_wins
        last -= ~last_wins
    return scores


def _not_one_versus_all(code: np.ndarray) -> str | None:
    if code.shape == (2, 1):
        return None
    positive = code > 0
    is_ova = code.shape[0] == code.shape[1] and bool(
        (positive.sum(axis=0) == 1).all() and (positive.sum(axis=1) == 1).all()
    )
    return None if is_ova else "one machine for each class, which alone is positive (code ova)"


def _not_pairwise(code: np.ndarray) -> str | None:
    """As kfu.pairwise.pairs_of finds out, without its loop over the machines."""
    n_classes, n_machines = code.shape
    if n_machines == n_classes * (n_classes - 1) // 2:
        is_pair = ((code > 0).sum(axis=0) == 1) & ((code < 0).sum(axis=0) == 1)
        pairs = np.sort([np.argmax(code, axis=0), np.argmin(code, axis=0)], axis=0)
        if is_pair.all() and np.unique(pairs[0] * n_classes + pairs[1]).size == n_machines:
            return None
    return "one machine for each pair of classes (code ava)"


DECODINGS: dict[str, Decoding] = {
    decoding.name: decoding
    for decoding in (
        Decoding("votes", "most votes, then the summed outputs in favour", vote_scores),
        Decoding("hamming", "the row nearest to the signs of the outputs", hamming_scores),
        *(
            Decoding(
                name, f"the row of least summed loss {LOSSES[name].summary}", scores, loss=loss
            )
            for name, loss, scores in (
                ("hinge", LOSSES["hinge"], loss_scores(LOSSES["hinge"])),
                ("square", LOSSES["square"], loss_scores(LOSSES["square"])),
                ("exponential", LOSSES["exponential"], exponential_scores),
            )
        ),
        Decoding(
            "argmax",
            "the largest output (one-versus-all only)",
            largest_output_scores,
            _not_one_versus_all,
        ),
        Decoding("dag", "the decision graph (one-versus-one only)", dag_scores, _not_pairwise),
    )
}

DECODING_ALIASES = {"vote": "votes", "max-wins": "votes", "exp": "exponential", "ddag": "dag"}


def decoding_name(name: str) -> str:
    """The name in DECODINGS that is meant, or SettingsError."""
    plain = name.strip().lower().replace("_", "-")
    plain = DECODING_ALIASES.get(plain, plain)
    if plain not in DECODINGS:
        raise SettingsError(f"unknown decoding {name!r}; choose {', '.join(DECODINGS)}")
    return plain


def check_decoding(method: str, code: np.ndarray) -> Decoding:
    """The decoding of a name, or SettingsError when there is none or it cannot decode the code."""
    decoding = DECODINGS[decoding_name(method)]
    needs = decoding.refusal(code)
    if needs is not None:
        others = [name for name, other in DECODINGS.items() if other.refusal(code) is None]
        raise SettingsError(
            f"decoding {decoding.name} needs {needs}; this code can be decoded by "
            f"{', '.join(others)}"
        )
    return decoding


def class_scores(decision: np.ndarray, code: np.ndarray, method: str) -> np.ndarray:
    """Scores (n, n_classes) of decision values (n, n_machines), or (n,) if there is one machine."""
    decoding = check_decoding(method, code)
    values = np.asarray(decision, dtype=np.float64)
    if values.ndim == 1 and code.shape[1] == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != code.shape[1]:
        raise ValueError(
            f"decision values of shape {values.shape} for a code of {code.shape[1]} machines"
        )
    if not np.isfinite(values).all():
        raise ValueError("decision values that are not finite cannot be decoded")
    return decoding.scores(values, code)


def decode(decision: np.ndarray, code: np.ndarray, method: str) -> np.ndarray:
    """The index of the winning class of each row of decision values."""
    return np.argmax(class_scores(decision, code, method), axis=1)
