"""Fabricate LongCodeQA's files and odd answers, which are the same on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longcodebench.tasks import SAMPLES, source_of
from tests.support.fabricate_words import words

REPOSITORIES = 4
QUESTIONS = 10
RECORD = {"prediction": "Final Answer: B", "references": ["B"]}
GOAL = (
    "You are going to be provided the content of a\nrepository and a question about it. Provide the answer to the "
    "question by\nstating ONLY the letter associated to the question."
)
ANSWERS = (
    *("{right}", "{wrong}", " {right}) ", "{right}.", "({right})", "**{right}**", "{right}\n", "option {right}", "", "{}"),
    *("Final Answer: {right}", "final answer:{right}x", "Final Answer: {wrong}. No: Final Answer: {right}", "D) is a plan {right}"),
    "Final Answer:\n\n{right}", "Answer: {right}", "It is {right} because of a", "E", "Final Answer: E {right}", "\u00e9{right}",
    "_{right}", "x{right}", "The answer is b", "{right} {wrong}", "Final Answer: [{right}]", "aFinal Answer: {right}\nA",
)  # fmt: skip
BOXED = (
    "\\boxed{{right}}", "Answer: \\boxed{{right}}", "\\boxed{{wrong}} no \\boxed{{right}}", "\\boxed{ {right} }",
    *("\\boxed{\\text{{right}}}", "\\boxed{\\text{ \\text{{right}} }}", "\\boxed{{right}: because}", "\\boxed{{right}) x}"),
    "\\boxed{({right})}", "\\boxed{[{right}]}", "\\boxed{{right}", "\\boxed{{right}. coli}", "\\boxed{E}", "\\boxed{}",
    "\\boxed{a}", "{right}", "", "\\boxed{{right}}}", "\\boxed{{{right}}}", "\\boxed{A or B}", "\\boxed{{right}-x}",
    "\\boxed{\\textbf{{right}}}", "\\boxed{1{right}2}", "\\boxed{{right}\n}", "\\boxed{é{right}}", "\\boxed {{right}}",
)  # fmt: skip


def build_longcodebench(root: Path) -> Path:
    """Write the files of all lengths."""
    for length in SAMPLES:
        path = root / source_of(length).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            json.dumps(rows(length), indent=4, ensure_ascii=length % 3 == 0),
            encoding="utf-8",
        )
    return root


def rows(length: int) -> list[dict[str, Any]]:
    """Return the rows of a length."""
    rng = random.Random(length)
    return [
        row
        for number in range(REPOSITORIES)
        for row in _rows(rng, f"owner/repository{number}")
    ]


def _rows(rng: random.Random, name: str) -> Iterator[dict[str, Any]]:
    text = "Repository:\n" + "".join(
        f"[start of {file}.py]\n{words(rng, 30)}\n[end of {file}.py]\n"
        for file in range(3)
    )
    for number in range(QUESTIONS):
        options = "".join(f"{letter}) {words(rng, 4)}\n" for letter in "ABCD")
        question = f"Question:\n{words(rng, 6)}?\n{options}"
        # The order of the last one is another form of the official code, `post`.
        prompts = (
            f"{GOAL}\nRepository: {text}\n{question}",
            f" {text}\n{GOAL}\n{question}",
        )
        yield {
            "prompt": prompts[number % QUESTIONS == QUESTIONS - 1],
            "repo": name,
            "question": question,
            "correct_letter": rng.choice("ABCD"),
            "repo_text": text,
            "prompt_goal": GOAL,
            "is_hard": "Yes",
        }


def answers(right: str, boxed: bool) -> list[str]:
    """Return odd answers to a question."""
    wrong = "ABCD"[("ABCD".index(right) + 1) % 4]
    return [
        text.replace("{right}", right).replace("{wrong}", wrong)
        for text in (BOXED if boxed else ANSWERS)
    ]
