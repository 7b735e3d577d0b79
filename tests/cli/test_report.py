"""Reports: JSON that is always valid, written atomically, and counts that add up."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_toys import files_in

from kfu.report import TRAIN_KEYS, Confusion, plain, train_report, write_json


def test_json_has_no_nan_and_no_numpy(tmp_path):
    content = {
        "nan": np.nan,
        "inf": [np.inf, -np.inf, np.float32(1.5)],
        "count": np.int64(3),
        "array": np.array([[1.0, np.nan]]),
        "flag": np.bool_(True),
        1: ("a", None),
    }
    write_json("r.json", content)
    with open("r.json") as stream:
        text = stream.read()
    assert json.loads(text) == {
        "nan": None,
        "inf": [None, None, 1.5],
        "count": 3,
        "array": [[1.0, None]],
        "flag": True,
        "1": ["a", None],
    }
    assert files_in(tmp_path) == {"r.json"}


def test_floats_survive_exactly():
    value = 567.7870123456789
    assert json.loads(json.dumps(plain({"x": np.float64(value)})))["x"] == value


def test_train_report_has_every_key_in_order():
    report = train_report(
        {"cache_hits": 3, "cache_misses": 1, "status": "converged", "unknown": 1},
        seconds={"read": 1.0},
        warnings=["w"],
        settings={"cost": 1},
        threads=2,
        n=5,
    )
    assert tuple(report) == TRAIN_KEYS
    assert report["cache_hit_rate"] == 0.75
    assert report["objective"] is None
    assert report["n"] == 5


class TestConfusion:
    def test_counts_over_blocks(self):
        confusion = Confusion(np.array([-1.0, 1.0]))
        confusion.add(np.array([1.0, -1.0, 1.0]), np.array([1, 0, 0]))
        confusion.add(np.array([-1.0]), np.array([1]))
        summary = confusion.summary()
        assert summary["accuracy"] == summary["error"] == 0.5
        assert [entry["n"] for entry in summary["per_class"]] == [2, 2]
        assert [entry["predicted"] for entry in summary["per_class"]] == [2, 2]
        assert confusion.warnings() == []

    def test_text_block_after_a_numeric_one(self):
        confusion = Confusion(np.array([1.0, 2.0]))
        confusion.add(np.array([1.0, 2.0]), np.array([0, 1]))
        confusion.add(np.array(["?", "2", "+1", "2.0"]), np.array([0, 1, 0, 1]))
        assert confusion.summary()["accuracy"] == 1.0
        assert confusion.n_unlabelled == 1

    def test_zero_is_a_class_when_the_model_has_it(self):
        confusion = Confusion(np.array([0.0, 1.0]))
        confusion.add(np.array([0.0, 1.0]), np.array([0, 1]))
        assert confusion.n_unlabelled == 0
        assert confusion.summary()["accuracy"] == 1.0

    def test_unknown_labels(self):
        confusion = Confusion(np.array(["a", "b"]))
        confusion.add(np.array(["a", "c", "c", "d"]), np.array([0, 0, 1, 1]))
        assert confusion.unknown == {"c": 2, "d": 1}
        assert confusion.summary()["accuracy"] == 0.25
        (message,) = confusion.warnings()
        assert "3 rows" in message

    @pytest.mark.parametrize("labels", [None, np.array(["?", "?"]), np.array([np.nan, 0.0])])
    def test_no_labels(self, labels):
        confusion = Confusion(np.array([-1.0, 1.0]))
        confusion.add(labels, np.array([0, 1]))
        assert confusion.summary() == {
            "n": 2,
            "n_labelled": 0,
            "accuracy": None,
            "error": None,
            "per_class": None,
        }
