"""The benchmark of many classes: competitors answer alike, its table divides the right times."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks import multiclass
from benchmarks.multiclass import CASES, COMPETITORS, FULL_CASES, QUICK_CASES, RIVAL_OF

DATA = ((0, 90), (90, 200))


def three_classes() -> tuple[multiclass.Data, multiclass.Data]:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = rng.normal(scale=0.7, size=(200, 2)) + 2.0 * np.column_stack([np.cos(2 * y), np.sin(2 * y)])
    parts = [(X[a:b], y[a:b]) for a, b in DATA]
    return parts[0], parts[1]


TINY = multiclass.MulticlassCase("tiny", three_classes, 2.0, 0.5)


def test_cases_and_competitors_fit_together() -> None:
    assert sorted(FULL_CASES + QUICK_CASES) == sorted(CASES)
    assert set(RIVAL_OF) | set(RIVAL_OF.values()) == set(COMPETITORS)
    assert "LIBSVM ova" in multiclass.competitors_of(CASES["usps"])
    assert "LIBSVM ova" not in multiclass.competitors_of(CASES["mnist"])


def test_machines_trained_apart_and_together_and_by_libsvm_agree() -> None:
    names = [name for name in COMPETITORS if "oneDAL" not in name]
    found = {name: multiclass.measure(TINY, name) for name in names}
    assert len({record["accuracy"] for record in found.values()}) == 1
    for name in ("ava", "ova"):
        assert abs(found[f"kfu {name}"]["n_sv"] - found[f"LIBSVM {name}"]["n_sv"]) <= 2
    assert found["kfu separate"]["n_sv"] == found["kfu ova"]["n_sv"]
    assert found["kfu separate"]["kernel_evaluations"] > 0


def test_the_table_compares_equal_codes_by_their_medians() -> None:
    def record(name: str, seconds: float, accuracy: float = 0.9) -> dict[str, object]:
        return {
            "competitor": name,
            "seconds": seconds,
            "processor_seconds": 2 * seconds,
            "kernel_evaluations": 3e6 if name.startswith("kfu") else None,
            "n_sv": 7,
            "accuracy": accuracy,
        }

    records = [record("kfu ava", s) for s in (9.0, 2.0, 1.0)]
    records += [record("kfu ova", 4.0), record("LIBSVM ava", 8.0), record("LIBSVM ova", 6.0, 0.95)]
    records.append({"competitor": "oneDAL ava", "error": "none"})
    lines = multiclass.case_table(records).splitlines()
    cells = {line.split("|")[1].strip(): line.split("|") for line in lines[2:]}
    assert cells["LIBSVM ava"][3].strip() == "4.00"
    assert cells["LIBSVM ova"][3].strip() == "1.50"
    assert cells["kfu ava"][2].strip() == "2.00"
    assert cells["kfu ava"][6].strip() == "3.0 M"
    first, second = multiclass.remarks(records)
    assert first == "ova: the accuracy of kfu is -5.00 points off LIBSVM's"
    assert second == "oneDAL ava failed: none"
