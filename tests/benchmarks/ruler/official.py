"""Samples of the official scripts from the same texts and tokenizers (golden_makers/ruler.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.ruler.fabricate import build_sources, counter
from tests.golden_makers.ruler import digest_row
from tests.support.golden_cases import Comparison, GoldenCases, compare_examples
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_rows(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[str]:
    """Return a digest of each sample: its prompt, the start of the answer, and the answers."""
    digests = []
    for example in examples:
        prompt = task.prompt(example)
        text = prompt.text("chat")
        assert prompt.text("completion") == text + prompt.answer_prefix
        digests.append(digest_row(text, prompt.answer_prefix, example.references))
    return digests


def compare_samples() -> Iterator[Comparison]:
    """Yield the samples of all tasks with several tokenizers."""
    for case, official in GOLDEN.items():
        kind, length, seed, name = case.split()
        settings = Settings(
            length=int(length),
            seed=int(seed),
            num_samples=len(official),
            counter=counter(kind),
        )
        yield compare_examples(
            case, official, BENCHMARK.task(name), settings, digest_rows
        )


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_sources,
    comparisons=tuple(compare_samples()),
)
