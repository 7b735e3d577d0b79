"""The options of ``kfu path`` that no other command has."""

from __future__ import annotations

import math
from typing import Any

import click

from kfu.cli.options import grouped
from kfu.cli.parameters import (
    COUNT,
    NON_NEGATIVE,
    PATH_VALUE,
    POSITIVE,
    POSITIVE_COUNT,
    Name,
)
from kfu.paths.registry import PATHS, VALUE_COLUMNS
from kfu.paths.selection import RULES

RIDGE_MACHINES = ("rls", "rlsc")  # closed form on a grid (kfu.paths.rls)
MACHINES = [*dict.fromkeys(machine for machine, _ in PATHS), *RIDGE_MACHINES]
RULE_WORDS = {"min": "minimum", "1se": "one-se"}


class CostRange(click.ParamType):
    """``LO,HI`` of C (one may be left out), or a single C for a path in another parameter."""

    name = "c|lo,hi"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float | None, float | None]:
        if isinstance(value, (tuple, list)):
            parts = ["" if part is None else str(part) for part in value]
        else:
            parts = str(value).split(",")
        numbers = [None if part.strip() == "" else self.number(part) for part in parts]
        is_pair = len(numbers) == 2 and numbers != [None, None]
        if any(n is not None and math.isnan(n) for n in numbers) or not (
            is_pair or (len(numbers) == 1 and numbers[0] is not None)
        ):
            self.fail(
                f"'{value}' is not C or LO,HI with numbers > 0; write for example 0.01,100",
                param,
                ctx,
            )
        return (numbers[0], numbers[-1])

    def number(self, text: str) -> float:
        """The number, NaN for what is none that C can be."""
        try:
            found = float(text)
        except ValueError:
            return math.nan
        return found if found > 0 else math.nan


machine = click.option(
    "-m",
    "--machine",
    type=Name("machine", MACHINES),
    default="svc",
    show_default=True,
    help=f"Machine: {', '.join(MACHINES)}.",
)
parameter = click.option(
    "--in",
    "parameter",
    type=Name("parameter", list(VALUE_COLUMNS)),
    default=None,
    help="What varies along the path: lambda (svc and svr: 1/C; rls, rlsc), epsilon (svr) or nu "
    "(one-class, nu-svc).  [default: the first that the machine has]",
)
output = click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Path file to write: .jsonl (a header, then one JSON object a breakpoint) or .csv; '-' is "
    "stdout.  [default: the name of DATA without .svm, .gz ..., plus .jsonl]",
)
cost = click.option(
    "-c",
    "--cost",
    type=CostRange(),
    default=None,
    metavar="LO,HI",
    help="Follow a path in lambda for these C = 1/lambda only (either may be left out: 0.1, or "
    ",100); for a path in epsilon the one C.  [default: all; for epsilon 1]",
)
span_options = grouped(
    click.option(
        "--min",
        "--lambda-min",
        "low",
        type=NON_NEGATIVE,
        default=None,
        help="Smallest value of the parameter (lambda, epsilon or nu) to follow.",
    ),
    click.option(
        "--max",
        "--lambda-max",
        "high",
        type=POSITIVE,
        default=None,
        help="Largest value of the parameter to follow.",
    ),
    click.option(
        "--upward",
        is_flag=True,
        help="Follow the path from its smallest value up, not from its largest down.",
    ),
    click.option(
        "--max-steps",
        type=COUNT,
        default=0,
        show_default=True,
        help="Stop after so many breakpoints (exit 3; the file can be resumed); 0: no limit.",
    ),
    click.option(
        "--ridge",
        type=NON_NEGATIVE,
        default=0.0,
        show_default=True,
        help="Add this to the diagonal of the kernel matrix; no path needs it, a kernel that is "
        "not positive semidefinite may.",
    ),
    click.option(
        "--gap",
        type=POSITIVE,
        default=None,
        metavar="GAP",
        help="For many rows: solutions at a few C whose relative duality gap stays below GAP on "
        "the whole range, instead of the exact path (svc, svr in lambda).",
    ),
)
machine_options = grouped(
    click.option(
        "--epsilon",
        type=NON_NEGATIVE,
        default=None,
        help="Half width of the tube of svr, for its path in lambda.  [default: 0.1]",
    ),
)
validation_options = grouped(
    click.option(
        "--validate",
        metavar="FILE",
        help="Count the errors of these rows all along the path: exact for every value.",
    ),
    click.option(
        "--folds",
        type=POSITIVE_COUNT,
        default=None,
        metavar="K",
        help="Follow the paths of K folds too, and average their exact validation errors.",
    ),
    click.option(
        "--bootstrap",
        type=POSITIVE_COUNT,
        default=None,
        metavar="B",
        help="The same with B bootstrap samples, validated with the rows not drawn.",
    ),
    click.option(
        "--rescale",
        is_flag=True,
        help="Keep lambda per row: that of a split counts n/n_split times on the path of all n "
        "rows (with --folds, --bootstrap).",
    ),
    click.option(
        "--select",
        type=Name("rule", list(RULE_WORDS), {word: short for short, word in RULE_WORDS.items()}),
        default=None,
        help="Choose lambda by the least validation error (min; rls and rlsc: of left-out rows, "
        "without --validate) or as the largest within one standard error of it (1se), and write "
        "the model there.",
    ),
)
model_options = grouped(
    click.option(
        "--at",
        type=PATH_VALUE,
        default=None,
        metavar="C",
        help="Write the exact model at this C (of a path in epsilon or nu, and of rls and rlsc: at "
        "this value of the parameter).",
    ),
    click.option(
        "--model",
        metavar="MODEL",
        help="File of the model of --at or --select.  [default: the name of DATA plus .kfu]",
    ),
    click.option(
        "--train",
        metavar="FILE",
        help="The rows that a path file was followed on, where it does not hold them and the file "
        "it names is elsewhere now.",
    ),
    click.option(
        "--embed",
        is_flag=True,
        help="Keep the rows in the path file, so that models are extracted from it alone.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Go on with a path file that was stopped or cut off: 'kfu path PATH --resume', or the "
        "command that wrote it again (which starts it where there is no file yet).",
    ),
)
picture_options = grouped(
    click.option(
        "--plot",
        metavar="FILE",
        help="Draw coefficients, sizes of the sets and errors against the parameter (.png, .pdf, "
        ".svg).",
    ),
    click.option(
        "--html", metavar="FILE", help="The same as one page to hover over and zoom into."
    ),
)

assert set(RULE_WORDS.values()) == set(RULES)
