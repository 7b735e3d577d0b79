"""Validation: folds, curves, tests between classifiers, and scores of rankings and regressions."""

from kfu.validation.compare import Comparison, corrected_resampled_t_test, mcnemar, paired_t_test
from kfu.validation.curves import (
    AverageCurve,
    Curve,
    auc,
    average_curves,
    average_precision,
    curve_of,
)
from kfu.validation.delong import AucInterval, auc_interval, delong_test
from kfu.validation.folds import SPLITTERS, Folds, make_folds
from kfu.validation.ranking_scores import RANKING_SCORES, ndcg, pair_error
from kfu.validation.regression_scores import REGRESSION_SCORES, mae, mse, r2, spearman

__all__ = [
    "RANKING_SCORES",
    "REGRESSION_SCORES",
    "SPLITTERS",
    "AucInterval",
    "AverageCurve",
    "Comparison",
    "Curve",
    "Folds",
    "auc",
    "auc_interval",
    "average_curves",
    "average_precision",
    "corrected_resampled_t_test",
    "curve_of",
    "delong_test",
    "mae",
    "make_folds",
    "mcnemar",
    "mse",
    "ndcg",
    "pair_error",
    "paired_t_test",
    "r2",
    "spearman",
]
