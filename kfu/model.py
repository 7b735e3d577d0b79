"""The trained machine: f(x) = Σ_i c_i K(x_i, x) + b for each binary machine, and their vote.

A Model is what training returns, what `kfu.load` reads and what prediction needs; nothing else.
It holds the support vectors as the kernel saw them (after scaling), so `decision_function` scales
its argument and evaluates the kernel. Kernel values are float64 unless asked otherwise: a model
that was saved, loaded or converted gives the decision values of the one it came from.

Features a model has not seen. In sparse text a feature that is not written is zero, so a matrix
with fewer columns than the model is filled up with zeros, and one with more columns is taken as it
is: every training row was zero there, and the kernel counts the difference, as svm-predict does.
Where that has no meaning (the scaler or the kernel has a parameter for each feature) the extra
columns are dropped; a warning tells of either. A dense array has to have the model's features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfu.data import Matrix, check_width, check_X, with_columns
from kfu.errors import DataError, ModelError
from kfu.kernels import KERNELS, KernelSpec
from kfu.machine_kinds import CLASSIFIER, NOVELTY, kind_of_machine
from kfu.model_rules import special_rule
from kfu.multiclass.decoding import check_decoding, class_scores, decode
from kfu.pairwise import ClassPart, pairwise_parts, support_classes
from kfu.scale import Scaler

__all__ = ["Model"]

# Memory of one block of rows in prediction, in bytes.
BLOCK_BYTES = 32 << 20


@dataclass(eq=False)
class Model:
    """See the head of the file; the fields are those of the model file, by the same names."""

    machine: str  #: name of the machine, "svc"
    kernel: KernelSpec  #: resolved: every parameter has a value
    classes: np.ndarray  #: sorted class labels, float64 or str; none for regression and ranking
    n_features: int  #: columns of the training data (precomputed: its rows)
    support: np.ndarray  #: int64 (n_sv,): rows of the training data; -1 where not known
    support_vectors: Matrix | None  #: (n_sv, n_features); None for a precomputed kernel
    coef: np.ndarray  #: float64 (n_machines, n_sv): c_i = y_i α_i
    bias: np.ndarray  #: float64 (n_machines,)
    code: np.ndarray  #: int8 (n_classes, n_machines), see kfu.multiclass
    scaler: Scaler | None = None
    settings: dict[str, Any] = field(default_factory=dict)  #: how it was trained
    info: dict[str, Any] = field(default_factory=dict)  #: the report of training
    n_support: np.ndarray | None = None  #: int64 (n_classes,); read off `coef` when not given
    decoding: str = "votes"  #: how decision values become a class, see kfu.multiclass
    calibration: dict[str, Any] | None = None  #: a kfu.calibration.Calibrator as plain values

    def __post_init__(self) -> None:
        self.classes = np.asarray(self.classes)
        if self.classes.dtype.kind not in "UO":
            self.classes = self.classes.astype(np.float64)
        elif self.classes.dtype.kind == "O":
            self.classes = self.classes.astype(np.str_)
        self.n_features = int(self.n_features)
        self.support = np.ascontiguousarray(self.support, dtype=np.int64)
        self.coef = np.ascontiguousarray(self.coef, dtype=np.float64)
        self.bias = np.ascontiguousarray(self.bias, dtype=np.float64).reshape(-1)
        self.code = np.ascontiguousarray(self.code, dtype=np.int8)
        if self.support_vectors is not None:
            self.support_vectors = _canonical(self.support_vectors)
        self._check()
        if self.n_support is None:
            owners = support_classes(self.coef, self.code)
            self.n_support = np.bincount(owners[owners >= 0], minlength=self.n_classes)
        self.n_support = np.ascontiguousarray(self.n_support, dtype=np.int64)
        if self.n_support.shape != (self.n_classes,):
            raise ValueError("n_support and classes do not fit")
        self.loo: np.ndarray | None = None  # outputs of left-out rows, where training gave them
        self._evaluator: tuple[Any, Callable[[Matrix], np.ndarray]] | None = None
        self._bounded: tuple[Any, Any] | None = None  # the float32 Gram of classify

    # ---- what it is ------------------------------------------------------------------------

    @property
    def n_sv(self) -> int:
        return int(self.coef.shape[1])

    @property
    def n_machines(self) -> int:
        return int(self.coef.shape[0])

    @property
    def n_classes(self) -> int:
        return int(self.classes.shape[0])

    @property
    def is_precomputed(self) -> bool:
        return self.kernel.is_precomputed

    @property
    def layout(self) -> str:
        if self.support_vectors is None:
            return "precomputed"
        return "csr" if sp.issparse(self.support_vectors) else "dense"

    @property
    def kind(self) -> str:
        """classifier, regressor, novelty or ranker (kfu.machine_kinds)."""
        return kind_of_machine(self.machine)

    @property
    def has_classes(self) -> bool:
        return self.kind in (CLASSIFIER, NOVELTY)

    def describe(self) -> dict[str, Any]:
        """What `kfu info` prints: plain values only."""
        values = None if self.support_vectors is None else str(self.support_vectors.dtype)
        assert self.n_support is not None
        return {
            "machine": self.machine,
            "machine_kind": self.kind,
            "kernel": self.kernel.describe(),
            "n_features": self.n_features,
            "classes": self.classes.tolist(),
            "n_machines": self.n_machines,
            "decoding": self.decoding,
            "has_probabilities": self.calibration is not None,
            "n_sv": self.n_sv,
            "n_support": self.n_support.tolist(),
            "layout": self.layout,
            "values": values,
            "bias": self.bias.tolist(),
            "scaler": None if self.scaler is None else self.scaler.kind,
            "status": self.info.get("status"),
            "settings": self.settings,
            "info": self.info,
        }

    # ---- prediction ------------------------------------------------------------------------

    def decision_function(
        self,
        X: Any,
        *,
        threads: int = 0,
        precision: str = "float64",
        from_sparse_text: bool | None = None,
        source: str = "X",
    ) -> np.ndarray:
        """Decision values (n, n_machines), float64: positive for the class with code +1.

        Rows are taken in blocks, so memory beyond X and the result is bounded; a row's values do
        not depend on the other rows. `threads` 0 uses all cores. `precision` is that of the kernel
        values; sums are float64. `from_sparse_text` says that columns may be missing or unknown, as
        in libsvm text, even when X came out dense; by default sparse matrices are such and arrays
        are not. `source` names X in messages.
        """
        X = self.match_features(X, from_sparse_text=from_sparse_text, source=source)
        return self._values(X, threads, precision, source)

    def _values(self, X: Matrix, threads: int, precision: str, source: str) -> np.ndarray:
        """decision_function of data whose features match."""
        result = np.empty((X.shape[0], self.n_machines))
        if self.n_sv == 0:
            result[:] = self.bias
            return result
        evaluate = self._evaluator_for(X, threads, precision)
        for start, block in self._blocks(X, source):
            result[start : start + block.shape[0]] = evaluate(block)
        result += self.bias
        return result

    def decide(self, decision: np.ndarray) -> np.ndarray:
        """Class indices (n,) for decision values (n, n_machines), by the model's decoding.

        Two classes and one machine: f > 0 is the larger class, f <= 0 the smaller.
        """
        return decode(decision, self.code, self.decoding)

    def class_scores(self, decision: np.ndarray) -> np.ndarray:
        """One score for each class (n, n_classes), the largest of which is `decide`'s choice."""
        return class_scores(decision, self.code, self.decoding)

    def predict(self, X: Any, **options: Any) -> np.ndarray:
        """The label of each row, from `classes` (options as for `classify`), or the number or
        score f(x) of a model without classes (options as for `decision_function`)."""
        if not self.has_classes:
            return np.ascontiguousarray(self.decision_function(X, **options)[:, 0])
        labels: np.ndarray = self.classes[self.classify(X, **options)]
        return labels

    def probabilities(self, X: Any, **options: Any) -> np.ndarray:
        """Probability of each class (n, n_classes); rows sum to 1, and the largest is the label's.

        ModelError for a model without calibration; options as for `decision_function`.
        """
        return self.decision_and_probabilities(X, **options)[1]

    def decision_and_probabilities(self, X: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """`decision_function` and the probabilities that belong to it."""
        from kfu.calibration import Calibrator

        if self.calibration is None:
            raise ModelError("the model", "holds no probabilities", "train it with --probability")
        decision = self.decision_function(X, **options)
        calibrator = Calibrator.from_dict(self.calibration)
        return decision, calibrator.probabilities(decision, self.decide(decision))

    def classify(
        self,
        X: Any,
        *,
        threads: int = 0,
        precision: str = "auto",
        from_sparse_text: bool | None = None,
        source: str = "X",
    ) -> np.ndarray:
        """Class indices (n,): those that `decide` finds in `decision_function`, sooner.

        With precision "auto", float32 kernel values decide every row whose sign they prove (their
        error is known for the rbf kernel); the others are decided by float64 values, so the answer
        is that of "float64".
        """
        X = self.match_features(X, from_sparse_text=from_sparse_text, source=source)
        is_plain = self.n_machines == 1 and special_rule(self.machine) is None
        may_prove = is_plain and self.n_sv > 0 and self.kernel.name == "rbf"
        if precision != "auto" or not may_prove:
            precision = "float64" if precision == "auto" else precision
            return self.decide(self._values(X, threads, precision, source))
        sums = self._bounded_sums(X, threads, source)
        if sums is None:
            return self.decide(self._values(X, threads, "float64", source))
        values, bounds = sums
        values += self.bias
        is_doubtful = ~(np.abs(values[:, 0]) > bounds)  # NaN is doubtful
        if np.any(is_doubtful):
            values[is_doubtful] = self._values(X[is_doubtful], threads, "float64", source)
        return self.decide(values)

    def _bounded_sums(
        self, X: Matrix, threads: int, source: str
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Float32 sums (n, 1) without the bias and bounds of their errors, where known."""
        from kfu._gram import Gram

        key = (X.shape[1], threads)
        if self._bounded is None or self._bounded[0] != key:
            assert self.support_vectors is not None
            vectors = with_columns(self.support_vectors, X.shape[1])
            gram = Gram(vectors, self.kernel, precision="float32", threads=threads)
            self._bounded = (key, gram)
        gram = self._bounded[1]
        values, bounds = np.empty((X.shape[0], 1)), np.empty(X.shape[0])
        for start, block in self._blocks(X, source):
            sums = gram.bounded_decision(self.coef[0], block)
            if sums is None:
                return None
            values[start : start + block.shape[0], 0], bounds[start : start + block.shape[0]] = sums
        return values, bounds

    def _blocks(self, X: Matrix, source: str) -> Iterator[tuple[int, Matrix]]:
        """Blocks of rows, scaled as the model asks and checked, with their first row."""
        if self.scaler is None:
            self.kernel.check_data(X, source=source, is_square=False)
        rows = _block_rows(X, self.n_machines)
        for start in range(0, X.shape[0], rows):
            block = X[start : start + rows]
            if self.scaler is not None:
                block = self.scaler.transform(block)
                self.kernel.check_data(block, source=f"{source}, scaled", is_square=False)
            yield start, block

    def match_features(
        self, X: Any, *, from_sparse_text: bool | None = None, source: str = "X"
    ) -> Matrix:
        """X with columns this model can evaluate (see the head of the file), or DataError."""
        X = check_X(X, source=source)
        width = X.shape[1]
        if width == self.n_features:
            return X
        if self.is_precomputed:
            # LIBSVM's model text does not say how many training rows there were.
            if width > self.n_features and self.settings.get("n_train") == "unknown":
                return X
            raise DataError(
                source,
                None,
                f"{width} kernel values a row where the model has {self.n_features} training rows",
                "give the kernel of each row with every training row, in their order",
            )
        if not (sp.issparse(X) if from_sparse_text is None else from_sparse_text):
            raise DataError(
                source,
                None,
                f"{width} features where the model has {self.n_features}",
                "give the features the model was trained on, in the same order",
            )
        check_width(X, source)
        if width < self.n_features or not _has_entries_from(X, self.n_features):
            return with_columns(X, self.n_features)
        takes = self._takes_unseen_features()
        warnings.warn(
            f"{source}: {width} features where the model has {self.n_features}; those it was not "
            f"trained on {'count as zero in every support vector' if takes else 'are ignored'}",
            UserWarning,
            stacklevel=3,
        )
        return X if takes else with_columns(X, self.n_features)

    def linear_weights(self) -> np.ndarray:
        """w (n_machines, n_features) of a linear kernel: f(x) = ⟨w, x⟩ + b, x scaled."""
        if self.kernel.name != "linear" or self.support_vectors is None:
            raise ValueError("only a linear kernel has explicit weights")
        coef = self.coef * self.kernel.weight
        if sp.issparse(self.support_vectors):
            return np.ascontiguousarray((self.support_vectors.T @ coef.T).T)
        return np.ascontiguousarray(coef @ self.support_vectors.astype(np.float64, copy=False))

    # ---- files -----------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model file, atomically. Equal models give equal bytes."""
        from kfu.io.model_file import save_model

        save_model(path, self)

    @staticmethod
    def load(path: str | PathLike[str]) -> Model:
        """Read a model file; ModelError says what is wrong with it and what to do."""
        from kfu.io.model_file import load_model

        return load_model(path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluator": None, "_bounded": None}

    # ---- inside ----------------------------------------------------------------------------

    def _check(self) -> None:
        """ValueError when the parts do not fit together or hold a value that is not finite."""
        n_machines, n_sv = self.coef.shape if self.coef.ndim == 2 else (-1, -1)
        vectors = self.support_vectors
        require = [
            (self.coef.ndim == 2, "coef is not a matrix"),
            (self.classes.ndim == 1, "classes are not a list"),
            (self.n_classes >= 2 or not self.has_classes, "fewer than two classes"),
            (self.n_classes == 0 or self.has_classes, "classes of a machine that has none"),
            (np.unique(self.classes).size == self.classes.size, "a class appears twice"),
            (self.classes.dtype.kind == "U" or _is_finite(self.classes), "a class is not finite"),
            (bool(np.all(self.classes[:-1] < self.classes[1:])), "classes are not in order"),
            (self.code.shape == (self.n_classes, n_machines), "code and coef do not fit"),
            (bool(np.all(np.abs(self.code) <= 1)), "code has entries beyond -1, 0, 1"),
            (self.bias.shape == (n_machines,), "bias and coef do not fit"),
            (self.support.shape == (n_sv,), "support and coef do not fit"),
            (_is_finite(self.coef), "a coefficient is not a finite number"),
            (_is_finite(self.bias), "a bias is not a finite number"),
            ((vectors is None) == self.is_precomputed, "support vectors and kernel do not fit"),
            (self.kernel.is_resolved, "a parameter of the kernel has no value"),
        ]
        if self.has_classes:
            check_decoding(self.decoding, self.code)
        if vectors is not None:
            require += [
                (vectors.shape == (n_sv, self.n_features), "support vectors and coef do not fit"),
                (_is_finite(vectors), "a support vector has a value that is not finite"),
            ]
        elif n_sv:
            inside = self.support.min() >= 0 and self.support.max() < self.n_features
            require.append((bool(inside), "support is outside the training rows"))
        if self.kernel.is_resolved:
            lengths = {np.size(gamma) for gamma in self._feature_gammas()}
            require.append((lengths <= {self.n_features}, "kernel and support vectors do not fit"))
        if self.scaler is not None:
            fits = self.scaler.n_features == self.n_features
            require.append((fits, "scaler and support vectors do not fit"))
        for holds, found in require:
            if not holds:
                raise ValueError(found)

    def _takes_unseen_features(self) -> bool:
        scales_features = self.scaler is not None and self.scaler.factor is not None
        return not scales_features and not self._feature_gammas()

    def _feature_gammas(self) -> list[tuple[float, ...]]:
        """The parameters of kernels that have one for each feature."""
        leaves = self.kernel.leaves()
        return [leaf.params["gamma"] for leaf in leaves if KERNELS[leaf.name].is_per_feature]

    def _evaluator_for(
        self, X: Matrix, threads: int, precision: str
    ) -> Callable[[Matrix], np.ndarray]:
        """The function Σ_i c_i K(x_i, ·) of blocks with X's columns; the last one made is kept."""
        key = (X.shape[1], threads, precision)
        held = self._evaluator  # another thread may replace it
        if held is None or held[0] != key:
            held = (key, self._make_evaluator(X.shape[1], threads, precision))
            self._evaluator = held
        return held[1]

    def _make_evaluator(
        self, width: int, threads: int, precision: str
    ) -> Callable[[Matrix], np.ndarray]:
        rule = special_rule(self.machine)
        if rule is not None:
            known = self.support_vectors
            held = None if known is None else with_columns(known, width)
            columns = self.support if known is None else slice(None)
            return lambda block: rule(self, held, block[:, columns], threads)
        if self.support_vectors is None:
            weighted = self.coef * self.kernel.weight
            return lambda block: _precomputed_sums(block, self.support, weighted)
        from kfu._gram import Gram

        vectors = with_columns(self.support_vectors, width)
        n_entries = vectors.nnz if sp.issparse(vectors) else vectors.size
        if self.kernel.name == "linear" and self.n_machines * width <= n_entries:
            unseen = width - self.n_features
            weights = np.pad(self.linear_weights(), [(0, 0), (0, unseen)])
            inner = KernelSpec.make("linear")
            products = Gram(weights, inner, precision=precision, threads=threads)
            return lambda b: b @ weights.T if sp.issparse(b) else products.cross(b).T
        parts = pairwise_parts(self.coef, self.code) if self.has_classes else None
        if parts is not None:
            return self._by_class(vectors, parts, precision, threads)
        gram = Gram(vectors, self.kernel, precision=precision, threads=threads)
        coef = np.ascontiguousarray(self.coef.T)
        return lambda block: gram.decision(None, coef, block)

    def _by_class(
        self, vectors: Matrix, parts: list[ClassPart], precision: str, threads: int
    ) -> Callable[[Matrix], np.ndarray]:
        """One against one: the vectors of a class take part in its own machines only."""
        from kfu._gram import Gram

        held = [
            (
                Gram(vectors[part.vectors], self.kernel, precision=precision, threads=threads),
                np.ascontiguousarray(self.coef[np.ix_(part.machines, part.vectors)].T),
                part.machines,
            )
            for part in parts
        ]

        def evaluate(block: Matrix) -> np.ndarray:
            total = np.zeros((block.shape[0], self.n_machines))
            for gram, coef, machines in held:
                total[:, machines] += gram.decision(None, coef, block)
            return total

        return evaluate


def _canonical(X: Matrix) -> Matrix:
    """Support vectors as the kernels take them: C-contiguous floats, or sorted CSR."""
    if not sp.issparse(X):
        X = np.asarray(X)
        return np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _as_dense(X: Matrix) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _is_finite(X: Matrix) -> bool:
    return bool(np.isfinite(X.data if sp.issparse(X) else X).all())


def _has_entries_from(X: Matrix, column: int) -> bool:
    if sp.issparse(X):
        return bool(np.any((X.indices >= column) & (X.data != 0)))
    return bool(np.any(X[:, column:]))


def _block_rows(X: Matrix, n_machines: int) -> int:
    """Rows whose dense copy and decision values fit BLOCK_BYTES."""
    row_bytes = 8 * (X.shape[1] + n_machines)
    return int(min(max(BLOCK_BYTES // row_bytes, 64), 1 << 16))


def _precomputed_sums(block: Matrix, support: np.ndarray, coef: np.ndarray) -> np.ndarray:
    # einsum, not a matrix product: its sum over a row does not depend on how many rows there are.
    columns = np.ascontiguousarray(_as_dense(block[:, support]), dtype=np.float64)
    return np.einsum("ij,mj->im", columns, coef)
