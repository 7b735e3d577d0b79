"""Instructions of one small training, counted by callgrind: a regression check without clocks.

    python -m benchmarks.instructions             compare with benchmarks/instructions.json
    python -m benchmarks.instructions --update    write that file

The training runs on one thread under ``valgrind --tool=callgrind``, and the instructions executed
in kfu's own compiled modules are summed up; Python, NumPy and the C library do not count. The sum
is the same from run to run to a fraction of a percent, whatever else the machine does. More than
LIMIT above the reference fails (exit code 1): an inner loop has become longer, or the path to the
solution has (compare the iterations and kernel evaluations printed beside). Less is an improvement
to record with ``--update``, as is a change that was meant. Instructions are not seconds: memory
traffic and threads do not show here, so this goes beside ``make bench`` and does not replace it.
References are by instruction set; valgrind knows AVX2 and not AVX-512. Where valgrind is missing
the check says so and passes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "instructions.json"
LIMIT = 0.05
MODULES = re.compile(r"/(_solver|_gram)\.[^/]*so$")
ROWS, FEATURES, COST, CHUNK = 1500, 20, 10.0, 512

Counts = Counter[tuple[str, str]]  # (object file, function) -> instructions in the function itself


def train_small(simd: str) -> dict[str, Any]:
    """The training that is counted: small, and with all phases of the solver in it."""
    import numpy as np

    from kfu import KernelSpec, train
    from kfu.solvers import SolverSettings

    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES))
    y = np.where(
        np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(ROWS) > 0, 1.0, -1.0
    )
    settings = SolverSettings(threads=1, simd=simd, chunk=CHUNK, cache_mib=16)
    kernel = KernelSpec.make("rbf", gamma=1 / FEATURES)
    info = train(X, y, kernel=kernel, cost=COST, settings=settings).info
    return {
        key: info[key] for key in ("simd", "n_sv", "iterations", "rounds", "kernel_evaluations")
    }


def parse_callgrind(lines: Iterable[str]) -> Counts:
    """Instructions in each function itself, from the lines of a callgrind.out file.

    Names are given once as "(1) name" and then as "(1)". A line of numbers is a cost (position,
    instructions), except the one after "calls=", which is the cost of the function called.
    """
    names: dict[tuple[str, str], str] = {}
    counts: Counts = Counter()
    current = {"ob": "", "fn": ""}
    is_call = False
    for line in lines:
        key, equals, value = line.strip().partition("=")
        kind = key.removeprefix("c")  # cob=, cfn= name the function called
        if equals and kind in ("ob", "fn"):
            number, _, text = value.partition(" ")
            name = names.setdefault((kind, number), text) if number.startswith("(") else value
            if key == kind:
                current[kind] = name
        elif key == "calls":
            is_call = True
        elif line[:1] and line[0] in "0123456789+-*":
            if not is_call:
                fields = line.split()
                counts[current["ob"], current["fn"]] += int(fields[1]) if len(fields) > 1 else 0
            is_call = False
    return counts


def own_functions(counts: Counts) -> Counter[str]:
    """Instructions by function in kfu's compiled modules."""
    own: Counter[str] = Counter()
    for (module, function), count in counts.items():
        if MODULES.search(module):
            own[function] += count
    return own


def count(simd: str, folder: Path) -> tuple[Counter[str], dict[str, Any]]:
    """Run the training under callgrind: instructions by function, and what the training tells."""
    out = folder / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    command += [sys.executable, "-m", "benchmarks.instructions", "--train", simd]
    fixed = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **fixed}
    )
    if done.returncode != 0:
        raise SystemExit(f"the training failed under valgrind:\n{done.stderr[-2000:]}")
    with out.open(encoding="utf-8", errors="replace") as lines:
        counts = parse_callgrind(lines)
    return own_functions(counts), json.loads(done.stdout.strip().splitlines()[-1])


def compare(total: int, reference: int | None) -> tuple[bool, str]:
    """Whether the total is within the limit, and a sentence that says so."""
    if reference is None:
        return True, "no reference for this instruction set; --update writes one"
    change = total / reference - 1
    sentence = f"{change:+.2%} against the reference of {reference:,}"
    if change > LIMIT:
        return False, f"{sentence}: more than {LIMIT:.0%} above it"
    return True, sentence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the reference")
    parser.add_argument("--simd", default="avx2", choices=["baseline", "avx2"])
    parser.add_argument("--functions", type=int, default=12, help="functions to list")
    parser.add_argument("--train", metavar="SIMD", help="internal: the training alone")
    options = parser.parse_args()
    if options.train:
        print(json.dumps(train_small(options.train)))
        return
    if shutil.which("valgrind") is None:
        print("valgrind is not installed; nothing was counted (apt-get install valgrind)")
        return
    with tempfile.TemporaryDirectory() as folder:
        functions, told = count(options.simd, Path(folder))
    total = functions.total()
    for name, instructions in functions.most_common(options.functions):
        print(f"{instructions:15,d}  {instructions / total:6.1%}  {name[:90]}")
    print(f"{total:15,d}  in all; " + ", ".join(f"{key} {value}" for key, value in told.items()))
    known = json.loads(REFERENCE.read_text()) if REFERENCE.is_file() else {}
    if options.update:
        known[told["simd"]] = {"instructions": total, **told}
        REFERENCE.write_text(json.dumps(known, indent=2) + "\n")
        print(f"written to {REFERENCE.name}")
        return
    is_within, sentence = compare(total, known.get(told["simd"], {}).get("instructions"))
    print(sentence)
    if not is_within:
        sys.exit(1)


if __name__ == "__main__":
    main()
