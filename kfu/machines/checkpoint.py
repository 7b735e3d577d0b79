"""Checkpoints: the state of a long training, saved as it goes, so that a kill loses little.

The file (NumPy's .npz, no pickle) holds a fingerprint of the training (data, kernel, costs) and,
for each binary machine begun, β over all rows. Resuming starts each machine from its β: a warm
start, so what the file says never changes the answer, only the time to reach it.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from kfu.errors import ModelError
from kfu.io.atomic import atomic_output

# What a damaged archive can raise.
DAMAGE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)


class Checkpoint:
    """Saves to `path` every `seconds`; `open` reads what an earlier run left there."""

    def __init__(self, path: str | os.PathLike[str], seconds: float = 60.0) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self._fingerprint: dict[str, Any] = {}
        self._betas: dict[int, np.ndarray] = {}
        self._saved_at = time.monotonic()

    def open(self, fingerprint: dict[str, Any]) -> dict[int, np.ndarray]:
        """The β of each machine of the earlier run (empty when there is none).

        ModelError when the file is damaged or belongs to another training.
        """
        self._fingerprint = json.loads(json.dumps(fingerprint, default=str))
        self._betas = self._read() if self.path.exists() else {}
        return dict(self._betas)

    def _read(self) -> dict[int, np.ndarray]:
        remedy = "remove it to start afresh, or name another file"
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                found = dict(json.loads(str(archive["fingerprint"])))
                betas = {
                    int(name.removeprefix("machine_")): archive[name]
                    for name in archive.files
                    if name.startswith("machine_")
                }
        except OSError as error:
            reason = f"cannot be read ({error.strerror or error})"
            raise ModelError(str(self.path), reason, remedy) from None
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, *DAMAGE):
            raise ModelError(str(self.path), "not a kfu checkpoint", remedy) from None
        for name, expected in self._fingerprint.items():
            if found.get(name) != expected:
                raise ModelError(
                    str(self.path), f"a checkpoint of another training (its {name} differs)", remedy
                )
        n = self._fingerprint.get("n")
        if any(beta.shape != (n,) or not np.isfinite(beta).all() for beta in betas.values()):
            raise ModelError(str(self.path), "a damaged checkpoint", remedy)
        return betas

    def is_due(self) -> bool:
        return time.monotonic() - self._saved_at >= self.seconds

    def finish(self, machine: int, beta: np.ndarray) -> None:
        """`machine` ended at β (by row): remember it, and write it when a checkpoint is due."""
        self._betas[machine] = beta
        if self.is_due():
            self.save(machine, beta)

    def save(self, machine: int, beta: np.ndarray) -> None:
        """Write the state with `machine` at β (by row), atomically."""
        self._betas[machine] = beta
        arrays: dict[str, Any] = {f"machine_{m}": b for m, b in self._betas.items()}
        arrays["fingerprint"] = np.array(json.dumps(self._fingerprint))
        with atomic_output(str(self.path), "wb") as out:
            np.savez(out, **arrays)
        self._saved_at = time.monotonic()

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
