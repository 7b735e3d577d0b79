"""Baselines: simple kernel classifiers and regressors to hold the others against.

    kernel_projection   kernel projection machine: hinge loss on leading eigenfunctions, path over D
    kernel_centroid     the nearest class mean in feature space
    parzen              class densities by windows
    nadaraya_watson_*   posteriors and regression by windows; select_width chooses γ
    knn_*               k nearest neighbours in feature space; select_k chooses k

The first three give coefficients of f = Σ c_i K(x_i, ·) + b. The last two are functions of the
training rows, their class (or target) coefficients, the kernel and a setting or two.
"""

from kfu.baselines.centroid import kernel_centroid
from kfu.baselines.folds import stratified_folds
from kfu.baselines.kpm import (
    KpmMachines,
    KpmPath,
    kernel_projection,
    kernel_projection_code,
)
from kfu.baselines.neighbours import (
    WEIGHTINGS,
    NeighbourChoice,
    knn_regression,
    knn_scores,
    select_k,
)
from kfu.baselines.rows import (
    Expansion,
    class_coefficients,
    expansion_scores,
    target_coefficients,
)
from kfu.baselines.widths import WidthChoice, select_width
from kfu.baselines.windows import (
    nadaraya_watson_regression,
    nadaraya_watson_scores,
    parzen,
)

__all__ = [
    "WEIGHTINGS",
    "Expansion",
    "KpmMachines",
    "KpmPath",
    "NeighbourChoice",
    "WidthChoice",
    "class_coefficients",
    "expansion_scores",
    "kernel_centroid",
    "kernel_projection",
    "kernel_projection_code",
    "knn_regression",
    "knn_scores",
    "nadaraya_watson_regression",
    "nadaraya_watson_scores",
    "parzen",
    "select_k",
    "select_width",
    "stratified_folds",
    "target_coefficients",
]
