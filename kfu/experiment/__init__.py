"""Described experiments: read a YAML file, run it, compare what comes out with what should.

    plans = read_plan("configs/svmguide1.yaml")
    result = Runner(Path("runs/svmguide1")).run(plans[0])
    result.holds, result.figures[0]["test.accuracy"].mean

`kfu run` is this with a table. The parts: `document` (YAML with line numbers), `plan` (what is to
be done), `data` (rows and splits), `steps` (what can be done with them), `runner` (doing it, once
for each part), `expect` (figures and verdicts), `pictures`.
"""

from __future__ import annotations

from kfu.experiment.plan import Experiment, read_plan
from kfu.experiment.runner import ExperimentResult, Runner, check_output, write_results

__all__ = [
    "Experiment",
    "ExperimentResult",
    "Runner",
    "check_output",
    "read_plan",
    "write_results",
]
