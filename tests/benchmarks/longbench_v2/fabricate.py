"""LongBench v2's rows, answers and tokenizers, fabricated; the same on every machine."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.longbench_v2.data import LETTERS, PATH
from tests.fabricate_words import words, write
from tests.lv_eval.fabricate import tokenizers
from tests.mrcr.fabricate import encoding

ROWS = 12
LIMITS = {"bpe 99999": 99_999, "bpe 1301": 1301, "metaspace 1300": 1300, "tiktoken 1300": 1300, "tiktoken 1333": 1333}
"""The most tokens of a prompt, by the name of the case; the first word is the tokenizer's. Second requests fit."""
SEEDS = (1, 2, 3)
ODD = ("$Q$", "$C_A$ and $C_C$", "{context}", "{question}", "  ", "\n", "<s>", "“naïve”", "北京", "$$Q$_B$", "$COT$")

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


def build_longbench_v2(root: Path, seed: int = SEEDS[0]) -> Path:
    """The data set's only split."""
    write(root / PATH, rows(seed))
    return root / PATH


def rows(seed: int) -> list[dict[str, Any]]:
    """The rows of the file."""
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
    # "$COT$" in a question would be replaced by the first answer; no real question has it.
    odd = ODD if count > 99 else ODD[:-1]
    return " ".join(rng.choice(odd) if rng.random() < 0.1 else words(rng, 1) for _ in range(count))


def answer(prompt: str) -> str:
    """What the model says to a prompt: an odd text that depends only on the prompt."""
    rng = random.Random(hashlib.sha256(prompt.encode()).hexdigest())
    said = rng.choice(_SENTENCES)
    return rng.choice(("{}", " {}\n", "I think: {}", "{} $Q$ {{x}}")).format(said)


def fingerprint(role: str, prompt: str, temperature: float, max_tokens: int) -> str:
    """A request in short, as the golden file has it."""
    return f"{role} {temperature} {max_tokens} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"


def tokenizer(name: str) -> Any:
    """A tokenizer as the official code loads it: Hugging Face's, or tiktoken's."""
    if name == "tiktoken":
        return encoding()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizers()["byte_level" if name == "bpe" else name])
