"""Prompts and scores of the official code, also of answers with citations (golden_makers/helmet.py)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.helmet.citations import judge_record
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC, Example, Settings, Task
from tests.benchmarks.helmet.citation_rule import Rule
from tests.support.fabricate import score_records
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import read_golden
from tests.support.tasks import entry_of

GOLDEN = read_golden(__file__)
CITED = read_golden(__file__, "golden_citations.json")

LONG = {f"{task.name} 128k" for task in HELMET.entries["helmet_icl"].tasks}
"""Cases that draw thousands of demonstrations for 500 questions, which takes 5 seconds each; shorter ones draw in the
same way."""


def digest_prompts(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> dict[str, object]:
    """Return the number of examples, and digests of both forms of the prompts and of the references."""
    shas = {name: hashlib.sha256() for name in ("chat", "completion", "references")}
    count = 0
    # Prompts are digested one after the other, because all prompts of 128k are a gigabyte.
    for example in examples:
        count += 1
        prompt = task.prompt(example)
        texts = {
            "chat": prompt.user_turn,
            "completion": prompt.text("completion"),
            "references": json.dumps(example.references, ensure_ascii=False),
        }
        for name, text in texts.items():
            shas[name].update(hashlib.sha256(text.encode()).digest())
    return {"count": count, **{name: sha.hexdigest() for name, sha in shas.items()}}


def digest_cited_prompts(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> dict[str, object]:
    """Return the same without the references: the official metrics of citations read the answers from the rows."""
    digests = digest_prompts(task, settings, examples)
    del digests["references"]
    return digests


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of all tasks at all lengths, and with other arguments."""
    for case, official in GOLDEN["prompts"].items():
        name, length, *arguments = case.split()
        task = HELMET.task(name)
        entry = f"{entry_of(task)}:task={name},length={length}"
        parsed = parse_entry(BENCHMARKS, ",".join([entry, *arguments]))
        has_references = "references" in official
        yield compare_examples(
            case,
            official,
            task,
            parsed.settings,
            digest_prompts if has_references else digest_cited_prompts,
            is_long=case in LONG,
        )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with all official metrics, of which the first of the task is the main one."""
    for record, official in zip(score_records(), GOLDEN["scores"], strict=True):
        headline = HELMET.task(record["task"]).headline[0]
        main = {MAIN_METRIC: official[headline]} if headline in official else {}
        yield ScoredOutput(record["task"], record, {**official, **main})
    yield from list_cited_outputs()


def list_cited_outputs() -> Iterator[ScoredOutput]:
    """Yield odd outputs with citations. Where the official code skips the citations, there is no mean."""
    for row in CITED:
        record = row["record"]
        task = HELMET.task("qampari" if "answers" in record else "asqa")
        parts = [row["metrics"].get(name) for name in task.headline]
        official = {
            "citation_rec": None,
            **row["metrics"],
            MAIN_METRIC: None if None in parts else sum(parts) / len(parts),
        }
        judged = {
            **record,
            "references": [],
            "citations": judge_record(record, Rule(), lambda number: number < 8),
        }
        yield ScoredOutput(task.name, judged, official)


GOLDEN_CASES = GoldenCases(
    benchmark=HELMET,
    comparisons=tuple(compare_prompts()),
    list_outputs=list_outputs,
    absolute=1e-12,
)
