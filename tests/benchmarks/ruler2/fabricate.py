"""Fabricates the rows of MMLU and HotpotQA that RULER v2's tasks are made of, and odd outputs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.ruler2.tasks import HOTPOTQA, MMLU, RULER2
from tests.support.fabricate import words, write

TASKS = tuple(task.name for task in RULER2.tasks)
CASES = [
    ("byte_level", 6000, 42, 3, TASKS),
    (
        "nfkc",
        4096,
        7,
        2,
        [
            "mk_niah_easy",
            "mk_niah_hard",
            "mv_niah_basic",
            "mv_niah_easy",
            "mv_niah_medium",
            "qa_easy",
        ],
    ),
    (
        "metaspace",
        12000,
        1,
        2,
        ["mk_niah_basic", "mk_niah_medium", "mv_niah_hard", "qa_basic", "qa_hard"],
    ),
]
"""Tokenizer, length, seed, number of samples, and tasks."""

RECORD = {"prediction": "\\boxed{A}", "references": ["A"]}


def build_ruler2(root: Path) -> Path:
    """Write the rows of both data sets."""
    for source, rows in ((MMLU, mmlu_rows()), (HOTPOTQA, hotpotqa_rows())):
        for path, split in zip(source.paths, source.splits, strict=True):
            write(root / path, rows[split])
    return root


def mmlu_rows() -> dict[str, list[dict[str, Any]]]:
    """Return rows of both splits, some with white space that the official code joins."""
    rng = random.Random(2)

    def make(number: int) -> dict[str, Any]:
        text = words(rng, rng.randint(4, 12)) + (
            "?\n\n  See\tbelow. " if number % 5 == 0 else "?"
        )
        return {
            "question": text,
            "choices": [words(rng, rng.randint(1, 3)) for _ in range(4)],
            "answer": number % 4,
        }

    return {
        "test": [make(n) for n in range(9)],
        "auxiliary_train": [make(n) for n in range(40)],
    }


def hotpotqa_rows() -> dict[str, list[dict[str, Any]]]:
    """Return rows of both splits. Some paragraphs stand in several rows."""
    rng = random.Random(3)
    titles = [f"{words(rng, 2)} {number}" for number in range(40)]
    texts = {
        title: [f"{words(rng, rng.randint(3, 9))}. ", f"{words(rng, 6)}."][
            : 1 + len(title) % 2
        ]
        for title in titles
    }

    def make(number: int) -> dict[str, Any]:
        chosen = rng.sample(titles, 6)
        return {
            "id": f"row {number}",
            "question": f"{words(rng, 7)}?",
            "answer": words(rng, 2),
            "supporting_facts": {
                "title": [*chosen[1:3], chosen[1]],
                "sent_id": [0, 0, 1],
            },
            "context": {
                "title": chosen,
                "sentences": [texts[title] for title in chosen],
            },
        }

    return {
        "train": [make(n) for n in range(7)],
        "validation": [make(n) for n in range(5)],
    }


def match_cases() -> list[tuple[str, list[str]]]:
    """Return outputs with references for the three ways to match."""
    rng = random.Random(4)
    references = [["1234567890"], ["12", "34", "56"], ["The cat sat on the mat. A. x B. y"], ["Ada Lovelace", "Ada"], ["yes"], [""], [" \n"],
                  ["one two three four five six seven eight nine ten"], ["7654321", "1111111"], ["İstanbul ß"]]  # fmt: skip
    outputs = []
    for reference in references:
        first = reference[0]
        last = reference[-1]
        mixed = [
            " ".join(
                rng.choices([*first.split(), "the", "a", "x"], k=rng.randint(1, 14))
            )
            for _ in range(25)
        ]
        outputs += [
            ("", reference), (first, reference), (last.upper(), reference), (f"{first}\n\n{last}", reference), (f"{last}\n\nno", reference), (f"x {first} y", reference),
            (f"Document 12: t\n{first}\n\nIt is {last}", reference), (f"Document 12:\n{first}\n", reference), (f"Document 1:\na\n\nDocument 2:\n{last}\n\n", reference),
            (" ".join(first.split()[:-1]), reference), (" ".join(first.split()[1:]) + " x", reference), (first.replace(" ", "\n\n"), reference),
            (first * 3, reference), ("word " * 400 + last[:-1], reference), ("\x01" + first + "\x1f", reference), *((text, reference) for text in mixed),
        ]  # fmt: skip
    return outputs


def letter_cases() -> list[str]:
    """Return outputs that may give a letter."""
    texts = [
        "A",
        "b",
        "C.",
        "(D)",
        "A or B",
        "AB",
        "",
        " ",
        "E",
        "5",
        "\\text{C}",
        "{B}",
        "ب",
        "Ｃ",
        "ঢ",
        "أ B",
        "option b",
        "x A y",
        "ß",
        "A\nB",
    ]
    forms = ["{}", "\\boxed{{{}}}", "\\boxed{{{}", "\\boxed {{{}}}", "The final answer is {}", "The final answer is {}.\nThe final answer is B", "Answer: {}",
             "**Answer**: {}", "answer :\n{}", "Answer: {}x", "The answer is {}", "\\boxed{{A}} \\boxed{{{}}}", "\\boxed{{{}}} }} x \\boxed", "\\fboxed{{{}}}",
             "The final answer is\n{}", "Answer: A Answer: {}", "}} \\boxed{{{}}}", "The final answer is $\\boxed{{{}}}$"]  # fmt: skip
    return [form.format(text) for form in forms for text in texts]
