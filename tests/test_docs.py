"""README and docs are true: every command in them is run, every link leads somewhere.

Blocks marked `sh`, `console` and `python` of one page run in order, in one folder that holds a copy
of `datasets/` and `configs/`. In a `console` block lines after `$ ` are commands, and the other
lines have to be what they print: numbers to 1%, those that depend on the path to the solution or on
the machine (VARIABLE) in form only, a line `...` for whatever comes there. `make` commands are not
run, because they would build the package and run these tests again; their targets have to exist. A
block is left out only by a comment before it that gives the reason:

    <!-- not run: why -->        never
    <!-- needs KFU_DATA -->      only where KFU_DATA is set
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "datasets" / "README.md",
    ROOT / "configs" / "README.md",
]
RUNNABLE = ("sh", "bash", "shell", "console", "python")
FENCE = re.compile(
    r"^(?:<!-- *(?P<mark>not run: *[^>]*?|needs KFU_DATA) *-->\n+)?"
    r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    mark: str | None

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, match.start("text")),
            match["language"],
            match["text"],
            match["mark"],
        )
        for match in FENCE.finditer(text)
    ]


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def without_make(script: str, where: str) -> str:
    """The script without its `make` lines, whose targets are checked instead."""
    kept = []
    for line in script.splitlines():
        words = line.split("#")[0].split()
        if words and words[0] == "make":
            for word in words[1:]:
                if "=" not in word and not word.startswith("-"):
                    assert word in make_targets(), f"{where}: no make target '{word}'"
            continue
        kept.append(line)
    return "\n".join(kept)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the commands: `kfu` and `python` are those under test."""
    folder = tmp_path_factory.mktemp("bin")
    for name, arguments in (("kfu", "-m kfu.cli.main "), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        script.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "TERM": "dumb"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    for name in ("datasets", "configs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks_of(page):
        if block.language not in RUNNABLE:
            continue
        if block.mark and (block.mark != "needs KFU_DATA" or not os.environ.get("KFU_DATA")):
            continue
        if block.language == "python":
            execute([sys.executable, "-c", block.text], block, tmp_path, environment)
        elif block.language == "console":
            run_console(block, tmp_path, environment)
        else:
            script = without_make(block.text, block.where)
            execute(["bash", "-euo", "pipefail", "-c", script], block, tmp_path, environment)


def execute(command: list[str], block: Block, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{block.where}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def run_console(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """Run each command of the block and compare what it prints with the lines below it.

    `$ command   # exit N` expects that exit code.
    """
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more
        if not without_make(command, block.where):
            continue
        code = re.search(r"# exit (\d+)\s*$", command)
        script = f"({command}\n); test $? -eq {code[1] if code else 0}"
        obtained = execute(["bash", "-c", script], block, folder, environment)
        compare(expected.splitlines(), obtained.splitlines(), f"{block.where}: $ {command}")


def compare(expected: list[str], obtained: list[str], where: str) -> None:
    lines = [line for line in obtained if line.strip()]
    wanted = [line for line in expected if line.strip()]
    shown = "\n".join(obtained)
    position = 0
    skipping = False
    for line in wanted:
        if line.strip() == "...":
            skipping = True
            continue
        while skipping and position < len(lines) and not same_line(line, lines[position]):
            position += 1
        found = lines[position] if position < len(lines) else "(nothing)"
        assert same_line(line, found), f"{where}\nexpected: {line}\nobtained: {found}\nin:\n{shown}"
        position += 1
        skipping = False
    assert skipping or position == len(lines), f"{where}\nmore was printed:\n{shown}"


# Lines whose numbers depend on the machine or on the order of floating-point operations.
VARIABLE = re.compile(
    r"(train\.|test\.)?(seconds|iterations|duality[ _]gap|kkt[ _]gap|kkt[ _]violation)\b"
)


def same_line(expected: str, obtained: str) -> bool:
    first, second = expected.split(), obtained.split()
    if len(first) != len(second):
        return False
    match = VARIABLE.match(expected.strip())
    if match:
        return obtained.strip().startswith(match[0])
    return all(map(same_word, first, second))


def same_word(expected: str, obtained: str) -> bool:
    if expected == obtained:
        return True
    numbers = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
    if numbers.sub("#", expected) != numbers.sub("#", obtained):
        return False
    pairs = zip(numbers.findall(expected), numbers.findall(obtained), strict=True)
    return all(abs(float(a) - float(b)) <= 0.01 * abs(float(a)) for a, b in pairs)


def test_the_comparison_can_fail() -> None:
    assert same_line("accuracy  0.8912 (713/800)", "accuracy 0.8913  (713/800)")
    assert not same_line("accuracy 0.89", "accuracy 0.79")
    assert not same_line("accuracy 0.89", "error 0.89")
    assert same_line("kkt gap 0.0009", "kkt gap 0.0001")
    assert not same_line("kkt gap 0.0009", "kkt violation 0.0009")
    with pytest.raises(AssertionError, match="more was printed"):
        compare(["a"], ["a", "b"], "here")
    compare(["a", "...", "c"], ["a", "b", "c"], "here")
    with pytest.raises(AssertionError, match="no make target 'tset'"):
        without_make("make tset", "here")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{page.relative_to(ROOT)}: no file {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors_of(path), f"{page.relative_to(ROOT)}: no heading {target}"


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


def test_readme_begins_with_the_two_commands() -> None:
    first = next(block for block in blocks_of(ROOT / "README.md") if block.language == "sh")
    commands = [line.split("#")[0].strip() for line in first.text.splitlines()]
    assert commands == ["make demo", "make test"]


def test_marks_give_a_reason() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for mark in re.findall(r"^<!-- *not run:? *(.*?) *-->", text, re.MULTILINE):
            assert len(mark.split()) >= 3, f"{page.relative_to(ROOT)}: a reason is missing"
