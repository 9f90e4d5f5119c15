"""Fabricates books and law cases, and a small tokenizer of Llama 2's kind that measures them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

from tests.support.fabricate_words import words, write

LONG = 65536
LONGEST = 131072


RUBRICS = {
    "longqa": {
        "judge_prompt": 'Question {question}\nTrue {correct_answers}\nGiven {parsed_output}\nSay {{"fluency": 1}}'
    },
    "summ": {
        f"{part}_prompt{kind}": f'{part}{kind}\n{text}\nSay {{{{"{part}": 1}}}}'
        for kind in ("", "_book")
        for part, text in (
            ("fluency", "{text}"),
            ("recall", "{keypoints}\n{summary}"),
            ("precision", "{expert_summary}\n{summary}"),
        )
    },
}
"""Judges' templates of our own, by official script and name."""


def build_rubrics(root: Path) -> None:
    """Write scripts with the judges' templates."""
    for script, templates in RUBRICS.items():
        path = root / f"helmet/scripts/eval_gpt4_{script}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"{name} = {text!r}\n" for name, text in templates.items()),
            encoding="utf-8",
        )


def build(root: Path) -> None:
    """Write everything under `tokenizers` and the hub sets of long texts, with the release's key points and rubrics."""
    build_rubrics(root)
    rng = random.Random(6)
    folder = root / "tokenizers/meta-llama__Llama-2-7b-hf"
    folder.mkdir(parents=True)
    llama_like().save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "model_max_length": 10**9,
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps(settings), encoding="utf-8"
    )
    hub = root / "hub"
    write(
        hub / "narrativeqa/train.jsonl",
        (narrativeqa_row(rng, words(rng, 3)) for _ in range(30)),
    )
    texts = [
        *(book(rng, tokens) for tokens in (LONGEST + 900, LONGEST + 1, LONGEST + 30)),
        book(rng, LONGEST),
        "short",
    ]
    write(
        hub / "narrativeqa/test.jsonl",
        (narrativeqa_row(rng, texts[i % 5]) for i in range(18)),
    )
    books = [
        *(book(rng, tokens) for tokens in (LONG, LONGEST + 50, LONG + 77)),
        book(rng, LONG - 1),
    ]
    infinitebench = hub / "xinrongzhang2022__infinitebench"
    for name in ("qa", "choice", "sum"):
        rows = list(infbench_rows(rng, name, books))
        write(infinitebench / f"longbook_{name}_eng.jsonl", rows)
    points = (
        {"id": row["id"], "keypoints": [words(rng, 4) for _ in range(3)]}
        for row in rows
    )
    write(root / "helmet/infbench/longbook_sum_eng_keypoints.jsonl", points)
    lexsum = hub / "allenai__multi_lexsum"
    write(
        lexsum / "train.jsonl", (lexsum_row(rng, i, words(rng, 5)) for i in range(40))
    )
    cases = [lexsum_row(rng, i, books[i % 4]) for i in range(14)]
    write(lexsum / "validation.jsonl", cases)
    points = (
        {**case, "sources": [], "summary/short_keypoints": [words(rng, 4)]}
        for case in cases
    )
    write(root / "helmet/multi_lexsum/multi_lexsum_val.jsonl", points)


@cache
def llama_like() -> Tokenizer:
    """Return a tokenizer of pieces of characters with byte fallback, spaces as `▁`, and a `<s>` at the start."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = sorted(set("▁abdeikhlmnoprstuv{}x.'%"))
    merges = [
        ("b", "a"),
        ("d", "o"),
        ("n", "e"),
        ("▁", "."),
        ("u", "m"),
        ("l", "um"),
        ("ba", "ba"),
    ]
    vocab = {
        piece: number
        for number, piece in enumerate(
            [*pieces, *letters, *("".join(pair) for pair in merges)]
        )
    }
    tokenizer = Tokenizer(
        models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False) for token in ("<unk>", "<s>", "</s>")]
    )
    return tokenizer


def book(rng: random.Random, tokens: int) -> str:
    """Return a text of this number of tokens, `<s>` included, in which some characters are several tokens."""
    text = words(rng, tokens // 6)
    while (length := 1 + sum(map(word_size, text.split(" ")))) > tokens:
        text = text[: -max(1, (length - tokens) // 4)]
    return text + "x" * (tokens - length)


@cache
def word_size(word: str) -> int:
    """Return the tokens of a word with the space before it. They are the same in any text, so sums of them save time."""
    return len(llama_like().encode(f"x {word}").ids) - len(llama_like().encode("x").ids)


def narrativeqa_row(rng: random.Random, text: str) -> dict[str, Any]:
    return {
        "document": {"id": "d", "kind": "book", "text": text},
        "question": {"text": f"{words(rng, 4)}?", "tokens": []},
        "answers": [{"text": words(rng, 2), "tokens": []} for _ in range(2)],
    }


def infbench_rows(
    rng: random.Random, name: str, books: list[str]
) -> Iterator[dict[str, Any]]:
    for number in range(14):
        options = [words(rng, 2) for _ in range(4)] if name == "choice" else []
        if number == 3 and options:
            options[2] = options[0]
        answers = (
            [rng.choice(options)]
            if options
            else [f" {words(rng, 3)} " for _ in range(2)]
        )
        question = "" if name == "sum" else f"{words(rng, 4)}?"
        # An id can occur twice: neither row is then a demonstration of the other.
        number = 0 if number == 5 else number
        yield {
            "id": number,
            "context": rng.choice(books),
            "input": question,
            "answer": answers,
            "options": options,
        }


def lexsum_row(rng: random.Random, number: int, text: str) -> dict[str, Any]:
    half = len(text) // 2
    short = None if number % 7 == 4 else words(rng, 12)
    sources = [text[:half], text[half:]]
    return {
        "id": f"case-{number}",
        "sources": sources,
        "summary/long": words(rng, 20),
        "summary/short": short,
    }
