"""LooGLE's four tasks and their loader.

Source: bigai-nlco/LooGLE at 6734382, Prediction/pred_gpt_models.py, pred_opensource_models.py and
config/task2maxlen.json; the hub data set bigai-nlco/LooGLE at 65abdc1.
"""

import ast
import json
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from helm_longctx.benchmarks.loogle import scoring
from helm_longctx.benchmarks.loogle.prompts import PROMPTS
from helm_longctx.tasks import Category, DataRoot, HubFile, InputError, JsonLines, Judgement, Template, Types
from helm_longctx.tasks.benchmark_file import read_benchmark, task_fields
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import Baseline, Example, Settings, Task, text_group

COMMIT = "65abdc137e85a7b518ca9e2f99674bec8c8f101f"
"""The last known commit whose files have the columns that the official code reads."""
COLUMNS: Types = {"input": str, "qa_pairs": (str, list), "output": str}
SUMMARY, CLOZE = "longdep_summarization", "shortdep_cloze"


class Row(NamedTuple):
    """A task: its title, output budget, largest number of questions, and the answer of the null model."""

    title: str
    max_tokens: int
    questions: int
    constant: str


ROWS = {
    "shortdep_qa": Row("Short QA", 300, 6000, "It is not known."),
    "longdep_qa": Row("Long QA", 500, 6000, "It is not known."),
    SUMMARY: Row("Summaries", 500, 516, "The paper proves a theorem."),
    CLOZE: Row("Cloze", 50, 6000, "{}"),
}
"""The tasks by their official names. The README counts 6,000 questions of all tasks, and 516 papers."""


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield a task's questions in the order of the texts, each with all of its text; for a summary no question."""
    (path,) = task.paths(None)
    for number, row in enumerate(JsonLines(root / path, COLUMNS)):
        text, group = {"context": row["input"]}, text_group(row["input"])
        if task.name == SUMMARY:
            yield Example(f"{number}-0", text, [row["output"]], "hub", group=group)
            continue
        pairs: Any = row["qa_pairs"]
        try:
            pairs = ast.literal_eval(pairs) if isinstance(pairs, str) else pairs
            for place, pair in enumerate(pairs):
                answer: Any = pair["A"]
                if not isinstance(pair["Q"], str) or not isinstance(answer, dict if task.name == CLOZE else str):
                    raise TypeError
                reference = json.dumps(answer, ensure_ascii=False) if isinstance(answer, dict) else answer
                yield Example(f"{number}-{place}", {**text, "question": pair["Q"]}, [reference], "hub", group=group)
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            raise InputError(f"{row}: column 'qa_pairs' must be a list of objects with Q and A") from error


def _task(name: str, judgement: Judgement | None) -> Task:
    row, source = ROWS[name], HubFile("bigai-nlco/LooGLE", f"data/{name}.json", f"loogle/{name}.json", commit=COMMIT)
    return Task(
        name=name,
        title=row.title,
        template=Template(PROMPTS[name], "", separator=""),
        load=load,
        score=partial(scoring.score_text, summary=name == SUMMARY) if judgement else scoring.score_cloze,
        headline=("judge_score",) if judgement else ("exact_match",),
        metrics=(*JUDGED, *scoring.SIMILARITY) if judgement else scoring.MATCHES,
        max_tokens=row.max_tokens,
        num_samples=row.questions,
        sources=lambda length: (source,),
        official_judge=scoring.JUDGE if judgement else None,
        judgement=judgement,
        record_shapes=REPLIES if judgement else {},
        baseline=Baseline("summary" if name == SUMMARY else "span", row.constant),
        **task_fields(__package__),
    )


_TASKS = (
    _task("shortdep_qa", scoring.JUDGEMENT),
    _task("longdep_qa", scoring.JUDGEMENT),
    _task(SUMMARY, scoring.SUMMARY_JUDGEMENT),
    _task(CLOZE, None),
)

LOOGLE = read_benchmark(__package__, [Category("", "", _TASKS, judge=f"{__package__}.judge.AgreementAnnotator")])
