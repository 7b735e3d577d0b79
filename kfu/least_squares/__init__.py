"""Machines of the square loss, on the full kernel matrix and on less."""

from kfu.least_squares.full import FullSolution, solve_full
from kfu.least_squares.leave_one_out import CodeSolution, solve_code
from kfu.least_squares.ls_svm import PrunedSolution, prune_ls_svm, solve_ls_svm, solve_psvm
from kfu.least_squares.spectrum import RidgeChoice, RidgeTable, Spectrum

__all__ = [
    "CodeSolution",
    "FullSolution",
    "PrunedSolution",
    "RidgeChoice",
    "RidgeTable",
    "Spectrum",
    "prune_ls_svm",
    "solve_code",
    "solve_full",
    "solve_ls_svm",
    "solve_psvm",
]
