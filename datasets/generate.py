"""Write the toy data sets of this folder: two files each, NAME-train.svm and NAME-test.svm.

    python datasets/generate.py [-o FOLDER] [NAME ...]

Seeds are fixed (kfu/toys.py), so the files come out byte for byte the same. The text is libsvm's:
`label [qid:q] index:value ...`, indices from 1, zeros left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# The formulae of this checkout are meant, not those of an installed kfu; NumPy is all they need.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kfu.toys import TOYS, Sample, generate


def number(value: float) -> str:
    """Shortest decimal form; integers without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


def svm_text(sample: Sample) -> str:
    lines = []
    for i, row in enumerate(sample.X):
        label = number(sample.y[i])
        query = "" if sample.qid is None else f" qid:{sample.qid[i]}"
        cells = "".join(f" {k}:{number(v)}" for k, v in enumerate(row, start=1) if v != 0.0)
        lines.append(f"{label}{query}{cells}\n")
    return "".join(lines)


def files_of(name: str) -> dict[str, str]:
    """File name -> text. Training and test rows come from two streams of the toy's seed."""
    toy = TOYS[name]
    sizes = {"train": toy.n_train, "test": toy.n_test}
    return {
        f"{name}-{part}.svm": svm_text(generate(name, n, [toy.seed, stream]))
        for stream, (part, n) in enumerate(sizes.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="write the toy data sets")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TOYS)}")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in TOYS]
    if unknown:
        parser.error(f"no toy is called '{unknown[0]}'; there are {', '.join(TOYS)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or TOYS:
        for file_name, text in files_of(name).items():
            path = arguments.output / file_name
            path.write_text(text, encoding="ascii", newline="\n")
            print(f"{path}: {text.count(chr(10))} rows, {len(text)} bytes")


if __name__ == "__main__":
    main()
