"""Ranking within queries: the ranking support vector machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from kfu.estimators.base import Kernel, SolvedEstimator
from kfu.estimators.rows import rows_with_weight, seed_of
from kfu.sklearn_bridge import check_numbers
from kfu.validation import pair_error

__all__ = ["RankSVM"]


class RankSVM(SolvedEstimator):
    """Scores whose order within each query is that of the relevance.

    Parameters
    ----------
    C : float, default 1.0
        Cost: multiplies the sum over pairs of one query, x_i more relevant than x_j, of
        max(0, 1 - (f(x_i) - f(x_j))).
    kernel, degree, gamma, coef0
        As in `kfu.SVC`.
    graph : "complete" or "reduced", default "complete"
        All pairs of a query, or Zapién's graph of fewer than two for each row.
    random_state : int, generator of NumPy or None
        Draws the rows that stand for their level in the reduced graph. None is 0.
    tol, shrinking, cache_mib, chunk, solver, precision, threads, max_iter, polish, verbose
        Of the solver, as in `kfu.SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_ (zero), coef_ (linear kernel),
    n_features_in_, feature_names_in_, n_iter_, fit_status_, shape_fit_
        As in the regressors.
    model_, info_
        The model and the report of training, with its certificates.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        graph: str = "complete",
        shrinking: bool = True,
        cache_mib: float = 1024.0,
        chunk: int = 0,
        solver: str = "auto",
        precision: str = "auto",
        threads: int = 0,
        max_iter: int = -1,
        polish: bool = True,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            shrinking=shrinking,
            cache_mib=cache_mib,
            chunk=chunk,
            solver=solver,
            precision=precision,
            threads=threads,
            max_iter=max_iter,
            polish=polish,
            verbose=verbose,
        )
        self.C = C
        self.graph = graph
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> RankSVM:
        """Train on X (n, n_features), relevances y (larger is better), the query of each row and
        optional weights; the cost of a pair is multiplied by the weights of both rows.

        Without `qid` all rows are one query. Rows of zero or negative weight are left out. Warns
        when the solver stopped early.
        """
        X = self._fit_matrix(X)
        y = check_numbers(self, X, y)
        queries = _queries(qid, X.shape[0])
        if X.shape[0] == 1:
            raise ValueError("RankSVM compares rows with each other, but got n_samples = 1")
        self._check_parameters()
        rows, weights = rows_with_weight(X, sample_weight)
        if rows is not None:
            y, queries = y[rows], queries[rows]
        self._fit_machine(
            X,
            y,
            rows,
            weights,
            qid=queries,
            cost=float(self.C),
            graph=self.graph,
            seed=seed_of(self.random_state),
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The score of each row; only the order within a query has a meaning."""
        return np.ascontiguousarray(self._decision(X)[:, 0])

    def decision_function(self, X: Any) -> np.ndarray:
        """As `predict`."""
        return self.predict(X)

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """The share of pairs (rows of one query with different relevance) in the right order; NaN
        when there is none. Equal scores are no order."""
        scores = self.predict(X)
        y = check_numbers(self, scores, y)
        return 1.0 - pair_error(scores, y, _queries(qid, len(scores)))

    def _machine_name(self) -> str:
        return "rank"


def _queries(qid: Any, n: int) -> np.ndarray:
    """A number for the query of each row."""
    if qid is None:
        return np.zeros(n, dtype=np.int64)
    qid = np.asarray(qid)
    if qid.shape != (n,):
        raise ValueError(f"qid has shape {qid.shape} for {n} rows; give one query a row")
    return np.unique(qid, return_inverse=True)[1].astype(np.int64)
