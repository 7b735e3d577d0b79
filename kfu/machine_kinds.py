"""What kind of answer each machine gives: the one thing a model file's reader has to know of it."""

from __future__ import annotations

CLASSIFIER = "classifier"  # a class for each row
REGRESSOR = "regressor"  # a number
NOVELTY = "novelty"  # 1 for rows like those of training, -1 for others
RANKER = "ranker"  # a score whose order matters

MACHINE_KINDS: dict[str, str] = {
    "svc": CLASSIFIER,
    "svc2": CLASSIFIER,
    "nu-svc": CLASSIFIER,
    "one-class": NOVELTY,
    "svr": REGRESSOR,
    "nu-svr": REGRESSOR,
    "rank": RANKER,
    "rls": REGRESSOR,
    "rlsc": CLASSIFIER,
    "kpm": CLASSIFIER,
    "centroid": CLASSIFIER,
    "parzen": CLASSIFIER,
    "nadaraya-watson": CLASSIFIER,
    "knn": CLASSIFIER,
}


def kind_of_machine(machine: str) -> str:
    """The kind of a machine; one that is not known here classifies."""
    return MACHINE_KINDS.get(machine, CLASSIFIER)
