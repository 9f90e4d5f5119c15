"""The questions of fresh text have the right answers, fill their lengths, and cannot be answered without their texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.benchmarks.fresh_text.tasks import associations, categories
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Example, Settings, Task
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.endpoints import SimulatedModel, honest

TASKS = {task.name: task for task in find_benchmark("fresh_text").tasks}

KINDS = pytest.mark.parametrize("kind", TASKS)

FUNCTION_WORDS = {
    *(
        "a",
        "the",
        "is",
        "could",
        "which",
        "of",
        "to",
        "at",
        "by",
        "with",
        "for",
        "you",
        "others",
        "people",
        "that",
        "on",
        "in",
    )
}


def draw(
    task: Task,
    length: int = 2048,
    seed: int = 0,
    number: int = 1,
    context: str = "full",
) -> list[Example]:
    """Draw examples of a task, with or without the context."""
    chosen = "none" if context == "none" else "full"
    return [
        *task.load(
            task,
            Settings(length, seed=seed, num_samples=number, context=chosen),
            DataRoot.find("."),
        )
    ]


def score_of(task: Task, example: Example, prediction: str) -> float:
    """Return the score of an answer."""
    return task.scores({"prediction": prediction, "references": example.references})[
        MAIN_METRIC
    ]


@KINDS
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9), length=st.sampled_from([1024, 2048, 5000]))
def test_another_program_finds_the_answers(kind: str, seed: int, length: int) -> None:
    """A program that reads the text finds the answer to every question, and it has the score 1."""
    task = TASKS[kind]
    (example,) = draw(task, length, seed)
    answer, _ = SimulatedModel(honest, skill=1.0).answer(task.prompt(example).messages)
    assert score_of(task, example, answer) == 1


@KINDS
def test_nothing_is_found_without_the_text(kind: str) -> None:
    """Without its text, a prompt has neither the answer nor anything that leads the same program to it."""
    task = TASKS[kind]
    for example in draw(task, number=20, context="none"):
        prompt = task.prompt(example)
        answer, _ = SimulatedModel(honest, skill=1.0).answer(prompt.messages)
        assert score_of(task, example, answer) == 0
        text = " ".join(message["content"] for message in prompt.messages)
        assert not any(reference in text for reference in example.references)


@KINDS
@pytest.mark.parametrize("length", [4096, 32768])
def test_prompts_fill_their_length(kind: str, length: int) -> None:
    """A prompt has 88 to 98 % of the length by the estimate of tokens."""
    task = TASKS[kind]
    messages = task.prompt(draw(task, length)[0]).messages
    assert (
        0.88
        < estimate_tokens("\n".join(message["content"] for message in messages))
        / length
        < 0.98
    )


@KINDS
def test_seeds_make_other_texts(kind: str) -> None:
    """The same seed makes the same prompts, however many there are; another seed or number makes others."""
    task = TASKS[kind]
    prompts = [[*task.prompt(example).messages] for example in draw(task, number=3)]
    assert [*task.prompt(draw(task)[0]).messages] == prompts[0]
    assert [*task.prompt(draw(task, seed=1)[0]).messages] not in prompts
    assert len({str(prompt) for prompt in prompts}) == 3


@KINDS
@settings(max_examples=60, deadline=None)
@given(prediction=st.text(max_size=200) | st.lists(st.integers(0, 10**7)).map(str))
def test_scorers_read_every_answer(kind: str, prediction: str) -> None:
    """Every text has a score in 0…1 of each metric."""
    task = TASKS[kind]
    example = Example("x", {}, ["12", "34", "56", "78", "90"], "generated")
    scores = task.score({"prediction": prediction, "references": example.references})
    assert set(scores) == set(task.metrics)
    assert all(0 <= score <= 1 for score in scores.values())


@pytest.mark.parametrize(
    ("kind", "prediction", "score"),
    [
        ("recall", "12, 34, 0, 78 and 90", 0.8),
        ("graph", "11 -> 12 -> 34 -> 99", 0.4),
        ("graph", "34, 56", 0),
        ("graph", "56 and 12: 12 -> 34", 0.2),
        ("graph", "12 -> 34 -> 12 -> 34 -> 56", 0.4),
        ("graph", "13, 14, 12, 34, 56, 78, 90", 1),
        ("conversation", "12, 34, 78, 56, 90.", 0.6),
        ("paraphrase", "It is 12.", 1),
    ],
)
def test_partial_answers(kind: str, prediction: str, score: float) -> None:
    """A part of an answer has its share."""
    example = Example("x", {}, ["12", "34", "56", "78", "90"], "generated")
    assert score_of(TASKS[kind], example, prediction) == pytest.approx(score)


def test_towns_and_their_number() -> None:
    """The score of counting is the mean of the towns' F1 and of whether the last number is right."""
    example = Example("x", {}, ["Bono", "Tavir", "Lume"], "generated")
    assert score_of(TASKS["count"], example, "Bono, Tavir and Lume\n3") == 1
    assert (
        score_of(TASKS["count"], example, "- Bono\n- Tavir\n- Lume\nNumber: 4") == 0.5
    )
    assert score_of(TASKS["count"], example, "Bono\n3") == pytest.approx((0.5 + 1) / 2)
    assert score_of(TASKS["count"], example, "") == 0


def test_codes_stand_at_their_depths() -> None:
    """The five codes of exact recall stand at the start, the quarters and the end of the text."""
    (example,) = draw(TASKS["recall"], 16384)
    text = example.fields["context"]
    places = [text.index(code) / len(text) for code in example.references]
    assert places == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.02)


def test_questions_share_no_word_with_texts() -> None:
    """No question has a content word of any fact or thing, in any form, so a search for its words finds nothing."""
    said = {stem(word) for fact, _ in associations() for word in words(fact)}
    said |= {
        stem(word)
        for _, things in categories()
        for thing in things
        for word in words(thing)
    }
    for asked in [
        *(asked for _, asked in associations()),
        *(asked for asked, _ in categories()),
    ]:
        assert not {stem(word) for word in words(asked)} & said, asked
    things = [thing for _, every in categories() for thing in every]
    assert len(things) == len(set(things))
    assert (
        len({fact for fact, _ in associations()})
        == len({asked for _, asked in associations()})
        == len(associations())
    )


@KINDS
def test_a_question_is_the_same_at_each_length_and_in_each_text(kind: str) -> None:
    """A seed asks the same questions at each length, and with `texts` in several texts, so that answers are paired."""
    task = TASKS[kind]
    short = draw(task, 2048, 3, 2)
    long = draw(task, 4096, 3, 2)
    several = [
        *task.load(
            task, Settings(2048, seed=3, texts=3, num_samples=6), DataRoot.find(".")
        )
    ]
    assert [example.references for example in short] == [
        example.references for example in long
    ]
    assert [example.references for example in several] == [
        short[number // 3].references for number in range(6)
    ]
    assert [example.group for example in several] == [
        short[number // 3].id for number in range(6)
    ]
    assert (
        len({str(task.prompt(example).messages) for example in several})
        == len({example.id for example in several})
        == 6
    )


@KINDS
def test_asked_words_are_as_frequent_as_others(kind: str) -> None:
    """No word of what is asked for is rare in a long text, so a search for rare words does not find the answer."""
    task = TASKS[kind]
    (example,) = draw(task, 262144 if kind == "conversation" else 32768, 1)
    text = "\n".join(
        message["content"] for message in task.prompt(example).messages
    ).lower()
    used = [
        text.count(word)
        for fact, _ in associations()
        for word in words(fact)
        if len(word) > 5
    ]
    used += [text.count(f" {thing}") for _, things in categories() for thing in things]
    assert min(used) >= 2


def words(text: str) -> set[str]:
    """Return the words of a text that are not function words, in lower case."""
    return set(re.findall("[a-z]+", text.lower())) - FUNCTION_WORDS


def stem(word: str) -> str:
    """Return the first four letters, so that forms of a word are equal."""
    return word[:4]
