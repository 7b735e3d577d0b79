"""Machines of the square loss, on the full kernel matrix and on less."""

from kfu.least_squares.bagging import bagged
from kfu.least_squares.centres import SELECTIONS, Centres, choose_centres
from kfu.least_squares.falkon import falkon
from kfu.least_squares.full import FullSolution, solve_full
from kfu.least_squares.iterative import solve_iterative, solve_iterative_with_bias
from kfu.least_squares.kernel_products import KernelOperator
from kfu.least_squares.leave_one_out import CodeSolution, solve_code
from kfu.least_squares.linear_rls import LinearSolution, decompose_linear, solve_linear_rls
from kfu.least_squares.linear_spectrum import LinearSpectrum
from kfu.least_squares.low_rank_fit import LowRankFit
from kfu.least_squares.low_rank_hinge import low_rank_hinge
from kfu.least_squares.ls_svm import PrunedSolution, prune_ls_svm, solve_ls_svm, solve_psvm
from kfu.least_squares.normal_equations import NormalEquations
from kfu.least_squares.rectangle import rectangle, trace_portion
from kfu.least_squares.ridge_choice import RidgeChoice, RidgeTable
from kfu.least_squares.spectrum import Spectrum
from kfu.least_squares.subset_methods import nystrom, subset

__all__ = [
    "SELECTIONS",
    "Centres",
    "CodeSolution",
    "FullSolution",
    "KernelOperator",
    "LinearSolution",
    "LinearSpectrum",
    "LowRankFit",
    "NormalEquations",
    "PrunedSolution",
    "RidgeChoice",
    "RidgeTable",
    "Spectrum",
    "bagged",
    "choose_centres",
    "decompose_linear",
    "falkon",
    "low_rank_hinge",
    "nystrom",
    "prune_ls_svm",
    "rectangle",
    "solve_code",
    "solve_full",
    "solve_iterative",
    "solve_iterative_with_bias",
    "solve_linear_rls",
    "solve_ls_svm",
    "solve_psvm",
    "subset",
    "trace_portion",
]
