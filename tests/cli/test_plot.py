"""kfu plot: a picture of the decision function."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from cli_toys import files_in, libsvm_text, two_classes

pytest.importorskip("matplotlib")


@pytest.fixture
def flat(tmp_path, kfu):
    """A model of two features."""
    (tmp_path / "flat.svm").write_text(libsvm_text(*two_classes(d=2)))
    assert kfu("train", "flat.svm", "-q", "-g", 0.5).exit_code == 0
    return "flat.kfu"


def test_picture_shows_boundary_and_support_vectors(flat, kfu, tmp_path):
    from matplotlib.image import imread

    assert kfu("plot", flat, "flat.svm", "-o", "p.png", "--dpi", 60).exit_code == 0
    picture = imread("p.png")
    assert picture.shape[:2] == (336, 420)
    colours = {tuple(np.round(pixel, 2)) for pixel in picture.reshape(-1, picture.shape[2])}
    assert len(colours) > 100
    before = (tmp_path / "p.png").read_bytes()
    assert kfu("plot", flat, "flat.svm", "-o", "p.png", "--dpi", 60).exit_code == 0
    assert (tmp_path / "p.png").read_bytes() == before


def test_drawn_support_vectors_are_those_of_the_model(flat):
    from kfu.cli.plot import support_rows
    from kfu.io import read_dataset
    from kfu.model import Model

    model, dataset = Model.load(flat), read_dataset("flat.svm")
    np.testing.assert_array_equal(support_rows(model, dataset), model.support)
    other = dataset.take(np.arange(dataset.n)[::-1])
    assert len(support_rows(model, other)) == 0


@pytest.mark.parametrize("ending", ["pdf", "svg"])
def test_other_formats(ending, flat, kfu, tmp_path):
    assert kfu("plot", flat, "flat.svm", "-o", f"p.{ending}").exit_code == 0
    head = (tmp_path / f"p.{ending}").read_bytes()[:200]
    assert (b"%PDF" if ending == "pdf" else b"<?xml") in head


def test_two_of_many_features_and_many_classes(kfu, toy, toy_model, three_classes, tmp_path):
    assert (
        kfu("plot", toy_model, toy, "-o", "a.png", "--features", "1,3", "--dpi", 60).exit_code == 0
    )
    assert kfu("train", three_classes, "-q", "--scale", "standard").exit_code == 0
    assert kfu("plot", "trees.kfu", three_classes, "-o", "b.png", "--dpi", 60).exit_code == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["-o", "p.png"], 2, "has 3 features; choose two with --features I,J"),
        (["-o", "p.png", "--features", "1,9"], 2, "has 3 features"),
        (["-o", "p.png", "--features", "1"], 2, "is not I,J"),
        (["-o", "p.png", "--features", "0,1"], 2, "count from 1"),
        (["-o", "p.txt"], 2, "end it in .png, .pdf or .svg"),
        ([], 2, "Missing option '-o'"),
        (["-o", "absent/p.png"], 1, "no directory 'absent'"),
    ],
)
def test_refused(args, code, words, kfu, toy, toy_model, tmp_path):
    before = files_in(tmp_path)
    result = kfu("plot", toy_model, toy, *args)
    assert result.exit_code == code, result.stderr
    assert words in result.stderr
    assert files_in(tmp_path) == before


def test_without_matplotlib(flat, kfu, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = kfu("plot", flat, "flat.svm", "-o", "p.png")
    assert result.exit_code == 1
    assert "pip install 'kfu[plot]'" in result.stderr
