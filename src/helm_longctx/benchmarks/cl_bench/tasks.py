"""CL-bench's tasks and those of CL-bench Life, and their loader.

Source: Tencent-Hunyuan/CL-bench at 360d60f, infer.py; the hub data sets tencent/CL-bench at b28a583 and
tencent/CL-bench-Life.
"""

from collections.abc import Iterator
from functools import partial

from helm_longctx.benchmarks.cl_bench import scoring
from helm_longctx.data.download import Source
from helm_longctx.errors import ShapeError
from helm_longctx.tasks import NO_TEMPLATE, Category, DataRoot, HubDataset, HubFile, JsonLines, Types
from helm_longctx.tasks.benchmark_file import read_benchmark, task_fields
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXT, Example, Settings, Shape, Task, Variant

TASKS = HubFile(
    "tencent/CL-bench",
    "CL-bench.jsonl",
    "cl_bench/CL-bench.jsonl",
    commit="b28a5832a09b0d96c0cf4c22e90d7c60ede25b80",
    sha256="d5fc88d4b2eea75c61dd40862021b6ae2fba26bd21b58e8c5e18377a763943be",
)
LIFE = HubDataset("tencent/CL-bench-Life", {"train": 405}, labelled=False)
COLUMNS: Types = {"messages": list, "rubrics": list, "metadata": dict}
RUBRICS = Shape("a list", lambda value: isinstance(value, list))
DELIMITER = "<|TASK|>"
"""Stands between the context and the task in single turns of CL-bench Life; CL-bench has nothing between them."""


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, path: str) -> Iterator[Example]:
    """Yield the tasks in file order, with their own messages."""
    for row in JsonLines(root / path, COLUMNS):
        about, messages = row["metadata"], [*read_messages(f"{row}: column 'messages'", row["messages"])]
        if not isinstance(about.get("task_id"), str):
            raise ShapeError(f"{row}: column 'metadata' must have a task_id, found {', '.join(about)}")
        end = messages[-1]["content"].rfind(DELIMITER)
        yield Example(
            id=about["task_id"],
            fields={},
            references=[],
            source="hub",
            messages=messages,
            context=(0, end) if end >= 0 and len(messages) == 1 else None,
            record={"rubrics": row["rubrics"], "category": about.get("context_category") or ""},
            group=about.get("context_id") or "",
        )


def _task(name: str, title: str, source: Source, questions: int, categories: list[str]) -> Task:
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        load=partial(load, path=source.paths[0]),
        score=scoring.score,
        metrics=(*JUDGED, *(f"judge_score_{each}" for each in categories)),
        num_samples=questions,
        sources=lambda length: (source,),
        variants={"paper": Variant(temperature=1.0)},
        official_judge=scoring.JUDGE,
        judgement=scoring.JUDGEMENT,
        record_shapes={"rubrics": RUBRICS, "category": TEXT, **REPLIES},
        **task_fields(__package__),
    )


_NAMES = [*scoring.CATEGORIES.values()]
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
