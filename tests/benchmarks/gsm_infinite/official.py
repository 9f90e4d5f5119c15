"""Problems, prompts and scores of the official code (golden_makers/gsm_infinite.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.gsm_infinite import BENCHMARK
from helm_longctx.benchmarks.gsm_infinite.tasks import JUDGEMENT
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.gsm_infinite.fabricate import (
    CASES,
    SEEDS,
    build_gsm_infinite,
    extractions,
    numbers,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SYMBOLIC, MEDIUM, _ = BENCHMARK.tasks


def digest_problems(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of each problem: its operations, prompt, value and variables."""
    problems = []
    for example in examples:
        parts = [
            int(example.id.split("-")[0]),
            task.prompt(example).messages[0]["content"],
            example.record["value"],
            example.references,
        ]
        problems.append(json.dumps(parts))
    assert len(problems) == settings.num_samples
    return digest(problems)


def digest_selected(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of the problems with fewer than five operations."""
    messages = []
    for example in examples:
        if int(example.id.split("-")[0]) < 5:
            messages.append(json.dumps([dict(turn) for turn in example.messages]))
    return digest(messages)


def compare_problems() -> Iterator[Comparison]:
    """Yield the problems that the official script draws with the same seeds, and those that it selects from files."""
    for case, (length, most, problems) in CASES.items():
        for seed in SEEDS:
            name = f"{case} {seed}"
            settings = Settings(length, seed=seed, num_samples=most * problems)
            yield compare_examples(
                name, GOLDEN["drawn"][name], SYMBOLIC, settings, digest_problems
            )
    yield compare_examples(
        "selected", GOLDEN["selected"], MEDIUM, Settings(8192), digest_selected
    )


def digest_extractions(root: DataRoot) -> str:
    """Return a digest of what the extractor is asked."""
    prompts = []
    for output, value, variables, _ in extractions():
        record = {"prediction": output, "value": value, "references": variables}
        prompts.append(str(JUDGEMENT.prompts(record)))
    return digest(prompts)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with a number, and replies of the extractor, which also stand in the last line of an output.

    An output where the official code fails is left out.
    """
    for (output, number), official in zip(numbers(), GOLDEN["scores"], strict=True):
        if official is not None:
            record = {"prediction": output, "references": [str(number)]}
            yield ScoredOutput(MEDIUM.name, record, {"accuracy": official})
    replies = zip(extractions(), GOLDEN["verdicts"], strict=True)
    for (_, value, variables, reply), official in replies:
        record = {
            "prediction": f"x\n{reply}\n",
            "value": value,
            "references": variables,
            "judge": reply,
        }
        metrics = {"judge_score": official, "last_line_accuracy": official}
        yield ScoredOutput(SYMBOLIC.name, record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_gsm_infinite,
    comparisons=(
        *compare_problems(),
        Comparison("extraction", digest_extractions, GOLDEN["extraction"]),
    ),
    list_outputs=list_outputs,
)
