"""Fabricate RULER's source files and tokenizers, which are the same on every machine."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from helm_longctx.benchmarks.ruler import prompts
from helm_longctx.benchmarks.ruler.tasks import ESSAYS, HOTPOTQA, SQUAD, WORDS
from helm_longctx.tasks.counting import CountTokens, make_counter
from tests.support.fabricate_words import words
from tests.tasks.tokenizers import LLAMA_3

NEEDLES = (
    "single_1",
    "single_2",
    "single_3",
    "multikey_1",
    "multikey_2",
    "multikey_3",
    "multivalue",
    "multiquery",
)
TASKS = [*(f"niah_{name}" for name in NEEDLES), "vt", "cwe", "fwe", "qa_1", "qa_2"]
MORE_NEEDLES = {
    f"niah_{part}_{number}": {f"num_needle_{part[0]}": number}
    for part in ("keys", "values", "queries")
    for number in (2, 8, 16)
}
"""Tasks that RULER does not have, with the arguments of its script niah.py that differ from niah_single_2."""

CASES = [
    ("byte_level", 12288, 42, 3, TASKS),
    (
        "metaspace",
        10000,
        7,
        2,
        [
            "niah_single_2",
            "niah_multikey_2",
            "niah_multiquery",
            "vt",
            "cwe",
            "fwe",
            "qa_1",
        ],
    ),
    ("nfkc", 4096, 1, 2, ["niah_single_3", "vt", "qa_2"]),
    # Each word is a token here, so a list of common words needs more words than wonderwords has.
    ("words", 65536, 42, 1, ["cwe"]),
    ("byte_level", 12288, 42, 2, [*MORE_NEEDLES]),
]
"""Tokenizer, length, seed, number of samples, and tasks."""

TEXTS = [text for name, text in vars(prompts).items() if name.isupper()]


def tokenizer(kind: str) -> Tokenizer:
    """Return a small tokenizer, whose merges are made here, since training can differ between versions of the
    library."""
    if kind == "words":
        words_tokenizer = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
        words_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return words_tokenizer
    if kind == "metaspace":
        words_tokenizer = Tokenizer(
            _merge_words("▁", [chr(code) for code in range(32, 127)])
        )
        words_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        return words_tokenizer
    words_tokenizer = Tokenizer(
        _merge_words("Ġ", sorted(pre_tokenizers.ByteLevel.alphabet()))
    )
    if kind == "nfkc":
        words_tokenizer.normalizer = normalizers.NFKC()
        words_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return words_tokenizer
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    words_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    return words_tokenizer


@cache
def counter(kind: str) -> CountTokens:
    return make_counter(tokenizer(kind))


def _merge_words(space: str, alphabet: list[str]) -> models.BPE:
    """Return byte pairs that join the words of the templates letter by letter, each with the space before it."""
    unique_words = dict.fromkeys(
        word for text in TEXTS for word in re.findall(r" ?[A-Za-z]+", text)
    )
    merges: dict[tuple[str, str], None] = {}
    for word in (word.replace(" ", space) for word in unique_words):
        merges.update(
            dict.fromkeys((word[:end], word[end]) for end in range(1, len(word)))
        )
    tokens = dict.fromkeys(
        ["<unk>", space, *alphabet, *(left + right for left, right in merges)]
    )
    return models.BPE(
        {token: number for number, token in enumerate(tokens)},
        [*merges],
        unk_token="<unk>",
    )


def build_sources(root: Path) -> Path:
    """Write essays, articles with questions, and a list of words."""
    rng = random.Random(31)
    text = " ".join(
        f"{words(rng, rng.randint(3, 14)).capitalize()}{rng.choice('..!?')}"
        for _ in range(160)
    )
    files: dict[str, Any] = {
        ESSAYS.path: {"text": text.replace(" the ", "\n\n the  ").replace("a.", "dr.")},
        SQUAD.path: {"data": [_article(rng) for _ in range(8)]},
        HOTPOTQA.path: [_row(rng) for _ in range(12)],
        WORDS.path: {str(number): f"w{number}" for number in range(20_000)},
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(orjson.dumps(content))
    return root


def _article(rng: random.Random) -> dict[str, Any]:
    return {
        "title": words(rng, 2),
        "paragraphs": [
            {
                "context": words(rng, 60),
                "qas": [
                    {
                        "question": f"{words(rng, 6)}?",
                        "answers": [
                            {"text": words(rng, 2)} for _ in range(rng.randint(1, 3))
                        ],
                        "is_impossible": rng.random() < 0.3,
                    }
                    for _ in range(2)
                ],
            }
            for _ in range(rng.randint(2, 14))
        ],
    }


def _row(rng: random.Random) -> dict[str, Any]:
    context = [
        [words(rng, 2), [f"{words(rng, 8)}. ", f"{words(rng, 9)}."]] for _ in range(10)
    ]
    return {
        "question": f"{words(rng, 7)}?",
        "answer": words(rng, 1),
        "context": context,
    }
