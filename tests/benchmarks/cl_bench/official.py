"""Requests, the judge's requests and grades of the official code (golden_makers/cl_bench.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.cl_bench import BENCHMARK
from helm_longctx.benchmarks.cl_bench.tasks import judge_prompt
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.cl_bench.fabricate import ROWS, answers, build_cl_bench
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    digest_messages,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SETTINGS = Settings(None, num_samples=max(ROWS.values()))
GRADES = {"0": 0.0, "1": 1.0, "-": None}


def find_golden(task: Task) -> dict[str, str]:
    """Return what the golden file has of a task's file."""
    (path,) = task.paths(None)
    return GOLDEN[path]


def digest_judge_prompts(task: Task) -> Callable[[DataRoot], str]:
    """Return a function that returns a digest of what the judge is asked, which is nothing about a silent answer."""

    def compute(root: DataRoot) -> str:
        asked = []
        examples = load_examples(task, SETTINGS, root)
        for example, (answer, _) in zip(examples, answers(), strict=False):
            prompt = judge_prompt({**example.record, "prediction": answer})
            if isinstance(prompt, str):
                asked.append(prompt)
        return digest(asked)

    return compute


def compare_requests() -> Iterator[Comparison]:
    """Yield the messages to the model and to the judge."""
    for task in BENCHMARK.tasks:
        golden = find_golden(task)
        yield compare_examples(
            task.name, golden["prompts"], task, SETTINGS, digest_messages
        )
        asked = digest_judge_prompts(task)
        yield Comparison(f"{task.name} judge", asked, golden["judge"])


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd replies of the judge with their grades."""
    for task in BENCHMARK.tasks:
        examples = list(load_examples(task, SETTINGS, root))
        grades = find_golden(task)["grades"]
        assert len(grades) == len(examples)
        own_answers = zip(answers(), examples, grades, strict=False)
        for (answer, reply), example, grade in own_answers:
            record = {**example.record, "prediction": answer, "references": []}
            # A silent answer is judged without a question.
            record["judge"] = reply if judge_prompt(record) else {}
            yield ScoredOutput(task.name, record, {"judge_score": GRADES[grade]})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_cl_bench,
    comparisons=tuple(compare_requests()),
    list_outputs=list_outputs,
)
