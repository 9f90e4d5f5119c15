"""No program that searches the words of the question gets a certificate, whichever kinds it tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from statistics import fmean
from typing import NamedTuple

import pytest

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.procedure import run
from helm_longctx.apps.certify.search import Design
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings
from tests.support.certifying import KINDS, ask_prompts
from tests.support.searching import SEARCHES, SearchingModel

SHORTEST = 4096
CLAIM = 32768

EACH_AND_ALL = [*((kind,) for kind in KINDS), KINDS]


class Question(NamedTuple):
    """A prompt, and its right answers."""

    messages: Sequence[Mapping[str, str]]
    references: Sequence[str]


@cache
def load_questions(kind: str, length: int, number: int) -> list[Question]:
    """Return real prompts of a kind, each with what scores an answer to it."""
    task = find_benchmark("fresh_text").task(kind)
    settings = Settings(length, seed=4, num_samples=number)
    questions = []
    for example in task.load(task, settings, DataRoot.find(".")):
        question = Question(task.prompt(example).messages, example.references)
        questions.append(question)
    return questions


def read(search: str, kind: str, length: int, number: int) -> list[float]:
    """Return the scores of a search that reads real prompts of a kind."""
    task = find_benchmark("fresh_text").task(kind)
    model = SearchingModel(search, [kind])
    scores = []
    for question in load_questions(kind, length, number):
        answer, _ = model.answer(question.messages)
        given = {"prediction": answer, "references": question.references}
        scores.append(task.scores(given)[MAIN_METRIC])
    return scores


@pytest.fixture(scope="module", params=SEARCHES)
def scores(request: pytest.FixtureRequest) -> dict[tuple[str, int], list[float]]:
    """The scores of each kind at both lengths."""
    pairs = ((SHORTEST, 16), (CLAIM, 6))
    return {
        (kind, length): read(request.param, kind, length, number)
        for kind in KINDS
        for length, number in pairs
    }


def test_a_search_scores_little_in_long_texts(
    scores: dict[tuple[str, int], list[float]],
) -> None:
    """A search that reads 1,900 tokens finds no more of a text of 32k than about what these tokens have by chance."""
    assert fmean(fmean(scores[kind, CLAIM]) for kind in KINDS) < 0.12


@pytest.mark.parametrize("tried", EACH_AND_ALL, ids="+".join)
def test_no_search_is_certified(
    scores: dict[tuple[str, int], list[float]], tried: Sequence[str]
) -> None:
    """A search that tries one kind or all is certified for 32k with none of 20 seeds, by scores that real prompts gave."""
    for seed in range(20):
        random = Random(seed)

        def reply(block: AskedBlock, random: Random = random) -> KeptReply:
            is_tried = block.has_text and block.kind in tried
            length = SHORTEST if block.length == SHORTEST else CLAIM
            return KeptReply(
                random.choice(scores[block.kind, length]) if is_tried else 0.0,
                sent=block.length,
            )

        design = Design(CLAIM, SHORTEST, KINDS, seed=1000 * seed)
        outcome = run(
            design,
            lambda blocks, reply=reply: [
                Answered(block, [reply(block)] * block.count) for block in blocks
            ],
        )
        assert outcome.holds is not True


@pytest.mark.parametrize(
    ("search", "tried"), [("regular expressions", ("recall",)), ("BM25", KINDS)]
)
def test_no_search_is_certified_by_real_prompts(
    search: str, tried: Sequence[str]
) -> None:
    """A search that reads 475 tokens of real prompts of 1k and 8k is not certified for 8k."""
    model = SearchingModel(search, tried, tokens=475)
    outcome = run(
        Design(8192, 1024, KINDS, most=40, texts=3, seed=3000), ask_prompts(model, [])
    )
    assert outcome.holds is not True
