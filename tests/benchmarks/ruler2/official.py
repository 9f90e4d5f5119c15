"""Samples and scores of the official code (golden_makers/ruler2.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from helm_longctx.benchmarks.ruler2 import tasks
from helm_longctx.benchmarks.ruler2.tasks import RULER2
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.ruler.fabricate import counter
from tests.benchmarks.ruler2.fabricate import build_ruler2, letter_cases, match_cases
from tests.golden_makers.ruler2 import digest_row
from tests.support.golden_cases import Comparison, GoldenCases, compare_examples
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_rows(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> list[str]:
    """Return a digest of each sample: its prompt and its answers."""
    digests = []
    for example in examples:
        prompt = task.prompt(example)
        assert prompt.text("completion") == prompt.text("chat")
        digests.append(digest_row(prompt.text("chat"), example.references))
    return digests


def compare_samples() -> Iterator[Comparison]:
    """Yield the samples of all tasks with several tokenizers."""
    for case, official in GOLDEN["samples"].items():
        kind, length, seed, name = case.split()
        settings = Settings(
            int(length),
            seed=int(seed),
            num_samples=len(official),
            counter=counter(kind),
        )
        yield compare_examples(case, official, RULER2.task(name), settings, digest_rows)


def match_outputs(root: DataRoot) -> list[list[float]]:
    """Return the scores of odd outputs, each compared in three ways."""
    return [
        [tasks.match_all(*case), tasks.match_part(*case), tasks.match_last(*case)]
        for case in match_cases()
    ]


def read_letters(root: DataRoot) -> list[str | None]:
    """Return the letters in odd outputs."""
    return [tasks.read_letter(text) for text in letter_cases()]


GOLDEN_CASES = GoldenCases(
    benchmark=RULER2,
    build=build_ruler2,
    comparisons=(
        *compare_samples(),
        Comparison("matches", match_outputs, GOLDEN["matches"]),
        Comparison("letters", read_letters, GOLDEN["letters"]),
    ),
)
