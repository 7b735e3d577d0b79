"""The benchmarks' own arithmetic: registries, judging, tables, records, the callgrind parser.

Nothing here is timed. What is judged is also computed another way, or known by construction.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from benchmarks import cases, instructions, plots, records, report, sweeps, tables
from benchmarks.cases import CASES, FULL_CASES, GOALS, HARD_CASES, PREDICTIONS, QUICK_CASES, Case
from benchmarks.competitors import COMPETITORS, FORMS, default_competitors
from benchmarks.worker import judge, measure

ROOT = Path(__file__).resolve().parents[1]
TINY = Case("tiny", lambda: cases.gaussian_mixtures(300, 5), 2.0, 0.2)
MACHINE = {
    "processor": "a processor",
    "cores": 2,
    "memory_mib": 2048,
    "python": "3.11",
    "versions": {"kfu": "1"},
    "date": "2026-01-01",
}


def sample(competitor: str, seconds: float, **more: Any) -> dict[str, Any]:
    """A record of case a."""
    return {
        "case": "a",
        "competitor": competitor,
        "seconds": seconds,
        "objective": 100.0,
        "gap64": 5e-4,
        "n_sv": 40,
        "n_free": 10,
        "evaluations_per_bound": 1.5 if competitor == "kfu" else None,
        "bound_seconds": 0.5,
        "mib_before": 100.0,
        "mib_peak": 400.0,
        "cache_mib": 50.0,
        "phases": {"solve": seconds - 0.25, "certify": 0.25},
        "machine": MACHINE,
        **more,
    }


# ---------------------------------------------------------------- registries


def test_cases_goals_and_forms_fit_together() -> None:
    assert set(GOALS) == set(FULL_CASES)
    assert set(FULL_CASES) >= {"a", "b", "c", "a9a", "cod-rna", "letter", "mnist", "e"}
    assert {name for form in FORMS.values() for name in form} == set(COMPETITORS)
    for case in CASES.values():
        assert case.cost > 0
        assert case.gamma > 0
        assert set(default_competitors(case)) <= set(COMPETITORS)
    assert QUICK_CASES
    assert "sklearn-dense" in default_competitors(CASES["a9a"])
    assert "sklearn-dense" not in default_competitors(CASES["a"])


@pytest.mark.data
@pytest.mark.skipif("KFU_DATA" not in os.environ, reason="KFU_DATA is not set")
def test_what_is_called_sparse_is_sparse() -> None:
    for name in ("a1a", "letter"):
        X, y = CASES[name].load()
        assert hasattr(X, "toarray") == CASES[name].is_sparse
        assert set(np.unique(y)) == {-1.0, 1.0}
    X, y = PREDICTIONS["letter"].load_test()
    assert X.shape == (5000, 16)
    assert len(np.unique(y)) == 26


@pytest.mark.parametrize("name", list(sweeps.SWEEPS))
def test_points_of_sweeps_are_trainings(name: str) -> None:
    from kfu.solvers import SolverSettings

    sweep = sweeps.SWEEPS[name]
    assert list(sweep.values) == sorted(set(sweep.values))
    assert set(sweep.competitors) <= set(COMPETITORS)
    assert name in {member for group in plots.GROUPS.values() for member in group}
    for value in sweep.values:
        point = sweep.point(value, True)
        SolverSettings(**point.settings)  # refuses what is no setting
        assert point.case.gamma > 0
    X, y = sweep.point(sweep.small_values[0], True).case.load()
    assert X.shape[0] == len(y) <= 4000
    assert set(np.unique(y)) == {-1.0, 1.0}


def test_mixtures_keep_their_centres_as_n_grows() -> None:
    means = []
    for n in (20000, 40000):
        X, y = cases.gaussian_mixtures(n)
        assert X.shape == (n, 20)
        assert abs(np.mean(y)) < 0.03
        means.append(X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0))
    assert np.abs(means[0] - means[1]).max() < 0.1 < np.abs(means[0]).max()


# ---------------------------------------------------------------- judging


def test_judge_agrees_with_a_kernel_matrix_written_out() -> None:
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    X, y = TINY.load()
    peer = SVC(C=TINY.cost, gamma=TINY.gamma, tol=1e-6).fit(X, y)
    found = judge(X, y, TINY, {"rows": peer.support_, "coef": peer.dual_coef_[0]})
    alpha = np.zeros(len(y))
    alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    K = rbf_kernel(X, gamma=TINY.gamma)
    beta = alpha * y
    F = K @ beta - y
    can_grow = np.where(y > 0, alpha < TINY.cost, alpha > 0)
    can_fall = np.where(y > 0, alpha > 0, alpha < TINY.cost)
    assert found["objective"] == pytest.approx(alpha.sum() - 0.5 * beta @ K @ beta, rel=1e-10)
    assert found["gap64"] == pytest.approx(F[can_fall].max() - F[can_grow].min(), abs=1e-9)
    assert found["gap64"] < 1e-5
    assert found["n_sv"] == len(peer.support_)
    assert found["n_free"] == np.count_nonzero((alpha > 0) & (alpha < TINY.cost))


def test_judge_sees_an_answer_that_is_wrong() -> None:
    X, y = TINY.load()
    rows = np.array([np.argmax(y > 0), np.argmax(y < 0)])
    found = judge(X, y, TINY, {"rows": rows, "coef": np.array([0.01, -0.01])})
    assert found["gap64"] > 1
    assert found["n_free"] == 2


def test_a_record_holds_what_is_promised() -> None:
    mine, peer = measure(TINY, "kfu"), measure(TINY, "sklearn")
    for record in (mine, peer):
        assert {"n", "d", "n_sv", "n_free", "iterations", "objective", "gap64"} <= set(record)
        assert {"seconds", "cache_mib", "mib_before", "mib_peak"} <= set(record)
        assert record["gap64"] <= 1.1e-3
        assert record["mib_peak"] >= record["mib_before"] > 0
    assert mine["objective"] == pytest.approx(peer["objective"], rel=1e-5)
    assert peer["evaluations_per_bound"] is None
    work = mine["n_sv"] * mine["n"]
    assert mine["evaluations_per_bound"] == pytest.approx(mine["kernel_evaluations"] / work)
    assert sum(mine["phases"].values()) <= mine["seconds"]


# ---------------------------------------------------------------- tables


def test_growth_exponent_of_a_power_law() -> None:
    n = np.array([1000.0, 2000.0, 5000.0, 64000.0])
    assert tables.growth_exponent(n, 3e-7 * n**1.75) == pytest.approx(1.75, abs=1e-12)


def test_training_table_takes_medians_and_the_faster_form() -> None:
    found = [sample("kfu", seconds) for seconds in (2.0, 9.0, 1.0)]
    found += [sample("onedal", 12.0), sample("sklearn", 30.0, objective=99.0)]
    found += [sample("sklearn-dense", 20.0, gap64=2e-3), {**sample("libsvm", 1.0), "error": "no"}]
    lines = tables.training_table(found).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert len(cells) == len(tables.TRAINING_HEAD)
    assert cells[1:] == [
        "2.00",
        "6.00 (≥4)",
        "10.0 (≥12 ✗)",
        "4.00 (≤4)",
        "40 (10)",
        "1.50",
        "+0.0e+00",
        "5.0e-04 / 5.0e-04 / 2.0e-03",
        "250 (≤200 ✗)",
    ]
    assert tables.phases_table(found).splitlines()[2] == "| a | 1.75 | 0.250 |"


def test_ratios_are_medians_of_those_of_the_turns() -> None:
    """The machine is three times slower in the second turn, and no ratio changes by it."""
    found = []
    for turn, (slow, mine, peer) in enumerate([(1.0, 2.0, 6.0), (3.0, 1.0, 8.0), (1.0, 1.5, 9.0)]):
        found += [
            sample("kfu", slow * mine, turn=turn, bound_seconds=slow * 0.5),
            sample("onedal", slow * peer, turn=turn),
        ]
    found.append(sample("sklearn", 40.0, turn=0))  # one turn: beside the median of kfu
    cells = [
        cell.strip() for cell in tables.training_table(found).splitlines()[2].strip("|").split("|")
    ]
    assert cells[1:5] == ["2.00", "6.00 (≥4)", "20.0 (≥12)", "3.00 (≤4)"]


def test_hard_table_compares_with_onedal() -> None:
    told = {"case": "cadata", "rounds": 52, "chunk": 4096}
    found = [{**sample("kfu", seconds), **told} for seconds in (2.0, 9.0, 1.0)]
    alone = tables.hard_table(found).splitlines()[2]
    found.append({**sample("onedal", 12.0, gap64=2e-3), **told})
    cells = [
        cell.strip() for cell in tables.hard_table(found).splitlines()[2].strip("|").split("|")
    ]
    assert cells[0].startswith("cadata: ")
    assert cells[1:] == [
        *("2.00", "12.00", "6.00", "4.00", "40 (10)", "52", "4096", "1.50"),
        "5.0e-04 / 2.0e-03",
    ]
    assert "5.0e-04 / –" in alone
    assert {CASES[name].is_extra for name in HARD_CASES} == {True}


def test_goals_are_marked_when_missed() -> None:
    assert tables.at_least(2.0, 2.5) == "2.00 (≥2.5 ✗)"
    assert tables.at_least(None, 2.5) == "– (≥2.5)"
    assert tables.at_most(123.4, None) == "123"
    assert tables.at_most(-123.4, 200.0) == "−123 (≤200)"


def test_prediction_table_compares_with_the_panels() -> None:
    shared = {"problem": "mnist", "n_sv": 5, "accuracy": 0.75, "machine": MACHINE}
    found = [
        {**shared, "competitor": "kfu", "seconds": 2.0, "panel_seconds": 1.0},
        {**shared, "competitor": "onedal", "seconds": 5.0},
        {**shared, "competitor": "sklearn", "error": "none"},
    ]
    row = tables.prediction_table(found).splitlines()[2]
    assert "| as needed | 2.00 | 2.50 (≥2) | – (≥20) | 2.00 (≤1.5 ✗) | 5 |" in row
    assert "0.7500 / 0.7500 / –" in row


# ---------------------------------------------------------------- records


def test_runs_that_did_not_end_or_were_quick_do_not_count(tmp_path: Path) -> None:
    for kind, seconds, parts in (
        ("full", 1.0, ["a", "b"]),
        ("full", 2.0, ["a"]),
        ("quick", 3.0, ["a", "b"]),
        ("full", 4.0, None),
    ):
        run = records.Run("train", kind, tmp_path)
        run.id = str(seconds)  # runs of one second have one name otherwise
        for case in parts or ["a"]:
            run.add({"case": case, "seconds": seconds})
        if parts:
            run.finish(parts)
    lines = records.read_lines(tmp_path / "train.jsonl")
    complete = records.last_run(lines, ["a", "b"])
    assert [(r["case"], r["seconds"]) for r in complete] == [("a", 1.0), ("b", 1.0)]
    newest = records.latest(lines, "case", ["a", "b"])
    assert [(r["case"], r["seconds"]) for r in newest] == [("a", 2.0), ("b", 1.0)]
    assert newest[0]["machine"]["processor"] == records.processor_name() != ""
    assert records.read_lines(tmp_path / "nothing.jsonl") == []


# ---------------------------------------------------------------- instructions

CALLGRIND = """\
# callgrind format
version: 1
positions: line
events: Ir
fl=(1) solver.cpp
ob=(1) /somewhere/kfu/_solver.cpython-311-x86_64-linux-gnu.so
fn=(1) kfu::step(double*)
16 400
+4 20
cob=(2) /usr/lib/libc.so.6
cfn=(2) memcpy
calls=3 0
20 5000
* 7
fn=(3) kfu::scan()
-3 50

ob=(2)
fl=(2) memcpy.S
fn=(2)
1 5000
ob=(3) /somewhere/kfu/_gram.cpython-311-x86_64-linux-gnu.so
fn=(3)
9 1000
totals: 6477
"""


def test_callgrind_counts_are_of_the_function_itself() -> None:
    counts = instructions.parse_callgrind(CALLGRIND.splitlines(keepends=True))
    assert counts.total() == 6477
    own = instructions.own_functions(counts)
    assert own == {"kfu::step(double*)": 427, "kfu::scan()": 1050}


def test_instructions_fail_only_above_the_limit() -> None:
    assert instructions.compare(1049, 1000)[0]
    assert not instructions.compare(1051, 1000)[0]
    assert instructions.compare(500, 1000) == (True, "-50.00% against the reference of 1,000")
    assert instructions.compare(500, None)[0]


# ---------------------------------------------------------------- the page


def test_marked_parts_are_replaced_and_nothing_else() -> None:
    first = "a\n<!-- table: x -->\nold\n\nold\n<!-- /table -->\n"
    text = first + "b\n<!-- table: y -->\nz\n<!-- /table -->\n"
    new = report.replace_marked(text, {"x": "| new |\n", "y": ""})
    assert new == text.replace("old\n\nold", "| new |")
    assert report.replace_marked(new, {"x": "| new |"}) == new
    with pytest.raises(ValueError, match="table: w"):
        report.replace_marked(text, {"w": "1"})


def test_the_page_has_a_place_for_every_section(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert {match["name"] for match in report.MARK.finditer(text)} == set(report.SECTIONS)
    assert {section(tmp_path) for section in report.SECTIONS.values()} == {""}  # no records there


def test_sections_and_pictures_come_from_records(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = records.Run("scaling", folder=tmp_path)
    for n in (1000, 2000, 4000):
        shared = {"sweep": "n", "value": n, "n": n, "n_sv": n // 2, "n_free": 7}
        for competitor, seconds in (("kfu", n**2 / 1e6), ("onedal", n**2.5 / 1e6)):
            more = {"bound_seconds": n / 1e6, "mib_before": 10.0, "mib_peak": 20.0}
            run.add({**shared, **more, "competitor": competitor, "seconds": seconds})
    run.finish(["n"])
    text = report.SECTIONS["rows"](tmp_path)
    assert "Time of kfu grows as n^2.00." in text
    assert "Time of onedal grows as n^2.50." in text
    assert re.search(r"^\| 2000 \| 4.00 \| 1000 \(7\) \|", text, re.MULTILINE)
    drawn = plots.draw_all(records.read_lines(tmp_path / "scaling.jsonl"), tmp_path)
    assert [path.name for path in drawn] == ["performance-rows.png"]
    assert drawn[0].read_bytes().startswith(b"\x89PNG")
