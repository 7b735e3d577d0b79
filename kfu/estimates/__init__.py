"""How well will this machine do, without a test set: leave-one-out, its estimates and bounds.

ESTIMATES is the registry; `loo` gives all that apply to a model or estimator. One file holds one
estimate, or a few that are closely related, with its formula and reference at the head.
"""

from kfu.estimates.interface import loo
from kfu.estimates.registry import Entry, Estimate, Options
from kfu.estimates.table import ESTIMATES, LeaveOneOut, find_estimates
from kfu.estimates.trained import Trained

__all__ = [
    "ESTIMATES",
    "Entry",
    "Estimate",
    "LeaveOneOut",
    "Options",
    "Trained",
    "find_estimates",
    "loo",
]
