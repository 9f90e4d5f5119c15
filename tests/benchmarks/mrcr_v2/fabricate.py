"""Fabricate MRCR v2's files and odd outputs, which are the same on every machine."""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from helm_longctx.benchmarks.mrcr_v2.tasks import CUMULATIVE, LENGTHS, NEEDLES, file_of
from tests.support.fabricate_words import words

ROWS = 6
SEEDS = (1, 2, 3)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
KINDS = ("poem", "blog post")
TOPICS = ("penguins", "The Myth of Sisyphus")
STYLES = ("formal", "archaic")
EXAMPLE = '======== EXAMPLE 1 ========\n\nUser: Write a riddle about lions in gothic style.\n\nAssistant: Roar, "he" said.\n\n'
RECORD = {"answer": "AnsLake Vel and more"}


def build_mrcr_v2(root: Path, seed: int = SEEDS[0]) -> Path:
    """Write the files of all needles at 8k, and the cumulative ones."""
    for needles in NEEDLES:
        for file in (
            file_of(needles, LENGTHS["8k"]),
            file_of(needles, CUMULATIVE, cumulative=True),
        ):
            path = root / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows(needles, seed)).to_csv(path, index=False)
    return root


def rows(needles: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rng = random.Random(f"{needles} {seed}")
    return [_row(rng, needles) for _ in range(ROWS)]


def _row(rng: random.Random, needles: int) -> dict[str, Any]:
    triples = [
        (kind, topic, style) for kind in KINDS for topic in TOPICS for style in STYLES
    ]
    wanted, *others = rng.sample(triples, 4)
    asked = [wanted] * needles + others
    rng.shuffle(asked)
    replies = [
        f'{words(rng, rng.randint(3, 30))}\n\n“{words(rng, 2)}”, "x"' for _ in asked
    ]
    prompt = EXAMPLE
    position = 0
    number = rng.randrange(needles)
    right = [at for at, triple in enumerate(asked) if triple == wanted][number]
    for at, ((kind, topic, style), reply) in enumerate(
        zip(asked, replies, strict=True)
    ):
        position = len(prompt.split()) if at == right else position
        prompt += f"User: Write a {kind} about {topic} in {style} style.\n\nAssistant: {reply}\n\n"
    kind, topic, style = wanted
    secret = "".join(rng.choices(string.ascii_letters + string.digits, k=12))
    article = "an" if style == "archaic" else "a"
    request = (
        f"User: Prepend {secret} to the {ORDINALS[number]} {kind} about {topic} in {article} {style} style. Do not"
        " include any other text in your response.\n\nAssistant:"
    )
    return {
        "queries": prompt + request, "answer": secret + replies[right], "context_len": len((prompt + request).split()),
        "answer_token_count": 9, "view_ops": request, "num_relevant": needles,
        "answer_context_position": (position, position + 9), "index_positions_of_seeds": [1], "relevant_context_positions": [(1, 2)],
    }  # fmt: skip


def records() -> list[dict[str, str]]:
    """Return records for the metric: outputs that it could misread, each with its answer."""
    rng = random.Random(4)
    answers = [row["answer"] for needles in NEEDLES for row in rows(needles, 9)]
    answers += ["short", f" {'x' * 12} spaced \n", "a" * 12, "ab" * 30]
    return [
        {"prediction": output, "answer": answer}
        for answer in answers
        for output in _outputs(rng, answer)
    ]


def _outputs(rng: random.Random, answer: str) -> Iterator[str]:
    secret = answer[:12]
    text = answer[12:]
    shuffled = text.split()
    rng.shuffle(shuffled)
    for given in (
        text,
        "",
        text[: len(text) // 2],
        text.upper(),
        " ".join(shuffled),
        words(rng, 20),
    ):
        yield from (
            secret + given,
            f"  {secret}\n{given} ",
            f"{secret} no: {secret}{given}",
            given,
        )
    yield f"Here you are: {answer}"


def fingerprint(prompt: str, temperature: float) -> str:
    """Return the short form of a request in the golden file."""
    return f"{temperature} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
