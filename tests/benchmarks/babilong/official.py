"""Prompts and scores of the official code (golden_makers/babilong.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.babilong.tasks import BABILONG
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.babilong.fabricate import build_babilong, score_cases
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    digest_user_turns,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
SUFFIX = {"full": "", "no examples": "", "instruction": "_instruction", "bare": "_bare"}
"""The end of a task's name, by the parts of the prompt that are sent."""


def digest_prompts(sent: str) -> Callable[[DataRoot], dict[str, str]]:
    """Return a function that makes prompts with some parts, and returns a digest of each task and length."""
    shots = 0 if sent == "no examples" else None

    def compute(root: DataRoot) -> dict[str, str]:
        digests = {}
        for case in list_cases(sent):
            name, length, _ = case.split(maxsplit=2)
            task = BABILONG.task(name + SUFFIX[sent])
            settings = Settings(parse_length(length), shots=shots)
            examples = load_examples(task, settings, root)
            digests[case] = digest_user_turns(task, settings, examples)
        return digests

    return compute


def list_cases(sent: str) -> dict[str, str]:
    """Return the official digests of the prompts with some parts, by task and length."""
    return {
        case: official
        for case, official in GOLDEN["prompts"].items()
        if case.split(maxsplit=2)[2] == sent
    }


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs, each of which is right or wrong."""
    for case, official in zip(score_cases(), GOLDEN["scores"], strict=True):
        record = {
            "prediction": case["output"],
            "references": [case["target"]],
            "question": case["question"],
        }
        yield ScoredOutput(case["task"], record, {"accuracy": int(official)})


GOLDEN_CASES = GoldenCases(
    benchmark=BABILONG,
    build=build_babilong,
    comparisons=tuple(
        Comparison(sent, digest_prompts(sent), list_cases(sent)) for sent in SUFFIX
    ),
    list_outputs=list_outputs,
)
