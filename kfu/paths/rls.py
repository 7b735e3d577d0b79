"""The path of regularised least squares in λ: closed form, from one eigendecomposition.

    min Σ w_i (f(x_i) − y_i)² + λℓ ‖f‖²,   coefficients c(λ) = (K + λℓ W⁻¹)⁻¹ (Y − b)

With the spectrum of K (kfu.least_squares.spectrum) the coefficients, the exact leave-one-out
outputs and generalised cross-validation at any λ take one product with the eigenvectors. There are
no events: c(λ) is smooth, so the path is the spectrum, tabulated on a grid.

    path = rls_path(X, y, kernel, machine="rls" or "rlsc", lam_range=(1e-6, 1.0))
    path.at(lam)        the Model at any λ > 0, on the grid or not, with its leave-one-out outputs
    path.lam, path.loo, path.gcv, path.df, path.loo_error, path.valid_error, ...   the columns
    path.best("loo")    the λ of the grid with the least loo, gcv, loo_error or valid_error
    path.records()      the rows of the path file, event "grid", with loo, gcv, df and loo_error

ℓ is the number of rows of positive weight, λℓ what `--ridge` gives. Errors are means over rows by
their weights: squared errors of rls, fractions of wrong classes of rlsc. `kkt` is the largest
residual of the equations above, in units of y, by kernel values computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kfu._gram import Gram
from kfu.errors import DataError, SettingsError
from kfu.kernels import KernelSpec
from kfu.least_squares.full import FullSolution
from kfu.least_squares.spectrum import Spectrum
from kfu.machines.task import TrainingTask
from kfu.machines.training import prepare
from kfu.model import Model
from kfu.multiclass.decoding import decode
from kfu.paths.extraction import extracted_model, matched_validation

if TYPE_CHECKING:
    from kfu.scale import Scaler
    from kfu.solvers.settings import SolverSettings

__all__ = ["RidgePath", "rls_path"]

MACHINES = ("rls", "rlsc")
CRITERIA = ("loo", "gcv", "loo_error", "valid_error")
N_POINTS = 50
EQUAL = 1e-12  # relative difference of criteria that counts as a tie


def rls_path(
    X: Any,
    y: Any,
    kernel: KernelSpec | None = None,
    *,
    machine: str = "rls",
    grid: Any = None,
    lam_range: tuple[float, float] | None = None,
    n_points: int = N_POINTS,
    class_weight: Mapping[Any, float] | str | None = None,
    sample_weight: np.ndarray | None = None,
    bias: bool | str | None = None,
    multiclass: Any = None,
    decoding: str | None = None,
    settings: SolverSettings | None = None,
    X_valid: Any = None,
    y_valid: Any = None,
    scaler: Scaler | None = None,
    source: str = "data",
    **options: Any,
) -> RidgePath:
    """The path of rls (numbers) or rlsc (classes, by a code without zeros).

    `grid` gives the λ, or `lam_range` the ends of `n_points` of them, equally far apart in log λ;
    else they go from the smallest eigenvalue that counts to ten times the largest. The rest is as
    in kfu.train and kfu.paths.gap_path.follow_gap.
    """
    if machine not in MACHINES:
        raise SettingsError(f"machine {machine} is not {' or '.join(MACHINES)}")
    task = prepare(
        X,
        y,
        machine=machine,
        kernel=kernel,
        class_weight=class_weight,
        sample_weight=sample_weight,
        bias=bias,
        multiclass=multiclass,
        decoding=decoding,
        settings=settings,
        source=source,
        **options,
    )
    lams = _checked_grid(grid, lam_range, n_points)
    targets = _targets_of(task)
    spectrum = Spectrum(
        task.X,
        task.kernel,
        weight=None if np.all(task.weights == 1.0) else task.weights,
        bias=task.has_free_bias,
        threads=task.settings.n_threads,
    )
    if lams is None:
        lams = spectrum.default_grid() / np.count_nonzero(task.weights > 0.0)
    path = RidgePath(task=task, targets=targets, spectrum=spectrum, lam=lams, scaler=scaler)
    path.tabulate()
    if X_valid is not None:
        path.validate(X_valid, y_valid)
    return path


@dataclass(eq=False)
class RidgePath:
    """See the head of the file. Columns have one entry for each λ, ascending."""

    task: TrainingTask
    targets: np.ndarray  # (n, t)
    spectrum: Spectrum
    lam: np.ndarray
    scaler: Scaler | None = None
    loo: np.ndarray = field(default_factory=lambda: np.zeros(0))  #: mean squared, left out
    gcv: np.ndarray = field(default_factory=lambda: np.zeros(0))
    df: np.ndarray = field(default_factory=lambda: np.zeros(0))
    objective: np.ndarray = field(default_factory=lambda: np.zeros(0))
    train_error: np.ndarray = field(default_factory=lambda: np.zeros(0))
    kkt: np.ndarray = field(default_factory=lambda: np.zeros(0))
    loo_error: np.ndarray | None = None  #: of classes
    valid_error: np.ndarray | None = None
    status: str = "done"

    def __len__(self) -> int:
        return len(self.lam)

    @property
    def machine(self) -> str:
        return self.task.machine.name

    @property
    def n_rows(self) -> int:
        """ℓ: rows of positive weight."""
        return int(np.count_nonzero(self.task.weights > 0.0))

    # ---- anywhere --------------------------------------------------------------------------

    def solution(self, lam: float) -> FullSolution:
        """Coefficients, bias, fitted and left-out outputs at any λ > 0."""
        return self.spectrum.solve(self.targets, lam * self.n_rows)

    def at(self, value: float | None = None, *, lam: float | None = None) -> Model:
        """The model at any λ > 0."""
        given = [number for number in (value, lam) if number is not None]
        if len(given) != 1:
            raise SettingsError("give one value of lambda to extract the model at")
        number = float(given[0])
        if not (np.isfinite(number) and number > 0.0):
            raise SettingsError(f"lambda is {number!r}; a finite number greater than 0 is needed")
        return self._model(number, self.solution(number))

    def _model(self, lam: float, found: FullSolution) -> Model:
        figures = self._figures(lam, found)
        info = {
            **{name: figure for name, figure in figures.items() if figure is not None},
            "ridge": lam * self.n_rows,
            "lambda": lam,
            "df": found.info["df"],
            "n_usv": int(np.count_nonzero(np.any(found.coef != 0.0, axis=1))),
        }
        model = extracted_model(
            self.task,
            found.coef,
            found.bias,
            scaler=self.scaler,
            settings={"lambda": lam},
            info=info,
        )
        model.loo = found.loo
        return model

    def _figures(self, lam: float, found: FullSolution) -> dict[str, float | None]:
        """What a solution says of its errors."""
        assert found.loo is not None
        ridge = lam * self.n_rows
        squares = ((found.loo - self.targets) ** 2).mean(axis=1)
        is_class = self.task.labels is not None
        return {
            "objective": ridge * float(np.sum(found.coef * (self.targets - found.bias))),
            "loo_mse": self._mean(squares),
            "loo_error": self._error(found.loo) if is_class else None,
            "train_error": self._error(found.fitted),
        }

    def _mean(self, values: np.ndarray) -> float:
        return float(np.average(values, weights=self.task.row_weights))

    def _error(self, outputs: np.ndarray) -> float:
        task = self.task
        if task.labels is None:
            return self._mean(((outputs - self.targets) ** 2)[:, 0])
        assert task.code is not None
        if not np.isfinite(outputs).all():
            return float("nan")
        return self._mean(decode(outputs, task.code, task.decoding) != task.labels)

    # ---- the grid --------------------------------------------------------------------------

    def tabulate(self) -> None:
        """Fills in the columns."""
        table = self.spectrum.table(self.targets, self.lam * self.n_rows)
        found = [self.solution(float(lam)) for lam in self.lam]
        figures = [self._figures(float(lam), f) for lam, f in zip(self.lam, found, strict=True)]

        def column(name: str) -> np.ndarray:
            return np.array([figure[name] for figure in figures], dtype=np.float64)

        self.loo, self.objective = column("loo_mse"), column("objective")
        self.train_error = column("train_error")
        self.loo_error = column("loo_error") if self.task.labels is not None else None
        self.gcv, self.df = table.gcv, table.df
        self.kkt = self._residuals(found)

    def _residuals(self, found: list[FullSolution]) -> np.ndarray:
        weights = self.task.weights
        counted = weights > 0.0
        outputs = self._outputs(found, self.task.X)
        left = np.empty(len(found))
        for k, (lam, one) in enumerate(zip(self.lam, found, strict=True)):
            misses = outputs[k] - self.targets
            misses[counted] += lam * self.n_rows * one.coef[counted] / weights[counted, None]
            left[k] = float(np.abs(misses[counted]).max())
        return left

    def _outputs(self, found: list[FullSolution], X: Any) -> np.ndarray:
        """f at the rows of X for every solution, (grid, rows, t): one pass over the kernel."""
        task = self.task
        coef = np.concatenate([one.coef for one in found], axis=1)
        if task.kernel.is_precomputed:
            sums = task.kernel.weight * np.asarray(X @ coef, dtype=np.float64)
        else:
            gram = Gram(task.X, task.kernel, "float64", task.settings.n_threads)
            sums = np.asarray(gram.decision(None, coef, X))
        shaped = sums.reshape(X.shape[0], len(found), -1).transpose(1, 0, 2)
        return shaped + np.stack([one.bias for one in found])[:, None, :]

    def best(self, criterion: str = "loo") -> float:
        """The λ of the grid with the least value of a column; of equals the largest."""
        if criterion not in CRITERIA:
            raise SettingsError(f"criterion is {criterion!r}; choose {', '.join(CRITERIA)}")
        column = getattr(self, criterion)
        if column is None or not np.isfinite(column).any():
            raise SettingsError(f"the path has no {criterion} to choose by")
        least = float(np.nanmin(column))
        return float(self.lam[np.flatnonzero(column <= least + EQUAL * abs(least))[-1]])

    def records(self) -> Iterator[dict[str, Any]]:
        """The grid from the largest λ down, as other paths go; C is not a setting of these."""
        n = self.task.n
        for step, k in enumerate(range(len(self) - 1, -1, -1)):
            bias = self.solution(float(self.lam[k])).bias if self.task.has_free_bias else None
            yield {
                "step": step,
                "lambda": float(self.lam[k]),
                "C": None,
                "event": "grid",
                "items": [],
                "n_margin": self.n_rows,
                "n_error": 0,
                "n_correct": n - self.n_rows,
                "bias": _plain_bias(bias),
                "objective": float(self.objective[k]),
                "train_error": float(self.train_error[k]),
                "valid_error": None if self.valid_error is None else float(self.valid_error[k]),
                "kkt": float(self.kkt[k]),
                "loo": float(self.loo[k]),
                "gcv": float(self.gcv[k]),
                "df": float(self.df[k]),
                "loo_error": None if self.loo_error is None else float(self.loo_error[k]),
            }

    def validate(self, X: Any, y: Any) -> np.ndarray:
        """Sets and returns `valid_error`, the error of other rows at every λ of the grid."""
        found = [self.solution(float(lam)) for lam in self.lam]
        model = self._model(float(self.lam[0]), found[0])
        X, y = matched_validation(model, X, y, self.scaler)
        outputs = self._outputs(found, X)
        task = self.task
        if task.labels is None:
            errors = ((outputs[:, :, 0] - y.astype(np.float64)) ** 2).mean(axis=1)
        else:
            assert task.code is not None
            chosen = [task.classes[decode(f, task.code, task.decoding)] for f in outputs]
            errors = np.array([np.mean(labels != y) for labels in chosen])
        self.valid_error = np.asarray(errors, dtype=np.float64)
        return self.valid_error


def _plain_bias(bias: np.ndarray | None) -> Any:
    if bias is None:
        return 0.0
    return float(bias[0]) if bias.size == 1 else bias.tolist()


def _targets_of(task: TrainingTask) -> np.ndarray:
    if task.bias == "regularised":
        raise SettingsError("the path of least squares has a free bias or none")
    if not np.any(task.weights > 0.0):
        raise DataError(task.source, None, "no row has a positive weight", "mend the weights")
    if task.labels is None:
        assert task.targets is not None
        return task.targets[:, None]
    assert task.code is not None
    if np.any(task.code == 0):
        raise SettingsError(
            "a path trains every machine on the same rows; choose a code without zeros (ova, "
            "complete, dense)"
        )
    return task.code[task.labels].astype(np.float64)


def _checked_grid(
    grid: Any, lam_range: tuple[float, float] | None, n_points: int
) -> np.ndarray | None:
    """λ in ascending order, None for the default."""
    if grid is not None and lam_range is not None:
        raise SettingsError("grid and lam_range both set the lambdas; give one of them")
    if grid is None and lam_range is None:
        return None
    try:
        values = np.asarray(lam_range if grid is None else grid, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise SettingsError("the lambdas are not numbers; give numbers greater than 0") from None
    if values.size == 0 or not np.all(np.isfinite(values) & (values > 0.0)):
        raise SettingsError("lambdas have to be finite numbers greater than 0, one at least")
    if grid is not None:
        return np.unique(values)
    if values.size != 2 or values[0] > values[1]:
        raise SettingsError(f"the range of lambda is empty: {lam_range!r}; give low and high")
    if n_points < 1:
        raise SettingsError(f"n_points is {n_points!r}; give 1 or more")
    return np.unique(np.geomspace(values[0], values[1], n_points))
