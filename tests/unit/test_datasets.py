"""The committed toy files are what their generator writes, and are what they claim to be."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kfu.errors import SettingsError
from kfu.toys import TOYS, Sample, generate

DATASETS = Path(__file__).resolve().parents[2] / "datasets"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DATASETS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train_of(name: str) -> Sample:
    return generate(name, TOYS[name].n_train, [TOYS[name].seed, 0])


@pytest.mark.parametrize("name", TOYS)
def test_committed_files_are_what_the_generator_writes(name: str, script: ModuleType) -> None:
    for file_name, text in script.files_of(name).items():
        assert (DATASETS / file_name).read_bytes() == text.encode("ascii"), file_name


def test_no_other_data_files_are_committed_and_the_folder_is_small(script: ModuleType) -> None:
    known = {file_name for name in TOYS for file_name in script.files_of(name)}
    found = {path.name for path in DATASETS.glob("*.svm*")}
    assert found == known
    assert sum((DATASETS / name).stat().st_size for name in known) < 600_000


@pytest.mark.parametrize("name", TOYS)
def test_equal_seeds_give_equal_points_and_others_do_not(name: str) -> None:
    toy = TOYS[name]
    first, again = train_of(name), train_of(name)
    other = generate(name, toy.n_train, [toy.seed + 1, 0])
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    assert first.X.shape[0] == first.y.shape[0] == toy.n_train
    assert np.isfinite(first.X).all()
    assert np.isfinite(first.y).all()


@pytest.mark.parametrize("name", [n for n, toy in TOYS.items() if toy.task == "classification"])
def test_classes_are_balanced(name: str) -> None:
    _, counts = np.unique(generate(name, 600, 1).y, return_counts=True)
    assert len(counts) >= 2
    assert counts.min() > 0.3 * counts.mean()


def test_every_toy_is_described(script: ModuleType) -> None:
    readme = (DATASETS / "README.md").read_text(encoding="utf-8")
    for name, toy in TOYS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| {name} |"))
        assert f"| {toy.n_train}/{toy.n_test} | {train_of(name).X.shape[1]} |" in row


def test_moments_follow_the_formulae() -> None:
    two = generate("gaussians", 20_000, 5)
    assert np.allclose(two.X[two.y > 0].mean(axis=0), 1.0, atol=0.05)
    assert np.allclose(two.X[two.y < 0].std(axis=0), 1.0, atol=0.05)

    ring = generate("ring", 2_000, 5)
    radius = np.hypot(*ring.X.T)
    assert radius[ring.y > 0].max() <= 0.9 + 1e-4
    assert radius[ring.y < 0].min() >= 1.0 - 1e-4

    disc = generate("disc", 2_000, 5)
    squared = (disc.X**2).sum(axis=1)
    clear = np.abs(squared - 0.7) > 1e-4  # rounding may move a point across the circle
    assert np.array_equal(disc.y[clear] > 0, squared[clear] > 0.7)

    spiral = generate("spiral", 2_000, 5)
    assert np.hypot(*spiral.X.T).max() < 0.04 * 15 + 0.1

    wide = generate("selection-linear", 20_000, 5)
    assert wide.X.shape[1] == 202
    # E[y x_i] = 0.7 i for i = 1..3, 0.3 (i - 3) for i = 4..6, 0 for the noise.
    covariance = (wide.y[:, None] * wide.X[:, :6]).mean(axis=0)
    assert np.allclose(covariance, [0.7, 1.4, 2.1, 0.3, 0.6, 0.9], atol=0.06)
    assert np.allclose(wide.X[:, 6:].std(axis=0), 20.0, rtol=0.05)

    narrow = generate("selection-quadratic", 20_000, 5)
    assert narrow.X.shape[1] == 52
    product = narrow.X[:, 0] * narrow.X[:, 1]
    assert product[narrow.y > 0].mean() == pytest.approx(-9.0, abs=0.3)
    assert product[narrow.y < 0].mean() == pytest.approx(2.25, abs=0.2)

    sinc = generate("sinc", 20_000, 5)
    x = sinc.X[:, 0]
    assert np.std(sinc.y - np.sin(4 * x) / (4 * x)) == pytest.approx(0.1, rel=0.05)


def test_xor_defeats_linear_functions_and_yields_to_the_product() -> None:
    xor = generate("xor", 4_000, 5)
    correlation = np.corrcoef(np.column_stack([xor.X, xor.X.prod(axis=1), xor.y]).T)[-1]
    assert np.abs(correlation[:2]).max() < 0.1
    assert correlation[2] > 0.7


def test_ranking_grades_are_per_query() -> None:
    sample = train_of("ranking")
    assert sample.qid is not None
    for query in np.unique(sample.qid):
        grades = np.sort(sample.y[sample.qid == query])
        assert grades.tolist() == [0.0] * 5 + [1.0] * 3 + [2.0] * 2


def test_bad_requests_are_named() -> None:
    with pytest.raises(SettingsError, match="no toy is called 'bananna'"):
        generate("bananna", 10, 0)
    with pytest.raises(SettingsError, match="at least 2"):
        generate("xor", 1, 0)
    with pytest.raises(SettingsError, match="queries of 10"):
        generate("ranking", 15, 0)
