"""The step `compare`: differences of one figure between earlier steps of the same part.

For each pair of the steps named a figure A.B, that of A minus that of B. Over repetitions these are
paired differences: what two machines have in common (the rows, the centres drawn) drops out, and
`expect` can say which is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from kfu.experiment.agreement_step import names_of_steps
from kfu.experiment.document import Key, text
from kfu.experiment.state import Options, Problems, State, Step, StepPlan


def check_compare(options: Options, before: Sequence[StepPlan]) -> Problems:
    known = {step.label: step for step in before}
    for name in options["of"]:
        if name not in known:
            yield "of", f"no step '{name}' before this one (there are: {', '.join(known)})"
        elif not known[name].yields(f"{name}.{options['figure']}"):
            yield "figure", f"step '{name}' yields no figure '{options['figure']}'"


def compare_names(options: Options, before: Sequence[StepPlan]) -> list[str]:
    return [f"{a}.{b}" for a, b in combinations(options["of"], 2)]


def run_compare(options: Options, state: State) -> dict[str, float]:
    names = {name: f"{name}.{options['figure']}" for name in options["of"]}
    values = {name: state.figures[full] for name, full in names.items() if full in state.figures}
    pairs = [pair for pair in combinations(options["of"], 2) if set(pair) <= set(values)]
    return {f"{a}.{b}": values[a] - values[b] for a, b in pairs}


COMPARE = Step(
    run_compare,
    {
        "figure": Key(text, "which figure of the steps, for example auc", required=True),
        "of": Key(names_of_steps, "the steps compared", required=True),
    },
    figures=(),
    check=check_compare,
    names=compare_names,
)
