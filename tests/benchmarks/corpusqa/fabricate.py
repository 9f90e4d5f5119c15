"""Fabricates CorpusQA's files, answers and a judge's replies, the same on every machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.corpusqa.tasks import DOMAINS, SIZES, score, source_of
from helm_longctx.tasks.task import MetricValues
from tests.support.fabricate import words, write

ROWS = 6
"""Questions of a domain in a file."""
LENGTH = min(SIZES)
RECORD = {"judge": "They are equal. [[YES]]"}

ANSWERS: tuple[Any, ...] = (282.0, ["中信国安", 'B\'s "Co"'], [], "South", 7, "12.34%")
"""Official answers of all kinds."""
REPLIES = (
    "They are equal. [[YES]]", "[[NO]]", "1) no\n2) [[NO]] or [[YES]]", "YES", "[[yes]]", "[YES]", "", "[[YES]] [[YES]]",
    "Final answer: [[NO]]\n", "[[ YES ]]",
)  # fmt: skip
OUTPUTS = (
    "The answer is: 282", "Well.\nThe answer is: [\"a\"] \nmore", "the answer is: 3", "The answer is:\n4", "  South \n",
    "The answer is: 1. The answer is: 2\nThe answer is: 3", "", "The answer is: ", "{problem} {}",
)  # fmt: skip


def build_corpusqa(root: Path) -> Path:
    """Write the files of all lengths."""
    for length in SIZES:
        write(root / source_of(length).path, make_rows())
    return root


def make_rows(corpora: int = 1) -> list[dict[str, Any]]:
    """Return the rows of a file, in another order than the domains, and one of an unknown domain.

    Args:
        corpora: the number of sets of documents of each domain.
    """
    rng = random.Random(11)
    rows = [
        _make_row(rng, domain, number, corpora)
        for number in range(ROWS)
        for domain in [*DOMAINS][::-1]
    ]
    return [*rows, {**rows[0], "id": "medicine_en_1"}]


def _make_row(
    rng: random.Random, domain: str, number: int, corpora: int
) -> dict[str, Any]:
    question = f"{words(rng, 5)} {{x}}?"
    texts = random.Random(f"{domain} {number % corpora}")
    documents = "".join(
        f"# Document {n}:\n{words(texts, 20)} {{}} é\u2028\n" for n in (1, 2)
    )
    return {
        "id": f"{domain}_{number}",
        "domain": domain,
        "set": "128k",
        "question": question,
        "answer": ANSWERS[number],
        "prompt": [
            {"role": "system", "content": "You are an analyst."},
            {
                "role": "user",
                "content": f"{documents}\n# Question:\n{question}\n\nEnd with: The answer is: xxx.\n",
            },
        ],
    }


def judged() -> list[dict[str, Any]]:
    """Return an odd output for each question of a file."""
    rng = random.Random(12)
    return [{**row, "response": rng.choice(OUTPUTS)} for row in make_rows()]


def reply_of(prompt: str) -> str:
    """Return the judge's reply to a prompt, which depends only on the prompt."""
    return random.Random(prompt).choice(REPLIES)


def read_reply(reply: Any) -> MetricValues:
    """Return the judge's verdict in a reply."""
    return score({"judge": reply})
