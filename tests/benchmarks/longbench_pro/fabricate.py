"""Fabricates LongBench Pro's file and odd outputs, the same on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.longbench_pro.tasks import SIZES, SOURCE, TASKS
from helm_longctx.tasks.lengths import length_label
from tests.support.fabricate import words

LENGTHS = tuple(map(length_label, SIZES))
DIFFICULTIES = ("Easy", "Moderate", "Hard", "Extreme")
RECORD = {
    "prediction": "[Answer]\nA",
    "language": "English",
    "difficulty": "Hard",
    "similarity": {"value": 0.7},
}

LIMITS = {
    "bpe 99999": 99_999,
    "bpe 301": 301,
    "metaspace 150": 150,
    "metaspace 151": 151,
}
"""The most tokens of a prompt by the name of the case, which begins with the tokenizer."""

_ODD = (
    "",
    "\n\n\n\nnot yet",
    " \u2028é\r\n\t",
    "{context} {question}",
    "<|im_end|>",
    "“naïve” 北京",
)
_LINES = (
    "Ann",
    "ann ",
    " ANN",
    "Bo  Li",
    "bo li",
    "",
    "3",
    "答案",
    "Straße",
    "İx",
    "[1]",
    "B.",
    "x" * 60,
)
_JOINS = ("\n", "\n", "\n", "\r\n", " \n\t", "\n\n", "\u2028", ", ")
_STARTS = (
    "[Answer]\n",
    "[答案]\n",
    "",
    "[Answer] ",
    "I think\n[Answer]\nno\n[Answer]\n",
    "[答案]x[Answer]\n",
    "[answer]\n",
)
_SENTENCES = (
    "the cat sat on the mat",
    "A dog ran.",
    "rain fell in Rome. then sun",
    "北京今天下雨了。",
    "...",
    ".",
    "他说“好”。",
)


def build_longbench_pro(root: Path) -> Path:
    """Write the data set's only file, with a question of each task at each length, and two at the longest."""
    path = root / SOURCE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content())
    return path


def content() -> bytes:
    """Return the content of the hub's file in JSON."""
    return json.dumps(make_rows(), ensure_ascii=False, indent=1).encode()


def make_rows() -> list[dict[str, Any]]:
    """Return the rows of the file, in another order than the tasks."""
    rng = random.Random(9)
    places = [
        (task, length, index % 2)
        for index, length in enumerate((*LENGTHS, LENGTHS[-1]))
        for task in TASKS
    ]
    return [_make_row(rng, *position) for position in places]


def _make_row(
    rng: random.Random, task: str, length: str, number: int
) -> dict[str, Any]:
    marker = ("[Answer]", "[答案]")[number]
    question = f"{words(rng, 6)}?{rng.choice(_ODD)}\nOutput example:\n{marker}\n{words(rng, 1)}\n{words(rng, 1)}"
    return {
        "id": hashlib.sha256(f"{task} {length} {number}".encode()).hexdigest(),
        "context": f"{rng.choice(('', ' ', chr(10)))}{words(rng, 40)}{rng.choice(_ODD)}\n{words(rng, 20)}",
        "language": ("English", "Chinese")[number],
        "token_length": length,
        "primary_task": f"{task.partition('.')[0]}. Nonsense",
        "secondary_task": task,
        "contextual_requirement": "Full",
        "question_nonthinking": question,
        "question_thinking": f"Think first. {question}{rng.choice(('', ' ', chr(10)))}",
        "answer": [words(rng, 2) for _ in range(3)],
        "difficulty": rng.choice(DIFFICULTIES),
    }


def score_cases() -> list[dict[str, Any]]:
    """Return odd outputs with answers for every task, and texts around the length at which rouge fails."""
    rng = random.Random(10)
    cases = [
        _score_case(rng, task)
        for task in TASKS
        for _ in range(40 if TASKS[task] == "summary" else 60)
    ]
    for size in (986, 987):
        text = " ".join(f"w{number}" for number in range(size))
        cases.append(
            _case(
                "T4.1 Global-Coverage Constrained Summary",
                "English",
                [text, "short"],
                text,
            )
        )
    for output in ("", " \n", "[Answer]", "[Answer]\n\n", "\n"):
        cases += [_case(task, "English", ["", "a"], output) for task in TASKS]
    return cases


def _score_case(rng: random.Random, task: str) -> dict[str, Any]:
    if TASKS[task] == "summary":
        answers = [
            " ".join(rng.choices(_SENTENCES, k=rng.randint(1, 4))) for _ in range(3)
        ]
        output = rng.choice(
            (*answers, " ".join(rng.choices(_SENTENCES, k=rng.randint(0, 4))))
        )
        return _case(
            task,
            rng.choice(("English", "Chinese")),
            answers,
            rng.choice(_STARTS[:3]) + output,
        )
    answers = rng.choices(_LINES, k=rng.randint(1, 5))
    lines = rng.choice(
        (
            answers,
            rng.sample(answers, k=len(answers)),
            rng.choices(_LINES, k=rng.randint(1, 7)),
        )
    )
    return _case(
        task, "English", answers, rng.choice(_STARTS) + rng.choice(_JOINS).join(lines)
    )


def _case(task: str, language: str, answers: list[str], output: str) -> dict[str, Any]:
    return {"task": task, "language": language, "answers": answers, "output": output}


def fake_similarity(answers: Sequence[str], summary: str) -> float:
    """Return a number between -0.2 and 1.1 that depends on the texts, in place of a model's similarity."""
    digest = hashlib.sha256("\0".join((*answers, summary)).encode()).digest()
    return -0.2 + 1.3 * int.from_bytes(digest[:4], "big") / 2**32
