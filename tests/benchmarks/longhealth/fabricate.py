"""Fabricate LongHealth's patients, answers and tokenizers, which are the same on every machine."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.longhealth.tasks import SOURCE
from tests.benchmarks.lv_eval.fabricate import tokenizers
from tests.benchmarks.mrcr.fabricate import encoding
from tests.support.fabricate_words import words

SEEDS = (1, 2, 3)
PATIENTS = 4
QUESTIONS = 3
LIMITS = {
    **{"byte_level 3000": 3000, "byte_level 1500": 1500, "metaspace 3000": 3000},
    **{"tiktoken 3000": 3000, "tiktoken 16000": 16_000},
}
"""The most tokens by the name of the case, which begins with the tokenizer; documents are cut, have no room, or fit."""

_SENTENCES = (
    *(
        "The correct answer is A: {}",
        "The correct answer is B: x",
        "The correct answer is C.",
        "C: {}",
        "",
    ),
    *(
        "The correct answer is F: none. The correct answer is A: {}",
        "I think: The correct answer is D: {}",
        "{}",
    ),
    *(
        "the correct answer is E: {}",
        "The correct answer is E:",
        "The correct answer is (B): x",
        "The correct answer is é:",
    ),
)


def build_longhealth(root: Path, seed: int = SEEDS[0]) -> Path:
    """Write the release's only file."""
    path = root / SOURCE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(patients(seed), ensure_ascii=False), encoding="utf-8")
    return path


def patients(seed: int) -> dict[str, Any]:
    """Return the content of the file."""
    rng = random.Random(seed)
    return {f"patient_{number:02d}": _patient(rng) for number in range(1, PATIENTS + 1)}


def _patient(rng: random.Random) -> dict[str, Any]:
    texts = {
        f"text_{position}": words(rng, rng.randint(5, 120))
        for position in range(rng.randint(3, 6))
    }
    return {
        "texts": texts,
        "name": words(rng, 2),
        "birthday": "1970-01-01",
        "diagnosis": words(rng, 1),
        "questions": [
            _question(rng, list(texts), number) for number in range(QUESTIONS)
        ],
    }


def _question(rng: random.Random, texts: list[str], number: int) -> dict[str, Any]:
    answers = {
        f"answer_{letter}": f"{words(rng, 2)} {rng.randint(1, 40)} mg"
        for letter in "abcde"
    }
    correct = rng.choice(list(answers.values()))
    if number == 1:
        # The right option contains the right answer, and so does the one before it; or no option does.
        answers |= {"answer_b": "140 mg", "answer_c": "40 mg"}
        correct = rng.choice(("40 mg", "41 mg"))
    drawn = rng.sample(texts, rng.randint(1, len(texts)))
    where = {name: {"start": [0.1], "end": [0.2]} for name in drawn}
    return {
        **{"No": number, "question": f"{words(rng, 5)} {{options}}?", **answers},
        **{"correct": correct, "answer_location": where},
    }


def answer(prompt: str) -> str:
    """Return the model's answer to a prompt, which is an odd text that depends only on the prompt."""
    rng = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    return rng.choice(_SENTENCES).format("40 mg")


def fingerprint(messages: Iterable[tuple[str, str]]) -> list[Any]:
    """Return the number of requests, and a digest of their system and user messages."""
    listed = [list(pair) for pair in messages]
    return [len(listed), hashlib.sha256(json.dumps(listed).encode()).hexdigest()[:16]]


def tokenizer(name: str) -> Any:
    """Return a tokenizer of Hugging Face or of tiktoken as the official code loads it."""
    if name == "tiktoken":
        return encoding()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizers()[name])
