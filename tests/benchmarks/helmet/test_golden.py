"""Prompts and scores equal the official code's, which was run on the same fabricated data (golden.json)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC
from tests.support.fabricate import score_records
from tests.support.tasks import entry_of

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())

# To draw thousands of demonstrations for 500 questions takes 5 seconds for each task. Shorter lengths draw in the same way.
LONG = [f"{task.name} 128k" for task in HELMET.entries["helmet_icl"].tasks]
CASES = [
    pytest.param(case, marks=pytest.mark.long if case in LONG else ())
    for case in GOLDEN["prompts"]
]


@pytest.mark.parametrize("case", CASES)
def test_prompts(case: str, mirror: DataRoot) -> None:
    """Every prompt, in both forms, its references and the order are the official ones."""
    name, length, *arguments = case.split()
    task = HELMET.task(name)
    entry = parse_entry(
        BENCHMARKS,
        ",".join([f"{entry_of(task)}:task={name}", f"length={length}", *arguments]),
    )
    digests = {name: hashlib.sha256() for name in ("chat", "completion", "references")}
    count = 0
    # Prompts are digested one after the other, because all prompts of 128k are a gigabyte.
    for example in task.load(task, entry.settings, mirror):
        count += 1
        prompt = task.prompt(example)
        references = json.dumps(example.references, ensure_ascii=False)
        texts = prompt.user_turn, prompt.text("completion"), references
        for sha, text in zip(digests.values(), texts, strict=True):
            sha.update(hashlib.sha256(text.encode()).digest())
    found = {"count": count, **{name: sha.hexdigest() for name, sha in digests.items()}}
    # The golden file has no references of citation tasks, whose metric reads the answers from the rows.
    assert found.items() >= GOLDEN["prompts"][case].items()


def test_every_task_has_golden_prompts() -> None:
    """The golden file covers all published tasks at all official lengths."""
    covered = {
        tuple(case.split()[:2])
        for case, digests in GOLDEN["prompts"].items()
        if len(digests) >= 3
    }
    published = {task.name for category in HELMET.categories for task in category.tasks}
    assert covered >= {
        (name, length)
        for name in published
        for length in ("4k", "8k", "16k", "32k", "64k", "128k")
    }


def test_scores(subtests: pytest.Subtests) -> None:
    """Every metric of every odd output is the official one."""
    for number, (record, expected) in enumerate(
        zip(score_records(), GOLDEN["scores"], strict=True)
    ):
        task = HELMET.task(record["task"])
        score = (
            {MAIN_METRIC: expected[task.headline[0]]}
            if task.headline[0] in expected
            else {}
        )
        with subtests.test(number=number):
            assert task.score(record).keys() <= set(task.metrics)
            assert task.scores(record) == pytest.approx(
                {**expected, **score}, abs=1e-12
            ), record
