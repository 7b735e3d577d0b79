"""Small data and file lists for the command line's tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import kfu

COMMAND = [sys.executable, "-m", "kfu.cli.main"]
# Tests run in folders of their own: tell a process where the package under test is.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(kfu.__file__).parents[1])}


def two_classes(n: int = 80, d: int = 3, seed: int = 1, shift: float = 1.2) -> tuple[Any, Any]:
    """Two Gaussian classes that overlap; labels -1 and 1."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    X = rng.normal(size=(n, d)) + shift * 0.5 * y[:, None]
    return X, y


def libsvm_text(X: Any, y: Any) -> str:
    lines = []
    for row, label in zip(X, y, strict=True):
        features = " ".join(f"{k + 1}:{value:.6g}" for k, value in enumerate(row) if value != 0)
        lines.append(f"{label} {features}\n")
    return "".join(lines)


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
