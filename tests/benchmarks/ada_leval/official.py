"""Prompts and scores of the official code (golden_makers/ada_leval.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from helm_longctx.benchmarks.ada_leval import BENCHMARK
from helm_longctx.benchmarks.ada_leval.tasks import file_of
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import ProtocolArgument, Settings, Task
from tests.benchmarks.ada_leval.fabricate import (
    ROWS,
    SEEDS,
    build_ada_leval,
    choice_records,
    fingerprint,
    order_records,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    join_comparisons,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
BEST_ANSWER, TSORT = BENCHMARK.tasks
MODES: dict[ProtocolArgument, str] = {"paper": "normal", "api": "less"}


def build_seeds(root: DataRoot) -> None:
    """Write the files of each seed into a folder of its own."""
    for seed in SEEDS:
        build_ada_leval(root / str(seed), seed)


def parse_answer(answer: Any) -> Any:
    """Return the answer of a row of TSort; some rows have it as text, which the official code parses when it scores."""
    return json.loads(answer) if isinstance(answer, str) else answer


def digest_rows(
    task: Task, settings: Settings, seed: int
) -> Callable[[DataRoot], list[Any]]:
    """Return a function that returns the short form of the names, prompts and answers, with their order."""

    def compute(root: DataRoot) -> list[Any]:
        folder = DataRoot(root / str(seed), mirror=True)
        file = folder / file_of(task.name, settings.level).path
        rows = json.loads(file.read_text(encoding="utf-8"))
        examples = []
        loaded = load_examples(task, settings, folder)
        for example, row in zip(loaded, rows, strict=False):
            (answer,) = example.references
            prompt = task.prompt(example)
            assert prompt.has_one_turn
            if task is TSORT:
                assert json.loads(answer) == parse_answer(row["answer"])
                answer = row["answer"]
            # The second row with a name gets a number here; in the official code both rows share the name.
            name = example.id.partition("-")[0]
            examples.append((name, prompt.user_turn, answer))
        return fingerprint(examples)

    return compute


def compare_rows() -> Iterator[Comparison]:
    """Yield the rows of both tasks at several lengths, for both protocols."""
    for seed in SEEDS:
        for length in ROWS:
            for protocol, mode in MODES.items():
                settings = Settings(length, protocol=protocol)
                for task in BENCHMARK.tasks:
                    name = f"{task.name} {length_label(length)} {mode} {seed}"
                    rows = digest_rows(task, settings, seed)
                    yield Comparison(name, rows, GOLDEN["rows"][name])


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs; where the official code ends in an error, the score is 0."""
    choices = zip(choice_records(), GOLDEN["choices"], strict=True)
    for record, official in choices:
        scored = {**record, "references": [record["answer"]]}
        yield ScoredOutput(BEST_ANSWER.name, scored, {"accuracy": official})
    for record, official in zip(order_records(), GOLDEN["orders"], strict=True):
        scored = {**record, "order": record["answer"]}
        yield ScoredOutput(TSORT.name, scored, {"accuracy": official or 0.0})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_seeds,
    comparisons=join_comparisons(compare_rows(), words=3),
    list_outputs=list_outputs,
)
