"""The tasks of CL-bench and CL-bench Life, their loader, and the judge's prompt and grade.

Source: Tencent-Hunyuan/CL-bench at 360d60f, infer.py, eval.py (`build_rubrics_text`, `call_judge_api`,
`process_single_item`, `calculate_statistics`); the hub data sets tencent/CL-bench at b28a583 and
tencent/CL-bench-Life at cd2589f. A record has the question's `rubrics` and `category`, and the reply of a judge in
`judge`, or the replies of several in `jury`.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from helm_longctx.benchmarks.cl_bench import prompts
from helm_longctx.data.download import Source
from helm_longctx.errors import ShapeError
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXT,
    Category,
    DataRoot,
    Example,
    HubDataset,
    HubFile,
    JsonLines,
    Judgement,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Types,
    Variant,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import take_sample

JUDGE = "openai/gpt-5.1-2025-11-13"
"""The official judge: `gpt-5.1`."""

CATEGORIES = {
    "Domain Knowledge Reasoning": "domain",
    "Rule System Application": "rules",
    "Procedural Task Execution": "procedures",
    "Empirical Discovery & Simulation": "discovery",
    "Communication & Social Interactions": "communication",
    "Fragmented Information & Revisions": "fragments",
    "Behavioral Records & Activity Trails": "records",
}
"""The names of the metrics by category; CL-bench Life has the last three."""


def _list_rubrics(rubrics: list[Any]) -> str:
    """Return the criteria as a list, with the numbers that they have before empty ones are left out."""
    texts = []
    for rubric in rubrics:
        is_object = isinstance(rubric, dict)
        texts.append(rubric.get("rubric_criteria", "") if is_object else str(rubric))
    lines = []
    for number, text in enumerate(texts, 1):
        if text.strip():
            lines.append(f"{number}. {text.strip()}")
    return "\n".join(lines) or prompts.NO_RUBRICS


def judge_prompt(record: ScorerInput) -> str | dict[str, str]:
    """Make the judge's prompt; nothing is asked about an answer without text."""
    if not record["prediction"].strip():
        return {}
    return prompts.JUDGE.format(
        rubrics=_list_rubrics(record["rubrics"]), answer=record["prediction"]
    )


def read_grade(reply: Any) -> MetricValues:
    """Return 1 if a reply's overall score is 1, and 0 for another. A reply that is no JSON object with one has no score."""
    if not isinstance(reply, str):
        return {}
    text = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        grade = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(grade, dict) or "Overall Score" not in grade:
        return {}
    return {"judge_score": float(grade["Overall Score"] == 1)}


def score(record: ScorerInput) -> MetricValues:
    """Return the grade, also under the name of the question's category. A judged answer without text has grade 0."""
    has_text = bool(record["prediction"].strip())

    def read(reply: Any) -> MetricValues:
        if has_text:
            return read_grade(reply)
        return {} if reply is None else {"judge_score": 0.0}

    scores = judge_scores(record, "judge_score", read)
    name = CATEGORIES.get(record.get("category", ""))
    if name and "judge_score" in scores:
        scores[f"judge_score_{name}"] = scores["judge_score"]
    return scores


# The official code asks three times until a reply has a score.
JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_grade(reply),
    lambda record: prompts.JUDGE + _list_rubrics(record["rubrics"]),
    # The budget has room for reasoning. The official code sets none.
    max_tokens=16384,
    temperature=1.0,
    readings=3,
    counts_silence=True,
)


TASKS = HubFile(
    "tencent/CL-bench",
    "CL-bench.jsonl",
    "cl_bench/CL-bench.jsonl",
    commit="b28a5832a09b0d96c0cf4c22e90d7c60ede25b80",
    sha256="d5fc88d4b2eea75c61dd40862021b6ae2fba26bd21b58e8c5e18377a763943be",
)
LIFE = HubDataset(
    "tencent/CL-bench-Life",
    {"train": 405},
    labelled=False,
    commit="cd2589f",
    files={"train": ("CL-bench Life.jsonl",)},
)
COLUMNS: Types = {
    "messages": list,
    "rubrics": list,
    "metadata": dict,
}
_RUBRICS = Shape("a list", lambda value: isinstance(value, list))
DELIMITER = "<|TASK|>"
"""Stands between the context and the task in single turns of CL-bench Life; CL-bench has nothing between them."""


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    path: str,
) -> Iterator[Example]:
    """Yield the tasks in file order, with their own messages."""
    for row in JsonLines(root / path, COLUMNS):
        about = row["metadata"]
        messages = [*read_messages(f"{row}: column 'messages'", row["messages"])]
        if not isinstance(about.get("task_id"), str):
            raise ShapeError(
                f"{row}: column 'metadata' must have a task_id, found {', '.join(about)}"
            )
        end = messages[-1]["content"].rfind(DELIMITER)
        yield Example(
            id=about["task_id"],
            fields={},
            references=[],
            source="hub",
            messages=messages,
            context=(0, end) if end >= 0 and len(messages) == 1 else None,
            record={
                "rubrics": row["rubrics"],
                "category": about.get("context_category") or "",
            },
            group=about.get("context_id") or "",
        )


def _task(
    name: str,
    title: str,
    source: Source,
    questions: int,
    categories: list[str],
) -> Task:
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        load=partial(load, path=source.paths[0]),
        score=score,
        metrics=(*JUDGED, *(f"judge_score_{category}" for category in categories)),
        num_samples=questions,
        sources=lambda length: (source,),
        variants={"paper": Variant(temperature=1.0)},
        official_judge=JUDGE,
        judgement=JUDGEMENT,
        record_shapes={
            "rubrics": _RUBRICS,
            "category": TEXT,
            **REPLIES,
        },
        **task_fields(__package__),
    )


_NAMES = [*CATEGORIES.values()]
_TASKS = _task("tasks", "CL-bench", TASKS, 1899, _NAMES[:4])
_LIFE = _task("life_tasks", "CL-bench Life", LIFE, 405, _NAMES[4:])
_JUDGE = f"{__package__}.judge.RubricsAnnotator"
CL_BENCH = read_benchmark(
    __package__,
    [
        Category("", "", (_TASKS,), judge=_JUDGE),
        Category("life", "Life", (_LIFE,), averaged=False, judge=_JUDGE),
    ],
)
