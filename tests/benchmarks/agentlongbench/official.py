"""Messages and scores of the official code (golden_makers/agentlongbench.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.agentlongbench.tasks import (
    AGENTLONGBENCH,
    FOLDERS,
    KINDS,
    SETTINGS,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.agentlongbench.fabricate import build_agentlongbench, make_records
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    join_comparisons,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SHORTEST = Settings(min(FOLDERS))


def find_task(setting: str, kind: str) -> Task:
    """Return the task of a kind of questions on a kind of logs."""
    name = "" if setting == "ki-c" else setting.replace("-", "_")
    for category in AGENTLONGBENCH.categories:
        if category.name == name:
            for task in (*category.tasks, *category.variants):
                if task.argument == kind:
                    return task
    raise KeyError(setting, kind)


def digest_messages(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of all messages, with calls of tools and results as they are in the file."""
    return digest(
        json.dumps(task.prompt(example).messages, ensure_ascii=False)
        for example in examples
    )


def compare_messages() -> Iterator[Comparison]:
    """Yield the messages of all tasks."""
    for setting in SETTINGS:
        for kind in KINDS:
            yield compare_examples(
                f"{setting} {kind}",
                GOLDEN["messages"][f"{setting}/{kind}"],
                find_task(setting, kind),
                SHORTEST,
                digest_messages,
            )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield 4,800 answers to all kinds of questions."""
    scores = GOLDEN["scores"]
    records = make_records(len(scores) // len(KINDS) // len(SETTINGS))
    for record, official in zip(records, scores, strict=True):
        task = find_task(record["setting"], record["kind"])
        scored = {**record, "references": []}
        yield ScoredOutput(task.name, scored, {task.headline[0]: official})


GOLDEN_CASES = GoldenCases(
    benchmark=AGENTLONGBENCH,
    build=build_agentlongbench,
    comparisons=join_comparisons(compare_messages(), words=1),
    list_outputs=list_outputs,
)
