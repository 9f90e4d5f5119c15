"""Corrected prompts and scores of the official code (golden_makers/graphwalks.py)."""

from __future__ import annotations

from collections.abc import Iterator

from helm_longctx.benchmarks.graphwalks import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.graphwalks.fabricate import LENGTHS, build_graphwalks, records
from tests.golden_makers.graphwalks import digest_prompt
from tests.support.golden_cases import Comparison, GoldenCases, ScoredOutput
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
METRICS = ("f1", "f1_card", "f1_card_2026")


def digest_corrected(root: DataRoot) -> list[str]:
    """Return a digest of each prompt with NVIDIA's corrections."""
    digests = []
    for name in ("openai_bfs_corrected", "openai_parents_corrected"):
        for length in LENGTHS.values():
            task = BENCHMARK.task(name)
            for example in load_examples(task, Settings(length), root):
                digests.append(digest_prompt(example.messages[0]["content"]))
    return digests


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs with OpenAI's F1 and those of both model cards."""
    scores = zip(*(GOLDEN[metric] for metric in METRICS), strict=True)
    for record, official in zip(records(), scores, strict=True):
        metrics = dict(zip(METRICS, official, strict=True))
        yield ScoredOutput("openai_bfs", record, metrics)


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_graphwalks,
    comparisons=(Comparison("prompts", digest_corrected, GOLDEN["prompts"]),),
    list_outputs=list_outputs,
)
