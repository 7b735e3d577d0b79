"""Write the generated parts of docs/: the command reference and the pictures.

python docs/build.py        (or: make docs)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
DATASETS = ROOT / "datasets"


def kfu(*arguments: str | Path) -> None:
    """One kfu command, quiet unless it fails."""
    subprocess.run([sys.executable, "-m", "kfu.cli.main", *map(str, arguments)], check=True)


def draw_demo(folder: Path) -> Path:
    """The decision function of the demo's model, on the rows as they are in datasets/."""
    model, picture = folder / "banana.kfu", folder / "demo.png"
    rows = DATASETS / "banana-train.svm"
    kfu("train", rows, "-k", "rbf", "-g", "1", "-c", "1", "-o", model, "-q")
    kfu("plot", model, rows, "-o", picture, "--dpi", "90", "-q")
    return picture


def draw_three(folder: Path) -> Path:
    model, picture = folder / "three.kfu", folder / "three-gaussians.png"
    rows = DATASETS / "three-gaussians-train.svm"
    kfu("train", rows, "-k", "linear", "-o", model, "-q")
    kfu("plot", model, rows, "-o", picture, "--dpi", "90", "-q")
    return picture


def draw_spiral(folder: Path) -> Path:
    kfu("run", ROOT / "configs" / "toys.yaml", "--only", "spiral", "-o", folder / "run", "-q")
    return (folder / "run" / "spiral" / "figures.png").rename(folder / "spiral.png")


def main() -> None:
    subprocess.run([sys.executable, "-m", "kfu.cli.reference"], check=True, cwd=ROOT)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        for draw in (draw_demo, draw_three, draw_spiral):
            file = draw(Path(name))
            shutil.copyfile(file, PICTURES / file.name)
            print(PICTURES / file.name)


if __name__ == "__main__":
    main()
