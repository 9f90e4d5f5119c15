"""Prompts, the judge's prompts and verdicts of the official code (golden_makers/aa_lcr.py)."""

from __future__ import annotations

from helm_longctx.benchmarks.aa_lcr import BENCHMARK
from helm_longctx.benchmarks.aa_lcr.tasks import judge_prompt, read_verdict
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.aa_lcr.fabricate import build_aa_lcr, candidates, replies
from tests.support.golden_cases import Comparison, GoldenCases, compare_examples
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("questions")


def digest_judge_prompts(root: DataRoot) -> str:
    """Return a digest of the judge's prompts for odd answers."""
    examples = load_examples(TASK, Settings(None), root)
    asked = []
    for example, candidate in zip(examples, candidates(), strict=True):
        record = {
            **example.fields,
            "references": example.references,
            "prediction": candidate,
        }
        asked.append(judge_prompt(record))
    return digest(asked)


def read_verdicts(root: DataRoot) -> list[list[float | None]]:
    """Return the verdicts of odd replies, for each repeat."""
    return [
        [read_verdict(reply).get("judge_score") for reply in repeat]
        for repeat in replies()
    ]


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_aa_lcr,
    comparisons=(
        compare_examples("prompts", GOLDEN["prompts"], TASK),
        Comparison("judge", digest_judge_prompts, GOLDEN["judge_prompts"]),
        Comparison("verdicts", read_verdicts, GOLDEN["verdicts"]),
    ),
)
