"""Options that several commands share: one spelling, one type, one help text each.

The choices come from the registries (kernels, machines, solvers, scalers), so that what the
library learns the command line offers. A command picks single options or one of the groups at
the foot; ``grouped`` applies them in reading order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kfu.cli import console
from kfu.cli.config_file import read_config
from kfu.cli.parameters import (
    COST,
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_COUNT,
    ClassWeight,
    Gamma,
    KernelName,
    LabelColumn,
    MachineName,
    Multiclass,
    Name,
    Number,
    PositiveOrAuto,
    Threads,
)
from kfu.io import FORMATS
from kfu.kernels import ALIASES as KERNEL_ALIASES
from kfu.kernels import KERNELS
from kfu.machines import MACHINES, OPTIONS, option_word
from kfu.machines.probability import METHODS, OUTPUTS
from kfu.machines.single_machine import SINGLE_MACHINES
from kfu.multiclass import CODES, DECODINGS
from kfu.scale import SCALERS
from kfu.solvers import SOLVERS, SolverSettings
from kfu.solvers.settings import PRECISIONS, SELECTIONS, SIMD_LEVELS

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


def grouped(*options: Decorator[Any]) -> Decorator[Any]:
    """Apply decorators so that --help lists them in the order written here."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# ---- data -----------------------------------------------------------------------------------

# The formats of the library; the first is called by the name most people know it by.
FORMAT_ALIASES = {"svmlight": "libsvm", "svm": "libsvm"}
DATA_FORMATS = [FORMAT_ALIASES.get(name, name) for name in FORMATS]

data = click.argument("data", metavar="DATA")
format_ = click.option(
    "--format",
    "data_format",
    type=Name("format", ["auto", *DATA_FORMATS], FORMAT_ALIASES),
    default="auto",
    show_default=True,
    help=f"Format of the data: auto (by content and name), {', '.join(DATA_FORMATS)}.",
)
zero_based = click.option(
    "--zero-based/--one-based",
    default=None,
    help="Feature numbers of libsvm text start at 0, or at 1.  [default: 0 if a 0 occurs]",
)
label_column = click.option(
    "--label-column",
    type=LabelColumn(),
    default=None,
    metavar="COLUMN",
    help="Column of a table that holds the label: its number (1 is the first, -1 the last) or "
    "its name in the header.  [default: 1]",
)
header = click.option(
    "--header/--no-header",
    default=None,
    help="The first line of a table names the columns, or not.  [default: if it holds no number]",
)

# ---- kernel ---------------------------------------------------------------------------------

KERNEL_TYPE = KernelName("kernel", list(KERNELS), KERNEL_ALIASES)
kernel = click.option(
    "-k",
    "--kernel",
    type=KERNEL_TYPE,
    default=None,
    help=f"Kernel: {', '.join(KERNELS)}; or FILE.yaml, as --kernel-file.  [default: rbf]",
)
kernel_file = click.option(
    "--kernel-file",
    metavar="FILE.yaml",
    help="Kernel described in YAML: sums, products and per-feature parameters.",
)
gamma = click.option(
    "-g",
    "--gamma",
    type=Gamma(),
    default=None,
    metavar="GAMMA",
    help="Kernel parameter gamma: a number > 0, auto (1/features), scale "
    "(1/(features x variance)) or median (1/median squared distance).  [default: auto]",
)
sigma = click.option(
    "--sigma", type=POSITIVE, default=None, help="Width of an rbf kernel: gamma = 1/(2 sigma^2)."
)
degree = click.option(
    "-d",
    "--degree",
    type=POSITIVE_COUNT,
    default=None,
    help="Degree of a polynomial kernel.  [default: 3]",
)
coef0 = click.option(
    "-r",
    "--coef0",
    type=Number(),
    default=None,
    help="Constant term of polynomial and sigmoid kernels.  [default: 0]",
)

# ---- machine --------------------------------------------------------------------------------

machine = click.option(
    "-m",
    "--machine",
    type=MachineName("machine", list(MACHINES)),
    default="svc",
    show_default=True,
    help=f"Machine: {', '.join(MACHINES)}.",
)
cost = click.option(
    "-c",
    "--cost",
    type=COST,
    default=1.0,
    show_default=True,
    help="C, the cost of one unit of slack (it multiplies the sum of slacks); inf asks svc and "
    "svc2 for the hard margin.",
)
class_weight = click.option(
    "-w",
    "--class-weight",
    type=ClassWeight(),
    multiple=True,
    metavar="LABEL=WEIGHT",
    help="Multiply the cost of one class; repeatable. 'balanced' weighs every class inversely "
    "to its number of rows.",
)
weights = click.option(
    "--weights",
    "weights_file",
    metavar="FILE",
    help="Multiply the cost of each row: one number per line, in the order of DATA.",
)
bias = click.option(
    "--bias/--no-bias",
    default=None,
    help="Learn the constant term of the decision function, or keep it at 0.  [default: bias, but "
    "for least squares]",
)
regularised_bias = click.option(
    "--regularised-bias",
    is_flag=True,
    help="Count the constant term in the norm that is kept small (the kernel plus 1); rls and "
    "rlsc: the proximal machine, which keeps the coefficients and the constant small.",
)


def _machine_option(name: str, type_: Any, metavar: str | None = None) -> Decorator[Any]:
    option = OPTIONS[name]
    owners = [machine.name for machine in MACHINES.values() if name in machine.options]
    shown = f"  [default: {option.default}]" if option.default is not None else ""
    return click.option(
        "--" + option_word(name),
        name,
        type=type_,
        default=None,
        metavar=metavar,
        help=f"{option.help} Machines: {', '.join(owners)}.{shown}",
    )


machine_options = grouped(
    _machine_option("nu", POSITIVE),
    _machine_option("epsilon", NON_NEGATIVE),
    _machine_option("margins", str, "FILE|auto"),
    _machine_option("graph", Name("graph", ["complete", "reduced"])),
    _machine_option("neighbours", POSITIVE_COUNT),
    _machine_option("distance_weights", Name("weighting", ["none", "inverse", "inverse-squared"])),
    _machine_option("dims", POSITIVE_COUNT),
    _machine_option("dim_penalty", NON_NEGATIVE),
    _machine_option("prior", Name("prior", ["data", "equal"])),
    _machine_option("ridge", PositiveOrAuto()),
    _machine_option("lam", PositiveOrAuto()),
    _machine_option("lam_by", Name("criterion", ["squares", "errors"])),
    _machine_option("loo", Name("when", ["auto", "always", "never"])),
    _machine_option(
        "method",
        Name("method", ["auto", "cholesky", "cg", "primal", "dual", "eig", "svd"]),
    ),
    _machine_option("prune", POSITIVE, "SHARE"),
    _machine_option(
        "approximation",
        Name("approximation", ["none", "rectangle", "subset", "nystrom", "falkon", "bagging"]),
    ),
    _machine_option("centres", POSITIVE_COUNT),
    _machine_option(
        "centres_by", Name("selection", ["random", "kmeans++", "leverage", "ic", "kmeans"])
    ),
)
multiclass = click.option(
    "--multiclass",
    type=Multiclass(),
    default=None,
    metavar="CODE",
    help=f"How more than two classes are dealt to binary machines: {', '.join(CODES)}, the file of "
    f"a code matrix (a row a class, entries 1, -1, 0), or one machine over all classes: "
    f"{', '.join(SINGLE_MACHINES)}.  [default: ava, for least squares ova]",
)
decoding = click.option(
    "--decoding",
    type=Name("decoding", list(DECODINGS)),
    default=None,
    help=f"How the binary outputs become a class: {', '.join(DECODINGS)}.  [default: argmax for "
    "ova, votes for ava, else the loss of the machine]",
)
probability = click.option(
    "--probability",
    type=Name("method", list(METHODS), {"platt": "sigmoid"}),
    default=None,
    is_flag=False,
    flag_value="sigmoid",
    help="Also fit probabilities: sigmoid (Platt) or isotonic; 'kfu predict --output "
    "probabilities' prints them.",
)
probability_outputs = click.option(
    "--probability-outputs",
    type=Name("outputs", list(OUTPUTS)),
    default="cv",
    show_default=True,
    help="What the probabilities are fitted to: outputs of left-out rows (cv: five folds, "
    "hold-out: a quarter of the rows) or outputs corrected by the span.",
)
scale = click.option(
    "--scale",
    "scale",
    type=Name("scaling", [name for name in SCALERS if name != "divide"]),
    default=None,
    help="Scale the features first: standard (mean 0, variance 1), minmax (to [-1,1]) or unit "
    "(rows of norm 1). The scaling is stored in the model, so that predict applies it too.",
)

# ---- solver ---------------------------------------------------------------------------------

tolerance = click.option(
    "-e",
    "--tolerance",
    type=POSITIVE,
    default=SolverSettings.tolerance,
    show_default=True,
    help="Stop when no pair of points violates the optimality conditions by more.",
)
solver = click.option(
    "--solver",
    type=Name("solver", list(SOLVERS)),
    default=SolverSettings.solver,
    show_default=True,
    help=f"Algorithm: {', '.join(SOLVERS)}. auto is svmfu, but for large problems with the linear "
    "kernel, which are solved through w; the rivals of svmfu are there for study.",
)
selection = click.option(
    "--selection",
    type=Name("selection", list(SELECTIONS)),
    default="second",
    show_default=True,
    help="Choice of the pair to optimise: by second-order gain (second), or the pair that violates "
    "most (first).",
)
shrinking = click.option(
    "--shrinking/--no-shrinking",
    default=True,
    show_default=True,
    help="Set points aside that seem to stay at their bound (checked again at the end).",
)
precision = click.option(
    "--precision",
    type=Name("precision", list(PRECISIONS)),
    default="auto",
    show_default=True,
    help="Precision of stored kernel values: float32, float64 or auto (float32, unless it does not "
    "reach the tolerance). Sums are always float64.",
)
cache_mib = click.option(
    "--cache-mib",
    type=POSITIVE,
    default=SolverSettings.cache_mib,
    show_default=True,
    help="Memory for kernel values, in MiB. The result does not depend on it.",
)
chunk = click.option(
    "--chunk",
    type=COUNT,
    default=0,
    show_default=True,
    help="Points optimised together; 0 chooses.",
)
max_iterations = click.option(
    "--max-iterations",
    type=COUNT,
    default=0,
    show_default=True,
    help="Stop after so many pair steps (exit 3; the model is written and marked); "
    "0: the larger of 10,000,000 and 100 a row.",
)
max_seconds = click.option(
    "--max-seconds",
    type=NON_NEGATIVE,
    default=0.0,
    show_default=True,
    help="Stop after so many seconds of training (exit 3; the model is written and marked); "
    "0: no limit.",
)

polish = click.option(
    "--polish/--no-polish",
    default=SolverSettings.polish,
    show_default=True,
    help="Problems of at most 512 rows go on from the tolerance to rounding accuracy.",
)
simd = click.option(
    "--simd",
    type=Name("instruction set", list(SIMD_LEVELS)),
    default="best",
    show_default=True,
    help=f"Instructions of the kernel code: {', '.join(SIMD_LEVELS)}; best is what this processor "
    "has.",
)

# ---- every command --------------------------------------------------------------------------

threads = click.option(
    "-t", "--threads", type=Threads(), default=0, show_default=True, help="Threads; 0: all cores."
)
seed = click.option(
    "--seed",
    type=COUNT,
    default=0,
    show_default=True,
    help="Seed of what is sampled (folds, random codes, reduced graphs, gamma 'median' on large "
    "data).",
)
report = click.option(
    "--report", metavar="FILE", help="Write a report, one JSON object; '-' writes it to stdout."
)
config = click.option(
    "--config",
    metavar="FILE.yaml",
    is_eager=True,
    expose_value=False,
    callback=read_config,
    help="Read options from YAML; keys are option names (the settings in a report are such a "
    "file), and flags win.",
)
quiet = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=console.set_quiet,
    help="Print no summary, progress or warning; only errors and what was asked for.",
)
verbose = click.option(
    "-v",
    "--verbose",
    count=True,
    is_eager=True,
    expose_value=False,
    callback=console.set_verbose,
    help="Say more on stderr; twice for details.",
)

data_options = grouped(format_, zero_based, label_column, header)
kernel_options = grouped(kernel, kernel_file, gamma, sigma, degree, coef0)
solver_options = grouped(
    tolerance,
    solver,
    selection,
    shrinking,
    precision,
    cache_mib,
    chunk,
    max_iterations,
    max_seconds,
    polish,
    simd,
)
common_options = grouped(threads, seed, report, config, verbose, quiet)
