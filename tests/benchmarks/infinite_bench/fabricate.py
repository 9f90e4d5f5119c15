"""Fabricates ∞Bench's files, the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.infinite_bench.tasks import CHOICES, ROWS, find_source
from tests.support.fabricate import words, write

ROWS_OF_TASK = 4
RECORD = {"references": ["Ann", "B"]}

_ODD = ("", " {x} {}", "\n\nQuestion: what?\nA. no", " \u2028é\r\n")


def build_infinite_bench(root: Path) -> Path:
    """Write a file of each task."""
    for name in ROWS:
        write(root / find_source(name).path, make_rows(name))
    return root


def make_rows(name: str) -> list[dict[str, Any]]:
    """Return examples of a task, some with characters that a template could misread."""
    rng = random.Random(f"infinite {name}")
    return [
        {"id": number, **_make_row(name, number, rng)} for number in range(ROWS_OF_TASK)
    ]


def _make_row(name: str, number: int, rng: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {
        "context": words(rng, 30) + _ODD[number],
        "input": words(rng, 5) + "?",
        "options": [],
    }
    if name in CHOICES:
        row["options"] = [f"{letter} {words(rng, 2)}" for letter in "wxyz"]
        option = row["options"][number % 4]
        # The hub's files have the option alone or with its letter.
        row["answer"] = (option, [option], [option, "ABCD"[number % 4]], [option])[
            number
        ]
    elif name == "code_run":
        row |= {
            "input": f"Please give me the value of func_{number}(-{number}).",
            "answer": [number - 2],
        }
    elif name == "math_find":
        row |= {
            "input": "The 2nd largest number of the list is: ",
            "answer": [7 if number % 2 else 7.5],
        }
    elif name == "math_calc":
        row |= {
            "context": "1 + 2 - 5 - 3",
            "answer": [1, 3, -2, -5] if number % 2 else [[1, 3, -2, -5]],
        }
    elif name == "kv_retrieval":
        row |= {"answer": words(rng, 1)}
    elif name in ("passkey", "number_string"):
        row |= {"answer": [str(rng.randrange(10**5))]}
    else:
        row["answer"] = [words(rng, 3).upper() for _ in range(1 + number % 2)]
    return row


def score_cases() -> list[dict[str, Any]]:
    """Return odd outputs of each task, each with an official label."""
    rng = random.Random(6)
    labels: dict[str, list[Any]] = {
        "passkey": [["12345"], "0012"],
        "number_string": [["7777777777"]],
        "kv_retrieval": ["ab-12", "x"],
        "longbook_sum_eng": [
            ["The cat sat.\nIt slept on the mat."],
            ["A dog ran.", "The cat sat on a mat."],
        ],
        "longbook_qa_eng": [["the Cat's mat"], ["a", "two cats"], ["The"]],
        "longbook_choice_eng": [["Ann", "B"], ["D", "A"], ["A. Cat", "C"]],
        "longdialogue_qa_eng": [["ANN"], ["BOB", "ANN"], ["ANN LEE"]],
        "longbook_qa_chn": [["张三"], ["《红楼梦》", "红楼 A"], ["a，b"]],
        "code_debug": [["run.func", "B"], ["A", "C"], ["is", "D"]],
        "code_run": [[12], -3, 0],
        "math_calc": [[1, 3, 2], [[1, -3]], [0, 10]],
        "math_find": [[7], [7.5], 0, -7],
    }
    return [
        {"task": name, "label": label, "output": output}
        for name, task_labels in labels.items()
        for label in task_labels
        for output in _odd_outputs(rng, label)
    ]


def _odd_outputs(rng: random.Random, label: Any) -> list[str]:
    texts = [str(text) for text in (label if isinstance(label, list) else [label])]
    first = texts[0]
    last = texts[-1]
    plain = [
        "", " ", "\n", first, last, first.lower(), first.upper(), f" {last}.", f"{last}: {first}", f"The answer is {last}",
        f"The answer is: {last}", f"The answer is:{last}", "The answer is:", "answer:", f"answer: {first}", f"Answer: {last}",
        f"The correct option is: {last}", f"correct option is:\n{first}", f"Option {last}", f"it is: Option {last}.",
        f"is: **{last}**", f"- {last}", f"'{first}'", f"`{last}`", f"{{{first}}}", f"{first}!{last}?", f"It's {first}",
        "A", "B.", "C: no", "BC", "x BC B", "D", "E", f"{last}B", "option is C", "the answer is  B", "ABCD",
        "12", "12.", "1_2", "+12", "-3", "12 cats", "Value: 12", "7", "7.5", "7.0", "007", "7.", "٣", "7,5", "1e5", "٧",
        "[1, 3, 2]", "1 3", "0, 1, 3, 2", "9 1 3", "1", "0 1 -3", "01 03", "5 0 10", "1" * 5000, f"12 {'9' * 5000}",
        "张三", "答案：张三。", "红 楼 梦", "《红楼梦》", "a b", "The cat", "the a an", "a the cats mat", "Two\tcats.", "İ ß",
        "ANN\u2028LEE", "ann", "Ann:", "I think ANN said", "bob.", f"({last})", f"**{last}**", f"{last}\nA", f"A or {last}",
        f"{last} or A", f"I think {last}", f"{last}. I do", f"x\u2028{last}", f"x\r{last} J", f"_{last}_", f"{last}é",
        f"not A\n{last}", f"Mr. {first.title()}s", f"JO{first}", f" {first.lower()} ", f"-{last}", f"option{last}",
    ]  # fmt: skip
    mixed = [
        " ".join(
            rng.choices(
                [*texts, "answer is:", "is:", "B.", "12", "option", "\n", "the"], k=5
            )
        )
        for _ in range(12)
    ]
    return plain + mixed
