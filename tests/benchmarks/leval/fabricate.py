"""Fabricate L-Eval's files and odd outputs, which are the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.leval.tasks import DATASETS, MEASURES, LEvalTask
from tests.support.fabricate_words import words, write

DOCUMENTS = 4
QUESTIONS = 5
RECORD = {"prediction": "The answer is 12. True"}
ANSWERS = {
    "gsm100": (
        "The answer is 18.",
        "So 3 and\nThe answer is 1200. ",
        "2.5 The answer is 7",
    ),
    "codeU": ("[1, 2.0, 'x']", "3", "True", "[[1], [2]]", "a\\b c"),
    "sci_fi": ("True [fact: False]", "False [fact: False]", "False [fact: True]"),
    "topic_retrieval_longchat": ("The benefits of yoga", "Space Travel", "12"),
    "coursera": ("A", "BC", "ABD", "ACD."),
}
OUTPUTS = (
    *("{right}", "", "A", "AB", "BA", "C.", "Answer: {right}", "A, B and C.", "I think B", "none", "D) x Question: A) y"),
    "b", "The answer is {right}.", "The answer is $18.00", "18", "It is 1,200 apples.\n\n7", "no digits", "3 x\n\n4",
    "the final output is {right} indeed so", "will be {right}", "True", "It is false, not true", "untrue", "{right} [x]",
    *("The Benefits of  Yoga!", "ACB", "Both ABC and D", "an A", "1e2", "E. or F)", " {right}\n", "Cats", "BB"),
)  # fmt: skip


def build_leval(root: Path) -> Path:
    """Write the files of all tasks."""
    for dataset in DATASETS:
        write(root / dataset.source.path, rows(dataset))
    return root


def rows(dataset: LEvalTask) -> list[dict[str, Any]]:
    """Return the rows of a task's file, of which one is for a judge."""
    rng = random.Random(dataset.name)
    made = [
        {
            "input": f"{words(rng, 60)}\n{{x}}",
            "instructions": [_question(rng, dataset.name) for _ in range(QUESTIONS)],
            "outputs": [_answer(rng, dataset.name) for _ in range(QUESTIONS)],
            "source": "x",
            "evaluation": MEASURES[dataset.metric],
        }
        for _ in range(DOCUMENTS)
    ]
    return [made[0], {**made[1], "evaluation": "LLM"}, *made[1:]]


def _question(rng: random.Random, name: str) -> str:
    ending = (
        " Answer this question based on the world described in the document."
        if name == "sci_fi"
        else ""
    )
    return f"{words(rng, 5)} True or False?{ending}"


def _answer(rng: random.Random, name: str) -> str:
    return rng.choice(
        ANSWERS.get(name)
        or (
            ("A", "B", "D")
            if name in ("tpo", "quality")
            else (words(rng, 3), words(rng, 30))
        )
    )


def outputs() -> list[tuple[str, str, str]]:
    """Return tasks, answers and odd outputs."""
    rng = random.Random(1)
    made = [
        (
            dataset.name,
            answer,
            output.replace("{right}", rng.choice((answer, answer.lower()))),
        )
        for dataset in DATASETS
        for answer in [_answer(rng, dataset.name) for _ in range(5)]
        for output in (*OUTPUTS, f"{answer} {words(rng, 4)}")
    ]
    # The official code would take this text for the start of the answer to the second question.
    return [
        (name, answer, output.replace("[fact:", "and")) for name, answer, output in made
    ]
