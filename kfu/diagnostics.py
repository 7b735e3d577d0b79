"""What a practitioner wants to be told about data and about a trained machine.

Every check returns messages (an empty list: nothing to say); none prints or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from kfu.kernels import KernelSpec

# A distance kernel on features whose ranges differ by more sees only the widest ones.
RANGE_RATIO = 100.0
# More than this share of support vectors says that the machine memorises.
SV_SHARE = 0.95
SV_SHARE_FROM_ROWS = 50
# When so many of them are at their bound a small C may be the reason.
BOUNDED_SHARE = 0.9
# C times the largest K(x, x) beyond which the dual is badly conditioned.
HUGE_COST = 1e6
# Duality gap over objective beyond which a solution that met its tolerance is still a poor one.
LOOSE_GAP = 0.01
DISTANCE_KERNELS = frozenset({"rbf", "laplacian", "rational"})
# Numeric labels are a regression target when there are more different ones than MANY_LABELS and
# than this share of the rows.
MANY_LABELS = 20
REAL_SHARE = 0.1
INTEGER_SHARE = 0.5
# Looking for equal rows costs a pass over the data; training skips it above so many rows.
DUPLICATE_ROWS = 200_000


@dataclass(frozen=True)
class FeatureRanges:
    """Minimum and maximum of each feature, the zeros of sparse data included."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, X: Any) -> FeatureRanges:
        if sp.issparse(X):
            low = X.min(axis=0).toarray().ravel()
            high = X.max(axis=0).toarray().ravel()
            return cls(low.astype(np.float64), high.astype(np.float64))
        return cls(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64))

    @property
    def span(self) -> np.ndarray:
        return self.high - self.low

    @property
    def constant(self) -> np.ndarray:
        """Indices of the features that have one value."""
        return np.flatnonzero(self.span == 0)

    def ratio(self) -> tuple[float, int, int]:
        """Widest over narrowest range of the features that vary, and the two features."""
        varying = np.flatnonzero(self.span > 0)
        if len(varying) < 2:
            return 1.0, -1, -1
        spans = self.span[varying]
        widest, narrowest = int(np.argmax(spans)), int(np.argmin(spans))
        with np.errstate(over="ignore"):
            ratio = float(spans[widest] / spans[narrowest])
        return ratio, int(varying[widest]), int(varying[narrowest])


@dataclass(frozen=True)
class Duplicates:
    """Rows that equal an earlier one, and groups of equal rows with different labels."""

    n_repeated: int
    n_contradictory: int  # rows in groups that hold more than one label
    example: tuple[int, int] | None  # two equal rows with different labels

    @classmethod
    def of(cls, X: Any, y: np.ndarray | None) -> Duplicates:
        hashes = row_hashes(X)
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        n_repeated = len(hashes) - len(first)
        if y is None or n_repeated == 0:
            return cls(n_repeated, 0, None)
        differs = y != y[first[group]]
        if not differs.any():
            return cls(n_repeated, 0, None)
        mixed = np.unique(group[differs])
        row = int(np.flatnonzero(differs)[0])
        n_rows = int(np.isin(group, mixed).sum())
        return cls(n_repeated, n_rows, (int(first[group[row]]), row))


def row_hashes(X: Any) -> np.ndarray:
    """A 64-bit hash per row; rows with equal values (0 and -0 too) have equal hashes."""
    if sp.issparse(X):
        kept = X.copy()
        kept.eliminate_zeros()
        indices, values, start = kept.indices, kept.data, kept.indptr
        rows = (
            indices[start[i] : start[i + 1]].tobytes() + values[start[i] : start[i + 1]].tobytes()
            for i in range(X.shape[0])
        )
        return np.fromiter((hash(row) for row in rows), np.int64, X.shape[0])
    result = np.empty(X.shape[0], dtype=np.int64)
    block = max(1, 2**22 // max(1, X.shape[1]))
    for begin in range(0, X.shape[0], block):
        positive_zero = X[begin : begin + block] + 0.0
        result[begin : begin + block] = [hash(row.tobytes()) for row in positive_zero]
    return result


def looks_like_regression(y: np.ndarray) -> bool:
    """Whether labels are numbers too many and too different to be the names of classes."""
    n_labels = len(np.unique(y))
    if y.dtype.kind not in "fiu" or n_labels <= MANY_LABELS:
        return False
    is_integer = bool(np.all(y == np.floor(y)))
    return n_labels > (INTEGER_SHARE if is_integer else REAL_SHARE) * len(y)


def unscaled_features(ranges: FeatureRanges) -> list[str]:
    ratio, widest, narrowest = ranges.ratio()
    if ratio <= RANGE_RATIO:
        return []
    return [
        f"feature ranges differ by a factor of {ratio:.3g} (feature {widest + 1} spans "
        f"{ranges.span[widest]:.4g}, feature {narrowest + 1} spans {ranges.span[narrowest]:.4g}): "
        "a distance kernel sees only the widest; scale the data, for example with --scale standard"
    ]


def constant_features(ranges: FeatureRanges) -> list[str]:
    constant = ranges.constant
    if len(constant) == 0:
        return []
    if len(constant) == len(ranges.low):
        return ["every feature is constant: the data cannot be told apart; check the file"]
    shown = ", ".join(str(k + 1) for k in constant[:5]) + (", ..." if len(constant) > 5 else "")
    if len(constant) == 1:
        return [f"feature {shown} has the same value in every row; it carries no information"]
    return [
        f"{len(constant)} features have the same value in every row ({shown}); "
        "they carry no information"
    ]


def contradictory_rows(duplicates: Duplicates) -> list[str]:
    if duplicates.example is None:
        return []
    first, second = duplicates.example
    return [
        f"{duplicates.n_contradictory} rows share their features with a row of another class "
        f"(for example rows {first + 1} and {second + 1}): no machine can fit them all"
    ]


def data_warnings(X: Any, y: np.ndarray | None, kernel_name: str | None) -> list[str]:
    """Warnings that the data alone deserve, given the kernel they will be used with.

    Requires X as the machine sees it (scaled), at least one row.
    """
    if kernel_name == "precomputed":
        return []
    ranges = FeatureRanges.of(X)
    found = constant_features(ranges)
    if kernel_name in DISTANCE_KERNELS:
        found += unscaled_features(ranges)
    if X.shape[0] <= DUPLICATE_ROWS:
        found += contradictory_rows(Duplicates.of(X, y))
    return found


# ---- the trained machine --------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """What the checks of a trained machine look at."""

    info: Mapping[str, Any]
    n: int
    kernel_name: str
    cost: float
    largest_diagonal: float  # max K(x, x) over the training rows
    kernel: KernelSpec | None = None


def no_unbounded_vector(training: Training) -> list[str]:
    if training.info.get("n_usv") != 0 or not training.info.get("n_sv"):
        return []
    if training.info.get("status") != "converged":  # the vectors are not settled yet
        return []
    return [
        "no support vector is strictly between its bounds: the bias is an interval, "
        "and its midpoint is used"
    ]


def memorised_rows(training: Training) -> list[str]:
    n_sv = training.info.get("n_sv") or 0
    if training.n < SV_SHARE_FROM_ROWS or n_sv < SV_SHARE * training.n:
        return []
    rows = f"{n_sv} of {training.n} rows are support vectors"
    n_bounded = n_sv - (training.info.get("n_usv") or 0)
    small = f"C = {training.cost:g} too small"
    if tiny_cost(training):
        return []  # which says why
    if training.kernel_name not in DISTANCE_KERNELS:
        return [f"{rows}; is {small}, or the data unscaled?"]
    also = f", {small}" if n_bounded >= BOUNDED_SHARE * n_sv else ""
    return [f"{rows}; is gamma too large{also}, or the data unscaled?"]


def tiny_cost(training: Training) -> list[str]:
    # |f - b| <= C sum |K(x_i, x)| <= C n max K: below 1 no row can be beyond its margin.
    reach = training.cost * training.n * training.largest_diagonal
    if training.info.get("n_usv") != 0 or not training.info.get("n_sv") or reach >= 1.0:
        return []
    return [
        f"C = {training.cost:g} is so small that every support vector is at its bound and the "
        "decision values are close to the bias; raise -c"
    ]


def indefinite_kernel(training: Training) -> list[str]:
    kernel = training.kernel
    if kernel is None or kernel.is_precomputed or kernel.is_psd:
        return []
    return [
        f"the kernel {kernel.describe()} may be indefinite: the problem then is not convex, and "
        "the solution need not be the best; 'kfu info DATA -k ...' examines it on the data"
    ]


def huge_cost(training: Training) -> list[str]:
    if np.isinf(training.cost):  # the hard margin was asked for
        return []
    if training.cost * training.largest_diagonal < HUGE_COST:
        return []
    return [
        f"C = {training.cost:g} with kernel values up to {training.largest_diagonal:.3g} makes "
        "the problem badly conditioned: training is slow and fits every row; lower -c or scale"
    ]


def loose_certificate(training: Training) -> list[str]:
    gap, objective = training.info.get("duality_gap"), training.info.get("objective")
    if training.info.get("status") != "converged" or gap is None or objective is None:
        return []
    if gap <= LOOSE_GAP * max(1.0, abs(objective)):
        return []
    return [
        f"the duality gap ({gap:.3g}) is large beside the objective ({objective:.6g}): "
        "the tolerance is loose for this C; lower -e"
    ]


CHECKS: tuple[Callable[[Training], list[str]], ...] = (
    no_unbounded_vector,
    memorised_rows,
    tiny_cost,
    indefinite_kernel,
    huge_cost,
    loose_certificate,
)


def training_warnings(training: Training) -> list[str]:
    """The messages of every check, after those that the solver left in its Info.

    The solver speaks for itself of what it alone knows: a chunk smaller than the unbounded support
    vectors, and float32 kernel values that did not do.
    """
    found = list(training.info.get("warnings") or [])
    for check in CHECKS:
        found += [message for message in check(training) if message not in found]
    return found
