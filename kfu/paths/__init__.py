"""Regularisation paths: every solution of a machine as its cost (or its ε, or ν) varies.

    path = kfu.svm_path(X, y, kernel="rbf", gamma=0.5)
    path.at(10.0).predict(X)

A path is followed by kfu.solvers.parametric, described for each machine by kfu.paths.registry, and
kept as its events (kfu.paths.path), from which the solution anywhere is rebuilt.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfu.paths.following import svm_path
    from kfu.paths.gap_path import follow_gap
    from kfu.paths.loading import load_path
    from kfu.paths.path import RegularisationPath
    from kfu.paths.rls import rls_path

__all__ = ["RegularisationPath", "follow_gap", "load_path", "rls_path", "svm_path"]

# Imported when first used: who only reads the file of a path needs no engine.
_EXPORTS = {
    "RegularisationPath": "kfu.paths.path",
    "follow_gap": "kfu.paths.gap_path",
    "load_path": "kfu.paths.loading",
    "rls_path": "kfu.paths.rls",
    "svm_path": "kfu.paths.following",
}

if not TYPE_CHECKING:  # type checkers take the imports above

    def __getattr__(name: str) -> Any:
        if name not in _EXPORTS:
            raise AttributeError(f"module 'kfu.paths' has no attribute '{name}'")
        return getattr(importlib.import_module(_EXPORTS[name]), name)
