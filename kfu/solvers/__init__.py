"""Solvers of the one dual problem (csrc/kfu/dual.h): problem in, certified solution out."""

from kfu.solvers.dual import DualProblem, Info, Progress, Solution, solve
from kfu.solvers.settings import SOLVERS, SolverSettings

__all__ = ["SOLVERS", "DualProblem", "Info", "Progress", "Solution", "SolverSettings", "solve"]
