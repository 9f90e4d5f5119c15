"""Prompts, answers and scores of the official code (golden_makers/infinite_bench.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.infinite_bench.tasks import (
    INFINITE_BENCH,
    ROWS,
    read_answers,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.infinite_bench.fabricate import build_infinite_bench, score_cases
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    compare_examples,
    join_comparisons,
)
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SUFFIX = {"gpt4": "", "yarn-mistral": "_base", "claude2": "_claude"}
"""The end of a task's name, by the model whose prompts the official code makes."""
SCORERS = {"2024-06": "scores", "2024-08": "scores_later", "": "scores_later"}
"""The key of the official scores, by the value of `scorer=`."""


def digest_turns(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of the roles and texts of all messages."""
    system = task.variant(settings).system
    texts = []
    for example in examples:
        for turn in task.prompt(example, system).messages:
            texts += [turn["role"], turn["content"]]
    return digest(texts)


def list_references(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[list[str]]:
    """Return the accepted answers of each example, as they are compared with the official ones."""
    return [example.references for example in examples]


def compare_rows() -> Iterator[Comparison]:
    """Yield the prompts for three models, and the answers."""
    for name in ROWS:
        answers = [read_answers(name, answer, "") for answer in GOLDEN["answers"][name]]
        for model, suffix in SUFFIX.items():
            task = INFINITE_BENCH.task(name + suffix)
            case = f"{name} {model}"
            prompts = GOLDEN["prompts"][case]
            yield compare_examples(case, prompts, task, describe=digest_turns)
            yield compare_examples(
                f"{case} answers", answers, task, describe=list_references
            )


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with the scores of both official scorers; where the official code fails, the score is 0."""
    scored = []
    for case in score_cases():
        scored.append((case["task"], case))
        if case["task"] == "math_calc":
            scored.append(("math_calc_base", case))
    for scorer, key in SCORERS.items():
        settings = Settings(None, scorer=scorer)
        for (name, case), official in zip(scored, GOLDEN[key], strict=True):
            record = {
                "prediction": case["output"],
                "references": read_answers(case["task"], case["label"], ""),
                **INFINITE_BENCH.task(name).record_fields(settings),
            }
            score = 0 if official == "ValueError" else official
            yield ScoredOutput(name, record, {"longctx_score": score})


GOLDEN_CASES = GoldenCases(
    benchmark=INFINITE_BENCH,
    build=build_infinite_bench,
    comparisons=join_comparisons(compare_rows(), words=1),
    list_outputs=list_outputs,
)
