"""GSM-Infinite's three subsets.

Source: Infini-AI-Lab/gsm_infinite at caa5388, gsm-infinite/config.sh and run.sh (budget, temperatures, numbers).
"""

import re
from collections.abc import Sequence

from helm_longctx.benchmarks.gsm_infinite import data, scoring
from helm_longctx.benchmarks.gsm_infinite.prompts import SYMBOLIC
from helm_longctx.tasks import NO_TEMPLATE, STANDARD, Category, Message, Template, read_benchmark, task_fields
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES
from helm_longctx.tasks.task import Baseline, Shape, Task, Variant, is_whole

LENGTHS = {0: 0, **{STANDARD[label]: STANDARD[label] for label in ("8k", "16k", "32k")}}
"""The lengths of the published tables."""
SYMBOLIC_LENGTHS = {length: length for length in (0, *STANDARD.values())}

_TEMPLATE = Template(SYMBOLIC, "", separator="")
_NUMBER = re.compile(r"\d+")


def name_variables(messages: Sequence[Message]) -> str | None:
    """Answer with the variables that have the value itself; None if the prompt is not a symbolic problem."""
    fields = _TEMPLATE.parse(messages[-1]["content"])
    if fields is None:
        return None
    found = re.findall(rf"assign (V\d+) = {re.escape(fields['question'])}\.", fields["context"])
    return f"The variables are {', '.join(found) or 'None'}."


def last_number(messages: Sequence[Message]) -> str | None:
    """Answer with the last number of a problem; None if the last turn asks for no answer."""
    text = messages[-1]["content"]
    return f"Answer: {([*_NUMBER.findall(text)] or ['0'])[-1]}." if "Solution:" in text else None


def _hub_task(name: str) -> Task:
    return Task(
        name=name,
        title=name.title(),
        template=NO_TEMPLATE,
        load=data.load,
        score=scoring.score_number,
        headline=("accuracy",),
        metrics=("accuracy",),
        sizes=LENGTHS,
        num_samples=data.LIMIT * len(data.OPERATIONS),
        sources=lambda length: (data.find_source(name, length),),
        baseline=Baseline(last_number, "Answer: 2."),
        **task_fields(__package__),
    )


_SYMBOLIC = Task(
    name="symbolic",
    title="Symbolic",
    template=_TEMPLATE,
    load=data.generate,
    score=scoring.score_variables,
    headline=("judge_score",),
    metrics=(*JUDGED, "last_line_accuracy"),
    sizes=SYMBOLIC_LENGTHS,
    num_samples={length: data.count_symbolic(length) for length in SYMBOLIC_LENGTHS},
    any_length=True,
    arguments=("seed",),
    most_samples=10_000,
    variants={"paper": Variant(temperature=1.0)},
    official_judge=scoring.JUDGE,
    judgement=scoring.JUDGEMENT,
    record_shapes={**REPLIES, "value": Shape("a whole number", is_whole)},
    baseline=Baseline(name_variables, "V000000"),
    **task_fields(__package__),
)

_TASKS = (_SYMBOLIC, _hub_task("medium"), _hub_task("hard"))
GSM_INFINITE = read_benchmark(__package__, [Category("", "", _TASKS, judge=f"{__package__}.judge.ExtractionAnnotator")])
