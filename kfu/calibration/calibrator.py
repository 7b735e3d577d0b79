"""A Calibrator turns the outputs of a model's binary machines into probabilities of its classes.

It holds one link (a sigmoid or an isotonic function) for each binary machine and the code matrix of
the model (kfu.pairwise: decision values (n, M), positive for the class with code +1). The links
give r_m = P(positive side | seen by machine m); how the r_m become class probabilities follows from
the code:

    two classes, one machine      p = (1 − r, r)
    one machine for each pair     pairwise coupling
    one machine for each class    r_k / Σ r
    any other code                generalised Bradley–Terry

(kfu.calibration.coupling). With ``consistent=True``, the default, the largest probability is that
of the label the model predicts (kfu.calibration.agreement); with ``consistent=False`` the
calibrated values are given as they are.

Links have to be fitted to outputs the machines did not train on: of cross-validation, of a hold-out
set, or span-corrected ones (kfu.calibration.span_outputs). Outputs on the training rows themselves
are pushed to the margins and give probabilities that are too sure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kfu.calibration.agreement import agree, disagreement
from kfu.calibration.coupling import bradley_terry, couple_pairs, normalised_ova
from kfu.calibration.isotonic import Isotonic, fit_isotonic_to
from kfu.calibration.sample import SOURCE, Sample, checked_weight, make_sample
from kfu.calibration.sigmoid import Sigmoid, fit_sigmoid_to
from kfu.errors import DataError, SettingsError
from kfu.pairwise import pairs_of, vote

__all__ = ["METHODS", "Calibrator", "Link", "fit_calibrator", "ova_machines"]

Link = Sigmoid | Isotonic


@dataclass(frozen=True)
class Method:
    """A kind of link: how it is fitted and how it is read back."""

    fit: Callable[[Sample], Link]
    from_dict: Callable[[Mapping[str, Any]], Link]


METHODS: dict[str, Method] = {
    "sigmoid": Method(fit_sigmoid_to, Sigmoid.from_dict),
    "isotonic": Method(fit_isotonic_to, Isotonic.from_dict),
}


@dataclass(frozen=True, eq=False)
class Calibrator:
    """See the head of the file."""

    method: str  #: a key of METHODS
    code: np.ndarray  #: int8 (n_classes, n_machines)
    links: tuple[Link, ...]  #: one for each machine

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", checked_code(self.code))
        object.__setattr__(self, "links", tuple(self.links))
        if self.method not in METHODS:
            raise ValueError(f"'{self.method}' is no calibration; there are: {', '.join(METHODS)}")
        if len(self.links) != self.n_machines:
            raise ValueError(f"{len(self.links)} links for {self.n_machines} machines")

    @property
    def n_classes(self) -> int:
        return int(self.code.shape[0])

    @property
    def n_machines(self) -> int:
        return int(self.code.shape[1])

    def machine_probabilities(self, decision: Any) -> np.ndarray:
        """r (n, M): each machine's probability of its positive side."""
        f = self._checked(decision)
        r = np.empty_like(f)
        for machine, link in enumerate(self.links):
            r[:, machine] = link(f[:, machine])
        return r

    def probabilities(
        self, decision: Any, winners: Any = None, *, consistent: bool = True
    ) -> np.ndarray:
        """Class probabilities (n, K) of decision values (n, M); rows sum to 1.

        `winners` are the positions of the predicted classes, by default those of kfu's vote.
        """
        return self.probabilities_and_count(decision, winners, consistent=consistent)[0]

    def probabilities_and_count(
        self, decision: Any, winners: Any = None, *, consistent: bool = True
    ) -> tuple[np.ndarray, int]:
        """The same, and in how many rows calibration alone would name another class than
        `winners`. They are adjusted where `consistent`."""
        f = self._checked(decision)
        labels = self._checked_winners(winners, f)
        p = self._decoded(self.machine_probabilities(f))
        count = int(np.count_nonzero(disagreement(p, labels)))
        return (agree(p, labels) if consistent else p), count

    def _decoded(self, r: np.ndarray) -> np.ndarray:
        if self.code.shape == (2, 1):
            p = np.empty((len(r), 2))
            positive = int(np.argmax(self.code[:, 0]))
            p[:, positive] = r[:, 0]
            p[:, 1 - positive] = 1 - r[:, 0]
            return p
        pairs = pairs_of(self.code)
        if pairs is not None:
            return couple_pairs(r, pairs, self.n_classes)
        one_versus_all = ova_machines(self.code)
        if one_versus_all is not None:
            machine, is_positive = one_versus_all
            own = r[:, machine]
            return normalised_ova(np.where(is_positive, own, 1 - own))
        return bradley_terry(r, self.code)

    def _checked(self, decision: Any) -> np.ndarray:
        f = _as_table(decision, self.n_machines)
        if not np.isfinite(f).all():
            raise DataError(SOURCE, None, "a decision value is not finite", "check the data")
        return f

    def _checked_winners(self, winners: Any, f: np.ndarray) -> np.ndarray:
        if winners is None:
            return np.asarray(vote(f, self.code))
        return _class_positions(winners, len(f), self.n_classes, "winners")

    # ---- the model file --------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and text, as JSON has them."""
        return {
            "method": self.method,
            "code": self.code.tolist(),
            "links": [link.to_dict() for link in self.links],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Calibrator:
        """The inverse of `to_dict`; ValueError, with the reason, for anything else."""
        if not isinstance(values, Mapping) or set(values) != {"method", "code", "links"}:
            raise ValueError("a calibration has the entries method, code and links")
        method = values["method"]
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(f"{method!r} is no calibration; there are: {', '.join(METHODS)}")
        if not isinstance(values["links"], list):
            raise ValueError("the links of a calibration have to be a list")
        links = tuple(METHODS[method].from_dict(link) for link in values["links"])
        return Calibrator(method, values["code"], links)


def fit_calibrator(
    decision: Any, labels: Any, code: Any, method: str = "sigmoid", weight: Any = None
) -> Calibrator:
    """Fit one link for each machine to out-of-sample outputs.

    `decision` is (n, M), or (n,) for one machine; NaN where a row has no output of that machine.
    `labels` are the positions of the rows' classes, that is rows of `code`. A machine is fitted to
    the rows whose class it sees (code not 0) and that have an output; DataError when there is none.
    A row of weight w counts as w rows.
    """
    if method not in METHODS:
        raise SettingsError(f"'{method}' is no calibration; there are: {', '.join(METHODS)}")
    table = checked_code(code)
    f = _as_table(decision, table.shape[1])
    classes = _class_positions(labels, len(f), table.shape[0], "labels")
    w = checked_weight(weight, len(f))
    if np.isinf(f[w > 0]).any():
        raise DataError(SOURCE, None, "a decision value is infinite", "leave such rows out (NaN)")
    links = []
    for machine in range(table.shape[1]):
        side = table[classes, machine]
        used = (side != 0) & ~np.isnan(f[:, machine]) & (w > 0)
        if not used.any():
            raise DataError(
                SOURCE,
                None,
                f"no row has an output of machine {machine + 1} of {table.shape[1]}",
                "give outputs of rows of every class",
            )
        sample = make_sample(f[used, machine], side[used] > 0, w[used])
        links.append(METHODS[method].fit(sample))
    return Calibrator(method, table, tuple(links))


def ova_machines(code: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Of a one-versus-all code: the machine of each class, and whether it is its positive side.

    None when the code is not one machine for each class against all others.
    """
    n_classes, n_machines = code.shape
    if n_machines != n_classes or (code == 0).any():
        return None
    alone = np.zeros(code.shape, dtype=bool)
    for machine, column in enumerate(code.T):
        for sign in (1, -1):
            members = np.flatnonzero(column == sign)
            if members.size == 1 and not alone[:, machine].any():
                alone[members[0], machine] = True
    if n_classes == 2:  # each column sets both classes apart: machine k is that of class k
        alone[:] = np.eye(2, dtype=bool)
    if not ((alone.sum(axis=0) == 1).all() and (alone.sum(axis=1) == 1).all()):
        return None
    machines = np.argmax(alone, axis=1)
    return machines, code[np.arange(n_classes), machines] > 0


def checked_code(code: Any) -> np.ndarray:
    """The code as int8; ValueError unless all machines have two sides and see all classes."""
    try:
        table = np.array(code, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("a code is a table of -1, 0 and 1") from None
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 1:
        raise ValueError(f"a code of shape {table.shape}; it is (classes, machines), classes >= 2")
    if not np.isin(table, (-1, 0, 1)).all():
        raise ValueError("the entries of a code are -1, 0 and 1")
    if not ((table > 0).any(axis=0) & (table < 0).any(axis=0)).all():
        raise ValueError("a machine of the code has only one side")
    if not (table != 0).any(axis=1).all():
        raise ValueError("a class of the code is seen by no machine")
    return table.astype(np.int8)


def _as_table(decision: Any, n_machines: int) -> np.ndarray:
    given = np.asarray(decision, dtype=np.float64)
    f = np.atleast_2d(given).T if given.ndim == 1 and n_machines == 1 else given
    if f.ndim != 2 or f.shape[1] != n_machines:
        raise ValueError(f"decision values of shape {f.shape} for {n_machines} machines")
    return f


def _class_positions(values: Any, n: int, n_classes: int, name: str) -> np.ndarray:
    positions = np.asarray(values)
    if positions.shape != (n,):
        raise ValueError(f"{name} of shape {positions.shape} for {n} rows")
    if n and positions.dtype.kind not in "iu":
        raise ValueError(f"{name} have to be positions of classes, integers from 0")
    if n and (positions.min() < 0 or positions.max() >= n_classes):
        raise ValueError(f"{name} have to be positions of classes, 0 to {n_classes - 1}")
    return positions.astype(np.int64)
