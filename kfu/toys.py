"""The toy problems of the kernel-machine literature, each as one function of a random generator.

A toy is drawn by `generate(name, n, seed)`. The same name, size and seed give the same numbers
everywhere: only `numpy.random.default_rng(seed)` is used, and values are rounded to `decimals`
places (so that differences in the last bit between mathematical libraries do not show).
`datasets/` holds the files that `datasets/generate.py` writes from the fixed seeds below, and
`kfu run` draws toys of any size (`data: {toy: banana, n_train: 400, n_test: 1000}`).

Notation: N(m, s) is a normal variable of mean m and *standard deviation* s, U(a, b) a uniform one,
e a standard normal one; y is -1 or +1 with equal probability unless the formula says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from kfu.errors import SettingsError


@dataclass(frozen=True)
class Sample:
    """Points drawn from a toy: `y` holds labels, targets or grades, `qid` the query or None."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray | None = None


@dataclass(frozen=True)
class Toy:
    """One toy: how it is drawn, the sizes and seed of its committed files, and what it is."""

    draw: Callable[[Generator, int], Sample]
    task: str  # classification | regression | ranking
    n_train: int
    n_test: int
    seed: int
    decimals: int
    about: str  # one line, shown by datasets/README.md and by error messages


def signs(rng: Generator, n: int) -> np.ndarray:
    """n labels -1/+1, in random order, as evenly divided as n allows."""
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.permutation(y)


def gaussians(rng: Generator, n: int) -> Sample:
    """x ~ N(y (1, 1), 1): overlapping; the best error is Phi(-sqrt 2) = 7.86%."""
    y = signs(rng, n)
    return Sample(y[:, None] + rng.standard_normal((n, 2)), y)


def xor(rng: Generator, n: int) -> Sample:
    """x ~ N((a, b), 0.4) with a, b = +-1 independent and y = a b."""
    centres = rng.choice([-1.0, 1.0], size=(n, 2))
    return Sample(centres + 0.4 * rng.standard_normal((n, 2)), centres[:, 0] * centres[:, 1])


def banana(rng: Generator, n: int) -> Sample:
    """+1: an arc, t ~ N(0, 0.9), r ~ N(1.8, 0.4), x = (r sin t, -r cos t); -1: the cloud it bends
    around, x ~ (N(0, 0.7), N(0.1, 0.7))."""
    y = signs(rng, n)
    u, e = rng.standard_normal((2, n))
    t, r = 0.9 * u, 1.8 + 0.4 * e
    arc = np.column_stack([r * np.sin(t), -r * np.cos(t)])
    cloud = np.column_stack([0.7 * u, 0.1 + 0.7 * e])
    return Sample(np.where(y[:, None] > 0, arc, cloud), y)


def ring(rng: Generator, n: int) -> Sample:
    """+1: uniform on the disk of radius 0.9; -1: uniform on the ring 1.0 < r < 1.6."""
    y = signs(rng, n)
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    u = rng.random(n)
    r = np.sqrt(np.where(y > 0, 0.9**2 * u, 1.0**2 + (1.6**2 - 1.0**2) * u))
    return Sample(np.column_stack([r * np.cos(angle), r * np.sin(angle)]), y)


def disc(rng: Generator, n: int) -> Sample:
    """x ~ U(-1, 1)^2, y = sign(|x|^2 - 0.7): the toy of the invariance experiments."""
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return Sample(X, np.where((X * X).sum(axis=1) > 0.7, 1.0, -1.0))


def spiral(rng: Generator, n: int) -> Sample:
    """t ~ U(3, 15); x = 0.04 t y (sin t, cos t) + N(0, 0.01): two interleaved arms."""
    y = signs(rng, n)
    t = rng.uniform(3.0, 15.0, n)
    arm = 0.04 * t[:, None] * np.column_stack([np.sin(t), np.cos(t)])
    return Sample(y[:, None] * arm + 0.01 * rng.standard_normal((n, 2)), y)


def moons(rng: Generator, n: int) -> Sample:
    """t ~ U(0, pi); +1: (cos t, sin t), -1: (1 - cos t, 1/2 - sin t), plus N(0, 0.1)."""
    y = signs(rng, n)
    t = rng.uniform(0.0, np.pi, n)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1.0 - np.cos(t), 0.5 - np.sin(t)])
    return Sample(np.where(y[:, None] > 0, upper, lower) + 0.1 * rng.standard_normal((n, 2)), y)


def three_gaussians(rng: Generator, n: int) -> Sample:
    """Classes 1, 2, 3 with x ~ N(2 (cos a, sin a), 0.8), a = 2 pi (class - 1) / 3."""
    y = rng.permutation(np.arange(n) % 3 + 1.0)
    a = 2.0 * np.pi * (y - 1.0) / 3.0
    centres = 2.0 * np.column_stack([np.cos(a), np.sin(a)])
    return Sample(centres + 0.8 * rng.standard_normal((n, 2)), y)


def selection_linear(rng: Generator, n: int) -> Sample:
    """202 features: with probability 0.7, x_i = y N(i, 1) for i = 1..3 and x_4..6 = N(0, 1);
    otherwise x_1..3 = N(0, 1) and x_i = y N(i - 3, 1) for i = 4..6; x_7..202 = N(0, 20)."""
    y = signs(rng, n)
    first = rng.random(n) < 0.7
    X = rng.standard_normal((n, 202))
    shifted = y[:, None] * (X[:, :6] + np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]))
    informative = np.repeat(np.column_stack([first, ~first]), 3, axis=1)
    X[:, :6] = np.where(informative, shifted, X[:, :6])
    X[:, 6:] *= 20.0
    return Sample(X, y)


def selection_quadratic(rng: Generator, n: int) -> Sample:
    """52 features: (x_1, x_2) ~ N(+-(3/4, 3), 1) for y = -1, N(+-(3, -3), 1) for y = +1, either
    sign with equal probability; x_3..52 = N(0, 20)."""
    y = signs(rng, n)
    side = rng.choice([-1.0, 1.0], size=n)
    X = rng.standard_normal((n, 52))
    X[:, 2:] *= 20.0
    centre = np.where(y[:, None] > 0, np.array([3.0, -3.0]), np.array([0.75, 3.0]))
    X[:, :2] += side[:, None] * centre
    return Sample(X, y)


def sinc(rng: Generator, n: int) -> Sample:
    """x ~ U(-pi, pi), y = sin(4x) / (4x) + N(0, 0.1)."""
    x = rng.uniform(-np.pi, np.pi, n)
    return Sample(x[:, None], np.sinc(4.0 * x / np.pi) + 0.1 * rng.standard_normal(n))


def step(rng: Generator, n: int) -> Sample:
    """x ~ U(-pi, pi), y = sign(x) + N(0, 0.1)."""
    x = rng.uniform(-np.pi, np.pi, n)
    return Sample(x[:, None], np.where(x > 0, 1.0, -1.0) + 0.1 * rng.standard_normal(n))


def parabola(rng: Generator, n: int) -> Sample:
    """x ~ U(-pi, pi), y = (x + 1.5)^2 / 10 + N(0, 0.05)."""
    x = rng.uniform(-np.pi, np.pi, n)
    return Sample(x[:, None], (x + 1.5) ** 2 / 10.0 + 0.05 * rng.standard_normal(n))


def ranking(rng: Generator, n: int) -> Sample:
    """Queries of 10 rows with 5 features: x ~ N(q, 1) with an offset q ~ N(0, 1) of the query,
    utility u = (2, -1, 1/2, 0, 0) x + N(0, 0.5); within a query the best two rows have grade 2,
    the next three grade 1, the others 0. Only comparisons within a query mean anything."""
    if n % 10:
        raise SettingsError(f"the ranking toy has queries of 10 rows, and {n} is not a multiple")
    offsets = np.repeat(rng.standard_normal((n // 10, 5)), 10, axis=0)
    X = offsets + rng.standard_normal((n, 5))
    utility = X @ np.array([2.0, -1.0, 0.5, 0.0, 0.0]) + 0.5 * rng.standard_normal(n)
    by_query = utility.reshape(-1, 10)
    rank = (-by_query).argsort(axis=1).argsort(axis=1)
    grade = np.where(rank < 2, 2.0, np.where(rank < 5, 1.0, 0.0))
    return Sample(X, grade.reshape(-1), np.repeat(np.arange(1, n // 10 + 1), 10))


TOYS: dict[str, Toy] = {
    "gaussians": Toy(gaussians, "classification", 200, 400, 101, 5, "two overlapping Gaussians"),
    "xor": Toy(xor, "classification", 200, 400, 102, 5, "four clusters, opposite corners alike"),
    "banana": Toy(banana, "classification", 400, 800, 103, 5, "an arc bent around a round cloud"),
    "ring": Toy(ring, "classification", 200, 400, 104, 5, "a disk inside a ring; separable"),
    "disc": Toy(disc, "classification", 100, 400, 105, 5, "a circle in the unit square"),
    "spiral": Toy(spiral, "classification", 300, 400, 106, 5, "two interleaved spiral arms"),
    "moons": Toy(moons, "classification", 200, 400, 107, 5, "two half-moons"),
    "three-gaussians": Toy(
        three_gaussians, "classification", 180, 360, 108, 5, "three classes in the plane"
    ),
    "selection-linear": Toy(
        selection_linear, "classification", 50, 80, 109, 2, "202 features, six of them informative"
    ),
    "selection-quadratic": Toy(
        selection_quadratic, "classification", 30, 60, 110, 2, "52 features, two informative"
    ),
    "sinc": Toy(sinc, "regression", 100, 300, 111, 5, "sin(4x)/(4x) with noise"),
    "step": Toy(step, "regression", 50, 300, 112, 5, "a step with noise"),
    "parabola": Toy(parabola, "regression", 40, 300, 113, 5, "a parabola with noise"),
    "ranking": Toy(ranking, "ranking", 300, 300, 114, 5, "graded rows in queries of ten"),
}


def generate(name: str, n: int, seed: int | list[int]) -> Sample:
    """Draw n points of the toy `name`; equal arguments give equal points.

    `seed` may be a list (as numpy's), to derive independent streams from one number.
    """
    if name not in TOYS:
        raise SettingsError(f"no toy is called '{name}'; there are {', '.join(TOYS)}")
    if n < 2:
        raise SettingsError(f"a toy needs at least 2 points, not {n}")
    toy = TOYS[name]
    sample = toy.draw(np.random.default_rng(seed), n)
    # Adding 0.0 turns a rounded -0.0 into 0.0, which prints alike everywhere.
    X = np.round(sample.X, toy.decimals) + 0.0
    y = np.round(sample.y, toy.decimals) + 0.0
    return Sample(X, y, sample.qid)
