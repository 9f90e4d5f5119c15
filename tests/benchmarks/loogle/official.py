"""Prompts, scores and the judge's requests of the official code (golden_makers/loogle.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.loogle import BENCHMARK
from helm_longctx.benchmarks.loogle.tasks import CLOZE, ROWS, SIMILARITY, SUMMARY
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.judgement import Judgement
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.loogle.fabricate import build_loogle, judged, records
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
CLOZE_METRICS = ("exact_masks", "partial_masks", "masks")


def digest_questions(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> str:
    """Return a digest of prompts, budgets and reference answers."""
    budget = task.output_tokens(settings)
    questions = []
    for example in examples:
        (reference,) = example.references
        answer = json.loads(reference) if task.name == CLOZE else reference
        prompt = task.prompt(example).messages[0]["content"]
        questions.append(json.dumps([prompt, budget, answer]))
    return digest(questions)


def find_judgement(name: str) -> Judgement:
    """Return how a task is judged."""
    judgement = BENCHMARK.task(name).judgement
    assert judgement is not None
    return judgement


def digest_judge_requests(root: DataRoot) -> str:
    """Return a digest of the judge's messages."""
    asked = []
    for name, question, answer, output, _ in judged():
        judgement = find_judgement(name)
        record = {"question": question, "references": [answer], "prediction": output}
        system = [judgement.system] if judgement.system else []
        asked.append(json.dumps([*system, judgement.prompts(record)]))
    return digest(asked)


def list_judge_settings(root: DataRoot) -> list[list[object]]:
    """Return the different settings with which judges are asked."""
    settings: list[list[object]] = []
    for name, *_ in judged():
        judgement = find_judgement(name)
        own = [judgement.temperature, judgement.top_p, judgement.max_tokens]
        if own not in settings:
            settings.append(own)
    return settings


def read_verdicts(root: DataRoot) -> list[float | None]:
    """Return our verdicts of odd replies."""
    verdicts = []
    for name, question, answer, output, reply in judged():
        record = {"question": question, "references": [answer], "prediction": output}
        verdicts.append(find_judgement(name).read(reply, record).get("judge_score"))
    return verdicts


def convert_verdict(name: str, official: str | None) -> float | None:
    """Return an official verdict as a score. A grade out of the range that the prompt names is no verdict here."""
    if official is None:
        return None
    if name == SUMMARY:
        grade = int(official)
        return grade / 100 if 0 <= grade <= 100 else None
    return {"True": 1.0, "False": 0.0}.get(official)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield outputs of each task, with the scores of the official code."""
    for (name, _, answer, output), official in zip(
        records(), GOLDEN["scores"], strict=True
    ):
        is_cloze = name == CLOZE
        reference = json.dumps(answer) if is_cloze else answer
        record = {"prediction": output, "references": [reference]}
        metrics = CLOZE_METRICS if is_cloze else SIMILARITY
        yield ScoredOutput(name, record, dict(zip(metrics, official, strict=True)))


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_loogle,
    comparisons=(
        *(
            compare_examples(
                name,
                GOLDEN["prompts"][name],
                BENCHMARK.task(name),
                describe=digest_questions,
            )
            for name in ROWS
        ),
        Comparison("judge", digest_judge_requests, GOLDEN["judge"]),
        Comparison("settings", list_judge_settings, [GOLDEN["settings"]]),
        Comparison(
            "verdicts",
            read_verdicts,
            [
                convert_verdict(name, official)
                for (name, *_), official in zip(
                    judged(), GOLDEN["verdicts"], strict=True
                )
            ],
        ),
    ),
    list_outputs=list_outputs,
)
