"""Modules of this folder in processes of their own: a command in, the JSON object it prints out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def run_module(module: str, *arguments: str) -> dict[str, Any]:
    """The JSON object on the last line of what `python -m module` prints, or its `error`."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"error": reason[0]}
    record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return record
