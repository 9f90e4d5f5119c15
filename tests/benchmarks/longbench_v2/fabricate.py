"""Fabricate LongBench v2's rows, answers and tokenizers, which are the same on every machine."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.longbench_v2.tasks import LETTERS, PATH
from tests.benchmarks.lv_eval.fabricate import tokenizers
from tests.benchmarks.mrcr.fabricate import encoding
from tests.support.fabricate_words import words, write

ROWS = 12
LIMITS = {
    "bpe 99999": 99_999,
    "bpe 1301": 1301,
    "metaspace 1300": 1300,
    "tiktoken 1300": 1300,
    "tiktoken 1333": 1333,
}
"""The most tokens of a prompt by the name of the case, which begins with the tokenizer; second requests always fit."""
SEEDS = (1, 2, 3)
ODD = (
    "$Q$",
    "$C_A$ and $C_C$",
    "{context}",
    "{question}",
    "  ",
    "\n",
    "<s>",
    "“naïve”",
    "北京",
    "$$Q$_B$",
    "$COT$",
)

_SENTENCES = (
    "The correct answer is (B)",
    "The correct answer is C.",
    "**The correct answer is (D)**",
    "The *correct* answer is (A), not The correct answer is (B)",
    "The correct answer is (insert answer here)",
    "the correct answer is (A)",
    "The correct answer is (E). The correct answer is A",
    "The correct answer is C, no: The correct answer is (D)",
    "The correct answer is: (B)",
    "B",
    "The correct answer is\n(A)",
)
RECORD = {
    "prediction": "The correct answer is (B)",
    "difficulty": "easy",
    "length": "short",
}


def build_longbench_v2(root: Path, seed: int = SEEDS[0]) -> Path:
    """Write the data set's only split."""
    write(root / PATH, rows(seed))
    return root / PATH


def rows(seed: int) -> list[dict[str, Any]]:
    """Return the rows of the file."""
    rng = random.Random(seed)
    return [_row(rng, number) for number in range(ROWS)]


def _row(rng: random.Random, number: int) -> dict[str, Any]:
    return {
        "_id": f"{rng.getrandbits(40):010x}", "domain": "Single-Document QA", "sub_domain": "Legal",
        "difficulty": ("easy", "hard")[number % 2], "length": ("short", "medium", "long")[number % 3],
        "question": f" {_text(rng, 9)}?\n", **{f"choice_{letter}": f"{_text(rng, 3)} " for letter in LETTERS},
        "answer": rng.choice(LETTERS), "context": f"\n{_text(rng, rng.randint(200, 500))}\n\n",
    }  # fmt: skip


def _text(rng: random.Random, count: int) -> str:
    return " ".join(
        rng.choice(ODD) if rng.random() < 0.1 else words(rng, 1) for _ in range(count)
    )


def answer(prompt: str) -> str:
    """Return the model's answer to a prompt, which is an odd text that depends only on the prompt."""
    rng = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    said = rng.choice(_SENTENCES)
    return rng.choice(("{}", " {}\n", "I think: {}", "{} $Q$ {{x}}")).format(said)


def fingerprint(role: str, prompt: str, temperature: float, max_tokens: int) -> str:
    """Return the short form of a request in the golden file."""
    return f"{role} {temperature} {max_tokens} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"


def tokenizer(name: str) -> Any:
    """Return a tokenizer of Hugging Face or of tiktoken as the official code loads it."""
    if name == "tiktoken":
        return encoding()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizers()["byte_level" if name == "bpe" else name]
    )
