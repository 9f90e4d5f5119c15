"""GSM-Infinite's three subsets and their scores.

Source: Infini-AI-Lab/gsm_infinite at caa5388, gsm-infinite/config.sh and run.sh (budget, temperatures, numbers),
pred/eval_realistic.py (`criteriaoutput`) and pred/eval_symbolic.py (`get_prompt`, `postprocess_line`).
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from helm_longctx.benchmarks.gsm_infinite import data, prompts
from helm_longctx.tasks import NO_TEMPLATE, STANDARD, Category, Judgement, Message, Template
from helm_longctx.tasks.benchmark_file import read_benchmark, task_fields
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.task import Baseline, Record, Scores, Shape, Task, Variant, is_whole

JUDGE = "together/qwen2.5-7b-instruct-turbo"
"""The official extractor is Qwen/Qwen2.5-7B-Instruct; this is HELM's deployment of it."""

_ENDS = (
    *(("answer: ", "."), ("solution: ", "."), ("oxed{", "}"), ("**answer:** ", "."), ("**answer: ", "**")),
    *(("final answer: answer: ", "."), ("\nanswer: ", "."), (r"\text{answer: } ", ""), ("is ", ".")),
    ("answer: ", "\n"),
)
"""What stands before and after a number, in the order of the search; nothing after it ends the number's digits."""
_SEARCHED_FROM_END = frozenset({"oxed{", "is "})
_BACKSPACED = re.compile(".\x08")
_DIGITS = re.compile(r"\d*")
_VARIABLE = re.compile(r"\bV\d+\b")


def find_number(output: str) -> int | None:
    """Return the number of an answer: the first in one of the official forms; None if there is none."""
    text = _BACKSPACED.sub("b", output).lower()
    for start, end in _ENDS:
        place = text.rfind(start) if start in _SEARCHED_FROM_END else text.find(start)
        if place < 0:
            continue
        first = place + len(start)
        last = text.find(end, first) if end else _DIGITS.match(text, first).end()  # type: ignore[union-attr]
        try:
            return int(text[first : last if last >= 0 else len(text)])
        except ValueError:
            continue
    return None


def score_number(record: Record) -> Scores:
    """Return whether the answer has the right number."""
    number = find_number(record["prediction"])
    return {"accuracy": float(number is not None and str(number) in record["references"])}


def read_verdict(reply: Any, record: Record) -> Scores:
    """Return whether exactly the right variables were extracted, in any order; nothing if the reply is no text."""
    if not isinstance(reply, str):
        return {}
    return {"judge_score": float(set(_VARIABLE.findall(reply)) == set(record["references"]))}


def score_variables(record: Record) -> Scores:
    """Return whether the variables that the judge extracted, and the variables in the last line, are right."""
    lines = record["prediction"].strip().splitlines()
    last = read_verdict(lines[-1] if lines else "", record)["judge_score"]
    return {**judge_scores(record, "judge_score", partial(read_verdict, record=record)), "last_line_accuracy": last}


def judge_prompt(record: Record) -> str:
    """Make the extractor's prompt. The braces of its examples are filled in, too, as in the official code."""
    return prompts.EXTRACTION.format(value=record["value"], answer=record["prediction"])


JUDGEMENT = Judgement(judge_prompt, read_verdict, prompts.EXTRACTION, max_tokens=2048, readings=1)


LENGTHS = {0: 0, **{STANDARD[label]: STANDARD[label] for label in ("8k", "16k", "32k")}}
"""The lengths of the published tables."""
SYMBOLIC_LENGTHS = {length: length for length in (0, *STANDARD.values())}

_TEMPLATE = Template(prompts.SYMBOLIC, "", separator="")
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
        score=score_number,
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
    score=score_variables,
    headline=("judge_score",),
    metrics=(*JUDGED, "last_line_accuracy"),
    sizes=SYMBOLIC_LENGTHS,
    num_samples={length: data.count_symbolic(length) for length in SYMBOLIC_LENGTHS},
    any_length=True,
    arguments=("seed",),
    most_samples=10_000,
    variants={"paper": Variant(temperature=1.0)},
    official_judge=JUDGE,
    judgement=JUDGEMENT,
    record_shapes={**REPLIES, "value": Shape("a whole number", is_whole)},
    baseline=Baseline(name_variables, "V000000"),
    **task_fields(__package__),
)

_TASKS = (_SYMBOLIC, _hub_task("medium"), _hub_task("hard"))
GSM_INFINITE = read_benchmark(__package__, [Category("", "", _TASKS, judge=f"{__package__}.judge.ExtractionAnnotator")])
