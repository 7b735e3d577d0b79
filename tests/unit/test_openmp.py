"""How OpenMP threads wait is said to libgomp alone: the environment stays the caller's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SEEN = """
import ctypes, json, os
loaded = {}
real = ctypes.CDLL
def watched(name, *rest, **more):
    loaded.setdefault(name, os.environ.get("GOMP_SPINCOUNT"))
    return real(name, *rest, **more)
ctypes.CDLL = watched
import kfu
names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
print(json.dumps([loaded, {name: os.environ.get(name) for name in names}]))
"""


def seen(**variables: str) -> list[dict[str, str | None]]:
    clean = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    command = [sys.executable, "-c", SEEN]
    run = subprocess.run(command, env=clean | variables, capture_output=True, text=True, check=True)
    found: list[dict[str, str | None]] = json.loads(run.stdout)
    return found


def test_libgomp_is_loaded_with_few_spins_and_the_environment_stays() -> None:
    loaded, after = seen()
    assert loaded["libgomp.so.1"] == "2000"
    assert after == {"OMP_WAIT_POLICY": None, "GOMP_SPINCOUNT": None}


@pytest.mark.parametrize(
    ("name", "value"), [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")]
)
def test_what_the_caller_says_is_kept(name: str, value: str) -> None:
    loaded, after = seen(**{name: value})
    assert "libgomp.so.1" not in loaded
    assert after[name] == value
