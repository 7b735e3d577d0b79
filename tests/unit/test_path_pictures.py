"""Pictures and pages of a path: what is in them, what they leave out, and that they stand alone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import kfu
from kfu.errors import SettingsError
from kfu.kernels import KernelSpec
from kfu.paths import page, picture
from kfu.paths.page import page_data, page_of
from kfu.paths.selection import PathSplit, choose, follow_splits
from kfu.paths.shown_path import ShownPath, rows_to_show, shown_path, spread
from kfu.paths.step_function import StepFunction
from tests.oracles.paths import follow
from tests.oracles.validation_path import slow_track
from tests.unit.test_path_validation import rbf, toy

pytest.importorskip("matplotlib")


def path_of(seed=0, n=24, m=40):
    """The slow path in the clothes of a RegularisationPath."""
    X, y, V, v = toy(seed, n=n, m=m)
    slow = follow(rbf(X, X), y)
    track = slow_track(slow, y, [(rbf(X, X), y), (rbf(V, X), v)])
    count = len(track.t)
    solutions = [slow.at(t) for t in track.t]
    alpha = np.array([alpha for alpha, _ in solutions])

    track.n_free = ((alpha > 1e-9) & (alpha < 1 - 1e-9)).sum(axis=1)
    track.solution = lambda t: (slow.at(t)[0] * y, np.zeros(1))
    track.event_item = np.arange(n)
    columns = {
        "step": np.arange(count),
        "lambda": track.t,
        "C": 1 / track.t,
        "n_margin": track.n_free,
        "n_error": (alpha >= 1 - 1e-9).sum(axis=1),
        "n_correct": (alpha <= 1e-9).sum(axis=1),
        "bias": np.array([offset for _, offset in solutions]) / track.t,
        "objective": alpha.sum(axis=1),
        "train_error": track.train_errors / n,
        "valid_error": track.watch_errors / m,
        "kkt": np.zeros(count),
    }
    records = [
        {"event": "start" if k == 0 else "margin", "items": [] if k == 0 else [k % n]}
        for k in range(count)
    ]
    bounds = {"lower": np.where(y > 0, 0.0, -1.0), "upper": np.where(y > 0, 1.0, 0.0)}
    problem = SimpleNamespace(at=lambda name, t: bounds[name])
    return SimpleNamespace(
        machine="svc",
        parameter="lambda",
        kernel=KernelSpec.make("rbf", gamma=0.7),
        classes=np.array(["no", "yes"]),
        n=n,
        n_valid=m,
        columns=columns,
        records=lambda: iter(records),
        track=track,
        task=None,
        definition=SimpleNamespace(problem=lambda task: problem, value_of=lambda t: t),
    )


@pytest.fixture(scope="module")
def path():
    return path_of()


@pytest.fixture(scope="module")
def folds():
    parts = [PathSplit(np.arange(24), np.arange(40))] * 3
    tracks = iter([path_of(seed).track for seed in range(3)])
    return follow_splits(parts, lambda split: next(tracks), n=24)


# ---- what is shown --------------------------------------------------------------------------


def test_columns_as_step_functions(path):
    shown = shown_path(path)
    steps = shown.steps("n_margin")
    for k in range(len(path.columns["lambda"]) - 1):
        middle = np.sqrt(path.columns["lambda"][k] * path.columns["lambda"][k + 1])
        assert steps(middle) == path.columns["n_margin"][k]
    assert set(shown.error_steps()) == {"training", "validation"}
    found = shown.coefficients
    assert found.table.min() >= 0
    assert found.table.max() == pytest.approx(1)
    assert found.table.shape == (len(found.at), 24)
    np.testing.assert_array_equal(found.positive, np.arange(24) % 2 == 0)
    # Linear between breakpoints, and 1 for all at the first.
    assert found.at[0] == path.columns["lambda"][0]
    np.testing.assert_allclose(found.table[0], 1.0)


def test_errors_without_labels(path):
    from copy import copy

    other = copy(path)
    other.track = copy(path.track)
    other.track.train_errors = np.full(len(path.track.t), -1)
    other.n_valid = 0
    other.columns = {**path.columns}
    other.columns["train_error"] = other.columns["valid_error"] = np.full(len(path.track.t), np.nan)
    shown = shown_path(other, with_coefficients=False)
    assert shown.error_steps() == {}
    assert shown.coefficients is None
    assert page_data(shown)["train_error"][0] is None


def test_points_are_spread_over_number_and_axis():
    values = np.geomspace(1e3, 1e-3, 10_000)
    values = np.concatenate([values, np.linspace(1e-3, 9e-4, 90_000)[1:]])
    kept = spread(values, 200, True)
    assert 100 <= kept.size <= 200
    assert kept[0] == 0
    assert kept[-1] == values.size - 1
    gaps = -np.diff(np.log(values[kept]))
    assert gaps.max() < 0.3  # no part of the axis is left out
    np.testing.assert_array_equal(spread(values[:50], 200, True), np.arange(50))
    upward = spread(values[::-1], 200, True)
    assert {0, values.size - 1} <= set(upward)


def test_rows_of_many_are_those_that_change():
    track = SimpleNamespace(event_item=np.array([7, 3, 7, 90, 5, 3]))
    np.testing.assert_array_equal(rows_to_show(track, 100, 10), [3, 5, 7, 90])
    np.testing.assert_array_equal(rows_to_show(track, 100, 2), [5, 7])
    np.testing.assert_array_equal(rows_to_show(track, 4, 10), [0, 1, 2, 3])


# ---- pictures -------------------------------------------------------------------------------


def test_a_picture(path, folds, tmp_path):
    file = tmp_path / "path.png"
    picture.draw(path, str(file), folds=folds, choice=folds.choose(), dpi=60)
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("ending", "head"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_formats_and_equal_files(path, tmp_path, monkeypatch, ending, head):
    shown = shown_path(path, with_coefficients=False)
    monkeypatch.setattr(picture, "draw_shown", lambda figure, shown: figure.text(0, 0, "λ"))
    files = [tmp_path / f"{k}.{ending}" for k in range(2)]
    for file in files:
        picture.write_picture(shown, str(file))
    content = files[0].read_bytes()
    assert content.startswith(head)
    if ending == "pdf":  # ids of elements of svg are random
        assert files[1].read_bytes() == content


def test_what_is_in_the_figure(path, folds):
    figure = picture.make_figure(6, 6)
    choice = folds.choose()
    picture.draw_shown(figure, shown_path(path, folds=folds, choice=choice))
    coefficients, sets, errors = figure.axes[:3]
    assert errors.get_xscale() == "log"
    texts = [text.get_text() for text in errors.get_legend().get_texts()]
    assert texts[:2] == ["training", "validation"]
    assert "mean of 3 splits ± standard error" in texts
    assert any(text.startswith("chosen: λ = ") for text in texts)
    named = {line.get_label(): line for line in errors.lines}
    line = named["validation"]
    exact = shown_path(path).curves["validation"]
    np.testing.assert_array_equal(line.get_xdata(), exact.edges)
    np.testing.assert_array_equal(line.get_ydata()[:-1], exact.values)
    assert line.get_drawstyle() == "steps-post"
    labels = [text.get_text() for text in sets.get_legend().get_texts()]
    assert labels == ["margin", "error (at the cost bound)", "correct (coefficient 0)"]
    assert len(coefficients.lines) == 24 + 1  # and the chosen λ
    names = [text.get_text() for text in coefficients.get_legend().get_texts()]
    assert names == ["class yes", "class no"]
    marks = [line for line in sets.lines if line.get_linestyle() == "--"]
    assert marks[0].get_xdata()[0] == choice.lam


def test_pictures_of_other_parameters_and_single_points():
    values = np.array([1.0, 0.5, 0.0])
    columns = dict.fromkeys(page_columns(), np.full(3, np.nan))
    columns |= {name: np.array([3.0, 2.0, 1.0]) for name in ("n_margin", "n_error", "n_correct")}
    shown = ShownPath("epsilon", "svr", values, columns, [""] * 3, [[]] * 3)
    figure = picture.make_figure(6, 6)
    picture.draw_shown(figure, shown)
    assert len(figure.axes) == 1  # neither coefficients nor errors
    assert figure.axes[-1].get_xscale() == "linear"
    assert figure.axes[-1].get_xlabel() == "ε"
    one = {name: column[:1] for name, column in columns.items()}
    picture.draw_shown(
        picture.make_figure(6, 6), ShownPath("lambda", "", np.ones(1), one, ["start"], [[]])
    )


def page_columns():
    return (
        *("n_margin", "n_error", "n_correct", "bias", "objective"),
        *("train_error", "valid_error", "kkt"),
    )


def test_names_that_are_no_pictures(path, tmp_path):
    with pytest.raises(SettingsError, match=r"end it in \.png, \.pdf or \.svg"):
        picture.draw(path, str(tmp_path / "path.gif"))


@pytest.mark.parametrize(
    ("machine", "parameter", "names"),
    [
        ("svc", "lambda", ("class 1", "class -1")),
        ("svr", "epsilon", ("above the tube", "below the tube")),
        ("one-class", "nu", ("rows", "rows")),
    ],
)
def test_paths_of_the_engine_are_shown(machine, parameter, names):
    X, y, _, _ = toy(2)
    target = {"svr": X[:, 0] + 0.3 * y, "one-class": None}.get(machine, y)
    found = kfu.svm_path(X, target, machine=machine, parameter=parameter, gamma=0.7)
    shown = shown_path(found)
    assert shown.coefficients.names == names
    assert shown.coefficients.table.max() <= 1 + 1e-9
    figure = picture.make_figure(6, 6)
    picture.draw_shown(figure, shown)
    assert len(figure.axes) == (2 if machine == "svr" else 3)
    data = json.loads(parsed(page_of(shown)).scripts["application/json"])
    assert len(data["value"]) == len(found)
    assert data["words"][data["event"][0]].startswith("start")


# ---- pages ----------------------------------------------------------------------------------

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Checker(HTMLParser):
    """Every element is closed in order; collects scripts and what is asked for."""

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.asked = [], {}, []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))
        self.asked += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1].get("type", "javascript")] = text


def parsed(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def test_the_page_stands_alone(path, folds, tmp_path):
    file = tmp_path / "path.html"
    page.write(path, str(file), folds=folds, choice=folds.choose("one-se"))
    text = file.read_text(encoding="utf-8")
    checker = parsed(text)
    assert checker.asked == []
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp", text)
    assert 'lang="en"' in text
    assert 'aria-live="polite"' in text
    data = json.loads(checker.scripts["application/json"])
    np.testing.assert_allclose(data["value"], path.columns["lambda"], rtol=1e-6)
    assert data["n_margin"] == path.columns["n_margin"].tolist()
    assert data["words"][data["event"][0]] == "start"
    assert data["items"][3] == [3]
    names = [curve["name"] for curve in data["curves"]]
    assert names == ["training", "validation", "mean of 3 splits"]
    for curve in data["curves"]:
        assert len(curve["edges"]) == len(curve["values"]) + 1
    assert len(data["curves"][2]["error"]) == len(data["curves"][2]["values"])
    assert data["choice"]["rule"] == "one-se"
    assert len(data["coefficients"]["lines"]) == 24
    assert len(data["coefficients"]["lines"][0]) == len(data["coefficients"]["at"])


def big_path(m, steps=0):
    values = np.geomspace(10.0, 1e-4, m)
    columns = {name: np.arange(m, dtype=float) for name in page_columns()}
    items = [[k] for k in range(m)]
    items[0] = list(range(1000))
    shown = ShownPath("lambda", "big <&> path", values, columns, ["margin"] * m, items)
    if steps:
        counts = np.full(steps, 0.5)
        counts[steps // 3] = 0.25
        shown.curves["validation"] = StepFunction(np.geomspace(1e-4, 10.0, steps + 1), counts)
    return shown


def test_long_paths_are_thinned_and_the_page_says_so():
    shown = big_path(60_000, steps=30_000)
    text = page_of(shown)
    assert len(text) < 2_000_000
    data = json.loads(parsed(text).scripts["application/json"])
    assert 3000 < len(data["value"]) <= 5000
    assert data["step"][0] == 0
    assert data["step"][-1] == 59_999
    assert data["n_margin"] == [float(k) for k in data["step"]]
    assert len(data["items"][0]) == 12
    assert data["n_items"][0] == 1000
    curve = next(curve for curve in data["curves"] if curve["name"] == "validation")
    assert len(curve["values"]) <= 5001
    assert min(curve["values"]) == 0.25  # the best is kept
    assert "big &lt;&amp;&gt; path" in text
    assert "60000 breakpoints" in text
    assert f"{len(data['value'])} of them are in this page" in text
    assert "Of the 30000 steps" in text


def test_data_cannot_end_the_script():
    shown = big_path(3)
    shown.events[1] = "</script><script>alert(1)"
    checker = parsed(page_of(shown))
    assert len(checker.scripts) == 2
    data = json.loads(checker.scripts["application/json"])
    assert data["words"][1] == "</script><script>alert(1)"


STUB = """
const element = () => ({ style: {}, listeners: {}, children: [], tabIndex: 0, clientWidth: 600,
  clientHeight: 200, textContent: "", className: "", append(...x) { this.children.push(...x); },
  replaceChildren(...x) { this.children = x; }, setAttribute() {}, setPointerCapture() {},
  addEventListener(name, f) { this.listeners[name] = f; },
  getBoundingClientRect: () => ({ left: 0, width: 600 }),
  getContext: () => new Proxy({}, { get: (o, k) => o[k] ?? (() => {}), set: () => true }) });
const known = { data: { textContent: DATA }, panels: element(), readout: element() };
globalThis.document = { getElementById: (id) => known[id], createElement: element,
  documentElement: {} };
globalThis.window = { devicePixelRatio: 1, addEventListener() {},
  matchMedia: () => ({ addEventListener() {} }) };
globalThis.getComputedStyle = () => ({ getPropertyValue: () => "#000" });
globalThis.requestAnimationFrame = (f) => f();
"""

ACT = """
const text = (e) => typeof e === "string" ? e : e.textContent + e.children.map(text).join("");
const said = () => known.readout.children.map(text).join("|");
const canvas = known.panels.children.filter((e) => e.listeners.keydown)[0];
const canvases = known.panels.children.filter((e) => e.listeners.keydown).length;
const key = (k) => canvas.listeners.keydown({ key: k, preventDefault() {} });
const out = [canvases, said()];
key("Home"); out.push(said());
key("ArrowRight"); out.push(said());
key("+"); key("0");
canvas.listeners.pointermove({ clientX: 58 }); out.push(said());
canvas.listeners.wheel({ clientX: 300, deltaY: -500, preventDefault() {} });
canvas.listeners.pointerdown({ clientX: 300, pointerId: 1 });
canvas.listeners.pointermove({ clientX: 200 });
canvas.listeners.pointerup();
canvas.listeners.dblclick();
console.log(JSON.stringify(out));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_runs(path, folds, tmp_path):
    """The script against a document of stubs: what it says of breakpoints, by key and pointer."""
    choice = choose(shown_path(path).curves["validation"])
    checker = parsed(page_of(shown_path(path, folds=folds, choice=choice)))
    file = tmp_path / "page.js"
    stub = STUB.replace("DATA", json.dumps(checker.scripts["application/json"]))
    file.write_text(stub + checker.scripts["javascript"] + ACT, encoding="utf-8")
    done = subprocess.run(["node", str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    canvases, _, home, following, pointed = json.loads(done.stdout)
    assert canvases == 3
    count = len(path.track.t)
    assert home.startswith(f"step {count - 1}|")  # the smallest λ is the last breakpoint
    assert following.startswith(f"step {count - 2}|")
    assert pointed == home
    margin = int(path.columns["n_margin"][-1])
    assert f"|margin {margin}|" in home
    assert "|event margin|" in home
    assert "C " in home
