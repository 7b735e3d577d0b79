"""Machines of the square loss, on the full kernel matrix and on less."""

from kfu.least_squares.full import FullSolution, solve_full
from kfu.least_squares.iterative import solve_iterative, solve_iterative_with_bias
from kfu.least_squares.kernel_products import KernelOperator
from kfu.least_squares.leave_one_out import CodeSolution, solve_code
from kfu.least_squares.linear_rls import LinearSolution, decompose_linear, solve_linear_rls
from kfu.least_squares.linear_spectrum import LinearSpectrum
from kfu.least_squares.ls_svm import PrunedSolution, prune_ls_svm, solve_ls_svm, solve_psvm
from kfu.least_squares.spectrum import RidgeChoice, RidgeTable, Spectrum

__all__ = [
    "CodeSolution",
    "FullSolution",
    "KernelOperator",
    "LinearSolution",
    "LinearSpectrum",
    "PrunedSolution",
    "RidgeChoice",
    "RidgeTable",
    "Spectrum",
    "decompose_linear",
    "prune_ls_svm",
    "solve_code",
    "solve_full",
    "solve_iterative",
    "solve_iterative_with_bias",
    "solve_linear_rls",
    "solve_ls_svm",
    "solve_psvm",
]
