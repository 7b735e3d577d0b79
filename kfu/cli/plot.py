"""``kfu plot``: the decision function of a model over two features, as a picture."""

from __future__ import annotations

import os
from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from kfu.cli import console, inputs, options
from kfu.cli.file_kind import load_any_model
from kfu.cli.parameters import FeaturePair, Number
from kfu.data import Dataset, format_label
from kfu.errors import DataError, KfuError, ModelError, SettingsError
from kfu.io.atomic import atomic_output
from kfu.model import Model

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
# Points of an axis; regions of several classes have sharp edges and need more.
GRID, REGION_GRID = 300, 400
# Colour-blind safe (Okabe and Ito), one per class in turn.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
LINE = "#222222"
MOST_POINTS = 5000


@click.command(
    epilog="""\b
Examples:
  kfu plot moons.kfu moons.svm -o moons.png
  kfu plot wine.kfu wine.svm -o wine.png --features 1,7   # the other features at their mean
"""
)
@click.argument("model_path", metavar="MODEL")
@options.data
@click.option(
    "-o", "--output", required=True, metavar="P.png", help="Picture to write (.png, .pdf, .svg)."
)
@click.option(
    "--features",
    type=FeaturePair(),
    default=None,
    metavar="I,J",
    help="The two features of the axes, counted from 1; the others are held at their mean over "
    "DATA.  [default: 1,2 for a model of two features]",
)
@click.option(
    "--dpi", type=Number(20, integer=True), default=150, show_default=True, help="Dots per inch."
)
@options.data_options
@options.threads
@options.seed
@options.verbose
@options.quiet
def plot(
    model_path: str,
    data: str,
    output: str,
    features: tuple[int, int] | None,
    dpi: int,
    seed: int,
    **opts: Any,
) -> None:
    """Draw the decision function of MODEL over two features.

    Two classes: shades of the decision value, the boundary (solid), the margins (dashed), the
    rows of DATA, the support vectors ringed. More classes: the region of each. Regression and
    ranking: the value.
    """
    if os.path.splitext(output)[1].lower() not in PICTURE_SUFFIXES:
        raise SettingsError(f"{output}: not the name of a picture; end it in .png, .pdf or .svg")
    inputs.check_output(output)
    figure_class = figure_of_matplotlib()
    model = load_any_model(model_path)
    if model.is_precomputed:
        raise ModelError(model_path, "a precomputed kernel has no features", "nothing to draw")
    if features is None:
        if model.n_features != 2:
            raise SettingsError(
                f"{model_path} has {model.n_features} features; choose two with --features I,J"
            )
        features = (0, 1)
    if max(features) >= model.n_features:
        raise SettingsError(
            f"--features {features[0] + 1},{features[1] + 1}: {model_path} has "
            f"{model.n_features} features"
        )
    dataset = inputs.read_data(data, opts, n_features=model.n_features)
    if dataset.n_features != model.n_features:
        raise DataError(
            dataset.source,
            None,
            f"{dataset.n_features} features where the model has {model.n_features}",
            "give data like those it was trained on",
        )
    picture = draw(figure_class, model, dataset, features, opts["threads"], seed)
    ending = os.path.splitext(output)[1].lower()[1:]
    with atomic_output(output, "wb") as stream:
        picture.savefig(stream, format=ending, dpi=dpi, metadata=fixed_metadata(ending))
    console.note(f"{output}: features {features[0] + 1} and {features[1] + 1}")


def figure_of_matplotlib() -> Any:
    """matplotlib's Figure (used without pyplot: no window system, no global state)."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise KfuError("kfu plot needs matplotlib; pip install 'kfu[plot]'") from None
    return Figure


def fixed_metadata(ending: str) -> dict[str, Any]:
    """Leave dates out, so that equal pictures are equal files."""
    return {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending, {})


def draw(
    figure_class: Any,
    model: Model,
    dataset: Dataset,
    features: tuple[int, int],
    threads: int,
    seed: int,
) -> Any:
    points = columns_of(dataset.X, features)
    grid = GRID if model.n_machines == 1 else REGION_GRID
    xs, ys = (axis_grid(points[:, k], grid) for k in (0, 1))
    grid_x, grid_y = np.meshgrid(xs, ys)
    Z = np.tile(mean_of(dataset.X), (grid_x.size, 1))
    Z[:, features[0]], Z[:, features[1]] = grid_x.ravel(), grid_y.ravel()
    decision = model.decision_function(Z, threads=threads)

    picture = figure_class(figsize=(7, 5.6), layout="constrained")
    axes = picture.add_subplot()
    if not model.has_classes:
        draw_surface(picture, axes, grid_x, grid_y, decision[:, 0].reshape(grid_x.shape))
    elif model.n_machines == 1:
        draw_decision(picture, axes, grid_x, grid_y, decision[:, 0].reshape(grid_x.shape))
    else:
        winners = model.decide(decision).reshape(grid_x.shape)
        draw_regions(axes, grid_x, grid_y, winners, model.n_classes)
    draw_points(axes, model, dataset, points, seed)
    axes.set_xlim(xs[0], xs[-1])
    axes.set_ylim(ys[0], ys[-1])
    axes.set_xlabel(f"feature {features[0] + 1}")
    axes.set_ylabel(f"feature {features[1] + 1}")
    axes.set_title(f"{model.machine}, {model.kernel.describe()}, {model.n_sv} support vectors")
    return picture


def columns_of(X: Any, features: tuple[int, int]) -> np.ndarray:
    chosen = X[:, list(features)]
    dense = chosen.toarray() if sp.issparse(chosen) else chosen
    return np.asarray(dense, dtype=np.float64)


def mean_of(X: Any) -> np.ndarray:
    return np.asarray(X.mean(axis=0), dtype=np.float64).ravel()


def axis_grid(values: np.ndarray, count: int) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, count)


def draw_decision(
    picture: Any, axes: Any, grid_x: np.ndarray, grid_y: np.ndarray, values: np.ndarray
) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    extent = max(1.0, float(np.quantile(np.abs(values), 0.98)))
    levels = np.linspace(-extent, extent, 21)
    colours = LinearSegmentedColormap.from_list("kfu", [COLOURS[0], "#ffffff", COLOURS[1]])
    shades = axes.contourf(
        grid_x, grid_y, values, levels=levels, cmap=colours, alpha=0.45, extend="both"
    )
    axes.contour(
        grid_x,
        grid_y,
        values,
        levels=[-1.0, 0.0, 1.0],
        colors=LINE,
        linestyles=["dashed", "solid", "dashed"],
        linewidths=[1.0, 1.8, 1.0],
    )
    picture.colorbar(shades, ax=axes, label="decision value", ticks=MaxNLocator(7))
    axes.plot([], [], color=LINE, linewidth=1.8, label="f = 0")
    axes.plot([], [], color=LINE, linewidth=1.0, linestyle="dashed", label="f = ±1")


def draw_surface(
    picture: Any, axes: Any, grid_x: np.ndarray, grid_y: np.ndarray, values: np.ndarray
) -> None:
    """The value of a regression or the score of a ranking, with lines of equal value."""
    low, high = (float(np.quantile(values, share)) for share in (0.01, 0.99))
    levels = np.linspace(low, high, 15)
    if levels[0] == levels[-1]:  # a constant function
        levels = levels[0] + np.linspace(-1.0, 1.0, 15)
    shades = axes.contourf(grid_x, grid_y, values, levels=levels, alpha=0.8, extend="both")
    axes.contour(grid_x, grid_y, values, levels=levels[::2], colors=LINE, linewidths=0.4)
    picture.colorbar(shades, ax=axes, label="value")


def draw_regions(
    axes: Any, grid_x: np.ndarray, grid_y: np.ndarray, winners: np.ndarray, n_classes: int
) -> None:
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([COLOURS[k % len(COLOURS)] for k in range(n_classes)])
    axes.pcolormesh(
        grid_x, grid_y, winners, cmap=colours, vmin=-0.5, vmax=n_classes - 0.5, alpha=0.3
    )
    for k in range(n_classes):
        axes.contour(grid_x, grid_y, winners == k, levels=[0.5], colors=LINE, linewidths=1.0)


def draw_points(axes: Any, model: Model, dataset: Dataset, points: np.ndarray, seed: int) -> None:
    """The rows by class, and rings around those that are support vectors of the model."""
    shown = np.arange(dataset.n)
    if dataset.n > MOST_POINTS:
        shown = np.sort(np.random.default_rng(seed).choice(dataset.n, MOST_POINTS, replace=False))
        console.note(f"{MOST_POINTS} of {dataset.n} rows are drawn")
    names = [format_label(value) for value in model.classes]
    if dataset.y is None or not model.has_classes:
        axes.scatter(*points[shown].T, s=14, color="#555555", label="rows")
    else:
        labels = np.array([format_label(value) for value in dataset.y])
        for label in [*names, *sorted(set(labels) - set(names))]:
            rows = shown[labels[shown] == label]
            k = names.index(label) if label in names else len(COLOURS) - 1
            colour = COLOURS[k % len(COLOURS)]
            axes.scatter(
                *points[rows].T, s=14, color=colour, edgecolors="white", linewidths=0.3, label=label
            )
    marked = support_rows(model, dataset)
    if len(marked):
        axes.scatter(
            *points[marked].T,
            s=48,
            facecolors="none",
            edgecolors=LINE,
            linewidths=0.7,
            label="support vectors",
        )
    axes.legend(loc="best", fontsize=8, framealpha=0.9)


def support_rows(model: Model, dataset: Dataset) -> np.ndarray:
    """Rows of ``dataset`` that are support vectors: by index when these are the training data.

    Empty when the rows at the recorded indices are not the support vectors (other data).
    """
    rows = model.support
    if len(rows) == 0 or rows.min() < 0 or rows.max() >= dataset.n or model.support_vectors is None:
        return np.empty(0, dtype=np.int64)
    seen = dataset.X[rows]
    if model.scaler is not None:
        seen = model.scaler.transform(seen)
    seen = seen.toarray() if sp.issparse(seen) else seen
    vectors = model.support_vectors
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    if not np.allclose(seen, vectors, rtol=1e-5, atol=1e-8):
        return np.empty(0, dtype=np.int64)
    return rows
